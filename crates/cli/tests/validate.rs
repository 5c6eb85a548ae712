//! `haft validate`, as people and scripts use it.

mod common;

use common::{haft, run_in};

#[test]
fn every_example_is_one_line_and_valid() {
    let ran = haft(&["validate", "examples/"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.lines().count() >= 19);
    assert!(
        ran.stdout.lines().all(|line| line.starts_with("valid    examples/")),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("all valid"));
}

#[test]
fn findings_are_drawn_with_line_caret_and_help() {
    let ran = haft(&["validate", "fixtures/install-manifest/secret-in-argv.argv-template.json"]);
    assert_eq!(ran.code, 2);
    let expected = "\
error[secret-in-argv]: `API_KEY` is a secret and would be visible to other processes
  --> fixtures/install-manifest/secret-in-argv.argv-template.json:33:11  /actions/0/invocation/argv_template/3
   |
33 |           \"--key=${env.API_KEY}\"
   |           ^^^^^^^^^^^^^^^^^^^^^^
   = help: the tool finds it in its environment; leave it out here, or use invocation kind `stdin-json`
";
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
}

#[test]
fn a_server_on_the_network_is_told_that_it_is_the_format_that_wants_actions() {
    let ran = haft(&["validate", "fixtures/install-manifest/missing-actions.mcp-http.json"]);
    let help =
        "add `actions` with at least one entry: the format has a `mcp-http` say what it offers";
    assert!(ran.stdout.contains(help), "{}", ran.stdout);
}

#[test]
fn json_has_the_documented_shape() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{
  "manifest_version": "0.2",
  "tool": {
    "id": "Gmail_Yep"
  }
}"#;
    std::fs::write(folder.path().join("bad.json"), text).unwrap();
    let ran = run_in(folder.path(), &["validate", "--json", "bad.json"], None);
    assert_eq!(ran.code, 2);
    let file = &ran.json()["files"][0];
    assert_eq!(file["path"], "bad.json");
    assert_eq!(file["dialect"], "install-manifest");
    assert_eq!(file["version"], "0.2");
    assert_eq!(file["valid"], false);
    let findings = file["findings"].as_array().unwrap();
    let of_id = findings.iter().find(|finding| finding["pointer"] == "/tool/id").unwrap();
    assert_eq!(of_id["code"], "bad-pattern");
    assert_eq!(of_id["severity"], "error");
    assert_eq!((of_id["line"].as_u64(), of_id["column"].as_u64()), (Some(4), Some(11)));
    assert!(of_id["help"].as_str().unwrap().contains("lower-case"));
    let missing = findings.iter().filter(|finding| finding["code"] == "missing-field").count();
    assert_eq!(missing, 7, "all findings in one run: {findings:#?}");
}

#[test]
fn warnings_alone_are_valid_unless_strict() {
    let path = "fixtures/mcpkg/short-id.two-segments.json";
    let path = if common::repository().join(path).exists() {
        path
    } else {
        "examples/mcpkg/echo/manifest.json"
    };
    let plain = haft(&["validate", path]);
    assert_eq!(plain.code, 0, "{}", plain.stdout);
    assert!(plain.stdout.contains("warning[short-id]"));
    assert_eq!(haft(&["validate", "--json", path]).json()["files"][0]["valid"], true);
    assert_eq!(haft(&["validate", "--strict", path]).code, 2);
}

