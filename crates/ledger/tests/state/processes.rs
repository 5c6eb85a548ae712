//! Several processes use one database at once, and are killed at any moment.

use std::process::{Child, Command, Stdio};

use ledger::State;
use ledger::state::approvals::{Answer, Asked, Shown, Taken, TicketId};
use ledger::state::budgets::{Budget, Reserved, Spent};

use crate::{Home, at, block_on, count};

/// Tell the worker which database, and what to do.
const PATH: &str = "LEDGER_TEST_STATE";
const WORK: &str = "LEDGER_TEST_WORK";
/// How many calls the budget has.
const CALLS: u64 = 100;

fn budget() -> Budget {
    Budget { calls: Some(CALLS), cents: None }
}

fn asked() -> Asked {
    Asked {
        package: "sha256:1".into(),
        action: "a".into(),
        arguments: "sha256:2".into(),
        surface: "mcp".into(),
    }
}

/// Not a test: what the other processes do. The exit status is how often they were lucky.
#[test]
#[ignore = "other tests run it as a process of its own"]
fn worker() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let work = std::env::var(WORK).unwrap();
    let lucky = block_on(async {
        let state = State::open(path.as_ref()).await.unwrap();
        match work.as_str() {
            "budget" => spend(&state).await,
            "write" => write(&state).await,
            "once" => {
                let went = count(&state, "demo").await;
                // It ends before the database is closed.
                std::process::exit(i32::from(went.is_ok()))
            }
            ticket => {
                let id = TicketId::parse(ticket).unwrap();
                let taken = state.take(&id, &asked(), at(1)).await.unwrap();
                i32::from(matches!(taken, Taken::Approved(_)))
            }
        }
    });
    std::process::exit(lucky);
}

/// Takes calls until there are none.
async fn spend(state: &State) -> i32 {
    let mut lucky = 0;
    while state.reserve(at(0).day(), "demo", 1, budget(), budget()).await.unwrap() == Reserved::Yes
    {
        lucky += 1;
    }
    lucky
}

/// Writes until it is killed, or for long enough: each reservation is one call and three cents in two rows.
async fn write(state: &State) -> i32 {
    let plenty = Budget { calls: Some(u64::MAX), cents: Some(u64::MAX) };
    for _ in 0..100_000 {
        state.reserve(at(0).day(), "demo", 3, plenty, plenty).await.unwrap();
        count(state, "demo").await.unwrap();
    }
    0
}

fn start(home: &Home, work: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["processes::worker", "--exact", "--ignored"])
        .env(PATH, home.path())
        .env(WORK, work)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// How often each worker was lucky.
fn luck(workers: Vec<Child>) -> Vec<i32> {
    let end = |mut worker: Child| worker.wait().unwrap().code().unwrap();
    workers.into_iter().map(end).collect()
}

#[test]
fn two_processes_cannot_both_take_the_last_call() {
    let home = Home::new();
    // All of them make the database, too.
    let lucky = luck((0..3).map(|_| start(&home, "budget")).collect());
    assert_eq!(lucky.iter().sum::<i32>(), 100, "{lucky:?}");
    block_on(async {
        let spent = home.open().await.spent(at(0).day(), None).await.unwrap();
        // Cents have no limit here, so they are not counted.
        assert_eq!(spent, Spent { calls: CALLS, cents: 0 });
    });
}

#[test]
fn of_all_processes_one_takes_a_ticket() {
    let home = Home::new();
    for _ in 0..5 {
        let id = block_on(async {
            let state = home.open().await;
            let id = state.ask(&asked(), &Shown::default(), at(0), at(1_000)).await.unwrap();
            state.answer(&id, Answer::Approved, at(0)).await.unwrap();
            id
        });
        let mut lucky = luck((0..4).map(|_| start(&home, &id.to_string())).collect());
        lucky.sort_unstable();
        assert_eq!(lucky, [0, 0, 0, 1]);
    }
}

#[test]
fn a_writer_that_is_killed_leaves_a_whole_database() {
    let home = Home::new();
    let spent = |state: &State, package| block_on(state.spent(at(0).day(), package)).unwrap();
    let mut least = 0;
    for round in 0..15 {
        let mut worker = start(&home, "write");
        let state = block_on(home.open());
        // Wherever it is once it has written some more.
        while spent(&state, None).calls < least + 300 + round {
            assert_eq!(worker.try_wait().unwrap(), None, "it writes on");
            std::thread::yield_now();
        }
        drop(state);
        worker.kill().unwrap();
        worker.wait().unwrap();
        let state = block_on(home.open());
        block_on(state.check()).unwrap();
        let Spent { calls: now, cents } = spent(&state, None);
        assert_eq!(
            spent(&state, Some("demo")),
            Spent { calls: now, cents },
            "both rows or neither"
        );
        assert_eq!(cents, 3 * now);
        assert!(now >= least + 300, "what was written stays");
        let counted = block_on(state.metrics(None)).unwrap()[0].calls;
        assert!(counted <= now && now - counted <= round + 1, "{counted} of {now}");
        least = now;
    }
}

/// Otherwise each process would read what all before it have written.
#[test]
fn processes_that_come_one_by_one_and_close_nothing_keep_the_journal_short() {
    const LONG: u64 = 300 << 10;
    let home = Home::new();
    let journal = format!("{}-wal", home.path().display());
    let mut longest = 0;
    for _ in 0..120 {
        assert_eq!(luck(vec![start(&home, "once")]), [1]);
        longest = longest.max(std::fs::metadata(&journal).unwrap().len());
    }
    assert!(longest > LONG / 2, "nothing was left in the journal: {longest} bytes");
    assert!(longest < LONG, "{longest} bytes");
    block_on(async {
        assert_eq!(home.open().await.metrics(None).await.unwrap()[0].calls, 120);
    });
}
