//! Answers of pure steps that are found again.

use host::{Call, Warmth};
use manifest::model::SideEffects;
use policy::{Grant, GrantKind, Surface};
use serde_json::json;

use crate::kit::{Folder, call_of, home, host_in, host_searching, result};
use crate::support::{Chain, Tools, logged};

/// A tool that counts how often it was called, as an installed one that says it is pure.
fn counting() -> Tools {
    let mut tools = Tools::default();
    tools.add(
        "a.count",
        "calls = []\ndef run(given):\n    calls.append(1)\n    return len(calls)\n",
    );
    tools.change("a.count", |tool| {
        tool.digest = Some("digest of all files".to_owned());
        tool.package.actions[0].side_effects = Some(SideEffects::None);
        tool.package.actions[0].idempotent = Some(true);
    });
    tools
}

fn chain(tools: &Tools) -> Chain {
    tools.chain(&json!([{"step": "count", "tool": "a.count", "inputMapping": {"n": "$.input.n"}}]))
}

#[tokio::test]
async fn a_pure_step_is_made_once_for_each_input_and_each_package() {
    let (home, mut tools) = (home(), counting());
    let host = host_in(home.path(), "").await;
    let first = chain(&tools);
    assert_eq!(result(&host, &first.tool, json!({"n": 1})).await, json!(1));
    assert_eq!(result(&host, &first.tool, json!({"n": 1})).await, json!(1));
    assert_eq!(result(&host, &first.tool, json!({"n": 2})).await, json!(2));
    // It is written down, and says that nothing ran.
    let cached: Vec<_> =
        logged(home.path()).into_iter().filter(|one| one.cached == Some(true)).collect();
    assert_eq!(cached.len(), 1);
    assert_eq!((cached[0].step.as_str(), cached[0].attempts), ("count", Some(0)));
    assert_eq!(cached[0].decision.as_deref(), Some("allowed"));
    // Another host finds it, and whoever wants none has none.
    let other = host_in(home.path(), "").await;
    assert_eq!(result(&other, &first.tool, json!({"n": 2})).await, json!(2));
    let host = host.without_cache();
    assert_eq!(result(&host, &first.tool, json!({"n": 1})).await, json!(3));
    tools.change("a.count", |tool| tool.digest = Some("another file".to_owned()));
    assert_eq!(result(&other, &chain(&tools).tool, json!({"n": 2})).await, json!(1));
}

#[tokio::test]
async fn another_interpreter_makes_another_step() {
    let interpreter = |words: &str| format!("#!/bin/sh\n# {words}\nexec /usr/bin/python3 \"$@\"\n");
    let programs = Folder::with(&[("tools/bin/python3", &interpreter("old"))]);
    let folder = programs.path().join("tools/bin");
    let host = host_searching(&[&folder]).await;
    let (tools, input) = (counting(), json!({"n": 1}));
    let chain = chain(&tools);
    for _ in 0..2 {
        assert_eq!(result(&host, &chain.tool, input.clone()).await, json!(1));
    }
    std::fs::write(folder.join("python3"), interpreter("a newer one")).unwrap();
    assert_eq!(result(&host, &chain.tool, input.clone()).await, json!(2));
}

#[tokio::test]
async fn what_may_depend_on_more_than_its_input_is_made_each_time() {
    let changes: [fn(&mut host::Tool); 6] = [
        |tool| tool.digest = None,
        |tool| tool.package.actions[0].side_effects = None,
        |tool| tool.package.actions[0].side_effects = Some(SideEffects::Read),
        |tool| tool.package.actions[0].idempotent = None,
        |tool| {
            tool.package.inputs.push(manifest::model::Input {
                required: false,
                ..manifest::model::Input::secret("KEY")
            });
        },
        |tool| {
            tool.package.permissions.filesystem = Some("read".to_owned());
            tool.given.grants.push(Grant { kind: GrantKind::Read, value: "/usr/share".to_owned() });
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (home, mut tools) = (home(), counting());
        tools.change("a.count", change);
        let host = host_in(home.path(), "").await;
        let chain = chain(&tools);
        assert_eq!(result(&host, &chain.tool, json!({"n": 1})).await, json!(1), "{number}");
        assert_eq!(result(&host, &chain.tool, json!({"n": 1})).await, json!(2), "{number}");
        assert!(!home.path().join("cache/steps").exists(), "{number}");
    }
}

#[tokio::test]
async fn a_test_and_a_cold_call_and_a_policy_that_keeps_nothing_find_nothing() {
    let tools = counting();
    let chain = chain(&tools);
    let home = home();
    let host = host_in(home.path(), "[chains]\ncache = \"none\"\n").await;
    for count in 1..=2 {
        assert_eq!(result(&host, &chain.tool, json!({"n": 1})).await, json!(count));
    }
    let host = host_in(home.path(), "").await;
    for _ in 0..2 {
        let call = Call { surface: Surface::Test, ..call_of(&chain.tool, &json!({"n": 1})) };
        host.call(&chain.tool, &call, Warmth::Warm).await.reply.unwrap();
        let call = call_of(&chain.tool, &json!({"n": 1}));
        host.call(&chain.tool, &call, Warmth::Cold).await.reply.unwrap();
    }
    assert!(!home.path().join("cache/steps").exists());
}

#[tokio::test]
async fn an_answer_from_before_is_refused_like_any_call_where_policy_says_so() {
    let (home, tools) = (home(), counting());
    let chain = chain(&tools);
    result(&host_in(home.path(), "").await, &chain.tool, json!({"n": 1})).await;
    let host = host_in(home.path(), "[package.\"capability:a.count\"]\nallow = false\n").await;
    let refused = crate::kit::error(&host, &chain.tool, json!({"n": 1})).await;
    assert_eq!(refused.kind, host::Kind::Denied, "{refused}");
}
