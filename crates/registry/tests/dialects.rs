//! A package of any dialect is described for a registry.

use manifest::document::{Options, read};
use registry::Describe;

fn describe(text: &str) -> Describe {
    let options = Options { fallback_id: Some("acme.tools"), ..Options::default() };
    match read(text.as_bytes(), &options) {
        Ok((_, packages)) => Describe::of_package(&packages[0]),
        Err(report) => panic!("{:?}", report.findings),
    }
}

#[test]
fn an_mcpkg_is_described_by_its_id_and_not_told_as_node() {
    let echo = describe(
        r#"{"toolId":"demo.echo.it","name":"Echo","version":"1.2.0-rc.1","description":"Echo.\nMore.",
        "capabilities":["demo","text"],"endpoint":{"type":"local","command":"node ./index.js"},
        "input_schema":{"type":"object","required":["a"]},"output_schema":{"type":"object"}}"#,
    );
    assert_eq!((echo.id.as_str(), echo.name.as_str()), ("tool:demo.echo.it", "demo.echo.it"));
    assert_eq!((echo.version.as_str(), echo.summary.as_str()), ("1.2.0-rc.1", "Echo."));
    assert_eq!((echo.entry.runtime.as_str(), echo.entry.is_node()), ("process", false));
    assert_eq!(echo.schema.unwrap().input.unwrap()["required"][0], "a");
    assert_eq!(echo.tags, ["demo", "text"]);
}

#[test]
fn a_jumith_tool_keeps_its_id_its_name_and_what_it_says() {
    let tool = describe(
        r#"{"id":"tool:email.send","name":"email_send","version":"1.0.0","summary":"Sends it",
        "provider":"acme","entry":{"runtime":"node","main":"dist/index.js","export":"tool"},
        "requiresApproval":true,"requiredSecrets":["smtp_pass"]}"#,
    );
    assert_eq!((tool.id.as_str(), tool.name.as_str()), ("tool:email.send", "email_send"));
    assert_eq!(tool.entry.export.as_deref(), Some("tool"));
    assert!(tool.entry.is_node());
    assert_eq!((tool.requires_approval, tool.provider.as_deref()), (Some(true), Some("acme")));
    assert_eq!(tool.required_secrets, ["smtp_pass"]);
    let plain = serde_json::to_value(&tool).unwrap();
    assert_eq!(plain["entry"]["main"], "dist/index.js");
    assert!(plain.get("usesPayment").is_none(), "what the author does not say is not told");
}

#[test]
fn a_tools_json_has_the_version_of_its_bytes() {
    let tools = describe(
        r#"{"tools":[{"name":"a","description":"Does a","command":["./tools/bin/a"],"schema":{"type":"object"}},
        {"name":"b","description":"Does b","command":["./tools/bin/b"],"schema":{"type":"object"}}]}"#,
    );
    assert_eq!(tools.id, "tool:acme.tools");
    assert!(tools.version.starts_with("0.0.0+"));
    assert!(tools.schema.is_none(), "two actions have no schema in common");
}

#[test]
fn every_valid_manifest_of_the_examples_has_a_description_that_we_would_read() {
    let mut described = 0;
    for path in testkit::examples() {
        let options = Options { fallback_id: Some("acme.tools"), ..Options::default() };
        let Ok((_, packages)) = read(&std::fs::read(&path).unwrap(), &options) else { continue };
        for package in packages {
            let text = serde_json::to_vec(&Describe::of_package(&package)).unwrap();
            let back: Result<Describe, _> = registry::read(&text);
            assert!(back.is_ok(), "{}: {back:?}", path.display());
            described += 1;
        }
    }
    assert!(described > 10, "{described}");
}
