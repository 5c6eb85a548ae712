//! The owner's word for a chain, and what it is good for.

use std::sync::Arc;

use host::{Approver, Call, Kind, Said, Warmth};
use ledger::state::approvals::{Answer, TicketId};
use manifest::model::SideEffects;
use policy::Surface;
use serde_json::{Value, json};

use crate::kit::{call_of, home, host, host_in};
use crate::support::{Chain, Owner, Tools, logged};

/// Tools that cannot undo what they do, and one that can.
fn tools() -> Tools {
    let mut tools = Tools::default();
    tools.add_echo("a.look").add_echo("a.send").add_echo("a.wipe");
    for id in ["a.send", "a.wipe"] {
        tools.change(id, |tool| {
            tool.package.actions[0].side_effects = Some(SideEffects::Destructive);
        });
    }
    tools
}

fn asking(chain: &Chain, owner: &Arc<Owner>) -> Call {
    let approver: Arc<dyn Approver> = Arc::<Owner>::clone(owner);
    Call { approver: Some(approver), ..call_of(&chain.tool, &json!({"n": 1})) }
}

#[tokio::test]
async fn a_chain_asks_once_and_shows_every_destructive_step_however_deep() {
    let mut tools = tools();
    tools.add_chain(
        "b.test.inner",
        &json!([{"step": "wipe", "tool": "a.wipe", "forEach": "$.input.all", "inputMapping": {"one": "$.item"}}]),
    );
    let chain = tools.chain(&json!([
        {"step": "look", "tool": "a.look"},
        {"step": "send", "tool": "a.send", "inputMapping": {"to": "$.input.n"}},
        {"step": "inner", "tool": "b.test.inner", "inputMapping": {"all": {"value": [1, 2]}}},
    ]));
    let host = host().await;
    let owner = Owner::who_says(Some(Said::Once));
    let made = host.call(&chain.tool, &asking(&chain, &owner), Warmth::Warm).await;
    made.reply.unwrap();
    let matters = owner.matters();
    assert_eq!(matters.len(), 1, "{matters:?}");
    let shown: Vec<_> = matters[0].steps.iter().map(|one| (&*one.step, &*one.package)).collect();
    assert_eq!(shown, [("send", "capability:a.send"), ("inner/wipe", "capability:a.wipe")]);
    assert_eq!(matters[0].steps[0].takes, [("to".to_owned(), "$.input.n".to_owned())]);
    assert_eq!(matters[0].steps[0].because, "the action is destructive");
    assert_eq!(matters[0].steps[0].each, None);
    assert_eq!(matters[0].steps[1].each.as_deref(), Some("$.input.all"));
    assert!(!matters[0].can_be_remembered);
    assert_eq!(matters[0].question.why.words(), "some of its steps need your word");
}

#[tokio::test]
async fn nothing_runs_where_the_owner_says_no_or_nobody_can_be_asked() {
    let tools = tools();
    let chain = tools.chain(&json!([
        {"step": "look", "tool": "a.look"}, {"step": "send", "tool": "a.send"},
    ]));
    let home = home();
    let host = host_in(home.path(), "").await;
    for (says, is_asked) in [(Some(Said::No), true), (None, true)] {
        let owner = Owner::who_says(says);
        let made = host.call(&chain.tool, &asking(&chain, &owner), Warmth::Warm).await;
        assert!(made.reply.unwrap_err().kind.is_refusal());
        assert_eq!(owner.matters().len() == 1, is_asked);
    }
    let made = host.call(&chain.tool, &call_of(&chain.tool, &json!({})), Warmth::Warm).await;
    assert!(matches!(made.reply.unwrap_err().kind, Kind::NeedsApproval(_)));
    assert!(logged(home.path()).iter().all(|one| one.step.is_empty()));
}

