//! Servers that want their call made again, and what they say that an era does not know.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Desk, write_below};
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

/// A server of the older era that asks in the middle of whatever it is asked, and of several things at a time: each that asks waits in a
/// thread of its own.
const ASKING: &str = r#"import json, sys, threading, time
lock, open_questions, numbers = threading.Lock(), {}, iter(range(1, 1000))
def say(message):
    with lock: print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def ask(method, params):
    number = f"own-{next(numbers)}"
    open_questions[number] = answered = [threading.Event(), None]
    say({"id": number, "method": method, "params": params})
    answered[0].wait()
    return answered[1]
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
def asked(what, about):
    if what == "model": return ask("sampling/createMessage", {"messages": [{"role": "user", "content": {"type": "text", "text": about}}], "maxTokens": 5})
    if what == "folders": return ask("roots/list", {})
    return ask("elicitation/create", {"message": about, "requestedSchema": FORM})
def words(said): return json.dumps(said.get("result", {"refused": said.get("error")}), sort_keys=True)
def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "tools/call":
        arguments = params.get("arguments") or {}
        if arguments.get("what") == "nothing":
            time.sleep(arguments.get("after", 0))
            result = {"content": [{"type": "text", "text": "nothing"}]}
        else: result = {"content": [{"type": "text", "text": words(asked(arguments.get("what"), arguments.get("about", "?")))}]}
    elif method == "prompts/get":
        result = {"messages": [{"role": "user", "content": {"type": "text", "text": words(asked((params.get("arguments") or {}).get("what"), params["name"]))}}]}
    elif method == "resources/read":
        result = {"contents": [{"uri": params["uri"], "text": words(asked("person", params["uri"]))}]}
    elif method == "completion/complete":
        result = {"completion": {"values": [words(asked("person", "completing"))]}}
    say({"id": message["id"], "result": result})
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        answered = open_questions.pop(message["id"], None)
        if answered: answered[1] = message; answered[0].set()
        continue
    if "id" not in message: continue
    method = message["method"]
    if method == "initialize": say({"id": message["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}, "serverInfo": {"name": "asking", "version": "1"}}})
    elif method == "tools/list": say({"id": message["id"], "result": {"tools": [{"name": "ask", "description": "Asks", "inputSchema": {"type": "object"}}]}})
    elif method == "prompts/list": say({"id": message["id"], "result": {"prompts": [{"name": "ask", "description": "Asks"}]}})
    elif method == "resources/list": say({"id": message["id"], "result": {"resources": [{"uri": "test://a", "name": "a"}]}})
    elif method in ("tools/call", "prompts/get", "resources/read", "completion/complete"): threading.Thread(target=answer, args=(message,), daemon=True).start()
    else: say({"id": message["id"], "error": {"code": -32601, "message": "no"}})
"#;

/// A gateway before the server that asks, without renaming it; and where that is.
fn asking() -> (Gate, Desk, Desk) {
    let scripts = Desk::new();
    let path = write_below(scripts.0.path(), "asking.py", ASKING);
    let desk = home(&[("asking", &path)], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    (gate, desk, scripts)
}

const RAW: &str = "/mcp/raw/mcpb:asking";

/// Asks as a client of the newer era that can be asked everything.
fn ask(gate: &Gate, method: &str, params: &Value, more: &Value) -> Value {
    let mut params = params.clone();
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let can = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    gate.ask_as(RAW, &[], &can, method, params).last()
}

/// The one question that a request came to, its name, and what the answer goes back with.
fn question(told: &Value) -> (String, Value, Value) {
    let told = &told["result"];
    assert_eq!(told["resultType"], "input_required", "{told}");
    let requests = told["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1, "{told}");
    let (name, request) = requests.iter().next().unwrap();
    (name.clone(), request.clone(), told["requestState"].clone())
}

/// Makes the request again with an answer, and says what came of it.
fn bring(gate: &Gate, method: &str, params: &Value, told: &Value, answer: &Value) -> Value {
    let (name, _, state) = question(told);
    ask(gate, method, params, &json!({ "inputResponses": { name: answer }, "requestState": state }))
}

#[test]
fn whatever_a_server_of_the_older_era_asks_in_the_middle_is_asked_of_the_newer() {
    let (gate, _desk, _scripts) = asking();
    let person = json!({ "action": "accept", "content": { "name": "Ada" } });
    let model =
        json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "Ada" } });
    let folders = json!({ "roots": [{ "uri": "file:///ada" }] });
    let of = |method: &str, what: &str| match method {
        "tools/call" => json!({ "name": "ask", "arguments": { "what": what } }),
        "prompts/get" => json!({ "name": "ask", "arguments": { "what": what } }),
        _ => json!({ "uri": "test://a" }),
    };
    for (method, what, asked, answer, text) in [
        ("tools/call", "person", "elicitation/create", &person, "/result/content/0/text"),
        ("tools/call", "model", "sampling/createMessage", &model, "/result/content/0/text"),
        ("tools/call", "folders", "roots/list", &folders, "/result/content/0/text"),
        ("prompts/get", "person", "elicitation/create", &person, "/result/messages/0/content/text"),
        (
            "prompts/get",
            "model",
            "sampling/createMessage",
            &model,
            "/result/messages/0/content/text",
        ),
        ("prompts/get", "folders", "roots/list", &folders, "/result/messages/0/content/text"),
        ("resources/read", "person", "elicitation/create", &person, "/result/contents/0/text"),
    ] {
        let params = of(method, what);
        let told = ask(&gate, method, &params, &json!({}));
        let (_, request, state) = question(&told);
        assert_eq!(request["method"], asked, "{told}");
        // What is brought for another request is taken by none, and this one waits still.
        let other = match method {
            "resources/read" => json!({ "uri": "test://b" }),
            _ => json!({ "name": "ask", "arguments": { "what": "other" } }),
        };
        let stolen = ask(&gate, method, &other, &json!({ "requestState": state }));
        assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
        let done = bring(&gate, method, &params, &told, answer);
        let said = done.pointer(text).and_then(Value::as_str).unwrap_or_else(|| panic!("{done}"));
        assert!(said.contains("da"), "{done}");
        assert_eq!(done["result"]["resultType"], "complete", "{done}");
        if method == "resources/read" {
            assert_eq!(done["result"]["cacheScope"], "private", "{done}");
        }
        // An answer counts once.
        let again = bring(&gate, method, &params, &told, answer);
        assert_eq!(again["error"]["code"], -32602, "{again}");
    }
    // Of a completion the era knows no such answer: the server hears that nobody can be asked.
    let completing = json!({ "ref": { "type": "ref/prompt", "name": "ask" }, "argument": { "name": "what", "value": "" } });
    let told = ask(&gate, "completion/complete", &completing, &json!({}));
    let said = told["result"]["completion"]["values"][0].as_str().unwrap();
    assert!(said.contains("cannot be asked"), "{told}");
}

#[test]
fn what_is_asked_for_one_request_is_told_with_no_other() {
    let (gate, _desk, _scripts) = asking();
    let about =
        |what: &str| json!({ "name": "ask", "arguments": { "what": "person", "about": what } });
    let name = |name: &str| json!({ "action": "accept", "content": { "name": name } });
    // Each waits for its own answer, and they are answered in another order.
    let told: Vec<_> = ["first", "second", "third"]
        .map(|what| (about(what), ask(&gate, "tools/call", &about(what), &json!({}))))
        .into();
    for ((params, told), what) in told.iter().zip(["first", "second", "third"]) {
        let (_, request, _) = question(told);
        assert_eq!(request["params"]["message"], what, "{params} {told}");
    }
    let nothing = json!({ "name": "ask", "arguments": { "what": "nothing" } });
    assert_eq!(words(&ask(&gate, "tools/call", &nothing, &json!({}))["result"]), "nothing");
    for (at, answer) in [(2, "Carol"), (0, "Alice"), (1, "Bob")] {
        let (params, told) = &told[at];
        let done = bring(&gate, "tools/call", params, told, &name(answer));
        assert!(words(&done["result"]).contains(answer), "{done}");
    }
}

#[test]
fn a_question_that_may_be_for_several_requests_waits_until_it_is_for_one() {
    let (gate, _desk, _scripts) = asking();
    let slow = json!({ "name": "ask", "arguments": { "what": "nothing", "after": 2 } });
    let asking = json!({ "name": "ask", "arguments": { "what": "person", "about": "mine" } });
    // The server runs, so that both requests come to the same one.
    ask(
        &gate,
        "tools/call",
        &json!({ "name": "ask", "arguments": { "what": "nothing" } }),
        &json!({}),
    );
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| ask(&gate, "tools/call", &slow, &json!({})));
        std::thread::sleep(Duration::from_millis(500));
        let began = Instant::now();
        let told = ask(&gate, "tools/call", &asking, &json!({}));
        assert!(
            began.elapsed() >= Duration::from_millis(1200),
            "it was told before it was clear whose it is"
        );
        assert_eq!(question(&told).1["params"]["message"], "mine", "{told}");
        assert_eq!(words(&slow.join().unwrap()["result"]), "nothing");
    });
}

