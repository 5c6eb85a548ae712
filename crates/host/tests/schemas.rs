//! Schemas that take long: they are cut off by a clock, and nobody else waits for them.
#![cfg(unix)]

mod kit;

use std::time::{Duration, Instant};

use host::{Kind, Tool};
use kit::{Folder, error, host, result};
use serde_json::{Value, json};

/// A command that answers with its input, which must be like this.
fn echo(schema: &Value) -> (Folder, Tool) {
    let manifest = json!({ "tools": [
        { "name": "echo", "command": ["./tools/bin/echo"], "schema": schema },
    ] });
    let folder = Folder::with(&[
        ("tools.json", &manifest.to_string()),
        ("tools/bin/echo", "#!/bin/sh\nexec cat\n"),
    ]);
    let tool = folder.tool("tools.json");
    (folder, tool)
}

/// Each of these goes back and forth some ten thousand times before it fits.
fn slow() -> Value {
    json!({ "type": "object", "properties": {
        "names": { "type": "array", "items": { "type": "string", "pattern": "^(?!(?:(a)\\1?)+c)a+$" } },
    } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pattern_that_would_run_away_is_cut_off_and_holds_nobody_up() {
    let (host, (_slow, tool)) = (host().await, echo(&slow()));
    let (_quick, other) = echo(&json!({ "type": "object" }));
    let mut names = vec!["a".repeat(20); 5_000];
    // With something that does not fit it cannot be told quickly.
    names.push("b".to_owned());
    let began = Instant::now();
    let slow = {
        let (host, tool) = (host.clone(), tool.clone());
        tokio::spawn(async move { error(&host, &tool, json!({ "names": names })).await })
    };
    for _ in 0..5 {
        let once = Instant::now();
        result(&host, &other, json!({})).await;
        assert!(once.elapsed() < Duration::from_secs(2), "another tool's call waited");
    }
    let refused = slow.await.unwrap();
    assert_eq!(refused.kind, Kind::BadInput, "{refused}");
    assert!(refused.message.ends_with("takes too long"), "{refused}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn the_same_schema_judges_what_it_can() {
    let (host, (_folder, tool)) = (host().await, echo(&slow()));
    let fits = json!({ "names": ["aaa", "a"] });
    assert_eq!(result(&host, &tool, fits.clone()).await, fits);
    let refused = error(&host, &tool, json!({ "names": ["aaa", "b"] })).await;
    assert_eq!(refused.details["errors"][0]["pointer"], "/names/1", "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counting_what_it_takes_takes_no_time_either() {
    let host = host().await;
    let properties: serde_json::Map<_, _> =
        (0..1_900).map(|index| (format!("p{index}"), json!({ "type": "string" }))).collect();
    let items = json!({ "type": "object", "properties": properties });
    let list = json!({ "type": "array", "items": items });
    let wide = json!({ "type": "object", "properties": { "list": list } });
    let text = json!({ "type": "string", "pattern": "[01]*1[01]{400}2" });
    let patterned = json!({ "type": "object", "properties": { "text": text } });
    for (schema, input) in [
        (wide, json!({ "list": vec![json!({}); 20_000] })),
        (patterned, json!({ "text": "01".repeat(500_000) })),
    ] {
        let (_folder, tool) = echo(&schema);
        let began = Instant::now();
        let (reply, _) = kit::call(&host, &tool, &input, host::Warmth::Warm).await;
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        assert_eq!(reply.unwrap_err().kind, Kind::BadInput);
    }
}

#[tokio::test]
async fn a_value_is_held_against_a_pattern_that_would_run_away_for_a_while_only() {
    use manifest::model::Input;
    let _judge = host().await;
    let pattern = "^(?!(?:(a)\\1?)+c)a+$".to_owned();
    let input = Input { validation_regex: Some(pattern), ..Input::secret("NAME") };
    assert_eq!(host::secrets::misfit(&input, "aaa"), None);
    let began = Instant::now();
    let wrong = host::secrets::misfit(&input, &"a".repeat(60_000)).unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "{wrong}");
}
