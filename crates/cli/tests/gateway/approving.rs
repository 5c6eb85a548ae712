//! The owner's word: in the client, in the terminal, and nowhere that an agent could give it.

use serde_json::{Value, json};

use crate::common::{Desk, write_below};
use crate::gate::{Gate, Joined, NEWER, home, server, words};
use crate::leaving::written;

const ASK: &str = "[approval]\nundeclared = \"ask\"\n";

fn asked() -> (Desk, Desk) {
    let scripts = Desk::new();
    let path = server(
        scripts.0.path(),
        "wipe",
        "wipe",
        "return f'wiped {arguments.get(\"what\")} {calls}'",
    );
    (home(&[("wipe", &path)], ASK), scripts)
}

/// What an agent is told after a no.
const NO: &str = "the owner said no. They were asked about this very call, and their no stands. Do not make this call again unless they ask you to. (code: denied)";

fn waiting(desk: &Desk) -> Vec<Value> {
    desk.done(&["approve", "list", "--json"]).json().as_array().unwrap().clone()
}

#[test]
fn the_terminal_answers_and_the_same_call_goes_through_once() {
    let (desk, _scripts) = asked();
    let gate = Gate::open(&desk, &["--without-token"]);
    let call = || gate.call("/mcp", "wipe_wipe", json!({ "what": "a" }));
    let told = call();
    let error = &told["structuredContent"]["error"];
    assert_eq!(
        (told["isError"].as_bool(), error["code"].as_str(), error["who"].as_str()),
        (Some(true), Some("needs_approval"), Some("owner"))
    );
    assert!(words(&told).contains("waits for the owner"), "{told}");
    let [question] = &waiting(&desk)[..] else { panic!("not one question") };
    assert_eq!(question["input"], json!({ "what": "a" }));
    let ticket = question["ticket"].as_str().unwrap();
    // Until then it waits, and asks nothing new.
    assert_eq!(call()["structuredContent"]["error"]["code"], "needs_approval");
    assert_eq!(waiting(&desk).len(), 1);
    desk.done(&["approve", "allow", ticket]);
    let log = desk.done(&["audit"]).stdout;
    let said =
        log.lines().find(|line| line.contains(" approve ")).unwrap_or_else(|| panic!("{log}"));
    assert!(said.contains(" terminal mcpb:wipe wipe approve ok"), "{said}");
    // Who called is in the log, too.
    let log = desk.done(&["audit", "--json"]).stdout;
    assert!(log.contains("\"surface\":\"mcp\",\"session\":\"anybody\""), "{log}");
    // It is for these arguments alone.
    let other = gate.call("/mcp", "wipe_wipe", json!({ "what": "b" }));
    assert_eq!(other["structuredContent"]["error"]["code"], "needs_approval");
    assert_eq!(words(&call()), "wiped a 1");
    assert_eq!(call()["structuredContent"]["error"]["code"], "needs_approval");
}

#[test]
fn who_asks_the_same_many_times_at_once_leaves_one_question() {
    let (desk, _scripts) = asked();
    let gate = Gate::open(&desk, &["--without-token"]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let told = gate.call("/mcp", "wipe_wipe", json!({ "what": "a" }));
                assert_eq!(told["structuredContent"]["error"]["code"], "needs_approval", "{told}");
            });
        }
    });
    assert_eq!(waiting(&desk).len(), 1);
}

#[test]
fn a_yes_to_the_first_call_is_for_every_client() {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "wipe", "wipe", "return 'wiped'");
    let desk = home(&[("wipe", &path)], "[agents]\ninstall = \"never\"\n");
    let code = |told: &Value| told["structuredContent"]["error"]["code"].clone();
    for what in ["a", "b"] {
        let mut gone = Joined::greeted(&desk, &[], &json!({}));
        assert_eq!(code(&gone.call("wipe_wipe", json!({ "what": what }))), "needs_approval");
    }
    let all = waiting(&desk);
    assert_eq!(all.len(), 2);
    desk.done(&["approve", "allow", all[0]["ticket"].as_str().unwrap()]);
    // All who wait for the same have their answer, and so has whoever comes next.
    assert_eq!(waiting(&desk).len(), 0);
    let mut new = Joined::greeted(&desk, &[], &json!({}));
    assert_eq!(words(&new.call("wipe_wipe", json!({ "what": "c" }))), "wiped");
    // No answer outlives the rule that it became.
    desk.done(&["approve", "forget", "1"]);
    assert_eq!(code(&new.call("wipe_wipe", json!({ "what": "a" }))), "needs_approval");
    // Nobody is asked about what is not called any more.
    assert_eq!(waiting(&desk).len(), 1);
    desk.done(&["revoke", "mcpb:wipe", "--yes"]);
    assert_eq!(waiting(&desk).len(), 0);
}

