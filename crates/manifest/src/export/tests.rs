//! What the formats promise, from documents to definitions.

use std::collections::HashSet;

use super::*;
use crate::document;

/// The packages of a document; `demo` is the id of one that has none.
fn read(text: &str) -> Vec<Package> {
    let options = document::Options { fallback_id: Some("demo"), ..document::Options::default() };
    let (_, packages) = document::read(text.as_bytes(), &options)
        .unwrap_or_else(|report| panic!("{:?}", report.findings));
    packages
}

fn exported(packages: &[Package], format: Format) -> Export {
    export(packages, format, &Options::default())
}

/// The definitions of an export, wherever the format keeps them.
fn definitions(export: &Export) -> Vec<Value> {
    let list = export.document.get("tools").unwrap_or(&export.document);
    list.as_array().unwrap().clone()
}

fn exposed(export: &Export) -> Vec<&str> {
    export.names.iter().map(|name| name.exposed.as_str()).collect()
}

const TOOLS: &str = r#"{
  "tools": [
    {
      "name": "get_time",
      "description": "Get current time for an IANA timezone",
      "schema": {
        "type": "object",
        "properties": {
          "timezone": {"type": "string", "description": "IANA timezone, e.g. Europe/Helsinki"},
          "tz": {"type": "string", "description": "Alias for timezone (deprecated)"}
        },
        "required": ["timezone"],
        "additionalProperties": false
      },
      "command": ["./tools/bin/get_time"],
      "timeoutSec": 5,
      "envPassthrough": ["TZ", "OAI_HTTP_TIMEOUT"]
    },
    { "name": "bare", "description": "", "command": ["./tools/bin/bare"] },
    { "name": "It's --odd", "command": ["./tools/bin/odd"] }
  ]
}"#;

const CHARGE: &str = r#"{
  "toolId": "stripe.payments.create_charge",
  "name": "Create Stripe Charge",
  "version": "1.0.0",
  "description": "Create a payment charge.",
  "capabilities": ["payments", "stripe"],
  "endpoint": {"type": "http", "method": "POST", "url": "https://api.stripe.com/v1/charges", "timeoutMs": 10500},
  "input_schema": {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"], "additionalProperties": false},
  "output_schema": {"type": "object", "properties": {"id": {"type": "string"}}}
}"#;

const MAIL: &str = r#"{
  "manifest_version": "0.2",
  "tool": {"id": "mail-box", "version": "1.0.0", "name": "Mail", "summary": "Reads mail.", "homepage": "https://example.com"},
  "runtime": {"kind": "shell-binary", "install": {"method": "npm", "package": "mail-box"}, "entrypoint": {"command": ["mail-box"]}},
  "env": [],
  "scopes": [{"resource": "gmail.messages", "actions": ["read"], "rationale": "To read your mail."}],
  "actions": [
    {"name": "list", "summary": "Lists mail.", "invocation": {"kind": "stdin-json", "argv_template": ["list"]}, "side_effects": "read", "idempotent": true,
     "input": {"properties": {"limit": {"type": "integer"}}}, "output": {"format": "ndjson-stream", "schema": {"type": "object"}},
     "examples": [{"description": "Ten.", "input": {"limit": 10}}]},
    {"name": "clock", "summary": "Tells the time.", "invocation": {"kind": "stdin-json", "argv_template": ["clock"]}, "side_effects": "none"},
    {"name": "file", "summary": "Files mail.", "invocation": {"kind": "stdin-json", "argv_template": ["file"]}, "side_effects": "write"},
    {"name": "purge", "summary": "Deletes mail.", "invocation": {"kind": "stdin-json", "argv_template": ["purge"]}, "side_effects": "destructive"}
  ],
  "smoke": {"kind": "shell", "command": ["mail-box", "--version"], "success": {"exit_code": 0}},
  "kill_switch": {"kind": "url", "url": "https://example.com/revoke"}
}"#;

#[test]
fn every_format_is_found_by_its_name() {
    for format in Format::ALL {
        assert_eq!(Format::named(format.name()), Some(format));
    }
    assert_eq!(Format::named("yaml"), None);
}

