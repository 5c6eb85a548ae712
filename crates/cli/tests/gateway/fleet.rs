//! Replicas of a gateway that share a state in `PostgreSQL`: whoever is asked, the answer is the same.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::postgres::Postgres;

use crate::common::{Desk, Ran, write_below};
use crate::gate::{Gate, NEWER, OPEN, conformance, settings, speaking, until, words};
use crate::lasting::{self, begun, can, reached};

const ASK: &str = "[approval]\nundeclared = \"ask\"\n";

/// A password that nobody asks for, and that nobody should be told.
const PASSWORD: &str = "s3cret-word";

/// A server, or nothing where it is not installed and need not be.
fn demanded() -> Option<Postgres> {
    let found = Postgres::start();
    let is_demanded = std::env::var_os("HAFT_TEST_SERVERS").is_some();
    assert!(found.is_some() || !is_demanded, "PostgreSQL is not installed");
    found
}

/// Homes that are alike, and the state that they share.
struct Fleet {
    postgres: Postgres,
    state: String,
    homes: [Desk; 2],
}

impl Fleet {
    /// A home with a tool, and another that was made of its lockfile. None where `PostgreSQL` is not installed and need not be.
    fn new(policy: &str) -> Option<Self> {
        Self::with(policy, &[])
    }

    /// The same with servers, written in Python, of which each has the settings.
    fn with(policy: &str, servers: &[(&str, &str)]) -> Option<Self> {
        let postgres = demanded()?;
        let state = postgres.database().replace("haft@", &format!("haft:{PASSWORD}@"));
        let homes = [Desk::new(), Desk::new()];
        for desk in &homes {
            write_below(&desk.path("home"), "policy.toml", policy);
            desk.done(&["policy", "show"]);
        }
        let package = homes[0].echo();
        homes[0].done(&["install", package.to_str().unwrap(), "--yes", "-q"]);
        let lock = homes[0].path("its.lock");
        let lock = lock.to_str().unwrap();
        homes[0].done(&["lock", "-o", lock]);
        homes[1].done(&["sync", "--locked", lock, "--yes", "-q", "--state", &state]);
        for desk in homes.iter().filter(|_| !servers.is_empty()) {
            desk.done(&["import", &settings(desk, servers), "--yes", "--state", &state]);
        }
        Some(Self { postgres, state, homes })
    }

    fn serve(&self, which: usize, more: &[&str]) -> Gate {
        Gate::open_with(&self.homes[which], more, &[("HAFT_STATE", &self.state)])
    }

    /// What the owner types, in the home of either.
    fn typed(&self, which: usize, words: &[&str]) -> Ran {
        self.homes[which].haft(&[words, &["--state", &self.state]].concat())
    }

    /// The same, which must succeed; what it says to programs.
    fn done(&self, which: usize, words: &[&str]) -> Value {
        let ran = self.typed(which, &[words, &["--json"]].concat());
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap_or(Value::Null)
    }

    /// The owner, in the console of one; their cookie.
    fn signed_in(&self, which: usize, gate: &Gate) -> String {
        let link = self.homes[which].done(&["console"]).stdout;
        let code = link.trim().rsplit('/').next().unwrap();
        let origin = format!("http://{}", gate.address);
        let entered =
            gate.send("POST", "/sign-in", &[("origin", &origin)], &format!("code={code}"));
        entered.headers["set-cookie"].split(';').next().unwrap().to_owned()
    }

    /// How many calls were counted.
    fn counted(&self) -> u64 {
        let all = self.done(1, &["metrics"]);
        all["packages"][0]["calls"].as_u64().unwrap_or_else(|| panic!("{all}"))
    }

