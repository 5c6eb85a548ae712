//! What a tool is kept from is told: in the error, in the log, and with the command that would allow it.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::common::Ran;
use super::desk::{Desk, set_mode, shell};

const PACKAGE: &str = "jumith:tool:demo.node";

/// A Node tool with this body, and what else its object has.
fn node(desk: &Desk, body: &str, rest: &str) -> String {
    let tool = format!("name: 'demo.node', async execute(input) {{ {body} }}, {rest}");
    bundle(desk, &format!("export const tool = {{ {tool} }};"))
}

fn bundle(desk: &Desk, code: &str) -> String {
    let bundle = json!({
        "manifest": {"id": "tool:demo.node", "name": "demo.node", "version": "1.0.0",
            "summary": "A test", "description": "A test.",
            "entry": {"runtime": "node", "main": "index.js"},
            "schema": {"input": {"type": "object"}, "output": {}}},
        "files": [{"path": "index.js", "content": code}],
    });
    desk.write("pkg/node.json", &bundle.to_string())
}

fn call(desk: &Desk, from: &str, input: &Value) -> Ran {
    desk.call(&[from, "demo.node", &input.to_string()])
}

fn records(desk: &Desk) -> Vec<Value> {
    let said = desk.done(&["audit", "--json"]).stdout;
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What is offered after a call is what is told everywhere.
fn assert_told(desk: &Desk, ran: &Ran, grant: &str, kind: &str, value: &str) {
    let wanted = format!("haft grant {PACKAGE} {grant} {value}");
    assert!(ran.stderr.contains(&format!("`{wanted}`")), "{}{}", ran.stdout, ran.stderr);
    let learned = desk.done(&["grant", "--learn", PACKAGE]).stdout;
    assert_eq!(learned.lines().filter(|line| *line == wanted).count(), 1, "{learned}");
    let record = records(desk).pop().unwrap();
    let blocked = record["blocked"].as_array().unwrap();
    assert!(blocked.contains(&json!({"kind": kind, "value": value})), "{record}");
}

#[test]
fn a_host_is_told_of_a_tool_that_has_no_network() {
    let desk = Desk::new();
    let from = node(&desk, "await fetch('https://api.example.net/v1'); return 1;", "");
    let ran = call(&desk, &from, &json!({}));
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert_told(&desk, &ran, "--host", "host", "api.example.net");
    // And of one that asks while it is loaded.
    let early = "await fetch('https://early.example.net/').catch(() => {}); throw new Error('no');";
    let tool = "export const tool = { name: 'demo.node', async execute() { return 1; } };";
    let from = bundle(&desk, &format!("{early}\n{tool}"));
    let ran = call(&desk, &from, &json!({}));
    assert_ne!(ran.code, 0);
    let learned = desk.done(&["grant", "--learn", PACKAGE]).stdout;
    assert!(learned.contains("--host early.example.net\n"), "{learned}{}", ran.stderr);
    // Once it is granted it is not offered again.
    desk.done(&["grant", PACKAGE, "--host", "api.example.net"]);
    let learned = desk.done(&["grant", "--learn", PACKAGE]).stdout;
    assert!(!learned.contains("api.example.net"), "{learned}");
}

/// A server at this address of this machine that always says 42, and its port.
fn server(at: &str) -> std::io::Result<u16> {
    let server = std::net::TcpListener::bind(format!("{at}:0"))?;
    let port = server.local_addr()?.port();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for client in server.incoming() {
            let mut client = client.unwrap();
            let mut head = [0; 4096];
            let _ = client.read(&mut head);
            let _ = client
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n42");
        }
    });
    Ok(port)
}

