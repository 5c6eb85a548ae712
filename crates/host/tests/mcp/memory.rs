//! What is remembered of servers on the network from one run to the next.

use std::io::{Read, Write};
use std::net::TcpStream;

use host::Output;
use serde_json::{Value, json};

use crate::remote::Site;
use crate::support::{Bench, host_of, python_library};

/// A server of the protocol's own library, which tells what it was asked.
const SERVER: &str = r#"
import json, os, uvicorn, warnings
warnings.simplefilter("ignore")
try:
    from mcp.server import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server
server = Server("trial")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

app = server.sse_app() if os.environ.get("WAY") == "sse" else server.streamable_http_app()
seen = []

async def door(scope, receive, send):
    if scope["type"] != "http":
        return await app(scope, receive, send)
    if scope["path"] == "/seen":
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        return await send({"type": "http.response.body", "body": json.dumps(seen).encode()})
    if scope["method"] == "GET":
        return await app(scope, receive, send)
    body, more, sent = b"", True, False
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    seen.append([scope["path"], json.loads(body or b"{}").get("method")])

    async def again():
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    await app(scope, again, send)

uvicorn.run(door, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="error")
"#;

/// What a server has seen.
fn seen(site: &Site) -> Vec<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", site.port)).unwrap();
    write!(stream, "GET /seen HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

async fn adds(bench: &Bench) {
    let sum = bench.call("add", json!({ "a": 2, "b": 40 })).await;
    assert_eq!(sum.unwrap(), Output::Json(json!({ "result": 42 })));
}

#[tokio::test]
async fn the_era_of_a_server_is_remembered_from_one_run_to_the_next() {
    let older = Site::start(&python_library("1"), &["python3", "-c", SERVER]);
    let mut bench = older.bench("/mcp").declaring("add");
    let asks = |site: &Site| seen(site).iter().filter(|one| one[1] == "server/discover").count();
    for _ in 0..3 {
        bench.host = host_of(&bench.home, &bench.vault, &bench.records);
        Box::pin(adds(&bench)).await;
        assert_eq!(asks(&older), 1, "the question is asked once");
    }
    // Another release at the same place is of another era, and is found out.
    let port = older.port;
    drop(older);
    let newer = Site::at(port, &python_library("2"), &["python3", "-c", SERVER]);
    bench.host = host_of(&bench.home, &bench.vault, &bench.records);
    Box::pin(adds(&bench)).await;
    drop(newer);
}

#[tokio::test]
async fn that_a_server_only_knows_the_oldest_way_is_remembered() {
    let site = Site::start(&python_library("1"), &["env", "WAY=sse", "python3", "-c", SERVER]);
    let mut bench = site.bench("/sse").declaring("add");
    let failing = |site: &Site| seen(site).iter().filter(|one| one[0] == "/sse").count();
    bench.host = host_of(&bench.home, &bench.vault, &bench.records);
    Box::pin(adds(&bench)).await;
    let first = failing(&site);
    bench.host = host_of(&bench.home, &bench.vault, &bench.records);
    Box::pin(adds(&bench)).await;
    assert_eq!((first > 0, failing(&site)), (true, first));
}