    /// How many lines the log of a home has.
    fn lines(&self, which: usize) -> u64 {
        let folder = self.homes[which].path("home").join("audit");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|kind| kind == "log"));
        logs.map(|path| std::fs::read_to_string(path).unwrap().lines().count() as u64).sum()
    }

    /// What is wrong with the logs that were sent, and how many records of each replica are there.
    fn verified(&self) -> (Ran, Vec<u64>) {
        let ran = self.typed(0, &["audit", "verify", "--json"]);
        let all = ran.json()["replicas"].as_array().unwrap().clone();
        let records = all.iter().map(|one| one["records"].as_u64().unwrap()).collect();
        (ran, records)
    }
}

fn call(gate: &Gate, message: &str) -> Value {
    gate.call("/mcp", "demo_echo", json!({ "message": message }))
}

/// Makes calls until nobody is there who answers.
fn call_until_gone(address: &str) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "demo_echo", "arguments": { "message": "x" },
        "_meta": { "io.modelcontextprotocol/protocolVersion": NEWER, "io.modelcontextprotocol/clientCapabilities": {} },
    } })
    .to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: {NEWER}\r\nmcp-method: tools/call\r\n\
         mcp-name: demo_echo\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    while let Ok(mut stream) = TcpStream::connect(address) {
        let _cut_off = stream.write_all(format!("{head}{body}").as_bytes());
        let _cut_off = stream.read_to_end(&mut Vec::new());
    }
}

fn code_of(told: &Value) -> Option<&str> {
    told["structuredContent"]["error"]["code"].as_str()
}

fn echoed(told: &Value) -> Option<&str> {
    told["structuredContent"]["message"].as_str()
}

