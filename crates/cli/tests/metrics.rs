//! Calls are measured, what got worse is found and told, and tools are ranked by it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::process::Command;
use std::time::Duration;

use common::served::Served;
use common::{Desk, repository, write_below};
use ledger::state::counting::Counted;
use ledger::state::metrics::Series;
use ledger::state::tested::Tested;
use ledger::{State, Time};
use serde_json::{Value, json};

fn example(desk: &Desk, name: &str) {
    let source = repository().join("examples/mcpkg").join(name);
    let copied = Command::new("cp").arg("-r").args([&source, &desk.path(name)]).status();
    assert!(copied.unwrap().success());
}

/// Does something to the state of the home.
fn with_state(desk: &Desk, work: impl AsyncFnOnce(&State)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        fs::create_dir_all(desk.path("home")).unwrap();
        let state = State::open(&desk.path("home").join("state.db")).await.unwrap();
        work(&state).await;
        state.close().await.unwrap();
    });
}

fn now() -> Time {
    host::records::now()
}

/// Calls of a package that take about so long.
fn calls(package: &str, version: &str, count: u64, millis: u64) -> Vec<Counted> {
    let call = |number: u64| Counted {
        series: Series {
            package: package.into(),
            version: version.into(),
            action: package.split_once(':').unwrap().1.into(),
            implementation: "python".into(),
        }
        .into(),
        failure: if number % 100 == 99 { "timed_out" } else { "" }.into(),
        latency: Duration::from_micros(millis * (800 + number * 37 % 400)),
        at: now(),
        place: None,
        flow: None,
    };
    (0..count).map(call).collect()
}

#[test]
fn calls_are_measured_shown_drawn_and_written_beside_the_package() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["install", "./echo", "--yes", "-q"]);
    assert!(desk.done(&["metrics", "demo.echo"]).stderr.contains("no call of `mcpkg:demo.echo`"));
    for _ in 0..3 {
        desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]);
    }
    desk.refused(&["call", "demo.echo", "{}"], 2, "message");
    let told = desk.done(&["metrics", "demo.echo", "--json"]).json();
    assert_eq!((&told["package"], &told["calls"]), (&json!("mcpkg:demo.echo"), &json!(3)));
    assert_eq!((&told["failed"], &told["success"]), (&json!(0), &json!(1.0)));
    assert_eq!(told["failures"], json!({"bad_input": 1}), "which is none of the tool's");
    let series = told["series"].as_array().unwrap();
    let ran = series.iter().find(|one| one["calls"] == 3).unwrap();
    assert_eq!((&ran["version"], &ran["implementation"]), (&json!("0.1.0"), &json!("python")));
    assert!(ran["p50_ms"].as_f64().unwrap() <= ran["p99_ms"].as_f64().unwrap());
    assert!(ran["mean_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(told["spans"][0]["lasts_seconds"], 3_600);
    let text = desk.done(&["metrics", "demo.echo"]).stdout;
    for words in
        ["3, 0 of them failed", "100.0 %", "p50 ", "not its own bad_input 1", "█", "IMPLEMENTATION"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let all = desk.done(&["metrics"]).stdout;
    assert!(all.contains("mcpkg:demo.echo  0.1.0"), "{all}");

    desk.done(&["metrics", "demo.echo", "--plot", "echo.svg", "-q"]);
    let drawn = fs::read_to_string(desk.path("echo.svg")).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.contains("mcpkg:demo.echo: 3 calls"), "{drawn}");
    desk.refused(&["metrics", "demo.echo", "--plot", "echo.svg"], 5, "echo.svg");
    desk.refused(&["metrics", "--plot", "echo.svg"], 2, "ID");
    desk.refused(&["metrics", "demo.ecko"], 3, "did you mean `demo.echo`?");

    for _ in 0..2 {
        desk.done(&["metrics", "demo.echo", "--write"]);
    }
    let path = desk.path("home/tools/demo.echo/metadata.json");
    let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!((&written["toolId"], &written["version"]), (&json!("demo.echo"), &json!("0.1.0")));
    assert_eq!((&written["calls"], &written["successRate"]), (&json!(3), &json!(1.0)));
    assert!(written["latencyMs"]["p95"].as_f64().unwrap() > 0.0, "{written}");
    assert_eq!(written["implementations"]["python"]["calls"], 3);
    assert_eq!(written["failures"], json!({}), "what others did wrong is no failure of it");
    // It is no change of the package, which is still called, and not a part of it when it is installed again.
    assert_eq!(desk.done(&["status", "demo.echo", "--json"]).json()["changed"], json!([]));
    desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]);
    desk.done(&["install", "./echo", "--yes", "-q"]);
    desk.done(&["remove", "demo.echo"]);
    assert!(!path.exists());
    // What was measured stays, and a package that is gone has no place to write to.
    assert_eq!(desk.done(&["metrics", "demo.echo", "--json"]).json()["calls"], 4);
    desk.refused(&["metrics", "demo.echo", "--write"], 3, "not installed");
}

