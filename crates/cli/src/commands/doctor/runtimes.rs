//! Which runtimes there are, and whether they run inside the walls.

use std::path::Path;
use std::time::Duration;

use sandbox::runtime::Word;
use sandbox::{Confinement, Exit, Launcher, runtime};
use serde_json::{Value, json};

/// What tools are usually written for, and what fetches them.
const NAMES: [&str; 9] = ["python3", "pip", "uv", "node", "npm", "git", "java", "podman", "docker"];

/// How long a runtime has to say its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// A runtime that was looked for.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: &'static str,
    program: Option<runtime::Program>,
    /// What it said of its version, inside the walls.
    version: Option<String>,
}

/// Looks for all of them, and asks each for its version inside the walls.
pub(super) fn find(launcher: &Launcher) -> Vec<Found> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    NAMES
        .iter()
        .map(|name| {
            let program = runtime::find(name.as_ref(), &search, Path::new("/"), Word::Owner).ok();
            let version = program.as_ref().and_then(|program| version(launcher, program));
            Found { name, program, version }
        })
        .collect()
}

fn version(launcher: &Launcher, program: &runtime::Program) -> Option<String> {
    if !super::can_run(launcher) {
        return None;
    }
    let mut confinement = Confinement::default();
    confinement.limits.deadline = Some(PATIENCE);
    program.allow(&mut confinement);
    let argv = [program.path.clone().into(), "--version".into()];
    let finished = launcher.spawn(&confinement, &argv).ok()?.finish(b"").ok()?;
    let text = String::from_utf8_lossy(&finished.stdout).into_owned();
    let first = text.lines().next().unwrap_or_default();
    // "Python 3.11.2", "v20.1.0", "git version 2.39.5": the first word with a digit in front.
    let word = first
        .split_whitespace()
        .map(|word| word.trim_start_matches('v').trim_end_matches(','))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    (finished.ended.exit == Exit::Code(0)).then(|| word.chars().take(40).collect())
}

impl Found {
    pub(super) fn json(&self) -> (String, Value) {
        let value = self.program.as_ref().map_or(Value::Null, |program| {
            json!({
                "path": program.path.to_string_lossy(),
                "version": self.version,
                "inside": self.version.is_some(),
            })
        });
        (self.name.to_owned(), value)
    }

    pub(super) fn words(&self) -> String {
        match (&self.program, &self.version) {
            (None, _) => "not found".into(),
            (Some(program), Some(version)) => format!("{version}  {}", program.path.display()),
            (Some(program), None) => {
                format!("found, does not run inside the walls  {}", program.path.display())
            }
        }
    }
}
