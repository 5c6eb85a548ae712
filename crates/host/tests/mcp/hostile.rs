//! Servers that mean no good, or do not know how to behave.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use host::{Advance, Kind, Output, Progress};
use serde_json::json;

use crate::support::Bench;

/// A server of the older era that does what it is told by `act`, in so few lines that all of it can be seen.
pub(crate) const BEGIN: &str = r#"
import json, os, sys, threading, time

cancelled = []

def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()

def answer(id, result):
    send({"jsonrpc": "2.0", "id": id, "result": result})

def say(id, text):
    answer(id, {"content": [{"type": "text", "text": text}]})

def serve(act, silent=False, schema={"type": "object"}):
    for line in sys.stdin:
        request = json.loads(line)
        id, method = request.get("id"), request["method"]
        if method == "initialize":
            answer(id, {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}})
        elif method == "tools/list":
            answer(id, {"tools": [{"name": "act", "inputSchema": schema}]})
        elif method == "tools/call":
            act(id, request["params"]["arguments"], request)
        elif method == "server/discover" and not silent:
            send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "what?"}})
        elif method == "notifications/cancelled":
            cancelled.append(request["params"]["requestId"])
"#;

fn bench(text: &str) -> Bench {
    Bench::script(&format!("{BEGIN}{text}")).within(Duration::from_secs(20)).declaring("act")
}

#[tokio::test]
async fn noise_on_the_wrong_stream_is_put_up_with() {
    let bench = bench(
        r#"
print("Starting up...", flush=True)
def act(id, arguments, request):
    print("[info] {odd", flush=True)
    say(id, "done")
serve(act)
"#,
    );
    assert_eq!(bench.call("act", json!({})).await.unwrap(), Output::Text("done".into()));
}

#[tokio::test]
async fn what_pretends_to_be_a_message_ends_the_server_and_a_new_one_serves_the_next() {
    let bench = bench(
        r#"
def act(id, arguments, request):
    if arguments.get("bad"):
        print("before it broke", file=sys.stderr, flush=True)
        time.sleep(0.2)
        send({"jsonrpc": "2.0", "neither": "nor"})
    else:
        say(id, "done")
serve(act)
"#,
    );
    let error = bench.call("act", json!({ "bad": true })).await.unwrap_err();
    assert_eq!(error.kind, Kind::BadOutput);
    assert!(error.details["stderr"].as_str().unwrap().contains("before it broke"), "{error:?}");
    assert_eq!(bench.call("act", json!({})).await.unwrap(), Output::Text("done".into()));
}

#[tokio::test]
async fn one_that_never_greets_costs_its_time_and_no_more() {
    let bench = Bench::script("import time\ntime.sleep(600)")
        .within(Duration::from_secs(2))
        .declaring("act");
    let began = Instant::now();
    let error = bench.call("act", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

#[tokio::test]
async fn one_that_keeps_silent_about_its_era_is_of_the_older_and_asked_once() {
    let bench = bench("def act(id, arguments, request): say(id, 'done')\nserve(act, silent=True)");
    let began = Instant::now();
    assert_eq!(bench.call("act", json!({})).await.unwrap(), Output::Text("done".into()));
    let first = began.elapsed();
    assert!(first >= Duration::from_secs(4), "{first:?}");
    let began = Instant::now();
    let (reply, _) = bench.ask("act", json!({}), host::Warmth::Cold, None).await;
    assert_eq!(reply.unwrap(), Output::Text("done".into()));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test]
async fn one_that_cannot_bear_the_question_for_its_era_is_started_anew_without_it() {
    let bench = bench(
        r#"
def act(id, arguments, request): say(id, "done")
first = sys.stdin.readline()
if "server/discover" in first: os._exit(1)
request = json.loads(first)
answer(request["id"], {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}})
serve(act)
"#,
    );
    assert_eq!(bench.call("act", json!({})).await.unwrap(), Output::Text("done".into()));
}

#[tokio::test]
async fn a_call_that_is_never_answered_is_called_off_and_blocks_nobody() {
    let bench = bench(
        r#"
def act(id, arguments, request):
    if not arguments.get("hang"):
        say(id, f"{len(cancelled)} cancelled")
serve(act)
"#,
    )
    .within(Duration::from_secs(8));
    let cancelled = |count: u32| Output::Text(format!("{count} cancelled"));
    bench.call("act", json!({})).await.unwrap();
    let hang = async {
        let call = bench.call("act", json!({ "hang": true }));
        tokio::time::timeout(Duration::from_secs(1), call).await
    };
    let (hung, other) = tokio::join!(hang, bench.call("act", json!({})));
    assert!(hung.is_err());
    assert_eq!(other.unwrap(), cancelled(0));
    // It is told as soon as may be, which may be after the next call.
    let told = async { while bench.call("act", json!({})).await.unwrap() != cancelled(1) {} };
    tokio::time::timeout(Duration::from_secs(8), told).await.unwrap();
    let error = bench.call("act", json!({ "hang": true })).await.unwrap_err();
    assert_eq!(error.kind, Kind::TimedOut);
    // That was all it did, so another serves the next.
    assert_eq!(bench.call("act", json!({})).await.unwrap(), cancelled(0));
}

#[tokio::test]
async fn what_a_server_says_to_a_call_that_fails_is_told_and_to_no_other() {
    let bench = bench(
        r#"
waiting = []
def fail(id):
    answer(id, {"isError": True, "content": [{"type": "text", "text": "no"}]})
def act(id, arguments, request):
    word = arguments["word"]
    print("to", word, file=sys.stderr)
    if word == "refused":
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "no"}})
    elif arguments.get("fails"):
        fail(id)
    elif arguments.get("waits"):
        waiting.append(id)
        if len(waiting) == 2:
            for one in waiting: fail(one)
    else:
        say(id, "done")