#[tokio::test]
async fn a_rule_that_allows_the_chain_allows_none_of_its_steps() {
    let tools = tools();
    let chain = tools.chain(&json!([{"step": "send", "tool": "a.send"}]));
    let policy = "[package.\"mcpkg:demo.test.chain\"]\napproval = \"allow\"\n";
    let host = crate::kit::host_with(policy).await;
    let made = host.call(&chain.tool, &call_of(&chain.tool, &json!({})), Warmth::Warm).await;
    assert!(matches!(made.reply.unwrap_err().kind, Kind::NeedsApproval(_)));
    let policy = "[package.\"capability:a.send\"]\napproval = \"deny\"\n";
    let host = crate::kit::host_with(policy).await;
    let owner = Owner::who_says(Some(Said::Once));
    let made = host.call(&chain.tool, &asking(&chain, &owner), Warmth::Warm).await;
    let refused = made.reply.unwrap_err();
    assert_eq!(refused.kind, Kind::Denied, "{refused}");
    assert!(owner.matters().is_empty(), "what policy denies nobody is asked about");
}

fn by_agent(chain: &Chain, ticket: Option<TicketId>, input: &Value) -> Call {
    let surface = Surface::Agent {
        name: "mcp".to_owned(),
        session: "s".to_owned(),
        who: policy::Who::default(),
    };
    Call { surface, ticket, ..call_of(&chain.tool, input) }
}

#[tokio::test]
async fn an_agent_leaves_one_question_for_the_whole_chain_and_the_answer_is_for_these_steps_alone()
{
    let tools = tools();
    let steps = json!([{"step": "look", "tool": "a.look"}, {"step": "send", "tool": "a.send"}]);
    let chain = tools.chain(&steps);
    let host = host().await;
    let call = by_agent(&chain, None, &json!({"n": 1}));
    let asked = host.call(&chain.tool, &call, Warmth::Warm).await.reply.unwrap_err();
    let ticket = TicketId::parse(asked.details["ticket"].as_str().unwrap()).unwrap();
    let state = &host.records().state;
    let waiting = state.waiting(host::records::now()).await.unwrap();
    assert_eq!(waiting.len(), 1);
    let shown: Value = serde_json::from_str(&waiting[0].shown.text).unwrap();
    let names: Vec<_> =
        shown["steps"].as_array().unwrap().iter().map(|one| one["step"].clone()).collect();
    assert_eq!(
        names,
        ["look", "send"],
        "an agent is asked about what does not say what it changes"
    );
    state.answer(&ticket, Answer::Approved, host::records::now()).await.unwrap();
    // With other steps it is another question.
    let more = tools.chain(&json!([
        {"step": "look", "tool": "a.look"}, {"step": "send", "tool": "a.send"},
        {"step": "wipe", "tool": "a.wipe"},
    ]));
    let mut changed = chain.tool.clone();
    changed.links = more.tool.links.clone();
    let call = by_agent(&chain, Some(ticket.clone()), &json!({"n": 1}));
    let refused = host.call(&changed, &call, Warmth::Warm).await.reply.unwrap_err();
    assert_eq!(refused.message, "this approval is for another call");
    // And it is good once.
    host.call(&chain.tool, &call, Warmth::Warm).await.reply.unwrap();
    let used = host.call(&chain.tool, &call, Warmth::Warm).await.reply.unwrap_err();
    assert_eq!(used.message, "this approval was used already");
}

#[tokio::test]
async fn what_is_asked_about_the_first_time_only_is_remembered_with_the_chain() {
    let mut tools = Tools::default();
    tools.add_echo("a.look");
    let chain = tools.chain(&json!([{"step": "look", "tool": "a.look"}]));
    let host = host().await;
    let call = by_agent(&chain, None, &json!({"n": 1}));
    let asked = host.call(&chain.tool, &call, Warmth::Warm).await.reply.unwrap_err();
    let ticket = TicketId::parse(asked.details["ticket"].as_str().unwrap()).unwrap();
    let state = &host.records().state;
    state.answer(&ticket, Answer::Approved, host::records::now()).await.unwrap();
    let call = by_agent(&chain, Some(ticket), &json!({"n": 1}));
    host.call(&chain.tool, &call, Warmth::Warm).await.reply.unwrap();
    let again = by_agent(&chain, None, &json!({"n": 2}));
    host.call(&chain.tool, &again, Warmth::Warm).await.reply.unwrap();
}