#[test]
fn a_tools_json_becomes_openai_tools_exactly_as_its_specification_maps_it() {
    let export = exported(&read(TOOLS), Format::Openai);
    let written = serde_json::to_string(&definitions(&export)[..2]).unwrap();
    let expected = concat!(
        r#"[{"type":"function","function":{"name":"get_time","#,
        r#""description":"Get current time for an IANA timezone","#,
        r#""parameters":{"type":"object","properties":{"#,
        r#""timezone":{"type":"string","description":"IANA timezone, e.g. Europe/Helsinki"},"#,
        r#""tz":{"type":"string","description":"Alias for timezone (deprecated)"}},"#,
        r#""required":["timezone"],"additionalProperties":false}}},"#,
        r#"{"type":"function","function":{"name":"bare"}}]"#,
    );
    assert_eq!(written, expected);
    assert_eq!(exposed(&export), ["get_time", "bare", "It_s_--odd"]);
    assert_eq!(export.names[2].action, "It's --odd");
    assert!(export.notes.is_empty() && export.files.is_empty());
}

#[test]
fn a_tools_json_is_never_made_strict() {
    let strict = r#"{"tools": [{"name": "a", "command": ["./tools/bin/a"],
        "schema": {"type": "object", "properties": {}, "required": [], "additionalProperties": false}}]}"#;
    let export = exported(&read(strict), Format::Openai);
    assert_eq!(definitions(&export)[0]["function"].get("strict"), None);
}

#[test]
fn chat_is_strict_only_where_the_schema_is_carried() {
    let packages = [read(CHARGE), read(MAIL)].concat();
    let tools = definitions(&exported(&packages, Format::Openai));
    assert_eq!(tools[0]["function"]["name"], "stripe_payments_create_charge");
    assert_eq!(tools[0]["function"]["strict"], true);
    assert_eq!(tools[1]["function"]["name"], "mail-box_list");
    assert_eq!(tools[1]["function"].get("strict"), None);
    assert_eq!(tools[1]["function"]["parameters"]["type"], "object");
    assert_eq!(tools[2]["function"].get("parameters"), None);
}

#[test]
fn responses_are_flat_and_say_when_they_are_not_strict() {
    let packages = [read(CHARGE), read(TOOLS)].concat();
    let tools = definitions(&exported(&packages, Format::OpenaiResponses));
    let keys: Vec<&String> = tools[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["type", "name", "description", "parameters", "strict"]);
    assert_eq!(tools[0]["strict"], true);
    assert_eq!(tools[1]["strict"], false);
    assert_eq!(tools[2], json!({ "type": "function", "name": "bare", "strict": false }));
}

#[test]
fn anthropic_always_has_a_schema() {
    let tools = definitions(&exported(&read(TOOLS), Format::Anthropic));
    assert_eq!(tools[0]["input_schema"]["required"], json!(["timezone"]));
    assert_eq!(tools[1], json!({ "name": "bare", "input_schema": { "type": "object" } }));
}

#[test]
fn mcp_tells_id_action_and_every_hint() {
    let export = exported(&read(CHARGE), Format::Mcp);
    let title = "Create Stripe Charge (mcpkg:stripe.payments.create_charge)";
    let tool = &definitions(&export)[0];
    assert_eq!(tool["title"], title);
    assert_eq!(tool["outputSchema"]["type"], "object");
    let meta = json!({
        "haft/id": "mcpkg:stripe.payments.create_charge",
        "haft/action": "stripe.payments.create_charge",
    });
    assert_eq!(tool["_meta"], meta);
    let undeclared = json!({
        "title": title,
        "readOnlyHint": false,
        "destructiveHint": true,
        "idempotentHint": false,
        "openWorldHint": true,
    });
    assert_eq!(tool["annotations"], undeclared);
}

#[test]
fn mcp_hints_follow_the_declared_side_effects() {
    let tools = definitions(&exported(&read(MAIL), Format::Mcp));
    let hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    let of = |tool: &Value| hints.map(|hint| tool["annotations"][hint].as_bool().unwrap());
    assert_eq!(of(&tools[0]), [true, false, true, true], "read");
    assert_eq!(of(&tools[1]), [true, false, false, false], "none");
    assert_eq!(of(&tools[2]), [false, false, false, true], "write");
    assert_eq!(of(&tools[3]), [false, true, false, true], "destructive");
    assert_eq!(tools[0]["title"], "Mail: list (install-manifest:mail-box)");
    assert_eq!(tools[0].get("outputSchema"), None, "a stream is not one object");
}

