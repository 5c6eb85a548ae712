//! Writes a tools.json.

use super::draft::Draft;
use super::run::{self, Run};
use crate::concept::Weight;
use crate::model::{InputSource, Package};

pub(super) fn write(package: &Package, draft: &mut Draft) {
    if package.actions.is_empty() {
        draft.ask("/tools/0/name", "the source lists no actions: what is the tool called?");
        draft.ask("/tools/0/command", "arguments, the program first");
    }
    for (index, action) in package.actions.iter().enumerate() {
        let at = |field: &str| format!("/tools/{index}/{field}");
        draft.put(&at("name"), action.name.as_str());
        let description =
            action.description.as_ref().or(action.summary.as_ref()).map(String::as_str);
        draft.put_some(&at("description"), description.or_else(|| package.blurb()));
        draft.put_some(&at("schema"), action.input.as_ref().map(crate::model::Json::value));
        match run::of(package, action) {
            Run::Command { argv, .. } if is_allowed(&argv) => draft.put(&at("command"), argv),
            _ => {
                draft.ask(&at("command"), "arguments, the program first: an absolute path, or one in ./tools/bin/; it gets the input as JSON on standard input");
                let pointer = action.pointer.clone();
                draft.lose(
                    pointer,
                    Weight::Behaviour,
                    format!("how `{}` is run cannot be said in a tools.json", action.name),
                );
            }
        }
        let timeout = action.timeout_ms.or(package.timeout_ms);
        draft.put_some(&at("timeoutSec"), timeout.map(|timeout| timeout.div_ceil(1000)));
        let mut names: Vec<&str> = action.environment.iter().map(String::as_str).collect();
        names.extend(
            package
                .inputs
                .iter()
                .filter(|input| input.source == InputSource::Owner)
                .map(|input| run::variable(package, input)),
        );
        names.retain(|name| (crate::shape::patterns::ENV_NAME.matches)(name));
        if !names.is_empty() {
            draft.put(&at("envPassthrough"), names);
        }
    }
    for (index, input) in package.inputs.iter().enumerate() {
        let name = run::variable(package, input);
        if input.source == InputSource::Owner && !(crate::shape::patterns::ENV_NAME.matches)(name) {
            let reason = format!("`{name}` has no place: it is no name of a variable");
            draft.lose(run::place_of_input(package, index), Weight::Behaviour, reason);
        }
    }
    let secrets: Vec<_> = package
        .inputs
        .iter()
        .filter(|input| input.secret)
        .map(|input| format!("`{}`", input.name))
        .collect();
    if !secrets.is_empty() {
        let reason =
            format!("a tools.json cannot say that {} must be kept secret", secrets.join(", "));
        draft.lose(crate::json::Pointer::root(), Weight::Safety, reason);
    }
}

/// A program of a tools.json is an absolute path, or one in its own folder.
fn is_allowed(argv: &[String]) -> bool {
    argv.first().is_some_and(|program| {
        program.starts_with('/')
            || crate::dialect::agentcli::normalised_program(program).starts_with("./tools/bin/")
    })
}
