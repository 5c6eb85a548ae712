//! A registry that is served, and verbs that ask it.

use serde_json::{Value, json};

use super::common::served::Served;
use super::common::{Desk, Ran};

/// A registry, and a token for everything in it.
pub(crate) struct Opened {
    pub(crate) served: Served,
    pub(crate) token: String,
}

impl Opened {
    pub(crate) fn start(desk: &Desk, home: &str, more: &[&str]) -> Self {
        let served = Served::at(&desk.path(home), more);
        let mut made =
            haft(desk, home, None, &["registry", "token", "new", "--namespace", "*", "--quiet"]);
        made.stdout.truncate(made.stdout.trim_end().len());
        assert_eq!(made.code, 0, "{}", made.stderr);
        Self { served, token: made.stdout }
    }

    pub(crate) fn url(&self) -> &str {
        &self.served.url
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.served.get(path)
    }

    pub(crate) fn import(&self, desk: &Desk, source: &str, more: &[&str]) -> Ran {
        let arguments = [&["registry", "import", source, "--registry", self.url()], more].concat();
        haft(desk, "home", Some(&self.token), &arguments)
    }
}

pub(crate) fn haft(desk: &Desk, home: &str, token: Option<&str>, arguments: &[&str]) -> Ran {
    let variables: Vec<_> = token.into_iter().map(|token| ("HAFT_TOKEN", token)).collect();
    haft_with(desk, home, &variables, arguments)
}

pub(crate) fn haft_with(
    desk: &Desk,
    home: &str,
    variables: &[(&str, &str)],
    arguments: &[&str],
) -> Ran {
    let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
    command.current_dir(desk.0.path()).arg("--home").arg(desk.path(home)).args(arguments);
    command.env_remove("REGISTRY_BASE_URL").env_remove("HAFT_TOKEN");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn weather(name: &str, version: &str) -> Value {
    json!({"name": format!("com.example/{name}"), "description": "Weather", "version": version,
        "packages": [{"registryType": "npm", "identifier": "@example/weather", "version": version,
            "transport": {"type": "stdio"}}]})
}

pub(crate) fn counts(report: &Value) -> [usize; 4] {
    ["imported", "unchanged", "refused", "skipped"].map(|key| report[key].as_array().unwrap().len())
}