#[test]
fn a_package_that_has_such_a_file_itself_keeps_it() {
    let desk = Desk::new();
    desk.echo();
    write_below(&desk.path("echo"), "metadata.json", "{}");
    desk.done(&["install", "./echo", "--yes", "-q"]);
    desk.refused(&["metrics", "demo.echo", "--write"], 5, "of its own");
    let kept = fs::read(desk.path("home/tools/demo.echo/metadata.json")).unwrap();
    assert_eq!(kept, b"{}");
}

#[test]
fn what_got_slower_is_told_by_the_call_that_shows_it_and_written_once() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["install", "./echo", "--yes", "-q"]);
    let id = "mcpkg:demo.echo";
    with_state(&desk, async |state| {
        state.count_calls(&calls(id, "0.1.0", 320, 1)).await.unwrap();
        // The next call of the series is the 368th, after which it is looked at.
        state.count_calls(&calls(id, "0.1.0", 47, 2_000)).await.unwrap();
    });
    let called = desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]);
    let words = "`mcpkg:demo.echo` is slower: a call typically takes";
    assert!(called.stderr.contains(words), "{}", called.stderr);
    let again = desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]);
    assert!(!again.stderr.contains("slower"), "it is news once: {}", again.stderr);
    let told = desk.done(&["metrics", "demo.echo"]);
    assert!(
        told.stdout.contains("worse since ") && told.stdout.contains("it still is"),
        "{}",
        told.stdout
    );
    for _ in 0..2 {
        let found = &desk.done(&["metrics", "demo.echo", "--json"]).json()["regressions"];
        assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
        assert_eq!((&found[0]["what"], &found[0]["over"]), (&json!("latency"), &Value::Null));
    }
    let all = desk.done(&["metrics"]).stdout;
    assert!(all.lines().nth(1).unwrap().ends_with("worse"), "{all}");
    let log = desk.done(&["audit", "--outcome", "slower"]).stdout;
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(
        log.contains(
            "metrics mcpkg:demo.echo 0.1.0 regression slower, slower: a call typically takes"
        ),
        "{log}"
    );
    desk.done(&["audit", "verify"]);
    let ranked = desk.done(&["rank", "echo", "--installed"]);
    assert!(ranked.stdout.contains("got worse"), "{}", ranked.stdout);
    assert!(ranked.stderr.contains("`mcpkg:demo.echo` is slower"), "{}", ranked.stderr);
}

