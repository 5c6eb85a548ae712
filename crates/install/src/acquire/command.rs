//! A program of a package manager, run inside the walls.
//!
//! It sees itself, the system, and one folder, which it may write. It has no secret but what an index asks for, and
//! reaches nobody but those that its rules name.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use egress::attempt::{Attempt, Outcome, Stage};
use egress::resolve::SystemResolver;
use egress::{Limits, Rules, Running};
use sandbox::runtime::{self, Word};
use sandbox::{Child, Confinement, Exit, Killer, Launcher, Network, PROXY_PORT};

use super::error::AcquireError;
use crate::typed;

/// How long one program may take.
const LONGEST: Duration = Duration::from_mins(20);
/// The memory of one program.
const MEMORY: u64 = 2 << 30;
/// How much of what it said is told, in bytes.
const MOST_SAID: usize = 2_000;
/// How many hosts that it reached for in vain are told.
const MOST_REFUSED: usize = 8;

/// A program with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Command {
    words: Vec<String>,
    /// Variables that it has beside the usual ones.
    variables: Vec<(String, String)>,
    /// What it may reach; with no rules it has no network.
    rules: Rules,
}

/// Where programs run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workplace<'w> {
    pub(super) launcher: &'w Launcher,
    /// Where programs are looked for, as `PATH` has it.
    pub(super) search: &'w OsString,
    /// A file of certificates that are trusted too.
    pub(super) certificates: Option<&'w Path>,
}

impl Command {
    /// A program without a network.
    pub(super) fn new<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        let words = words.into_iter().map(Into::into).collect();
        Self { words, variables: Vec::new(), rules: Rules::default() }
    }

    /// The same, with these variables.
    pub(super) fn with(mut self, variables: Vec<(String, String)>) -> Self {
        self.variables.extend(variables);
        self
    }

    /// The same, which reaches these.
    pub(super) fn reaching(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Runs it to its end in the one folder that it may write, whose path holds no link, and gives what it wrote. Nothing
    /// of it runs any more once this is dropped.
    pub(super) async fn run(
        &self,
        workplace: Workplace<'_>,
        folder: &Path,
    ) -> Result<Vec<u8>, AcquireError> {
        let (confinement, argv) = self.confinement(workplace, folder)?;
        let spawned = workplace.launcher.spawn(&confinement, &argv);
        let mut child =
            spawned.map_err(|error| AcquireError::Walls(self.to_string(), Box::new(error)))?;
        let _ended_with_us = Ended(child.killer());
        let refused: Arc<Mutex<Vec<String>>> = Arc::default();
        let proxy = open(&mut child, &self.rules, &refused).map_err(AcquireError::Proxy)?;
        let finished = tokio::task::spawn_blocking(move || child.finish(&[])).await;
        let finished = finished.map_err(std::io::Error::other).flatten();
        let finished = finished.map_err(|error| AcquireError::Disk(folder.into(), error))?;
        // All that was tried is told when the proxy is gone.
        drop(proxy);
        if finished.ended.exit == Exit::Code(0) {
            return Ok(finished.stdout);
        }
        let said = [finished.stderr, finished.stdout];
        Err(AcquireError::Failed {
            command: self.to_string(),
            exit: finished.ended.exit,
            said: said
                .iter()
                .map(|said| end_of(said))
                .find(|said| !said.is_empty())
                .unwrap_or_default(),
            refused: std::mem::take(&mut *refused.lock().unwrap_or_else(PoisonError::into_inner)),
        })
    }

    fn confinement(
        &self,
        workplace: Workplace<'_>,
        folder: &Path,
    ) -> Result<(Confinement, Vec<OsString>), AcquireError> {
        let mut confinement = Confinement {
            writable: vec![folder.to_owned()],
            folder: folder.to_owned(),
            ..Confinement::default()
        };
        confinement.limits.deadline = Some(LONGEST);
        confinement.limits.memory = Some(MEMORY);
        let name = self.words.first().map(String::as_str).unwrap_or_default();
        let program = runtime::find(name.as_ref(), workplace.search, folder, Word::Owner)?;
        program.allow(&mut confinement);
        let mut variables = self.variables.clone();
        if self.rules.iter().next().is_some() {
            if let Some(certificates) = workplace.certificates {
                let found = certificates.canonicalize();
                let found =
                    found.map_err(|error| AcquireError::Disk(certificates.to_owned(), error))?;
                for name in ["PIP_CERT", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"] {
                    variables.push((name.to_owned(), found.display().to_string()));
                }
                confinement.readable.push(found);
            }
            confinement.network = Network::Allow;
            confinement.doors = self.rules.doors().iter().map(|door| door.number()).collect();
            variables.extend(egress::environment::proxy_variables(PROXY_PORT));
        }
        for (name, value) in variables {
            let (name, value) = (OsString::from(name), OsString::from(value));
            confinement.environment.retain(|(known, _)| *known != name);
            confinement.environment.push((name, value));
        }
        let mut argv: Vec<OsString> = self.words.iter().map(OsString::from).collect();
        if let Some(first) = argv.first_mut() {
            *first = program.path.into();
        }
        Ok((confinement, argv))
    }
}

/// As one would type it.
impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&typed::command(&self.words))
    }
}

/// Ends a program when it is dropped.
struct Ended(Killer);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Opens the network of a program, where it has one.
fn open(
    child: &mut Child,
    rules: &Rules,
    refused: &Arc<Mutex<Vec<String>>>,
) -> std::io::Result<Option<Running>> {
    let Some(sandbox::Ends { proxy, names, doors }) = child.take_network() else { return Ok(None) };
    let told = Arc::clone(refused);
    let report = move |attempt: Attempt| {
        if let Stage::Ended { outcome: Outcome::Refused(why), .. } = attempt.stage {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            let one = format!("`{}` ({why})", attempt.asked);
            if told.len() < MOST_REFUSED && !told.contains(&one) {
                told.push(one);
            }
        }
    };
    let ends = egress::Ends { proxy, names, doors };
    let resolver = SystemResolver::default();
    Running::in_background(ends, rules.clone(), resolver, Limits::DEFAULT, report).map(Some)
}

/// The end of what a program said, where the reason stands.
fn end_of(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let text = text.trim();
    let mut from = text.len().saturating_sub(MOST_SAID);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_as_one_would_type_it() {
        let command = Command::new(["pip", "install", "--", "six>=1,<2", "it's", ""]);
        assert_eq!(command.to_string(), r"pip install -- 'six>=1,<2' 'it'\''s' ''");
    }

    #[test]
    fn of_what_was_said_the_end_is_told() {
        let said = format!("begin{}end\n", "é".repeat(MOST_SAID));
        let told = end_of(said.as_bytes());
        assert!(told.ends_with("éend") && told.len() <= MOST_SAID && !told.contains("begin"));
    }
}
