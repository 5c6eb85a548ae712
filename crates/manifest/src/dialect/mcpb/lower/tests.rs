use serde_json::{Value, json};

use crate::document::{Options, read};
use crate::model::{Acquire, Entry, InputKind, InputSource, Invocation, Kind, Package, Trust};

fn sample() -> Value {
    json!({
        "dxt_version": "0.1", "name": "notes", "version": "1.0.0", "description": "Finds notes.",
        "author": {"name": "Ada"},
        "server": {
            "type": "python", "entry_point": "server/main.py",
            "mcp_config": {"command": "python3", "args": ["${__dirname}/server/main.py"]}
        }
    })
}

fn lowered(document: &Value) -> Package {
    let (_, mut packages) = read(document.to_string().as_bytes(), &Options::default())
        .unwrap_or_else(|report| panic!("{:#?}", report.findings));
    packages.remove(0)
}

/// The ids of the ways to run, with the systems of each and what is started.
fn ways(document: &Value) -> Vec<(String, Vec<String>, Entry)> {
    let ways = lowered(document).implementations.into_iter();
    ways.map(|way| (way.id, way.platforms, way.entry)).collect()
}

fn server(argv: &[&str], env: &[(&str, &str)]) -> Entry {
    Entry::McpStdio {
        argv: argv.iter().map(|&text| text.to_owned()).collect(),
        cwd: None,
        env: env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

#[test]
fn the_least_manifest_declares_nothing_it_does_not_say() {
    let package = lowered(&sample());
    assert_eq!(package.canonical_id(), "mcpb:notes");
    assert_eq!(package.format_version, Some("0.1"));
    assert_eq!((package.kind, package.acquire), (Kind::McpServer, Acquire::Bundle));
    assert_eq!(package.name.as_deref(), Some("notes"));
    assert_eq!(package.summary.as_deref(), Some("Finds notes."));
    assert_eq!(package.trust, Trust::Untrusted);
    assert!(!package.permissions.declared);
    assert!(package.actions.is_empty() && package.inputs.is_empty());
    let main = &package.implementations[0];
    assert_eq!(main.entry, server(&["python3", "${__dirname}/server/main.py"], &[]));
    assert_eq!(
        (main.language.as_deref(), main.runtime.as_deref()),
        (Some("python"), Some("python"))
    );
    assert!(main.platforms.is_empty(), "it runs everywhere");
}

#[test]
fn an_override_takes_the_place_of_what_it_names_and_of_nothing_else() {
    let mut document = sample();
    document["server"]["mcp_config"] = json!({
        "command": "run", "args": ["a"], "env": {"A": "1", "B": "2"},
        "platform_overrides": {
            "win32": {"command": "run.exe", "env": {"C": "3"}},
            "darwin": {"command": "", "args": []},
            "plan9": {"command": "rc"}
        }
    });
    let both = [("A", "1"), ("B", "2")];
    let linux = vec!["linux-x64".to_owned(), "linux-arm64".to_owned()];
    let darwin = vec!["darwin-x64".to_owned(), "darwin-arm64".to_owned()];
    let windows = vec!["win-x64".to_owned()];
    assert_eq!(
        ways(&document),
        [
            ("main".to_owned(), linux, server(&["run", "a"], &both)),
            ("darwin".to_owned(), darwin, server(&["run"], &both)),
            ("win32".to_owned(), windows, server(&["run.exe", "a"], &[("C", "3")])),
        ]
    );
}

#[test]
fn only_the_systems_that_are_named_are_served() {
    let mut document = sample();
    document["server"]["mcp_config"]["platform_overrides"] = json!({"win32": {"args": []}});
    document["compatibility"] = json!({"platforms": ["win32"]});
    let ids: Vec<_> = ways(&document).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, ["win32"]);
    document["compatibility"] = json!({"platforms": ["linux"]});
    let served: Vec<_> = ways(&document).into_iter().map(|(id, on, _)| (id, on.len())).collect();
    assert_eq!(served, [("main".to_owned(), 2)]);
}

#[test]
fn settings_keep_their_kind_their_bounds_and_their_defaults() {
    let mut document = sample();
    document["user_config"] = json!({
        "text": {"type": "string", "title": "T", "description": "D", "default": "a\u{e9}\"b"},
        "number": {"type": "number", "title": "T", "description": "", "default": 10.0, "min": 1, "max": 1.5e2},
        "flag": {"type": "boolean", "title": "", "description": "D", "default": false, "required": true},
        "folder": {"type": "directory", "title": "", "description": "", "multiple": true, "default": "${HOME}"},
        "files": {"type": "file", "title": "T", "description": "D", "multiple": true, "default": ["a", "b"]},
        "secret": {"type": "string", "title": "T", "description": "D", "sensitive": true, "default": "x"},
        "list": {"type": "string", "title": "T", "description": "D", "default": ["a"]}
    });
    let inputs = lowered(&document).inputs;
    let told: Vec<_> = inputs
        .iter()
        .map(|input| {
            let default = input.default.as_deref();
            (input.name.as_str(), input.kind, input.multiple, default, input.prompt.as_deref())
        })
        .collect();
    let number = InputKind::Number { min: Some(1.0), max: Some(150.0) };
    assert_eq!(
        told,
        [
            ("text", InputKind::Text, false, Some("aé\"b"), Some("T: D")),
            ("number", number, false, Some("10"), Some("T")),
            ("flag", InputKind::Flag, false, Some("false"), Some("D")),
            ("folder", InputKind::Folder, true, Some("[\"${HOME}\"]"), None),
            ("files", InputKind::File, true, Some("[\"a\",\"b\"]"), Some("T: D")),
            ("secret", InputKind::Text, false, None, Some("T: D")),
            ("list", InputKind::Text, false, None, Some("T: D")),
        ]
    );
    let required: Vec<_> = inputs.iter().filter(|input| input.required).collect();
    assert_eq!((required.len(), required[0].name.as_str()), (1, "flag"));
    let secret: Vec<_> = inputs.iter().filter(|input| input.secret).collect();
    assert_eq!((secret.len(), secret[0].name.as_str()), (1, "secret"));
    assert!(inputs.iter().all(|input| input.source == InputSource::Owner));
}

#[test]
fn tools_are_actions_that_promise_nothing() {
    let mut document = sample();
    document["tools"] =
        json!([{"name": "find", "description": "Finds."}, {"name": "find"}, {"name": "read"}]);
    let actions = lowered(&document).actions;
    assert_eq!(actions.len(), 2, "twins are one");
    assert_eq!(actions[0].description.as_deref(), Some("Finds."));
    assert_eq!(actions[1].pointer.as_str(), "/tools/2");
    for action in actions {
        assert_eq!(action.invocation, Invocation::McpTool { tool_name: action.name.clone() });
        assert_eq!((action.input, action.output, action.output_format), (None, None, None));
        assert_eq!((action.side_effects, action.idempotent), (None, None));
    }
}
