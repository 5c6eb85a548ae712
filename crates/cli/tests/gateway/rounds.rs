//! Servers that want their call made again, and what they say that an era does not know.

use serde_json::{Value, json};

use crate::common::Desk;
use crate::gate::{Gate, Joined, OPEN, home, newer, speaking, words};

#[test]
fn a_server_that_wants_only_to_be_asked_again_is() {
    let scripts = Desk::new();
    let again = r#"{"resultType": "input_required", "requestState": "seen"} if "requestState" not in params else words("after " + params["requestState"])"#;
    let path = newer(scripts.0.path(), "twice", "", again);
    let desk = home(&[("twice", &path)], OPEN);
    // For a client of the older era, which never hears of it.
    let mut older = Joined::greeted(&desk, &[], &json!({}));
    assert_eq!(words(&older.call("twice_work", json!({}))), "after seen");
    // One of the newer asks again itself.
    let gate = Gate::open(&desk, &["--without-token"]);
    let ask = |more: Value| {
        let mut params = json!({ "name": "twice_work", "arguments": {} });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        gate.ask("/mcp", "tools/call", params)["result"].clone()
    };
    let told = ask(json!({}));
    assert_eq!(told["resultType"], "input_required", "{told}");
    assert_eq!(told.get("inputRequests"), None, "{told}");
    let done = ask(json!({ "requestState": told["requestState"] }));
    assert_eq!(words(&done), "after seen", "{done}");
}

#[test]
fn what_a_server_asked_for_is_not_lost_while_the_owner_is_asked() {
    let scripts = Desk::new();
    let again = r#"{"resultType": "input_required", "requestState": "seen"} if "requestState" not in params else words("after " + params["requestState"])"#;
    let path = newer(scripts.0.path(), "twice", "", again);
    let desk = home(&[("twice", &path)], "[approval]\nundeclared = \"ask\"\n");
    let mut older = Joined::greeted(&desk, &[], &json!({ "elicitation": {} }));
    older.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "twice_work", "arguments": {} } }));
    // Each time that it is called, since that is what the policy says.
    for _ in 0..2 {
        let asked = older.next();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let allowed = json!({ "action": "accept", "content": { "decision": "allow" } });
        older.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": allowed }));
    }
    let told = older.next();
    assert_eq!((&told["id"], words(&told["result"])), (&json!(7), "after seen"), "{told}");
}

#[test]
fn a_server_that_asks_for_ever_is_not_asked_for_ever() {
    let scripts = Desk::new();
    let again = r#"{"resultType": "input_required", "requestState": "more"}"#;
    let path = newer(scripts.0.path(), "more", "", again);
    let desk = home(&[("more", &path)], OPEN);
    let mut older = Joined::greeted(&desk, &[], &json!({}));
    let told = older.ask("tools/call", &json!({ "name": "more_work", "arguments": {} }));
    assert_eq!(told["error"]["code"], -32603, "{told}");
    // One that wants nothing at all has failed.
    let scripts = Desk::new();
    let path = newer(scripts.0.path(), "none", "", r#"{"resultType": "input_required"}"#);
    let desk = home(&[("none", &path)], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let told = gate.call("/mcp", "none_work", json!({}));
    assert_eq!(told["isError"], true, "{told}");
}

#[test]
fn only_the_older_era_hears_of_a_page_that_is_to_be_visited_by_its_code() {
    let scripts = Desk::new();
    let visit = r#"
def visit():
    data = {"elicitations": [{"mode": "url", "elicitationId": "1", "url": "https://example.com/", "message": "sign in"}]}
    _say({"id": message["id"], "error": {"code": -32042, "message": "first sign in", "data": data}})
    return {}
"#;
    let tools =
        r#"[{"name": "visit", "description": "Visits", "inputSchema": {"type": "object"}}]"#;
    let path = speaking(scripts.0.path(), "older", visit, tools, "visit()");
    let desk = home(&[("older", &path)], OPEN);
    let call = json!({ "name": "older_visit", "arguments": {} });
    let mut older = Joined::greeted(&desk, &[], &json!({ "elicitation": { "url": {} } }));
    let told = older.ask("tools/call", &call);
    assert_eq!(told["error"]["code"], -32042, "{told}");
    let gate = Gate::open(&desk, &["--without-token"]);
    let told = gate.ask("/mcp", "tools/call", call);
    assert_eq!(
        (&told["error"]["code"], &told["error"]["message"]),
        (&json!(-32603), &json!("first sign in")),
        "{told}"
    );
}

#[test]
fn what_is_read_is_kept_for_its_client_alone() {
    let scripts = Desk::new();
    let read = r#"{"contents": [{"uri": "test://a", "text": "a"}], "ttlMs": 1000, "cacheScope": "public"} if method == "resources/read" else {"resources": [{"uri": "test://a", "name": "a"}], "resourceTemplates": [], "ttlMs": 1000, "cacheScope": "public"}"#;
    let path = newer(scripts.0.path(), "open", "", read);
    let desk = home(&[("open", &path)], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let told = gate.ask("/mcp", "resources/read", json!({ "uri": "test://a" }));
    assert_eq!(told["result"]["contents"][0]["text"], "a", "{told}");
    assert_eq!(told["result"]["cacheScope"], "private", "{told}");
}
