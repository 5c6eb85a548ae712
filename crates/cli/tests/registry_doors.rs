//! The doors of a registry, used by its own verbs, by somebody else's client, and as the pages of the docs say.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use common::served::Served;
use common::{Desk, Ran, repository, write_below};
use serde_json::{Value, json};

/// Where the client of an MCP registry is, which somebody else wrote.
const CLIENT: &str = "HAFT_MCP_REGISTRY_CLIENT";

/// A registry, and a token for everything in it.
struct Opened {
    served: Served,
    token: String,
}

impl Opened {
    fn start(desk: &Desk, home: &str, more: &[&str]) -> Self {
        let served = Served::at(&desk.path(home), more);
        let mut made =
            haft(desk, home, None, &["registry", "token", "new", "--namespace", "*", "--quiet"]);
        made.stdout.truncate(made.stdout.trim_end().len());
        assert_eq!(made.code, 0, "{}", made.stderr);
        Self { served, token: made.stdout }
    }

    fn url(&self) -> &str {
        &self.served.url
    }

    fn get(&self, path: &str) -> Value {
        self.served.get(path)
    }

    fn import(&self, desk: &Desk, source: &str, more: &[&str]) -> Ran {
        let arguments = [&["registry", "import", source, "--registry", self.url()], more].concat();
        haft(desk, "home", Some(&self.token), &arguments)
    }
}

fn haft(desk: &Desk, home: &str, token: Option<&str>, arguments: &[&str]) -> Ran {
    let variables: Vec<_> = token.into_iter().map(|token| ("HAFT_TOKEN", token)).collect();
    haft_with(desk, home, &variables, arguments)
}

