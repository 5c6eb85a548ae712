//! When servers begin and end: with the first call, when they have had nothing to do for a while, and less and less often where
//! they fall.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use host::{CallError, CancellationToken, Kind, Output, Replied, Request, SWITCHED_OFF, Watching};
use policy::Surface;
use serde_json::{Value, json};

use crate::hostile::BEGIN;
use crate::support::Bench;

/// Says how often it was called, and what it was told of resources.
const SERVER: &str = r#"
calls, told = 0, []
for line in sys.stdin:
    request = json.loads(line)
    id, method = request.get("id"), request["method"]
    if method == "initialize":
        answer(id, {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}, "resources": {"subscribe": True}}, "serverInfo": {"name": "x", "version": "1"}})
    elif method == "tools/list":
        answer(id, {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        calls += 1
        say(id, json.dumps([calls, told]))
    elif method.startswith("resources/"):
        told.append(method.removeprefix("resources/") + " " + request["params"]["uri"])
        answer(id, {})
    elif id is not None:
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "what?"}})
"#;

/// The same of the newer era, which says for what it was listened to.
const NEWER: &str = r#"
told = []
about = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
for line in sys.stdin:
    request = json.loads(line)
    id, method = request.get("id"), request["method"]
    if method == "server/discover":
        answer(id, {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "serverInfo": {"name": "x", "version": "1"}, **about})
    elif method == "tools/list":
        answer(id, {"tools": [{"name": "act", "inputSchema": {"type": "object"}}], **about})
    elif method == "tools/call":
        answer(id, {"content": [{"type": "text", "text": json.dumps(told)}], "resultType": "complete"})
    elif method == "subscriptions/listen":
        wanted = request["params"]["notifications"]
        told.append(len(wanted.get("resourceSubscriptions", [])))
        params = {"notifications": wanted, "_meta": {"io.modelcontextprotocol/subscriptionId": id}}
        send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
"#;

fn bench(idle: Duration) -> Bench {
    bench_of(SERVER, idle)
}

/// The same, and the server never answers to such a request.
fn silent_on(method: &str) -> Bench {
    let answers = "answer(id, {})";
    assert_eq!(SERVER.matches(answers).count(), 1);
    let server = SERVER.replace(answers, &format!("if method != \"{method}\": {answers}"));
    bench_of(&format!("{}\n{server}", marked(method)), Duration::from_mins(1))
}

/// What stands in the command of such a server, and in no other.
fn marked(method: &str) -> String {
    format!("# {} {method}", std::process::id())
}

/// Whether a process of it is there.
fn runs(method: &str) -> bool {
    let mark = marked(method);
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut words = processes.filter_map(|one| std::fs::read(one.path().join("cmdline")).ok());
    words.any(|words| String::from_utf8_lossy(&words).contains(&mark))
}

fn bench_of(server: &str, idle: Duration) -> Bench {
    let text = format!("{BEGIN}{server}");
    let mut bench = Bench::script(&text).within(Duration::from_secs(20)).declaring("act");
    bench.host = bench.host.keeping_idle_for(idle);
    bench
}

async fn says(bench: &Bench) -> Value {
    match bench.call("act", json!({})).await {
        Ok(Output::Json(said)) => said,
        other => panic!("{other:?}"),
    }
}

async fn watch(bench: &Bench, uri: &str) -> Watching {
    let replied = ask(bench, "resources/subscribe", uri, &CancellationToken::new()).await;
    replied.unwrap().watching.unwrap()
}

async fn ask(
    bench: &Bench,
    method: &str,
    uri: &str,
    off: &CancellationToken,
) -> Result<Replied, CallError> {
    let (params, surface) = (json!({ "uri": uri }), Surface::Terminal);
    let request = Request { method, params, surface: &surface, peer: None, progress: None };
    bench.host.request(&bench.tool, request, off).await
}

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what} has not come to be");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_server_runs_from_the_first_call_on_until_it_has_nothing_to_do() {
    let bench = bench(Duration::from_secs(2));
    assert!(!bench.host.is_busy(), "nothing was called");
    assert_eq!(says(&bench).await, json!([1, []]));
    assert_eq!(says(&bench).await, json!([2, []]));
    assert!(bench.host.is_busy());
    until("its end", async || !bench.host.is_busy()).await;
    assert_eq!(says(&bench).await, json!([1, []]));
}

#[tokio::test]
async fn a_server_is_not_idle_while_somebody_watches_and_is_told_when_nobody_does_any_more() {
    let idle = Duration::from_millis(600);
    let bench = bench(idle);
    let (one, other) = (watch(&bench, "x://a").await, watch(&bench, "x://a").await);
    // It is asked once for all of them.
    let told = json!(["subscribe x://a"]);
    assert_eq!(says(&bench).await, json!([1, told]));
    drop(one);
    tokio::time::sleep(idle * 3).await;
    assert!(other.is_well());
    assert_eq!(says(&bench).await, json!([2, told]));
    drop(other);
    let told = json!(["subscribe x://a", "unsubscribe x://a"]);
    until("its news", async || says(&bench).await[1] == told).await;
    until("its end", async || !bench.host.is_busy()).await;
}

