//! What a tools.json must hold beyond its shape, in the contract's own words.

use std::collections::HashSet;

use super::go::{clean, quote};
use crate::dialect::rules::Judge;
use crate::finding::{Code, Finding};
use crate::json::{Node, Number, Path, Value};

/// Variables that make a program load or run something else, of which validation warns.
pub const DANGEROUS: &[&str] = &[
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "BASH_ENV",
    "ENV",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_EXTERNAL_DIFF",
    "SSH_ASKPASS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
];

/// Finds what is wrong, tool by tool: name, twin, command, environment, program.
pub(crate) fn check_rules(document: &Node<'_>, judge: &mut Judge<'_>) {
    let mut seen = HashSet::new();
    for (index, tool) in document.list_at("tools").iter().enumerate() {
        if tool.is_object() {
            let root = Path::ROOT;
            let list = root.key("tools");
            check_tool(index, tool, list.index(index), &mut seen, judge);
        }
    }
}

fn check_tool<'n>(
    index: usize,
    tool: &'n Node<'_>,
    path: Path<'_>,
    seen: &mut HashSet<&'n str>,
    judge: &mut Judge<'_>,
) {
    let name_node = tool.get("name").filter(|name| !name.is_null());
    if name_node.is_some_and(|name| name.as_text().is_none()) {
        // Told as a wrong type; without a name the other messages cannot be worded.
        return;
    }
    let name = name_node.and_then(Node::as_text).unwrap_or_default();
    let name_span = tool.get("name").map_or(tool.span.first_byte(), |name| name.span);
    let prefix = format!("tool[{index}] {}", quote(shortened(name)));
    if name.is_empty() {
        let pointer =
            if tool.get("name").is_some() { path.key("name").pointer() } else { path.pointer() };
        let message = format!("tool[{index}]: name is required");
        judge.push(Finding::new(Code::ToolNameRequired, pointer, name_span, message));
    } else if !seen.insert(name) {
        let message = format!("{prefix}: duplicate name");
        judge.push(Finding::new(
            Code::DuplicateTool,
            path.key("name").pointer(),
            name_span,
            message,
        ));
    }
    let command = tool.get("command");
    if command.is_none_or(|command| {
        command.items().is_empty() && matches!(command.value, Value::List(_) | Value::Null)
    }) {
        let pointer = command.map_or_else(|| path.pointer(), |_| path.key("command").pointer());
        let span = command.map_or(tool.span.first_byte(), |command| command.span);
        let message = format!("{prefix}: command must have at least program name");
        judge.push(
            Finding::new(Code::CommandEmpty, pointer, span, message)
                .help("`\"command\": [\"./tools/bin/NAME\"]`"),
        );
    }
    check_environment(tool, &prefix, path, judge);
    if let Some(program) = command.and_then(|command| command.items().first()) {
        check_program(program, &prefix, path.key("command").index(0), judge);
    }
    if let Some(timeout) = tool.get("timeoutSec")
        && matches!(timeout.as_number(), Some(Number::Float(number)) if number.fract() == 0.0)
    {
        let message = "timeoutSec must be written as a whole number, without a point or exponent";
        judge.push(Finding::new(
            Code::BadTimeout,
            path.key("timeoutSec").pointer(),
            timeout.span,
            message,
        ));
    }
}

fn check_environment(tool: &Node<'_>, prefix: &str, path: Path<'_>, judge: &mut Judge<'_>) {
    for (index, entry) in tool.list_at("envPassthrough").iter().enumerate() {
        let Some(raw) = entry.as_text() else { continue };
        let pointer = path.key("envPassthrough").index(index).pointer();
        let name = raw.trim().to_uppercase();
        let finding = if name.is_empty() {
            let message = format!("{prefix}: envPassthrough[{index}]: empty name");
            Finding::new(Code::EnvNameEmpty, pointer, entry.span, message)
        } else if !is_variable(&name) {
            let message = format!(
                "{prefix}: envPassthrough[{index}]: invalid name {} (must match [A-Z_][A-Z0-9_]*)",
                quote(shortened(raw))
            );
            Finding::new(Code::EnvNameInvalid, pointer, entry.span, message)
        } else if DANGEROUS.contains(&name.as_str()) {
            let message = format!(
                "`{name}` can make a program run other code; a call is refused unless the owner's policy names it"
            );
            Finding::new(Code::DangerousEnv, pointer, entry.span, message)
        } else {
            continue;
        };
        judge.push(finding);
    }
}

fn check_program(program: &Node<'_>, prefix: &str, path: Path<'_>, judge: &mut Judge<'_>) {
    let Some(raw) = program.as_text() else { return };
    if raw.starts_with('/') {
        return;
    }
    let slashed = raw.replace('\\', "/");
    let cleaned = normalised_program(raw);
    let is_inside = cleaned.starts_with("./tools/bin/");
    let claims_bin = slashed.starts_with("./tools/bin/") || slashed == "./tools/bin";
    let (code, message) = if cleaned == ".." || cleaned.starts_with("../") {
        let message = format!(
            "{prefix}: command[0] must not start with '..' or escape tools/bin (got {})",
            quote(shortened(raw))
        );
        (Code::CommandDotdot, message)
    } else if claims_bin && !is_inside {
        let message = format!(
            "{prefix}: command[0] escapes ./tools/bin after normalization (got {} -> {})",
            quote(shortened(raw)),
            quote(shortened(&cleaned))
        );
        (Code::CommandEscapesBin, message)
    } else if !is_inside {
        (
            Code::CommandNotInBin,
            format!("{prefix}: relative command[0] must start with ./tools/bin/"),
        )
    } else {
        return;
    };
    let mut finding = Finding::new(code, path.pointer(), program.span, message);
    if code == Code::CommandNotInBin {
        finding = finding.help(
            "a program of the machine is named by its whole path, such as `/usr/bin/NAME`; one of the package lies in `./tools/bin/`",
        );
    }
    judge.push(finding);
}

/// A relative program path as it is compared: slashes, cleaned, `./` before `tools/`.
pub fn normalised_program(raw: &str) -> String {
    let cleaned = clean(&raw.replace('\\', "/"));
    if cleaned.starts_with("tools/") || cleaned == "tools" {
        format!("./{cleaned}")
    } else {
        cleaned
    }
}

/// The contract repeats what was written in every message; no honest name is that long.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(300).map_or(text, |(end, _)| &text[..end])
}

fn is_variable(name: &str) -> bool {
    name.bytes().next().is_some_and(|b| b.is_ascii_uppercase() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}
