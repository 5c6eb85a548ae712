//! What must hold for any store.

use std::sync::Arc;
use std::time::Duration;

use ledger::state::approvals::{Answer, Asked, Shown, Taken, TicketId};
use ledger::state::budgets::{Budget, Paced, Rate, Reserved, Scope, Spent};
use ledger::state::grants::{Grant, GrantKind};
use ledger::state::machine::Said;
use ledger::state::names::Named;
use ledger::state::pins::PinKind;
use ledger::state::rules::{Lasts, Rule};
use ledger::state::wishes::Wish;

use crate::{at, called, with};

fn asked() -> Asked {
    Asked {
        package: "sha256:1".into(),
        action: "remove".into(),
        arguments: "sha256:2".into(),
        surface: "mcp".into(),
    }
}

#[test]
fn packages_are_seen_by_what_they_did_and_got_and_not_by_rules_about_them() {
    with(async |state| {
        assert!(state.packages().await.unwrap().is_empty());
        for version in ["1.0.0", "1.1.0+a5005b"] {
            let mut call = called("mcpkg:demo.called", "denied", Duration::ZERO, at(0));
            Arc::make_mut(&mut call.series).version = version.into();
            state.count_calls(&[call]).await.unwrap();
        }
        let grant = Grant {
            package: "mcpkg:demo.granted".into(),
            kind: GrantKind::Host,
            value: "api.example.com".into(),
            by: "terminal".into(),
            created: at(0),
        };
        state.grant(&grant).await.unwrap();
        let blocked = state.note_blocked("mcpkg:demo.blocked", GrantKind::Host, "x", at(0)).await;
        blocked.unwrap();
        let rule = Rule {
            package: "mcpkg:demo.ruled".into(),
            action: "a".into(),
            arguments: "{}".into(),
            lasts: Lasts::Always,
            by: "terminal".into(),
        };
        state.remember(&rule, at(0)).await.unwrap();
        let seen = state.packages().await.unwrap();
        assert_eq!(seen, ["mcpkg:demo.blocked", "mcpkg:demo.called", "mcpkg:demo.granted"]);
    });
}

#[test]
fn the_last_place_of_a_package_is_known_whatever_its_version() {
    with(async |state| {
        let id = "mcpkg:demo.called";
        let call = |version: &str, place: &str| {
            let mut call = called(id, "", Duration::ZERO, at(0));
            Arc::make_mut(&mut call.series).version = version.into();
            call.place = Some(place.into());
            call
        };
        assert_eq!(state.last_place(id).await.unwrap(), None);
        state.count_calls(&[call("1.0.0", "/one"), call("1.1.0", "/other")]).await.unwrap();
        assert_eq!(state.last_place(id).await.unwrap().as_deref(), Some("/other"));
        state.count_calls(&[call("1.0.0", "/one")]).await.unwrap();
        assert_eq!(state.last_place(id).await.unwrap().as_deref(), Some("/one"));
        assert_eq!(state.last_place("mcpkg:demo").await.unwrap(), None);
    });
}

#[test]
fn a_ticket_is_good_for_one_call_once() {
    with(async |state| {
        let id = state.ask(&asked(), &Shown::default(), at(0), at(1_000)).await.unwrap();
        assert_eq!(TicketId::parse(&id.to_string()).as_ref(), Some(&id));
        assert_eq!(state.waiting(at(1)).await.unwrap()[0].asked, asked());
        assert_eq!(state.take(&id, &asked(), at(1)).await.unwrap(), Taken::Waiting);
        assert!(state.answer(&id, Answer::Approved, at(2)).await.unwrap());
        assert!(!state.answer(&id, Answer::Refused, at(3)).await.unwrap(), "the first one counts");
        assert!(state.waiting(at(4)).await.unwrap().is_empty());
        for other in [
            Asked { package: "sha256:9".into(), ..asked() },
            Asked { action: "list".into(), ..asked() },
            Asked { arguments: "sha256:9".into(), ..asked() },
            Asked { surface: "http".into(), ..asked() },
        ] {
            assert_eq!(state.take(&id, &other, at(5)).await.unwrap(), Taken::OtherCall);
        }
        assert_eq!(state.take(&id, &asked(), at(6)).await.unwrap(), Taken::Approved(String::new()));
        assert_eq!(state.take(&id, &asked(), at(7)).await.unwrap(), Taken::Used);
    });
}

