//! Registries are named, signed in to, searched together; folders are tested, signed and published.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use common::served::Served;
use common::{Desk, Ran, names, repository};
use serde_json::Value;

/// A token of the registry that is served from a home.
fn token_of(desk: &Desk, home: &str) -> String {
    let path = desk.path(home);
    let arguments =
        ["--home", path.to_str().unwrap(), "registry", "token", "new", "--namespace", "*", "-q"];
    let ran = common::run_in(desk.0.path(), &arguments, None);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

/// A copy of an example that runs offline.
fn example(desk: &Desk, name: &str) {
    let source = repository().join("examples/mcpkg").join(name);
    let copied = Command::new("cp").arg("-r").args([&source, &desk.path(name)]).status();
    assert!(copied.unwrap().success());
}

/// Names a served registry and signs in to it.
fn join(desk: &Desk, served: &Served, name: &str, home: &str) {
    desk.done(&["registry", "add", name, &served.url]);
    let kept = desk.haft_with(&["registry", "login", name], Some(&token_of(desk, home)));
    assert_eq!(kept.code, 0, "{}", kept.stderr);
}

fn fails(ran: &Ran, code: i32, words: &str) {
    assert_eq!(ran.code, code, "{}", ran.stderr);
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
}

#[test]
fn registries_are_named_listed_and_forgotten() {
    let desk = Desk::new();
    assert_eq!(desk.done(&["registry", "list"]).stdout, "");
    desk.done(&["registry", "add", "acme", "https://tools.acme.example/"]);
    desk.done(&["registry", "add", "team", "http://127.0.0.1:1", "--priority", "10"]);
    desk.done(&["registry", "add", "old", "http://127.0.0.1:2", "--priority", "-5"]);
    let listed = desk.done(&["registry", "list", "--json"]).json();
    let names: Vec<_> =
        listed["registries"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["team", "acme", "old"]);
    assert_eq!(listed["registries"][1]["url"], "https://tools.acme.example");
    desk.refused(&["registry", "add", "acme", "https://x.example"], 5, "already");
    desk.refused(&["registry", "add", "a b", "https://x.example"], 2, "cannot be the name");
    desk.refused(&["registry", "add", "x", "ftp://x.example"], 2, "no address");
    desk.refused(&["registry", "add", "x", "https://u:p@x.example"], 2, "no address");
    for kind in [&[][..], &["--kind", "folder"]] {
        let nowhere = desk.haft(&[&["registry", "add", "x", "./nowhere"], kind].concat());
        let told = "error: there is no folder `./nowhere`\n";
        assert_eq!((nowhere.code, nowhere.stderr.as_str()), (3, told));
    }
    for version in ["0.1", "latest"] {
        let named = format!("demo.echo@{version}");
        let told = format!("error: `{version}` is no version of a tool\nhint: a version has three");
        desk.refused(&["registry", "get", &named, "--registry", "team"], 2, &told);
    }
    desk.done(&["registry", "rm", "old"]);
    desk.refused(&["registry", "rm", "old"], 3, "there is no registry");
    desk.refused(&["search", "x", "--registry", "old"], 3, "there is no registry");
    desk.refused(&["publish", "nothing.mcpkg"], 2, "one is meant");
    // A list that somebody else could have written is nobody's word.
    let list = desk.path("home/registries.json");
    Command::new("chmod").arg("666").arg(&list).status().unwrap();
    desk.refused(&["search", "x"], 4, "others may write");
}

#[test]
fn a_token_is_kept_for_its_address_alone() {
    let desk = Desk::new();
    desk.done(&["registry", "add", "acme", "https://tools.acme.example"]);
    let login = |name: &str, token: &str| desk.haft_with(&["registry", "login", name], Some(token));
    // The registry is not there to be asked: what can be a token of it is kept all the same.
    let token = format!("haft_{}", "0a".repeat(32));
    let kept = login("acme", &format!("{token}\n"));
    assert!(kept.stderr.contains("nobody knows yet whether the token is good"), "{}", kept.stderr);
    let listed = desk.done(&["registry", "list"]).stdout;
    assert!(listed.contains("(token kept)") && !listed.contains(&token), "{listed}");
    fails(&login("acme", &token[1..]), 2, "no token of a registry of ours");
    fails(&login("nobody", "x"), 3, "there is no registry");
    fails(&login("acme", "two words"), 2, "a token has");
    desk.done(&["registry", "add", "plain", "http://tools.example"]);
    fails(&login("plain", "x"), 4, "could read the token");
    // Another address under the same name does not get it.
    desk.done(&["registry", "rm", "acme"]);
    assert!(!desk.done(&["secret", "list"]).stdout.contains("acme"));
    desk.done(&["registry", "add", "acme", "https://evil.example"]);
    assert!(!desk.done(&["registry", "list"]).stdout.contains("token kept"));
    assert_eq!(login("acme", &token).code, 0);
    desk.done(&["registry", "logout", "acme"]);
    desk.refused(&["registry", "logout", "acme"], 3, "no token is kept");
}

#[test]
fn a_token_is_kept_where_its_registry_knows_it() {
    let desk = Desk::new();
    let served = Served::at(&desk.path("served"), &[]);
    desk.done(&["registry", "add", "team", &served.url]);
    let login = |token: &str, more: &[&str]| {
        desk.haft_with(&[&["registry", "login", "team"], more].concat(), Some(token))
    };
    let unknown = format!("haft_{}", "0a".repeat(32));
    for wrong in ["hello", "haft_of_nobody", &unknown] {
        fails(&login(wrong, &[]), 4, "does not know the token, so it is not kept");
        assert!(!desk.done(&["registry", "list"]).stdout.contains("token kept"));
    }
    let token = token_of(&desk, "served");
    let kept = login(&token, &[]);
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    let words = "Kept the token for team: publish of all names, good until it is revoked";
    assert!(kept.stderr.contains(words), "{}", kept.stderr);
    let told = login(&token, &["--json"]).json();
    assert_eq!((&told["checked"], &told["role"]), (&true.into(), &"publish".into()), "{told}");
    // One that is not good changes nothing of what is kept.
    fails(&login(&unknown, &[]), 4, "not kept");
    assert!(desk.done(&["registry", "list"]).stdout.contains("token kept"));
}

#[test]
fn a_folder_is_tested_signed_and_published_in_one_go() {
    let desk = Desk::new();
    let served = Served::at(&desk.path("served"), &[]);
    join(&desk, &served, "team", "served");
    example(&desk, "text-stats");
    desk.refused(&["publish", "text-stats"], 3, "no key of yours");
    desk.done(&["key", "new", "alice", "--no-passphrase"]);
    let published = desk.done(&["publish", "text-stats"]);
    assert!(
        published.stdout.starts_with("Published demo.text.stats 1.0.0"),
        "{}",
        published.stdout
    );
    assert!(published.stderr.contains("1 passed, 0 failed"), "{}", published.stderr);
    let again = desk.done(&["publish", "text-stats", "--json"]).json();
    assert_eq!((&again["outcome"], &again["tests"]["passed"]), (&"unchanged".into(), &1.into()));
    desk.done(&["registry", "get", "demo.text.stats", "-o", "got.mcpkg"]);
    desk.done(&["verify", "got.mcpkg"]);
    // The registry was told how its tests went, of exactly the bytes it has.
    let told = served.get("/v1/tools/demo.text.stats");
    let report = &told["tests"]["reported"];
    assert_eq!((&report["passed"], &report["failed"]), (&1.into(), &0.into()), "{told}");
    assert_eq!((&report["sha256"], &report["sandbox"]), (&told["sha256"], &"L3".into()));
    assert_eq!(report["cases"][0]["path"], "tests/stats.test.json");
    assert!(report["ranBy"].as_str().unwrap().starts_with("haft "), "{report}");
    desk.refused(&["publish", "got.mcpkg", "--no-test"], 2, "about a folder");
    desk.done(&["publish", "got.mcpkg"]);

    // What is there stays in its channel; whoever wants it in another is told how.
    let beta = ["publish", "got.mcpkg", "--channel", "beta", "--registry", "team"];
    let stays = desk.done(&beta);
    let approve = "registry review approve demo.text.stats@1.0.0 --channel beta --registry team";
    let told = format!(
        "It is offered in stable, not in beta, and publishing it again does not move it; `haft {approve}` does"
    );
    assert!(stays.stderr.contains(&told), "{}", stays.stderr);
    desk.done(&approve.split(' ').collect::<Vec<_>>());
    let moved = desk.done(&beta).stderr;
    assert!(!moved.contains("It is offered in"), "{moved}");
    desk.done(&["registry", "review", "approve", "demo.text.stats@1.0.0"]);

    // A test that fails stops it.
    let test = desk.path("text-stats/tests/stats.test.json");
    let text = std::fs::read_to_string(&test).unwrap();
    std::fs::write(&test, text.replace("\"words\": 3", "\"words\": 4")).unwrap();
    let manifest = desk.path("text-stats/manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("1.0.0", "1.0.1")).unwrap();
    let failed = desk.haft(&["publish", "text-stats"]);
    fails(&failed, 1, "$.words is 3, expected 4");
    assert_eq!(failed.stdout, "");
    let failed = desk.haft(&["publish", "text-stats", "--json"]);
    assert_eq!((failed.code, &failed.json()["tests"]["failed"]), (1, &1.into()));
    let versions = desk.done(&["search", "stats", "--json"]).json();
    assert_eq!(versions["results"][0]["version"], "1.0.0", "nothing was published");
    let skipped = desk.done(&["publish", "text-stats", "--no-test", "--no-sign"]);
    assert!(skipped.stderr.contains("not run"), "{}", skipped.stderr);
    assert!(skipped.stderr.contains("not signed"), "{}", skipped.stderr);
    // What is not valid is not even packed.
    std::fs::write(&manifest, "{}").unwrap();
    assert_eq!(desk.haft(&["publish", "text-stats"]).code, 2);
}

/// Nobody is asked for a passphrase for what is not published anyway.
#[test]
fn a_passphrase_is_asked_for_after_the_tests() {
    let desk = Desk::new();
    let served = Served::at(&desk.path("served"), &[]);
    join(&desk, &served, "team", "served");
    example(&desk, "text-stats");
    let made =
        desk.haft_with(&["key", "new", "alice", "--passphrase-stdin"], Some("open sesame\n"));
    assert_eq!(made.code, 0, "{}", made.stderr);
    let test = desk.path("text-stats/tests/stats.test.json");
    let text = std::fs::read_to_string(&test).unwrap();
    std::fs::write(&test, text.replace("\"words\": 3", "\"words\": 4")).unwrap();
    let publish = ["publish", "text-stats", "--passphrase-stdin"];
    for passphrase in ["open sesame\n", "wrong\n"] {
        let failed = desk.haft_with(&publish, Some(passphrase));
        fails(&failed, 1, "$.words is 3, expected 4");
        assert!(!failed.stderr.contains("Signed"), "{}", failed.stderr);
    }
    std::fs::write(&test, text).unwrap();
    let wrong = desk.haft_with(&publish, Some("wrong\n"));
    assert!(wrong.stderr.contains("1 passed, 0 failed") && wrong.code != 0, "{}", wrong.stderr);
    assert_eq!(served.get("/v1/tools")["total"], 0, "nothing was published");
    let done = desk.haft_with(&publish, Some("open sesame\n"));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let told = served.get("/v1/tools/demo.text.stats");
    assert_eq!(
        told["tests"]["reported"]["sha256"], told["sha256"],
        "what was tested is what is there"
    );
    assert_eq!(told["signature"]["state"], "valid", "{told}");
    // A key that is not there is told before anything is run.
    let missing = desk.haft(&["publish", "text-stats", "--key", "bob"]);
    assert!(missing.code != 0 && !missing.stderr.contains("passed"), "{}", missing.stderr);
}

#[test]
fn of_a_tool_that_is_only_asked_no_walls_are_told() {
    let desk = Desk::with_alice();
    let served = Served::at(&desk.path("served"), &[]);
    join(&desk, &served, "team", "served");
    let place = served.url.strip_prefix("http://").unwrap();
    let manifest = serde_json::json!({
        "toolId": "demo.web", "name": "Web", "version": "1.0.0", "description": "Asks.",
        "capabilities": ["demo"], "tests": ["tests/a.test.json"],
        "endpoint": {"type": "http", "method": "GET", "url": format!("{}/v1/tools", served.url)},
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
    });
    let test = serde_json::json!({"name": "asks", "input": {}, "expected": {"total": 0}});
    for (name, value) in [("manifest.json", manifest), ("tests/a.test.json", test)] {
        common::write_below(&desk.path("web"), name, &value.to_string());
    }
    desk.done(&["grant", "mcpkg:demo.web", "--host", place]);
    desk.done(&["publish", "web", "--approve"]);
    let report = served.get("/v1/tools/demo.web")["tests"]["reported"].clone();
    assert_eq!((&report["passed"], report.get("sandbox")), (&1.into(), None), "{report}");
}

#[test]
fn the_time_of_a_test_stands_before_that_of_the_tool() {
    let desk = Desk::with_alice();
    let served = Served::at(&desk.path("served"), &[]);
    join(&desk, &served, "team", "served");
    let write = |name: &str, value: &Value| {
        common::write_below(&desk.path("slow"), name, &value.to_string());
    };
    let manifest = serde_json::json!({
        "toolId": "demo.slow", "name": "Slow", "version": "1.0.0", "description": "Takes a while.",
        "capabilities": ["demo"], "tests": ["tests/a.test.json"],
        "endpoint": {"type": "local", "command": "python3 ./slow.py", "timeoutMs": 300},
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
    });
    write("manifest.json", &manifest);
    let program = "import time\ntime.sleep(0.8)\nprint('{\"done\": true}')\n";
    common::write_below(&desk.path("slow"), "slow.py", program);
    let test = |time: Option<u32>| {
        let mut test =
            serde_json::json!({"name": "waits", "input": {}, "expected": {"done": true}});
        if let Some(time) = time {
            test["timeoutMs"] = time.into();
        }
        write("tests/a.test.json", &test);
        desk.haft(&["publish", "slow", "--json"])
    };
    for time in [None, Some(200)] {
        let ran = test(time);
        let error = &ran.json()["tests"]["cases"][0]["error"];
        assert_eq!((ran.code, &error["code"]), (1, &"timed_out".into()), "{}", ran.stderr);
    }
    let ran = test(Some(20_000));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn several_registries_are_searched_as_one_and_an_id_in_two_is_nobodys() {
    let desk = Desk::with_alice();
    let (one, two) = (Served::at(&desk.path("one"), &[]), Served::at(&desk.path("two"), &[]));
    join(&desk, &one, "first", "one");
    join(&desk, &two, "second", "two");
    example(&desk, "text-stats");
    example(&desk, "convert-units");
    desk.refused(&["publish", "text-stats"], 2, "one is meant");
    for (folder, name) in
        [("text-stats", "first"), ("text-stats", "second"), ("convert-units", "second")]
    {
        desk.done(&["publish", folder, "--registry", name, "--no-test"]);
    }
    let found = desk.done(&["search", "text", "--json"]).json();
    let shown: Vec<_> =
        found["results"].as_array().unwrap().iter().map(|one| &one["registry"]).collect();
    assert_eq!(shown, ["first", "second"]);
    assert!(desk.done(&["search", "text"]).stdout.contains("(second)"));
    desk.refused(&["registry", "get", "demo.text.stats"], 5, "--registry NAME");
    desk.done(&["registry", "get", "demo.text.stats", "--registry", "second"]);
    desk.done(&["registry", "get", "demo.units.convert"]);
    desk.refused(&["registry", "get", "demo.nothing"], 3, "no registry has");
    desk.refused(&["registry", "get", "demo.units.convert@9.0.0"], 3, "`second` does not offer");
    // Who has taken it back still has it: the other one does not take its place.
    desk.done(&["yank", "demo.text.stats@1.0.0", "--registry", "first"]);
    desk.refused(&["registry", "get", "demo.text.stats"], 5, "--registry NAME");
    // One that is gone is told of; what it may have is not guessed.
    drop(one);
    let found = desk.done(&["search", "units", "--json"]);
    assert!(found.stderr.contains("failed to reach `first`"), "{}", found.stderr);
    assert_eq!(found.json()["failed"][0]["registry"], "first");
    desk.refused(&["registry", "get", "demo.units.convert"], 6, "failed to reach `first`");
    desk.done(&["registry", "get", "demo.units.convert", "--registry", "second"]);
    drop(two);
    let kept = desk.path("demo.units.convert-1.0.0.mcpkg");
    std::fs::remove_file(&kept).unwrap();
    let offline =
        ["registry", "get", "demo.units.convert@1.0.0", "--registry", "second", "--offline"];
    let said = desk.done(&offline).stderr;
    assert!(said.contains("Kept here: demo.units.convert 1.0.0 of second"), "{said}");
    assert!(kept.exists());
    desk.refused(
        &["search", "else", "--registry", "second", "--offline"],
        6,
        "is not asked, and what it would answer is not kept",
    );
    // Catalogs are searched too.
    desk.done(&["registry", "rm", "first"]);
    desk.done(&["registry", "rm", "second"]);
    desk.done(&["registry", "add", "examples", repository().join("examples").to_str().unwrap()]);
    let found = desk.done(&["search", "echo", "--json"]).json();
    assert!(found["results"].as_array().unwrap().iter().any(|one| one["name"] == "demo.echo"));
    desk.refused(&["publish", "text-stats"], 2, "no registry is named");
    desk.refused(&["registry", "get", "demo.echo"], 2, "a catalog");
}

#[test]
fn the_catalog_of_a_private_registry_is_read_with_a_token() {
    let desk = Desk::with_alice();
    let served = Served::at(&desk.path("served"), &["--private"]);
    join(&desk, &served, "team", "served");
    let greet = repository().join("examples/capability/greet");
    desk.done(&["publish", greet.to_str().unwrap(), "--registry", "team", "--no-test"]);
    desk.done(&["registry", "add", "listed", &format!("{}/v1/catalog.json", served.url)]);
    let search = ["search", "greet", "--registry", "listed", "--json"];
    let refused = desk.haft(&search);
    assert_eq!(refused.code, 4, "{}", refused.stdout);
    let error = &refused.json()["error"];
    assert!(error["message"].as_str().unwrap().contains("token"), "{error}");
    let kept = desk.haft_with(&["registry", "login", "listed"], Some(&token_of(&desk, "served")));
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    assert_eq!(desk.done(&search).json()["results"][0]["name"], "demo.greet");
    let folder = repository().join("examples");
    desk.done(&["registry", "add", "here", folder.to_str().unwrap()]);
    desk.refused(&["registry", "login", "here"], 2, "needs no token");
}

/// Answers one description, then sends a package byte by byte for ever.
fn slow_registry(bytes: Vec<u8>, describe: String, stall_after: Option<usize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n")
                && stream.read(&mut byte).is_ok_and(|count| count > 0)
            {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
            let tag = "\"one\"";
            if !head.contains("/package") {
                let length = describe.len();
                let _left = write!(
                    stream,
                    "HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{describe}"
                );
                continue;
            }
            let first = head
                .split("range: bytes=")
                .nth(1)
                .and_then(|rest| rest.split('-').next()?.parse::<usize>().ok());
            let (status, from) = first.map_or((200, 0), |first| (206, first));
            let rest = &bytes[from..];
            let (last, total) = (bytes.len() - 1, bytes.len());
            let _left = write!(
                stream,
                "HTTP/1.1 {status} X\r\nconnection: close\r\netag: {tag}\r\ncontent-range: bytes {from}-{last}/{total}\r\ncontent-length: {}\r\n\r\n",
                rest.len()
            );
            match stall_after {
                Some(count) if from == 0 => {
                    let _left = stream.write_all(&rest[..count]);
                    let _left = stream.flush();
                    // Until the other side is gone.
                    let _gone = stream.read(&mut byte);
                }
                _ => {
                    let _left = stream.write_all(rest);
                }
            }
        }
    });
    url
}

#[test]
fn a_download_that_is_killed_goes_on_where_it_was() {
    let desk = Desk::new();
    example(&desk, "text-stats");
    desk.done(&["pack", "text-stats", "-o", "stats.mcpkg"]);
    let bytes = std::fs::read(desk.path("stats.mcpkg")).unwrap();
    let digest = package::digest::Digest::of(&bytes);
    let describe = serde_json::json!({
        "id": "tool:demo.text.stats", "name": "demo.text.stats", "version": "1.0.0", "summary": "x",
        "entry": {"runtime": "process"}, "sha256": digest.to_string(), "size": bytes.len(),
    });
    let url = slow_registry(bytes.clone(), describe.to_string(), Some(500));
    let arguments = ["registry", "get", "demo.text.stats", "--registry", &url, "-o", "got.mcpkg"];
    let mut process = Command::new(assert_cmd::cargo::cargo_bin("haft"))
        .current_dir(desk.0.path())
        .arg("--home")
        .arg(desk.path("home"))
        .args(arguments)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let part = desk.path("home/cache/packages").join(format!("{digest}.part"));
    while std::fs::metadata(&part).map_or(0, |found| found.len()) < 500 {
        assert!(process.try_wait().unwrap().is_none(), "it must wait for the rest");
        std::thread::yield_now();
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(!desk.path("got.mcpkg").exists());
    desk.done(&arguments);
    assert_eq!(std::fs::read(desk.path("got.mcpkg")).unwrap(), bytes);
    assert_eq!(names(&desk.path("home/cache/packages")), [digest.to_string()]);
}

/// A registry that finds nothing, and tells what it was shown.
fn watching_registry() -> (String, std::sync::mpsc::Receiver<Option<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut shown, mut line) = (None, String::new());
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                shown = line
                    .strip_prefix("authorization: ")
                    .map(|rest| rest.trim().to_owned())
                    .or(shown);
                line.clear();
            }
            let page = r#"{"results":[],"total":0}"#;
            let length = page.len();
            let _left = write!(
                stream,
                "HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{page}"
            );
            tell.send(shown).unwrap();
        }
    });
    (url, told)
}