#[test]
fn a_program_that_knows_of_no_proxy_reaches_what_is_granted() {
    let desk = Desk::new();
    let body = "const answer = await fetch(input.url); return Number(await answer.text());";
    let from = node(&desk, body, "");
    let mut names = vec!["host.haft.internal", "localhost", "127.0.0.1"];
    let mut grants = vec![("127.0.0.1", "localhost"), ("127.0.0.1", "127.0.0.1")];
    // A machine may have none of the newer addresses.
    if server("[::1]").is_ok() {
        names.push("[::1]");
        grants.push(("[::1]", "[::1]"));
    }
    // Each way to grant this machine opens the same doors.
    for (at, granted) in grants {
        let port = server(at).unwrap();
        let granted = format!("{granted}:{port}");
        let urls: Vec<_> = names.iter().map(|host| format!("http://{host}:{port}/")).collect();
        for url in &urls {
            let ran = call(&desk, &from, &json!({ "url": url }));
            assert_eq!(ran.code, 1, "{url}: {}{}", ran.stdout, ran.stderr);
        }
        desk.done(&["grant", PACKAGE, "--host", &granted]);
        for url in &urls {
            let ran = call(&desk, &from, &json!({ "url": url }));
            let told = (ran.code, ran.stdout.trim());
            assert_eq!(told, (0, "42"), "{granted}, {url}: {}", ran.stderr);
        }
    }
    // What is behind an error of `fetch` is told, and where it is from.
    let ran = call(&desk, &from, &json!({"url": "http://127.0.0.1:4567/"}));
    assert!(ran.stderr.contains("fetch failed: ECONNREFUSED"), "{}", ran.stderr);
    assert!(ran.stderr.contains("(index.js:1)"), "{}", ran.stderr);
}

#[test]
fn a_file_is_told_by_the_complaint_of_the_tool() {
    let desk = Desk::new();
    let note = desk.write("data/note.txt", "hello");
    let body = "const fs = await import('node:fs'); if (input.text) { fs.writeFileSync(input.path, input.text); } return fs.readFileSync(input.path, 'utf8');";
    let from = node(&desk, body, "");
    let ran = call(&desk, &from, &json!({"path": note}));
    assert_told(&desk, &ran, "--read", "path", &note);
    // Whether it is there is not told: whoever calls could find out.
    let missing = desk.path("data/missing.txt").to_str().unwrap().to_owned();
    let told = call(&desk, &from, &json!({"path": missing})).stderr.replace(&missing, "PATH");
    assert_eq!(told, ran.stderr.replace(&note, "PATH"));
    desk.done(&["grant", PACKAGE, "--read", desk.path("data").to_str().unwrap()]);
    assert_eq!(call(&desk, &from, &json!({"path": note})).stdout.trim(), "\"hello\"");
    let ran = call(&desk, &from, &json!({"path": note, "text": "changed"}));
    assert_told(&desk, &ran, "--write", "path", desk.path("data").to_str().unwrap());
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "hello");
}

#[test]
fn what_is_to_be_written_is_told_as_that_before_it_is_there() {
    let desk = Desk::new();
    let body = "const fs = await import('node:fs'); fs.writeFileSync(input.output, 'x'); return 1;";
    let from = node(&desk, body, "");
    let input = json!({"output": desk.path("data/new.txt")});
    let ran = call(&desk, &from, &input);
    let folder = desk.path("data").to_str().unwrap().to_owned();
    assert_told(&desk, &ran, "--write", "path", &folder);
    let refused = desk.run(&["grant", PACKAGE, "--write", &folder]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("`mkdir -p {folder}`")), "{}", refused.stderr);
    std::fs::create_dir(&folder).unwrap();
    desk.done(&["grant", PACKAGE, "--write", &folder]);
    assert_eq!(call(&desk, &from, &input).stdout.trim(), "1");
    assert_eq!(desk.done(&["grant", "--learn", PACKAGE]).stdout, "");
}

