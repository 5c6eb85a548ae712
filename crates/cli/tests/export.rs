//! `haft export`, `haft schema` and `haft index`.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{haft, repository, run_in};

#[test]
fn tools_json_to_openai_is_exactly_the_contracts_mapping() {
    let text = br#"{"tools": [
        {"name": "get_time", "description": "Tells the time", "schema": {"type": "object", "properties": {"tz": {"type": "string"}}, "required": ["tz"], "additionalProperties": false}, "command": ["./tools/bin/get_time"], "timeoutSec": 5},
        {"name": "bare", "description": "", "command": ["/bin/true"]}
    ]}"#;
    let ran = run_in(&repository(), &["export", "-", "--format", "openai"], Some(text));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let expected = serde_json::json!([
        {"type": "function", "function": {"name": "get_time", "description": "Tells the time", "parameters": {"type": "object", "properties": {"tz": {"type": "string"}}, "required": ["tz"], "additionalProperties": false}}},
        {"type": "function", "function": {"name": "bare"}}
    ]);
    assert_eq!(ran.json(), expected);
}

#[test]
fn every_format_exports_every_example_with_unique_portable_names() {
    for format in ["openai", "openai-responses", "anthropic", "mcp", "agentcli", "mcpkg"] {
        let ran = haft(&["export", "examples/", "--format", format, "--json"]);
        assert_eq!(ran.code, 0, "{format}: {}", ran.stderr);
        let json = ran.json();
        let names: Vec<_> = json["names"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name["exposed"].as_str().unwrap().to_owned())
            .collect();
        assert!(names.len() >= 18, "{format}: {names:?}");
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
        if format != "mcpkg" {
            assert!(
                names.iter().all(|name| name.len() <= 64
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))),
                "{names:?}"
            );
        }
    }
}

#[test]
fn mcp_annotations_are_always_written_out() {
    let ran = haft(&[
        "export",
        "examples/mcpkg/echo",
        "examples/install-manifest/word-count",
        "--format",
        "mcp",
    ]);
    for tool in ran.json()["tools"].as_array().unwrap() {
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{hint}: {tool}");
        }
    }
}

#[test]
fn agentcli_exports_come_with_programs_that_call_haft() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let ran = haft(&[
        "export",
        "examples/mcpkg/echo",
        "--format",
        "agentcli",
        "-o",
        out.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(run_in(folder.path(), &["validate", "out/tools.json"], None).code, 0);
    let shim = std::fs::read_to_string(out.join("tools/bin/demo_echo")).unwrap();
    assert!(shim.starts_with("#!/bin/sh\n") && shim.contains("call"), "{shim}");
    let again = haft(&[
        "export",
        "examples/mcpkg/echo",
        "--format",
        "agentcli",
        "-o",
        out.to_str().unwrap(),
    ]);
    assert_eq!(again.code, 5);
}

#[test]
fn a_local_catalog_is_laid_over_its_base() {
    let ran = haft(&["export", "examples/capability/catalog", "--format", "openai", "--json"]);
    let names = ran.json()["names"].as_array().unwrap().len();
    assert_eq!(names, 3, "two base entries, one overridden and one added: {}", ran.stdout);
}

#[test]
fn schemas_are_printed_by_dialect_and_version() {
    let listed = haft(&["schema"]);
    assert!(listed.stdout.lines().count() >= 15);
    for line in listed.stdout.lines() {
        let name = line.split_whitespace().next().unwrap();
        let ran = haft(&["schema", name]);
        assert_eq!(ran.code, 0, "{name}");
        let schema = ran.json();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        jsonschema::draft202012::meta::validate(&schema)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!(
        haft(&["schema", "install-manifest"]).json()["properties"]["manifest_version"]["enum"][0],
        "0.4"
    );
    let unknown = haft(&["schema", "install-manifest@0.9"]);
    assert_eq!(unknown.code, 3);
    assert!(unknown.stderr.contains("did you mean"), "{}", unknown.stderr);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

#[test]
fn an_index_lists_the_valid_manifests_and_keeps_their_states() {
    let folder = tempfile::tempdir().unwrap();
    copy(&repository().join("examples/install-manifest"), folder.path());
    std::fs::write(folder.path().join("bad.json"), r#"{"manifest_version": "0.2"}"#).unwrap();
    let run =
        || run_in(folder.path(), &["index", ".", "--base-url", "https://tools.example.com/"], None);
    let first = run();
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(first.stderr.contains("`bad.json` is not valid and is left out"), "{}", first.stderr);
    let place = folder.path().join(".well-known/install-manifests.json");
    let mut index: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&place).unwrap()).unwrap();
    assert_eq!(index["manifests"].as_array().unwrap().len(), 6);
    assert_eq!(index["publisher"]["id"], "tools.example.com");
    assert_eq!(
        index["manifests"][0]["manifest_url"],
        "https://tools.example.com/dice-server/manifest.json"
    );
    assert_eq!(
        run_in(
            folder.path(),
            &["validate", "--strict", ".well-known/install-manifests.json"],
            None
        )
        .code,
        0
    );
    index["manifests"][0]["status"] = "broken".into();
    std::fs::write(&place, index.to_string()).unwrap();
    assert_eq!(run().code, 0);
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(&place).unwrap()).unwrap();
    assert_eq!(index["manifests"][0]["status"], "broken");
    std::fs::create_dir(folder.path().join("twin")).unwrap();
    std::fs::copy(
        folder.path().join("word-count/manifest.json"),
        folder.path().join("twin/manifest.json"),
    )
    .unwrap();
    let before = std::fs::read(&place).unwrap();
    assert_eq!(run().code, 5, "two manifests of one id");
    assert_eq!(std::fs::read(&place).unwrap(), before);
    std::fs::remove_dir_all(folder.path().join("twin")).unwrap();
    std::fs::write(&place, "{ broken").unwrap();
    assert_eq!(run().code, 2, "states that cannot be read are not thrown away");
    assert_eq!(std::fs::read_to_string(&place).unwrap(), "{ broken");
}

#[test]
fn a_broken_manifest_below_a_folder_is_never_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    copy(&repository().join("examples/mcpkg/echo"), &folder.path().join("good"));
    std::fs::create_dir(folder.path().join("bad")).unwrap();
    std::fs::write(folder.path().join("bad/manifest.json"), "{\"toolId\":").unwrap();
    for arguments in [&["export", ".", "--format", "mcp"][..], &["diff", "good", "."]] {
        let ran = run_in(folder.path(), arguments, None);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    }
}

#[test]
fn an_openapi_document_is_no_package_and_keeps_none_from_being_read() {
    let folder = tempfile::tempdir().unwrap();
    let example = repository().join("examples/mcpkg/http-status/manifest.json");
    std::fs::copy(example, folder.path().join("manifest.json")).unwrap();
    let export = || run_in(folder.path(), &["export", "--format", "mcp", "."], None);
    let alone = export();
    assert_eq!(alone.code, 0, "{}", alone.stderr);
    for broken in [r#"{"openapi": "3.1.0", "info": {}}"#, "{"] {
        std::fs::write(folder.path().join("openapi.json"), broken).unwrap();
        assert_eq!((export().code, export().stdout), (0, alone.stdout.clone()), "{broken}");
    }
    let path = "examples/mcpkg/http-status/openapi.json";
    let named = haft(&["export", "--format", "mcp", path]);
    assert_eq!(named.code, 2);
    assert!(named.stderr.contains("is no manifest but an OpenAPI document"), "{}", named.stderr);
}