fn haft_with(desk: &Desk, home: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
    command.current_dir(desk.0.path()).arg("--home").arg(desk.path(home)).args(arguments);
    command.env_remove("REGISTRY_BASE_URL").env_remove("HAFT_TOKEN");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn weather(name: &str, version: &str) -> Value {
    json!({"name": format!("com.example/{name}"), "description": "Weather", "version": version,
        "packages": [{"registryType": "npm", "identifier": "@example/weather", "version": version,
            "transport": {"type": "stdio"}}]})
}

fn counts(report: &Value) -> [usize; 4] {
    ["imported", "unchanged", "refused", "skipped"].map(|key| report[key].as_array().unwrap().len())
}

#[test]
fn a_dump_is_imported_once_and_what_is_bad_in_it_stops_nothing() {
    let desk = Desk::new();
    let served = Opened::start(&desk, "home", &[]);
    let official = "io.modelcontextprotocol.registry/official";
    let dump = json!({"servers": [
        {"server": weather("one", "1.0.0"), "_meta": {official: {"status": "active", "isLatest": true}}},
        {"server": weather("two", "latest")},
        {"server": {"name": "no-slash", "description": "x", "version": "1.0.0"}},
        {"server": weather("gone", "1.0.0"), "_meta": {official: {"status": "deleted", "isLatest": false}}},
        {"server": weather("one", "1.1.0")},
        weather("bare", "2.0.0"),
    ]});
    let path = write_below(desk.0.path(), "dump.json", &dump.to_string());
    let tried = served.import(&desk, &path, &["--dry-run", "--json"]);
    assert_eq!(tried.code, 0, "{}", tried.stderr);
    assert_eq!(counts(&tried.json()), [3, 0, 2, 1], "{}", tried.stdout);
    assert_eq!(served.get("/v1/tools")["total"], 0, "nothing was published");
    let done = served.import(&desk, &path, &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("imported    com.example/one 1.1.0\n"), "{}", done.stdout);
    assert!(done.stdout.contains("refused     "), "{}", done.stdout);
    assert!(done.stdout.contains("`latest`"), "it says why: {}", done.stdout);
    assert!(done.stderr.contains("3 imported, 0 there already, 2 refused, 1 passed over"));
    let again = served.import(&desk, &path, &["--json"]);
    assert_eq!(counts(&again.json()), [0, 3, 2, 1]);
    assert_eq!(served.import(&desk, &path, &["--strict"]).code, 2);
    // The same version with other content is refused, and only that.
    let mut other = weather("one", "1.0.0");
    other["description"] = "Other".into();
    let path = write_below(
        desk.0.path(),
        "other.json",
        &json!([other, weather("three", "1.0.0")]).to_string(),
    );
    for dry in [&["--dry-run", "--json"][..], &["--json"]] {
        let ran = served.import(&desk, &path, dry);
        assert_eq!(counts(&ran.json()), [1, 0, 1, 0], "{}", ran.stdout);
        assert!(ran.stdout.contains("other bytes"), "{}", ran.stdout);
    }
    // A name that looks like another's, of what is there already and of what comes before it.
    let path = write_below(
        desk.0.path(),
        "alike.json",
        &json!([
            weather("ONE", "1.0.0"),
            weather("four", "1.0.0"),
            weather("Four", "1.0.0"),
            weather("four", "1.0.0")
        ])
        .to_string(),
    );
    let [tried, done] = [&["--dry-run", "--json"][..], &["--json"]].map(|dry| {
        let ran = served.import(&desk, &path, dry);
        assert_eq!(counts(&ran.json()), [1, 1, 2, 0], "{}", ran.stdout);
        assert!(
            ran.stdout.contains("looks like that of `tool:com.example/four`"),
            "{}",
            ran.stdout
        );
        ran.json()
    });
    for key in ["imported", "unchanged", "refused"] {
        assert_eq!(tried[key], done[key], "the verdicts are the same");
    }
    let token =
        haft(&desk, "home", None, &["registry", "token", "new", "--namespace", "acme", "--quiet"]);
    let arguments = ["registry", "import", &path, "--registry", served.url(), "--dry-run"];
    let foreign = haft(&desk, "home", Some(token.stdout.trim()), &arguments);
    assert_eq!(foreign.code, 2, "all would be refused: {}", foreign.stdout);
    assert!(foreign.stdout.contains("namespace `com.example`"), "{}", foreign.stdout);
    let arguments = ["registry", "import", &path, "--registry", served.url()];
    let foreign = haft(&desk, "home", Some(token.stdout.trim()), &arguments);
    assert_eq!(foreign.code, 2, "all were refused: {}", foreign.stdout);
    assert!(foreign.stdout.contains("namespace `com.example`"), "{}", foreign.stdout);
    let none = haft(&desk, "home", None, &arguments);
    assert_eq!((none.code, none.stdout.as_str()), (2, ""), "{}", none.stderr);
    assert_eq!(haft(&desk, "home", Some("haft_wrong"), &arguments).code, 4);
    assert_eq!(served.import(&desk, "nowhere.json", &[]).code, 3);
    let bad = write_below(desk.0.path(), "bad.json", "[");
    assert_eq!(served.import(&desk, &bad, &[]).code, 2);
    let other = format!("{}/nowhere", served.url());
    for (source, words) in [
        (&*other, "is no MCP registry: it answers with 404\nhint: it is the address before"),
        ("http://127.0.0.1:1", "failed to reach `http://127.0.0.1:1`"),
    ] {
        let ran = served.import(&desk, source, &[]);
        assert_eq!(ran.code, 6, "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn one_registry_is_imported_into_another_through_its_mcp_door() {
    let desk = Desk::new();
    let first = Opened::start(&desk, "home", &[]);
    let dump: Vec<Value> = (0..130).map(|number| weather(&format!("s{number}"), "1.0.0")).collect();
    let path = write_below(desk.0.path(), "dump.json", &json!(dump).to_string());
    assert_eq!(first.import(&desk, &path, &["--quiet"]).code, 0);
    let second = Opened::start(&desk, "other", &[]);
    let done = second.import(&desk, first.url(), &["--json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(counts(&done.json()), [130, 0, 0, 0], "more than a page");
    assert_eq!(done.json()["next"], Value::Null);
    let again =
        second.import(&desk, &format!("{}/v0.1/servers", first.url()), &["--latest", "--json"]);
    assert_eq!(counts(&again.json()), [0, 130, 0, 0], "the same bytes: {}", again.stderr);
    let some = second.import(&desk, first.url(), &["--search", "s12", "--json"]);
    assert_eq!(counts(&some.json()), [0, 11, 0, 0]);
    let whole = first.get("/v0.1/servers?limit=100")["servers"].clone();
    let there = second.get("/v0.1/servers?limit=100")["servers"].clone();
    let servers = |list: &Value| -> Vec<Value> {
        list.as_array().unwrap().iter().map(|entry| entry["server"].clone()).collect()
    };
    assert_eq!(servers(&whole), servers(&there));
    // What is no MCP server does not come with them, and that is told.
    let third = Opened::start(&desk, "third", &[]);
    let echo = repository().join("examples/mcpkg/echo").display().to_string();
    assert_eq!(third.import(&desk, &echo, &[]).code, 0);
    let none = second.import(&desk, third.url(), &[]);
    let words = "it has 1 tool, and as an MCP registry it tells of 0: the others were not imported";
    assert!(none.stderr.contains(words), "{}", none.stderr);
}

#[test]
fn a_private_registry_is_imported_with_a_token_that_nobody_else_is_shown() {
    let desk = Desk::new();
    let private = Opened::start(&desk, "private", &["--private"]);
    let path =
        write_below(desk.0.path(), "dump.json", &json!([weather("one", "1.0.0")]).to_string());
    assert_eq!(private.import(&desk, &path, &[]).code, 0);
    let own = Opened::start(&desk, "own", &[]);
    let import = |source: &str, variables: &[(&str, &str)], more: &[&str]| {
        let arguments = [&["registry", "import", source, "--json"], more].concat();
        haft_with(&desk, "home", variables, &arguments)
    };
    let to_own = ["--registry", own.url()];
    // The token is for the one that is named with it, and the source is another.
    let refused = import(private.url(), &[("HAFT_TOKEN", &own.token)], &to_own);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("haft registry login"), "{}", refused.stderr);
    // It is for the source where that is the address it came with.
    for (name, opened) in [("own", &own), ("private", &private)] {
        let added = haft(&desk, "home", None, &["registry", "add", name, opened.url()]);
        assert_eq!(added.code, 0, "{}", added.stderr);
    }
    let login = |name: &str, token: &str| {
        let kept = desk.haft_with(&["registry", "login", name], Some(token));
        assert_eq!(kept.code, 0, "{}", kept.stderr);
    };
    login("own", &own.token);
    let named = [("HAFT_TOKEN", private.token.as_str()), ("REGISTRY_BASE_URL", private.url())];
    let done = import(&format!("{}/v0.1", private.url()), &named, &to_own);
    assert_eq!((done.code, counts(&done.json())), (0, [1, 0, 0, 0]), "{}", done.stderr);
    // And what was kept for it is shown by itself, for its pages and for its catalog.
    login("private", &private.token);
    for source in [private.url().to_owned(), format!("{}/v1/catalog.json", private.url())] {
        let done = import(&source, &[], &to_own);
        assert_eq!(done.code, 0, "{source}: {}", done.stderr);
    }
    // A host that is only called alike is shown nothing, nor is another port.
    let (url, heads) = hearing(json!({"servers": []}).to_string());
    let all = [("HAFT_TOKEN", own.token.as_str())];
    assert_eq!(import(&url, &all, &to_own).code, 0);
    assert_eq!(import(&url, &named, &to_own).code, 0);
    let heads: Vec<String> = heads.try_iter().collect();
    // Each is asked for its servers, and whether it has more than those.
    assert_eq!(heads.len(), 4);
    for head in heads {
        assert!(!head.to_lowercase().contains("authorization"), "{head}");
    }
}

/// Answers everybody with this, and says what they asked.
fn hearing(body: String) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap();
            told.send(String::from_utf8_lossy(&head[..length]).into_owned()).unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
        }
    });
    (url, heard)
}

