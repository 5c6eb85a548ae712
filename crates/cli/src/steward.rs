//! What a gateway has done for it: the packages of the home are found, and what the policy wants done is done.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use gateway::steward::{By, Deed, Files, Package, SignIn, SigningIn, Standing, Steward, Trouble};
use host::{CallError, Settings, Tool, Violation};
use install::revoked::{self, State};
use install::{Contents, catalog};
use manifest::export::Context;
use prove::measured::All;
use serde_json::Value;
use vault::Secret;
use zeroize::Zeroizing;

use crate::ask::Ask;
use crate::changes::{ASKED_AS, ASKED_BY};
use crate::commands::call::{act, remedies};
use crate::exit::Failure;
use crate::home::Home;
use crate::installed::{self, Named};
use crate::printer::{Printer, line};
use crate::{commands, owner, remote, steps};

/// The verb that signs in.
const LOGIN: &str = "login";

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
        let files = names.iter().map(|name| self.home.path().join(name));
        // What was taken back is learnt there.
        files.chain([remote::cache(&self.home).packages()]).collect()
    }

    fn guarded(&self) -> Vec<PathBuf> {
        owner::guarded(&self.home)
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

    fn context(&self, tools: &[&Tool], measured: &All) -> BTreeMap<String, Context> {
        // What cannot be told of one of them is told at a terminal.
        commands::export::known(tools, measured, &mut Vec::new())
    }

    fn order(&self, measured: &All) -> Result<Vec<String>, String> {
        let order = commands::rank::order(&self.home, measured);
        order.map_err(|failure| words(&failure))
    }

    fn troubled(&self, words: Option<&str>) {
        match words {
            Some(words) => self.printer.alarm(&format!("no tool can be called: {}", line(words))),
            None => self.printer.note("Tools can be called again"),
        }
    }

    fn violated(&self, tool: &Tool, violation: &Violation) {
        act(violation, tool, &self.home, Ask::Nobody, self.printer);
    }

    fn remedies(&self, error: &CallError, tool: &Tool) -> Vec<String> {
        remedies(error, tool)
    }

    fn deed(&self, by: &By, deed: &Deed) -> Result<Value, Trouble> {
        let (words, typed) = typed(deed);
        self.run(by, &words, &typed)
    }

    fn sign_in(&self, by: &By, wanted: &SignIn) -> Result<Box<dyn SigningIn>, Trouble> {
        let mut child = self.start(by, &options(wanted), Stdio::null())?;
        if let (Some(stdin), Some(secret)) = (&mut child.stdin, &wanted.client_secret) {
            let line = Zeroizing::new(format!("{}\n", secret.expose()));
            // One that does not read has said why by then.
            let _ = stdin.write_all(line.as_bytes());
        }
        SignInBegun::new(child).map(|begun| Box::new(begun) as Box<dyn SigningIn>)
    }
}

impl Owner {
    fn package(&self, named: &Named, contents: &Contents) -> Package {
        let read = self.tool(named).or_else(|_| {
            // What is mended there is called again, also what was mended just now.
            let files = Files::new(installed::files(named, &self.home));
            self.tool(named).map_err(|failure| (words(&failure), files))
        });
        let (tool, files) = match read {
            Ok((tool, files)) => (Ok(tool), files),
            Err((words, files)) => (Err(words), files),
        };
        let pinned = named.pinned.as_ref().map(|pinned| pinned.version.clone());
        // What is declared in a catalog has the version that it is declared with.
        let version = pinned.or_else(|| Some(tool.as_ref().ok()?.package.semver()));
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
            is_taken_back: installed::taken_back(named, &self.home).is_some(),
            tool,
            files,
        }
    }

    /// Starts a verb in a process of its own, as at a terminal where nobody can be asked.
    fn start(&self, by: &By, words: &[String], stderr: Stdio) -> Result<Child, Trouble> {
        let broken = |doing: &str, error: std::io::Error| broken(doing, words, &error);
        let program = sandbox::own_program().map_err(|error| broken("find", error))?;
        let home = std::path::absolute(self.home.path()).map_err(|error| broken("find", error))?;
        let mut command = Command::new(program);
        command.arg("--home").arg(home).args(["--json", "--non-interactive"]);
        self.home.tell_state(&mut command);
        let (asked_by, asked_as) = match by {
            By::Console => ("console", ""),
            By::Token(name) => ("token", name.as_str()),
        };
        // What is named is no file of the folder that somebody happens to be in, and no project of it is meant.
        command.env(ASKED_BY, asked_by).env(ASKED_AS, asked_as).current_dir("/").args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        command.spawn().map_err(|error| broken("start", error))
    }

    /// Runs a verb to its end; what it tells programs.
    fn run(&self, by: &By, words: &[String], typed: &str) -> Result<Value, Trouble> {
        let mut child = self.start(by, words, Stdio::piped())?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read has said why by then.
            let _ = stdin.write_all(typed.as_bytes());
        }
        let output = child.wait_with_output().map_err(|error| broken("wait for", words, &error))?;
        came_of(&words[0], &output)
    }

    fn tool(&self, named: &Named) -> Result<(Tool, Files), Failure> {
        let (mut tool, files) = installed::with_files(named, &self.home, Files::new)?;
        if tool.package.chain.is_some() {
            steps::link_one(&mut tool, &[], &self.home, Printer::silent());
        }
        Ok((tool, files))
    }
}

/// `haft login`, which waits for what the browser brings back.
#[derive(Debug)]
struct SignInBegun {
    child: Child,
    said: BufReader<ChildStdout>,
    told: Value,
}

