//! From a valid tools.json to the model.

use super::rules::normalised_program;
use crate::dialect::Dialect;
use crate::dialect::lowering::{blank, json, millis, text, texts};
use crate::json::{Node, Pointer};
use crate::model::{
    Acquire, Action, Entry, Implementation, Input, InputSource, Invocation, OutputFormat, Package,
};

/// Lowers a document that has passed its checks. Each tool is an action with a command of its own.
pub(crate) fn lower(document: &Node<'_>, source: &str, id: &str) -> Package {
    let mut package = blank(Dialect::Agentcli, id.to_owned(), source);
    package.acquire = Acquire::LocalPath { path: None };
    for (index, tool) in document.list_at("tools").iter().enumerate() {
        let name = text(tool, "name").unwrap_or_default();
        let timeout_ms = millis(tool.get("timeoutSec"), 1000.0);
        let mut argv = texts(tool, "command");
        if let Some(program) = argv.first_mut().filter(|program| !program.starts_with('/')) {
            *program = normalised_program(program);
        }
        package.implementations.push(Implementation {
            id: name.clone(),
            language: None,
            runtime: None,
            platforms: Vec::new(),
            entry: Entry::Argv { argv, cwd: None, runtime: None },
            timeout_ms,
            requirements: None,
        });
        let mut environment: Vec<String> = Vec::new();
        for variable in texts(tool, "envPassthrough") {
            let variable = variable.trim().to_uppercase();
            if !environment.contains(&variable) {
                environment.push(variable);
            }
        }
        for variable in &environment {
            if !package.inputs.iter().any(|input| input.name == *variable) {
                package.inputs.push(Input {
                    secret: false,
                    required: false,
                    source: InputSource::Caller,
                    ..Input::secret(variable)
                });
            }
        }
        let description = text(tool, "description").filter(|text| !text.is_empty());
        package.actions.push(Action {
            description,
            input: json(tool, "schema", source),
            output_format: Some(OutputFormat::Json),
            timeout_ms,
            environment,
            pointer: Pointer::root().key("tools").index(index),
            ..Action::new(name, Invocation::StdinJson { argv_template: Vec::new() })
        });
    }
    package
}
