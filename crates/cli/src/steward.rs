//! What a gateway has done for it: the packages of the home are found, and what the policy wants done is done.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use gateway::steward::{By, Deed, Package, Standing, Steward, Trouble};
use host::{Settings, Tool, Violation};
use install::revoked::{self, State};
use install::{Contents, catalog};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::ask::Ask;
use crate::changes::ASKED_BY;
use crate::commands::call::act;
use crate::exit::Failure;
use crate::home::Home;
use crate::installed::{self, Named};
use crate::printer::Printer;
use crate::{owner, steps};

/// The owner's program, which works for a gateway.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) home: Home,
    pub(crate) printer: Printer,
}

impl Steward for Owner {
    fn files(&self) -> Vec<PathBuf> {
        let names =
            [catalog::BASE, catalog::LOCAL, install::lockfile::NAME, revoked::NAME, "policy.toml"];
        names.iter().map(|name| self.home.path().join(name)).collect()
    }

    fn settings(&self) -> Result<Settings, String> {
        owner::settings(&self.home).map_err(|failure| words(&failure))
    }

    fn packages(&self) -> Result<Vec<Package>, String> {
        let at = installed::home(&self.home);
        let contents = at.read().map_err(|error| error.to_string())?;
        let all = contents.listed();
        Ok(all.iter().map(|one| self.package(&installed::named_of(one), &contents)).collect())
    }

    fn violated(&self, tool: &Tool, violation: &Violation) {
        act(violation, tool, &self.home, Ask::Nobody, self.printer);
    }

    fn deed(&self, by: By, deed: &Deed) -> Result<Value, Trouble> {
        let (words, typed) = typed(deed);
        self.run(by, &words, &typed)
    }
}

impl Owner {
    fn package(&self, named: &Named, contents: &Contents) -> Package {
        let (tool, files) = match self.tool(named) {
            Ok((tool, files)) => (Ok(tool), files),
            Err(failure) => (Err(words(&failure)), Vec::new()),
        };
        let version = named.pinned.as_ref().map(|pinned| pinned.version.clone());
        let standing = match contents.revoked.get(&named.id).map(|one| one.state) {
            Some(State::Revoked) => Standing::Revoked,
            Some(State::Unconfirmed) => Standing::Unconfirmed,
            None if named.enabled => Standing::Enabled,
            None => Standing::Disabled,
        };
        Package {
            id: named.id.clone(),
            version,
            is_enabled: named.enabled,
            standing,
            trust: named.trust,
            tool,
            files,
        }
    }

    /// Runs a verb in a process of its own, as at a terminal where nobody can be asked; what it tells programs.
    fn run(&self, by: By, words: &[String], typed: &str) -> Result<Value, Trouble> {
        let broken = |doing: &str, error: std::io::Error| Trouble {
            message: format!(
                "failed to {doing} `haft {}`",
                words.first().map_or("", String::as_str)
            ),
            causes: vec![error.to_string()],
            hints: Vec::new(),
        };
        let program = sandbox::own_program().map_err(|error| broken("find", error))?;
        let home = std::path::absolute(self.home.path()).map_err(|error| broken("find", error))?;
        let mut command = Command::new(program);
        command.arg("--home").arg(home).args(["--json", "--non-interactive"]);
        self.home.tell_state(&mut command);
        let asked_by = match by {
            By::Console => "console",
            By::Token => "token",
        };
        // What is named is no file of the folder that somebody happens to be in, and no project of it is meant.
        command.env(ASKED_BY, asked_by).current_dir("/").args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| broken("start", error))?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read has said why by then.
            let _ = stdin.write_all(typed.as_bytes());
        }
        let output = child.wait_with_output().map_err(|error| broken("wait for", error))?;
        let told: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        match told {
            Some(told) if told["ok"] == false && told["error"].is_object() => {
                Err(trouble(&told["error"]))
            }
            Some(told) => Ok(told),
            None if output.status.success() => Ok(Value::Null),
            None => Err(Trouble {
                message: format!("`haft {}` ended with {}", words[0], output.status),
                causes: String::from_utf8_lossy(&output.stderr)
                    .lines()
                    .map(str::to_owned)
                    .collect(),
                hints: Vec::new(),
            }),
        }
    }

    fn tool(&self, named: &Named) -> Result<(Tool, Vec<PathBuf>), Failure> {
        let (mut tool, files) = installed::with_files(named, &self.home)?;
        if tool.package.chain.is_some() {
            steps::link_one(&mut tool, &[], &self.home, Printer::silent());
        }
        Ok((tool, files))
    }
}

