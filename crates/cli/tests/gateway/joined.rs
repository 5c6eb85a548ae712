//! `haft mcp`: many clients, one host; and what becomes of clients when the host is gone.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::Desk;
use crate::gate::{Gate, Joined, NEWER, OPEN, connected, home, server, until, words};

fn counting() -> Desk {
    let desk = Desk::new();
    let path = server(desk.0.path(), "counter", "count", "return f'{os.getpid()} {calls}'");
    let ready = home(&[("counter", &path)], OPEN);
    // The server is read from where it was imported.
    std::mem::forget(desk);
    ready
}

/// The processes of the host of a home.
pub(crate) fn hosts(desk: &Desk) -> Vec<u32> {
    let home = desk.path("home");
    let found =
        Command::new("pgrep").args(["-f", &format!("{} serve", home.display())]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().filter_map(|line| line.parse().ok()).collect()
}

/// Everything that a process started, and what those did.
pub(crate) fn tools_of(process: u32) -> Vec<u32> {
    let found = Command::new("pgrep").args(["-P", &process.to_string()]).output().unwrap();
    let children = String::from_utf8_lossy(&found.stdout);
    let children: Vec<u32> = children.lines().filter_map(|line| line.parse().ok()).collect();
    let below: Vec<_> = children.iter().flat_map(|child| tools_of(*child)).collect();
    [children, below].concat()
}

pub(crate) fn kill(process: u32) {
    Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
}

#[test]
fn ten_clients_have_one_host_and_one_server() {
    let desk = counting();
    let mut clients: Vec<_> = (0..10).map(|_| Joined::greeted(&desk, &[], &json!({}))).collect();
    let said: Vec<_> = clients.iter_mut().map(|one| one.call("counter_count", json!({}))).collect();
    let processes: std::collections::HashSet<_> =
        said.iter().map(|one| words(one).split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(processes.len(), 1, "{said:?}");
    assert_eq!(hosts(&desk).len(), 1);
}

#[test]
fn everything_that_was_asked_is_answered_before_the_end() {
    let desk = counting();
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    for id in 0..20 {
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "counter_count" } }));
    }
    let mut ids: Vec<_> =
        client.end().iter().map(|answer| answer["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
}

#[test]
fn a_home_is_found_from_where_the_client_was_started() {
    let desk = Desk::new();
    let mut client = Command::new(assert_cmd::cargo::cargo_bin("haft"))
        .current_dir(desk.0.path())
        .args(["--home", "home", "mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = client.stdin.take().unwrap();
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    writeln!(to, "{ping}").unwrap();
    drop(to);
    let told = client.wait_with_output().unwrap();
    assert!(told.status.success() && !told.stdout.is_empty(), "{told:?}");
    assert_eq!(hosts(&desk).len(), 1);
}

#[test]
fn who_says_something_else_and_ends_is_told_that_it_was_none() {
    let desk = Desk::new();
    for (said, code) in [("this is no JSON\n", -32700), ("[]\n", -32600), ("{\"id\":1}\n", -32600)]
    {
        let told = Joined::new(&desk, &[]).say(said).end();
        let [told] = &told[..] else { panic!("{said}: {told:?}") };
        assert_eq!(told["error"]["code"], code, "{said}: {told}");
    }
}

#[test]
fn a_client_outlives_the_host_and_every_request_is_answered_once() {
    let desk = counting();
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    for _ in 0..3 {
        client.call("counter_count", json!({}));
    }
    let [host] = hosts(&desk)[..] else { panic!("there is not one host") };
    let servers = tools_of(host);
    assert!(!servers.is_empty());
    kill(host);
    // No tool survives the host.
    let is_gone = |process: &u32| !std::path::Path::new(&format!("/proc/{process}")).exists();
    until("the end of the server", || servers.iter().all(is_gone));
    let after = client.call("counter_count", json!({}));
    assert!(words(&after).ends_with(" 1"), "{after}");
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}

#[test]
fn a_host_that_nobody_can_find_ends() {
    let desk = counting();
    let client = Joined::greeted(&desk, &[], &json!({}));
    let [host] = hosts(&desk)[..] else { panic!("there is not one host") };
    drop(client);
    std::fs::remove_file(desk.path("home/host.sock")).unwrap();
    until("the end of the host", || !std::path::Path::new(&format!("/proc/{host}")).exists());
}

#[test]
fn a_gateway_takes_over_from_the_host_of_clients() {
    let desk = counting();
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    client.call("counter_count", json!({}));
    let gate = Gate::open(&desk, &["--without-token"]);
    assert_eq!(hosts(&desk), [gate.process.id()]);
    // The client goes on as if nothing had been, and both share one server.
    let by_client = client.call("counter_count", json!({}));
    let by_gate = gate.call("/mcp", "counter_count", json!({}));
    assert_eq!(words(&by_client).split(' ').next(), words(&by_gate).split(' ').next());
}

#[test]
fn what_is_installed_or_switched_off_meanwhile_counts_at_once_and_is_told() {
    let desk = counting();
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    client.call("counter_count", json!({}));
    desk.done(&["disable", "mcpb:counter"]);
    let refused = client.call("counter_count", json!({}));
    assert_eq!(refused["isError"], true, "{refused}");
    let told = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        told.contains("Its owner has switched it off in this home")
            && told.contains("`haft enable mcpb:counter`"),
        "{told}"
    );
    let error = &refused["structuredContent"]["error"];
    assert_eq!((&error["code"], &error["who"]), (&json!("denied"), &json!("owner")), "{refused}");
    desk.done(&["enable", "mcpb:counter"]);
    until("the news", || client.next()["method"] == "notifications/tools/list_changed");
    assert!(client.call("counter_count", json!({}))["content"].is_array());
}

#[test]
fn a_client_is_told_of_the_lists_that_it_knows_of_alone() {
    let desk = home(&[], OPEN);
    let echo = crate::common::repository().join("examples/mcpkg/echo");
    desk.done(&["install", echo.to_str().unwrap(), "--yes"]);
    let mut client = Joined::new(&desk, &[]);
    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let greeted = client.ask("initialize", &greeting);
    let offered = &greeted["result"]["capabilities"];
    assert!(offered["tools"]["listChanged"] == true && offered["prompts"].is_null(), "{greeted}");
    desk.done(&["disable", "demo.echo"]);
    until("the news", || client.next()["method"] == "notifications/tools/list_changed");
    client.send(&json!({ "jsonrpc": "2.0", "id": "last", "method": "ping" }));
    let next = client.next();
    assert_eq!(next["id"], "last", "{next}");
}

#[test]
fn clients_of_the_newer_era_need_no_greeting() {
    let desk = counting();
    let mut client = Joined::new(&desk, &[]);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let found = client.ask("server/discover", &json!({ "_meta": meta }));
    assert_eq!(found["result"]["resultType"], "complete");
    assert!(
        found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28"))
    );
    let called = client.ask("tools/call", &json!({ "_meta": meta, "name": "counter_count" }));
    assert_eq!(called["result"]["resultType"], "complete", "{called}");
    let bare = client.ask("tools/list", &json!({}));
    assert_eq!(bare["error"]["code"], -32602);
}

#[test]
fn what_cannot_be_served_is_told_at_once() {
    let desk = counting();
    desk.refused(&["mcp", "--only", "nobody"], 3, "`nobody` is not installed");
    desk.refused(&["mcp", "--profile", "nothing"], 3, "no profile `nothing`");
    let mut alone = Joined::greeted(&desk, &["--only", "counter"], &json!({}));
    assert!(words(&alone.call("count", json!({}))).ends_with(" 1"));
}

#[test]
fn one_revision_lets_several_messages_be_one() {
    let desk = counting();
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "tools/list" },
        { "jsonrpc": "2.0", "method": "notifications/progress", "params": {} },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "counter_count" } },
        { "jsonrpc": "2.0", "id": 3 },
    ]);
    let greeting = |revision: &str| json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let mut client = Joined::new(&desk, &[]);
    client.ask("initialize", &greeting("2025-03-26"));
    client.send(&batch);
    let answers = client.next();
    let all = answers.as_array().unwrap_or_else(|| panic!("{answers}"));
    assert_eq!(all.len(), 3);
    assert!(
        all.iter().any(|one| one["id"] == 2 && words(&one["result"]).ends_with(" 1")),
        "{answers}"
    );
    assert!(all.iter().any(|one| one["id"] == 3 && one["error"]["code"] == -32600), "{answers}");
    let mut other = Joined::new(&desk, &[]);
    other.ask("initialize", &greeting("2025-06-18"));
    other.send(&batch);
    let refused = other.next();
    assert_eq!(refused["error"]["code"], -32600);
    assert!(refused["error"]["message"].to_string().contains("2025-03-26"), "{refused}");
    // Nobody waits for the answers to what was refused.
    assert_eq!(other.end(), [] as [Value; 0]);
}