#[test]
fn a_ticket_that_is_refused_late_or_unknown_is_good_for_nothing() {
    with(async |state| {
        let refused = state.ask(&asked(), &Shown::default(), at(0), at(1_000)).await.unwrap();
        assert!(state.answer(&refused, Answer::Refused, at(1)).await.unwrap());
        assert_eq!(state.take(&refused, &asked(), at(2)).await.unwrap(), Taken::Refused);
        let late = state.ask(&asked(), &Shown::default(), at(0), at(1_000)).await.unwrap();
        assert!(!state.answer(&late, Answer::Approved, at(1_000)).await.unwrap());
        assert_eq!(state.take(&late, &asked(), at(1_000)).await.unwrap(), Taken::Expired);
        let slow = state.ask(&asked(), &Shown::default(), at(0), at(1_000)).await.unwrap();
        assert!(state.answer(&slow, Answer::Approved, at(999)).await.unwrap());
        assert_eq!(state.take(&slow, &asked(), at(1_000)).await.unwrap(), Taken::Expired);
        let nobody = TicketId::parse(&"0".repeat(32)).unwrap();
        assert_eq!(state.take(&nobody, &asked(), at(1)).await.unwrap(), Taken::Unknown);
        assert_eq!(state.forget_tickets(at(2_000)).await.unwrap(), 3);
        assert_eq!(state.take(&slow, &asked(), at(1)).await.unwrap(), Taken::Unknown);
    });
}

#[test]
fn approvals_are_remembered_as_long_as_they_last() {
    with(async |state| {
        let rule = |lasts| Rule {
            package: "demo".into(),
            action: "remove".into(),
            arguments: "path=/scratch/*".into(),
            lasts,
            by: "terminal".into(),
        };
        let once = state.remember(&rule(Lasts::Once), at(0)).await.unwrap();
        state.remember(&rule(Lasts::Session("s1".into())), at(1)).await.unwrap();
        state.remember(&rule(Lasts::Always), at(2)).await.unwrap();
        state.remember(&rule(Lasts::First("mcp".into())), at(3)).await.unwrap();
        assert!(state.forget_rule(once).await.unwrap());
        assert!(!state.forget_rule(once).await.unwrap(), "one use");
        state.end_session("s1").await.unwrap();
        let left = state.remembered(Some("demo")).await.unwrap();
        assert_eq!(left.len(), 2);
        assert_eq!((&left[0].rule, left[0].created), (&rule(Lasts::Always), at(2)));
        assert_eq!(left[1].rule, rule(Lasts::First("mcp".into())));
        assert!(state.remembered(Some("other")).await.unwrap().is_empty());
    });
}

#[test]
fn grants_are_given_and_taken_back() {
    with(async |state| {
        let grant = |kind, value: &str| Grant {
            package: "demo".into(),
            kind,
            value: value.into(),
            by: "terminal".into(),
            created: at(0),
        };
        for kind in GrantKind::ALL {
            assert!(state.grant(&grant(kind, "x")).await.unwrap());
            assert!(!state.grant(&grant(kind, "x")).await.unwrap());
        }
        assert!(state.revoke("demo", GrantKind::Read, "x").await.unwrap());
        assert!(!state.revoke("demo", GrantKind::Read, "x").await.unwrap());
        let left = state.grants(Some("demo")).await.unwrap();
        assert_eq!(left.len(), GrantKind::ALL.len() - 1);
        assert!(left.contains(&grant(GrantKind::Host, "x")));
        assert!(state.grants(Some("other")).await.unwrap().is_empty());
    });
}

#[test]
fn everything_of_a_package_is_taken_back_at_once() {
    with(async |state| {
        for package in ["demo", "other"] {
            for kind in GrantKind::ALL {
                let (value, by) = ("x".into(), "terminal".into());
                let grant = Grant { package: package.into(), kind, value, by, created: at(0) };
                assert!(state.grant(&grant).await.unwrap());
            }
            let rule = Rule {
                package: package.into(),
                action: "send".into(),
                arguments: "{}".into(),
                lasts: Lasts::Always,
                by: "terminal".into(),
            };
            state.remember(&rule, at(0)).await.unwrap();
            state.note_blocked(package, GrantKind::Host, "a.example", at(0)).await.unwrap();
        }
        assert_eq!(state.revoke_all("demo").await.unwrap(), GrantKind::ALL.len() as u64);
        assert_eq!(state.revoke_all("demo").await.unwrap(), 0);
        assert!(state.grants(Some("demo")).await.unwrap().is_empty());
        assert!(state.remembered(Some("demo")).await.unwrap().is_empty());
        assert!(state.blocked("demo").await.unwrap().is_empty());
        assert_eq!(state.grants(Some("other")).await.unwrap().len(), GrantKind::ALL.len());
        assert_eq!(state.remembered(Some("other")).await.unwrap().len(), 1);
        assert_eq!(state.blocked("other").await.unwrap().len(), 1);
    });
}

