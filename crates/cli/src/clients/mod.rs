//! Clients: programs that start servers, and where they keep their settings.

mod entry;
mod settings;

use std::path::{Path, PathBuf};

use import::edit::Form;

pub(crate) use entry::{ours, program};
pub(crate) use settings::{Readers, Settings, read};

use crate::exit::{Exit, Failure};

/// A client whose settings are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Codex,
    Gemini,
}

/// A file of a client, and what its servers are below.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) form: Form,
    /// The project that it is of, where its servers are started in it.
    pub(crate) project: Option<PathBuf>,
}

impl Client {
    const ALL: [(Client, &'static str); 6] = [
        (Client::ClaudeDesktop, "claude-desktop"),
        (Client::ClaudeCode, "claude-code"),
        (Client::Cursor, "cursor"),
        (Client::VsCode, "vscode"),
        (Client::Codex, "codex"),
        (Client::Gemini, "gemini"),
    ];

    /// The names of all of them.
    pub(crate) fn names() -> [&'static str; 6] {
        Self::ALL.map(|(_, name)| name)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The clients that a name stands for; none where it is no client's.
    pub(crate) fn named(name: &str) -> Vec<Self> {
        let is_meant = |known: &str| known == name || name == "all";
        Self::ALL.iter().filter(|(_, known)| is_meant(known)).map(|(client, _)| *client).collect()
    }

    /// The files that it may have for a user and in a folder, whether they are there or not.
    pub(crate) fn places(self, user: &User, project: &Path) -> Vec<Place> {
        let own = self.of_user(user);
        // This client keeps settings of projects among the user's, too.
        let among = project.to_str().filter(|_| self == Self::ClaudeCode).map(|path| Place {
            path: own.path.clone(),
            form: below(&["projects", path, "mcpServers"]),
            project: Some(project.to_owned()),
        });
        self.of_project(project).into_iter().chain(among).chain([own]).collect()
    }

    /// The file of a user, for all that they do.
    pub(crate) fn of_user(self, user: &User) -> Place {
        let path = match self {
            Self::ClaudeDesktop => user.settings.join("Claude/claude_desktop_config.json"),
            Self::ClaudeCode => user.home.join(".claude.json"),
            Self::Cursor => user.home.join(".cursor/mcp.json"),
            Self::VsCode => user.settings.join("Code/User/mcp.json"),
            Self::Codex => user.home.join(".codex/config.toml"),
            Self::Gemini => user.home.join(".gemini/settings.json"),
        };
        Place { path, form: self.form(), project: None }
    }

    /// The file of a project, where it looks for one.
    pub(crate) fn of_project(self, project: &Path) -> Option<Place> {
        let name = match self {
            Self::ClaudeDesktop => return None,
            Self::ClaudeCode => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::VsCode => ".vscode/mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Gemini => ".gemini/settings.json",
        };
        let project = project.to_owned();
        Some(Place { path: project.join(name), form: self.form(), project: Some(project) })
    }

    fn form(self) -> Form {
        match self {
            Self::Codex => Form::Toml,
            Self::VsCode => below(&["servers"]),
            _ => below(&["mcpServers"]),
        }
    }
}

fn below(keys: &[&str]) -> Form {
    Form::Json(keys.iter().map(|&key| key.to_owned()).collect())
}

/// The names that can be typed.
pub(crate) fn names() -> String {
    format!("{} or all", Client::names().join(", "))
}

/// The folder of the project: the one where we are.
pub(crate) fn project() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to find the current folder").cause(error)
    })
}

/// The folders of a user.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) home: PathBuf,
    /// Where programs keep settings of theirs.
    pub(crate) settings: PathBuf,
}

impl User {
    /// The user of this process.
    pub(crate) fn of_process() -> Result<Self, Failure> {
        let unknown =
            || Failure::new(Exit::Unavailable, "it is not known where your own folder is");
        let home = std::env::home_dir().filter(|home| home.is_absolute()).ok_or_else(unknown)?;
        let named = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let settings = if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else if cfg!(windows) {
            named("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"))
        } else {
            named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
        };
        Ok(Self { home, settings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_name_and_files() {
        let user = User { home: "/home/ann".into(), settings: "/home/ann/.config".into() };
        for (index, (client, name)) in Client::ALL.iter().enumerate() {
            assert_eq!(*client as usize, index);
            assert_eq!(Client::named(name), [*client]);
            assert!(!client.places(&user, Path::new("/p")).is_empty());
        }
        assert_eq!(Client::named("all").len(), 6);
        assert!(Client::named("emacs").is_empty());
        let places = Client::ClaudeCode.places(&user, Path::new("/p"));
        let paths: Vec<_> = places.iter().map(|place| place.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/p/.mcp.json", "/home/ann/.claude.json", "/home/ann/.claude.json"]);
    }
}
