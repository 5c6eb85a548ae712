//! One file, and what is here already.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use egress::Rule;
use install::acquire::{AcquireError, Sources};
use manifest::model::{Acquire, Json};
use package::digest::Digest;

use crate::world::{Home, World, names, offline, said};

const TOOL: &[u8] = b"#!/bin/sh\necho one\n";

/// A world by HTTPS, and sources that let its port be reached.
fn secure() -> (World, Sources) {
    let (world, certificate) = World::secure();
    let rule = Rule::parse(&format!("localhost:{}", world.port)).unwrap();
    let search = std::env::var_os("PATH").unwrap();
    let hosts = vec![rule.as_typed()];
    let sources = Sources { hosts, search, certificates: Some(certificate), ..Sources::default() };
    (world, sources)
}

fn url(world: &World, path: &str, bytes: &[u8]) -> Acquire {
    let url = format!("https://localhost:{}{path}", world.port);
    Acquire::Url { url, sha256: Digest::of(bytes).to_string() }
}

#[tokio::test]
async fn one_file_is_fetched_once_and_can_be_executed() {
    let ((world, sources), home) = (secure(), Home::new());
    let what = url(&world, "/one/tool", TOOL);
    let (acquired, place) = home.acquire(&what, &[], &sources, None).await.unwrap();
    assert_eq!(acquired.files.as_deref(), Some(Path::new("bin/tool")));
    assert_eq!(said(&place.join("bin/tool"), ("X", Path::new("x"))), "one\n");
    drop(world);
    home.acquire(&what, &[], &offline(&sources), None).await.unwrap();
    let refused = Home::new().acquire(&what, &[], &offline(&sources), None).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Offline(_)), "{refused}");
}

#[tokio::test]
async fn an_archive_stays_a_file_that_nobody_executes() {
    let ((world, sources), home) = (secure(), Home::new());
    let what = url(&world, "/one/tool.zip", b"PK\x03\x04 not really");
    let (_, place) = home.acquire(&what, &[], &sources, None).await.unwrap();
    assert_eq!(names(&place.join("bin")), ["tool.zip"]);
    let mode = place.join("bin/tool.zip").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0);
}

#[tokio::test]
async fn other_bytes_are_refused() {
    let ((world, sources), home) = (secure(), Home::new());
    let what = url(&world, "/one/tool", b"others");
    let refused = home.acquire(&what, &[], &sources, None).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Digest { .. }), "{refused}");
}

#[tokio::test]
async fn a_file_of_which_nobody_says_the_digest_is_pinned_once_it_came() {
    let ((world, sources), home) = (secure(), Home::new());
    let Acquire::Url { url, .. } = url(&world, "/one/tool", TOOL) else { unreachable!() };
    let what = Acquire::Url { url, sha256: String::new() };
    let (acquired, _) = home.acquire(&what, &[], &sources, None).await.unwrap();
    assert_eq!(acquired.artefacts[0].sha256, Digest::of(TOOL));
    home.acquire(&what, &[], &offline(&sources), Some(&acquired.artefacts)).await.unwrap();
    let mut other = acquired.artefacts.clone();
    other[0].sha256 = Digest::of(b"others");
    let refused = Home::new().acquire(&what, &[], &sources, Some(&other)).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Digest { .. }), "{refused}");
}

#[tokio::test]
async fn a_redirect_leads_neither_to_http_nor_to_a_private_place() {
    let ((world, sources), home) = (secure(), Home::new());
    let plain = World::new();
    let to_http = format!("/redirect?{}", plain.url("/one/tool"));
    let to_private = format!("/redirect?https://127.0.0.1:{}/one/tool", plain.port);
    let to_itself = format!("/redirect?https://localhost:{}/one/tool", world.port);
    for (path, is_let) in [(to_http, false), (to_private, false), (to_itself, true)] {
        let what = url(&world, &path, TOOL);
        let acquired = home.acquire(&what, &[], &sources, None).await;
        assert_eq!(acquired.is_ok(), is_let, "{path}: {acquired:?}");
        if !is_let {
            assert_eq!(plain.seen(), [""; 0], "{path}");
        }
    }
}

#[tokio::test]
async fn plain_http_and_private_places_are_refused() {
    let (world, home) = (World::new(), Home::new());
    let sources = world.sources();
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://127.0.0.1:{}/one/tool", world.port);
        let what = Acquire::Url { url, sha256: Digest::of(TOOL).to_string() };
        assert!(home.acquire(&what, &[], &sources, None).await.is_err());
    }
    assert_eq!(world.seen(), [""; 0]);
}

#[tokio::test]
async fn what_should_be_here_already_is_looked_for() {
    let (world, home) = (World::new(), Home::new());
    let mut sources = world.sources();
    sources.servers.insert("known".to_owned());
    for (locator, is_here) in [
        (r#"{"kind":"python-module","module":"json.decoder"}"#, true),
        (r#"{"kind":"python-module","module":"no_such_module"}"#, false),
        (r#"{"kind":"binary-on-path","binary":"git"}"#, true),
        (r#"{"kind":"binary-on-path","binary":"no-such-program"}"#, false),
        (r#"{"kind":"mcp-server-id","server_id":"known"}"#, true),
        (r#"{"kind":"mcp-server-id","server_id":"unknown"}"#, false),
    ] {
        let tree = manifest::json::parse(locator);
        let locator = Json::of(&tree.root.unwrap(), locator);
        let what = Acquire::Preinstalled { locator };
        let found = home.acquire(&what, &[], &sources, None).await;
        assert_eq!(found.is_ok(), is_here, "{what:?}: {found:?}");
        assert!(is_here || matches!(found, Err(AcquireError::Absent { .. })), "{found:?}");
    }
}