#[tokio::test]
async fn a_server_of_the_newer_era_is_listened_to_anew_for_many_resources_at_once() {
    let bench = bench_of(NEWER, Duration::from_mins(1));
    bench.host.listen(|_, _| {});
    let uris: Vec<_> = (0..200).map(|number| format!("x://{number}")).collect();
    let watching = join_all(uris.iter().map(|uri| watch(&bench, uri))).await;
    let begun = says(&bench).await.as_array().unwrap().clone();
    assert!(begun.last().unwrap() == 200 && begun.len() < 50, "{begun:?}");
    drop(watching);
    until("its news", async || says(&bench).await.as_array().unwrap().last().unwrap() == 0).await;
    let all = says(&bench).await.as_array().unwrap().clone();
    assert!(all.len() - begun.len() < 50, "{all:?}");
}

#[tokio::test]
async fn whoever_watches_knows_when_the_server_is_not_there_any_more() {
    let bench = bench(Duration::from_mins(1));
    let watching = watch(&bench, "x://a").await;
    assert!(watching.is_well());
    bench.host.retire(&bench.tool.package.canonical_id());
    until("its end", async || !watching.is_well()).await;
    // The next one is told anew.
    let again = watch(&bench, "x://a").await;
    assert_eq!(says(&bench).await, json!([1, ["subscribe x://a"]]));
    assert!(again.is_well());
}

#[tokio::test]
async fn what_is_called_off_before_it_is_watched_need_not_be_told_of() {
    let (bench, off) = (silent_on("resources/subscribe"), CancellationToken::new());
    let asked = ask(&bench, "resources/subscribe", "x://a", &off);
    let leaving = async {
        until("its news", async || says(&bench).await[1] == json!(["subscribe x://a"])).await;
        off.cancel();
    };
    let (asked, ()) = join(asked, leaving).await;
    assert_eq!(asked.unwrap_err().kind, Kind::Cancelled);
    let told = json!(["subscribe x://a", "unsubscribe x://a"]);
    until("its news", async || says(&bench).await[1] == told).await;
}

#[tokio::test]
async fn a_server_that_does_not_say_whether_it_tells_is_still_called() {
    let (bench, off) = (silent_on("resources/subscribe"), CancellationToken::new());
    let uris: Vec<_> = (0..100).map(|number| format!("x://{number}")).collect();
    let asked = join_all(uris.iter().map(|uri| ask(&bench, "resources/subscribe", uri, &off)));
    let calling = async {
        until("many questions", async || {
            says(&bench).await[1].as_array().is_some_and(|told| told.len() >= 32)
        })
        .await;
        for _ in 0..3 {
            says(&bench).await;
        }
        off.cancel();
    };
    let (asked, ()) = join(asked, calling).await;
    assert!(asked.into_iter().all(|one| one.unwrap_err().kind == Kind::Cancelled));
}

#[tokio::test]
async fn a_server_that_is_taken_back_ends_although_it_does_not_say_that_it_tells_no_more() {
    let method = "resources/unsubscribe";
    let bench = silent_on(method);
    let uris: Vec<_> = (0..100).map(|number| format!("x://{number}")).collect();
    let watching = join_all(uris.iter().map(|uri| watch(&bench, uri))).await;
    assert!(runs(method));
    drop(watching);
    until("its news", async || says(&bench).await[1].to_string().contains("unsubscribe")).await;
    let began = Instant::now();
    bench.host.end(&bench.tool.package.canonical_id());
    until("its end", async || !runs(method)).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_is_asked_of_a_server_that_is_switched_off_meanwhile_is_told_so() {
    let (bench, off) = (silent_on("resources/read"), CancellationToken::new());
    let asked = ask(&bench, "resources/read", "x://a", &off);
    let ending = async {
        until("its news", async || says(&bench).await[1] == json!(["read x://a"])).await;
        bench.host.end(&bench.tool.package.canonical_id());
    };
    let (asked, ()) = join(asked, ending).await;
    assert_eq!(asked.unwrap_err().message, SWITCHED_OFF);
}

#[tokio::test]
async fn a_server_that_falls_before_it_greets_is_started_less_and_less_often() {
    let bench = Bench::script("import sys; sys.exit(3)").declaring("act");
    let fall = async || bench.call("act", json!({})).await.unwrap_err();
    for _ in 0..3 {
        let error = fall().await;
        assert!(error.message.contains("code 3"), "{error}");
    }
    // How long is left at most, after so many falls.
    let mut pauses = BTreeMap::<u32, f64>::new();
    let deadline = Instant::now() + Duration::from_secs(30);
    while pauses.len() < 3 {
        assert!(Instant::now() < deadline, "{pauses:?}");
        let error = fall().await;
        let Some(rest) = error.message.strip_prefix("the server fell ") else { continue };
        assert_eq!(error.kind, Kind::Unavailable);
        assert!(error.passes_after.is_some(), "{error:?}");
        let (falls, rest) = rest
            .split_once(" times before it had served anybody; it is started again in ")
            .unwrap();
        let left: f64 = rest.strip_suffix(" s").unwrap().parse().unwrap();
        let most = pauses.entry(falls.parse().unwrap()).or_default();
        *most = most.max(left);
    }
    let pauses: Vec<_> = pauses.into_values().collect();
    assert!(pauses.is_sorted_by(|one, next| one < next), "{pauses:?}");
}
