//! What of this machine a program has to read to start.

use std::path::{Component, Path, PathBuf};

/// The files of this machine, as far as somebody lets us look.
pub trait Machine {
    /// What is at an absolute path, and its path without links.
    fn at(&self, path: &Path) -> Option<(Kind, PathBuf)>;
    /// The owner's folder, without links.
    fn home(&self) -> Option<PathBuf>;
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// Folders whose files every program sees.
const SYSTEM: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt/homebrew", "/nix/store", "/gnu/store"];

/// Files that stand at the top of a project, or of what was made for one.
const MARKS: [&str; 9] = [
    "package.json",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "Cargo.toml",
    "go.mod",
    "deno.json",
    "pyvenv.cfg",
    ".git",
];

/// How far above a file its project is looked for.
const MOST_ABOVE: usize = 8;

/// What a file ends with that a program is given to run. No other file among arguments is read by a word of settings alone.
const SCRIPTS: [&str; 18] = [
    "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx", "py", "pyz", "rb", "php", "pl", "lua",
    "sh", "jar", "wasm", "dll",
];

/// Whether an argument names a file that is run.
pub(super) fn is_script(argument: &str) -> bool {
    let extension = Path::new(argument).extension().and_then(|one| one.to_str());
    extension.is_some_and(|one| SCRIPTS.contains(&one))
}

/// A path of settings as an absolute one: from the folder that the server starts in, if something is there.
pub(super) fn absolute(text: &str, folder: Option<&str>, machine: &dyn Machine) -> Option<String> {
    let path = Path::new(text);
    if path.is_absolute() || !text.contains('/') && !text.contains('.') {
        return None;
    }
    let joined = Path::new(folder?).join(path);
    machine.at(&joined)?;
    let mut plain = PathBuf::new();
    for part in joined.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain.to_str().map(str::to_owned)
}

/// What has to be read so that a file can be run: the project it is in, or the folder around it; the file alone where
/// that folder is one that holds everything of the owner's.
pub(super) fn needed(path: &str, machine: &dyn Machine) -> Option<String> {
    let path = Path::new(path);
    if !path.is_absolute() || SYSTEM.iter().any(|folder| path.starts_with(folder)) {
        return None;
    }
    let (kind, found) = machine.at(path)?;
    if kind != Kind::File || SYSTEM.iter().any(|folder| found.starts_with(folder)) {
        // A link of a virtual environment leads to the system's program; the environment is needed all the same.
        let around = path.parent()?.parent()?;
        machine.at(&around.join("pyvenv.cfg"))?;
        return machine.at(around)?.1.to_str().map(str::to_owned);
    }
    let home = machine.home();
    let is_whole = |folder: &Path| {
        folder.parent().is_none_or(|above| above.parent().is_none())
            || home.as_ref().is_some_and(|home| home.starts_with(folder))
    };
    let mut above = found.ancestors().skip(1).take(MOST_ABOVE).take_while(|one| !is_whole(one));
    let marked =
        above.find(|folder| MARKS.iter().any(|mark| machine.at(&folder.join(mark)).is_some()));
    let own = found.parent().filter(|folder| !is_whole(folder));
    marked.or(own).unwrap_or(&found).to_str().map(str::to_owned)
}