#[test]
fn what_one_replica_asks_is_answered_anywhere_and_counts_once_on_any() {
    let Some(fleet) = Fleet::new(ASK) else { return };
    let [a, b] = [0, 1].map(|which| fleet.serve(which, &["--without-token"]));
    let names = |gate: &Gate| gate.ask("/mcp", "tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(names(&a), names(&b), "whoever is asked, tools have the same names");
    assert_eq!(code_of(&call(&a, "x")), Some("needs_approval"));
    assert_eq!(code_of(&call(&b, "x")), Some("needs_approval"));
    let waiting = fleet.done(1, &["approve", "list"]);
    let [question] = &waiting.as_array().unwrap()[..] else { panic!("not one: {waiting}") };
    fleet.done(1, &["approve", "allow", question["ticket"].as_str().unwrap()]);
    // Both are asked for it at once, and one of them makes the call.
    let told = std::thread::scope(|scope| {
        let both = [&a, &b].map(|gate| scope.spawn(|| call(gate, "x")));
        both.map(|one| one.join().unwrap())
    });
    let made = told.iter().filter(|told| echoed(told) == Some("x")).count();
    assert_eq!(made, 1, "{told:?}");
    assert_eq!(code_of(&call(&b, "x")), Some("needs_approval"));
    // A no counts everywhere, too.
    let waiting = fleet.done(0, &["approve", "list"]);
    fleet.done(0, &["approve", "deny", waiting[0]["ticket"].as_str().unwrap()]);
    assert_eq!(code_of(&call(&a, "x")), Some("denied"));
    assert_eq!(code_of(&call(&b, "x")), Some("denied"));
}

#[test]
fn a_request_that_one_replica_sealed_is_opened_by_another() {
    let Some(fleet) = Fleet::new(ASK) else { return };
    // Tokens are a file of the home, which is put into each.
    let token = fleet.homes[0].done(&["token", "new", "person", "--asks"]);
    let token = format!("Bearer {}", token.stdout.trim());
    let [from, to] = [0, 1].map(|which| fleet.homes[which].path("home").join("tokens.json"));
    std::fs::copy(from, to).unwrap();
    let [a, b] = [0, 1].map(|which| fleet.serve(which, &[]));
    let can = json!({ "elicitation": { "form": {} } });
    let ask = |gate: &Gate, more: Value| {
        let mut params = json!({ "name": "demo_echo", "arguments": { "message": "x" } });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let own = [("authorization", &*token)];
        gate.ask_as("/mcp", &own, &can, "tools/call", params).last()["result"].clone()
    };
    let asked = ask(&a, json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let yes = json!({ "approve": { "action": "accept", "content": { "decision": "allow" } } });
    let answer = json!({ "requestState": asked["requestState"], "inputResponses": yes });
    let done = ask(&b, answer.clone());
    assert_eq!(echoed(&done), Some("x"), "{done}");
    for gate in [&a, &b] {
        assert_eq!(code_of(&ask(gate, answer.clone())), Some("denied"), "it counted once");
    }
}

/// What a question of a server is answered.
fn named(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

/// The one question of an answer, by its name.
fn question(told: &Value) -> String {
    let asked = told["inputRequests"].as_object().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(asked.len(), 1, "{told}");
    asked.keys().next().unwrap().clone()
}

#[test]
fn a_task_of_one_replica_is_told_answered_and_called_off_by_any_while_that_one_is_there() {
    let scripts = Desk::new();
    let path = lasting::server(
        scripts.0.path(),
        r#"{"resultType": "input_required", "requestState": "one", "inputRequests": {"name": {"method": "elicitation/create", "params": {"mode": "form", "message": "who?", "requestedSchema": {"type": "object", "properties": {}}}}}}
         if "requestState" not in params else words(params["inputResponses"]["name"]["content"]["name"])"#,
    );
    let Some(fleet) = Fleet::with(OPEN, &[("late", &path)]) else { return };
    let [a, b] = [0, 1].map(|which| fleet.serve(which, &["--without-token"]));
    let tasks = [(); 3].map(|()| begun(&a, "late_work"));
    let told = reached(&b, &tasks[0], "input_required");
    let answers = json!({ question(&told): named("ada") });
    let update = json!({ "taskId": tasks[0], "inputResponses": answers });
    lasting::ask(&b, "tasks/update", update);
    let done = reached(&b, &tasks[0], "completed");
    assert_eq!(words(&done["result"]), "ada", "{done}");
    assert_eq!(lasting::ask(&a, "tasks/get", json!({ "taskId": tasks[0] })), done);
    lasting::ask(&b, "tasks/cancel", json!({ "taskId": tasks[1] }));
    for gate in [&a, &b] {
        reached(gate, &tasks[1], "cancelled");
    }
    // Nothing of what was asked and answered is left in what they share.
    let left = || fleet.postgres.tell(&fleet.state, "SELECT 'left: ' || count(*) FROM inquiries");
    until("nothing is left", || left().contains("left: 0"));
    drop(a);
    let gone = b.ask_as("/mcp", &[], &can(), "tasks/get", json!({ "taskId": tasks[2] })).last();
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    assert!(gone.to_string().contains("the process that had it is gone"), "{gone}");
}

#[test]
fn a_call_that_waits_in_one_replica_goes_on_by_any() {
    let scripts = Desk::new();
    // What it is told has two parts: a name, and how long it thinks about that.
    let asks = "def ask():\n    \
        _say({'id': 'q', 'method': 'elicitation/create', 'params': {'message': 'who?', 'requestedSchema': {'type': 'object', 'properties': {}}}})\n    \
        name, thinks = json.loads(sys.stdin.readline())['result']['content']['name'].split()\n    \
        time.sleep(float(thinks))\n    \
        return _words(name)";
    let tools = r#"[{"name": "ask", "description": "Asks", "inputSchema": {"type": "object"}}]"#;
    let path = speaking(scripts.0.path(), "curious", asks, tools, "ask()");
    let Some(mut fleet) = Fleet::with(OPEN, &[("curious", &path)]) else { return };
    let [a, b] = [0, 1].map(|which| fleet.serve(which, &["--without-token"]));
    let ask = |gate: &Gate, more: Value| {
        let mut params = json!({ "name": "curious_ask", "arguments": {} });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let can = json!({ "elicitation": {} });
        gate.ask_as("/mcp", &[], &can, "tools/call", params).last()
    };
    let waiting = |name: &str| {
        let asked = ask(&a, json!({}))["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let answers = json!({ question(&asked): named(name) });
        json!({ "requestState": asked["requestState"], "inputResponses": answers })
    };
    let again = waiting("ada 0");
    let done = ask(&b, again.clone());
    assert_eq!(words(&done["result"]), "ada", "{done}");
    for gate in [&a, &b] {
        let gone = ask(gate, again.clone());
        assert!(gone["error"]["message"].to_string().contains("make it again"), "{gone}");
    }
    // It has its answer once the database is there again, though that was away for longer than a replica may be silent.
    let late = waiting("eve 3");
    let done = std::thread::scope(|scope| {
        let late = scope.spawn(|| ask(&b, late));
        std::thread::sleep(Duration::from_secs(1));
        fleet.postgres.stop();
        std::thread::sleep(Duration::from_secs(12));
        fleet.postgres.start_again();
        late.join().unwrap()
    });
    assert_eq!(words(&done["result"]), "eve", "{done}");
    // A replica that is told to stop answers first what it has begun; then what it had is gone.
    let begun = waiting("ida 2");
    let done = std::thread::scope(|scope| {
        let begun = scope.spawn(|| ask(&b, begun.clone()));
        std::thread::sleep(Duration::from_millis(700));
        let stop = std::process::Command::new("kill").arg(a.process.id().to_string()).status();
        assert!(stop.unwrap().success());
        begun.join().unwrap()
    });
    assert_eq!(words(&done["result"]), "ida", "{done}");
    let gone = ask(&b, begun);
    assert!(gone["error"]["message"].to_string().contains("make it again"), "{gone}");
}

#[test]
fn whatever_a_hosted_server_has_any_replica_has() {
    let Some(fleet) = Fleet::with(OPEN, &[("conformance", &conformance())]) else { return };
    let gates = [0, 1].map(|which| fleet.serve(which, &["--without-token"]));
    let prompts = gates[0].ask("/mcp", "prompts/list", json!({}))["result"]["prompts"].clone();
    let mut names = prompts.as_array().unwrap().iter().map(|prompt| prompt["name"].clone());
    let simple = names.find(|name| name.to_string().contains("test_simple_prompt"));
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("tools/call", json!({ "name": "conformance_test_simple_text", "arguments": {} })),
        ("prompts/get", json!({ "name": simple })),
        ("resources/read", json!({ "uri": "test://static-text" })),
    ] {
        let [one, other] = [0, 1].map(|which| gates[which].ask("/mcp", method, params.clone()));
        assert_eq!(one["result"], other["result"], "{method}");
        assert!(one["result"].is_object(), "{method}: {one}");
    }
}

#[test]
fn what_is_asked_about_a_prompt_in_one_replica_is_answered_by_any() {
    let server = format!("{} legacy", conformance());
    let Some(fleet) = Fleet::with(OPEN, &[("conformance", &server)]) else { return };
    let [a, b] = [0, 1].map(|which| fleet.serve(which, &["--without-token"]));
    let ask = |gate: &Gate, more: &Value| {
        let mut params = json!({ "name": "test_input_required_result_prompt", "arguments": {} });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (path, can) = ("/mcp/raw/mcpb:conformance", json!({ "elicitation": {} }));
        gate.ask_as(path, &[], &can, "prompts/get", params).last()
    };
    let asked = ask(&a, &json!({}))["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answer = json!({ "action": "accept", "content": { "context": "the sea" } });
    let answers = json!({ question(&asked): answer });
    let more = json!({ "requestState": asked["requestState"], "inputResponses": answers });
    let told = ask(&b, &more);
    assert!(told["result"]["messages"].to_string().contains("the sea"), "{told}");
    let again = ask(&b, &more);
    assert!(again["error"]["message"].to_string().contains("make it again"), "{again}");
}

#[test]
fn calls_are_added_up_and_every_log_is_there_and_whole_also_after_a_kill() {
    let Some(fleet) = Fleet::new(OPEN) else { return };
    let [a, b] = [0, 1].map(|which| fleet.serve(which, &["--without-token"]));
    for number in 0..6 {
        let gate = if number % 2 == 0 { &a } else { &b };
        let message = number.to_string();
        assert_eq!(echoed(&call(gate, &message)), Some(&*message));
    }
    until("the calls of both are added up", || fleet.counted() == 6);
    // The first is killed in the middle of calls.
    let before = fleet.lines(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| call_until_gone(&a.address));
        }
        until("calls are made", || fleet.lines(0) > before + 20);
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-9", &a.process.id().to_string()]).status().unwrap().success());
    });
    drop(a);
    // Whatever is in the log of its home is sent once it is there again.
    let a = fleet.serve(0, &["--without-token"]);
    assert_eq!(echoed(&call(&a, "again")), Some("again"));
    let mut all = Vec::new();
    until("both logs are sent", || {
        let mut expected = [fleet.lines(0), fleet.lines(1)];
        expected.sort_unstable();
        all = fleet.verified().1;
        all.sort_unstable();
        all == expected
    });
    let (ran, _) = fleet.verified();
    assert_eq!((ran.code, &ran.json()["sound"]), (0, &json!(true)), "{}", ran.stdout);
    let shown = fleet.typed(1, &["audit", "--limit", "100"]);
    let replicas: std::collections::BTreeSet<_> =
        shown.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(replicas.len(), 2, "{}", shown.stdout);
    // What somebody changes in the table is found, and the replica is named.
    let line = "UPDATE audit_lines SET line = replace(line, '\"ok\"', '\"no\"') WHERE line LIKE '%\"ok\"%'";
    fleet.postgres.tell(&fleet.state, line);
    let ran = fleet.typed(1, &["audit", "verify"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("the line was edited"), "{}", ran.stdout);
    assert!(ran.stdout.contains("of replica ed25519:"), "{}", ran.stdout);
}

#[test]
fn while_the_database_is_away_nothing_is_called_and_afterwards_it_goes_on() {
    let Some(mut fleet) = Fleet::new(OPEN) else { return };
    let gate = fleet.serve(0, &["--without-token"]);
    assert_eq!(echoed(&call(&gate, "before")), Some("before"));
    fleet.postgres.stop();
    let told = call(&gate, "meanwhile");
    assert_eq!(code_of(&told), Some("unavailable"), "{told}");
    assert!(told.to_string().contains("the state of the home cannot be used"), "{told}");
    assert!(!told.to_string().contains(PASSWORD), "{told}");
    let ran = fleet.typed(1, &["approve", "list"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert!(!ran.stderr.contains(PASSWORD), "{}", ran.stderr);
    fleet.postgres.start_again();
    until("it goes on", || echoed(&call(&gate, "after")) == Some("after"));
    until("the log is sent", || {
        let (ran, records) = fleet.verified();
        ran.code == 0 && records.first().is_some_and(|records| *records > 3)
    });
}

#[test]
fn a_page_of_the_console_hears_what_another_replica_has_written() {
    let Some(fleet) = Fleet::new(ASK) else { return };
    let [a, b] = [0, 1].map(|which| fleet.serve(which, &["--without-token"]));
    let cookie = fleet.signed_in(0, &a);
    let mut stream = TcpStream::connect(&a.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head =
        format!("GET /console/events HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n\r\n", a.address);
    stream.write_all(head.as_bytes()).unwrap();
    let mut events = BufReader::new(stream).lines().map(|line| line.unwrap());
    // A page looks again once it listens: something may have happened after it was made.
    events.find(|line| line == "data: here").expect("it listens");
    // Nothing of it is written into the home of the one that is watched.
    assert_eq!(code_of(&call(&b, "x")), Some("needs_approval"));
    events.find(|line| line == "data: new").expect("it is told");
}

#[test]
fn the_console_of_one_replica_shows_and_checks_the_logs_of_all() {
    let Some(fleet) = Fleet::new(OPEN) else { return };
    let gates = [0, 1].map(|which| fleet.serve(which, &["--without-token"]));
    let cookie = fleet.signed_in(0, &gates[0]);
    let see = |path: &str| {
        let seen = gates[0].send("GET", path, &[("cookie", &cookie)], "");
        assert_eq!(seen.status, 200, "{path}: {}", seen.body);
        seen.body
    };
    for number in 0..70 {
        let message = number.to_string();
        assert_eq!(echoed(&call(&gates[number % 2], &message)), Some(&*message));
    }
    let both = [0, 1].map(|which| {
        let key = std::fs::read_to_string(fleet.homes[which].path("home/audit/key.pub")).unwrap();
        key.trim().strip_prefix("ed25519:").unwrap()[..8].to_owned()
    });
    let sent = || fleet.verified().1.iter().sum::<u64>() == fleet.lines(0) + fleet.lines(1);
    until("both logs are sent", sent);
    // Every call is on one of the pages, once, and the newest comes first.
    let (mut entries, mut path) = (Vec::new(), "/calls?outcome=ok&surface=mcp".to_owned());
    loop {
        let page = see(&path);
        let mut parts = page.split("<details class=\"rest\" id=\"");
        parts.next();
        entries.extend(parts.map(|part| part.split('"').next().unwrap().to_owned()));
        let older = page.split("href=\"/calls?").find(|part| part.contains("before="));
        let Some(older) = older else { break };
        let query = older.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
        path = format!("/calls?{query}");
        assert!(entries.len() <= 70, "{entries:?}");
    }
    assert_eq!(entries.len(), 70, "{entries:?}");
    for (place, entry) in entries.iter().enumerate() {
        assert!(entry.contains(&both[1 - place % 2]), "{place}: {entries:?}");
    }
    let first = see("/");
    assert!(
        both.iter().all(|key| first.contains(key)) && first.contains("70 calls today"),
        "{first}"
    );
    let whole = see("/calls?verify=1");
    assert!(whole.contains("The log is whole") && whole.contains("of 2 replicas"), "{whole}");
    let line = "UPDATE audit_lines SET line = replace(line, '\"ok\"', '\"no\"') WHERE seq = 6";
    fleet.postgres.tell(&fleet.state, line);
    let broken = see("/calls?verify=1");
    assert!(broken.contains("The log is not whole"), "{broken}");
    assert!(broken.contains(&format!("{}: ", both[1])), "{broken}");
}

#[test]
fn an_address_that_is_none_is_refused_without_being_repeated() {
    let desk = Desk::new();
    for wrong in ["mysql://a:s3cret@x/y", "postgres://a:s3cret@x:port/y"] {
        let ran = desk.haft(&["approve", "list", "--state", wrong]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("shared state") && !ran.stderr.contains("s3cret"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn the_way_to_the_database_may_need_tls_and_a_password() {
    let Some(mut postgres) = demanded() else { return };
    let desk = Desk::new();
    let [certificate, key] = desk.certificate();
    let port = testkit::ports::unused();
    postgres.start_with_tls(port, &certificate, &key);
    let more = format!("sslmode=verify-full&sslrootcert={}", certificate.display());
    let listed = |user: &str, password: &str| {
        let address = format!("postgres://{user}@localhost:{port}/secure?{more}");
        let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
        command.arg("--home").arg(desk.path("home")).args(["approve", "list", "--json"]);
        command.env("HAFT_STATE", address).env("PGPASSWORD", password).output().unwrap()
    };
    for (user, password) in [("haft", "a secret/word"), ("haft:a%20secret%2Fword", "")] {
        let listed = listed(user, password);
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    }
    for (user, password) in [("haft", PASSWORD), (&*format!("haft:{PASSWORD}"), "")] {
        let listed = listed(user, password);
        let said = String::from_utf8_lossy(&[listed.stdout, listed.stderr].concat()).into_owned();
        assert_eq!(listed.status.code(), Some(6), "{said}");
        assert!(said.contains("PGPASSWORD") && !said.contains(PASSWORD), "{said}");
        assert!(said.contains(&format!("localhost:{port}/secure")), "{said}");
    }
}
