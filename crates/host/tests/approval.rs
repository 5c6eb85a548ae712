//! What a Node tool says before it is called, and in what order things are asked.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

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
    assert_eq!(reply.unwrap().into_value(), json!(30));
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

/// A call of an agent, in a session of its own.
fn by_agent(tool: &host::Tool, session: &str, input: &serde_json::Value) -> host::Call {
    let (name, session) = ("mcp".to_owned(), session.to_owned());
    host::Call { surface: policy::Surface::Agent { name, session }, ..call_of(tool, input) }
}

/// The error of a call, and the ticket it names.
async fn ticket_of(
    host: &host::Host,
    tool: &host::Tool,
    call: &host::Call,
) -> ledger::state::approvals::TicketId {
    let error = host.call(tool, call, Warmth::Warm).await.reply.unwrap_err();
    assert!(matches!(error.kind, Kind::NeedsApproval(_)), "{error}");
    let name = error.details["ticket"].as_str().unwrap_or_else(|| panic!("{}", error.details));
    ledger::state::approvals::TicketId::parse(name).unwrap()
}

#[tokio::test]
async fn an_agent_asks_once_for_an_action_that_does_not_say_what_it_changes() {
    let folder = node_tool("{ async execute({ n }) { return n; } }");
    let (host, tool) = (host().await, folder.tool("tool.json"));
    let mut call = by_agent(&tool, "one", &json!({"n": 1}));
    let ticket = ticket_of(&host, &tool, &call).await;
    assert_eq!(ticket_of(&host, &tool, &call).await, ticket, "the same question is not left twice");
    let state = &host.records().state;
    let now = host::records::now();
    let waiting = state.waiting(now).await.unwrap();
    assert_eq!(waiting.len(), 1);
    let shown: serde_json::Value = serde_json::from_str(&waiting[0].shown.text).unwrap();
    assert_eq!((&shown["input"], &*waiting[0].shown.session), (&json!({"n": 1}), "one"));
    call.ticket = Some(ticket.clone());
    assert_eq!(ticket_of(&host, &tool, &call).await, ticket, "nobody has answered yet");
    assert!(state.answer(&ticket, ledger::state::approvals::Answer::Approved, now).await.unwrap());
    let reply = host.call(&tool, &call, Warmth::Warm).await.reply.unwrap();
    assert_eq!(reply.into_value(), json!(1));
    // From here on nobody is asked on this surface, whatever the arguments and the session.
    let another = by_agent(&tool, "two", &json!({"n": 2}));
    let reply = host.call(&tool, &another, Warmth::Warm).await.reply.unwrap();
    assert_eq!(reply.into_value(), json!(2));
}

#[tokio::test]
async fn a_ticket_is_for_one_call_and_one_use() {
    use ledger::state::approvals::Answer as Word;
    let folder = node_tool("{ requiresApproval: true, async execute({ n }) { return n; } }");
    let (host, tool) = (host().await, folder.tool("tool.json"));
    let state = &host.records().state;
    let message = |error: host::CallError| (error.kind, error.message);
    let call = by_agent(&tool, "one", &json!({"n": 1}));
    let ticket = ticket_of(&host, &tool, &call).await;
    assert!(state.answer(&ticket, Word::Approved, host::records::now()).await.unwrap());
    let call = host::Call { ticket: Some(ticket), ..call };
    let other = host::Call { input: json!({"n": 2}).to_string(), ..call.clone() };
    let refused = host.call(&tool, &other, Warmth::Warm).await.reply.unwrap_err();
    assert_eq!(message(refused), (Kind::Denied, "this approval is for another call".into()));
    host.call(&tool, &call, Warmth::Warm).await.reply.unwrap();
    let refused = host.call(&tool, &call, Warmth::Warm).await.reply.unwrap_err();
    assert_eq!(message(refused), (Kind::Denied, "this approval was used already".into()));
    let call = by_agent(&tool, "one", &json!({"n": 3}));
    let ticket = ticket_of(&host, &tool, &call).await;
    assert!(state.answer(&ticket, Word::Refused, host::records::now()).await.unwrap());
    let call = host::Call { ticket: Some(ticket), ..call };
    assert_eq!(host.call(&tool, &call, Warmth::Warm).await.reply.unwrap_err().kind, Kind::Denied);
}

