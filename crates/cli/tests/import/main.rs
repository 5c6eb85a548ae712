//! Servers of clients' settings and documents become packages, which are installed and called; clients start us instead.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod connect;
mod desk;
mod peer;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use desk::{Desk, pairs};
use peer::Peer;
use serde_json::{Value, json};

const SECRET: &str = "s3cret-of-mine-4711";

#[test]
fn a_program_of_this_machine_is_imported_and_called_inside_the_walls() {
    let desk = Desk::new();
    let config = format!(
        "{{ // mine\n  \"mcpServers\": {{\n    \"dice\": {{\"command\": \"python3\", \"args\": [{}], \"env\": {{\"DICE_MAX_SIDES\": \"8\", \"API_KEY\": \"{SECRET}\"}}}},\n  }},\n}}",
        json!(desk.server())
    );
    let file = desk.write("config.json", &config);
    let shown = desk.done(&["import", &file, "--dry-run"]);
    assert!(shown.stdout.starts_with("importable  dice  mcpb:dice 0.0.0+"), "{}", shown.stdout);
    assert!(!desk.path("home").join("packages").exists(), "nothing was changed");
    let ran = desk.done(&["import", &file, "--yes"]);
    assert!(ran.stdout.starts_with("installed   dice  mcpb:dice"), "{}", ran.stdout);
    assert!(ran.stdout.contains("(1 tool)"), "{}", ran.stdout);
    // The card says what it reads.
    assert!(ran.stderr.contains(desk.path("project/dice").to_str().unwrap()), "{}", ran.stderr);
    let rolled = desk.done(&["call", "mcpb:dice", "roll", r#"{"sides":6,"count":3,"seed":1}"#]);
    assert_eq!(rolled.stdout, "{\"sides\":6,\"rolls\":[2,5,1],\"sum\":8}\n");
    // A default of the settings reached it.
    let refused = desk.haft(&["call", "dice", "roll", r#"{"sides":20}"#]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(!desk.everything().contains(SECRET), "it is in the vault alone");
    let secrets = desk.done(&["secret", "list", "--json"]).stdout;
    assert!(secrets.contains("API_KEY") && !secrets.contains(SECRET), "{secrets}");
    assert_eq!(desk.states(&["import", &file, "--yes"], 0), pairs(&[("dice", "there")]));
    // It is in no place that it could be fetched from.
    assert_eq!(desk.done(&["update", "--check", "--json"]).json()["failed"], json!([]));
    let named = desk.haft(&["update", "dice"]);
    assert_eq!(named.code, 6, "{}", named.stderr);
    desk.done(&["lock", "-o", "its.lock"]);
    desk.done(&["reset", "--yes"]);
    let synced = desk.haft(&["sync", "--locked", "its.lock", "--yes"]);
    assert_eq!(synced.code, 6, "{}", synced.stderr);
    assert!(synced.stderr.contains("`haft import` makes it anew"), "{}", synced.stderr);
}

#[test]
fn what_cannot_be_imported_is_told_and_stops_nobody() {
    let desk = Desk::new();
    let config = json!({"mcpServers": {
        "image": {"command": "docker", "args": ["run", "-i", "acme/x:1"]},
        "told": {"command": "node", "args": ["x.js", "--api-key", SECRET]},
        "dice": {"command": "python3", "args": [desk.server()]},
        "off": {"command": "x", "disabled": true},
        "empty": {},
        "crash": {"command": "python3", "args": ["-c", "import sys; sys.exit('no such luck')"]},
        "plain": {"url": "http://plain.example/mcp", "headers": {"X-Api-Key": SECRET}},
        "reach": {"command": "python3", "args": ["-c", "import urllib.request as u; u.urlopen('http://api.example/x')"]},
        "file": {"command": "python3", "args": ["-c", "open('/srv/notes/today.txt')"]},
    }});
    let file = desk.write("config.json", &config.to_string());
    let expected = [
        ("image", "refused"),
        ("told", "refused"),
        ("dice", "installed"),
        ("off", "left"),
        ("empty", "refused"),
        ("crash", "refused"),
        ("plain", "refused"),
        ("reach", "refused"),
        ("file", "refused"),
    ];
    let ran = desk.haft(&["import", &file, "--yes", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let told = ran.json();
    let states: Vec<_> = told["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["name"].as_str().unwrap(), entry["state"].as_str().unwrap()))
        .collect();
    assert_eq!(states, expected);
    let why = |index: usize| told["entries"][index]["why"].to_string();
    assert!(why(0).contains("without its digest"), "{}", why(0));
    assert!(why(1).contains("`--api-key`") && !ran.stdout.contains(SECRET), "{}", why(1));
    assert!(why(5).contains("no such luck"), "{}", why(5));
    assert!(
        why(6).contains("a secret is not sent to `plain.example` over plain `http`"),
        "{}",
        why(6)
    );
    // What it tried is told, with what would allow it.
    assert!(why(7).contains("haft grant mcpb:reach --host api.example"), "{}", why(7));
    let grant = "haft grant mcpb:file --read /srv/notes/today.txt";
    assert!(why(8).contains(grant), "{}", why(8));
    // Operations are those of a document.
    let odd = desk.haft(&["import", &file, "--yes", "--only", "dice", "--include-tag", "x"]);
    assert_eq!(odd.code, 2, "{}", odd.stderr);
    assert!(odd.stderr.contains("OpenAPI documents, and none was named"), "{}", odd.stderr);
    // What the policy refuses is not told as importable.
    std::fs::write(desk.path("home/policy.toml"), "[package.dice]\nallow = false\n").unwrap();
    let dry = desk.haft(&["import", &file, "--dry-run", "--only", "dice"]);
    assert_eq!(dry.code, 1, "{}", dry.stdout);
    assert!(dry.stdout.contains("your policy refuses `mcpb:dice`"), "{}", dry.stdout);
    // Without a word of the owner nothing is installed.
    let unasked = desk.write(
        "other.json",
        &json!({"mcpServers": {"d2": {"command": "python3", "args": [desk.server()]}}}).to_string(),
    );
    let ran = desk.haft(&["import", &unasked, "--non-interactive"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("its card has to be accepted"), "{}", ran.stdout);
    assert!(!desk.done(&["grant", "mcpb:d2"]).stdout.contains("dice"), "nothing is granted either");
}

#[test]
fn a_server_on_the_network_is_told_its_headers() {
    let desk = Desk::new();
    let peer = Peer::new();
    let url = format!("http://127.0.0.1:{}/mcp", peer.port);
    let config = json!({"servers": {"loud": {
        "type": "http", "url": url,
        "headers": {"Authorization": format!("Bearer {SECRET}"), "X-Team": "blue", "X-Who": "${input:who}"},
    }}, "inputs": [{"id": "who", "type": "promptString", "description": "Who you are", "default": "ann"}]});
    let file = desk.write("mcp.json", &config.to_string());
    let ran = desk.done(&["import", &file, "--yes"]);
    assert!(
        ran.stdout.starts_with("installed   loud  server-json:imported/loud"),
        "{}",
        ran.stdout
    );
    assert_eq!(desk.done(&["call", "loud", "shout", r#"{"text":"hi"}"#]).stdout.trim(), "HI");
    assert!(!desk.everything().contains(SECRET));
    for asked in peer.asked() {
        assert_eq!(asked.headers["authorization"], format!("Bearer {SECRET}"), "{}", asked.line);
        assert_eq!((&*asked.headers["x-team"], &*asked.headers["x-who"]), ("blue", "ann"));
    }
    assert!(peer.asked().iter().any(|asked| asked.body.contains("tools/call")));
}

#[test]
fn a_secret_that_is_a_variable_is_asked_for_by_its_name() {
    let desk = Desk::new();
    let config = json!({"mcpServers": {"dice": {"command": "python3", "args": [desk.server()], "env": {"API_KEY": "${DICE_API_KEY}", "MODE": "${MODE:-slow}"}}}});
    let file = desk.write("config.json", &config.to_string());
    let ran = desk.haft(&["import", &file, "--yes", "--non-interactive"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("it needs `DICE_API_KEY`"), "{}", ran.stdout);
    let odd = desk.haft(&["import", &file, "--yes", "--env", "NOPE=1"]);
    assert_eq!(odd.code, 2, "{}", odd.stderr);
    let told = desk.haft(&["import", &file, "--yes", "--env", "DICE_API_KEY=x"]);
    assert!(told.stdout.contains("is a secret"), "{}", told.stdout);
}

#[test]
fn operations_of_a_document_become_actions() {
    let desk = Desk::new();
    let peer = Peer::new();
    let document = r"
openapi: 3.0.3
info: {title: Pet Shop, version: 1.2.0}
servers: [{url: /api}]
paths:
  /pets:
    get: {operationId: listPets, tags: [read], responses: {'200': {description: ok, content: {application/json: {}}}}}
    post:
      operationId: addPet
      parameters: [{name: X-Trace, in: header, schema: {type: string}}]
      requestBody: {required: true, content: {application/json: {schema: {type: object, required: [name], properties: {name: {type: string}}}}}}
      responses: {'201': {description: made, content: {application/json: {}}}}
";
    let file = desk.write("shop.yaml", document);
    let ran = desk.haft(&["import", &file, "--yes"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("--base-url"), "{}", ran.stdout);
    let base = format!("http://127.0.0.1:{}/api", peer.port);
    let ran =
        desk.done(&["import", &file, "--base-url", &base, "--yes", "--env", "HEADER_X_TRACE=t1"]);
    assert!(
        ran.stdout.starts_with("installed   pet-shop  install-manifest:pet-shop 1.2.0-import."),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("Smoke test passed"), "{}", ran.stderr);
    let pets: Value =
        serde_json::from_str(&desk.done(&["call", "pet-shop", "list_pets", "{}"]).stdout).unwrap();
    assert_eq!(pets, json!([{"name": "Rex"}]));
    desk.done(&["call", "pet-shop", "add_pet", r#"{"name":"Tom"}"#]);
    let posted = peer.asked().pop().unwrap();
    assert_eq!((&*posted.line, &*posted.body), ("POST /api/pets", r#"{"name":"Tom"}"#));
    assert_eq!(posted.headers["x-trace"], "t1");
    let none = desk.haft(&["import", &file, "--base-url", &base, "--include-tag", "nope"]);
    assert_eq!(none.code, 1);
    assert!(none.stdout.contains("none of its 2 operations"), "{}", none.stdout);
}

#[test]
fn packages_go_the_ordinary_way() {
    let desk = Desk::new();
    let coin = common::repository().join("examples/mcpb/coin");
    let file = desk.path("coin.mcpb");
    let packed = desk.haft(&["pack", coin.to_str().unwrap(), "-o", file.to_str().unwrap()]);
    assert_eq!(packed.code, 0, "{}", packed.stderr);
    let states = desk.states(&["import", file.to_str().unwrap(), "--dry-run"], 0);
    assert_eq!(states, pairs(&[("coin", "importable")]));
    let states = desk.states(&["import", file.to_str().unwrap(), "--yes"], 0);
    assert_eq!(states, pairs(&[("coin", "installed")]));
    let odd = desk.write("odd.json", "{\"hello\": 1}");
    let ran = desk.haft(&["import", &odd]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("it is neither a client's settings"), "{}", ran.stdout);
    assert_eq!(desk.haft(&["import", "./nowhere.json"]).code, 3);
    let ran = desk.haft(&["import", "emacs"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("claude-desktop"), "{}", ran.stderr);
}

/// Starts the entry of a client's settings as the client would, lists its tools and calls one.
fn served(settings: &str, entry: &str, tool: &str, arguments: &Value) -> [Value; 2] {
    let settings: String =
        settings.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let settings = settings.replace(",}", "}").replace(",  }", "}").replace(",    }", "}");
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let entry = &settings["mcpServers"][entry];
    let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let mut child = Command::new(entry["command"].as_str().unwrap())
        .args(words)
        .env_remove("HAFT_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to, mut from) =
        (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut said = |message: Value| {
        writeln!(to, "{message}").unwrap();
        let mut line = String::new();
        if message.get("id").is_some() {
            from.read_line(&mut line).unwrap();
        }
        serde_json::from_str(&line).unwrap_or_default()
    };
    let client = json!({"name": "test", "version": "1"});
    let begun = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let _: Value =
        said(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begun}));
    let _: Value = said(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let listed = said(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let call = json!({"name": tool, "arguments": arguments});
    let called = said(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}));
    drop(to);
    assert!(child.wait().unwrap().success());
    [listed, called]
}

#[test]
fn a_client_starts_us_instead_and_again_what_it_started_before() {
    let desk = Desk::new();
    let text = format!(
        "{{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\": {{\n    \"dice\": {{\n      \"command\": \"python3\",\n      \"args\": [{}],\n      \"env\": {{\"API_KEY\": \"{SECRET}\"}},\n      \"alwaysAllow\": [\"roll\"]\n    }},\n    \"crash\": {{\"command\": \"false\"}},\n  }},\n}}\n",
        json!(desk.server())
    );
    desk.write("project/.cursor/mcp.json", &text);
    let file = "project/.cursor/mcp.json";
    let shown = desk.haft(&["import", "cursor", "--replace", "--dry-run"]);
    assert!(
        shown.stdout.contains("-      \"command\": \"python3\",")
            && shown
                .stdout
                .contains("+      \"args\": [\"mcp\", \"--only\", \"mcpb:dice\", \"--home\", "),
        "{}",
        shown.stdout
    );
    assert!(!shown.stdout.contains(SECRET), "{}", shown.stdout);
    assert_eq!(desk.text(file), text, "nothing was changed");
    assert_eq!(
        desk.states(&["import", "cursor", "--replace", "--yes"], 1),
        pairs(&[("dice", "replaced"), ("crash", "refused")])
    );
    let swapped = desk.text(file);
    for words in [
        "// mine",
        "\"alwaysAllow\": [\"roll\"]",
        "\"crash\": {\"command\": \"false\"},",
        "\"--only\", \"mcpb:dice\"",
    ] {
        assert!(swapped.contains(words), "{words}: {swapped}");
    }
    assert!(!swapped.contains(SECRET) && !swapped.contains("server.py"));
    // What the client starts then answers under the same names, and what was disabled is so at once.
    let dice = || served(&swapped, "dice", "roll", &json!({"sides": 6, "count": 3, "seed": 1}));
    let [listed, called] = dice();
    assert_eq!(listed["result"]["tools"][0]["name"], "roll", "{listed}");
    let asked = called["result"]["content"][0]["text"].as_str().unwrap();
    assert!(asked.contains("the owner has to be asked"), "{called}");
    desk.done(&["approve", "always", "mcpb:dice", "roll"]);
    let [_, called] = dice();
    assert_eq!(called["result"]["structuredContent"]["sum"], 8, "{called}");
    desk.done(&["disable", "dice"]);
    let [_, called] = dice();
    let refused = &called["result"];
    let code = &refused["structuredContent"]["error"]["code"];
    assert_eq!((&refused["isError"], code), (&json!(true), &json!("denied")), "{called}");
    desk.done(&["enable", "dice"]);
    // Once more changes nothing.
    assert_eq!(
        desk.states(&["import", "cursor", "--replace", "--yes"], 1),
        pairs(&[("dice", "left"), ("crash", "refused")])
    );
    assert_eq!(desk.text(file), swapped);
    desk.write(file, &swapped.replace("dark", "light"));
    let shown = desk.done(&["import", "cursor", "--undo", "--dry-run"]);
    assert!(
        shown.stdout.contains("+      \"command\": \"python3\"") && !shown.stdout.contains(SECRET),
        "{}",
        shown.stdout
    );
    assert_eq!(desk.states(&["import", "cursor", "--undo"], 0), pairs(&[("dice", "restored")]));
    assert_eq!(desk.text(file), text.replace("dark", "light"));
    assert!(
        !desk.done(&["secret", "list", "--json"]).stdout.contains("clients"),
        "nothing is kept any more"
    );
    assert_eq!(desk.states(&["import", "cursor", "--undo"], 0), pairs(&[]));
}

#[test]
fn every_client_is_found_where_it_keeps_its_settings() {
    let desk = Desk::new();
    let server = json!({"command": "python3", "args": [desk.server()]});
    let usual = |name: &str| json!({"mcpServers": {name: server}}).to_string();
    desk.write(".config/Claude/claude_desktop_config.json", &usual("desktop"));
    desk.write("project/.mcp.json", &usual("code-project"));
    let project = desk.path("project");
    let code = json!({"mcpServers": {"code-user": server}, "projects": {project.to_str().unwrap(): {"mcpServers": {"code-local": server}}}});
    desk.write(".claude.json", &code.to_string());
    desk.write(".cursor/mcp.json", &usual("cursor"));
    desk.write("project/.vscode/mcp.json", &json!({"servers": {"code": server}}).to_string());
    desk.write(
        ".codex/config.toml",
        &format!(
            "[mcp_servers.codex] # here\ncommand = \"python3\"\nargs = [{}]\n",
            json!(desk.server())
        ),
    );
    desk.write(".gemini/settings.json", &usual("gemini"));
    let names =
        ["desktop", "code-project", "code-local", "code-user", "cursor", "code", "codex", "gemini"];
    let expected: Vec<_> = names.map(|name| (name.to_owned(), "importable".to_owned())).to_vec();
    assert_eq!(desk.states(&["import", "all", "--dry-run"], 0), expected);
    assert_eq!(
        desk.states(
            &[
                "import",
                "codex",
                "claude-code",
                "--only",
                "codex",
                "--only",
                "code-local",
                "--replace",
                "--yes"
            ],
            0
        ),
        pairs(&[("codex", "replaced"), ("code-local", "replaced")])
    );
    assert!(desk.text(".codex/config.toml").contains("\"--only\", \"mcpb:codex\""));
    assert!(desk.text(".codex/config.toml").starts_with("[mcp_servers.codex] # here\n"));
    assert!(
        desk.text(".claude.json").contains("mcpb:code-local")
            && desk.text(".claude.json").contains(&format!("\"code-user\":{server}"))
    );
    desk.done(&["import", "codex", "claude-code", "--undo"]);
    assert_eq!(desk.text(".claude.json"), code.to_string());
    let ran = desk.haft(&["import", "./x.json", "--undo"]);
    assert!(ran.code == 2 || ran.code == 3, "{}", ran.stderr);
}

#[test]
fn a_project_is_lent_nothing_outside_of_it_by_its_own_word() {
    let desk = Desk::new();
    let outside = desk.write("elsewhere/server.py", &desk.text("project/dice/server.py"));
    let peer = Peer::new();
    let config = json!({"mcpServers": {
        "outside": {"command": "python3", "args": [outside]},
        "here": {"url": format!("http://127.0.0.1:{}/mcp", peer.port)},
    }});
    desk.write("project/.mcp.json", &config.to_string());
    let ran = desk.haft(&["import", "claude-code", "--yes", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let told = ran.json();
    for (index, words) in [
        (0, "haft grant mcpb:outside --read"),
        (1, "haft grant server-json:imported/here --host 127.0.0.1"),
    ] {
        let entry = &told["entries"][index];
        assert_eq!(entry["state"], "refused", "{entry}");
        assert!(entry["warnings"].to_string().contains(words), "{entry}");
    }
    assert!(peer.asked().is_empty(), "nobody was asked");
    // With the owner's word it starts.
    let folder = desk.path("elsewhere");
    desk.done(&["grant", "mcpb:outside", "--read", folder.to_str().unwrap()]);
    assert_eq!(
        desk.states(&["import", "claude-code", "--only", "outside", "--yes"], 0),
        pairs(&[("outside", "installed")])
    );
}

#[test]
fn two_servers_of_one_name_are_told_apart() {
    let desk = Desk::new();
    let entry = |mode: &str| {
        json!({"mcpServers": {"dice": {"command": "python3", "args": [desk.server()], "env": {"MODE": mode}}}}).to_string()
    };
    desk.write("project/.mcp.json", &entry("one"));
    desk.write("project/.cursor/mcp.json", &entry("two"));
    desk.write("project/.gemini/settings.json", &entry("one"));
    let told = desk.done(&["import", "all", "--yes", "--json"]).json();
    let ids: Vec<_> = told["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["mcpb:dice", "mcpb:dice-cursor", "mcpb:dice"]);
    let file = desk.write("more.json", &entry("three"));
    let ran = desk.haft(&["import", &file, "--yes"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("--as gives this one another name"), "{}", ran.stdout);
    assert_eq!(
        desk.states(&["import", &file, "--yes", "--as", "third"], 0),
        pairs(&[("dice", "installed")])
    );
}
