//! What was acquired for a tool when it was installed: commands and libraries that only this tool finds.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use manifest::model::Acquire;

/// Where the artefacts of a tool lie. Paths are absolute, and without links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// The folder that holds all of it.
    pub folder: Option<PathBuf>,
    /// Folders of commands. They go before those of the machine.
    pub path: Vec<PathBuf>,
    /// The folder of Python packages.
    pub python: Option<PathBuf>,
    /// The folder of Node packages.
    pub node: Option<PathBuf>,
    /// The command of the package itself, where it has one that stands out.
    pub main: Option<String>,
}

impl Brought {
    /// A search path that begins with the tool's own commands.
    pub(crate) fn before<'s>(&self, search: &'s OsStr) -> Cow<'s, OsStr> {
        if self.path.is_empty() {
            return search.into();
        }
        let all = self.path.iter().cloned().chain(std::env::split_paths(search));
        // A name that cannot stand in a search path leads nowhere.
        std::env::join_paths(all).map_or(search.into(), Cow::Owned)
    }

    /// The variables that lead a runtime to the libraries.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let python = self.python.as_deref().map(|folder| ("PYTHONPATH", folder));
        let node = self.node.as_deref().map(|folder| ("NODE_PATH", folder));
        python.into_iter().chain(node)
    }

    /// A command as it is started now that its package is here. What a manifest has fetched and run at once (`npx`,
    /// `uvx`, `pipx run`) was fetched when it was installed, so the command of that package is what is left to run.
    pub(crate) fn started<'a>(&self, argv: &'a [String], acquire: &Acquire) -> Cow<'a, [String]> {
        let (Acquire::Npm { package, .. } | Acquire::Pip { package, .. }) = acquire else {
            return argv.into();
        };
        let Some(main) = &self.main else { return argv.into() };
        let Some((named, rest)) = fetched_at_once(argv) else { return argv.into() };
        let command = match named {
            Named::Package(named) if is_package(named, package) => main.clone(),
            Named::Command { of, command } if is_package(of, package) => command.to_owned(),
            // It would fetch something else than what was agreed to, and cannot inside the walls.
            Named::Package(_) | Named::Command { .. } => return argv.into(),
        };
        std::iter::once(command).chain(rest.iter().cloned()).collect()
    }
}

/// What a command that fetches and runs at once names.
enum Named<'a> {
    /// A package, whose own command is meant.
    Package(&'a str),
    /// A package, and a command of it.
    Command { of: &'a str, command: &'a str },
}

/// Parts a command that fetches and runs at once: what it names, and what is given to that.
fn fetched_at_once(argv: &[String]) -> Option<(Named<'_>, &[String])> {
    let (first, mut rest) = argv.split_first()?;
    let program = Path::new(first).file_name()?.to_str()?;
    let (package_flags, with_value): (&[&str], &[&str]) = match (program, rest) {
        ("npx" | "bunx" | "pnpx", _) => (&["-p", "--package"], &["--registry"]),
        ("npm" | "pnpm", [verb, after @ ..]) if verb == "exec" => {
            rest = after;
            (&["-p", "--package"], &["--registry"])
        }
        ("uvx", _) => (&["--from"], &["--python", "-p", "--index-url", "--index"]),
        ("uv", [tool, run, after @ ..]) if tool == "tool" && run == "run" => {
            rest = after;
            (&["--from"], &["--python", "-p", "--index-url", "--index"])
        }
        ("pipx", [verb, after @ ..]) if verb == "run" => {
            rest = after;
            (&["--spec"], &["--python", "--index-url"])
        }
        _ => return None,
    };
    let mut of = None;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let (flag, joined) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
            _ => (word.as_str(), None),
        };
        if package_flags.contains(&flag) {
            of = joined.or_else(|| rest.split_off_first().map(String::as_str));
        } else if with_value.contains(&flag) {
            if joined.is_none() {
                rest.split_off_first();
            }
        } else if !word.starts_with('-') {
            return Some(match of {
                Some(of) => (Named::Command { of, command: word }, rest),
                None => (Named::Package(word), rest),
            });
        }
    }
    None
}

/// Whether a word names this package, whatever version of it.
fn is_package(word: &str, package: &str) -> bool {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['_', '.'], "-");
    let after_name =
        |rest: &str| rest.is_empty() || rest.starts_with(['@', '=', '<', '>', '~', '!', '[']);
    let (word, package) = (plain(word), plain(package));
    word.strip_prefix(package.as_str()).is_some_and(after_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(argv: &str, acquire: &Acquire) -> String {
        let words: Vec<_> = argv.split(' ').map(str::to_owned).collect();
        let brought = Brought { main: Some("main".into()), ..Brought::default() };
        brought.started(&words, acquire).join(" ")
    }

    #[test]
    fn what_was_to_be_fetched_and_run_is_only_run() {
        let npm = Acquire::Npm { package: "@acme/tool".into(), version_spec: None };
        for (argv, runs) in [
            ("npx -y @acme/tool@1.2.0 --stdio", "main --stdio"),
            ("npx @acme/tool", "main"),
            ("npx --yes --package=@acme/tool other x", "other x"),
            ("npm exec -p @acme/tool other", "other"),
            ("npx -y @acme/toolbox", "npx -y @acme/toolbox"),
            ("node x.js", "node x.js"),
            ("tool serve", "tool serve"),
        ] {
            assert_eq!(started(argv, &npm), runs);
        }
        let pip = Acquire::Pip { package: "my_tool".into(), version_spec: None };
        for (argv, runs) in [
            ("uvx my-tool==1.0 serve", "main serve"),
            ("uvx --python 3.12 my-tool[cli]", "main"),
            ("uv tool run --from my-tool cmd -v", "cmd -v"),
            ("pipx run my.tool", "main"),
            ("uvx another", "uvx another"),
            ("uvx", "uvx"),
        ] {
            assert_eq!(started(argv, &pip), runs);
        }
        assert_eq!(started("npx x", &Acquire::Bundle), "npx x");
    }
}
