//! Calls, counted by package, version, action and implementation, over time.

use std::time::Duration;

use ledger::Time;
use ledger::state::counting::Counted;
use ledger::state::flows::{Flow, KEPT};
use ledger::state::latency::BUCKETS;
use ledger::state::metrics::{HALF_LIFE, Series};
use ledger::state::recent::Ran;
use ledger::state::regressions::{Regression, What};
use ledger::state::tested::Tested;
use serde_json::json;

use crate::file::{BEFORE_5, raw};
use crate::{Home, at, block_on, called, with};

const HOUR: Duration = Duration::from_hours(1);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn calls_are_counted_by_series_and_only_the_failures_of_a_tool_are_held_against_it() {
    with(async |state| {
        let mut calls: Vec<_> = ["", "", "timed_out", "denied", "bad_input", "beside"]
            .into_iter()
            .zip(1..)
            .map(|(failure, n)| called("demo", failure, millis(10 * n), at(n.cast_signed())))
            .collect();
        let mut other = called("demo", "", Duration::MAX, at(9));
        std::sync::Arc::make_mut(&mut other.series).implementation = "node".into();
        calls.extend([other, called("else", "", Duration::ZERO, at(9))]);
        state.count_calls(&calls).await.unwrap();
        let metrics = state.metrics(Some("demo")).await.unwrap();
        assert_eq!(metrics.len(), 2);
        assert_eq!(metrics[0].series.implementation, "endpoint");
        assert_eq!((metrics[0].calls, metrics[0].failed), (3, 1));
        let kinds: Vec<_> = metrics[0].failures.keys().map(String::as_str).collect();
        assert_eq!(kinds, ["bad_input", "beside", "denied", "timed_out"]);
        assert_eq!((metrics[0].first_used, metrics[0].last_used), (at(1), at(6)));
        assert_eq!(metrics[0].mean, Some(millis(15)));
        let p50 = metrics[0].latencies.percentile(50).unwrap();
        assert!(p50 >= millis(10) && p50 < millis(15), "{p50:?}");
        assert!((metrics[0].success().unwrap() - 2.0 / 3.0).abs() < 1e-9);
        let [Ran::Well(one), Ran::Well(two), Ran::Failed] = metrics[0].recent[..] else {
            panic!("{:?}", metrics[0].recent)
        };
        assert!(one < two);
        assert_eq!(metrics[1].recent, [Ran::Well(BUCKETS)]);
        assert_eq!(state.metrics(None).await.unwrap().len(), 3);
        let mut all = metrics[0].clone();
        all.join(&metrics[1]);
        assert_eq!((all.calls, all.failed, all.latencies.count()), (4, 1, 3));
    });
}

#[test]
fn the_last_256_calls_are_kept_one_by_one_however_they_are_counted() {
    with(async |state| {
        let many: Vec<_> =
            (0..700).map(|n| called("demo", "", millis(1 << (n % 8)), at(n))).collect();
        for batch in many.chunks(300) {
            state.count_calls(batch).await.unwrap();
        }
        let metrics = &state.metrics(None).await.unwrap()[0];
        assert_eq!((metrics.calls, metrics.recent.len()), (700, 256));
        let last: Vec<_> = metrics.recent[248..].to_vec();
        assert_eq!(last, metrics.recent[..8], "the order is that of the calls");
        assert_ne!(last[0], last[1]);
    });
}

#[test]
fn whoever_counts_is_told_when_it_is_time_to_look() {
    with(async |state| {
        for n in 1..=40 {
            let due = state.count_calls(&[called("demo", "", millis(1), at(n))]).await.unwrap();
            assert_eq!(due.contains("demo"), n % 16 == 0, "{n}");
        }
        let refused = [called("demo", "denied", millis(1), at(50)); 1];
        for _ in 0..30 {
            assert!(state.count_calls(&refused).await.unwrap().is_empty(), "the tool had no part");
        }
    });
}