#[tokio::test]
async fn an_approval_that_ran_out_counts_for_nothing() {
    let folder = node_tool("{ requiresApproval: true, async execute({ n }) { return n; } }");
    let host = kit::host_with("[approval]\nexpires = \"1s\"").await;
    let tool = folder.tool("tool.json");
    let call = by_agent(&tool, "one", &json!({"n": 1}));
    let ticket = ticket_of(&host, &tool, &call).await;
    let state = &host.records().state;
    let yes = ledger::state::approvals::Answer::Approved;
    assert!(state.answer(&ticket, yes, host::records::now()).await.unwrap());
    tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    let call = host::Call { ticket: Some(ticket), ..call };
    let refused = host.call(&tool, &call, Warmth::Warm).await.reply.unwrap_err();
    assert_eq!(&*refused.message, "this approval ran out before it was used");
}

#[tokio::test]
async fn what_was_allowed_for_a_session_counts_for_no_other() {
    use ledger::state::rules::{Lasts, Rule};
    let folder = node_tool("{ requiresApproval: true, async execute({ n }) { return n; } }");
    let (host, tool) = (host().await, folder.tool("tool.json"));
    let rule = Rule {
        package: tool.package.canonical_id(),
        action: tool.package.actions[0].name.clone(),
        arguments: "{}".into(),
        lasts: Lasts::Session("one".into()),
        by: "test".into(),
    };
    host.records().state.remember(&rule, host::records::now()).await.unwrap();
    let call = by_agent(&tool, "one", &json!({"n": 7}));
    host.call(&tool, &call, Warmth::Warm).await.reply.unwrap();
    ticket_of(&host, &tool, &by_agent(&tool, "two", &json!({"n": 7}))).await;
    host.records().state.end_session("one").await.unwrap();
    ticket_of(&host, &tool, &call).await;
}

#[tokio::test]
async fn an_agent_cannot_bury_its_owner_in_questions() {
    let folder = node_tool("{ requiresApproval: true, async execute({ n }) { return n; } }");
    let (host, tool) = (host().await, folder.tool("tool.json"));
    for n in 0..100 {
        ticket_of(&host, &tool, &by_agent(&tool, "one", &json!({"n": n}))).await;
    }
    let call = by_agent(&tool, "one", &json!({"n": 100}));
    let refused = host.call(&tool, &call, Warmth::Warm).await.reply.unwrap_err();
    assert_eq!(&*refused.message, "100 questions already wait for the owner");
}

#[tokio::test]
async fn a_shared_secret_is_given_only_where_the_manifest_names_it() {
    use vault::{FileVault, Owner, Place, Secret};
    let folder = node_tool(
        "{ requiredSecrets: ({ name }) => [name], async execute({ name }, { env }) { return env[name]?.length ?? null; } }",
    );
    let home = kit::home();
    let vault = FileVault::open(home.path().join("vault"), || None).unwrap();
    let mut tool = folder.tool("tool.json");
    let id = tool.package.canonical_id();
    for (owner, name) in [(Owner::Shared, "bank.key"), (Owner::Package(id), "own")] {
        let value = Secret::new("s3cret-value".to_owned()).unwrap();
        vault.set(&Place::new(owner, name).unwrap(), &value).unwrap();
    }
    let host = kit::host_in(home.path(), "").await;
    assert_eq!(result(&host, &tool, json!({"name": "own"})).await, json!(12));
    let refused = error(&host, &tool, json!({"name": "bank.key"})).await;
    assert_eq!(refused.kind, Kind::Denied, "{refused}");
    assert!(refused.message.contains("`bank.key` is shared between tools"), "{refused}");
    tool.package.inputs.push(manifest::model::Input::secret("bank.key"));
    assert_eq!(result(&host, &tool, json!({"name": "bank.key"})).await, json!(12));
}
