//! `haft convert`: byte-exact, honest about losses, never inventing.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{haft, repository, run_in};

const TOOLS: &str = "examples/agentcli/tools.json";

fn sources() -> Vec<&'static str> {
    vec![
        "examples/install-manifest/word-count/manifest.json",
        "examples/install-manifest/text-find/manifest.json",
        "examples/install-manifest/slug-maker/manifest.json",
        "examples/agentcli/tools.json",
        "examples/mcpkg/echo/manifest.json",
        "examples/mcpkg/http-status/manifest.json",
        "examples/mcpkg/pipeline/manifest.json",
        "examples/capability/hash-text/manifest.json",
        "examples/capability/greet/manifest.json",
        "examples/jumith/slugify/tool.json",
        "examples/jumith/dice.bundle.json",
    ]
}

/// Sources in dialects that are not written.
fn foreign_sources() -> Vec<&'static str> {
    vec!["examples/mcpb/coin/manifest.json", "examples/mcpb/line-finder/manifest.json"]
}

/// A value that will do wherever a document demands one.
fn answer(pointer: &str) -> String {
    let value = match pointer.rsplit('/').next().unwrap() {
        "toolId" => "demo.made.up",
        "id" => "made-up-id",
        "version" => "1.0.0",
        "name" if pointer.starts_with("/env") => "A_SECRET",
        "name" => "made_up",
        "summary" | "description" | "prompt" => "Made up for a test.",
        "homepage" => "https://example.com/x",
        "kind" => "shell-binary",
        "install" => {
            r#"{"method":"preinstalled","locator":{"kind":"binary-on-path","binary":"true"}}"#
        }
        "entrypoint" => r#"{"command":["true"]}"#,
        "invocation" => r#"{"kind":"stdin-json"}"#,
        "side_effects" => "none",
        "smoke" => r#"{"kind":"shell","command":["true"],"success":{"exit_code":0}}"#,
        "kill_switch" => r#"{"kind":"manual","instructions":"Remove it."}"#,
        "command" => r#"["/bin/true"]"#,
        "endpoint" => r#"{"type":"local","command":"true"}"#,
        "input_schema" | "output_schema" | "inputs" | "outputs" => r#"{"type":"object"}"#,
        "origin" => {
            r#"{"source":"local","digest":"0000000000000000000000000000000000000000000000000000000000000000"}"#
        }
        "permissions" => r#"{"network":"deny","filesystem":"none","devices":[]}"#,
        "sandbox" => "process",
        "resources" => r#"{"cpu":"1","memory":"64Mi"}"#,
        "trust_level" => "untrusted",
        "ref" => "env://NAME",
        "main" => "dist/index.js",
        other => panic!("nobody knows what to answer for {other} ({pointer})"),
    };
    format!("{pointer}={value}")
}

#[test]
fn the_same_dialect_comes_out_byte_for_byte() {
    for source in sources() {
        let dialect = source.split('/').nth(1).unwrap();
        let ran = haft(&["convert", source, "--to", dialect]);
        assert_eq!(ran.code, 0, "{source}: {}", ran.stderr);
        let original = std::fs::read_to_string(repository().join(source)).unwrap();
        assert_eq!(ran.stdout, original, "{source}");
        assert_eq!(ran.stderr, "", "no losses");
    }
}

#[test]
fn every_conversion_ends_in_a_valid_document_once_its_questions_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    for source in sources().into_iter().chain(foreign_sources()) {
        for target in ["install-manifest", "agentcli", "mcpkg", "capability", "jumith"] {
            let path = repository().join(source);
            let path = path.to_str().unwrap();
            let mut arguments = vec![
                "convert".to_owned(),
                path.to_owned(),
                "--to".into(),
                target.into(),
                "--json".into(),
            ];
            let first = run_in(
                folder.path(),
                &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
                None,
            );
            if first.code != 0 && first.stdout.contains("--only: `") {
                let name =
                    first.stdout.split("--only: `").nth(1).unwrap().split('`').next().unwrap();
                arguments.extend(["--only".to_owned(), name.to_owned()]);
            }
            let asked = run_in(
                folder.path(),
                &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
                None,
            );
            let missing = asked.json()["missing"].as_array().unwrap().clone();
            assert_eq!(asked.code, if missing.is_empty() { 0 } else { 2 }, "{source} -> {target}");
            for entry in &missing {
                arguments.extend(["--set".to_owned(), answer(entry["pointer"].as_str().unwrap())]);
            }
            let done = run_in(
                folder.path(),
                &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
                None,
            );
            assert_eq!(done.code, 0, "{source} -> {target}: {}{}", done.stderr, done.stdout);
            let document = serde_json::to_vec(&done.json()["document"]).unwrap();
            let checked = run_in(
                folder.path(),
                &["validate", "--dialect", target, "--json", "-"],
                Some(&document),
            );
            assert_eq!(checked.code, 0, "{source} -> {target}: {}", checked.stdout);
        }
    }
}