#[test]
fn agentcli_is_a_valid_tools_json_of_shims() {
    let packages = [read(CHARGE), read(TOOLS), read(MAIL)].concat();
    let export = exported(&packages, Format::Agentcli);
    let options = document::Options::default();
    let report = document::check(export.document.to_string().as_bytes(), &options);
    assert!(report.is_valid(), "{:?}", report.findings);

    let tools = definitions(&export);
    assert_eq!(tools[0]["command"], json!(["./tools/bin/stripe_payments_create_charge"]));
    assert_eq!(tools[0]["timeoutSec"], 11);
    assert_eq!(tools[1]["envPassthrough"], json!(["TZ", "OAI_HTTP_TIMEOUT"]));
    assert_eq!(tools[2].get("timeoutSec"), None);

    assert_eq!(export.files.len(), tools.len());
    assert!(export.files.iter().all(|file| file.executable));
    assert_eq!(export.files[1].path, "tools/bin/get_time");
    assert_eq!(export.files[1].content, "#!/bin/sh\nexec haft call -- agentcli:demo get_time -\n");
    assert!(export.files[3].content.contains(r"call -- agentcli:demo 'It'\''s --odd' -"));
}

#[test]
fn shims_call_the_program_and_home_they_are_told() {
    let (program, home) = ("/opt/my tools/haft", Some("/srv/a b/.mcp"));
    let options = Options { program, home, context: None };
    let export = export(&read(CHARGE), Format::Agentcli, &options);
    let expected = "exec '/opt/my tools/haft' --home='/srv/a b/.mcp' call -- mcpkg:stripe";
    assert!(export.files[0].content.contains(expected), "{}", export.files[0].content);
}

#[test]
fn mcpkg_is_a_bare_list_under_ids() {
    let packages = [read(CHARGE), read(MAIL)].concat();
    let export = exported(&packages, Format::Mcpkg);
    let tools = export.document.as_array().unwrap();
    assert_eq!(tools[0]["name"], "stripe.payments.create_charge");
    assert_eq!(tools[0]["capabilities"], json!(["payments", "stripe"]));
    assert_eq!(tools[0].get("examples"), None);
    assert_eq!(tools[1]["name"], "mail-box.list");
    assert_eq!(tools[1]["description"], "Lists mail.");
    assert_eq!(tools[1]["examples"], json!([{ "limit": 10 }]));
}

#[test]
fn what_is_disabled_or_has_no_action_is_left_out_and_said() {
    let mut disabled = read(CHARGE);
    disabled[0].enabled = false;
    let mut empty = read(MAIL);
    empty[0].actions.clear();
    let export = exported(&[disabled, empty].concat(), Format::Mcp);
    assert!(definitions(&export).is_empty());
    let expected = [
        "`mcpkg:stripe.payments.create_charge` is left out: it is disabled",
        "`install-manifest:mail-box` is left out: it declares no action",
    ];
    assert_eq!(export.notes, expected);
}

#[test]
fn what_is_known_of_a_package_is_told_with_its_definition() {
    let tests = TestSummary {
        total: 4,
        passed: 3,
        latency: Some(std::time::Duration::from_micros(12_340)),
    };
    let known = Context { examples: vec!["# A charge".to_owned()], tests: Some(tests) };
    let context = [("mcpkg:stripe.payments.create_charge".to_owned(), known)].into();
    let options = Options { context: Some(&context), ..Options::default() };
    let tool = &definitions(&export(&read(CHARGE), Format::Mcpkg, &options))[0];
    assert_eq!(tool["examples"], json!(["# A charge"]));
    let summary = json!({"total": 4, "passed": 3, "failed": 1, "average_latency_ms": 12.3});
    assert_eq!(tool["test_summary"], summary);
    let other = &definitions(&export(&read(TOOLS), Format::Mcpkg, &options))[0];
    assert_eq!((other.get("examples"), other.get("test_summary")), (None, None));
    // Where nobody measured it, nobody says it.
    let unmeasured = TestSummary { latency: None, ..tests }.to_value();
    assert_eq!(unmeasured, json!({"total": 4, "passed": 3, "failed": 1}));
}

#[test]
fn definitions_are_left_out_with_their_names_and_programs() {
    for format in Format::ALL {
        let mut export = exported(&read(TOOLS), format);
        assert_eq!(export.definitions().len(), 3, "{format:?}");
        let last = export.definitions()[2].clone();
        export.keep(|at| at == 2);
        assert_eq!(export.definitions(), [last], "{format:?}");
        assert_eq!(export.names.len(), 1);
        assert_eq!(export.names[0].action, "It's --odd");
        let files = usize::from(format == Format::Agentcli);
        assert_eq!(export.files.len(), files);
    }
}