#[test]
fn hours_become_days_and_days_one_span_and_nothing_is_lost() {
    with(async |state| {
        let start = at(0);
        let day = 24 * HOUR;
        for n in 0..48 {
            let call = called("demo", "", millis(10), start.plus(n * HOUR));
            state.count_calls(&[call]).await.unwrap();
        }
        let hours = state.over_time("demo", None).await.unwrap();
        assert_eq!(hours.len(), 48);
        assert!(hours.iter().all(|span| span.lasts == HOUR && span.calls == 1));
        state
            .count_calls(&[called("demo", "tool_failed", millis(1), start.plus(20 * day))])
            .await
            .unwrap();
        let days = state.over_time("demo", Some("1")).await.unwrap();
        assert!(days.len() <= 4, "{days:?}");
        assert_eq!(days[0].lasts, day);
        assert_eq!(days.iter().map(|span| span.calls).sum::<u64>(), 49);
        assert_eq!(days.last().unwrap().success(), Some(0.0));
        state.count_calls(&[called("demo", "", millis(1), start.plus(500 * day))]).await.unwrap();
        let ever = state.over_time("demo", None).await.unwrap();
        assert_eq!(ever.len(), 2, "{ever:?}");
        assert_eq!(
            (ever[0].begins, ever[0].lasts, ever[0].calls),
            (Time::default(), Duration::ZERO, 49)
        );
        let metrics = &state.metrics(None).await.unwrap()[0];
        assert_eq!((metrics.calls, metrics.latencies.count()), (50, 49));
        assert!(state.over_time("demo", Some("2")).await.unwrap().is_empty());
    });
}

#[test]
fn a_call_stands_for_half_after_its_half_life() {
    with(async |state| {
        let now = at(0).plus(HALF_LIFE);
        state
            .count_calls(&[
                called("demo", "tool_failed", millis(5), at(0)),
                called("demo", "", millis(100), at(0)),
                called("demo", "", millis(400), now),
            ])
            .await
            .unwrap();
        let standing = &state.standings(now).await.unwrap()[0];
        assert_eq!((&*standing.package, &*standing.version, standing.calls), ("demo", "1", 3));
        assert!((standing.weight - 2.0).abs() < 1e-6, "{standing:?}");
        assert!((standing.success.unwrap() - 0.75).abs() < 1e-6, "{standing:?}");
        assert!((standing.mean_ms.unwrap() - 300.0).abs() < 1e-3, "{standing:?}");
    });
}

#[test]
fn what_was_counted_before_there_were_hours_is_kept() {
    block_on(async {
        let home = Home::new();
        home.open().await.close().await.unwrap();
        let mut connection = raw(&home).await;
        sqlx::raw_sql(BEFORE_5).execute(&mut connection).await.unwrap();
        let rows = "INSERT INTO calls VALUES \
            ('mcpkg:demo.echo@1.2.0', 'echo', '', 12, 7, 1763208000000), \
            ('mcpkg:demo.echo@1.2.0', 'echo', '', 13, 2, 1763208600000), \
            ('mcpkg:demo.echo@1.2.0', 'echo', 'timed_out', 40, 1, 1763208000000), \
            ('mcpkg:demo.echo@1.2.0', 'echo', 'denied', 0, 5, 1763208000000), \
            ('server-json:@acme/x@0.0.0+ab', 'tools/list', '', 0, 1, 1763208000000), \
            ('nothing', 'a', '', 0, 1, 5)";
        sqlx::raw_sql(rows).execute(&mut connection).await.unwrap();
        sqlx::Connection::close(connection).await.unwrap();
        let state = home.open().await;
        let metrics = state.metrics(None).await.unwrap();
        let of = |package: &str, version: &str, action: &str| Series {
            package: package.into(),
            version: version.into(),
            action: action.into(),
            implementation: String::new(),
        };
        let series: Vec<_> = metrics.iter().map(|one| one.series.clone()).collect();
        assert_eq!(
            series,
            [
                of("mcpkg:demo.echo", "1.2.0", "echo"),
                of("nothing", "", "a"),
                of("server-json:@acme/x", "0.0.0+ab", "tools/list"),
            ]
        );
        assert_eq!((metrics[0].calls, metrics[0].failed), (10, 1));
        assert_eq!(metrics[0].latencies.count(), 9);
        assert_eq!(metrics[0].failures.get("denied"), Some(&5));
        let mean = metrics[0].mean.unwrap();
        assert!(mean > millis(6) && mean < millis(9), "{mean:?}");
        let spans = state.over_time("mcpkg:demo.echo", None).await.unwrap();
        assert_eq!((spans.len(), spans[0].calls), (1, 10));
        let standings = state.standings(Time::from_unix_millis(1_763_208_000_000)).await.unwrap();
        assert!(standings[0].weight > 5.0 && standings[0].weight <= 10.0, "{standings:?}");
        assert_eq!(state.packages().await.unwrap().len(), 3);
    });
}