impl SignInBegun {
    /// Waits for the page.
    fn new(mut child: Child) -> Result<Self, Trouble> {
        let stdout = child.stdout.take().expect("it was started with a pipe");
        let mut begun = Self { child, said: BufReader::new(stdout), told: Value::Null };
        let mut line = String::new();
        begun.said.read_line(&mut line).map_err(|error| unheard(&error))?;
        begun.told = serde_json::from_str(&line).unwrap_or_default();
        if begun.told["event"] == "sign_in_page" {
            return Ok(begun);
        }
        // It says why there is none.
        begun.end(line, "")?;
        Err(Trouble { message: format!("`haft {LOGIN}` showed no page"), ..Trouble::default() })
    }

    /// Waits for its end, after what it said so far; what it tells programs.
    fn end(&mut self, said: String, typed: &str) -> Result<Value, Trouble> {
        if let Some(mut stdin) = self.child.stdin.take() {
            // One that does not read has said why by then.
            let _ = stdin.write_all(typed.as_bytes());
        }
        let mut stdout = said.into_bytes();
        self.said.read_to_end(&mut stdout).map_err(|error| unheard(&error))?;
        let status = self.child.wait().map_err(|error| unheard(&error))?;
        came_of(LOGIN, &Output { status, stdout, stderr: Vec::new() })
    }
}

impl SigningIn for SignInBegun {
    fn told(&self) -> &Value {
        &self.told
    }

    fn finish(mut self: Box<Self>, redirected: &Secret) -> Result<Value, Trouble> {
        let line = Zeroizing::new(format!("{}\n", redirected.expose()));
        self.end(String::new(), &line)
    }
}

impl Drop for SignInBegun {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

/// What a verb told programs, or why it came to nothing.
fn came_of(verb: &str, output: &Output) -> Result<Value, Trouble> {
    let told: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    match told {
        Some(told) if told["ok"] == false && told["error"].is_object() => {
            Err(trouble(&told["error"]))
        }
        Some(told) => Ok(told),
        None if output.status.success() => Ok(Value::Null),
        None => Err(Trouble {
            message: format!("`haft {verb}` ended with {}", output.status),
            causes: String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned).collect(),
            ..Trouble::default()
        }),
    }
}

fn unheard(error: &std::io::Error) -> Trouble {
    broken("hear", &[LOGIN.to_owned()], error)
}

/// Why a verb was not run.
fn broken(doing: &str, words: &[String], error: &std::io::Error) -> Trouble {
    Trouble {
        message: format!("failed to {doing} `haft {}`", words.first().map_or("", String::as_str)),
        causes: vec![error.to_string()],
        ..Trouble::default()
    }
}

/// What is wrong, and what would mend it.
pub(crate) fn words(failure: &Failure) -> String {
    let detail = match failure.details.as_slice() {
        [] => String::new(),
        [only] => format!(": {only}"),
        [first, more @ ..] => format!(": {first} (and {} more)", more.len()),
    };
    let hints = failure.hints.iter().map(|hint| format!("; {hint}"));
    format!("{}{detail}{}", failure.message, hints.collect::<String>())
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
            vec!["install", "--yes", "--env-stdin", "--shown", "--card", card, "--", what]
        }
        Deed::Bring { id } => vec!["install", "--yes", "--", id],
        Deed::Reset => vec!["reset", "--yes"],
        Deed::Status { id } => vec!["status", "--", id],
        Deed::Newer { id } => vec!["update", "--check", "--", id],
        Deed::Update { id, digest } => vec!["update", "--yes", "--expect", digest, "--", id],
        Deed::Offered { id } => vec!["approve", "surface", "--check", "--", id],
        Deed::Approve { id, digest } => {
            vec!["approve", "surface", "--digest", digest, "--", id]
        }
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

/// What is typed to sign in. What comes over HTTP is never another option than the one it is given as, and a secret is none.
fn options(wanted: &SignIn) -> Vec<String> {
    let SignIn { id, scopes, issuer, secret, resource, hosts, client_id, client_secret, redirect } =
        wanted;
    let one = [
        ("issuer", issuer),
        ("secret", secret),
        ("resource", resource),
        ("client-id", client_id),
        ("redirect", redirect),
    ];
    let one = one.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let many = scopes.iter().map(|scope| ("scope", scope));
    let many = many.chain(hosts.iter().map(|host| ("allow-host", host)));
    let mut words = vec![LOGIN.to_owned(), "--no-browser".to_owned()];
    words.extend(one.chain(many).map(|(name, value)| format!("--{name}={value}")));
    words.extend(client_secret.iter().map(|_| "--client-secret".to_owned()));
    words.extend(["--".to_owned(), id.clone()]);
    words
}

/// What a verb said is wrong.
fn trouble(error: &Value) -> Trouble {
    let texts = |value: &Value| {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let details = &error["details"];
    Trouble {
        code: error["code"].as_str().unwrap_or_default().to_owned(),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        causes: [texts(&details["problems"]), texts(&details["causes"])].concat(),
        hints: texts(&error["hints"]),
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn what_is_signed_in_for_is_no_option_and_no_secret_is_an_argument() {
        let hostile = || "--home=/tmp/x".to_owned();
        let words = options(&SignIn {
            id: hostile(),
            scopes: vec![hostile()],
            issuer: Some(hostile()),
            hosts: vec![hostile()],
            client_id: Some(hostile()),
            client_secret: Secret::new("s3cret".to_owned()).ok(),
            ..SignIn::default()
        });
        let ends = words.iter().position(|word| word == "--").unwrap();
        assert!(words[..ends].iter().all(|word| !word.starts_with("--home")), "{words:?}");
        assert_eq!(words[ends + 1..], [hostile()]);
        assert!(words.contains(&"--client-secret".to_owned()));
        assert!(!words.iter().any(|word| word.contains("s3cret")), "{words:?}");
    }
}
