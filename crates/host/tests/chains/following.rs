//! Steps that run, wait, repeat, and fail.

use std::time::{Duration, Instant};

use host::{Call, CancellationToken, Kind, Warmth};
use ledger::audit;
use serde_json::{Value, json};

use crate::kit::{call_of, error, home, host, host_in, result};
use crate::support::{Tools, logged};

#[tokio::test]
async fn what_one_step_answers_is_what_the_next_is_given() {
    let mut tools = Tools::default();
    tools.add("a.double", "def run(given):\n    return {'n': given['n'] * 2}\n");
    tools.add("a.add", "def run(given):\n    return given['a'] + given['b']\n");
    let chain = tools.chain(&json!([
        {"step": "twice", "tool": "a.double", "inputMapping": {"n": "$.input.n"}, "outputKey": "one"},
        {"step": "again", "tool": "a.double", "inputMapping": {"n": "$.one.n"}, "outputKey": "two"},
        {"step": "sum", "tool": "a.add", "inputMapping": {"a": "$.two.n", "b": {"value": 1}}},
    ]));
    assert_eq!(result(&host().await, &chain.tool, json!({"n": 5})).await, json!(21));
}

#[tokio::test]
async fn defaults_literals_and_optional_members_are_what_the_tool_gets() {
    let mut tools = Tools::default();
    tools.add_echo("a.echo");
    let chain = tools.chain_with(
        &json!([{
            "step": "one", "tool": "a.echo", "optional": ["maybe"],
            "inputMapping": {
                "model": "$.input.model", "mode": {"value": {"deep": true}}, "maybe": "$.input.no",
                "size": {"path": "$.input.size", "default": 3},
            },
        }]),
        &json!({"input_schema": {"type": "object", "properties": {"model": {"type": "string", "default": "small"}}}}),
    );
    let got = result(&host().await, &chain.tool, json!({})).await["got"].clone();
    assert_eq!(got, json!({"model": "small", "mode": {"deep": true}, "size": 3}));
}

#[tokio::test]
async fn every_step_is_written_down_as_itself_under_one_trace() {
    let mut tools = Tools::default();
    tools.add_echo("a.echo");
    tools.add_chain("b.test.inner", &json!([{"step": "deep", "tool": "a.echo"}]));
    let chain = tools.chain(&json!([
        {"step": "first", "tool": "a.echo", "inputMapping": {"x": "$.input.secret"}, "outputKey": "one"},
        {"step": "second", "tool": "b.test.inner", "inputMapping": {"y": "$.one.got.x"}},
    ]));
    let home = home();
    let host = host_in(home.path(), "").await;
    result(&host, &chain.tool, json!({"secret": "nobody reads this"})).await;
    let records = logged(home.path());
    let told: Vec<_> = records
        .iter()
        .map(|one| (one.kind, one.package.as_str(), one.step.as_str(), one.implementation.as_str()))
        .collect();
    let (begin, end) = (audit::Kind::Begin, audit::Kind::End);
    assert_eq!(
        told,
        [
            (begin, "mcpkg:demo.test.chain", "", "chain"),
            (begin, "capability:a.echo", "first", "main"),
            (end, "capability:a.echo", "first", "main"),
            (begin, "mcpkg:b.test.inner", "second", "chain"),
            (begin, "capability:a.echo", "second/deep", "main"),
            (end, "capability:a.echo", "second/deep", "main"),
            (end, "mcpkg:b.test.inner", "second", "chain"),
            (end, "mcpkg:demo.test.chain", "", "chain"),
        ]
    );
    let trace = &records[0].trace;
    assert_eq!(trace.len(), 32);
    assert!(records.iter().all(|one| one.trace == *trace));
    assert!(records.iter().all(|one| one.decision.as_deref() == Some("allowed")));
    assert_eq!(records[1].arguments, json!({"x": "string(17)"}));
    assert!(audit::verify(&home.path().join("audit")).unwrap().is_sound());
    // A call that is no chain has none.
    let alone = tools.chain(&json!([{"step": "x", "tool": "a.echo"}])).tool;
    let echo = alone.links.unwrap().unwrap().targets[0].tool.clone();
    result(&host, &echo, json!({})).await;
    let last = logged(home.path()).pop().unwrap();
    assert_eq!((last.trace.as_str(), last.step.as_str()), ("", ""));
}