#[test]
fn tests_are_noted_by_version_and_the_last_ones_count() {
    with(async |state| {
        let tested = |version: &str, passed| Tested {
            package: "demo".into(),
            version: version.into(),
            total: 10,
            passed,
            flaky: 1,
            latency: (passed > 3).then(|| millis(passed) / 8),
            at: at(0),
        };
        for one in [tested("1", 3), tested("2", 4), tested("1", 9), tested("3", 2)] {
            state.note_tests(&one).await.unwrap();
        }
        let expected = [tested("1", 9), tested("2", 4), tested("3", 2)];
        assert_eq!(state.tested(None).await.unwrap(), expected);
        assert!(state.tested(Some("other")).await.unwrap().is_empty());
    });
}

#[test]
fn what_got_worse_is_news_once_until_it_is_over() {
    with(async |state| {
        let found = Regression {
            id: 0,
            series: (*called("demo", "", millis(1), at(0)).series).clone(),
            what: What::Latency,
            against: None,
            calls: 64,
            before: 10.0,
            after: 20.0,
            chance: 1e-9,
            seen: at(1),
            over: None,
            is_written: false,
        };
        assert!(state.note_regression(&found).await.unwrap());
        assert!(!state.note_regression(&found).await.unwrap());
        let other = Regression { what: What::Success, against: Some("0".into()), ..found.clone() };
        assert!(state.note_regression(&other).await.unwrap());
        let known = state.regressions(Some("demo")).await.unwrap();
        assert_eq!(known.len(), 2);
        assert_eq!(known[1], Regression { id: known[1].id, ..found.clone() });
        assert_eq!(known[0].against.as_deref(), Some("0"));
        state.note_written(known[1].id).await.unwrap();
        state.end_regression(known[1].id, at(5)).await.unwrap();
        let known = state.regressions(None).await.unwrap();
        assert_eq!((known[1].is_written, known[1].over), (true, Some(at(5))));
        for n in 0..120 {
            assert!(state.note_regression(&found).await.unwrap());
            let newest = state.regressions(None).await.unwrap()[0].id;
            state.end_regression(newest, at(10 + n)).await.unwrap();
        }
        assert_eq!(state.regressions(None).await.unwrap().len(), 100, "the last ones are kept");
    });
}

#[test]
fn what_went_in_and_came_out_is_kept_of_the_last_calls_and_never_as_it_was() {
    with(async |state| {
        let key = state.flow_key().await.unwrap();
        let (input, output) =
            (json!({"path": "/home/ann/report.pdf"}), json!({"text": "a long text"}));
        let flow = |began: i64| Flow {
            package: "demo".into(),
            version: "1".into(),
            action: "a".into(),
            began: at(began),
            ended: at(began + 5),
            inputs: key.inputs(&input),
            outputs: key.outputs(&output),
        };
        let call = |began: i64| Counted {
            flow: Some(flow(began).into()),
            ..called("demo", "", Duration::ZERO, at(began))
        };
        state
            .count_calls(&[call(20), call(10), called("demo", "", Duration::ZERO, at(9))])
            .await
            .unwrap();
        assert_eq!(state.flows().await.unwrap(), [flow(10), flow(20)]);
        // The key is the same for everybody who comes later.
        assert_eq!(state.flow_key().await.unwrap().inputs(&input), key.inputs(&input));
        let many: Vec<_> = (0..KEPT + 10).map(call).collect();
        state.count_calls(&many).await.unwrap();
        let kept = state.flows().await.unwrap();
        assert_eq!(i64::try_from(kept.len()).unwrap(), KEPT);
        assert_eq!(kept[0], flow(10));
        assert_eq!(state.forget_flows(Some("other")).await.unwrap(), 0);
        assert_eq!(state.forget_flows(None).await.unwrap().cast_signed(), KEPT);
    });
}