#[test]
fn attempts_are_counted_and_bounded() {
    with(async |state| {
        for number in 0..300 {
            let host = format!("host-{number}.example.com:443");
            state.note_blocked("demo", GrantKind::Host, &host, at(number)).await.unwrap();
        }
        state
            .note_blocked("demo", GrantKind::Host, "host-299.example.com:443", at(301))
            .await
            .unwrap();
        state.note_blocked("other", GrantKind::Read, &"é".repeat(9_000), at(0)).await.unwrap();
        let blocked = state.blocked("demo").await.unwrap();
        assert_eq!(blocked.len(), 256);
        assert_eq!((blocked[0].count, blocked[0].last_seen), (2, at(301)));
        assert!(state.blocked("other").await.unwrap()[0].value.len() <= 1_024);
        state.forget_blocked("demo").await.unwrap();
        assert!(state.blocked("demo").await.unwrap().is_empty());
        assert_eq!(state.blocked("other").await.unwrap().len(), 1);
    });
}

#[test]
fn a_budget_is_counted_for_both_or_for_neither() {
    with(async |state| {
        let day = at(0).day();
        let calls = |calls| Budget { calls: Some(calls), cents: None };
        let cents = |cents| Budget { calls: None, cents: Some(cents) };
        let none = Budget::default();
        let reserve = async |package: &str, price, own, all| {
            state.reserve(day, package, price, own, all).await.unwrap()
        };
        assert_eq!(reserve("a", 5, calls(2), cents(10)).await, Reserved::Yes);
        assert_eq!(reserve("b", 5, none, cents(10)).await, Reserved::Yes);
        assert_eq!(reserve("b", 1, none, cents(10)).await, Reserved::NoCents(Scope::Overall));
        assert_eq!(reserve("b", 6, cents(5), none).await, Reserved::NoCents(Scope::Package));
        assert_eq!(reserve("a", 0, calls(1), none).await, Reserved::NoCalls(Scope::Package));
        let spent = async |package| state.spent(day, package).await.unwrap();
        // Only what has a limit is counted.
        assert_eq!(spent(None).await, Spent { calls: 0, cents: 10 });
        assert_eq!(spent(Some("a")).await, Spent { calls: 1, cents: 0 });
        assert_eq!(spent(Some("b")).await, Spent::default());
        assert_eq!(reserve("c", 1, none, calls(1)).await, Reserved::Yes);
        assert_eq!(reserve("c", 1, none, calls(1)).await, Reserved::NoCalls(Scope::Overall));
        assert_eq!(spent(None).await, Spent { calls: 1, cents: 10 });
        let tomorrow = at(86_400_000).day();
        assert_eq!(state.spent(tomorrow, None).await.unwrap(), Spent::default());
    });
}

#[test]
fn calls_are_paced() {
    with(async |state| {
        let rate = Rate { burst: 3, every: Duration::from_secs(1) };
        let pace = async |millis| state.pace("demo", rate, at(millis)).await.unwrap();
        for _ in 0..3 {
            assert_eq!(pace(0).await, Paced::Yes);
        }
        assert_eq!(pace(0).await, Paced::Wait(Duration::from_secs(1)));
        // Who looks takes nothing.
        let look = async |millis| state.paced("demo", rate, at(millis)).await.unwrap();
        assert_eq!(look(0).await, (0, Duration::from_secs(1)));
        assert_eq!(look(400).await, (0, Duration::from_millis(600)));
        assert_eq!(look(2_500).await, (2, Duration::ZERO));
        assert_eq!(look(60_000).await, (3, Duration::ZERO));
        assert_eq!(look(-60_000).await, (3, Duration::ZERO));
        assert_eq!(pace(400).await, Paced::Wait(Duration::from_millis(600)));
        assert_eq!(pace(1_000).await, Paced::Yes);
        assert_ne!(pace(1_000).await, Paced::Yes);
        for _ in 0..3 {
            assert_eq!(pace(60_000).await, Paced::Yes);
        }
        assert_ne!(pace(60_000).await, Paced::Yes);
        // A clock that goes back does not stop a tool for as long.
        assert_eq!(pace(-60_000).await, Paced::Yes);
    });
}

#[test]
fn a_pin_counts_until_it_is_replaced_or_forgotten() {
    with(async |state| {
        state.pin(PinKind::Token, "server", "first", at(0)).await.unwrap();
        assert_eq!(state.pinned(PinKind::Era, "server").await.unwrap(), None);
        state.pin(PinKind::Token, "server", "second", at(2)).await.unwrap();
        let now = state.pinned(PinKind::Token, "server").await.unwrap().unwrap();
        assert_eq!((now.value.as_str(), now.pinned), ("second", at(2)));
        assert!(state.unpin(PinKind::Token, "server").await.unwrap());
        assert!(!state.unpin(PinKind::Token, "server").await.unwrap());
    });
}

