//! Many tools: they are found, looked at and called by three.

use serde_json::{Value, json};

use crate::common::{Desk, write_below};
use crate::gate::{Gate, Joined, home, speaking, words};

/// A server with so many tools.
fn many(count: usize, policy: &str) -> (Desk, Desk) {
    let scripts = Desk::new();
    let before = format!(
        r#"
TOOLS = [{{"name": f"measure_{{n}}", "description": f"Measures the length of thing number {{n}} in metres",
  "inputSchema": {{"type": "object", "properties": {{"thing": {{"type": "string"}}}}}}}} for n in range({count})]
TOOLS[3] = {{"name": "translate_text", "description": "Translates a text into another language",
  "inputSchema": {{"type": "object", "properties": {{"text": {{"type": "string"}}}}, "required": ["text"]}}}}
"#
    );
    let path = speaking(scripts.0.path(), "many", &before, "TOOLS", r#"_words(params["name"])"#);
    (home(&[("many", &path)], policy), scripts)
}

const OPEN: &str = "[approval]\nundeclared = \"allow\"\n[agents]\npinned = [\"many#measure_7\"]\n";

fn names(listed: &Value) -> Vec<&str> {
    listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn too_many_tools_are_kept_out_of_sight_and_found() {
    let (desk, _scripts) = many(200, OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let listed = gate.ask("/mcp", "tools/list", json!({}))["result"].clone();
    assert_eq!(
        names(&listed),
        ["find_tools", "describe_tool", "call_tool", "request_tool", "many_measure_7"]
    );
    assert!(listed.to_string().len() < 5_000);
    let found = gate.call("/mcp", "find_tools", json!({ "query": "translate a text", "limit": 3 }));
    let tools = found["structuredContent"]["tools"].as_array().unwrap();
    assert_eq!(tools[0]["name"], "many_translate_text", "{found}");
    assert!(tools.len() <= 3 && found["structuredContent"]["of"] == 200);
    let none = gate.call("/mcp", "find_tools", json!({ "query": "zxqj" }));
    let hint = none["structuredContent"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("request_tool asks the owner"), "{none}");
    let shown = gate.call("/mcp", "describe_tool", json!({ "name": "many_translate_text" }));
    assert_eq!(shown["structuredContent"]["tool"]["inputSchema"]["required"], json!(["text"]));
    let called = gate.call(
        "/mcp",
        "call_tool",
        json!({ "name": "many_translate_text", "arguments": { "text": "hi" } }),
    );
    assert_eq!(words(&called), "translate_text");
    // One that is not shown can be called by its name all the same.
    assert_eq!(words(&gate.call("/mcp", "many_measure_9", json!({}))), "measure_9");
    let wrong =
        gate.call("/mcp", "call_tool", json!({ "name": "many_translate", "arguments": {} }));
    assert!(words(&wrong).contains("did you mean `many_translate_text`"), "{wrong}");
    for bad in [json!({}), json!({ "name": "many_translate_text", "arguments": 7 })] {
        assert_eq!(gate.call("/mcp", "call_tool", bad)["isError"], true);
    }
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    assert!(client.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().len() == 5);
}

#[test]
fn what_a_profile_pins_is_shown_beside_what_is_pinned_for_all() {
    let profile = "[profile.part]\ntools = [\"many\"]\npinned = [\"many#translate_text\"]\n";
    let (desk, _scripts) = many(50, &format!("{OPEN}{profile}"));
    let gate = Gate::open(&desk, &["--without-token"]);
    let shown = |path: &str| {
        let listed = gate.ask(path, "tools/list", json!({}))["result"].clone();
        names(&listed)[4..].iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown("/mcp"), ["many_measure_7"]);
    assert_eq!(shown("/mcp/part"), ["many_translate_text", "many_measure_7"]);
}

#[test]
fn few_tools_are_shown_as_they_are_and_the_owner_says_how_many_are_few() {
    let (desk, _scripts) = many(41, OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    assert_eq!(names(&gate.ask("/mcp", "tools/list", json!({}))["result"]).len(), 5);
    write_below(
        &desk.path("home"),
        "policy.toml",
        &format!("{OPEN}tools = 100\ninstall = \"never\"\n"),
    );
    let listed = gate.ask("/mcp", "tools/list", json!({}))["result"].clone();
    assert_eq!(names(&listed).len(), 41);
}

#[test]
fn a_tool_that_is_not_there_is_asked_for_and_the_owner_finds_the_request() {
    let (desk, _scripts) = many(4, OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let told = gate.call(
        "/mcp",
        "request_tool",
        json!({ "tool": "acme.pdf.read", "why": "to read a contract" }),
    );
    let link = format!("or at http://{}/approvals", gate.address);
    assert!(words(&told).contains("the owner") && words(&told).contains(&link), "{told}");
    assert_eq!(told["isError"], Value::Null);
    let requests = desk.done(&["approve", "requests", "--json"]).json();
    assert_eq!(requests[0]["tool"], "acme.pdf.read");
    assert_eq!(requests[0]["why"], "to read a contract");
    assert_eq!(
        (&requests[0]["surface"], &requests[0]["client"]),
        (&json!("mcp"), &json!("anybody"))
    );
    // The same wish twice is one.
    gate.call(
        "/mcp",
        "request_tool",
        json!({ "tool": "acme.pdf.read", "why": "to read a contract" }),
    );
    assert_eq!(desk.done(&["approve", "requests", "--json"]).json().as_array().unwrap().len(), 1);
    for odd in [json!({}), json!({ "tool": "a\u{1b}[2J", "why": "b" })] {
        assert_eq!(gate.call("/mcp", "request_tool", odd)["isError"], true);
    }
    // One is dismissed by its name, and the others stay.
    let other = json!({ "tool": "acme.mail", "why": "to write" });
    gate.call("/mcp", "request_tool", other);
    desk.refused(&["approve", "requests", "--dismiss", "acme"], 3, "no agent asks for");
    desk.done(&["approve", "requests", "--dismiss", "acme.pdf.read"]);
    let requests = desk.done(&["approve", "requests", "--json"]).json();
    assert_eq!(
        (requests.as_array().unwrap().len(), &requests[0]["tool"]),
        (1, &json!("acme.mail"))
    );
    desk.done(&["approve", "requests", "--clear"]);
    assert_eq!(desk.done(&["approve", "requests", "--json"]).json(), json!([]));
}

#[test]
fn of_tools_that_fit_as_well_the_one_that_works_comes_first() {
    let scripts = Desk::new();
    let tools = r#"[{"name": "convert", "description": "Converts units of length",
  "inputSchema": {"type": "object"}}]"#;
    let broken = r#"{"content": [{"type": "text", "text": "no"}], "isError": True}"#;
    let alpha = speaking(scripts.0.path(), "alpha", "", tools, broken);
    let gamma = speaking(scripts.0.path(), "gamma", "", tools, "_words(1)");
    let desk = home(
        &[("alpha", &alpha), ("gamma", &gamma)],
        "[approval]\nundeclared = \"allow\"\n[agents]\ntools = 1\n",
    );
    let found = |gate: &Gate| {
        let found = gate.call("/mcp", "find_tools", json!({ "query": "convert length" }));
        let tools = found["structuredContent"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    {
        let gate = Gate::open(&desk, &["--without-token"]);
        assert_eq!(found(&gate), ["alpha_convert", "gamma_convert"]);
        for _ in 0..5 {
            assert_eq!(gate.call("/mcp", "alpha_convert", json!({}))["isError"], true);
        }
        // What was measured counts once what is installed or allowed is read anew, and else after a minute.
        assert_eq!(found(&gate), ["alpha_convert", "gamma_convert"]);
        write_below(
            &desk.path("home"),
            "policy.toml",
            "[approval]\nundeclared = \"allow\"\n[agents]\ntools = 1\ninstall = \"never\"\n",
        );
        // Calls of a millisecond share a look at the files.
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(found(&gate), ["gamma_convert", "alpha_convert"]);
    }
    // It is kept, and counts wherever tools are found.
    let agent = crate::plain::token(&desk, &["agent"]);
    let gate = Gate::open(&desk, &[]);
    let asked = r#"{"query":"convert length"}"#;
    let (_, told) = crate::plain::ask(&gate, "POST", "/capability/search", &agent, asked);
    assert_eq!(told["capabilities"][0]["id"], "mcpb:gamma", "{told}");
    let (_, told) = crate::plain::ask(&gate, "POST", "/capability/resolve", &agent, asked);
    assert_eq!(told["capability"]["id"], "mcpb:gamma", "{told}");
}