/// What is wrong, and what would mend it.
fn words(failure: &Failure) -> String {
    let hints = failure.hints.iter().map(|hint| format!("; {hint}"));
    format!("{}{}", failure.message, hints.collect::<String>())
}

/// What is typed for a deed: the words, and what stands on standard input. What comes from a page is never an option.
fn typed(deed: &Deed) -> (Vec<String>, Zeroizing<String>) {
    let mut stdin = Zeroizing::new(String::new());
    let words: Vec<&str> = match deed {
        Deed::Search { words } => vec!["search", "--", words],
        Deed::Card { what } => vec!["show", "--", what],
        Deed::Install { what, card, values } => {
            for (name, value) in values {
                stdin.push_str(name);
                stdin.push('=');
                stdin.push_str(value.expose());
                stdin.push('\n');
            }
            vec!["install", "--yes", "--env-stdin", "--card", card, "--", what]
        }
        Deed::Bring { id } => vec!["install", "--yes", "--", id],
        Deed::Reset => vec!["reset", "--yes"],
        Deed::Status { id } => vec!["status", "--", id],
        Deed::Newer { id } => vec!["update", "--check", "--", id],
        Deed::Update { id, digest } => vec!["update", "--yes", "--expect", digest, "--", id],
        Deed::Rollback { id } => vec!["rollback", "--", id],
        Deed::Enable { id } => vec!["enable", "--", id],
        Deed::Disable { id } => vec!["disable", "--", id],
        Deed::Remove { id } => vec!["remove", "--", id],
        Deed::Revoke { id } => vec!["revoke", "--yes", "--", id],
        Deed::RevokeAll => vec!["revoke", "--yes", "--all"],
        Deed::Secrets => vec!["secret", "list"],
        Deed::KeepSecret { package, name, value } => {
            stdin.push_str(value.expose());
            vec!["secret", "set", "--", package, name]
        }
        Deed::ForgetSecret { package, name } => vec!["secret", "rm", "--", package, name],
        Deed::Rank { capability } => {
            vec!["rank", "--installed", "--limit", "1000", "--", capability]
        }
        Deed::Doctor => vec!["doctor"],
    };
    (words.into_iter().map(str::to_owned).collect(), stdin)
}

/// What a verb said is wrong.
fn trouble(error: &Value) -> Trouble {
    let texts = |value: &Value| {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let details = &error["details"];
    Trouble {
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        causes: [texts(&details["problems"]), texts(&details["causes"])].concat(),
        hints: texts(&error["hints"]),
    }
}

#[cfg(test)]
mod tests {
    use vault::Secret;

    use super::*;

    #[test]
    fn what_comes_from_a_page_is_no_option_and_no_secret_is_an_argument() {
        let hostile = || "--home=/tmp/x".to_owned();
        let value = || Secret::new("s3cret".to_owned()).unwrap();
        for deed in [
            Deed::Search { words: hostile() },
            Deed::Card { what: hostile() },
            Deed::Install {
                what: hostile(),
                card: "sha256:0".into(),
                values: vec![("A".into(), value())],
            },
            Deed::Revoke { id: hostile() },
            Deed::KeepSecret { package: hostile(), name: "A".into(), value: value() },
            Deed::Rank { capability: hostile() },
        ] {
            let (words, _) = typed(&deed);
            let ends = words.iter().position(|word| word == "--").unwrap();
            assert!(words.iter().position(|word| *word == hostile()).unwrap() > ends, "{words:?}");
            assert!(!words.iter().any(|word| word.contains("s3cret")), "{words:?}");
        }
    }
}
