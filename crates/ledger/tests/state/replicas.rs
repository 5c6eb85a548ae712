//! Several replicas use one shared database at once; what is given out once is given out once among all of them.

use std::sync::Arc;

use ledger::State;
use ledger::state::Database;
use ledger::state::approvals::{Answer, Asked, Shown, Taken};
use ledger::state::budgets::{Budget, Paced, Rate, Reserved};
use ledger::state::names::Named;
use ledger::state::rules::{Lasts, Rule};

use crate::{at, block_on, called, fresh, server};

/// How many replicas there are, each with connections of its own.
const REPLICAS: usize = 4;

async fn replicas(database: &Database) -> Vec<Arc<State>> {
    // All of them make the tables, too.
    let joining = (0..REPLICAS).map(|_| {
        let database = database.clone();
        tokio::spawn(async move { State::join(&database).await.unwrap() })
    });
    let mut all = Vec::new();
    for one in joining.collect::<Vec<_>>() {
        all.push(Arc::new(one.await.unwrap()));
    }
    all
}

/// What each replica says when all do the same at once, some times over.
async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    all: &[Arc<State>],
    times: usize,
    what: impl Fn(Arc<State>) -> F,
) -> Vec<T> {
    let repeated = all.iter().cycle().take(all.len() * times);
    let running: Vec<_> = repeated.map(|one| tokio::spawn(what(Arc::clone(one)))).collect();
    let mut said = Vec::new();
    for one in running {
        said.push(one.await.unwrap());
    }
    said
}

#[test]
fn one_of_all_takes_a_ticket() {
    let Some(server) = server() else { return };
    block_on(async {
        let all = replicas(&fresh(&server)).await;
        let asked = Asked {
            package: "sha256:1".into(),
            action: "a".into(),
            arguments: "sha256:2".into(),
            surface: "mcp".into(),
        };
        for _ in 0..20 {
            let id = all[0].ask(&asked, &Shown::default(), at(0), at(1_000)).await.unwrap();
            let answers = at_once(&all, 1, |state| {
                let id = id.clone();
                async move { state.answer(&id, Answer::Approved, at(1)).await.unwrap() }
            });
            assert_eq!(answers.await.iter().filter(|counted| **counted).count(), 1);
            let taken = at_once(&all, 2, |state| {
                let (id, asked) = (id.clone(), asked.clone());
                async move { state.take(&id, &asked, at(2)).await.unwrap() }
            });
            let taken = taken.await;
            let approved = taken.iter().filter(|one| matches!(one, Taken::Approved(_))).count();
            assert_eq!(approved, 1, "{taken:?}");
            assert!(taken.iter().all(|one| matches!(one, Taken::Approved(_) | Taken::Used)));
        }
    });
}

#[test]
fn the_last_call_of_a_budget_is_given_out_once() {
    let Some(server) = server() else { return };
    block_on(async {
        let all = replicas(&fresh(&server)).await;
        let budget = Budget { calls: Some(50), cents: Some(1_000) };
        let said = at_once(&all, 20, |state| async move {
            state.reserve(at(0).day(), "demo", 3, budget, budget).await.unwrap()
        });
        let said = said.await;
        assert_eq!(said.iter().filter(|one| **one == Reserved::Yes).count(), 50, "{said:?}");
        let rate = Rate { burst: 7, every: std::time::Duration::from_secs(1) };
        let paced =
            at_once(&all, 5, |state| async move { state.pace("demo", rate, at(0)).await.unwrap() });
        assert_eq!(paced.await.iter().filter(|one| **one == Paced::Yes).count(), 7);
    });
}

#[test]
fn what_all_say_at_once_is_remembered_and_named_once_and_what_they_count_is_added_up() {
    let Some(server) = server() else { return };
    block_on(async {
        let all = replicas(&fresh(&server)).await;
        let rule = || Rule {
            package: "demo".into(),
            action: "a".into(),
            arguments: "{}".into(),
            lasts: Lasts::Always,
            by: "terminal".into(),
        };
        let ids =
            at_once(&all, 5, |state| async move { state.remember(&rule(), at(0)).await.unwrap() });
        let ids = ids.await;
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(all[1].remembered(None).await.unwrap().len(), 1);
        let kept = at_once(&all, 5, |state| async move {
            let named = Named { exposed: "x".into(), package: "demo".into(), action: "a".into() };
            state.keep_names(&[named], at(0)).await.unwrap()
        });
        assert_eq!(kept.await.iter().filter(|kept| **kept).count(), 1);
        at_once(&all, 10, |state| async move {
            let calls = ["", "timed_out"]
                .map(|failure| called("demo", failure, std::time::Duration::ZERO, at(0)));
            state.count_calls(&calls).await.unwrap();
        })
        .await;
        let metrics = &all[2].metrics(None).await.unwrap()[0];
        assert_eq!((metrics.calls, metrics.failed, metrics.recent.len()), (80, 40, 80));
        // Whoever takes it back takes it back for all.
        all[3].revoke_all("demo").await.unwrap();
        assert!(all[0].remembered(None).await.unwrap().is_empty());
        // One key seals for all.
        let keys =
            at_once(
                &all,
                1,
                |state| async move { state.shared().unwrap().seal_key().await.unwrap() },
            );
        let keys = keys.await;
        assert!(keys.iter().all(|key| *key == keys[0] && *key != [0; 32]));
    });
}
