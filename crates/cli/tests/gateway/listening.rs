//! What a server of the newer era tells of, behind a URL or pipes: it reaches clients of both eras.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::common::{Desk, repository, write_below};
use crate::gate::{Joined, NEWER, OPEN, conformance, home, until};
use crate::program::Program;

/// Such a server, and a home that has it.
fn ready() -> (Desk, Program) {
    let far = repository().join("crates/cli/tests/gateway/peers/far.py");
    let far = Program::start(Command::new("python3").arg(far));
    let desk = home(&[], OPEN);
    let url = format!("http://{}/mcp", far.host());
    let settings = json!({ "mcpServers": { "far": { "type": "http", "url": url } } });
    let file = write_below(desk.0.path(), "servers.json", &settings.to_string());
    desk.done(&["grant", "server-json:imported/far", "--host", &far.host()]);
    desk.done(&["import", &file, "--yes"]);
    (desk, far)
}

/// The tool that has the server tell of something.
fn tool(client: &mut Joined) -> String {
    let listed = client.ask("tools/list", &json!({}));
    let name = listed["result"]["tools"][0]["name"].as_str().unwrap_or_else(|| panic!("{listed}"));
    assert!(name.ends_with("touch"), "{name}");
    name.to_owned()
}

/// Has the server tell of something, without waiting for the answer: each time by a request of another name.
fn touch(client: &mut Joined, tool: &str, what: &str) {
    static TOUCHED: AtomicU64 = AtomicU64::new(0);
    let id = format!("{what} {}", TOUCHED.fetch_add(1, Ordering::Relaxed));
    let params = json!({ "name": tool, "arguments": { "what": what } });
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
}

/// Waits until a client is told something, and says what.
fn told(client: &mut Joined, method: &str) -> Value {
    loop {
        let message = client.next();
        // Nobody would be waited for in vain.
        let answered = message["result"]["content"][0]["text"].as_str().unwrap_or("told");
        assert!(answered.starts_with("told") && answered != "told 0", "{message}");
        if message["method"] == method {
            return message["params"].clone();
        }
    }
}

/// A client of the newer era, which listens.
fn listener(desk: &Desk, wanted: &Value) -> Joined {
    let mut client = Joined::new(desk, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": NEWER,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "_meta": meta, "notifications": wanted });
    client.send(
        &json!({ "jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": params }),
    );
    let accepted = told(&mut client, "notifications/subscriptions/acknowledged");
    assert_eq!(&accepted["notifications"], wanted);
    client
}

fn log(far: &Program) -> Value {
    let url = format!("http://{}/log", far.host());
    let ran = Command::new("curl").args(["-sS", &url]).output().unwrap();
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn what_a_newer_server_tells_of_reaches_clients_of_both_eras() {
    let (desk, far) = ready();
    let mut older = Joined::greeted(&desk, &[], &json!({}));
    let tool = tool(&mut older);
    let mut newer = listener(&desk, &json!({ "promptsListChanged": true }));
    touch(&mut older, &tool, "prompts");
    told(&mut older, "notifications/prompts/list_changed");
    let params = told(&mut newer, "notifications/prompts/list_changed");
    assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], 3);
    // It is listened to once, for what it says that it tells of.
    let lists = json!({ "toolsListChanged": true, "promptsListChanged": true });
    assert_eq!(log(&far), json!([lists]));
    // When it hangs up, it is listened to again, and may have changed meanwhile.
    touch(&mut older, &tool, "drop");
    told(&mut older, "notifications/prompts/list_changed");
    told(&mut newer, "notifications/prompts/list_changed");
    assert_eq!(log(&far), json!([lists, lists]));
}

#[test]
fn a_resource_of_a_newer_server_is_watched_for_clients_of_both_eras() {
    let (desk, far) = ready();
    let mut older = Joined::greeted(&desk, &[], &json!({}));
    let tool = tool(&mut older);
    let watch = |client: &mut Joined, method: &str, uri: &str| {
        client.ask(&format!("resources/{method}"), &json!({ "uri": uri }))
    };
    let watched = watch(&mut older, "subscribe", "far://paper");
    assert_eq!(watched["result"], json!({}), "{watched}");
    touch(&mut older, &tool, "resource");
    let params = told(&mut older, "notifications/resources/updated");
    assert_eq!(params["uri"], "far://paper");
    // One that the server tells nothing of is not watched.
    let refused = watch(&mut older, "subscribe", "far://other");
    assert!(refused["error"]["message"].to_string().contains("does not tell"), "{refused}");

    let mut newer = listener(&desk, &json!({ "resourceSubscriptions": ["far://paper"] }));
    touch(&mut older, &tool, "resource");
    let params = told(&mut newer, "notifications/resources/updated");
    assert_eq!(params["uri"], "far://paper");
    assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], 3);
    // The one leaves, and the other is still told.
    assert_eq!(watch(&mut older, "unsubscribe", "far://paper")["result"], json!({}));
    touch(&mut older, &tool, "resource");
    assert_eq!(told(&mut newer, "notifications/resources/updated")["uri"], "far://paper");
    drop(newer);
    until("nobody listens for it", || {
        let last = log(&far).as_array().unwrap().last().unwrap().clone();
        last.get("resourceSubscriptions").is_none()
    });
}

#[test]
fn a_newer_server_behind_pipes_is_listened_to_as_well() {
    let desk = home(&[("conformance", &conformance())], OPEN);
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    let call = json!({ "name": "conformance_test_trigger_prompt_change", "arguments": {} });
    // The first call has it started; it is listened to from then on.
    assert!(client.ask("tools/call", &call)["result"]["isError"] != true);
    until("it is told", || {
        client.send(&json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": call }));
        let mut is_told = false;
        loop {
            let message = client.next();
            is_told |= message["method"] == "notifications/prompts/list_changed";
            if message["id"] == 8 {
                return is_told;
            }
        }
    });
}
