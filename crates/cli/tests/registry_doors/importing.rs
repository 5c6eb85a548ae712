//! What others hold, published here.

use serde_json::{Value, json};

use super::common::{Desk, repository, write_below};
use super::opened::{Opened, counts, haft, haft_with, weather};
use super::sources::{answering, hearing};

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

/// An author writes keys in any order and may have files beside them; a registry tells the same server.
#[test]
fn a_server_that_its_author_published_is_there_when_it_is_imported() {
    let desk = Desk::new();
    let served = Opened::start(&desk, "home", &[]);
    let folder = repository().join("examples/server-json/weather");
    let folder = folder.display().to_string();
    let publish = ["publish", &folder, "--no-sign", "--no-test", "--registry", served.url()];
    let published = haft(&desk, "home", Some(&served.token), &publish);
    assert_eq!(published.code, 0, "{}", published.stderr);
    for (source, more) in [
        (folder.as_str(), &["--json"][..]),
        (&folder, &["--json", "--dry-run"]),
        (served.url(), &["--json"]),
    ] {
        let ran = served.import(&desk, source, more);
        assert_eq!(counts(&ran.json()), [0, 1, 0, 0], "{source} {more:?}: {}", ran.stdout);
    }
    let mut other: Value =
        serde_json::from_slice(&std::fs::read(format!("{folder}/server.json")).unwrap()).unwrap();
    other["title"] = "Another".into();
    let path = write_below(desk.0.path(), "other.json", &json!([other]).to_string());
    let ran = served.import(&desk, &path, &["--json"]);
    assert_eq!(counts(&ran.json()), [0, 0, 1, 0], "{}", ran.stdout);
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
    assert!(refused.stdout.contains("haft registry login"), "{}", refused.stdout);
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
    assert!(ran.json()["error"].to_string().contains("in a circle"), "{}", ran.stdout);
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
    let report = ran.json();
    assert_eq!(counts(&report), [1, 0, 1, 0], "what came before is kept");
    assert_eq!((&report["next"], &report["ok"]), (&json!("page 2"), &json!(false)));
    let error = &report["error"];
    assert_eq!(error["code"], "unavailable");
    assert!(error["message"].to_string().contains("403: not"), "{error}");
    assert_eq!(error["hints"][0], "go on with --cursor page 2");
    assert!(!ran.stderr.contains("403"), "it is told once: {}", ran.stderr);
    assert_eq!(served.get("/v1/tools")["total"], 1);
}

#[test]
fn an_import_that_never_began_is_told_to_programs_as_a_failure() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("empty")).unwrap();
    let served = Opened::start(&desk, "home", &[]);
    for (source, code, kind) in [
        ("nope", 3, "not_found"),
        ("empty", 3, "not_found"),
        ("http://127.0.0.1:1/", 6, "unavailable"),
    ] {
        let ran = served.import(&desk, source, &["--json"]);
        let report = ran.json();
        assert_eq!(ran.code, code, "{source}: {}", ran.stderr);
        assert_eq!((&report["ok"], &report["error"]["code"]), (&json!(false), &json!(kind)));
        assert_eq!(counts(&report), [0; 4]);
        assert_eq!(ran.stderr, "", "it is told once");
    }
}

#[test]
fn what_cannot_be_asked_of_a_source_is_seen_before() {
    let desk = Desk::new();
    let served = Opened::start(&desk, "home", &[]);
    let other = served.import(&desk, "ftp://foo.example/dump.json", &[]);
    assert_eq!(other.code, 2, "{}", other.stderr);
    assert!(other.stderr.contains("it begins with `ftp:`, not with `https:`"), "{}", other.stderr);
    // Nobody is there, so it was not asked.
    let since = ["--updated-since", "yesterday"];
    let ran = served.import(&desk, "http://127.0.0.1:1/", &since);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("2026-11-01T00:00:00Z"), "{}", ran.stderr);
    let ran = served.import(&desk, served.url(), &["--updated-since", "2026-11-01T00:00:00+01:00"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = served.import(&desk, served.url(), &["--cursor", "bogus"]);
    assert_eq!(ran.code, 2, "the source refuses it: {}", ran.stderr);
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
    let why = ran.json()["refused"][0]["why"].as_str().unwrap_or_default().to_owned();
    let said = "the manifest is not valid: /entry/runtime: entry.runtime must be node";
    assert!(why.ends_with(&format!("refuses: {said}")), "it is told once: {why}");
    let bundle = served.get("/v1/tools/math.add/versions/1.0.0/bundle");
    assert!(bundle["files"].to_string().contains("dist/index.js"));
    let index = served.get("/.well-known/install-manifests.json");
    assert_eq!(index["publisher"]["id"], "tools.example.com");
    for bad in ["ftp://x", "https://a:b@c", "https://x?y", "x"] {
        let ran = haft(&desk, "home", None, &["registry", "serve", "--public-url", bad]);
        assert_eq!(ran.code, 2, "{bad}: {}", ran.stderr);
    }
}
