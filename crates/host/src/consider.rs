//! What a Node tool says of a call before it is made: whether its owner should be asked, and
//! which secrets it needs for just this input.
//!
//! The hooks are the tool's own code, so they run inside the walls, with neither network nor secrets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use manifest::model::{Entry, Input};
use policy::{Allowance, Why};
use sandbox::Launcher;
use serde_json::Value;
use vault::Redactor;

use crate::error::{CallError, Kind};
use crate::plan::{self, Asked, Way, Worker};
use crate::run::leash::Leash;
use crate::run::worker::{Warmth, Workers};

/// How long a tool may take to say it; less where its call has less.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most letters of a tool's own words that anybody is shown.
const LONGEST_MESSAGE: usize = 2_000;

/// The same, of what stands in the middle of a sentence of ours.
const LONGEST_FAILURE: usize = 200;

/// What a tool says of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Considered {
    /// Why it wants the owner asked, if it does.
    pub(crate) wants_approval: Option<Why>,
    /// What it would have the owner told. A stranger's words.
    pub(crate) message: Option<String>,
    /// Secrets it needs that its manifest may not have named.
    pub(crate) secrets: Vec<Input>,
}

/// What to ask of a tool that can be asked; any other has nothing to say.
pub(crate) fn question(asked: &Asked<'_>) -> Result<Option<Worker>, CallError> {
    if !matches!(asked.implementation.entry, Entry::NodeModule { .. }) {
        return Ok(None);
    }
    let mut decision = (*asked.decision).clone();
    close(&mut decision.allowance);
    let plan = plan::make(&Asked { decision: Arc::new(decision), ..asked.clone() })?;
    let Way::Worker(worker) = plan.way else { return Ok(None) };
    let mut worker = Arc::unwrap_or_clone(worker);
    worker.request["do"] = "consider".into();
    Ok(Some(worker))
}

/// Asks it.
pub(crate) fn consider(
    question: &Worker,
    launcher: &Launcher,
    workers: &Arc<Workers>,
    warmth: Warmth,
    until: Instant,
    leash: &Leash,
) -> Result<Considered, CallError> {
    let patient = Instant::now() + PATIENCE;
    // No secrets are known before the owner was asked, and none were told to this process.
    let unknown = Redactor::new([]);
    let said =
        workers.ask(launcher, (question, &unknown, None), warmth, until.min(patient), leash).answer;
    let said = said.map_err(|error| match error.kind {
        // Else it is the time of the call that was over.
        Kind::TimedOut if patient < until => CallError { message: too_slow(), ..error },
        _ => error,
    })?;
    let names = said["requiredSecrets"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(Considered {
        wants_approval: match (said["failed"].as_str(), &said["requiresApproval"]) {
            (Some(words), _) => Some(Why::Failed(quotable(words, LONGEST_FAILURE))),
            (None, wanted) => (*wanted != false).then_some(Why::Declared),
        },
        message: said["message"].as_str().map(|words| quotable(words, LONGEST_MESSAGE)),
        secrets: names.map(Input::secret).collect(),
    })
}

fn too_slow() -> String {
    let most = PATIENCE.as_secs();
    format!(
        "its hooks (`requiresApproval` and others) took longer than {most} s, which is the most they may"
    )
}

/// A stranger's words, in short. Each face escapes them for whoever reads them there.
fn quotable(said: &str, longest: usize) -> String {
    match said.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said.to_owned(),
    }
}

/// Takes away everything that was granted.
fn close(allowance: &mut Allowance) {
    allowance.hosts.clear();
    allowance.read.clear();
    allowance.write.clear();
    allowance.devices.clear();
    allowance.environment.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_quoted_in_short_and_in_its_own_words() {
        assert_eq!(quotable("send 3 letters", 20), "send 3 letters");
        assert_eq!(quotable("a\nb\u{1b}[2J", 20), "a\nb\u{1b}[2J");
        let quoted = quotable(&"x".repeat(5_000), 20);
        assert_eq!(quoted.chars().count(), 21);
        assert!(quoted.ends_with("x…"));
    }
}