#[test]
fn tools_are_ranked_by_what_was_measured_and_what_they_are() {
    let desk = Desk::new();
    for name in ["text-stats", "text-clean", "convert-units"] {
        example(&desk, name);
        desk.done(&["install", &format!("./{name}"), "--yes", "-q"]);
    }
    let version = |id: &str| {
        let listed = desk.done(&["list", "--json"]).json();
        let all = listed["packages"].as_array().unwrap().clone();
        let one = all.into_iter().find(|one| one["id"] == id).unwrap();
        one["version"].as_str().unwrap().to_owned()
    };
    let (stats, clean) = ("mcpkg:demo.text.stats", "mcpkg:demo.text.clean");
    with_state(&desk, async |state| {
        state.count_calls(&calls(stats, &version(stats), 50, 150)).await.unwrap();
        state.count_calls(&calls(clean, &version(clean), 200, 900)).await.unwrap();
        let tested = Tested {
            package: stats.into(),
            version: version(stats),
            total: 4,
            passed: 3,
            flaky: 0,
            latency: None,
            at: now(),
        };
        state.note_tests(&tested).await.unwrap();
    });
    let told = desk.done(&["rank", "Text", "--installed", "--json"]).json();
    let tools = told["tools"].as_array().unwrap();
    let ids: Vec<_> = tools.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [stats, clean], "units are something else");
    let values: Vec<_> =
        tools[0]["terms"].as_array().unwrap().iter().map(|term| &term["value"]).collect();
    assert_eq!((values[0], values[2]), (&json!(0.75), &Value::Null));
    assert!((values[1].as_f64().unwrap() - 0.85).abs() < 0.01, "{values:?}");
    assert_eq!(values[4], &json!(1.0));
    assert_eq!(tools[0]["unknown"], json!(["cost"]));
    let sum: f64 = tools[0]["terms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|term| term["worth"].as_f64().unwrap())
        .sum();
    assert!((sum - tools[0]["score"].as_f64().unwrap()).abs() < 1e-5);
    assert_eq!(
        desk.done(&["rank", "text", "statistics", "--installed", "--json"]).json()["total"],
        1
    );
    assert!(desk.done(&["rank", "nothing", "--installed"]).stderr.contains("nothing found"));
    desk.refused(&["rank"], 2, "CAPABILITY");
    desk.refused(&["rank", " "], 2, "empty");

    let text = desk.done(&["rank", "text", "--installed", "--explain"]).stdout;
    for words in [
        "SCORE",
        "?",
        "3 of 4 tests passed",
        " ms on the average, of those of 50 calls that went well",
        "trust local, walls L",
        "not known, so it counts 0",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The owner says what counts, and what has to be met.
    let policy = "[rank]\ncorrectness = 0\nlatency = 0\nsafety = 0\nresilience = 1\nmax_latency = \"500ms\"\n";
    fs::write(desk.path("home/policy.toml"), policy).unwrap();
    let told = desk.done(&["rank", "text", "--installed", "--json"]).json();
    assert_eq!(told["tools"][0]["score"], json!(1.0));
    assert_eq!(told["tools"][1]["id"], json!(clean));
    let unmet = told["tools"][1]["unmet"][0].as_str().unwrap();
    assert!(unmet.starts_with("latency is ") && unmet.ends_with("more than 500 ms"), "{unmet}");
    fs::write(desk.path("home/policy.toml"), "[rank]\nlatency = 7\n").unwrap();
    desk.refused(&["rank", "text", "--installed"], 2, "a number from 0 to 1");
}

#[test]
fn tools_of_registries_are_ranked_beside_those_that_are_installed() {
    let desk = Desk::new();
    for name in ["text-stats", "text-clean", "convert-units"] {
        example(&desk, name);
    }
    let served = Served::at(&desk.path("served"), &[]);
    let path = desk.path("served");
    let arguments =
        ["--home", path.to_str().unwrap(), "registry", "token", "new", "--namespace", "*", "-q"];
    let token = common::run_in(desk.0.path(), &arguments, None).stdout;
    desk.done(&["registry", "add", "team", &served.url]);
    let kept = desk.haft_with(&["registry", "login", "team"], Some(token.trim()));
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    for name in ["text-stats", "text-clean", "convert-units"] {
        desk.done(&[
            "publish",
            &format!("./{name}"),
            "--registry",
            "team",
            "--no-test",
            "--no-sign",
        ]);
    }
    desk.done(&["install", "./text-stats", "--yes", "-q"]);
    let told = desk.done(&["rank", "text", "--json"]).json();
    let places: Vec<_> = told["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one["registry"].as_str()))
        .collect();
    assert_eq!(places, [("mcpkg:demo.text.stats", None), ("demo.text.clean", Some("team"))]);
    assert_eq!(
        told["tools"][1]["unknown"],
        json!(["correctness", "latency", "cost", "resilience"])
    );
    let told = desk.done(&["rank", "text", "clean", "--json"]).json();
    assert_eq!((&told["total"], &told["tools"][0]["id"]), (&json!(1), &json!("demo.text.clean")));

    // What was measured decides among those that a search finds nearly alike.
    let order = || {
        let found = desk.done(&["search", "--tag", "example", "--json"]).json();
        let results = found["results"].as_array().unwrap().clone();
        results.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let before = order();
    let last = before.last().unwrap().clone();
    let found = desk.done(&["search", "--tag", "example", "--json"]).json();
    let version = found["results"][before.len() - 1]["version"].as_str().unwrap().to_owned();
    with_state(&desk, async |state| {
        let calls = calls(&format!("mcpkg:{last}"), &version, 50, 1);
        state.count_calls(&calls).await.unwrap();
    });
    let after = order();
    assert_ne!(before, after);
    let at = |order: &[String]| order.iter().position(|one| *one == last).unwrap();
    assert!(at(&after) < at(&before) && at(&before) - at(&after) <= 2, "{before:?} {after:?}");

    drop(served);
    let alone = desk.done(&["rank", "text", "--json"]);
    assert_eq!(alone.json()["total"], 1);
    assert!(alone.stderr.contains("team"), "{}", alone.stderr);
}