#[test]
fn a_refusal_is_told_as_one() {
    let (desk, _scripts) = asked();
    let gate = Gate::open(&desk, &["--without-token"]);
    let call = || gate.call("/mcp", "wipe_wipe", json!({}));
    call();
    let ticket = waiting(&desk)[0]["ticket"].as_str().unwrap().to_owned();
    // A call that stands alone is of no session that could end.
    desk.refused(&["approve", "allow", &ticket, "--session"], 2, "has no session");
    desk.done(&["approve", "deny", &ticket]);
    let told = call();
    assert_eq!(told["structuredContent"]["error"]["code"], "denied", "{told}");
    assert_eq!(words(&told), NO, "{told}");
    assert_eq!(told["structuredContent"]["error"]["who"], "owner", "{told}");
    // All at once, too.
    let call = |what: &str| gate.call("/mcp", "wipe_wipe", json!({ "what": what }));
    for what in ["a", "b", "c"] {
        call(what);
    }
    assert_eq!(waiting(&desk).len(), 3);
    desk.refused(&["approve", "deny"], 2, "TICKET");
    let refused = desk.done(&["approve", "deny", "--all", "--json"]).json();
    assert_eq!(refused["refused"].as_array().unwrap().len(), 3, "{refused}");
    assert_eq!((waiting(&desk).len(), words(&call("b"))), (0, NO));
    let again = desk.done(&["approve", "deny", "--all"]);
    assert!(again.stderr.contains("0 calls refused"), "{}", again.stderr);
}

#[test]
fn the_person_at_a_client_of_the_older_era_is_asked_in_it() {
    let (desk, _scripts) = asked();
    let mut client = Joined::greeted(&desk, &[], &json!({ "elicitation": {} }));
    for (what, decision, expected) in
        [("a", "allow", "wiped a 1"), ("b", "deny", NO), ("a", "allow", "wiped a 2")]
    {
        client.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "wipe_wipe", "arguments": { "what": what } } }));
        let question = client.next();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let message = question["params"]["message"].as_str().unwrap();
        assert!(
            message.contains("`wipe` of mcpb:wipe")
                && message.contains(&json!({ "what": what }).to_string()),
            "{message}"
        );
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "decision": decision } } }));
        let answer = client.next();
        assert!(words(&answer["result"]).contains(expected), "{answer}");
    }
    // A no is not asked about again so soon.
    let told = client.call("wipe_wipe", json!({ "what": "b" }));
    assert_eq!(told["structuredContent"]["error"]["code"], "denied", "{told}");
}

