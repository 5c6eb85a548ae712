//! What the index of a site and catalogs list.

use super::*;

#[test]
fn the_index_of_a_site_lists_what_one_entry_of_it_is_installed() {
    let desk = Desk::new();
    let entry = |id: &str, url: &str, status: &str| json!({"id": id, "manifest_url": url, "manifest_version": "0.4", "status": status});
    let mut old = entry("old", "/old.json", "deprecated");
    old["deprecated_in_favor_of"] = "word-count".into();
    let mut first = entry("word-count", "/manifests/word-count.json", "active");
    first["summary"] = "Counts \u{1b}[31mwords".into();
    let entries = json!([
        first, old,
        entry("other", "/manifests/word-count.json", "active"),
        entry("lost", "/lost.json", "active"),
        entry("inside", "https://10.0.0.1/x.json", "active"),
        entry("plain", "http://tools.example/x.json", "active"),
        entry("bad", "/manifests/word-count.json", "quarantined"),
        entry("worse", "/manifests/word-count.json", "broken"),
        {"id": "half"},
    ]);
    let index = json!({
        "version": "1", "publisher": {"kind": "https", "id": "x", "display_name": "X"},
        "generated_at": "2026-01-01T00:00:00Z", "manifests": entries,
    });
    let index = index.to_string();
    let site = Site::with(&[
        ("/.well-known/install-manifests.json", index.as_bytes()),
        ("/manifests/word-count.json", &install_manifest("word-count")),
        ("/old.json", &install_manifest("old")),
    ]);
    let whole = format!("{}/.well-known/install-manifests.json", site.url);
    let told = desk.haft(&["install", &site.url, "--yes"]);
    assert_eq!(told.code, 2, "{}", told.stderr);
    for words in [
        "one is meant",
        "word-count: Counts",
        "old (deprecated)",
        "--only word-count",
        "entry 8 `half`",
    ] {
        assert!(told.stderr.contains(words), "{words}: {}", told.stderr);
    }
    assert!(!told.stderr.contains('\u{1b}'), "{}", told.stderr);
    for (id, code, words) in [
        ("bad", 4, "`bad` is quarantined, as its publisher says"),
        ("worse", 4, "`worse` is broken, as its publisher says"),
        ("other", 2, "the manifest there is of `word-count`"),
        ("lost", 3, "answers with 404"),
        ("inside", 2, "it is a private place, which nobody typed"),
        ("plain", 2, "it is not `https`"),
        ("word-cout", 3, "did you mean `word-count`?"),
        ("word-count", 4, "trust_level not allowed by policy: untrusted"),
    ] {
        refused(&desk, &["install", &whole, "--yes", "--only", id], code, words);
    }
    let shown = desk.done(&["show", &whole, "--only", "install-manifest:word-count", "--json"]);
    let card = shown.json()["cards"][0].clone();
    let from = json!({"url": format!("{}/manifests/word-count.json", site.url)});
    assert_eq!((&card["id"], &card["source"]), (&json!("install-manifest:word-count"), &from));
    let ran = desk.done(&["show", &site.url, "--only", "old"]);
    assert!(ran.stderr.contains("`old` is deprecated; use `word-count`"), "{}", ran.stderr);
    let site = Site::with(&[("/.well-known/install-manifests.json", br#"{"version": "2"}"#)]);
    refused(&desk, &["install", &site.url, "--yes"], 2, "its `version` is not \"1\"");
}

#[test]
fn what_a_catalog_lists_is_installed_by_its_id_and_vouched_for_by_nobody() {
    let desk = Desk::new();
    let path = repository().join("examples/capability/catalog/manifest.base.json");
    let mut catalog: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut there = catalog["capabilities"][0].clone();
    there["id"] = "demo.there".into();
    there["trust_level"] = "verified".into();
    there["implementation"] = json!({"kind": "command", "command": {"argv": ["cat"]}});
    catalog["capabilities"].as_array_mut().unwrap().push(there);
    let catalog = catalog.to_string();
    let site = Site::with(&[
        ("/catalog.json", catalog.as_bytes()),
        (
            "/.well-known/install-manifests.json",
            json!({
                "version": "1", "publisher": {"kind": "https", "id": "x", "display_name": "X"},
                "generated_at": "2026-01-01T00:00:00Z",
                "manifests": [{
                    "id": "word-count", "manifest_url": "/w.json", "manifest_version": "0.4",
                    "status": "active",
                }],
            })
            .to_string()
            .as_bytes(),
        ),
        ("/w.json", &install_manifest("word-count")),
    ]);
    let url = format!("{}/catalog.json", site.url);
    desk.done(&["registry", "add", "list", &url, "--kind", "catalog"]);
    desk.done(&["registry", "add", "site", &site.url, "--kind", "well-known"]);
    let folder = repository().join("examples/mcpkg");
    desk.done(&["registry", "add", "folder", folder.to_str().unwrap(), "--kind", "folder"]);
    for id in ["demo.there", "word-count", "demo.echo"] {
        refused(
            &desk,
            &["install", id, "--yes"],
            4,
            "trust_level not allowed by policy: untrusted",
        );
    }
    let missing = "which does not come with its manifest";
    refused(&desk, &["install", "demo.text.upper", "--yes"], 2, missing);
    fs::write(desk.path("home/policy.toml"), "[trust]\nallow = [\"local\", \"untrusted\"]\n")
        .unwrap();
    let skills = repository().join("examples/skill");
    desk.done(&["registry", "add", "skills", skills.to_str().unwrap(), "--kind", "folder"]);
    for id in ["demo.there", "demo.echo", "word-report"] {
        desk.done(&["install", id, "--yes", "-q"]);
    }
    let listed = desk.done(&["list", "--json"]).json();
    for one in listed["packages"].as_array().unwrap() {
        assert_eq!(one["trust"], "untrusted", "{one}");
    }
    // Nor does it become anything better by way of a lockfile.
    desk.done(&["lock", "-o", "its.lock"]);
    let other = desk.path("other");
    let other = ["--home", other.to_str().unwrap(), "sync", "--locked", "its.lock", "--yes"];
    let synced = common::run_in(desk.0.path(), &other, None);
    assert_eq!(synced.code, 4, "{}", synced.stderr);
    assert!(synced.stderr.contains("not allowed by policy: untrusted"), "{}", synced.stderr);
    let called = desk.done(&["call", "demo.there", r#"{"text":"abc"}"#]);
    assert!(called.stdout.contains("abc"), "{}", called.stdout);
    assert_eq!(
        desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]).stdout,
        "{\"message\":\"hi\"}\n"
    );
}
