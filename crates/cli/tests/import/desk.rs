//! A person with a home, a project, and clients.

use std::fs;
use std::path::{Path, PathBuf};

use super::common::{Ran, repository};

pub(crate) struct Desk(tempfile::TempDir);

impl Desk {
    /// One with a server in a project of their own: `project/dice/server.py`.
    pub(crate) fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        let dice = repository().join("examples/install-manifest/dice-server/dice_server.py");
        desk.write("project/dice/server.py", &fs::read_to_string(dice).unwrap());
        desk.write("project/dice/pyproject.toml", "");
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        super::common::write_below(&self.path(""), name, text)
    }

    /// The path of the server, as settings have it.
    pub(crate) fn server(&self) -> String {
        self.path("project/dice/server.py").to_str().unwrap().to_owned()
    }

    pub(crate) fn haft(&self, arguments: &[&str]) -> Ran {
        self.haft_in(&self.path("project"), arguments)
    }

    fn haft_in(&self, folder: &Path, arguments: &[&str]) -> Ran {
        let home = self.path("home");
        let all = [&["--home", home.to_str().unwrap()], arguments].concat();
        self.run_in(folder, &all)
    }

    /// The same with the home that is meant where nobody names any.
    pub(crate) fn haft_at_home(&self, arguments: &[&str]) -> Ran {
        self.run_in(&self.path("project"), arguments)
    }

    fn run_in(&self, folder: &Path, arguments: &[&str]) -> Ran {
        let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
        command
            .current_dir(folder)
            .args(arguments)
            .env_remove("HAFT_HOME")
            .env("HOME", self.path(""))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("NO_COLOR");
        let output = command.output().unwrap();
        Ran {
            code: output.status.code().expect("haft ends by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn done(&self, arguments: &[&str]) -> Ran {
        let ran = self.haft(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}\n{}", ran.stdout, ran.stderr);
        ran
    }

    /// What became of each, by its name.
    pub(crate) fn states(&self, arguments: &[&str], code: i32) -> Vec<(String, String)> {
        let ran = self.haft(&[arguments, &["--json"]].concat());
        assert_eq!(ran.code, code, "{arguments:?}: {}\n{}", ran.stdout, ran.stderr);
        let told = ran.json();
        let entries = told["entries"].as_array().unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        entries.iter().map(|entry| (text(&entry["name"]), text(&entry["state"]))).collect()
    }

    /// Every byte below the home but its vault, as one text.
    pub(crate) fn everything(&self) -> String {
        let mut whole = String::new();
        let mut folders = vec![self.path("home")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else if let Ok(bytes) = fs::read(&path) {
                    whole += &String::from_utf8_lossy(&bytes);
                }
            }
        }
        whole
    }
}

/// Pairs as they are compared.
pub(crate) fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(one, other)| (one.to_owned(), other.to_owned())).collect()
}
