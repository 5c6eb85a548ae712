//! Whether a manifest can do without the files around it.

use std::path::Path;

use manifest::model::{Acquire, Entry, Package};

/// What the name of a program ends in that somebody wrote for an interpreter.
const SCRIPTS: [&str; 12] =
    ["py", "pyz", "js", "mjs", "cjs", "ts", "sh", "bash", "rb", "pl", "jar", "wasm"];

/// The first file of its own that a package speaks of: where only its manifest was fetched, it is not there.
pub fn own_file(package: &Package) -> Option<String> {
    if let Acquire::LocalPath { path: Some(path) } = &package.acquire {
        return Some(path.clone());
    }
    let listed = package.tests.iter().chain(&package.examples).next().cloned();
    // What is acquired by itself brings its files along.
    let comes_along = matches!(package.acquire, Acquire::Bundle | Acquire::LocalPath { .. });
    let named = || package.implementations.iter().find_map(|one| named_by(&one.entry));
    listed.or_else(|| comes_along.then(named).flatten())
}

/// The file that is started, where that is no program of the machine.
fn named_by(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Argv { argv, .. } | Entry::McpStdio { argv, .. } => in_command(argv),
        Entry::NodeModule { main, .. } => Some(main.clone()),
        Entry::PythonCallable { callable } => Some(callable.clone()),
        Entry::McpHttp { .. }
        | Entry::Http { .. }
        | Entry::McpTool { .. }
        | Entry::KnownServer { .. }
        | Entry::A2a { .. }
        | Entry::Undeclared => None,
    }
}

/// A path beside the manifest in a command: its program, or a script among its arguments.
fn in_command(argv: &[String]) -> Option<String> {
    let is_own = |(at, text): &(usize, &String)| {
        let path = Path::new(text.as_str());
        if text.contains("${__dirname}") {
            return true;
        }
        if path.is_absolute() || text.contains("://") || text.starts_with('-') {
            return false;
        }
        let ending = path.extension().and_then(|ending| ending.to_str());
        text.starts_with("./")
            || (*at == 0 && text.contains('/'))
            || ending.is_some_and(|ending| SCRIPTS.contains(&ending))
    };
    argv.iter().enumerate().find(is_own).map(|(_, text)| text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_files_of_its_own_or_only_programs_of_the_machine() {
        let of = |words: &str| in_command(&words.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for (words, file) in [
            ("./tools/bin/x", Some("./tools/bin/x")),
            ("bin/x --flag", Some("bin/x")),
            ("python3 tools/change_case.py upper", Some("tools/change_case.py")),
            ("node ./server", Some("./server")),
            ("node ${__dirname}/server", Some("${__dirname}/server")),
            ("python3 -m acme.tool", None),
            ("jq .", None),
            ("curl --json @- https://a.example/x.py", None),
            ("/usr/bin/env python3", None),
            ("convert --type application/json", None),
        ] {
            assert_eq!(of(words).as_deref(), file, "{words}");
        }
    }
}