#[test]
fn a_gateway_makes_no_room_for_another() {
    let desk = counting();
    let gate = Gate::open(&desk, &["--without-token"]);
    let words_of_it = format!("serves this home already at http://{}", gate.address);
    desk.refused(&["serve", "--listen", "127.0.0.1:0"], 5, &words_of_it);
    desk.refused(&["serve", "--listen", &gate.address], 5, &words_of_it);
    assert_eq!(words(&gate.call("/mcp", "counter_count", json!({}))).rsplit(' ').next(), Some("1"));
}

#[test]
fn a_host_of_clients_makes_no_room_for_one_that_could_not_serve() {
    let desk = counting();
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    let before = hosts(&desk);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    desk.refused(&["serve", "--listen", &place], 6, &format!("failed to listen at {place}"));
    assert_eq!(hosts(&desk), before);
    assert_eq!(words(&client.call("counter_count", json!({}))).rsplit(' ').next(), Some("1"));
}

#[test]
fn much_may_be_said_both_ways_at_once() {
    const CALLS: i64 = 24;
    let scripts = Desk::new();
    let path =
        server(scripts.0.path(), "wide", "say", "return 'y' * 1500000 + arguments['words'][-1]");
    let desk = home(&[("wide", &path)], OPEN);
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    let argument = "x".repeat(1_500_000);
    let texts = (0..CALLS).map(|id| {
        let params = json!({ "name": "wide_say", "arguments": { "words": argument } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        format!("{call}\n")
    });
    let pouring = client.pour(texts.collect());
    let (told, heard) = mpsc::channel();
    let reading = std::thread::spawn(move || {
        for _ in 0..CALLS {
            told.send(client.next()).unwrap();
        }
        client.end()
    });
    let mut answered = BTreeSet::new();
    for _ in 0..CALLS {
        let answer = heard.recv_timeout(Duration::from_mins(2)).expect("both wait for ever");
        let said = words(&answer["result"]);
        assert!(said.len() == 1_500_001 && said.ends_with('x'), "{}", said.len());
        answered.insert(answer["id"].as_i64().unwrap());
    }
    assert_eq!(answered, (0..CALLS).collect());
    pouring.join().unwrap();
    assert_eq!(reading.join().unwrap(), [] as [Value; 0]);
}

#[test]
fn a_host_reads_on_while_nobody_reads_what_it_says() {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "wide", "say", "return 'y' * 4000000");
    let desk = home(&[("wide", &path)], OPEN);
    let _gate = Gate::open(&desk, &["--without-token"]);
    let speak =
        json!({ "speak": { "profile": null, "only": null, "folder": "/", "session": "s" } });
    let (mut stream, _) = connected(&desk, env!("CARGO_PKG_VERSION"), &speak);
    stream.set_write_timeout(Some(Duration::from_mins(1))).unwrap();
    let request = |id: i64, method: &str, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": NEWER,
            "io.modelcontextprotocol/clientCapabilities": {} });
        let asked = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        format!("{asked}\n")
    };
    stream.write_all(request(1, "tools/call", json!({ "name": "wide_say" })).as_bytes()).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    // A signal is no answer.
    while answers.fill_buf().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
    assert!(!answers.fill_buf().unwrap().is_empty());
    // Its answer has begun, and is more than anybody keeps on the way.
    let long = json!({ "a": "x".repeat(4_000_000) });
    stream.write_all(request(2, "server/discover", long).as_bytes()).expect("it reads on");
    let ids: Vec<_> = answers
        .lines()
        .take(2)
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["id"].as_i64())
        .collect();
    assert_eq!(ids, [Some(1), Some(2)]);
}