/// Clients of the older era before this server, who can be asked; and where that is.
fn joined(server: &str, count: usize) -> (Vec<Joined>, Desk, Desk) {
    let scripts = Desk::new();
    let path = write_below(scripts.0.path(), "asking.py", server);
    let desk = home(&[("asking", &path)], OPEN);
    let can = json!({ "elicitation": {} });
    let clients = (0..count).map(|_| Joined::greeted(&desk, &[], &can)).collect();
    (clients, desk, scripts)
}

/// A call of its tool, as a message.
fn called(id: i64, arguments: &Value) -> Value {
    let params = json!({ "name": "asking_ask", "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

#[test]
fn clients_that_are_asked_at_once_each_hear_their_own_question() {
    let (mut clients, _desk, _scripts) = joined(ASKING, 3);
    let ids: Vec<_> = clients
        .iter_mut()
        .enumerate()
        .map(|(at, client)| {
            let about = format!("client {at}");
            client.send(&called(7, &json!({ "what": "person", "about": about })));
            let asked = client.next();
            assert_eq!(asked["params"]["message"], format!("client {at}"), "{asked}");
            asked["id"].clone()
        })
        .collect();
    for (at, (client, id)) in clients.iter_mut().zip(ids).enumerate().rev() {
        let answer = json!({ "action": "accept", "content": { "name": format!("person {at}") } });
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "result": answer }));
        let told = client.next();
        assert!(words(&told["result"]).contains(&format!("person {at}")), "{told}");
    }
}

