//! What a Node tool says before it is called, and in what order things are asked.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use host::{Approver, CallError, Kind, Matter, Said, Warmth};
use kit::{call_of, error, host, node_tool, result};
use ledger::audit;
use manifest::model::SideEffects;
use serde_json::{Value, json};

#[tokio::test]
async fn a_tool_may_want_its_owner_asked_about_some_inputs() {
    let folder = node_tool(
        "{ requiresApproval: ({ amount }) => amount > 10, getApprovalMessage: ({ amount }) => `spend ${amount}`, async execute({ amount }) { return amount; } }",
    );
    let (host, tool) = (host().await, folder.tool("tool.json"));
    assert_eq!(result(&host, &tool, json!({"amount": 3})).await, json!(3));
    let asked = error(&host, &tool, json!({"amount": 30})).await;
    assert_eq!(asked.details["message"], "spend 30");
    assert!(matches!(asked.kind, Kind::NeedsApproval(_)), "{asked}");
    let (owner, call) = asking(&tool, &json!({"amount": 30}), Some(Said::Once));
    let reply = host.call(&tool, &call, Warmth::Warm).await.reply;
    assert_eq!(reply.unwrap().into_value(), json!(30));
    let matter = owner.matters().remove(0);
    assert_eq!(matter.message.as_deref(), Some("spend 30"));
    assert_eq!(matter.input, r#"{"amount":30}"#);
    // The answer was for this one call, and nobody there is no yes.
    let (owner, call) = asking(&tool, &json!({"amount": 30}), None);
    let reply = host.call(&tool, &call, Warmth::Warm).await.reply;
    assert!(matches!(reply.unwrap_err().kind, Kind::NeedsApproval(_)));
    assert_eq!(owner.matters().len(), 1);
    let (_, call) = asking(&tool, &json!({"amount": 30}), Some(Said::No));
    let reply = host.call(&tool, &call, Warmth::Warm).await.reply;
    assert_eq!(reply.unwrap_err().kind, Kind::Denied);
}

/// Says the same to every question, and keeps what it was asked.
#[derive(Debug)]
struct Owner(Option<Said>, Mutex<Vec<Matter>>);

impl Owner {
    fn matters(&self) -> Vec<Matter> {
        self.1.lock().unwrap().clone()
    }
}

impl Approver for Owner {
    fn ask(&self, matter: &Matter) -> Result<Option<Said>, CallError> {
        self.1.lock().unwrap().push(matter.clone());
        Ok(self.0)
    }

    fn is_there(&self) -> bool {
        self.0.is_some()
    }
}

/// A call from the terminal of an owner who says this.
fn asking(tool: &host::Tool, input: &Value, says: Option<Said>) -> (Arc<Owner>, host::Call) {
    let owner = Arc::new(Owner(says, Mutex::default()));
    let approver: Arc<dyn Approver> = Arc::<Owner>::clone(&owner);
    (owner, host::Call { approver: Some(approver), ..call_of(tool, input) })
}

/// What the log of a home says, the first record first.
fn logged(home: &Path) -> Vec<audit::Record> {
    let folder = home.join("audit");
    let page = audit::page(&folder, &audit::Filter::default(), None, 1_000);
    let mut records = page.unwrap().records;
    records.reverse();
    records
}

#[tokio::test]
async fn a_hook_that_throws_means_that_the_owner_is_asked() {
    let folder = node_tool(
        "{ requiresApproval() { throw new Error('x\\ny'); }, async execute() { return 1; } }",
    );
    let asked = error(&host().await, &folder.tool("tool.json"), json!({})).await;
    assert!(matches!(asked.kind, Kind::NeedsApproval(_)), "{asked}");
    let words = "the owner has to be asked, because its `requiresApproval` failed: \"x\\ny\"";
    assert_eq!((asked.message.as_str(), asked.details.get("message")), (words, None));
}

#[tokio::test]
async fn what_a_hook_says_has_to_be_what_was_asked() {
    let host = host().await;
    for said in ["'no'", "0", "{}"] {
        let text = format!("{{ requiresApproval: () => ({said}), execute: () => 1 }}");
        let asked = error(&host, &node_tool(&text).tool("tool.json"), json!({})).await;
        assert!(matches!(asked.kind, Kind::NeedsApproval(_)), "{asked}");
        let words = "its `requiresApproval` failed: \"it said neither true nor false\"";
        assert_eq!(asked.message, format!("the owner has to be asked, because {words}"));
    }
    for said in ["'token'", "[1]", "{ token: true }"] {
        let text = format!("{{ requiredSecrets: () => ({said}), execute: () => 1 }}");
        let failed = error(&host, &node_tool(&text).tool("tool.json"), json!({})).await;
        let words = "`requiredSecrets` of the tool is no list of names";
        assert!(failed.message.contains(words), "{failed}");
    }
    let unsaid =
        node_tool("{ requiresApproval: () => null, requiredSecrets: null, execute: () => 1 }");
    assert_eq!(result(&host, &unsaid.tool("tool.json"), json!({})).await, json!(1));
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
    assert!(matches!(asked.kind, Kind::NeedsApproval(_)), "{asked}");
    let (_, call) = asking(&tool, &json!({}), Some(Said::Once));
    let reply = host.call(&tool, &call, Warmth::Warm).await.reply;
    let missing = reply.unwrap_err();
    assert_eq!(missing.kind, Kind::MissingInput);
    assert_eq!(missing.message, "Missing required secret: token");
}

#[tokio::test]
async fn what_the_owner_is_asked_is_made_up_without_secrets() {
    let folder = node_tool(
        "{ requiresApproval: ({ ask }) => ask, requiredSecrets: () => ['token'],
           getApprovalMessage: () => `I know ${globalThis.known}`,
           async execute(_, context) { globalThis.known = (context?.env ?? context).token; return globalThis.known.length; } }",
    );
    let tool = folder.tool("tool.json");
    let home = kit::home();
    let vault = vault::FileVault::open(home.path().join("vault"), || None).unwrap();
    let owner = vault::Owner::Package(tool.package.canonical_id());
    let secret = vault::Secret::new("s3cret-of-somebody".to_owned()).unwrap();
    vault.set(&vault::Place::new(owner, "token").unwrap(), &secret).unwrap();
    let host = kit::host_in(home.path(), "").await;
    assert_eq!(result(&host, &tool, json!({ "ask": false })).await, json!(18));
    let asked = error(&host, &tool, json!({ "ask": true })).await;
    assert_eq!(asked.details["message"], "I know undefined", "{asked:?}");
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
fn by_agent(tool: &host::Tool, session: &str, input: &Value) -> host::Call {
    let (name, session) = ("mcp".to_owned(), session.to_owned());
    let who = policy::Who::default();
    host::Call { surface: policy::Surface::Agent { name, session, who }, ..call_of(tool, input) }
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
    let room = "there is room when some are answered, or have run out";
    let refused = async |session: &str| {
        let call = by_agent(&tool, session, &json!({"n": 100}));
        let refused = host.call(&tool, &call, Warmth::Warm).await.reply.unwrap_err();
        assert!(refused.passes_after.is_some(), "{refused:?}");
        refused.message
    };
    for n in 0..40 {
        ticket_of(&host, &tool, &by_agent(&tool, "one", &json!({"n": n}))).await;
    }
    let told = refused("one").await;
    assert_eq!(
        &*told,
        format!("40 questions already wait for the owner, 40 of them yours; {room}")
    );
    // Others still may, until there are too many in all.
    for n in 0..60 {
        let session = format!("other {}", n % 3);
        ticket_of(&host, &tool, &by_agent(&tool, &session, &json!({"n": n}))).await;
    }
    let told = refused("another").await;
    assert_eq!(
        &*told,
        format!("100 questions already wait for the owner, 0 of them yours; {room}")
    );
}

#[tokio::test]
async fn an_approved_call_is_one_call_in_the_log() {
    let folder = node_tool("{ requiresApproval: true, async execute() { return 1; } }");
    let home = kit::home().keep();
    let (host, tool) = (kit::host_in(&home, "").await, folder.tool("tool.json"));
    let (_, call) = asking(&tool, &json!({}), Some(Said::Once));
    host.call(&tool, &call, Warmth::Warm).await.reply.unwrap();
    let records = logged(&home);
    let kinds: Vec<_> = records.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [audit::Kind::Begin, audit::Kind::End]);
    // It began with the hooks, which are code of the tool; the end tells the whole call.
    let [begin, end] = &records[..] else { panic!("{records:?}") };
    assert_eq!((begin.decision.as_deref(), end.decision.as_deref()), (None, Some("allowed")));
    assert!(begin.argv.is_empty() && !end.argv.is_empty(), "{records:?}");
}