#[test]
fn what_the_source_has_taken_back_is_taken_back_here_and_what_is_missing_is_told() {
    let desk = Desk::new();
    let first = Opened::start(&desk, "first", &[]);
    let second = Opened::start(&desk, "second", &[]);
    let write = |name: &str, dump: &Value| write_below(desk.0.path(), name, &dump.to_string());
    let all = json!([weather("one", "1.0.0"), weather("one", "1.1.0"), weather("two", "1.0.0")]);
    assert_eq!(first.import(&desk, &write("all.json", &all), &[]).code, 0);
    let done = second.import(&desk, first.url(), &["--json"]);
    assert_eq!(counts(&done.json()), [3, 0, 0, 0], "{}", done.stderr);
    let own = json!([weather("one", "2.0.0")]);
    assert_eq!(second.import(&desk, &write("own.json", &own), &[]).code, 0);

    let yank = ["yank", "com.example/one@1.0.0", "--reason", "it rains", "--security"];
    let yank = [&yank[..], &["--registry", first.url()]].concat();
    assert_eq!(haft(&desk, "home", Some(&first.token), &yank).code, 0);
    let named = |report: &Value, key: &str| -> Vec<String> {
        let list = report[key].as_array().unwrap_or_else(|| panic!("{key}: {report}"));
        let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
        list.iter().map(|one| format!("{} {}", text(one, "name"), text(one, "version"))).collect()
    };
    let told = |opened: &Opened, version: &str| {
        let versions = opened.get("/v1/tools/com.example%2Fone/versions")["versions"].clone();
        versions.as_array().unwrap().iter().find(|one| one["version"] == version).unwrap().clone()
    };
    for more in [&["--json", "--dry-run"][..], &["--json"]] {
        assert_eq!(told(&second, "1.0.0")["yanked"], false);
        let again = second.import(&desk, first.url(), more);
        assert_eq!(again.code, 0, "{}", again.stderr);
        let report = again.json();
        assert_eq!(named(&report, "yanked"), ["com.example/one 1.0.0"], "{report}");
        assert_eq!(named(&report, "missing"), ["com.example/one 2.0.0"], "{report}");
        assert_eq!(counts(&report), [0, 2, 0, 0], "{report}");
    }
    let yanked = told(&second, "1.0.0");
    let reason = yanked["yankReason"].as_str().unwrap();
    assert!(reason.contains(first.url()) && reason.contains("it rains"), "{reason}");
    assert_eq!(yanked["yankSecurity"], true, "{yanked}");
    assert_eq!(told(&second, "2.0.0")["yanked"], false, "what is missing is left alone");
    let again = second.import(&desk, first.url(), &[]);
    assert!(again.stdout.contains("missing     com.example/one 2.0.0"), "{}", again.stdout);
    assert!(again.stderr.contains("0 yanked, 1 missing there"), "{}", again.stderr);
    // Who does not list everything says nothing by what is not there.
    for more in ["--latest", "--updated-since=2020-01-01T00:00:00Z"] {
        let some = second.import(&desk, first.url(), &["--json", more]);
        assert_eq!(named(&some.json(), "missing"), [""; 0], "{more}");
    }
    // Nobody takes back what is not what they had.
    let official = "io.modelcontextprotocol.registry/official";
    let mut other = weather("two", "1.0.0");
    other["description"] = "Somebody else's".into();
    let deleted = json!({official: {"status": "deleted"}});
    let dump = json!({"servers": [{"server": other, "_meta": deleted}]});
    let ran = second.import(&desk, &write("other.json", &dump), &["--json"]);
    assert_eq!((named(&ran.json(), "yanked").len(), counts(&ran.json())), (0, [0, 0, 0, 1]));
    // A dump says it as well; the place it lies at is nobody's business.
    let dump = json!({"servers": [{"server": weather("two", "1.0.0"), "_meta": deleted}]});
    let ran = second.import(&desk, &write("dump.json", &dump), &["--json"]);
    assert_eq!(named(&ran.json(), "yanked"), ["com.example/two 1.0.0"], "{}", ran.stdout);
    let two = second.get("/v1/tools/com.example%2Ftwo/versions")["versions"][0].clone();
    let reason = two["yankReason"].as_str().unwrap();
    assert!(reason.contains("dump.json") && !reason.contains('/'), "{reason}");
}