#[test]
fn the_person_at_a_client_of_the_newer_era_is_asked_in_it() {
    let (desk, _scripts) = asked();
    let token = |more: &[&str]| {
        let made = desk.done(&[&["token", "new"], more].concat());
        format!("Bearer {}", made.stdout.trim())
    };
    let (person, robot) = (token(&["person", "--asks"]), token(&["robot"]));
    let gate = Gate::open(&desk, &[]);
    let can = json!({ "elicitation": { "form": {} } });
    // Whoever shows a token that was not made for it cannot answer for the owner.
    let call = json!({ "name": "wipe_wipe", "arguments": { "what": "a" } });
    let told = gate.ask_as("/mcp", &[("authorization", &robot)], &can, "tools/call", call).last();
    assert_eq!(told["result"]["structuredContent"]["error"]["code"], "needs_approval", "{told}");
    let own = [("authorization", &*person)];
    let ask = |more: Value| {
        let mut params = json!({ "name": "wipe_wipe", "arguments": { "what": "a" } });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        gate.ask_as("/mcp", &own, &can, "tools/call", params).last()
    };
    let asked = ask(json!({}))["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["inputRequests"]["approve"]["method"], "elicitation/create");
    let state = asked["requestState"].as_str().unwrap();
    let yes = json!({ "approve": { "action": "accept", "content": { "decision": "allow" } } });
    // The answer is for this call, and for no other.
    let other = json!({ "name": "wipe_wipe", "arguments": { "what": "b" }, "requestState": state, "inputResponses": yes });
    let refused = gate.ask_as("/mcp", &own, &can, "tools/call", other).last();
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let done = ask(json!({ "requestState": state, "inputResponses": yes }));
    assert_eq!(words(&done["result"]), "wiped a 1", "{done}");
    // It counted once.
    let again = ask(json!({ "requestState": state, "inputResponses": yes }));
    assert_eq!(again["result"]["structuredContent"]["error"]["code"], "denied", "{again}");
}

#[test]
fn who_looks_away_is_asked_once_and_the_question_stays() {
    let (desk, _scripts) = asked();
    let away = json!({ "action": "cancel" });

    // In the older era.
    let mut client = Joined::greeted(&desk, &[], &json!({ "elicitation": {} }));
    let asks = |client: &mut Joined| {
        client.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "wipe_wipe", "arguments": {} } }));
        let question = client.next();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        question
    };
    let question = asks(&mut client);
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": away }));
    let told = client.next();
    let error = &told["result"]["structuredContent"]["error"];
    assert_eq!((&told["id"], &error["code"]), (&json!(3), &json!("needs_approval")), "{told}");
    let [left] = &waiting(&desk)[..] else { panic!("not one question") };
    // Who answered elsewhere meanwhile has answered.
    let question = asks(&mut client);
    desk.done(&["approve", "allow", left["ticket"].as_str().unwrap()]);
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": away }));
    assert_eq!(words(&client.next()["result"]), "wiped None 1");

    // In the newer.
    let token = desk.done(&["token", "new", "person", "--asks"]).stdout;
    let gate = Gate::open(&desk, &[]);
    let own = [("authorization", &*format!("Bearer {}", token.trim()))];
    let ask = |more: Value| {
        let mut params = json!({ "name": "wipe_wipe", "arguments": { "what": "b" } });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let can = json!({ "elicitation": {} });
        gate.ask_as("/mcp", &own, &can, "tools/call", params).last()["result"].clone()
    };
    let state = ask(json!({}))["requestState"].clone();
    let told = ask(json!({ "requestState": state, "inputResponses": { "approve": away } }));
    assert_eq!(told["structuredContent"]["error"]["code"], "needs_approval", "{told}");
    assert_eq!(waiting(&desk).len(), 1);
}

#[test]
fn an_answer_is_for_the_next_conversation_of_the_same_client() {
    let (desk, _scripts) = asked();
    // Some clients start `haft mcp` for every call.
    let greeting = |name: &str| json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": name, "version": "1" } });
    let ask = |name: &str, what: &str| {
        let mut client = Joined::new(&desk, &[]);
        client.ask("initialize", &greeting(name));
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        words(&client.call("wipe_wipe", json!({ "what": what }))).to_owned()
    };
    let answer = |how: &str| {
        let [question] = &waiting(&desk)[..] else { panic!("not one question") };
        desk.done(&["approve", how, question["ticket"].as_str().unwrap()]);
    };
    assert!(ask("one", "a").contains("waits for the owner"));
    answer("deny");
    assert_eq!(ask("one", "a"), NO);
    assert!(ask("one", "b").contains("waits for the owner"));
    answer("allow");
    // Not for one that says it is another, and once.
    assert!(ask("other", "b").contains("waits for the owner"));
    assert_eq!(ask("one", "b"), "wiped b 1");
    assert!(ask("one", "b").contains("waits for the owner"));
}