#[test]
fn the_last_line_needs_no_end() {
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let told = Joined::new(&Desk::new(), &[]).say(&ping.to_string()).end();
    assert_eq!(told, [json!({ "jsonrpc": "2.0", "id": 1, "result": {} })]);
}

#[test]
fn whoever_listens_and_leaves_in_one_breath_is_gone() {
    let desk = counting();
    let gate = Gate::open(&desk, &["--without-token"]);
    assert_eq!(clients(&gate), 0);
    let speak =
        json!({ "speak": { "profile": null, "only": null, "folder": "/", "session": "s" } });
    let listen = listen(&json!(1));
    for _ in 0..10 {
        let (mut stream, told) = connected(&desk, env!("CARGO_PKG_VERSION"), &speak);
        assert_eq!(told, "welcome");
        stream.write_all(format!("{listen}\n").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // Nothing more comes, and it ends.
        let rest: Vec<_> = BufReader::new(stream).lines().map(Result::unwrap).collect();
        assert!(rest.iter().all(|line| line.contains("acknowledged")), "{rest:?}");
    }
    until("they are gone", || clients(&gate) == 0);
}

#[test]
fn who_asks_too_much_at_once_is_refused_and_heard_all_the_same() {
    let desk = counting();
    let gate = Gate::open(&desk, &["--without-token"]);
    let mut client = Joined::new(&desk, &[]);
    let id = |number: i64| json!(format!("listen-{number}"));
    for number in 0..1025 {
        client.send(&listen(&id(number)));
    }
    let told: Vec<_> = (0..1025).map(|_| client.next()).collect();
    let refused: Vec<_> = told.iter().filter(|one| one.get("error").is_some()).collect();
    let [refused] = refused[..] else { panic!("{refused:?}") };
    assert_eq!(refused["id"], id(1024), "{refused}");
    assert!(refused["error"]["message"].to_string().contains("too many requests at once"));
    // What it calls off makes room, and its end is noticed.
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id(0) } }));
    until("room", || client.ask("ping", &json!({})).get("result").is_some());
    drop(client);
    until("it is gone", || clients(&gate) == 0);
}