#[test]
fn a_misspelled_key_gets_a_suggestion() {
    let text = br#"{"tools": [{"name": "x", "comand": ["./tools/bin/x"]}]}"#;
    let ran = run_in(&common::repository(), &["validate", "-"], Some(text));
    assert_eq!(ran.code, 2);
    assert!(ran.stdout.contains("did you mean `command`?"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("tool[0] \"x\": command must have at least program name"),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_fits_no_dialect_says_what_was_looked_for() {
    let ran = run_in(&common::repository(), &["validate", "-"], Some(b"{\"hello\": 1}"));
    assert_eq!(ran.code, 2);
    for word in ["manifest_version", "tools", "toolId", "trust_level", "--dialect"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    let forced = run_in(
        &common::repository(),
        &["validate", "--dialect", "agentcli", "-"],
        Some(b"{\"hello\": 1}"),
    );
    assert_eq!(forced.code, 0, "{}", forced.stdout);
}

#[test]
fn a_package_folder_brings_its_tests_and_examples() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = r#"{"toolId": "a.b.c", "name": "n", "version": "1.0.0", "description": "d",
        "capabilities": [], "endpoint": {"type": "local", "command": "true"},
        "input_schema": {"type": "object", "required": ["x"]}, "output_schema": {},
        "tests": ["tests/one.test.json", "tests/gone.test.json"], "examples": ["examples/no.md"]}"#;
    std::fs::create_dir(folder.path().join("tests")).unwrap();
    std::fs::write(folder.path().join("manifest.json"), manifest).unwrap();
    std::fs::write(
        folder.path().join("tests/one.test.json"),
        r#"{"name": "one", "input": {}, "assertions": [{"path": "$.", "equals": 1}]}"#,
    )
    .unwrap();
    std::fs::write(
        folder.path().join("tests/two.test.json"),
        r#"{"name": "two", "input": {"x": 1}, "expected": {}}"#,
    )
    .unwrap();
    let files = run_in(folder.path(), &["validate", "--json", "."], None).json()["files"].clone();
    let codes = |path: &str| -> Vec<String> {
        let file = files
            .as_array()
            .unwrap()
            .iter()
            .find(|file| file["path"].as_str().unwrap().ends_with(path))
            .unwrap();
        file["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["code"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(codes("manifest.json"), ["missing-file", "missing-file"]);
    assert_eq!(codes("one.test.json"), ["input-mismatch", "bad-jsonpath"]);
    assert_eq!(codes("two.test.json"), ["unlisted-file"]);
    assert_eq!(files.as_array().unwrap().len(), 3);
    let alone = run_in(folder.path(), &["validate", "--json", "tests/one.test.json"], None);
    assert_eq!(alone.json()["files"][0]["findings"][0]["code"], "input-mismatch");
}

#[test]
fn other_json_below_a_folder_is_passed_over_but_a_broken_manifest_is_not() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("package.json"), r#"{"name": "x", "version": "1.0.0"}"#)
        .unwrap();
    std::fs::write(folder.path().join("junk.json"), "not json").unwrap();
    let ran = run_in(folder.path(), &["validate", "."], None);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    assert!(ran.stderr.contains("no manifests below"), "{}", ran.stderr);
    std::fs::write(folder.path().join("mine.json"), r#"{"manifest_version": "0.2", "#).unwrap();
    let ran = run_in(folder.path(), &["validate", "."], None);
    assert_eq!(ran.code, 2);
    assert!(ran.stdout.contains("json-syntax"), "{}", ran.stdout);
}

#[test]
fn a_bundle_is_told_apart_from_an_install_manifest() {
    let ran = haft(&["validate", "examples/mcpb/", "examples/install-manifest/word-count/"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for line in ["mcpb 0.1, coin 0.1.0", "mcpb 0.3, line-finder 1.0.0", "install-manifest 0.2"] {
        assert!(ran.stdout.contains(line), "{}", ran.stdout);
    }
    let secret = "fixtures/mcpb/secret-in-argv.argument.json";
    let shown = haft(&["validate", "--dialect", "mcpb", secret]);
    assert_eq!(shown.code, 0, "the author cannot be asked, so the owner decides");
    assert!(shown.stdout.contains("warning[secret-in-argv]"), "{}", shown.stdout);
    assert_eq!(haft(&["validate", "--strict", secret]).code, 2);
}

#[test]
fn a_missing_file_and_a_bad_flag_have_their_own_exit_codes() {
    let missing = haft(&["validate", "no/such/file.json"]);
    assert_eq!(missing.code, 3);
    assert!(
        missing.stderr.starts_with("error: failed to read `no/such/file.json`\n  caused by: "),
        "{}",
        missing.stderr
    );
    let flag = haft(&["validate", "--dialect", "yaml", "examples/"]);
    assert_eq!(flag.code, 2);
    assert!(
        flag.stderr.contains("install-manifest, agentcli, mcpkg, capability, jumith"),
        "{}",
        flag.stderr
    );
}

#[test]
fn a_hostile_text_cannot_steer_the_terminal() {
    let text = "{\"tools\": [{\"name\": \"a\\u001b[31mb\\u202ec\", \"command\": []}]}";
    let ran = run_in(&common::repository(), &["validate", "-"], Some(text.as_bytes()));
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{202e}'), "{:?}", ran.stdout);
    let json = run_in(&common::repository(), &["validate", "--json", "-"], Some(text.as_bytes()));
    assert!(!json.stdout.contains('\u{1b}'));
}

#[cfg(unix)]
#[test]
fn links_in_a_package_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = r#"{"toolId": "a.b.c", "name": "n", "version": "1.0.0", "description": "d",
        "capabilities": [], "endpoint": {"type": "local", "command": "true"},
        "input_schema": {}, "output_schema": {}, "tests": ["tests/one.test.json"]}"#;
    std::fs::create_dir(folder.path().join("tests")).unwrap();
    std::fs::write(folder.path().join("manifest.json"), manifest).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("tests/one.test.json")).unwrap();
    let ran = run_in(folder.path(), &["validate", "manifest.json"], None);
    assert_eq!(ran.code, 2);
    assert!(ran.stdout.contains("`tests/one.test.json` is no plain file"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("root:"));
}

#[test]
fn an_openapi_document_is_checked_with_its_manifest() {
    let package = "fixtures/mcpkg/openapi-schema.body-type";
    let ran = haft(&["validate", package]);
    assert_eq!(ran.code, 2);
    let expected = "\
error[openapi-schema]: `stars` is `string` here, but `integer` in openapi.json (`POST /notes`)
  --> fixtures/mcpkg/openapi-schema.body-type/manifest.json:20:7  /input_schema/properties/stars
";
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
    let line = format!("valid    {package}/openapi.json  openapi 3.1, Notes 1.0.0, 2 operations");
    assert_eq!(ran.stdout.matches(&line).count(), 1, "{}", ran.stdout);
}

#[test]
fn an_openapi_document_by_itself_is_looked_at_only_when_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let swagger = r#"{"swagger": "2.0", "info": {"title": "Old", "version": "1"}, "paths": {}}"#;
    std::fs::write(folder.path().join("api.json"), swagger).unwrap();
    let below = run_in(folder.path(), &["validate", "."], None);
    assert_eq!(below.code, 3, "{}", below.stdout);
    let named = run_in(folder.path(), &["validate", "--json", "api.json"], None);
    assert_eq!(named.code, 2);
    let file = &named.json()["files"][0];
    assert_eq!(file["form"], "openapi");
    assert_eq!(file["dialect"], serde_json::Value::Null);
    assert_eq!(file["findings"][0]["code"], "unknown-version");
    // Its name decides, even where its content does not.
    std::fs::write(folder.path().join("openapi.json"), "{}").unwrap();
    let named = run_in(folder.path(), &["validate", "--json", "openapi.json"], None);
    assert_eq!(named.json()["files"][0]["form"], "openapi");
}