#[test]
fn the_token_of_the_environment_is_for_the_registry_that_is_named() {
    let desk = Desk::new();
    let ((one, told_one), (two, told_two)) = (watching_registry(), watching_registry());
    desk.done(&["registry", "add", "one", &one]);
    desk.done(&["registry", "add", "two", &two]);
    // It answers what a registry of ours does not, so it may have tokens of its own.
    let kept = desk.haft_with(&["registry", "login", "two"], Some("haft_of_two"));
    assert!(kept.stderr.contains("`two` is a registry that cannot be asked"), "{}", kept.stderr);
    assert_eq!(told_two.recv().unwrap(), Some("Bearer haft_of_two".to_owned()));
    let search = |more: &[&str], base: Option<&str>| {
        let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
        command.current_dir(desk.0.path()).arg("--home").arg(desk.path("home"));
        command.args(["search", "x"]).args(more).env("HAFT_TOKEN", "haft_of_environment");
        match base {
            Some(base) => command.env("REGISTRY_BASE_URL", base),
            None => command.env_remove("REGISTRY_BASE_URL"),
        };
        assert!(command.output().unwrap().status.success());
    };
    let environment = Some("Bearer haft_of_environment".to_owned());
    search(&[], None);
    assert_eq!(told_one.recv().unwrap(), None);
    assert_eq!(told_two.recv().unwrap(), Some("Bearer haft_of_two".to_owned()));
    search(&["--registry", "one"], None);
    assert_eq!(told_one.recv().unwrap(), environment);
    search(&[], Some(&one));
    assert_eq!(told_one.recv().unwrap(), environment);
    assert!(told_two.try_recv().is_err(), "nobody else was asked");
    // What the environment names belongs together: another registry is not shown the token, whoever names it.
    search(&["--registry", "one"], Some(&two));
    assert_eq!(told_one.recv().unwrap(), None);
    for slash in ["/", "/v1", "/v1/"] {
        search(&["--registry", "one"], Some(&format!("{one}{slash}")));
        assert_eq!(told_one.recv().unwrap(), environment, "{slash}");
    }
    // Nor is one that is merely listed, be it the only one.
    desk.done(&["registry", "rm", "two"]);
    search(&[], None);
    assert_eq!(told_one.recv().unwrap(), None);
}

