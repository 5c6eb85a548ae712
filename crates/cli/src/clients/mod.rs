//! Clients: programs that start servers, and where they keep their settings.

mod entry;
mod settings;

use std::path::{Path, PathBuf};

use import::edit::Form;

pub(crate) use entry::{ours, program};
pub(crate) use settings::{Settings, read};

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
        let servers = |keys: &[&str]| Form::Json(keys.iter().map(|&key| key.to_owned()).collect());
        let usual = || servers(&["mcpServers"]);
        let of_user = |path: PathBuf, form: Form| Place { path, form, project: None };
        let of_project = |name: &str, form: Form| Place {
            path: project.join(name),
            form,
            project: Some(project.to_owned()),
        };
        match self {
            Self::ClaudeDesktop => {
                let file = user.settings.join("Claude/claude_desktop_config.json");
                vec![of_user(file, usual())]
            }
            Self::ClaudeCode => {
                let file = user.home.join(".claude.json");
                let own = project.to_str().map(|path| Place {
                    path: file.clone(),
                    form: servers(&["projects", path, "mcpServers"]),
                    project: Some(project.to_owned()),
                });
                let mut places = vec![of_project(".mcp.json", usual())];
                places.extend(own);
                places.push(of_user(file, usual()));
                places
            }
            Self::Cursor => vec![
                of_project(".cursor/mcp.json", usual()),
                of_user(user.home.join(".cursor/mcp.json"), usual()),
            ],
            Self::VsCode => vec![
                of_project(".vscode/mcp.json", servers(&["servers"])),
                of_user(user.settings.join("Code/User/mcp.json"), servers(&["servers"])),
            ],
            Self::Codex => vec![
                of_project(".codex/config.toml", Form::Toml),
                of_user(user.home.join(".codex/config.toml"), Form::Toml),
            ],
            Self::Gemini => vec![
                of_project(".gemini/settings.json", usual()),
                of_user(user.home.join(".gemini/settings.json"), usual()),
            ],
        }
    }
}

/// The names that can be typed.
pub(crate) fn names() -> String {
    let names: Vec<_> = Client::ALL.iter().map(|(_, name)| *name).collect();
    format!("{} or all", names.join(", "))
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
