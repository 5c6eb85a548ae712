//! What must not be planted in a folder that a walled process may write.
//!
//! Each of these makes another program of the owner run something the next
//! time it looks at the folder: a shell that starts, git, an editor, an agent.

/// Names at the top of a writable folder that stay as they are. One that is
/// not there yet is kept out by a placeholder while the process runs.
pub const PROTECTED: [&str; 32] = [
    // Agents and their tools.
    ".mcp.json",
    ".mcp",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    // Editors.
    ".vscode",
    ".idea",
    // Shells.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".envrc",
    // Git: its settings name programs to run. A repository is treated apart.
    ".gitconfig",
    ".gitmodules",
    ".ripgreprc",
    // What package managers and others run by themselves.
    ".husky",
    ".pre-commit-config.yaml",
    ".npmrc",
    ".yarnrc.yml",
    ".cargo",
    ".devcontainer",
    ".gdbinit",
    ".ssh",
];

/// The names of [`PROTECTED`] that are folders when a placeholder is made.
#[cfg(target_os = "linux")]
pub(crate) const FOLDERS: [&str; 11] = [
    ".mcp",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".vscode",
    ".idea",
    ".husky",
    ".cargo",
    ".devcontainer",
    ".ssh",
];

/// The repository in a writable folder. It may be worked in, except for what git executes.
pub(crate) const REPOSITORY: &str = ".git";

/// What git executes or takes its orders from, inside a repository.
pub(crate) const IN_REPOSITORY: [&str; 5] =
    ["hooks", "config", "config.worktree", "modules", COMMON];

/// Names another folder for git to take hooks and settings from.
pub(crate) const COMMON: &str = "commondir";

/// Without one of them a folder is no repository; with all of them git takes the folder itself for
/// one. So the first that is missing is kept out: preferably the one whose name nobody gives to git as an argument.
pub(crate) const OF_A_REPOSITORY: [&str; 3] = ["refs", "objects", "HEAD"];

/// The names that stay as they are at the top of every writable folder, with those inside a repository.
pub fn protected_names() -> impl Iterator<Item = String> {
    let git = IN_REPOSITORY.iter().map(|name| format!("{REPOSITORY}/{name}"));
    PROTECTED.iter().map(|name| (*name).to_owned()).chain(git)
}