#[test]
fn an_address_with_the_version_of_the_api_is_that_of_the_registry() {
    let desk = Desk::new();
    let served = Served::at(&desk.path("home"), &[]);
    let with_version = format!("{}/v1", served.url);
    desk.done(&["search", "x", "--registry", &with_version]);
    desk.done(&["registry", "add", "own", &format!("{with_version}/")]);
    let listed = desk.done(&["registry", "list", "--json"]).json();
    assert_eq!(listed["registries"][0]["url"], served.url.as_str());
}

#[test]
fn a_registry_that_the_environment_names_is_administered_there_and_not_here() {
    let desk = Desk::new();
    let administer = |words: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
        command.current_dir(desk.0.path()).env("HAFT_HOME", desk.path("home")).args(words);
        command.env("REGISTRY_BASE_URL", "http://127.0.0.1:9").env("HAFT_TOKEN", "haft_x");
        command.output().unwrap().status.code()
    };
    for words in [
        &["registry", "token", "new", "--namespace", "acme"][..],
        &["registry", "token", "list"],
        &["registry", "publisher", "list"],
    ] {
        assert_eq!(administer(words), Some(6), "{words:?}");
    }
    assert!(!desk.path("home/registry").exists());
    // Who names a database or a home means that.
    for here in [["--database", "here.db"], ["--home", "other"]] {
        for words in [
            &["registry", "token", "new", "--namespace", "acme"][..],
            &["registry", "token", "list"],
            &["registry", "publisher", "list"],
        ] {
            assert_eq!(administer(&[words, &here].concat()), Some(0), "{words:?} {here:?}");
        }
        assert_eq!(
            administer(&[&["registry", "token", "revoke", "x"][..], &here].concat()),
            Some(3)
        );
    }
    assert!(desk.path("other/registry/registry.db").exists() && desk.path("here.db").exists());
    let both =
        ["registry", "token", "list", "--database", "here.db", "--registry", "http://127.0.0.1:9"];
    assert_eq!(administer(&both), Some(2));
}