#[test]
fn a_path_that_is_not_whole_is_looked_for_elsewhere_and_that_is_told() {
    let desk = Desk::new();
    let body = "const fs = await import('node:fs'); return fs.readFileSync(input.path, 'utf8');";
    let from = node(&desk, body, "");
    let here = super::common::repository().join("README.md");
    let ran = call(&desk, &from, &json!({"path": "./README.md"}));
    let wanted = format!("if you mean `{}`, write that instead of `./README.md`", here.display());
    assert!(ran.stderr.contains(&wanted), "{}", ran.stderr);
    let ran = call(&desk, &from, &json!({"path": "~/notes.md"}));
    assert!(
        ran.stderr.contains("/notes.md`, write that instead of `~/notes.md`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_the_policy_refuses_is_explained_as_that_and_not_offered() {
    let desk = Desk::new();
    let note = desk.write("data/note.txt", "hello");
    let body = "const fs = await import('node:fs'); return fs.readFileSync(input.path, 'utf8');";
    let from = node(&desk, body, "");
    call(&desk, &from, &json!({"path": note}));
    let folder = desk.path("data").to_str().unwrap().to_owned();
    let policy = format!("[network]\ndeny = [\"localhost\"]\n[folders]\ndeny = [\"{folder}\"]\n");
    desk.write("home/policy.toml", &policy);
    desk.done(&["grant", PACKAGE, "--host", "localhost:81", "--host", "a.test", "--read", &note]);
    let told = desk.done(&["call", "--from", &from, "demo.node", "{}", "--explain", "--json"]);
    let told = told.json();
    let reasons: Vec<_> =
        told["reasons"].as_array().unwrap().iter().map(Value::to_string).collect();
    for (of, words) in [("localhost:81", "[network] deny"), (&*note, "[folders] deny")] {
        let one = reasons.iter().find(|one| one.contains(of)).unwrap();
        assert!(one.contains(words), "{one}");
    }
    let walls = told["walls"].to_string();
    assert!(!walls.contains("localhost:81") && !walls.contains("note.txt"), "{walls}");
    assert!(walls.contains("a.test"), "{walls}");
    desk.done(&["ungrant", PACKAGE, "--read", &note]);
    assert_eq!(desk.done(&["grant", "--learn", PACKAGE]).stdout, "");
}

#[test]
fn a_service_of_this_machine_that_is_not_granted_is_told() {
    let desk = Desk::new();
    let from = node(&desk, "return await (await fetch(input.url)).text();", "");
    let ran = call(&desk, &from, &json!({"url": "http://localhost:4567/x"}));
    assert_told(&desk, &ran, "--host", "host", "localhost:4567");
}

#[test]
fn what_was_granted_and_is_gone_is_told_and_what_only_may_be_wanted_is_not_kept() {
    let desk = Desk::new();
    let note = desk.write("data/note.txt", "hello");
    let body = "const fs = await import('node:fs'); return fs.readFileSync(input.path, 'utf8');";
    let from = node(&desk, body, "");
    let ran = call(&desk, &from, &json!({"path": note}));
    assert!(ran.stderr.contains("if it is to be written"), "{}", ran.stderr);
    desk.done(&["grant", PACKAGE, "--read", &note]);
    assert_eq!(desk.done(&["grant", "--learn", PACKAGE]).stdout, "");
    std::fs::remove_file(&note).unwrap();
    let ran = call(&desk, &from, &json!({"path": note}));
    let wanted = format!("`haft ungrant {PACKAGE} --read {note}` takes it back");
    assert!(ran.stderr.contains(&wanted), "{}", ran.stderr);
    assert!(!ran.stderr.contains(&format!("--read {note}` allows it")), "{}", ran.stderr);
    let told = desk.done(&["call", "--from", &from, "demo.node", "{}", "--explain"]).stdout;
    assert!(told.contains(&wanted), "{told}");
}

#[test]
fn who_only_reads_is_told_of_reading_alone() {
    let desk = Desk::new();
    let note = desk.write("data/note.txt", "hello");
    let manifest = desk.capability(&shell(&format!("cat {note}; exit 1")), "read", &json!([]));
    let ran = desk.call(&[&manifest, "demo.tool", "{}"]);
    assert!(ran.stderr.contains(&format!("--read {note}` allows it")), "{}", ran.stderr);
    assert!(!ran.stderr.contains("no grant changes that"), "{}", ran.stderr);
}

#[test]
fn a_tool_that_would_write_beside_itself_is_told_what_to_do() {
    let desk = Desk::new();
    let from = desk.script("echo line >> \"$(dirname \"$0\")/app.log\"");
    let ran = desk.call(&[&from, "run", "{}"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let wanted = "haft grant agentcli:pkg --write FOLDER` gives it one to keep things in";
    assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
}

#[test]
fn a_tools_json_has_what_is_beneath_its_tools_and_is_told_of_the_rest() {
    let desk = Desk::new();
    let config = desk.write("proj/conf.json", r#"{"n":1}"#);
    let from =
        desk.write("proj/tools.json", r#"{"tools":[{"name":"t","command":["./tools/bin/t"]}]}"#);
    let script = format!("#!/bin/sh\ncat '{config}'\n");
    set_mode(desk.write("proj/tools/bin/t", &script).as_ref(), 0o755);
    let ran = desk.call(&[&from, "t"]);
    let grant = format!("haft grant agentcli:proj --read {config}");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains(&format!("`{grant}` allows it")), "{}", ran.stderr);
    let learned = desk.done(&["--json", "grant", "--learn", "agentcli:proj"]).json();
    assert_eq!(learned[0]["command"], json!(grant), "{learned}");
    desk.done(&grant.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(desk.call(&[&from, "t"]).json(), json!({"n": 1}));
    assert_eq!(desk.done(&["--json", "grant", "--learn", "agentcli:proj"]).json(), json!([]));
    // Where it runs where its caller is, a path that is not whole leads there.
    let whole = desk.write("notes.txt", "{}");
    let manifest = r#"{"tools":[{"name":"t","command":["./tools/bin/t"],"parameters":{"type":"object","properties":{"path":{"type":"string"}}}}]}"#;
    desk.write("proj/tools.json", manifest);
    let script = "#!/usr/bin/env python3\nimport json, sys\nprint(open(json.load(sys.stdin)['path']).read())\n";
    set_mode(desk.write("proj/tools/bin/t", script).as_ref(), 0o755);
    let grant = format!("`haft grant agentcli:proj --read {whole}` allows it");
    for (path, hint) in [
        ("notes.txt", grant.as_str()),
        ("./proj/../notes.txt", &grant),
        ("~/notes.txt", "no tool knows where your home is: if you mean `/"),
    ] {
        let input = json!({ "path": path }).to_string();
        let arguments = ["--home", "home", "call", "--from", "proj", "t", &input];
        let ran = super::common::run_in(&desk.path(""), &arguments, None);
        assert!(ran.stderr.contains(hint), "{path}: {}", ran.stderr);
    }
}

#[test]
fn folders_of_the_settings_that_a_bundle_does_not_see_are_told() {
    let desk = Desk::new();
    let folder = desk.path("notes").to_str().unwrap().to_owned();
    desk.write("notes/a.txt", "one line\n");
    let (from, id) = ("examples/mcpb/line-finder", "mcpb:line-finder");
    desk.run_with(&["secret", "set", id, "folders"], Some(folder.as_bytes()));
    let wanted = format!("haft grant {id} --read {folder}");
    let explained = desk.done(&["call", "--from", from, "list_files", "{}", "--explain"]);
    assert!(explained.stdout.contains(&format!("`{wanted}`")), "{}", explained.stdout);
    let ran = desk.call(&[from, "list_files", "{}"]);
    assert!(ran.stderr.contains(&format!("`{wanted}`")), "{}{}", ran.stdout, ran.stderr);
    let learned = desk.done(&["grant", "--learn", id]).stdout;
    assert_eq!(learned, format!("{wanted}\n"));
    desk.done(&["grant", id, "--read", &folder]);
    let ran = desk.call(&[from, "list_files", "{}"]);
    assert!(ran.stdout.contains("a.txt"), "{}", ran.stdout);
    assert!(!ran.stderr.contains("walls"), "{}", ran.stderr);
}

#[test]
fn what_its_manifest_does_without_is_not_offered() {
    let desk = Desk::new();
    let note = desk.write("data/note.txt", "hello");
    let script = format!("cat {note}; getent hosts api.example.net; exit 1");
    let manifest = desk.capability(&shell(&script), "none", &json!([]));
    let ran = desk.call(&[&manifest, "demo.tool", "{}"]);
    assert!(ran.stderr.contains("needs no network, and no grant changes that"), "{}", ran.stderr);
    assert!(ran.stderr.contains("does without, and no grant changes that"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("haft grant"), "{}", ran.stderr);
    let blocked = records(&desk).pop().unwrap()["blocked"].clone();
    let kinds: Vec<_> = blocked.as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert!(kinds.contains(&&json!("host")) && kinds.contains(&&json!("path")), "{blocked}");
    assert_eq!(desk.done(&["grant", "--learn", "capability:demo.tool"]).stdout, "");
}

#[test]
fn what_the_policy_hides_is_not_there_at_all() {
    let desk = Desk::new();
    let hidden = desk.write("secret/key", "k");
    desk.write("home/policy.toml", &format!("[folders]\ndeny = [\"{hidden}\"]\n"));
    let from =
        node(&desk, "const fs = await import('node:fs'); return fs.existsSync(input.path);", "");
    assert_eq!(call(&desk, &from, &json!({"path": hidden})).stdout.trim(), "false");
}

#[test]
fn a_grant_that_becomes_a_link_while_the_tool_is_asked_is_refused() {
    let desk = Desk::new();
    desk.write("data/a", "mine");
    desk.write("secret/a", "k3y-of-the-owner");
    let data = desk.path("data");
    let body = "const fs = await import('node:fs'); return fs.readFileSync(input.path, 'utf8');";
    let slow = "requiresApproval: async () => { await new Promise(done => setTimeout(done, 1500)); return false; }";
    let from = node(&desk, body, slow);
    desk.done(&["grant", PACKAGE, "--read", data.to_str().unwrap()]);
    let input = json!({"path": data.join("a").to_str().unwrap()});
    assert_eq!(call(&desk, &from, &input).stdout.trim(), "\"mine\"");
    let ran = std::thread::scope(|scope| {
        let call = scope.spawn(|| call(&desk, &from, &input));
        // The log says when the hooks run.
        let log = || {
            std::fs::read_dir(desk.path("home/audit")).map_or(0, |all| {
                let texts = all.filter_map(|one| std::fs::read_to_string(one.ok()?.path()).ok());
                texts.map(|text| text.matches("\"kind\":\"begin\"").count()).sum()
            })
        };
        let before = log();
        while log() == before {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::fs::rename(&data, desk.path("old")).unwrap();
        symlink(desk.path("secret"), &data).unwrap();
        call.join().unwrap()
    });
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("k3y"), "{}", ran.stdout);
}

#[test]
fn a_granted_device_that_is_not_there_is_left_out_and_told() {
    let desk = Desk::new();
    let from = desk.script("ls /dev/null && cat /dev/haft-not-there");
    let call = || desk.call(&[&from, "run"]);
    let grant = ["agentcli:pkg", "--device", "/dev/haft-not-there"];
    assert!(!call().stderr.contains("ungrant"));
    desk.done(&[&["grant"], &grant[..]].concat());
    // The rest of it runs, and complains for itself.
    let ran = call();
    assert!(ran.stderr.contains("No such file or directory"), "{}{}", ran.stdout, ran.stderr);
    let words = "`/dev/haft-not-there` was granted and is not there; plug it in, or \
                 `haft ungrant agentcli:pkg --device /dev/haft-not-there` takes it back";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    let explained = desk.done(&["call", "--explain", "--json", "--from", &from, "run"]).json();
    assert_eq!(explained["absent"], json!([words]));
    assert_eq!(explained["walls"]["devices"], json!([]));
    desk.done(&[&["ungrant"], &grant[..]].concat());
    assert!(!call().stderr.contains("ungrant"));
}

#[test]
fn hooks_run_only_when_that_is_written_down_and_within_the_budget() {
    let desk = Desk::new();
    let from = node(&desk, "return 1;", "requiresApproval: () => false");
    call(&desk, &from, &json!({}));
    let begun = || records(&desk).iter().filter(|one| one["kind"] == "begin").count();
    let before = begun();
    desk.done(&["audit", "verify"]);
    desk.write("home/policy.toml", "[budget]\ncalls_per_day = 0\n");
    let noisy = node(&desk, "return 1;", "requiresApproval: () => { throw new Error('it ran'); }");
    let ran = call(&desk, &noisy, &json!({}));
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("allows 0 calls a day, and none is left"), "{}", ran.stderr);
    assert_eq!(begun(), before);
}

#[test]
fn no_program_of_a_folder_that_nobody_gets_is_run() {
    let desk = Desk::new();
    let program = desk.write("denied/run", "#!/bin/sh\necho '{}'\n");
    set_mode(program.as_ref(), 0o755);
    let tools = json!({"tools": [{"name": "get", "description": "A test.",
        "command": [program], "inputSchema": {"type": "object", "properties": {}}}]});
    let from = desk.write("pkg/tools.json", &tools.to_string());
    let call = || desk.call(&[&from, "get", "{}"]);
    let folder = desk.path("denied").to_str().unwrap().to_owned();
    desk.write("home/policy.toml", &format!("[folders]\ndeny = [\"{folder}\"]\n"));
    let ran = call();
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("in a folder that no tool gets"), "{}", ran.stderr);
}