#[test]
fn a_dialect_that_is_only_read_cannot_be_asked_for() {
    for source in [TOOLS, "examples/mcpb/coin/manifest.json"] {
        let ran = haft(&["convert", source, "--to", "mcpb"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
        let reason = "mcpb is read, not written; there are install-manifest, agentcli, mcpkg";
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    }
}

#[test]
fn a_bundle_loses_nothing_in_silence() {
    let source = "examples/mcpb/line-finder/manifest.json";
    let ran = haft(&["convert", source, "--to", "install-manifest", "--draft", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let document = &ran.json()["document"];
    assert_eq!(document["runtime"]["kind"], "mcp-stdio");
    assert_eq!(document["tool"]["author"]["name"], "The Haft authors");
    assert_eq!(document["support"]["issues_url"], "https://example.com/haft/line-finder/issues");
    // The setting `limit` is what the variable is filled in from.
    assert_eq!(document["env"][1]["name"], "FIND_LIMIT");
    assert_eq!(document["env"][1]["default"], "20");
    assert_eq!(document["actions"][0]["invocation"]["tool_name"], "find_lines");
    let losses = ran.json()["losses"].clone();
    let lost: Vec<_> =
        losses.as_array().unwrap().iter().map(|loss| loss["pointer"].as_str().unwrap()).collect();
    for pointer in [
        "/compatibility",
        "/documentation",
        "/prompts",
        "/server/mcp_config",
        "/server/mcp_config/platform_overrides",
        "/user_config/folders/default",
        "/user_config/folders/multiple",
        "/user_config/folders/type",
        "/user_config/limit/max",
        "/user_config/limit/min",
        "/user_config/limit/type",
    ] {
        assert!(lost.contains(&pointer), "{pointer} is not among {lost:?}");
    }
    assert_eq!(lost.len(), 11, "{lost:?}");
}

#[test]
fn what_is_missing_is_listed_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.json");
    let ran = haft(&["convert", TOOLS, "--to", "mcpkg", "-o", out.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(!out.exists());
    for pointer in ["/toolId", "/version", "/output_schema"] {
        assert!(ran.stderr.contains(&format!("\n  {pointer}: ")), "{}", ran.stderr);
    }
    let draft = haft(&["convert", TOOLS, "--to", "mcpkg", "--draft", "-o", out.to_str().unwrap()]);
    assert_eq!(draft.code, 0, "{}", draft.stderr);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(!text.contains("toolId"), "nothing is invented");
    let again = haft(&["convert", TOOLS, "--to", "mcpkg", "--draft", "-o", out.to_str().unwrap()]);
    assert_eq!(again.code, 5, "what is there is not overwritten");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), text);
}

#[test]
fn losses_are_told_with_pointer_reason_and_severity() {
    let ran = haft(&[
        "convert",
        "examples/install-manifest/word-count/manifest.json",
        "--to",
        "mcpkg",
        "--only",
        "count",
        "--json",
        "--draft",
    ]);
    let losses = ran.json()["losses"].as_array().unwrap().clone();
    let of = |pointer: &str| {
        losses
            .iter()
            .find(|loss| loss["pointer"] == pointer)
            .unwrap_or_else(|| panic!("{pointer}: {losses:#?}"))
    };
    assert_eq!(of("/kill_switch")["severity"], "safety");
    assert_eq!(of("/smoke")["severity"], "safety");
    assert_eq!(of("/actions/1")["severity"], "behaviour");
    assert_eq!(of("/support")["severity"], "cosmetic");
    assert!(of("/kill_switch")["reason"].as_str().unwrap().contains("mcpkg has no place"));
}

#[test]
fn a_value_that_does_not_fit_is_refused() {
    let ran = haft(&[
        "convert",
        TOOLS,
        "--to",
        "mcpkg",
        "--set",
        "/toolId=NOT AN ID",
        "--set",
        "/version=1.0.0",
        "--set",
        "/output_schema={}",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("bad-pattern"), "{}", ran.stderr);
    let pointer = haft(&["convert", TOOLS, "--to", "mcpkg", "--set", "toolId=x"]);
    assert_eq!(pointer.code, 2);
    assert!(pointer.stderr.contains("begins with `/`"), "{}", pointer.stderr);
}

#[test]
fn an_invalid_source_is_not_converted() {
    let ran = run_in(&repository(), &["convert", "-", "--to", "mcpkg"], Some(b"{\"tools\": [{}]}"));
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("tool[0]: name is required"), "{}", ran.stderr);
}