#[test]
fn whoever_is_refused_where_a_variable_points_is_told_of_the_registry_of_this_machine() {
    let desk = Desk::new();
    let served = Served::at(&desk.path("home"), &[]);
    let token = token_of(&desk, "home");
    let home = desk.path("home");
    let administer = |token: &str, words: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
        command.env("HAFT_HOME", &home).env("REGISTRY_BASE_URL", &served.url).args(words);
        let output = command.env("HAFT_TOKEN", token).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let hint = format!(
        "hint: REGISTRY_BASE_URL is set, so the registry there is asked, which wants the token of an administrator; --home {} means the one of this machine",
        home.display()
    );
    for words in [
        &["registry", "token", "new", "--namespace", "acme"][..],
        &["registry", "token", "list"],
        &["registry", "publisher", "list"],
    ] {
        for (token, code) in [(token.as_str(), 4), ("haft_wrong", 4), ("", 2)] {
            let (exit, said) = administer(token, words);
            assert_eq!(exit, code, "{words:?}: {said}");
            assert!(said.contains(&hint), "{words:?}: {said}");
        }
        // Who typed which registry is meant is not told of another.
        let named = [words, &["--registry", &served.url]].concat();
        let (exit, said) = administer(&token, &named);
        assert!(exit == 4 && !said.contains("REGISTRY_BASE_URL is set"), "{said}");
    }
}