#[tokio::test]
async fn steps_that_need_nothing_from_each_other_run_side_by_side() {
    let mut tools = Tools::default();
    let nap = "import time\ndef run(given):\n    time.sleep(given['s'])\n    return 1\n";
    tools.add("a.nap", nap);
    let step = |number: usize| json!({"step": format!("s{number}"), "tool": "a.nap", "inputMapping": {"s": "$.input.s"}, "outputKey": format!("k{number}")});
    let chain = tools.chain(&(0..4).map(step).collect::<Value>());
    let host = host().await;
    // The workers that it needs are there from here on.
    result(&host, &chain.tool, json!({"s": 0.3})).await;
    let began = Instant::now();
    result(&host, &chain.tool, json!({"s": 0.5})).await;
    assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_step_is_left_out_where_its_condition_finds_nothing_and_the_result_is_the_last_that_ran()
{
    let mut tools = Tools::default();
    tools.add_echo("a.echo");
    let chain = tools.chain(&json!([
        {"step": "always", "tool": "a.echo", "inputMapping": {"n": {"value": 1}}, "outputKey": "one"},
        {"step": "perhaps", "tool": "a.echo", "when": "$.input[?@.go == true]", "inputMapping": {"n": {"value": 2}}, "outputKey": "two"},
        {"step": "after", "tool": "a.echo", "when": "$.two", "inputMapping": {"n": {"value": 3}}},
    ]));
    let host = host().await;
    let last = async |input: Value| result(&host, &chain.tool, input).await["got"]["n"].clone();
    assert_eq!(last(json!({"list": {"go": false}})).await, json!(1));
    assert_eq!(last(json!({"list": {"go": true}})).await, json!(3));
}

#[tokio::test]
async fn a_list_is_worked_on_some_at_a_time_and_its_answers_keep_their_order() {
    let mut tools = Tools::default();
    let nap = "import time\ndef run(given):\n    time.sleep(0.02 * (9 - given['n']))\n    return given['n'] * given['by']\n";
    tools.add("a.times", nap);
    let chain = tools.chain(&json!([{
        "step": "all", "tool": "a.times", "forEach": "$.input.list", "concurrency": 3,
        "inputMapping": {"n": "$.item.n", "by": "$.input.by"}, "when": "$.item[?@ > 2]",
    }]));
    let list: Value = (0..9).map(|number| json!({"n": number})).collect();
    let host = host().await;
    let answers = result(&host, &chain.tool, json!({"list": list, "by": 10})).await;
    assert_eq!(answers, json!([30, 40, 50, 60, 70, 80]));
    assert_eq!(result(&host, &chain.tool, json!({"list": [], "by": 1})).await, json!([]));
    for (list, words) in [(json!(7), "is no list"), (json!(vec![0; 2_000]), "at most 1024")] {
        let refused = error(&host, &chain.tool, json!({"list": list, "by": 1})).await;
        assert_eq!(refused.kind, Kind::BadChain);
        assert!(refused.message.contains(words), "{refused}");
    }
}

#[tokio::test]
async fn a_step_that_fails_is_named_with_what_its_input_looks_like_and_what_runs_besides_is_ended()
{
    let mut tools = Tools::default();
    tools.add("a.bad", "def run(given):\n    raise ValueError('boom')\n");
    tools.add("a.slow", "import time\ndef run(given):\n    time.sleep(15)\n");
    let chain = tools.chain(&json!([
        {"step": "slow", "tool": "a.slow"},
        {"step": "bad", "tool": "a.bad", "inputMapping": {"text": "$.input.text"}},
    ]));
    let home = home();
    let host = host_in(home.path(), "").await;
    let began = Instant::now();
    let failed = error(&host, &chain.tool, json!({"text": "private words"})).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(failed.kind, Kind::Failed);
    assert!(failed.message.starts_with("the step `bad` (`a.bad`) failed: "), "{failed}");
    let step = &failed.details["step"];
    assert_eq!((&step["name"], &step["package"]), (&json!("bad"), &json!("capability:a.bad")));
    assert_eq!(step["input"], json!({"text": "string(13)"}));
    assert!(!failed.details.to_string().contains("private words"));
    let ended = logged(home.path());
    let outcome = |step: &str| {
        let end = ended.iter().find(|one| one.step == step && one.kind == audit::Kind::End);
        end.unwrap().outcome.clone().unwrap()
    };
    assert_eq!((outcome("slow"), outcome("bad")), ("cancelled".into(), "tool_failed".into()));
}

#[tokio::test]
async fn what_a_step_needs_and_is_not_there_is_told_before_anything_runs() {
    let mut tools = Tools::default();
    tools.add_echo("a.echo");
    let chain = tools.chain(&json!([
        {"step": "one", "tool": "a.echo"},
        {"step": "two", "tool": "a.echo", "inputMapping": {"x": "$.input.missing"}},
    ]));
    let home = home();
    let host = host_in(home.path(), "").await;
    let failed = error(&host, &chain.tool, json!({})).await;
    let words =
        "the step `two` (`a.echo`) failed: nothing is found for its `x` at `$.input.missing`";
    assert_eq!((failed.kind, failed.message.as_str()), (Kind::BadChain, words));
    assert!(logged(home.path()).iter().all(|one| one.step.is_empty()));
}

#[tokio::test]
async fn a_secret_that_a_later_step_lacks_is_told_before_anything_runs() {
    let mut tools = Tools::default();
    tools.add_echo("a.echo").add_echo("a.mail");
    tools.change("a.mail", |tool| {
        tool.package.inputs.push(manifest::model::Input::secret("MAIL_KEY"));
    });
    let chain = tools.chain(&json!([
        {"step": "one", "tool": "a.echo"}, {"step": "two", "tool": "a.mail"},
    ]));
    let home = home();
    let host = host_in(home.path(), "").await;
    let refused = error(&host, &chain.tool, json!({})).await;
    assert_eq!(refused.kind, Kind::MissingInput, "{refused}");
    let words = "the step `two` (`a.mail`) failed: Missing required secret: MAIL_KEY";
    assert_eq!(refused.message, words);
    assert!(logged(home.path()).iter().all(|one| one.step.is_empty()));
}

#[tokio::test]
async fn a_step_has_a_time_of_its_own_and_the_chain_the_rest() {
    let mut tools = Tools::default();
    tools.add("a.slow", "import time\ndef run(given):\n    time.sleep(15)\n");
    let chain = tools.chain(&json!([{"step": "slow", "tool": "a.slow", "timeoutMs": 300}]));
    let host = host().await;
    let failed = error(&host, &chain.tool, json!({})).await;
    assert_eq!(failed.kind, Kind::TimedOut, "{failed}");
    assert!(failed.message.contains("300 ms (set by `timeoutMs` of the step)"), "{failed}");
    let chain = tools.chain(&json!([{"step": "slow", "tool": "a.slow"}]));
    let within = Some(Duration::from_millis(300));
    let began = Instant::now();
    let call = Call { within, ..call_of(&chain.tool, &json!({})) };
    let made = host.call(&chain.tool, &call, Warmth::Warm).await;
    assert_eq!(made.reply.unwrap_err().kind, Kind::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// A tool that fails until it was called so often, counted in a file beside it; its folder may be written.
fn failing_twice() -> &'static str {
    "calls = []\ndef run(given):\n    calls.append(1)\n    if len(calls) < 3:\n        raise ValueError('not yet')\n    return len(calls)\n"
}

#[tokio::test]
async fn a_step_is_tried_again_where_its_action_says_that_this_is_safe() {
    let mut tools = Tools::default();
    tools.add("a.flaky", failing_twice()).add("a.unsafe", failing_twice());
    tools.change("a.flaky", |tool| tool.package.actions[0].idempotent = Some(true));
    let step = |tool: &str| json!([{"step": "try", "tool": tool, "retry": 2}]);
    let home = home();
    let host = host_in(home.path(), "").await;
    assert_eq!(result(&host, &tools.chain(&step("a.flaky")).tool, json!({})).await, json!(3));
    let tries = logged(home.path()).iter().filter(|one| one.kind == audit::Kind::End).count();
    assert_eq!(tries, 4, "three tries, and the chain");
    let failed = error(&host, &tools.chain(&step("a.unsafe")).tool, json!({})).await;
    assert!(failed.message.contains("not yet"), "{failed}");
}

#[tokio::test]
async fn the_result_is_held_against_what_the_chain_promises() {
    let mut tools = Tools::default();
    tools.add_echo("a.echo");
    let steps = json!([{"step": "one", "tool": "a.echo"}]);
    let promise = json!({"output_schema": {"type": "object", "required": ["embeddings"]}});
    let failed = error(&host().await, &tools.chain_with(&steps, &promise).tool, json!({})).await;
    assert_eq!(failed.kind, Kind::BadOutput, "{failed}");
}

#[tokio::test]
async fn a_chain_that_cannot_be_followed_is_refused_and_written_down() {
    let mut tools = Tools::default();
    tools.add_echo("a.echo");
    tools.add_chain("b.test.one", &json!([{"step": "x", "tool": "demo.test.chain"}]));
    let home = home();
    let host = host_in(home.path(), "").await;
    let missing = tools
        .chain(&json!([{"step": "a", "tool": "a.echo"}, {"step": "b", "tool": "no.such.tool"}]));
    let refused = error(&host, &missing.tool, json!({})).await;
    assert_eq!(refused.kind, Kind::Unknown);
    assert_eq!(refused.message, "the step `b` calls `no.such.tool`: it is not installed");
    let records = logged(home.path());
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].outcome.as_deref(), Some("unknown_tool"));
    let mut unlinked = missing.tool.clone();
    unlinked.links = None;
    assert_eq!(error(&host, &unlinked, json!({})).await.kind, Kind::Unavailable);
}