serve(act)
"#,
    );
    let said = async |input| {
        let error = bench.call("act", input).await.unwrap_err();
        assert_eq!((error.kind, &*error.message), (Kind::Failed, "no"));
        error.details.get("stderr").cloned()
    };
    bench.call("act", json!({ "word": "one" })).await.unwrap();
    assert_eq!(said(json!({ "word": "two", "fails": true })).await, Some(json!("to two\n")));
    assert_eq!(said(json!({ "word": "refused" })).await, Some(json!("to refused\n")));
    // Nobody can tell which of them it speaks of.
    let both = tokio::join!(
        said(json!({ "word": "three", "waits": true })),
        said(json!({ "word": "four", "waits": true })),
    );
    assert_eq!(both, (None, None));
    assert_eq!(said(json!({ "word": "five", "fails": true })).await, Some(json!("to five\n")));
}

#[tokio::test]
async fn a_flood_ends_the_server_not_us() {
    for flood in [
        r#"send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 100000}})"#,
        r#"send({"jsonrpc": "2.0", "id": 999999, "result": {"content": ["x" * 100000]}})"#,
        r#"sys.stdout.write("x" * 100000)"#,
        r#"print("noise " * 1000, flush=True)"#,
        r#"os.write(2, b"x" * 100000)"#,
        r#"send({"jsonrpc": "2.0", "id": "q" + str(time.monotonic_ns()), "method": "ping"})"#,
        r#"send({"jsonrpc": "2.0", "id": "q", "method": "ping"})"#,
    ] {
        let text = format!(
            "def act(id, arguments, request):\n    while True:\n        {flood}\nserve(act)\n"
        );
        let bench = bench(&text).within(Duration::from_mins(1));
        let error = bench.call("act", json!({})).await.unwrap_err();
        assert!(
            matches!(error.kind, Kind::TooMuchOutput | Kind::BadOutput),
            "{flood}: {:?} {}",
            error.kind,
            error.message
        );
    }
}

#[tokio::test]
async fn a_list_of_tools_without_end_is_not_read() {
    let page = r#"
def serve_pages():
    for line in sys.stdin:
        request = json.loads(line)
        id, method = request.get("id"), request["method"]
        if method == "initialize":
            answer(id, {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}})
        elif method == "tools/list":
            tool = {"name": "act", "description": "x" * 4000000, "inputSchema": {"type": "object"}}
            answer(id, {"tools": [tool], "nextCursor": "more"})
        elif id is not None:
            send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "what?"}})