#[tokio::test]
async fn what_is_always_allowed_are_these_arguments_and_no_others() {
    let folder = node_tool("{ requiresApproval: true, async execute() { return 1; } }");
    let (host, tool) = (host().await, folder.tool("tool.json"));
    for (input, says, is_asked) in [
        (json!({}), Some(Said::Always), true),
        (json!({}), None, false),
        (json!({"force": true}), None, true),
        (json!({"path": "x"}), Some(Said::Always), true),
        (json!({"path": "x"}), None, false),
        (json!({"path": "x", "force": true}), None, true),
        (json!({"path": "*"}), Some(Said::Always), true),
        (json!({"path": "y"}), None, true),
    ] {
        let (owner, call) = asking(&tool, &input, says);
        let reply = host.call(&tool, &call, Warmth::Warm).await.reply;
        assert_eq!(!owner.matters().is_empty(), is_asked, "{input}");
        assert_eq!(reply.is_ok(), says.is_some() || !is_asked, "{input}");
    }
}

#[tokio::test]
async fn a_first_call_is_allowed_where_it_was_asked_about_and_nowhere_else() {
    let folder = node_tool("{ async execute({ n }) { return n; } }");
    let (host, tool) = (host().await, folder.tool("tool.json"));
    let state = &host.records().state;
    let call = by_agent(&tool, "one", &json!({"n": 1}));
    let ticket = ticket_of(&host, &tool, &call).await;
    let yes = ledger::state::approvals::Answer::Approved;
    assert!(state.answer(&ticket, yes, host::records::now()).await.unwrap());
    let call = host::Call { ticket: Some(ticket), ..call };
    host.call(&tool, &call, Warmth::Warm).await.reply.unwrap();
    let surface = policy::Surface::Agent {
        name: "http".into(),
        session: "one".into(),
        who: policy::Who::default(),
    };
    let elsewhere = host::Call { surface, ticket: None, ..call.clone() };
    ticket_of(&host, &tool, &elsewhere).await;
    // Neither does it stand for a yes where one is wanted each time.
    let mut destructive = tool.clone();
    destructive.package.actions[0].side_effects = Some(SideEffects::Destructive);
    for call in [host::Call { ticket: None, ..call }, call_of(&destructive, &json!({"n": 1}))] {
        let reply = host.call(&destructive, &call, Warmth::Warm).await.reply;
        assert!(matches!(reply.unwrap_err().kind, Kind::NeedsApproval(_)));
    }
}

