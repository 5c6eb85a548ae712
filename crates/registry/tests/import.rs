//! What others hold becomes packages, and what is wrong with one thing is no fault of another.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use egress::http::Url;
use manifest::dialect::Dialect;
use manifest::document::{Options, check, read};
use package::archive::{Archive, Trailer};
use package::contents::{Contents, find_manifest};
use package::limits::Limits;
use proptest::prelude::prop_assert;
use registry::client::Address;
use registry::import::remote::{Asker, PageError, Pages, Wanted};
use registry::import::{Item, NoPackage, folder, servers};
use serde_json::{Value, json};
use testkit::bytes::damaged;
use testkit::draws::holds;

fn weather(name: &str) -> Value {
    json!({"name": format!("com.example/{name}"), "description": "Weather", "version": "1.0.0",
        "remotes": [{"type": "sse", "url": "https://example.com/sse"}]})
}

fn put(folder: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn found(path: &Path) -> Vec<Item> {
    let mut items = Vec::new();
    folder::read(path, &mut |item| items.push(item)).unwrap();
    items
}

/// The canonical id and the version of what a package holds.
fn told(item: &Item) -> String {
    let bytes = match &item.package {
        Ok(bytes) => bytes.clone(),
        Err(NoPackage::Skipped(why)) => return format!("skipped: {why}"),
        Err(NoPackage::Refused(why)) => return format!("refused: {why}"),
        Err(NoPackage::Deleted(deleted)) => return format!("deleted: {}", deleted.why.reason),
    };
    if bytes.starts_with(b"{") {
        return "a bundle".to_owned();
    }
    let archive = Archive::from_bytes(bytes, Trailer::Refused, &Limits::DEFAULT).unwrap();
    let manifest = archive.get(&find_manifest(&archive).unwrap()).unwrap();
    let bytes = Archive::read(&archive, manifest).unwrap();
    let options = Options { fallback_id: item.id.as_deref(), ..Options::default() };
    match read(&bytes, &options) {
        Ok((_, packages)) => format!(
            "{} {} of {} files",
            packages[0].canonical_id(),
            packages[0].version.as_deref().unwrap_or("-"),
            archive.paths().len()
        ),
        Err(report) => format!("invalid: {}", report.findings[0].code),
    }
}

#[test]
fn the_folder_of_a_hub_gives_a_package_for_each_version() {
    let hub = tempfile::tempdir().unwrap();
    let tool = |version: &str, runtime: &str| {
        json!({"id": "tool:email.send", "name": "email.send", "version": version, "summary": "Sends",
            "entry": {"runtime": runtime, "main": "dist/index.js"}})
        .to_string()
    };
    for version in ["1.2.0", "1.3.0"] {
        let at = format!("tools/email.send/{version}");
        put(hub.path(), &format!("{at}/manifest.json"), tool(version, "node"));
        put(hub.path(), &format!("{at}/files/dist/index.js"), "exports.tool = {}");
        put(hub.path(), &format!("{at}/files/package.json"), "{}");
    }
    put(hub.path(), "tools/python/1.0.0/manifest.json", tool("1.0.0", "python"));
    put(hub.path(), "tools/python/1.0.0/files/dist/index.js", "");
    put(hub.path(), "tools/broken/1.0.0/manifest.json", "{");
    put(hub.path(), "tools/broken/1.0.0/files/a.js", "");
    put(hub.path(), "tools/taken/1.0.0/manifest.json", tool("2.0.0", "node"));
    put(hub.path(), "tools/taken/1.0.0/files/tool.json", "{}");
    let told: Vec<String> = found(&hub.path().join("tools")).iter().map(told).collect();
    assert_eq!(
        told,
        [
            "refused: line 1: expected a key or `}`, found the end of the text".to_owned(),
            "jumith:tool:email.send 1.2.0 of 3 files".to_owned(),
            "jumith:tool:email.send 1.3.0 of 3 files".to_owned(),
            "invalid: unsupported-runtime".to_owned(),
            "refused: `files/tool.json` stands where its manifest must".to_owned(),
        ]
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
    );
}

#[test]
fn a_folder_of_anything_gives_what_is_in_it() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let echo = json!({"toolId": "demo.text.echo", "name": "Echo", "version": "1.0.0", "description": "Echoes",
        "capabilities": ["text"],
        "endpoint": {"type": "local", "command": "node ./index.js"},
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"}});
    put(at, "a/manifest.json", echo.to_string());
    put(at, "a/index.js", "//");
    put(at, "b/tools.json", r#"{"tools":[{"name":"x","command":["./tools/bin/x"]}]}"#);
    put(at, "b/tools/bin/x", "#!/bin/sh\n");
    put(at, "c/server.json", weather("c").to_string());
    put(at, "c/package.json", "{}");
    put(at, "d/catalog.json", json!({"capabilities": [{"id": "one"}, {"id": "two"}]}).to_string());
    put(at, "e/dump.json", json!({"servers": [{"server": weather("e")}, {}]}).to_string());
    put(at, "f/data.json", r#"{"rows": []}"#);
    put(at, "node_modules/x/server.json", weather("no").to_string());
    put(at, ".hidden/server.json", weather("no").to_string());
    put(at, "g/x.mcpkg", "no archive");
    put(at, "h/bundle.json", json!({"manifest": {}, "files": []}).to_string());
    #[cfg(unix)]
    std::os::unix::fs::symlink(at.join("c"), at.join("link")).unwrap();
    let items = found(at);
    let told: Vec<String> =
        items.iter().filter(|item| !item.from.contains("x.mcpkg")).map(told).collect();
    assert_eq!(
        told,
        [
            "mcpkg:demo.text.echo 1.0.0 of 2 files",
            "agentcli:b - of 2 files",
            "server-json:com.example/c 1.0.0 of 1 files",
            "invalid: unknown-dialect",
            "invalid: unknown-dialect",
            "server-json:com.example/e 1.0.0 of 1 files",
            "refused: it is no server",
            "a bundle",
        ]
    );
    let file = found(&at.join("c/server.json"));
    assert_eq!(file[0].package, servers::of_server(&weather("c")).map_err(NoPackage::Refused));
    assert!(matches!(&found(&at.join("f/data.json"))[0].package, Err(NoPackage::Refused(_))));
    assert!(folder::read(&at.join("nowhere"), &mut |_| {}).is_err());
}

/// A registry that gives these answers, one after the other, and says what it was asked.
fn scripted(answers: Vec<String>) -> (Url, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let thread = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
                head.push(byte[0]);
            }
            let line = String::from_utf8(head).unwrap();
            asked.push(line.lines().next().unwrap_or_default().to_owned());
            let _whoever_left = stream.write_all(answer.as_bytes());
        }
        asked
    });
    (url, thread)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn page(names: &[&str], next: Option<&str>) -> String {
    let servers: Vec<Value> = names.iter().map(|name| json!({"server": weather(name)})).collect();
    let page = json!({"servers": servers, "metadata": {"nextCursor": next, "count": names.len()}});
    answer("200 OK", "", &page.to_string())
}

fn pages(url: &Url, wanted: &Wanted) -> Pages {
    let asker = Asker::new(&Address::parse(url.as_str()).unwrap(), None).unwrap();
    Pages::new(asker, wanted).pausing(Duration::from_millis(1))
}

#[tokio::test]
async fn pages_are_followed_to_the_end_and_asked_for_again_when_that_helps() {
    let (url, registry) = scripted(vec![
        page(&["a", "b"], Some("one two")),
        answer("503 Service Unavailable", "Retry-After: 0\r\n", "{}"),
        answer("429 Too Many Requests", "", ""),
        String::new(),
        page(&["c"], None),
    ]);
    let wanted = Wanted { latest: true, search: Some("we&a".to_owned()), ..Wanted::default() };
    let mut pages = pages(&url, &wanted);
    assert_eq!(pages.next().await.unwrap().unwrap().servers.len(), 2);
    assert_eq!(pages.cursor(), Some("one two"));
    assert_eq!(pages.next().await.unwrap().unwrap().servers.len(), 1);
    assert_eq!(pages.next().await.unwrap(), None);
    let asked = registry.join().unwrap();
    let first =
        "GET /v0.1/servers?limit=100&include_deleted=true&version=latest&search=we%26a HTTP/1.1";
    assert_eq!(asked[0], first);
    assert!(asked[1..].iter().all(|line| line.contains("&cursor=one+two ")), "{asked:?}");
}

#[tokio::test]
async fn a_registry_that_misbehaves_is_left() {
    for (answers, what) in [
        (vec![page(&[], Some("x")), page(&[], Some("x"))], "circle"),
        (vec![answer("404 Not Found", "", r#"{"detail":"no such page"}"#)], "404: no such page"),
        (vec![answer("200 OK", "", "<html>")], "what none answers"),
        (vec![answer("200 OK", "", r#"{"servers":[],"servers":[]}"#)], "what none answers"),
        (vec![answer("302 Found", "Location: http://example.com/\r\n", "")], "reached"),
        (vec![answer("500 Internal Server Error", "", ""); 6], "500"),
    ] {
        let (url, _registry) = scripted(answers);
        let mut pages = pages(&url, &Wanted::default());
        let error: PageError = loop {
            match pages.next().await {
                Ok(page) => assert!(page.is_some()),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains(what), "{what}: {error}");
    }
    let (url, _registry) = scripted(vec![format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        20 << 20,
        "x".repeat(20 << 20)
    )]);
    let mut large = pages(&url, &Wanted::default());
    // What is too large now is too large later; it is not read again and again for ever.
    let error = tokio::time::timeout(Duration::from_secs(20), large.next()).await.unwrap();
    assert!(error.is_err());
}

#[test]
fn damaged_dumps_are_read_without_harm() {
    let dump = json!({"servers": [{"server": weather("a")}, weather("b")], "metadata": {"nextCursor": "x"}});
    let catalog = json!({"capabilities": [{"id": "one", "type": "tool"}, {"id": "two"}]});
    for seed in [dump.to_string(), catalog.to_string(), weather("c").to_string()] {
        holds(300, &damaged(seed.into_bytes()), |bytes| {
            let mut items = Vec::new();
            folder::of_document("x", None, bytes.clone(), &mut |item| items.push(item));
            prop_assert!(!items.is_empty(), "something is always told");
            for item in items {
                let Ok(package) = item.package else { continue };
                let opened =
                    Archive::from_bytes(package.clone(), Trailer::Refused, &Limits::DEFAULT);
                prop_assert!(opened.is_ok() || package == bytes);
            }
            let _read_or_refused = registry::read::<registry::mcp::Page>(&bytes);
            Ok(())
        });
    }
}

#[test]
fn whatever_is_told_of_a_server_is_a_valid_server_json() {
    let mut count = 0;
    for path in testkit::examples() {
        let seed = fs::read(&path).unwrap();
        let is_server = |bytes: &[u8]| match read(bytes, &Options::default()) {
            Ok((_, packages)) if packages.len() == 1 => {
                registry::server_json::of_package(&packages[0], bytes)
            }
            _ => None,
        };
        if is_server(&seed).is_none() {
            continue;
        }
        count += 1;
        holds(200, &damaged(seed), |bytes| {
            let Some(told) = is_server(&bytes) else { return Ok(()) };
            let options = Options { dialect: Some(Dialect::ServerJson), ..Options::default() };
            let mut server = told.server;
            let report = check(server.to_string().as_bytes(), &options);
            prop_assert!(report.is_valid(), "{server}: {:?}", report.findings);
            registry::server_json::offer_bundle(
                &mut server,
                "https://example.com/x",
                &"0".repeat(64),
            );
            prop_assert!(check(server.to_string().as_bytes(), &options).is_valid());
            Ok(())
        });
    }
    assert!(count >= 3, "{count} servers among the examples");
}

#[test]
fn a_large_dump_is_read_and_what_is_larger_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let padding = " ".repeat(17 << 20);
    let dump = json!({"servers": [weather("a"), 1, weather("b")]}).to_string();
    put(folder.path(), "dump.json", dump.replacen(':', &format!(":{padding}"), 1));
    let told: Vec<String> = found(&folder.path().join("dump.json")).iter().map(told).collect();
    assert_eq!(
        told,
        [
            "server-json:com.example/a 1.0.0 of 1 files",
            "refused: it is no server",
            "server-json:com.example/b 1.0.0 of 1 files",
        ]
    );
    let file = fs::File::create(folder.path().join("huge.json")).unwrap();
    file.set_len(folder::MAX_DUMP + 1).unwrap();
    let huge = found(&folder.path().join("huge.json"));
    let Err(NoPackage::Refused(why)) = &huge[0].package else { panic!("{:?}", huge[0].from) };
    assert!(why.contains("more than"), "{why}");
}