#[test]
fn an_implementation_is_broken_until_it_works() {
    with(async |state| {
        let (package, version) = ("mcpkg:demo.two", "1.0.0");
        for (implementation, failure, ms) in
            [("node", "", 40), ("node", "", 60), ("python", "", 10), ("python", "tool_failed", 0)]
        {
            let mut call = called(package, failure, Duration::from_millis(ms), at(0));
            Arc::make_mut(&mut call.series).version = version.into();
            Arc::make_mut(&mut call.series).implementation = implementation.into();
            state.count_calls(&[call]).await.unwrap();
        }
        let node = (package, version, "node");
        state.note_broken(node, ("it printed no JSON", false), at(1)).await.unwrap();
        state.note_broken(node, ("it could not be started", true), at(2)).await.unwrap();
        state.note_broken((package, "2.0.0", "node"), ("other", true), at(2)).await.unwrap();
        let pasts = state.pasts(package, version, at(2)).await.unwrap();
        assert_eq!(pasts.keys().collect::<Vec<_>>(), ["node", "python"]);
        assert_eq!(pasts["node"].mean_ms.map(f64::round), Some(50.0));
        assert_eq!((pasts["node"].success, pasts["python"].success), (Some(1.0), Some(0.5)));
        let broken = pasts["node"].broken.as_ref().unwrap();
        assert_eq!((broken.times, broken.is_sure, broken.at), (2, true, at(2)));
        assert_eq!(broken.why, "it could not be started");
        assert_eq!(pasts["python"].broken, None);
        state.note_whole(node).await.unwrap();
        assert_eq!(state.pasts(package, version, at(3)).await.unwrap()["node"].broken, None);
        assert!(state.pasts(package, "2.0.0", at(3)).await.unwrap()["node"].broken.is_some());
    });
}

#[test]
fn what_a_program_said_is_kept_and_the_oldest_of_too_much_is_forgotten() {
    with(async |state| {
        let said =
            |number: i64| Said { stamp: "s".into(), said: number.to_string(), at: at(number) };
        for number in 0..201 {
            state.note_said(&format!("program {number}"), &said(number)).await.unwrap();
        }
        assert_eq!(state.said("program 0").await.unwrap(), None);
        assert_eq!(state.said("program 1").await.unwrap(), Some(said(1)));
        state.note_said("program 1", &said(7)).await.unwrap();
        assert_eq!(state.said("program 1").await.unwrap(), Some(said(7)));
    });
}

#[test]
fn a_name_that_was_given_is_given_to_no_other() {
    with(async |state| {
        let named = |exposed: &str, package: &str| Named {
            exposed: exposed.into(),
            package: package.into(),
            action: "a".into(),
        };
        let [first, taken, renamed] = [named("x", "p"), named("x", "q"), named("y", "p")];
        assert!(state.keep_names(std::slice::from_ref(&first), at(0)).await.unwrap());
        for other in [taken, renamed] {
            assert!(!state.keep_names(&[other], at(1)).await.unwrap());
        }
        assert_eq!(state.names().await.unwrap(), [first]);
    });
}

#[test]
fn the_last_wishes_are_kept_and_the_same_one_once() {
    with(async |state| {
        let wish = |tool: &str, millis| Wish {
            tool: tool.into(),
            why: "w".into(),
            surface: "mcp".into(),
            client: (millis > 100).then(|| "laptop".into()),
            at: at(millis),
        };
        for number in 0..105 {
            state.wish(&wish(&format!("tool-{number}"), number)).await.unwrap();
        }
        state.wish(&wish("tool-50", 500)).await.unwrap();
        let all = state.wishes().await.unwrap();
        assert_eq!((all.len(), &all[0]), (100, &wish("tool-50", 500)));
        assert!(!all.iter().any(|one| one.tool == "tool-4"));
        assert_eq!(state.forget_wishes(Some("tool-50")).await.unwrap(), 1);
        assert_eq!(state.forget_wishes(None).await.unwrap(), 99);
    });
}

#[test]
fn any_text_can_be_kept_and_is_in_the_order_of_its_bytes() {
    with(async |state| {
        for package in ["b", "B", "a", "é", "A'; DROP TABLE grants; --"] {
            state
                .note_blocked(package, GrantKind::Read, "/with\0zero \u{1f600}", at(0))
                .await
                .unwrap();
        }
        let seen = state.packages().await.unwrap();
        assert_eq!(seen, ["A'; DROP TABLE grants; --", "B", "a", "b", "é"]);
        let value = &state.blocked("a").await.unwrap()[0].value;
        assert!(value.starts_with("/with") && value.ends_with(" \u{1f600}"), "{value:?}");
    });
}