#[test]
fn a_server_that_is_known_to_ask_works_for_one_at_a_time() {
    let (mut clients, _desk, _scripts) = joined(ASKING, 3);
    let send = |client: &mut Joined, about: &str| {
        client.send(&called(7, &json!({ "what": "person", "about": about })));
    };
    let answer = |client: &mut Joined, about: &str| {
        let asked = client.next();
        assert_eq!(asked["params"]["message"], about, "{asked}");
        let answer = json!({ "action": "accept", "content": { "name": about } });
        client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
        let told = client.next();
        assert!(words(&told["result"]).contains(about), "{told}");
    };
    // That it asks is seen when it does.
    send(&mut clients[0], "first");
    answer(&mut clients[0], "first");
    // From then on all may call it in the same breath.
    for _ in 0..3 {
        for (at, client) in clients.iter_mut().enumerate() {
            send(client, &format!("client {at}"));
        }
        for (at, client) in clients.iter_mut().enumerate().rev() {
            answer(client, &format!("client {at}"));
        }
    }
}

#[test]
fn a_question_for_a_call_that_was_called_off_is_told_to_nobody_else() {
    // It asks a second after it was called, whether anybody waits for that still or not.
    let late = ASKING.replace(
        "        else: result = {",
        "        else:\n          time.sleep(1)\n          result = {",
    );
    assert_ne!(late, ASKING);
    let (mut clients, _desk, _scripts) = joined(&late, 2);
    clients[0].call("asking_ask", json!({ "what": "nothing" }));
    clients[0].send(&called(1, &json!({ "what": "person", "about": "for the first alone" })));
    clients[1].send(&called(2, &json!({ "what": "nothing", "after": 3 })));
    std::thread::sleep(Duration::from_millis(300));
    let off = json!({ "requestId": 1 });
    clients[0]
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": off }));
    let told = clients[1].next();
    assert_eq!((&told["id"], words(&told["result"])), (&json!(2), "nothing"), "{told}");
    // What is asked for somebody else is told to them.
    clients[1].send(&called(3, &json!({ "what": "person", "about": "for the second" })));
    let asked = clients[1].next();
    assert_eq!(asked["params"]["message"], "for the second", "{asked}");
}
