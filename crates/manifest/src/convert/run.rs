//! How a tool is run, seen from a target: what of it can be said there.

use crate::json::Pointer;
use crate::model::{Action, Entry, Implementation, Input, Invocation, Package};

/// How a call works, in the terms that several dialects share.
#[derive(Debug)]
pub(super) enum Run<'p> {
    /// A command that reads the input as JSON on standard input.
    Command { argv: Vec<String>, implementation: &'p Implementation },
    /// A request that carries the input as JSON.
    Request { method: &'p str, url: String, implementation: &'p Implementation },
    /// Something only its own dialect can say.
    Other,
}

/// How the only action of a package is called.
pub(super) fn of<'p>(package: &'p Package, action: &'p Action) -> Run<'p> {
    let Some(implementation) = of_action(package, action) else { return Run::Other };
    run(implementation, &action.invocation)
}

/// How an action is called through one of the implementations.
pub(super) fn run<'p>(implementation: &'p Implementation, invocation: &'p Invocation) -> Run<'p> {
    match (&implementation.entry, invocation) {
        (Entry::Argv { argv, cwd: None, .. }, Invocation::StdinJson { argv_template }) => {
            let plain = argv_template.iter().all(|element| !element.contains("${"));
            if !plain {
                return Run::Other;
            }
            Run::Command {
                argv: argv.iter().chain(argv_template).cloned().collect(),
                implementation,
            }
        }
        (Entry::Argv { argv, cwd: None, .. }, Invocation::ArgvJson | Invocation::Http { .. }) => {
            Run::Command { argv: argv.clone(), implementation }
        }
        (Entry::Http { base, .. }, Invocation::Http { method, path, headers })
            if headers.is_empty() && !path.contains("${") =>
        {
            Run::Request { method, url: joined(base, path), implementation }
        }
        (Entry::Http { base, method: Some(method) }, Invocation::ArgvJson) => {
            Run::Request { method, url: base.clone(), implementation }
        }
        _ => Run::Other,
    }
}

/// The implementation an action runs by: its own in a tools.json, else the first.
fn of_action<'p>(package: &'p Package, action: &Action) -> Option<&'p Implementation> {
    package
        .implementations
        .iter()
        .find(|implementation| implementation.id == action.name)
        .or_else(|| package.implementations.first())
}

/// Whether all actions are started by one program, as an install-manifest needs it.
pub(super) fn share_a_program(package: &Package) -> bool {
    let mut programs =
        package.implementations.iter().map(|implementation| match &implementation.entry {
            Entry::Argv { argv, .. } => argv.first(),
            _ => None,
        });
    match package.dialect {
        crate::dialect::Dialect::Agentcli => {
            let first = programs.next();
            programs.all(|program| Some(program) == first)
        }
        _ => true,
    }
}

/// The variable a tool finds an input in: the one that is set to it, else the one of its name.
pub(super) fn variable<'p>(package: &'p Package, input: &'p Input) -> &'p str {
    let filled_in = format!("${{user_config.{}}}", input.name);
    let set = package.implementations.iter().find_map(|implementation| {
        let Entry::McpStdio { env, .. } = &implementation.entry else { return None };
        env.iter().find(|(_, value)| *value == filled_in).map(|(name, _)| name.as_str())
    });
    set.unwrap_or(&input.name)
}

/// Where an input stands in its document.
pub(super) fn place_of_input(package: &Package, index: usize) -> Pointer {
    match package.dialect {
        crate::dialect::Dialect::Mcpb => {
            Pointer::root().key("user_config").key(&package.inputs[index].name)
        }
        _ => Pointer::root().key("env").index(index),
    }
}

fn joined(base: &str, path: &str) -> String {
    if path.is_empty() {
        return base.to_owned();
    }
    format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/'))
}
