//! What a Node tool says before it is called, and in what order things are asked.

mod kit;

use host::{Kind, Warmth};
use kit::{call_of, error, host, node_tool, result};
use policy::Answer;
use serde_json::json;

#[tokio::test]
async fn a_tool_may_want_its_owner_asked_about_some_inputs() {
    let folder = node_tool(
        "{ requiresApproval: ({ amount }) => amount > 10, getApprovalMessage: ({ amount }) => `spend ${amount}`, async execute({ amount }) { return amount; } }",
    );
    let (host, tool) = (host().await, folder.tool("tool.json"));
    assert_eq!(result(&host, &tool, json!({"amount": 3})).await, json!(3));
    let asked = error(&host, &tool, json!({"amount": 30})).await;
    assert_eq!(asked.details["message"], "spend 30");
    let Kind::NeedsApproval(question) = asked.kind else { panic!("{asked}") };
    let mut call = call_of(&tool, &json!({"amount": 30}));
    call.answer = Some(Answer::Approved { digest: question.digest.clone() });
    let reply = host.call(&tool, &call, Warmth::Warm).await.reply;
    assert_eq!(reply.unwrap().output.into_value(), json!(30));
    // The answer is for these arguments.
    call.input = json!({"amount": 31}).to_string();
    let reply = host.call(&tool, &call, Warmth::Warm).await.reply;
    assert_eq!(reply.unwrap_err().kind, Kind::Denied);
}

#[tokio::test]
async fn a_hook_that_throws_means_that_the_owner_is_asked() {
    let folder = node_tool(
        "{ requiresApproval() { throw new Error('x'); }, async execute() { return 1; } }",
    );
    let asked = error(&host().await, &folder.tool("tool.json"), json!({})).await;
    assert!(matches!(asked.kind, Kind::NeedsApproval(_)), "{asked}");
}

#[tokio::test]
async fn a_tool_cannot_talk_its_manifest_down() {
    let folder = node_tool("{ requiresApproval: false, async execute() { return 1; } }");
    let mut tool = folder.tool("tool.json");
    tool.package.actions[0].requires_approval = Some(true);
    let asked = error(&host().await, &tool, json!({})).await;
    assert!(matches!(asked.kind, Kind::NeedsApproval(_)), "{asked}");
}

#[tokio::test]
async fn approval_comes_before_secrets_and_secrets_before_the_tool() {
    let folder = node_tool(
        "{ requiresApproval: true, requiredSecrets: () => ['token'], async execute() { return 1; } }",
    );
    let (host, tool) = (host().await, folder.tool("tool.json"));
    let asked = error(&host, &tool, json!({})).await;
    let Kind::NeedsApproval(question) = asked.kind else { panic!("{asked}") };
    let mut call = call_of(&tool, &json!({}));
    call.answer = Some(Answer::Approved { digest: question.digest.clone() });
    let reply = host.call(&tool, &call, Warmth::Warm).await.reply;
    let missing = reply.unwrap_err();
    assert_eq!(missing.kind, Kind::MissingInput);
    assert_eq!(missing.message, "Missing required secret: token");
}

#[tokio::test]
async fn a_refusal_starts_nothing() {
    let folder = node_tool(
        "{ requiresApproval() { throw new Error('it ran'); }, async execute() { return 1; } }",
    );
    let host = kit::host_with("[package.\"tool:demo.node\"]\nallow = false").await;
    let denied = error(&host, &folder.tool("tool.json"), json!({})).await;
    assert_eq!((denied.kind, &*denied.message), (Kind::Denied, "your policy refuses this package"));
}
