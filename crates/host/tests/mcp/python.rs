//! Servers made with the protocol's own library in Python, one of each era.

use std::time::{Duration, Instant};

use host::{Era, Kind, Output, Warmth};
use serde_json::json;

use crate::support::{Bench, python_library};

/// The same tools for both releases of the library.
const TOOLS: &str = r#"
import asyncio, os, sys

@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b

@server.tool()
def fail(why: str) -> str:
    """Always fails."""
    raise ValueError(why)

@server.tool()
async def sleep(seconds: float) -> str:
    """Sleeps."""
    await asyncio.sleep(seconds)
    return "awake"

@server.tool()
def crash(code: int) -> str:
    """Ends the server."""
    print("last words", file=sys.stderr, flush=True)
    os._exit(code)

@server.tool()
def number() -> int:
    """The number of the process."""
    return os.getpid() * 0 + id(server)

@server.tool()
def reach(host: str) -> str:
    """Tries to reach a host."""
    import urllib.request
    with urllib.request.urlopen("http://" + host, timeout=5) as answer:
        return answer.read().decode()

server.run()
"#;

fn bench(release: &str, begin: &str) -> Bench {
    let root = python_library(release);
    let text = format!("{begin}{TOOLS}");
    Bench::command(&root, &["python3", "-c", &text]).within(Duration::from_mins(1))
}

fn older() -> Bench {
    bench("1", "from mcp.server.fastmcp import FastMCP\nserver = FastMCP('trial')\n")
}

/// What only the newer release can do: ask its user something by its answer.
const NEWER: &str = r#"
from mcp.server import MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
server = MCPServer("trial")

@server.tool()
def ask() -> InputRequiredResult:
    """Asks who is there."""
    schema = {"type": "object", "properties": {}}
    question = ElicitRequestFormParams(message="Who is there?", requested_schema=schema)
    return InputRequiredResult(input_requests={"who": ElicitRequest(params=question)})
"#;

fn newer() -> Bench {
    bench("2", NEWER)
}

async fn tells_success_from_failure(mut bench: Bench, era: Era) {
    let names = bench.discover().await;
    assert_eq!(bench.eras.last(), Some(era));
    assert!(names.contains(&"add".to_owned()), "{names:?}");
    let sum = bench.call("add", json!({ "a": 2, "b": 40 })).await.unwrap();
    assert_eq!(sum, Output::Json(json!({ "result": 42 })));
    let error = bench.call("fail", json!({ "why": "no room" })).await.unwrap_err();
    assert_eq!(error.kind, Kind::Failed);
    assert!(error.message.contains("fail"), "{error}");
    let error = bench.call("add", json!({ "a": "x", "b": 1 })).await.unwrap_err();
    assert_eq!(error.kind, Kind::BadInput);
    let bench = bench.declaring("nothing");
    let error = bench.call("nothing", json!({})).await.unwrap_err();
    assert!(matches!(error.kind, Kind::Unknown | Kind::Failed), "{error:?}");
}

#[tokio::test]
async fn a_server_of_the_older_era_is_understood() {
    Box::pin(tells_success_from_failure(older(), Era::Handshake)).await;
}

#[tokio::test]
async fn a_server_of_the_newer_era_is_understood() {
    Box::pin(tells_success_from_failure(newer(), Era::Stateless)).await;
}

#[tokio::test]
async fn a_server_that_crashed_is_told_and_the_next_call_has_a_new_one() {
    for mut bench in [older(), newer()] {
        bench.discover().await;
        let error = bench.call("crash", json!({ "code": 3 })).await.unwrap_err();
        assert_eq!(error.kind, Kind::Failed);
        assert_eq!(error.details["exit"], 3);
        assert!(error.details["stderr"].as_str().unwrap().contains("last words"), "{error:?}");
        bench.call("add", json!({ "a": 1, "b": 1 })).await.unwrap();
        let second = bench.call("number", json!({})).await.unwrap();
        let third = bench.call("number", json!({})).await.unwrap();
        assert_eq!(second, third);
    }
}

#[tokio::test]
async fn calls_overlap_in_one_server_and_one_that_is_dropped_disturbs_nobody() {
    for mut bench in [older(), newer()] {
        bench.discover().await;
        bench.call("add", json!({ "a": 1, "b": 1 })).await.unwrap();
        let sleep = |seconds: f64| bench.call("sleep", json!({ "seconds": seconds }));
        let began = Instant::now();
        // The future of one is dropped after a moment, so the server is told that nobody waits for it.
        let dropped = tokio::time::timeout(Duration::from_millis(200), sleep(30.0));
        let (dropped, ..) =
            tokio::join!(dropped, sleep(1.0), sleep(1.0), sleep(1.0), sleep(1.0), sleep(1.0));
        assert!(dropped.is_err());
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        bench.call("add", json!({ "a": 1, "b": 1 })).await.unwrap();
    }
}

#[tokio::test]
async fn what_a_server_may_not_reach_is_told() {
    let mut bench = newer();
    bench.discover().await;
    let input = json!({ "host": "example.com" });
    let (reply, _) = bench.ask("reach", input, Warmth::Warm, None).await;
    assert_eq!(reply.unwrap_err().kind, Kind::Failed);
}

#[tokio::test]
async fn a_question_of_a_tool_is_told_with_the_failure() {
    let mut bench = newer();
    bench.discover().await;
    let error = bench.call("ask", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unfinished);
    assert!(error.message.contains("Who is there?"), "{error}");
    assert!(error.details["inputRequests"]["who"].is_object(), "{error:?}");
}