#[tokio::test]
async fn a_chain_that_is_called_off_ends_its_steps() {
    let mut tools = Tools::default();
    tools.add("a.slow", "import time\ndef run(given):\n    time.sleep(15)\n");
    let chain = tools.chain(&json!([{"step": "slow", "tool": "a.slow"}]));
    let home = home();
    let host = host_in(home.path(), "").await;
    let called_off = CancellationToken::new();
    let call = Call { called_off: called_off.clone(), ..call_of(&chain.tool, &json!({})) };
    let began = Instant::now();
    let folder = home.path().to_owned();
    let (made, ()) = tokio::join!(host.call(&chain.tool, &call, Warmth::Warm), async {
        // Until its step has begun.
        while logged(&folder).len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        called_off.cancel();
    });
    assert_eq!(made.reply.unwrap_err().kind, Kind::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(10));
    let ends = logged(home.path());
    let ends: Vec<_> = ends.iter().filter(|one| one.kind == audit::Kind::End).collect();
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|one| one.outcome.as_deref() == Some("cancelled")), "{ends:?}");
}

#[tokio::test]
async fn a_plan_tells_the_steps_what_flows_where_and_what_is_decided_and_runs_nothing() {
    let mut tools = Tools::default();
    tools.add_echo("a.echo").add_echo("a.off");
    tools.change("a.off", |tool| tool.package.enabled = false);
    let home = home();
    let host = host_in(home.path(), "").await;
    let chain = tools.chain(&json!([
        {"step": "one", "tool": "a.echo", "inputMapping": {"x": "$.input.x"}, "outputKey": "one"},
        {"step": "two", "tool": "a.off", "inputMapping": {"y": "$.one.got"}},
    ]));
    let call = call_of(&chain.tool, &json!({"x": 1}));
    let plan = host.plan(&chain.tool, &call).await.unwrap().to_value();
    assert_eq!(plan["decision"], "denied", "{plan}");
    assert_eq!(plan["runs"], "a chain of other tools");
    let steps = plan["steps"].as_array().unwrap();
    assert_eq!(steps[0]["takes"], json!({"x": "$.input.x"}));
    assert_eq!(
        (&steps[0]["decision"], &steps[1]["decision"]),
        (&json!("allowed"), &json!("denied"))
    );
    assert!(logged(home.path()).is_empty());
    // And the call is refused before the first step is made.
    let refused = error(&host, &chain.tool, json!({"x": 1})).await;
    assert_eq!(refused.kind, Kind::Denied);
    assert!(refused.message.starts_with("the step `two` (`a.off`) is refused"), "{refused}");
    assert_eq!(logged(home.path()).len(), 1);
}