#[tokio::test]
async fn a_rule_that_asks_the_first_time_asks_once_at_each_surface() {
    let folder = node_tool("{ async execute({ n }) { return n; } }");
    let host = kit::host_with("[approval]\nnone = \"first\"").await;
    let mut tool = folder.tool("tool.json");
    tool.package.actions[0].side_effects = Some(SideEffects::None);
    let (owner, call) = asking(&tool, &json!({"n": 1}), Some(Said::Always));
    host.call(&tool, &call, Warmth::Warm).await.reply.unwrap();
    assert!(owner.matters()[0].question.is_first);
    assert_eq!(result(&host, &tool, json!({"n": 2})).await, json!(2));
    let call = by_agent(&tool, "one", &json!({"n": 1}));
    let ticket = ticket_of(&host, &tool, &call).await;
    let yes = ledger::state::approvals::Answer::Approved;
    let state = &host.records().state;
    assert!(state.answer(&ticket, yes, host::records::now()).await.unwrap());
    let call = host::Call { ticket: Some(ticket), ..call };
    host.call(&tool, &call, Warmth::Warm).await.reply.unwrap();
    let again = by_agent(&tool, "two", &json!({"n": 3}));
    host.call(&tool, &again, Warmth::Warm).await.reply.unwrap();
}

