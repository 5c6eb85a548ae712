//! Servers on the network that want to know who is asking, as a package says it; and what is remembered
//! of servers from one run to the next.

use std::io::{Read, Write};
use std::net::TcpStream;

use host::{Kind, Output};
use manifest::model::{Auth, AuthKind, Input};
use serde_json::{Value, json};
use vault::{Owner, Place, Secret};

use crate::remote::Site;
use crate::support::{Bench, host_of, python_library};

/// A server of the protocol's own library behind a door: keys `k3y`, or tokens of its token endpoint, whose
/// refresh tokens are good for one use. It tells what it was asked.
const SERVER: &str = r#"
import json, os, urllib.parse, uvicorn, warnings
warnings.simplefilter("ignore")
try:
    from mcp.server import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server
server = Server("trial")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

app = server.streamable_http_app()
is_open = os.environ.get("DOOR") == "open"
seen = {"methods": [], "grants": [], "headers": []}
good, number, spent = set(), 0, set()

async def door(scope, receive, send):
    global number
    if scope["type"] != "http":
        return await app(scope, receive, send)
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)

    async def answer(status, said, headers=()):
        head = [(b"content-type", b"application/json"), *headers]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": json.dumps(said).encode()})

    if scope["path"] == "/seen":
        return await answer(200, seen)
    if scope["path"] == "/end":
        good.clear()
        return await answer(200, {})
    if scope["path"] == "/token":
        form = dict(urllib.parse.parse_qsl(body.decode()))
        seen["grants"].append(form.get("refresh_token", form["grant_type"]))
        if form.get("refresh_token") in spent:
            return await answer(400, {"error": "invalid_grant"})
        spent.add(form.get("refresh_token", ""))
        number += 1
        good.add(f"token-number-{number}")
        given = {"access_token": f"token-number-{number}", "token_type": "bearer"}
        return await answer(200, given | {"refresh_token": f"refresh-number-{number}"})
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    if not (is_open or bearer in good | {"k3y-of-owner"} or headers.get("x-api-key") == "k3y-of-owner"):
        seen["headers"].append(sorted(set(headers) & {"authorization", "x-api-key"}))
        return await answer(401, {}, [(b"www-authenticate", b'Bearer scope="a b"')])
    try:
        seen["methods"].append(json.loads(body)["method"])
    except Exception:
        pass
    sent = False

    async def again():
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    await app(scope, again, send)

uvicorn.run(door, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="error")
"#;

fn site(release: &str) -> Site {
    Site::start(&python_library(release), &["python3", "-c", SERVER])
}

/// What a server has seen.
fn seen(site: &Site, path: &str) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", site.port)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// A package that says who is asking by these variables, with these values in the vault.
fn bench(site: &Site, kind: AuthKind, values: &[(&str, &str)]) -> Bench {
    let mut bench = site.bench("/mcp").declaring("add");
    let names: Vec<_> = values.iter().map(|(name, _)| (*name).to_owned()).collect();
    let optional = |name: &String| Input { required: false, ..Input::secret(name) };
    bench.tool.package.inputs = names.iter().map(optional).collect();
    bench.tool.package.auth = Some(Auth { kind, scopes: Vec::new(), env: names, docs_url: None });
    for (name, value) in values {
        keep(&bench, name, value);
    }
    bench
}

fn place(bench: &Bench, name: &str) -> Place {
    Place::new(Owner::Package(bench.tool.package.canonical_id()), name).unwrap()
}

fn keep(bench: &Bench, name: &str, value: &str) {
    bench.vault.set(&place(bench, name), &Secret::new(value.to_owned()).unwrap()).unwrap();
}

fn kept(bench: &Bench, name: &str) -> String {
    bench.vault.get(&place(bench, name)).unwrap().unwrap().expose().to_owned()
}

async fn adds(bench: &Bench) {
    let sum = bench.call("add", json!({ "a": 2, "b": 40 })).await;
    assert_eq!(sum.unwrap(), Output::Json(json!({ "result": 42 })));
}

#[tokio::test]
async fn keys_are_told_as_the_package_wants_it() {
    let site = site("2");
    for kind in [AuthKind::Bearer, AuthKind::ApiKey, AuthKind::Oauth2] {
        Box::pin(adds(&bench(&site, kind, &[("TRIAL_KEY", "k3y-of-owner")]))).await;
    }
    assert_eq!(seen(&site, "/seen")["headers"], json!([]));
    let wrong = bench(&site, AuthKind::Bearer, &[("TRIAL_KEY", "another-key")]);
    let error = wrong.call("add", json!({ "a": 1, "b": 1 })).await.unwrap_err();
    assert_eq!((error.kind, &error.details["scopes"]), (Kind::NeedsLogin, &json!(["a", "b"])));
    let none = bench(&site, AuthKind::None, &[("TRIAL_KEY", "k3y-of-owner")]);
    let error = none.call("add", json!({ "a": 1, "b": 1 })).await.unwrap_err();
    assert_eq!(error.kind, Kind::NeedsLogin);
    let told = seen(&site, "/seen")["headers"].as_array().unwrap().clone();
    assert_eq!((told.first(), told.last()), (Some(&json!(["authorization"])), Some(&json!([]))));
}

#[tokio::test]
async fn an_account_fetches_tokens_and_its_newest_refresh_token_is_kept() {
    let site = site("2");
    let url = site.url("/token");
    let values = [
        ("TRIAL_TOKEN_URL", &*url),
        ("TRIAL_CLIENT_ID", "somebody"),
        ("TRIAL_REFRESH_TOKEN", "refresh-number-0"),
    ];
    let mut bench = bench(&site, AuthKind::Oauth2, &values);
    Box::pin(adds(&bench)).await;
    assert_eq!(kept(&bench, "TRIAL_REFRESH_TOKEN"), "refresh-number-1");
    Box::pin(adds(&bench)).await;
    assert_eq!(seen(&site, "/seen")["grants"], json!(["refresh-number-0"]), "it is used again");
    // A token that the server no longer takes is renewed, with what came along with it.
    seen(&site, "/end");
    Box::pin(adds(&bench)).await;
    assert_eq!(kept(&bench, "TRIAL_REFRESH_TOKEN"), "refresh-number-2");
    // So does another program, which knows nothing but what is kept.
    bench.host = host_of(&bench.home, &bench.vault, &bench.records);
    Box::pin(adds(&bench)).await;
    let grants = json!(["refresh-number-0", "refresh-number-1", "refresh-number-2"]);
    assert_eq!(seen(&site, "/seen")["grants"], grants);
}

#[tokio::test]
async fn the_era_of_a_server_is_remembered_from_one_run_to_the_next() {
    let older = Site::start(&python_library("1"), &["env", "DOOR=open", "python3", "-c", SERVER]);
    let mut bench = older.bench("/mcp").declaring("add");
    let asks = |site: &Site| {
        let seen = seen(site, "/seen");
        let methods = seen["methods"].as_array().unwrap().iter();
        methods.filter(|method| *method == "server/discover").count()
    };
    for _ in 0..3 {
        bench.host = host_of(&bench.home, &bench.vault, &bench.records);
        Box::pin(adds(&bench)).await;
        assert_eq!(asks(&older), 1, "the question is asked once");
    }
    // Another release at the same place is of another era, and is found out.
    let port = older.port;
    drop(older);
    let argv = ["env", "DOOR=open", "python3", "-c", SERVER];
    let newer = Site::at(port, &python_library("2"), &argv);
    bench.host = host_of(&bench.home, &bench.vault, &bench.records);
    Box::pin(adds(&bench)).await;
    drop(newer);
}