#[test]
fn the_question_in_a_client_shows_what_the_tool_gets_and_every_step() {
    let (desk, _scripts) = asked();
    let chain = json!({
        "toolId": "demo.chain", "name": "Chain", "version": "1.0.0", "description": "A test.",
        "capabilities": ["test"], "output_schema": {},
        "chain": [{ "step": "a", "tool": "mcpb:wipe", "action": "wipe", "inputMapping": { "what": "$.input.what" } }],
        "input_schema": { "type": "object", "properties": { "what": { "type": "string", "default": "all" } } },
    });
    write_below(desk.0.path(), "chain/manifest.json", &chain.to_string());
    desk.done(&["install", desk.path("chain").to_str().unwrap(), "--yes"]);
    let mut client = Joined::greeted(&desk, &[], &json!({ "elicitation": {} }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "demo_chain", "arguments": {} } }));
    let question = loop {
        let message = client.next();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let said = question["params"]["message"].as_str().unwrap();
    let step = "It calls `wipe` of mcpb:wipe with what from $.input.what, as step `a`, because";
    for part in ["with\n{\"what\":\"all\"}\n", step] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_yes_that_is_for_more_than_this_call_says_so_first() {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "wipe", "wipe", "return 'wiped'");
    let desk = home(&[("wipe", &path)], "[agents]\ninstall = \"never\"\n");
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    client.call("wipe_wipe", json!({}));
    let listed = desk.done(&["approve", "list"]).stdout;
    assert!(
        listed.contains("; a yes counts for every further call of this action by mcp"),
        "{listed}"
    );
    let [question] = &waiting(&desk)[..] else { panic!("not one question") };
    assert_eq!(question["is_first"], true);
    let ticket = question["ticket"].as_str().unwrap();
    desk.done(&["disable", "wipe"]);
    let refused = desk.haft(&["approve", "allow", ticket, "--session"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("without --session it counts for every further call"),
        "{}",
        refused.stderr
    );
    assert_eq!(waiting(&desk).len(), 1, "nothing was answered");
    let allowed = desk.done(&["approve", "allow", ticket]).stderr;
    assert!(allowed.contains("warning: mcpb:wipe is switched off meanwhile"), "{allowed}");
}

#[test]
fn the_owner_sees_who_asks() {
    let (desk, _scripts) = asked();
    let laptop = desk.done(&["token", "new", "laptop"]).stdout;
    let gate = Gate::open(&desk, &[]);
    let own = [("authorization", &*format!("Bearer {}", laptop.trim()))];
    let call = json!({ "name": "wipe_wipe", "arguments": { "what": "a" } });
    gate.ask_as("/mcp", &own, &json!({}), "tools/call", call);
    let [question] = &waiting(&desk)[..] else { panic!("not one question") };
    assert_eq!((&question["client"], &question["client_says"]), (&json!("laptop"), &Value::Null));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "wipe_wipe", "arguments": { "what": "b" }, "_meta": {
            "io.modelcontextprotocol/protocolVersion": NEWER,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "agent\u{1b}[2J", "version": "1.2" },
        },
    } });
    let usual = [
        own[0],
        ("mcp-protocol-version", NEWER),
        ("mcp-method", "tools/call"),
        ("mcp-name", "wipe_wipe"),
    ];
    gate.post("/mcp", &usual, &message);
    let says: Vec<_> = waiting(&desk).iter().map(|one| one["client_says"].clone()).collect();
    assert!(says.contains(&json!("agent\u{1b}[2J 1.2")), "{says:?}");
    let listed = desk.done(&["approve", "list"]).stdout;
    let by = "by mcp (laptop, which says that it is `agent\\u{1b}[2J 1.2`)";
    assert!(listed.contains(by), "{listed}");
    assert!(listed.contains("by mcp (laptop) until"), "{listed}");
    // In the older era it says so when it greets.
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    client.call("wipe_wipe", json!({ "what": "c" }));
    let listed = desk.done(&["approve", "list"]).stdout;
    assert!(listed.contains("by mcp (stdio, which says that it is `"), "{listed}");
}