/// A tool of which a source has no version any more is taken back, but only where that can be believed.
#[test]
fn a_tool_that_is_gone_at_its_source_is_taken_back_here_unless_the_list_may_be_cut() {
    let desk = Desk::new();
    let served = Opened::start(&desk, "served", &[]);
    let import = |list: &Value, more: &[&str]| {
        let path = write_below(desk.0.path(), "list.json", &list.to_string());
        served.import(&desk, &path, more)
    };
    let yanked = || -> Vec<bool> {
        let each = ["one", "two", "three"].iter().map(|name| {
            let path = format!("/v1/tools/com.example%2F{name}/versions");
            let versions = served.get(&path)["versions"].clone();
            versions.as_array().unwrap().iter().all(|one| one["yanked"] == true)
        });
        each.collect()
    };
    let [one, newer, two, three] =
        [("one", "1.0.0"), ("one", "1.1.0"), ("two", "1.0.0"), ("three", "1.0.0")]
            .map(|(name, version)| weather(name, version));
    let own = write_below(desk.0.path(), "own.json", &json!([weather("own", "1.0.0")]).to_string());
    assert_eq!(served.import(&desk, &own, &[]).code, 0);
    assert_eq!(import(&json!([one, newer, two, three]), &[]).code, 0);
    // Most of it, or all of it, is not gone at once; nor is anything where a part was asked for or could not be read.
    for (list, more) in [
        (json!([two]), &[][..]),
        (json!([]), &[]),
        (json!({"servers": []}), &[]),
        (json!([two, three, 42]), &[]),
        (json!([two, three, {"name": 7}]), &[]),
        (json!({"more": []}), &[]),
        (json!([two, three]), &["--latest"]),
        (json!([two, three]), &["--search", "t"]),
        (json!([two, three]), &["--updated-since", "2020-01-01T00:00:00Z"]),
    ] {
        let ran = import(&list, more);
        assert_eq!(yanked(), [false; 3], "{list} {more:?}: {}", ran.stderr);
    }
    let cut = import(&json!([two]), &["--json"]);
    assert!(cut.stderr.contains("2 of 3 tools"), "{}", cut.stderr);
    assert_eq!(
        (cut.code, cut.json()["missing"].as_array().unwrap().len()),
        (0, 3),
        "{}",
        cut.stdout
    );
    // A page that never came is no end of the list.
    let page = |servers: Value, next: &str| {
        format!("200 OK\r\n\r\n{}", json!({"servers": servers, "metadata": {"nextCursor": next}}))
    };
    let never = "403 Forbidden\r\n\r\n{}".to_owned();
    let all = json!([one, newer, two, three]);
    let url = answering(vec![page(all, ""), page(json!([two, three]), "2"), never]);
    for code in [0, 6] {
        let ran = served.import(&desk, &url, &[]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
    }
    assert_eq!(yanked(), [false; 3]);

    let tried = import(&json!([two, three]), &["--json", "--dry-run"]);
    assert_eq!(tried.json()["yanked"].as_array().unwrap().len(), 2, "{}", tried.stdout);
    assert_eq!(yanked(), [false; 3], "nothing is done where it is only tried");
    let ran = import(&json!([two, three]), &[]);
    assert!(ran.stdout.contains("yanked      com.example/one 1.1.0"), "{}", ran.stdout);
    assert_eq!(yanked(), [true, false, false]);
    let reason =
        served.get("/v1/tools/com.example%2Fone/versions")["versions"][0]["yankReason"].clone();
    assert_eq!(reason, "not listed in list.json any more");
    let own = served.get("/v1/tools/com.example%2Fown/versions")["versions"][0]["yanked"].clone();
    assert_eq!(own, false, "what came from elsewhere is none of its business");
    // It is done once: who offers it again is not overruled.
    for version in ["1.0.0", "1.1.0"] {
        let what = format!("com.example/one@{version}");
        let undo = ["yank", &what, "--undo", "--registry", served.url()];
        assert_eq!(haft(&desk, "home", Some(&served.token), &undo).code, 0);
    }
    assert_eq!(import(&json!([two, three]), &[]).code, 0);
    assert_eq!(yanked(), [false; 3]);
    // Who has no memory misses nothing, and says so.
    for entry in std::fs::read_dir(desk.path("home/imports")).unwrap() {
        std::fs::write(entry.unwrap().path(), "{").unwrap();
    }
    let ran = import(&json!([two]), &[]);
    assert!(ran.code == 0 && ran.stderr.contains("begun anew"), "{}", ran.stderr);
    assert_eq!(yanked(), [false; 3]);
}

/// Answers with these, one after the other, each as `STATUS\r\nHEADERS\r\n\r\nBODY`.
fn answering(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let _asked = stream.read(&mut head).unwrap();
            let (status, body) = answer.split_once("\r\n\r\n").unwrap();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn a_catalog_is_imported_to_its_last_page() {
    let desk = Desk::new();
    let served = Opened::start(&desk, "home", &[]);
    let catalog = repository().join("examples/capability/catalog/manifest.base.json");
    let catalog: Value = serde_json::from_slice(&std::fs::read(catalog).unwrap()).unwrap();
    let page = |id: &str, next: &str| {
        let mut entry = catalog["capabilities"][0].clone();
        entry["id"] = id.into();
        let link =
            if next.is_empty() { next.to_owned() } else { format!("\r\nLink: <{next}>; rel=next") };
        format!("200 OK{link}\r\n\r\n{}", json!({"version": "0.1", "capabilities": [entry]}))
    };
    let whole = [page("demo.one", "/catalog.json?after=one"), page("demo.two", "")];
    let url = answering(whole.into());
    let ran = served.import(&desk, &format!("{url}/catalog.json"), &["--json"]);
    assert_eq!(counts(&ran.json()), [2, 0, 0, 0], "{}", ran.stderr);
    let url = answering(vec![page("demo.one", "http://127.0.0.1:1/")]);
    let ran = served.import(&desk, &format!("{url}/catalog.json"), &["--json"]);
    assert_eq!(counts(&ran.json()), [0, 1, 0, 1], "what is elsewhere is told: {}", ran.stderr);
    let url = answering(vec![page("demo.one", "/catalog.json")]);
    let ran = served.import(&desk, &format!("{url}/catalog.json"), &["--json"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert!(ran.stderr.contains("in a circle"), "{}", ran.stderr);
}

#[test]
fn an_import_that_is_broken_off_says_where_to_go_on() {
    let desk = Desk::new();
    let served = Opened::start(&desk, "home", &[]);
    let page = json!({"servers": [{"server": weather("one", "1.0.0")}, 7], "metadata": {"nextCursor": "page 2"}});
    let url = answering(vec![
        format!("200 OK\r\n\r\n{page}"),
        "403 Forbidden\r\n\r\n{\"detail\":\"not\\u001b you\"}".to_owned(),
    ]);
    let ran = served.import(&desk, &url, &["--json"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    let report: Value = serde_json::from_str(ran.stdout.lines().next().unwrap_or_default())
        .unwrap_or_else(|_| ran.json());
    assert_eq!(counts(&report), [1, 0, 1, 0], "what came before is kept");
    assert_eq!(report["next"], "page 2");
    assert!(
        ran.stderr.contains("403: not you") && ran.stderr.contains("--cursor page 2"),
        "{}",
        ran.stderr
    );
    assert_eq!(served.get("/v1/tools")["total"], 1);
}

#[test]
fn the_tools_of_a_hub_are_imported_and_run_by_jumith_clients() {
    let desk = Desk::new();
    let served =
        Opened::start(&desk, "home", &["--public-url", "https://tools.example.com/registry/"]);
    let tool = json!({"id": "tool:math.add", "name": "math.add", "version": "1.0.0", "summary": "Adds",
        "entry": {"runtime": "node", "main": "dist/index.js"}});
    write_below(desk.0.path(), "tools/math.add/1.0.0/manifest.json", &tool.to_string());
    write_below(desk.0.path(), "tools/math.add/1.0.0/files/dist/index.js", "exports.tool = {}");
    let mut python = tool.clone();
    python["entry"]["runtime"] = "python".into();
    write_below(desk.0.path(), "tools/math.py/1.0.0/manifest.json", &python.to_string());
    write_below(desk.0.path(), "tools/math.py/1.0.0/files/x.py", "");
    let ran = served.import(&desk, "tools", &["--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(counts(&ran.json()), [1, 0, 1, 0], "{}", ran.stdout);
    assert!(ran.stdout.contains("entry.runtime must be node"), "{}", ran.stdout);
    let bundle = served.get("/v1/tools/math.add/versions/1.0.0/bundle");
    assert!(bundle["files"].to_string().contains("dist/index.js"));
    let index = served.get("/.well-known/install-manifests.json");
    assert_eq!(index["publisher"]["id"], "tools.example.com");
    for bad in ["ftp://x", "https://a:b@c", "https://x?y", "x"] {
        let ran = haft(&desk, "home", None, &["registry", "serve", "--public-url", bad]);
        assert_eq!(ran.code, 2, "{bad}: {}", ran.stderr);
    }
}

#[test]
fn a_client_of_the_mcp_world_reads_our_registry() {
    let Some(client) = std::env::var_os(CLIENT) else {
        return;
    };
    let desk = Desk::new();
    let served = Opened::start(&desk, "home", &[]);
    let dump: Vec<Value> = (0..5).map(|number| weather(&format!("s{number}"), "1.0.0")).collect();
    let path = write_below(desk.0.path(), "dump.json", &json!(dump).to_string());
    assert_eq!(served.import(&desk, &path, &[]).code, 0);
    let program = "import sys\n\
        from mcp_registry_cli.api import MCPRegistryAPI\n\
        MCPRegistryAPI.BASE_URL = sys.argv[1]\n\
        api, cursor, seen = MCPRegistryAPI(), None, []\n\
        while True:\n\
        \x20   page = api.list_servers(cursor=cursor, limit=2)\n\
        \x20   assert page['count'] == len(page['servers']) <= 2\n\
        \x20   seen += [(s.name, s.version, s.status, s.packages[0]['identifier']) for s in page['servers']]\n\
        \x20   cursor = page['next_cursor']\n\
        \x20   if not cursor: break\n\
        print(seen)\n";
    let ran = Command::new("python3")
        .args(["-c", program, served.url()])
        .env("PYTHONPATH", client)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(said.matches("'active', '@example/weather'").count(), 5, "{said}");
}

/// The commands of a page, each with what it is said to print.
fn commands(page: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match (is_inside, line) {
            (false, "```console") => is_inside = true,
            (true, "```") => is_inside = false,
            (true, line) => match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_owned(), String::new())),
                (None, Some(last)) if last.0.ends_with('\\') => {
                    last.0.truncate(last.0.len() - 1);
                    last.0.push_str(line.trim());
                }
                (None, Some(last)) => last.1 += &format!("{line}\n"),
                (None, None) => panic!("{} begins a block with `{line}`", page.display()),
            },
            _ => {}
        }
    }
    commands
}

#[test]
fn the_pages_of_the_docs_say_what_happens() {
    let desk = Desk::new();
    let served = Opened::start(&desk, "home", &[]);
    let program = assert_cmd::cargo::cargo_bin("haft");
    let path =
        format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut ran = 0;
    for page in ["mcp-registry.md", "importing.md", "federation.md", "jumith-hub.md"] {
        for (command, expected) in commands(&repository().join("docs").join(page)) {
            let output = Command::new("bash")
                .args(["-c", &format!("set -euo pipefail; {command}")])
                .current_dir(repository())
                .env("PATH", &path)
                .env("HAFT_HOME", desk.path("home"))
                .env("HAFT_TOKEN", &served.token)
                .env("REGISTRY_BASE_URL", served.url())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let wrong = || {
                format!("{page}: {command}\n{said}\n{}", String::from_utf8_lossy(&output.stderr))
            };
            assert!(output.status.success(), "{}", wrong());
            let mut rest = said.as_str();
            for piece in expected.trim_end().split('…').filter(|piece| !piece.is_empty()) {
                let piece = piece.replace("$REGISTRY_BASE_URL", served.url());
                let at =
                    rest.find(&piece).unwrap_or_else(|| panic!("`{piece}` is not in {}", wrong()));
                rest = &rest[at + piece.len()..];
            }
            ran += 1;
        }
    }
    assert!(ran >= 12, "{ran} commands");
}