#[tokio::test]
async fn a_hook_has_the_time_of_its_call_and_ends_with_it() {
    let folder = node_tool(
        "{ requiresApproval() { return new Promise(() => setInterval(() => {}, 1000)); }, async execute() { return 1; } }",
    );
    let host = kit::host_with("[sandbox]\nmax_timeout = \"1s\"").await;
    let tool = folder.tool("tool.json");
    let began = Instant::now();
    assert_eq!(error(&host, &tool, json!({})).await.kind, Kind::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let host = kit::host().await;
    let call = call_of(&tool, &json!({}));
    let off = call.called_off.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        off.cancel();
    });
    let began = Instant::now();
    let reply = host.call(&tool, &call, Warmth::Warm).await.reply;
    assert_eq!(reply.unwrap_err().kind, Kind::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn no_call_runs_that_cannot_be_written_down() {
    for effects in [None, Some(SideEffects::None), Some(SideEffects::Read)] {
        let folder = node_tool("{ async execute() { return 1; } }");
        let home = kit::home().keep();
        let (host, mut tool) = (kit::host_in(&home, "").await, folder.tool("tool.json"));
        tool.package.actions[0].side_effects = effects;
        std::fs::write(home.join("audit"), "no folder").unwrap();
        let made = host.call(&tool, &call_of(&tool, &json!({})), Warmth::Warm).await;
        let error = made.reply.unwrap_err();
        assert_eq!((error.kind, made.attempts), (Kind::Unavailable, 0), "{effects:?}");
    }
}

#[tokio::test]
async fn no_calls_a_minute_are_none() {
    let folder = node_tool("{ async execute() { return 1; } }");
    let host = kit::host_with("[budget]\ncalls_per_minute = 0").await;
    let denied = error(&host, &folder.tool("tool.json"), json!({})).await;
    let words =
        "your policy allows 0 calls a minute (`calls_per_minute` of `[budget]` in policy.toml)";
    assert_eq!(denied.message, words);
}

#[tokio::test]
async fn what_a_tool_has_its_owner_told_holds_no_secret_that_it_was_told_before() {
    use vault::{FileVault, Owner as Keeper, Place, Secret};
    let folder = node_tool(
        "{ requiredSecrets: () => ['token'], requiresApproval: ({ n }) => n > 1, getApprovalMessage: () => `it is ${globalThis.seen}`, async execute(input, { env }) { globalThis.seen = env.token; return 1; } }",
    );
    let home = kit::home().keep();
    let (host, tool) = (kit::host_in(&home, "").await, folder.tool("tool.json"));
    let vault = FileVault::open(home.join("vault"), || None).unwrap();
    let place = Place::new(Keeper::Package(tool.package.canonical_id()), "token").unwrap();
    vault.set(&place, &Secret::new("c4n4ry-9Kp".into()).unwrap()).unwrap();
    assert_eq!(result(&host, &tool, json!({"n": 1})).await, json!(1));
    let asked = error(&host, &tool, json!({"n": 2})).await;
    let message = asked.details["message"].as_str().unwrap();
    // It is asked in a process that was never told one.
    assert_eq!(message, "it is undefined");
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

#[tokio::test]
async fn the_time_in_which_a_passphrase_is_typed_is_not_that_of_the_call() {
    /// Longer than the call may take.
    const TYPING: Duration = Duration::from_millis(2_200);
    let folder = kit::python_tool("import os\ndef run(_): return len(os.environ['KEY'])\n");
    let path = folder.path().join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    manifest["secrets"] = json!([{ "name": "KEY", "ref": "secret://KEY" }]);
    std::fs::write(&path, manifest.to_string()).unwrap();
    let tool = folder.tool("manifest.json");
    let (home, vault, records) = kit::stores();
    let secret = |text: &str| vault::Secret::new(text.to_owned()).unwrap();
    let owner = vault::Owner::Package(tool.package.canonical_id());
    vault.set(&vault::Place::new(owner, "KEY").unwrap(), &secret("value")).unwrap();
    vault.set_passphrase(&secret("open sesame")).unwrap();
    let typed = || {
        std::thread::sleep(TYPING);
        vault::Secret::new("open sesame".to_owned()).ok()
    };
    let vault = vault::FileVault::open(home.join("vault"), typed).unwrap();
    let host = kit::host_of(&home, "", vault, records);
    let call = host::Call { within: Some(Duration::from_secs(2)), ..call_of(&tool, &json!({})) };
    let began = Instant::now();
    let made = host.call(&tool, &call, Warmth::Warm).await;
    assert_eq!(made.reply.unwrap().into_value(), json!(5));
    let told = began.elapsed().checked_sub(made.took).unwrap();
    assert!(told >= TYPING, "{told:?} of it are not told, though somebody typed for {TYPING:?}");
}