#[test]
fn what_is_taken_back_while_its_owner_is_asked_is_not_called() {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "wipe", "wipe", "return 'wiped'");
    for raw in [&[][..], &["--only", "wipe"]] {
        let desk = home(&[("wipe", &path)], ASK);
        let mut client = Joined::greeted(&desk, raw, &json!({ "elicitation": {} }));
        let name = if raw.is_empty() { "wipe_wipe" } else { "wipe" };
        client.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": name, "arguments": {} } }));
        let question = loop {
            let message = client.next();
            if message["method"] == "elicitation/create" {
                break message;
            }
        };
        desk.done(&["disable", "mcpb:wipe"]);
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "decision": "allow" } } }));
        let told = loop {
            let message = client.next();
            if message["id"] == 3 {
                break message;
            }
        };
        let said = words(&told["result"]);
        assert!(said.contains("Its owner has switched it off"), "{told}");
        assert!(written(&desk, "begin", "wipe").is_empty(), "it was made");
    }
}

#[test]
fn where_the_policy_does_not_let_it_nobody_is_asked_in_a_client() {
    for more in ["[agents]\nask_in_client = false\n", "owner_presence = \"terminal\"\n"] {
        let scripts = Desk::new();
        let path = server(scripts.0.path(), "wipe", "wipe", "return 'wiped'");
        let desk = home(&[("wipe", &path)], ASK);
        write_below(&desk.path("home"), "policy.toml", &format!("{ASK}{more}"));
        let mut client = Joined::greeted(&desk, &[], &json!({ "elicitation": {} }));
        let told = client.call("wipe_wipe", json!({}));
        let error = &told["structuredContent"]["error"];
        assert_eq!(error["code"], "needs_approval", "{more}");
        let names_console = error["grant"].as_str().unwrap().contains("http");
        assert!(!more.contains("terminal") || !names_console, "{told}");
    }
}

#[test]
fn questions_of_servers_reach_clients_of_both_eras() {
    let desk = home(&[("conformance", &crate::gate::conformance())], crate::gate::OPEN);
    // A client of the older era, a server of the newer.
    let mut client =
        Joined::greeted(&desk, &["--only", "conformance"], &json!({ "elicitation": {} }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "test_elicitation", "arguments": { "message": "who?" } } }));
    let question = loop {
        let message = client.next();
        if message.get("method").is_some_and(|method| method == "elicitation/create") {
            break message;
        }
    };
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "username": "ada", "email": "ada@example.com", "response": "ada" } } }));
    let answer = client.next();
    assert!(words(&answer["result"]).contains("ada"), "{answer}");
}

#[test]
fn questions_of_older_servers_wait_for_clients_of_the_newer_era() {
    let path = format!("{} legacy", crate::gate::conformance());
    let desk = home(&[("older", &path)], crate::gate::OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let can = json!({ "elicitation": { "form": {} } });
    let call = json!({ "name": "test_elicitation", "arguments": { "message": "who?" } });
    let asked = gate.ask_as("/mcp/raw/older", &[], &can, "tools/call", call.clone()).last();
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (name, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let mut again = call;
    again["requestState"] = asked["requestState"].clone();
    // Without an answer it asks once more, and waits on.
    let still = gate.ask_as("/mcp/raw/older", &[], &can, "tools/call", again.clone()).last();
    assert_eq!(still["result"]["resultType"], "input_required", "{still}");
    again["requestState"] = still["result"]["requestState"].clone();
    again["inputResponses"] = json!({ name: { "action": "accept", "content": { "username": "ada", "email": "a@example.com", "response": "ada" } } });
    let done = gate.ask_as("/mcp/raw/older", &[], &can, "tools/call", again).last();
    assert!(words(&done["result"]).contains("ada"), "{done}");
}

#[test]
fn an_answer_outlives_the_gateway_that_asked() {
    let (desk, _scripts) = asked();
    let gate = Gate::open(&desk, &["--without-token"]);
    let told = gate.call("/mcp", "wipe_wipe", json!({}));
    let ticket = told["structuredContent"]["error"]["details"]["ticket"].as_str().unwrap();
    drop(gate);
    desk.done(&["approve", "allow", ticket]);
    let gate = Gate::open(&desk, &["--without-token"]);
    assert_eq!(words(&gate.call("/mcp", "wipe_wipe", json!({}))), "wiped None 1");
    let again = gate.call("/mcp", "wipe_wipe", json!({}));
    assert_eq!(again["structuredContent"]["error"]["code"], "needs_approval", "{again}");
}