#[test]
fn a_password_in_an_address_is_not_shown_again() {
    let desk = Desk::new();
    let address = "https://ci:s3cret@registry.example";
    let dump = format!("{address}/dump.json");
    for words in [
        &["search", "x"][..],
        &["search", "x", "--registry", address],
        &["search", "x", "--registry", "ci:s3cret@registry.example"],
        &["publish", "x.mcpkg", "--registry", address],
        &["registry", "add", "x", address],
        &["registry", "add", "x", &dump],
        &["registry", "token", "list", "--registry", address],
        &["registry", "import", address, "--registry", "http://127.0.0.1:9"],
        &["registry", "import", &dump, "--latest", "--registry", "http://127.0.0.1:9"],
        &["registry", "serve", "--public-url", address],
        &[
            "registry",
            "publisher",
            "add",
            "--issuer",
            address,
            "--audience",
            "x",
            "--claim",
            "repository=a/b",
            "--namespace",
            "a",
        ],
    ] {
        let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
        command.current_dir(desk.0.path()).env("HAFT_HOME", desk.path("home")).args(words);
        command.env("REGISTRY_BASE_URL", address).env("HAFT_TOKEN", "haft_x");
        std::fs::write(desk.path("x.mcpkg"), "").unwrap();
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(!said.contains("s3cret"), "{words:?}: {said}");
        assert!(said.contains("registry.example"), "{words:?}: {said}");
    }
}
