//! Prompts, resources and completions of several servers: who has what, who is shown what, and who is told of what.

use std::collections::HashSet;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Desk, repository};
use crate::gate::{Gate, Joined, NEWER, OPEN, home, newer, until};
use crate::joined::{hosts, kill};
use crate::leaving::written;

/// What is in the way of a call from one that hangs, at most. Without care it would be half a minute and more.
const SOON: Duration = Duration::from_secs(15);

/// A home with servers of these names; after each, what it is late with.
fn having(servers: &[&str], policy: &str) -> Desk {
    let peer = repository().join("crates/cli/tests/gateway/peers/several.py");
    let name = |server: &str| server.split(' ').next().unwrap().to_owned();
    let all: Vec<_> =
        servers.iter().map(|one| (name(one), format!("{} {one}", peer.display()))).collect();
    let all: Vec<_> = all.iter().map(|(name, command)| (&**name, &**command)).collect();
    home(&all, &format!("{OPEN}{policy}"))
}

/// Two servers, of which what the one calls a prompt could be of the other.
fn two(policy: &str) -> Desk {
    having(&["one", "one_more"], policy)
}

/// One member of all entries of a list.
fn all(listed: &Value, key: &str, member: &str) -> Vec<String> {
    let listed = listed["result"][key].as_array().unwrap_or_else(|| panic!("{listed}"));
    let mut all: Vec<_> =
        listed.iter().map(|one| one[member].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

fn read(gate: &Gate, path: &str, uri: &str) -> Value {
    gate.ask(path, "resources/read", json!({ "uri": uri }))
}

fn text(read: &Value) -> &str {
    read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"))
}

#[test]
fn prompts_of_several_servers_have_digits_and_each_is_had_from_its_own() {
    let desk = two("[profile.half]\ntools = [\"one\"]\n");
    let gate = Gate::open(&desk, &["--without-token"]);
    let list = |path: &str| all(&gate.ask(path, "prompts/list", json!({})), "prompts", "name");
    let names = list("/mcp");
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 4, "{names:?}");
    // What one calls `more_greet` and what `one_more` calls `greet` would be the same.
    let alike: Vec<_> = names.iter().filter(|one| one.starts_with("one_more_greet_")).collect();
    assert_eq!(alike.len(), 2, "{names:?}");
    let digits = |name: &String| name.rsplit('_').next().unwrap().to_owned();
    for name in &names {
        let digits = digits(name);
        assert!(digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
    }
    let get = |path: &str, name: &str| {
        let params = json!({ "name": name, "arguments": { "who": "you" } });
        gate.ask(path, "prompts/get", params)
    };
    let said: HashSet<_> = names
        .iter()
        .map(|name| get("/mcp", name)["result"]["messages"][0]["content"]["text"].to_string())
        .collect();
    let expected = ["one greet", "one more_greet", "one_more greet", "one_more more_greet"];
    assert_eq!(said, expected.map(|words| format!("\"{words} you\"")).into());
    // A part of them has the same names, and nothing else can be had by it.
    let half = list("/mcp/half");
    assert!(half.len() == 2 && half.iter().all(|name| names.contains(name)), "{half:?}");
    let other = names.iter().find(|name| !half.contains(name)).unwrap();
    assert_eq!(get("/mcp/half", other)["error"]["code"], -32602);
    assert_eq!(list("/mcp/raw/one_more"), ["greet", "more_greet"]);
    // What is completed is that of the same server, in its own words.
    for name in &names {
        let argument = json!({ "name": "who", "value": "y" });
        let asked = json!({ "ref": { "type": "ref/prompt", "name": name }, "argument": argument });
        let told = gate.ask("/mcp", "completion/complete", asked);
        let completed = told["result"]["completion"]["values"][0].as_str().unwrap().to_owned();
        let own = get("/mcp", name)["result"]["messages"][0]["content"]["text"].clone();
        assert_eq!(completed.replace(" y", " you"), own, "{name}");
    }
}

#[test]
fn a_resource_is_read_from_the_one_server_that_has_it() {
    let desk = two("[profile.half]\ntools = [\"one\"]\n");
    let gate = Gate::open(&desk, &["--without-token"]);
    let list = |path: &str| all(&gate.ask(path, "resources/list", json!({})), "resources", "uri");
    assert_eq!(
        list("/mcp"),
        [
            "one://eager",
            "one://own",
            "one_more://eager",
            "one_more://own",
            "shared://paper",
            "shared://paper"
        ]
    );
    assert_eq!(list("/mcp/half"), ["one://eager", "one://own", "shared://paper"]);
    let templates = gate.ask("/mcp", "resources/templates/list", json!({}));
    let templates = all(&templates, "resourceTemplates", "uriTemplate");
    assert_eq!(templates, ["one://item/{id}", "one_more://item/{id}"]);
    for (path, uri, server) in [
        ("/mcp", "one://own", "one"),
        ("/mcp", "one_more://own", "one_more"),
        ("/mcp", "one://item/7", "one"),
        ("/mcp", "one_more://item/7", "one_more"),
        ("/mcp/half", "shared://paper", "one"),
        ("/mcp/raw/one_more", "shared://paper", "one_more"),
    ] {
        assert_eq!(text(&read(&gate, path, uri)), format!("{uri} of {server}"));
    }
    let of_both = read(&gate, "/mcp", "shared://paper");
    assert_eq!(of_both["error"]["code"], -32602, "{of_both}");
    let words = of_both["error"]["message"].as_str().unwrap();
    assert!(words.contains("several servers have it: mcpb:one, mcpb:one_more;"), "{words}");
    let of_none = read(&gate, "/mcp", "nowhere://own");
    assert_eq!(of_none["error"]["data"]["uri"], "nowhere://own", "{of_none}");
    let reference = json!({ "type": "ref/resource", "uri": "one_more://item/{id}" });
    let asked = json!({ "ref": reference, "argument": { "name": "id", "value": "7" } });
    let told = gate.ask("/mcp", "completion/complete", asked);
    let values = &told["result"]["completion"]["values"];
    assert_eq!(values, &json!(["one_more one_more://item/{id} 7"]), "{told}");
}

#[test]
fn a_profile_with_single_actions_of_a_package_shows_nothing_else_that_it_has() {
    let desk = two(
        "[profile.part]\ntools = [\"one#do\"]\n[profile.mixed]\ntools = [\"one#do\", \"one_more\"]\n",
    );
    let gate = Gate::open(&desk, &["--without-token"]);
    let tools = all(&gate.ask("/mcp/part", "tools/list", json!({})), "tools", "name");
    assert_eq!(tools, ["one_do"]);
    let offered = gate.ask("/mcp/part", "server/discover", json!({}));
    let offered = offered["result"]["capabilities"].as_object().unwrap().clone();
    assert!(!["prompts", "resources", "completions"].iter().any(|one| offered.contains_key(*one)));
    for list in ["prompts/list", "resources/list", "resources/templates/list"] {
        assert_eq!(gate.ask("/mcp/part", list, json!({}))["error"]["code"], -32601, "{list}");
    }
    for path in ["/mcp/part", "/mcp/mixed"] {
        for uri in ["one://own", "one://item/7"] {
            assert!(read(&gate, path, uri)["error"].is_object(), "{path} {uri}");
        }
        let name = &all(&gate.ask("/mcp", "prompts/list", json!({})), "prompts", "name")[0];
        let got = gate.ask(path, "prompts/get", json!({ "name": name }));
        assert!(got["error"].is_object(), "{got}");
        let reference = json!({ "type": "ref/resource", "uri": "one://item/{id}" });
        let asked = json!({ "ref": reference, "argument": { "name": "id", "value": "7" } });
        let told = gate.ask(path, "completion/complete", asked);
        // One that is shown may say what it likes of it.
        assert!(!told.to_string().contains("\"one one://"), "{told}");
    }
    // Of the other all is shown, what both have as its own.
    assert_eq!(text(&read(&gate, "/mcp/mixed", "shared://paper")), "shared://paper of one_more");
    let prompts = all(&gate.ask("/mcp/mixed", "prompts/list", json!({})), "prompts", "name");
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    let mut client = Joined::greeted(&desk, &["--profile", "part"], &json!({}));
    let refused = client.ask("resources/subscribe", &json!({ "uri": "one://own" }));
    assert!(refused["error"].is_object(), "{refused}");
}

/// Has a server do something by its tool.
fn act(client: &mut Joined, server: &str, arguments: &Value) -> Value {
    client.call(&format!("{server}_do"), arguments.clone())
}

fn touch(client: &mut Joined, server: &str, uri: &str) {
    act(client, server, &json!({ "what": "touch", "uri": uri }));
}

/// What a server was told to tell of.
fn watched(client: &mut Joined, server: &str) -> Value {
    act(client, server, &json!({}))["structuredContent"]["watched"].clone()
}

fn subscribe(client: &mut Joined, uri: &str) {
    let subscribed = client.ask("resources/subscribe", &json!({ "uri": uri }));
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
}

/// What a client is told next of a resource.
fn updated(client: &mut Joined) -> Value {
    loop {
        let message = client.next();
        if message["method"] == "notifications/resources/updated" {
            return message["params"].clone();
        }
    }
}

#[test]
fn of_a_resource_only_the_server_is_heard_that_has_it() {
    let desk = two("");
    let mut watcher = Joined::greeted(&desk, &[], &json!({}));
    subscribe(&mut watcher, "one://own");
    let mut other = Joined::greeted(&desk, &[], &json!({}));
    touch(&mut other, "one_more", "one://own");
    touch(&mut other, "one", "one://own");
    let params = updated(&mut watcher);
    assert_eq!(params["by"], "one", "{params}");
}

#[test]
fn whoever_is_not_shown_a_package_any_more_is_told_nothing_of_it() {
    let desk = two("[profile.half]\ntools = [\"one\"]\n");
    let mut watcher = Joined::greeted(&desk, &["--profile", "half"], &json!({}));
    let mut other = Joined::greeted(&desk, &[], &json!({}));
    subscribe(&mut watcher, "one://own");
    assert_eq!(watched(&mut other, "one"), json!(["one://own"]));
    let policy = desk.path("home/policy.toml");
    let text = std::fs::read_to_string(&policy).unwrap();
    std::fs::write(&policy, text.replace("[\"one\"]", "[\"one#do\"]")).unwrap();
    // Nobody is told of it, so that it need not tell.
    until("it need not tell", || watched(&mut other, "one") == json!([]));
    touch(&mut other, "one", "one://own");
    watcher.send(&json!({ "jsonrpc": "2.0", "id": "last", "method": "ping" }));
    loop {
        let message = watcher.next();
        assert_ne!(message["method"], "notifications/resources/updated", "{message}");
        if message["id"] == "last" {
            return;
        }
    }
}

#[test]
fn a_server_that_ends_is_asked_again_to_tell_of_what_is_watched() {
    let desk = two("");
    let mut watcher = Joined::greeted(&desk, &[], &json!({}));
    let mut other = Joined::greeted(&desk, &[], &json!({}));
    subscribe(&mut watcher, "one://own");
    act(&mut other, "one", &json!({ "what": "die" }));
    // Nobody has called it since. What was not told meanwhile may have been anything.
    assert_eq!(updated(&mut watcher), json!({ "uri": "one://own" }));
    touch(&mut other, "one", "one://own");
    assert_eq!(updated(&mut watcher)["by"], "one");
}

#[test]
fn a_server_that_is_slow_to_tell_again_holds_up_no_other() {
    let desk = having(&["well", "slow resources/subscribe=8"], "");
    let mut watcher = Joined::greeted(&desk, &[], &json!({}));
    let mut other = Joined::greeted(&desk, &[], &json!({}));
    subscribe(&mut watcher, "slow://own");
    subscribe(&mut watcher, "well://own");
    let die = json!({ "what": "die" });
    act(&mut other, "slow", &die);
    until("it is asked again", || written(&desk, "begin", "resources/subscribe").len() == 3);
    act(&mut other, "well", &die);
    assert_eq!(updated(&mut watcher)["uri"], "well://own");
    assert_eq!(updated(&mut watcher)["uri"], "slow://own");
}

#[test]
fn a_new_host_is_asked_to_tell_of_what_the_one_before_it_told_of() {
    let desk = two("");
    let mut watcher = Joined::greeted(&desk, &[], &json!({}));
    subscribe(&mut watcher, "one://own");
    let [host] = hosts(&desk)[..] else { panic!("there is not one host") };
    kill(host);
    // Its next request has another one started.
    while watcher.ask("ping", &json!({})).get("result").is_none() {}
    let mut other = Joined::greeted(&desk, &[], &json!({}));
    until("it is to tell", || watched(&mut other, "one") == json!(["one://own"]));
    touch(&mut other, "one", "one://own");
    while updated(&mut watcher)["by"] != "one" {}
}

#[test]
fn nothing_is_watched_for_a_client_while_nobody_hears_what_it_is_told() {
    let desk = two("");
    let gate = Gate::open(&desk, &["--without-token"]);
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let ask = |head: &[(&str, &str)], method: &str, params: &Value| {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        gate.post("/mcp", head, &message)
    };
    let session = ask(&[], "initialize", &greeting).headers["mcp-session-id"].clone();
    let head = [("mcp-session-id", &*session)];
    let subscribed = ask(&head, "resources/subscribe", &json!({ "uri": "one://own" })).last();
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    let watched = || gate.call("/mcp", "one_do", json!({}))["structuredContent"]["watched"].clone();
    until("nobody is told", || watched() == json!([]));
    let mut stream = TcpStream::connect(&gate.address).unwrap();
    let host = &gate.address;
    write!(stream, "GET /mcp HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n")
        .unwrap();
    until("somebody is told", || watched() == json!(["one://own"]));
    drop(stream);
    until("nobody is told any more", || watched() == json!([]));
}

#[test]
fn a_subscription_is_told_what_is_really_watched_and_loses_nothing_before_that() {
    let desk = two("");
    // Both have said what they have: on a busy machine one of them may begin late.
    let mut older = Joined::greeted(&desk, &[], &json!({}));
    for list in ["resources/list", "resources/templates/list"] {
        until("both have listed it", || older.ask(list, &json!({}))["result"]["_meta"].is_null());
    }
    let mut client = Joined::new(&desk, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": NEWER,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let wanted = ["one://eager", "nowhere://x", "one_more://own", "one://eager", "shared://paper"];
    let wanted = json!({ "resourceSubscriptions": wanted, "promptsListChanged": true });
    let params = json!({ "_meta": meta, "notifications": wanted });
    client.send(
        &json!({ "jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": params }),
    );
    let first = client.next();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    let accepted = json!({
        "resourceSubscriptions": ["one://eager", "one_more://own"], "promptsListChanged": true,
    });
    assert_eq!(first["params"]["notifications"], accepted);
    // It was told before the server had answered that it would.
    let params = updated(&mut client);
    assert_eq!(params["uri"], "one://eager");
    assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], 3);
    // Two want to be told of it: when the one leaves, the other still is, and when both are gone the server need not tell.
    subscribe(&mut older, "one://eager");
    assert_eq!(watched(&mut older, "one"), json!(["one://eager"]));
    older.ask("resources/unsubscribe", &json!({ "uri": "one://eager" }));
    touch(&mut older, "one", "one://eager");
    assert_eq!(updated(&mut client)["by"], "one");
    drop(client);
    until("it need not tell", || watched(&mut older, "one") == json!([]));
}

#[test]
fn one_that_hangs_holds_up_nothing_that_others_have() {
    let desk = having(
        &["well", "stuck prompts/list=600 resources/list=600", "late prompts/list=8"],
        "[sandbox]\ntimeout = \"60s\"\n",
    );
    let gate = Gate::open(&desk, &["--without-token"]);
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    let soon = |what: &str, began: Instant| {
        let took = began.elapsed();
        assert!(took < SOON, "{what} took {took:?}");
    };
    let began = Instant::now();
    let listed = client.ask("prompts/list", &json!({}));
    soon("the list of prompts", began);
    let prompts = all(&listed, "prompts", "name");
    assert!(prompts.len() == 2 && prompts[0].starts_with("well_greet_"), "{listed}");
    assert_eq!(
        listed["result"]["_meta"]["haft/unanswered"],
        json!(["mcpb:late", "mcpb:stuck"]),
        "{listed}"
    );
    let began = Instant::now();
    let got = gate.ask("/mcp", "prompts/get", json!({ "name": prompts[0] }));
    assert!(got["result"]["messages"].is_array(), "{got}");
    soon("a prompt", began);
    let began = Instant::now();
    assert_eq!(text(&read(&gate, "/mcp", "well://own")), "well://own of well");
    soon("a resource", began);
    let began = Instant::now();
    let listed = gate.ask("/mcp", "resources/list", json!({}));
    soon("the list of resources", began);
    assert_eq!(listed["result"]["_meta"]["haft/unanswered"], json!(["mcpb:stuck"]), "{listed}");
    let uris = all(&listed, "resources", "uri");
    assert!(uris.contains(&"well://own".to_owned()) && uris.contains(&"late://own".to_owned()));
    // Whoever went on without one is told when it has answered after all.
    until("the news", || client.next()["method"] == "notifications/prompts/list_changed");
    let listed = client.ask("prompts/list", &json!({}));
    assert_eq!(all(&listed, "prompts", "name").len(), 4, "{listed}");
    assert_eq!(listed["result"]["_meta"]["haft/unanswered"], json!(["mcpb:stuck"]), "{listed}");
}

#[test]
fn a_tool_is_shown_with_everything_that_its_server_says_of_it() {
    let desk = two("");
    let gate = Gate::open(&desk, &["--without-token"]);
    let tool = |path: &str| gate.ask(path, "tools/list", json!({}))["result"]["tools"][0].clone();
    let (shown, own) = (tool("/mcp"), tool("/mcp/raw/one"));
    assert_eq!((&shown["name"], &own["name"]), (&json!("one_do"), &json!("do")));
    for member in ["title", "description", "icons", "inputSchema", "outputSchema"] {
        assert!(!own[member].is_null() && shown[member] == own[member], "{member}: {shown}");
    }
    assert_eq!(own["annotations"], json!({ "openWorldHint": false }));
    // What it left out of its hints is what it would be at worst.
    for (hint, is_so) in
        [("openWorldHint", false), ("readOnlyHint", false), ("destructiveHint", true)]
    {
        assert_eq!(shown["annotations"][hint], is_so, "{shown}");
    }
    // What may be another each time, and was approved by nobody, is told by neither.
    assert_eq!(own["_meta"], Value::Null);
    assert_eq!(
        (&shown["_meta"]["haft/id"], &shown["_meta"]["one/odd"]),
        (&json!("mcpb:one"), &Value::Null)
    );
}

#[test]
fn how_far_the_reading_of_a_resource_is_reaches_who_reads_it() {
    let scripts = Desk::new();
    let read = r#"[say({"method": "notifications/progress", "params": {"progressToken": params["_meta"]["progressToken"], "progress": at, "total": 2}}) for at in (1, 2)]
        and {"contents": [{"uri": params["uri"], "text": "read"}], "ttlMs": 0, "cacheScope": "private"}"#;
    let path = newer(scripts.0.path(), "slow", "", read);
    let desk = home(&[("slow", &path)], OPEN);
    let told = |messages: &[Value]| -> Vec<f64> {
        let of_it = messages.iter().filter(|one| one["params"]["progressToken"] == "mine");
        of_it.map(|one| one["params"]["progress"].as_f64().unwrap()).collect()
    };
    let wanted = json!({ "uri": "slow://paper", "_meta": { "progressToken": "mine" } });
    let mut older = Joined::greeted(&desk, &[], &json!({}));
    older.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": wanted }));
    let messages = [older.next(), older.next(), older.next()];
    assert_eq!(told(&messages), [1.0, 2.0], "{messages:?}");
    assert_eq!(messages[2]["result"]["contents"][0]["text"], "read", "{messages:?}");
    let gate = Gate::open(&desk, &["--without-token"]);
    let headers = [
        ("mcp-protocol-version", NEWER),
        ("mcp-method", "resources/read"),
        ("mcp-name", "slow://paper"),
    ];
    let meta = json!({ "progressToken": "mine", "io.modelcontextprotocol/protocolVersion": NEWER, "io.modelcontextprotocol/clientCapabilities": {} });
    let params = json!({ "uri": "slow://paper", "_meta": meta });
    let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params });
    let messages = gate.post("/mcp", &headers, &asked).messages();
    assert_eq!(told(&messages), [1.0, 2.0], "{messages:?}");
}
