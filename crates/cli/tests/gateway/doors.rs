//! Who is let in over HTTP, and what is said to the others.

use serde_json::json;

use crate::common::Desk;
use crate::gate::{Gate, NEWER, OPEN, home, server, words};

fn greeting() -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
}

fn with_token(desk: &Desk, arguments: &[&str]) -> String {
    let made = desk.done(&[&["token", "new"], arguments].concat());
    format!("Bearer {}", made.stdout.trim())
}

#[test]
fn strangers_are_refused_before_anything_is_read() {
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    for (host, origin) in [
        ("evil.example", None),
        ("localhost.evil.example", None),
        ("localhost", Some("http://evil.example")),
        ("localhost", Some("null")),
    ] {
        let mut headers = vec![("host", host)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        for path in ["/mcp", "/healthz", "/nothing"] {
            let answer = gate.post(path, &headers, &greeting());
            assert_eq!(answer.status, 403, "{host} {origin:?} {path}");
        }
    }
    let own = format!("http://{}", gate.address);
    assert_eq!(gate.post("/mcp", &[("origin", &own)], &greeting()).status, 200);
}

#[test]
fn whoever_shows_no_token_that_counts_is_told_so() {
    let desk = home(&[], OPEN);
    let good = with_token(&desk, &["laptop"]);
    let short = with_token(&desk, &["short", "--expires", "1ms"]);
    let gate = Gate::open(&desk, &[]);
    let one_off = format!("{}x", &good[..good.len() - 1]);
    for shown in [
        None,
        Some("Bearer haft_nothing"),
        Some(&*one_off),
        Some("Basic YTpi"),
        Some(&*short),
        Some("Bearer "),
    ] {
        let headers: Vec<_> = shown.map(|shown| ("authorization", shown)).into_iter().collect();
        let answer = gate.post("/mcp", &headers, &greeting());
        assert_eq!(answer.status, 401, "{shown:?}");
        assert!(answer.headers["www-authenticate"].starts_with("Bearer"));
    }
    // A token in an address is none.
    let in_address = format!("/mcp?access_token={}", good.strip_prefix("Bearer ").unwrap());
    assert_eq!(gate.post(&in_address, &[], &greeting()).status, 401);
    assert_eq!(gate.post("/mcp", &[("authorization", &good)], &greeting()).status, 200);
    // It counts no more as soon as it is taken away.
    desk.done(&["token", "rm", "laptop"]);
    assert_eq!(gate.post("/mcp", &[("authorization", &good)], &greeting()).status, 401);
}

#[test]
fn tokens_are_shown_once_and_kept_as_digests() {
    let desk = home(&[], OPEN);
    let made = desk.done(&["token", "new", "ci", "--role", "installer", "--json"]).json();
    let secret = made["token"].as_str().unwrap();
    let listed = desk.done(&["token", "show"]);
    assert!(listed.stdout.starts_with("ci installer since"), "{}", listed.stdout);
    assert!(!listed.stdout.contains(secret));
    let kept = std::fs::read_to_string(desk.path("home/tokens.json")).unwrap();
    assert!(!kept.contains(secret));
    desk.refused(&["token", "new", "ci"], 5, "already");
    desk.refused(&["token", "new", "a b"], 2, "letters");
    desk.refused(&["token", "new", "x", "--profile", "none"], 3, "no profile");
    desk.refused(&["token", "new", "x", "--role", "king"], 2, "no such role");
    desk.refused(&["token", "rm", "nobody"], 3, "no token");
    desk.refused(&["serve", "--listen", "0.0.0.0:0", "--without-token"], 2, "this machine alone");
    desk.refused(&["serve", "--host", "bad host"], 2, "write a name such as");
    // One whose time is over is told from one that counts.
    desk.done(&["token", "new", "short", "--expires", "1ms"]);
    std::thread::sleep(std::time::Duration::from_millis(5));
    let listed = desk.done(&["token", "show"]).stdout;
    assert!(listed.lines().any(|one| one.starts_with("short") && one.contains("counts no more")));
    let all = desk.done(&["token", "show", "--json"]).json();
    assert_eq!((&all[0]["expired"], &all[1]["expired"]), (&false.into(), &true.into()), "{all}");
    std::fs::write(desk.path("home/tokens.json"), "what is this").unwrap();
    desk.refused(&["token", "show"], 6, "make the tokens anew");
}

#[test]
fn the_owner_hears_that_no_token_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let desk = home(&[], OPEN);
    let good = with_token(&desk, &["laptop"]);
    let (tokens, log) = (desk.path("home/tokens.json"), desk.path("said"));
    let saying = std::fs::File::create(&log).unwrap();
    let gate = Gate::open_saying(&desk, &[], &[], saying.into());
    let said = || std::fs::read_to_string(&log).unwrap();
    let ask = || gate.post("/mcp", &[("authorization", &good)], &greeting()).status;
    assert_eq!((ask(), said().as_str()), (200, ""));
    std::fs::set_permissions(&tokens, PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!((ask(), ask()), (401, 401));
    let told = said();
    assert!(told.starts_with("warning: no token lets anybody in: "), "{told}");
    assert!(told.contains("tokens.json") && told.contains("chmod 600"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    std::fs::set_permissions(&tokens, PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(ask(), 200);
    std::fs::write(&tokens, "[").unwrap();
    assert_eq!((ask(), ask()), (401, 401));
    assert_eq!(said().lines().count(), 2, "{}", said());
    drop(gate);
    // It is told at the start too, before anybody is refused.
    let saying = std::fs::File::create(&log).unwrap();
    let _gate = Gate::open_saying(&desk, &[], &[], saying.into());
    assert!(said().contains("no token lets anybody in"), "{}", said());
}

#[test]
fn programs_are_told_in_json_that_there_is_nothing() {
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    for path in ["/v1/nothing", "/v1", "/capability/nothing", "/capability/get", "/metrics/a"] {
        let answer = gate.send("GET", path, &[], "");
        assert_eq!((answer.status, &*answer.headers["content-type"]), (404, "application/json"));
        let told: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(told["error"]["code"], "not_found", "{path}: {told}");
        assert!(told["error"]["message"].is_string(), "{path}: {told}");
    }
    for path in ["/mcp/a/b", "/mcp/raw", "/mcp/"] {
        let answer = gate.post(path, &[], &greeting());
        let told: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((answer.status, &told["jsonrpc"]), (404, &json!("2.0")), "{path}: {told}");
        assert!(told["error"]["message"].is_string(), "{path}: {told}");
    }
    // People are shown a page.
    let answer = gate.send("GET", "/nothing", &[], "");
    assert!(answer.status == 404 && answer.headers["content-type"].starts_with("text/html"));
}

#[test]
fn a_session_is_its_own_and_ends() {
    let desk = home(&[], OPEN);
    let (one, other) = (with_token(&desk, &["one"]), with_token(&desk, &["other"]));
    let gate = Gate::open(&desk, &[]);
    let greeted = gate.post("/mcp", &[("authorization", &one)], &greeting());
    let session = greeted.headers["mcp-session-id"].clone();
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let ask = |token: &str, session: &str| {
        gate.post("/mcp", &[("authorization", token), ("mcp-session-id", session)], &list).status
    };
    assert_eq!(ask(&one, &session), 200);
    assert_eq!(ask(&other, &session), 404);
    assert_eq!(ask(&one, "nothing"), 404);
    let own = [("authorization", &*one), ("mcp-session-id", &*session)];
    let unknown = [&own[..], &[("mcp-protocol-version", "2099-01-01")]].concat();
    assert_eq!(gate.post("/mcp", &unknown, &list).status, 400);
    assert_eq!(gate.send("DELETE", "/mcp", &own, "").status, 204);
    assert_eq!(ask(&one, &session), 404);
    assert_eq!(gate.send("GET", "/mcp", &[("authorization", &one)], "").status, 405);
}

#[test]
fn a_request_of_the_newer_era_is_whole_or_refused() {
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let whole = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": NEWER, "io.modelcontextprotocol/clientCapabilities": {} } });
    let ask = |headers: &[(&str, &str)], params: &serde_json::Value| {
        let answer = gate.post(
            "/mcp",
            headers,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params }),
        );
        (answer.status, answer.last()["error"]["code"].as_i64())
    };
    let (version, method) = (("mcp-protocol-version", NEWER), ("mcp-method", "tools/list"));
    assert_eq!(ask(&[version, method], &whole), (200, None));
    assert_eq!(ask(&[version, method], &json!({})), (400, Some(-32602)));
    assert_eq!(ask(&[version], &whole), (400, Some(-32020)));
    assert_eq!(ask(&[method], &whole), (400, Some(-32020)));
    assert_eq!(ask(&[version, ("mcp-method", "tools/call")], &whole), (400, Some(-32020)));
    assert_eq!(ask(&[("mcp-protocol-version", "2025-11-25"), method], &whole), (400, Some(-32020)));
    for (body, status) in [("{", 400), ("[]", 400), ("", 400), ("7", 400)] {
        let answer = gate.send("POST", "/mcp", &[version, method], body);
        assert_eq!(answer.status, status, "{body}");
    }
    let unknown = gate.ask_as("/mcp", &[], &json!({}), "no/such", json!({}));
    assert_eq!((unknown.status, unknown.last()["error"]["code"].as_i64()), (404, Some(-32601)));
}

#[test]
fn bad_arguments_are_a_result_and_an_unknown_tool_is_an_error() {
    let desk = Desk::new();
    let path = server(desk.0.path(), "plain", "say", "return arguments.get('words')");
    let desk = home(&[("plain", &path)], OPEN);
    desk.done(&[
        "install",
        crate::common::repository().join("examples/mcpkg/echo").to_str().unwrap(),
        "--yes",
    ]);
    let gate = Gate::open(&desk, &["--without-token"]);
    assert_eq!(words(&gate.call("/mcp", "plain_say", json!({ "words": "hi" }))), "hi");
    let unknown = gate.ask("/mcp", "tools/call", json!({ "name": "nobody" }));
    assert_eq!(unknown["error"]["code"], -32602);
    let listed = gate.ask("/mcp", "tools/list", json!({}));
    let echo = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["_meta"]["haft/id"] == "mcpkg:demo.echo")
        .unwrap();
    let bad = gate.call("/mcp", echo["name"].as_str().unwrap(), json!({}));
    assert_eq!(
        (bad["isError"].as_bool(), bad["structuredContent"]["error"]["code"].as_str()),
        (Some(true), Some("bad_input"))
    );
    let good = gate.call("/mcp", echo["name"].as_str().unwrap(), json!({ "message": "hi" }));
    assert_eq!(good["structuredContent"]["message"], "hi", "{good}");
}
