//! A tools.json whose programs call through us, so an agentcli loop keeps working, with walls and
//! audit.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::tool::Tool;

/// What the shims of a tools.json call, and what definitions of mcpkg are told with.
#[derive(Clone, Copy, Debug)]
pub struct Options<'o> {
    /// The program, by name or by path.
    pub program: &'o str,
    /// The home, when it is not the one the program finds by itself.
    pub home: Option<&'o str>,
    /// What is known of packages, by their canonical ids, where it is to be told.
    pub context: Option<&'o BTreeMap<String, Context>>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { program: "haft", home: None, context: None }
    }
}

/// A small program that calls one action through us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shim {
    /// Where it belongs, relative to the document.
    pub path: String,
    /// What it says.
    pub content: String,
    /// Whether it is to be run.
    pub executable: bool,
}

/// A tool.
pub(super) fn definition(tool: &Tool<'_>) -> Value {
    let mut definition = Map::from_iter([("name".to_owned(), tool.name.as_str().into())]);
    if let Some(description) = tool.description() {
        definition.insert("description".into(), description.into());
    }
    if let Some(schema) = tool.parameters() {
        definition.insert("schema".into(), schema);
    }
    definition.insert("command".into(), json!([format!("./{}", path(tool))]));
    if let Some(timeout_ms) = tool.timeout_ms() {
        definition.insert("timeoutSec".into(), timeout_ms.div_ceil(1000).into());
    }
    if !tool.action.environment.is_empty() {
        definition.insert("envPassthrough".into(), json!(tool.action.environment));
    }
    Value::Object(definition)
}

/// The program of a tool: the input arrives on its standard input and is passed on.
pub(super) fn shim(tool: &Tool<'_>, options: &Options<'_>) -> Shim {
    let program = quoted(options.program);
    let home = options.home.map(|home| format!(" --home={}", quoted(home))).unwrap_or_default();
    // After `--` nothing is an option: an action may be named `--approve`.
    let (id, action) = (quoted(&tool.id), quoted(&tool.action.name));
    Shim {
        path: path(tool),
        content: format!("#!/bin/sh\nexec {program}{home} call -- {id} {action} -\n"),
        executable: true,
    }
}

fn path(tool: &Tool<'_>) -> String {
    format!("tools/bin/{}", tool.name)
}

/// One word of a shell, whatever is in it; plain words stay readable.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_plain_word_stays_readable() {
        assert_eq!(quoted("install-manifest:acme/gmail-yep"), "install-manifest:acme/gmail-yep");
    }

    #[test]
    fn no_text_gets_out_of_its_quotes() {
        for text in [
            "",
            "a b",
            "it's",
            "''",
            "'; touch /tmp/owned; '",
            "$(id) `id` $HOME ${X}",
            "a\nb\r\tc",
            "*?[a]~!#&|<>\\",
            "\\'",
            "größe 数 \u{202e}",
            "-rf",
            "end\\",
        ] {
            let script = format!("printf '%s.' {}", quoted(text));
            let output = std::process::Command::new("sh").arg("-c").arg(&script).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{text}."), "{script}");
        }
    }
}