/// Listens for other tools, as a client of the newer era.
fn listen(id: &Value) -> Value {
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": {
        "io.modelcontextprotocol/protocolVersion": NEWER,
        "io.modelcontextprotocol/clientCapabilities": {} } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params })
}

/// How many clients a gateway has.
fn clients(gate: &Gate) -> usize {
    let counted = gate.send("GET", "/metrics", &[], "").body;
    let count = counted.lines().find_map(|line| line.strip_prefix("haft_clients "));
    count.unwrap_or_else(|| panic!("{counted}")).parse().unwrap()
}

#[test]
fn a_client_of_another_version_ends_no_gateway_of_the_owner() {
    let desk = counting();
    let mut gate = Gate::open(&desk, &["--without-token"]);
    let speak =
        json!({ "speak": { "profile": null, "only": null, "folder": "/", "session": "s" } });
    let (mut stream, told) = connected(&desk, "0.0.1", &speak);
    assert_eq!(told, "welcome");
    writeln!(stream, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert!(line.contains("\"result\""), "{line}");
    // One that wants what is not known here is told what runs.
    let (_, told) = connected(&desk, "999.0.0", &json!({ "dance": {} }));
    let words_of_it = told["refused"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert!(words_of_it.contains(env!("CARGO_PKG_VERSION")) && words_of_it.contains("999.0.0"));
    assert!(gate.process.try_wait().unwrap().is_none());
    assert!(words(&gate.call("/mcp", "counter_count", json!({}))).ends_with(" 1"));
}

#[test]
fn a_client_of_another_version_has_a_host_of_clients_make_room() {
    let speak =
        json!({ "speak": { "profile": null, "only": null, "folder": "/", "session": "s" } });
    for want in [speak, json!({ "dance": {} })] {
        let desk = counting();
        let mut client = Joined::greeted(&desk, &[], &json!({}));
        let [host] = hosts(&desk)[..] else { panic!("there is not one host") };
        let (_, told) = connected(&desk, "999.0.0", &want);
        assert_eq!(told, "outdated");
        until("its end", || !hosts(&desk).contains(&host));
        assert!(words(&client.call("counter_count", json!({}))).ends_with(" 1"));
    }
}