#[test]
fn the_same_action_is_exported_once_in_its_highest_version() {
    let old = read(CHARGE);
    let new = read(&CHARGE.replace("1.0.0", "1.10.0").replace("payment charge", "new charge"));
    for packages in [[old.clone(), new.clone()].concat(), [new, old.clone(), old].concat()] {
        let export = exported(&packages, Format::Anthropic);
        assert_eq!(exposed(&export), ["stripe_payments_create_charge"]);
        assert_eq!(definitions(&export)[0]["description"], "Create a new charge.");
        let note = "`mcpkg:stripe.payments.create_charge` 1.0.0 is left out: 1.10.0 of the same id is exported";
        assert_eq!(export.notes, [note]);
    }
    let twice = exported(&[read(CHARGE), read(CHARGE)].concat(), Format::Anthropic);
    assert_eq!((twice.names.len(), twice.notes.len()), (1, 0), "the same document is one");
}

#[test]
fn tools_of_one_name_in_two_packages_are_told_apart_whatever_the_order() {
    let mut other = read(TOOLS);
    other[0].id = "other".into();
    let one = exported(&[read(TOOLS), other.clone()].concat(), Format::Openai);
    let two = exported(&[other, read(TOOLS)].concat(), Format::Openai);
    assert_eq!(exposed(&one).iter().collect::<HashSet<_>>().len(), 6);
    assert!(exposed(&one)[0].starts_with("get_time_"));
    let sorted = |export: &Export| {
        let mut names = export.names.clone();
        names.sort_by(|a, b| a.exposed.cmp(&b.exposed));
        names
    };
    assert_eq!(sorted(&one), sorted(&two));
}

#[test]
fn a_schema_that_the_api_would_refuse_is_said() {
    let choice =
        read(&CHARGE.replacen(r#""input_schema": {"#, r#""input_schema": {"anyOf": [{}], "#, 1));
    let notes = exported(&choice, Format::Anthropic).notes;
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("`anyOf` at the root"), "{notes:?}");
    assert!(exported(&choice, Format::Mcp).notes.is_empty());
}

#[test]
fn a_tool_that_no_input_fits_is_left_out_and_said() {
    let mut packages = read(CHARGE);
    let text = read(&CHARGE.replacen(
        r#""input_schema": {"type": "object""#,
        r#""input_schema": {"type": "string""#,
        1,
    ));
    packages[0].actions[0].input = text[0].actions[0].input.clone();
    let export = exported(&packages, Format::Openai);
    assert!(definitions(&export).is_empty() && export.names.is_empty());
    assert!(export.notes[0].contains("no object fits"), "{:?}", export.notes);
}

#[test]
fn a_name_that_no_program_can_be_given_has_no_shim() {
    let odd = TOOLS.replace("It's --odd", r"odd\u0000");
    let export = exported(&read(&odd), Format::Agentcli);
    assert_eq!(exposed(&export), ["get_time", "bare"]);
    assert_eq!(export.notes.len(), 1);
    assert_eq!(exposed(&exported(&read(&odd), Format::Openai))[2], "odd_");
}

#[test]
fn a_tool_of_a_bundle_promises_nothing_and_is_shown_so() {
    let packages = read(
        r#"{
          "manifest_version": "0.2", "name": "notes", "display_name": "Notes", "version": "1.0.0",
          "description": "Finds notes.", "author": {"name": "Ada"}, "tools": [{"name": "find"}],
          "server": {"type": "node", "entry_point": "a.js", "mcp_config": {"command": "node"}}
        }"#,
    );
    let mcp = exported(&packages, Format::Mcp);
    let tool = &definitions(&mcp)[0];
    assert_eq!(
        (&tool["name"], &tool["title"]),
        (&json!("notes_find"), &json!("Notes: find (mcpb:notes)"))
    );
    assert_eq!(
        (&tool["description"], &tool["inputSchema"]),
        (&json!("Finds notes."), &json!({"type": "object"}))
    );
    assert_eq!(tool["annotations"]["destructiveHint"], true);
    assert_eq!(tool["annotations"]["readOnlyHint"], false);
    assert_eq!(exposed(&exported(&packages, Format::Mcpkg)), ["notes.find"]);
}

#[test]
fn definitions_are_called_what_somebody_says_and_the_table_says_so_too() {
    let packages = read(
        r#"{"tools":[{"name":"a","command":["./tools/bin/a"],"schema":{"type":"object"}},{"name":"b","command":["./tools/bin/b"]}]}"#,
    );
    for format in Format::ALL {
        let mut export = exported(&packages, format);
        let before = export.clone();
        export.rename(format, |name| (name.action == "b").then(|| "other".to_owned()));
        if matches!(format, Format::Agentcli | Format::Mcpkg) {
            assert_eq!(export, before, "{format:?}");
            continue;
        }
        assert_eq!(export.names[1].exposed, "other", "{format:?}");
        assert_eq!(export.names[0], before.names[0]);
        assert!(export.definitions()[1].to_string().contains("\"name\":\"other\""), "{format:?}");
    }
}