serve_pages()
"#;
    let bench = Bench::script(&format!("{BEGIN}{page}")).within(Duration::from_mins(1));
    let off = host::CancellationToken::new();
    let listed = bench.host.discover(&bench.tool, &policy::Surface::Terminal, None, &off).await;
    let error = listed.unwrap_err();
    assert_eq!(error.kind, Kind::BadOutput, "{error:?}");
    assert!(error.message.ends_with("it lists more than 16 MiB of tools"), "{error}");
}

#[tokio::test]
async fn what_it_says_of_its_progress_is_told_without_secrets() {
    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<String>>);
    impl Progress for Heard {
        fn advanced(&self, advance: &Advance) {
            self.0.lock().unwrap().extend(advance.message.clone());
        }
        fn recorded(&self, _: &serde_json::Value) {}
    }
    let mut bench = bench(
        r#"
def act(id, arguments, request):
    token = request["params"]["_meta"]["progressToken"]
    params = {"progressToken": token, "progress": 1, "message": "with " + os.environ["KEY"]}
    send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    say(id, "done")
serve(act)
"#,
    );
    bench.tool.package.inputs = vec![manifest::model::Input::secret("KEY")];
    let owner = vault::Owner::Package(bench.tool.package.canonical_id());
    let secret = vault::Secret::new("k3y-of-somebody".to_owned()).unwrap();
    bench.vault.set(&vault::Place::new(owner, "KEY").unwrap(), &secret).unwrap();
    let heard = Arc::<Heard>::default();
    let told: Arc<dyn Progress> = Arc::<Heard>::clone(&heard);
    let (reply, _) = bench.ask("act", json!({}), host::Warmth::Warm, Some(told)).await;
    assert_eq!(reply.unwrap(), Output::Text("done".into()));
    assert_eq!(*heard.0.lock().unwrap(), ["with [secret KEY]"]);
}

#[tokio::test]
async fn one_that_does_not_read_its_input_blocks_nobody_for_ever() {
    let bench = bench(
        r"
def act(id, arguments, request):
    time.sleep(600)
serve(act)
",
    )
    .within(Duration::from_secs(3));
    let long = "x".repeat(1 << 20);
    let calls = (0..4).map(|_| bench.call("act", json!({ "text": long })));
    let began = Instant::now();
    let mut errors = Vec::new();
    for call in calls {
        errors.push(call.await.unwrap_err().kind);
        if began.elapsed() > Duration::from_secs(30) {
            break;
        }
    }
    assert!(errors.iter().all(|kind| *kind == Kind::TimedOut), "{errors:?}");
}

#[tokio::test]
async fn what_is_still_being_written_ends_with_a_server_that_breaks() {
    let bench = bench(
        r#"
def break_off():
    os.read(0, 1)
    send({"jsonrpc": "2.0", "neither": "nor"})
def act(id, arguments, request):
    say(id, "done")
    threading.Thread(target=break_off).start()
    time.sleep(600)
serve(act)
"#,
    );
    bench.call("act", json!({})).await.unwrap();
    let long = "x".repeat(1 << 20);
    let error = bench.call("act", json!({ "text": long })).await.unwrap_err();
    assert_eq!(error.kind, Kind::BadOutput, "{error:?}");
}

#[tokio::test]
async fn what_it_asks_of_us_is_refused_politely() {
    for method in ["elicitation/create", "sampling/createMessage", "roots/list", "odd/question"] {
        let text = format!(
            r#"
def act(id, arguments, request):
    send({{"jsonrpc": "2.0", "id": "q1", "method": "{method}", "params": {{"message": "?", "requestedSchema": {{"type": "object", "properties": {{}}}}, "messages": [], "maxTokens": 1}}}})
    reply = json.loads(sys.stdin.readline())
    say(id, str(reply["id"]) + " " + str(reply["error"]["code"]))
serve(act)
"#
        );
        let answered = bench(&text).call("act", json!({})).await.unwrap();
        assert_eq!(answered, Output::Text("q1 -32601".into()), "{method}");
    }
}

#[tokio::test]
async fn every_older_revision_is_spoken() {
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let text = "def act(id, arguments, request): say(id, 'done')\nserve(act)";
        let text = format!("{BEGIN}{text}").replace("2024-11-05", revision);
        let bench = Bench::script(&text).within(Duration::from_secs(20)).declaring("act");
        let done = bench.call("act", json!({})).await;
        assert_eq!(done.unwrap(), Output::Text("done".into()), "{revision}");
    }
}
