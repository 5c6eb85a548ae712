//! What a Node tool says of a call before it is made: whether its owner should be asked, and
//! which secrets it needs for just this input.
//!
//! The hooks are the tool's own code, so they run inside the walls, with neither network nor secrets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use manifest::model::{Entry, Input};
use policy::Allowance;
use sandbox::Launcher;
use serde_json::Value;
use vault::Redactor;

use crate::error::CallError;
use crate::plan::{self, Asked, Way, Worker};
use crate::run::leash::Leash;
use crate::run::worker::{Warmth, Workers};

/// How long a tool may take to say it.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a tool says of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Considered {
    /// Whether it wants the owner asked.
    pub(crate) wants_approval: bool,
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
    let mut decision = asked.decision.clone();
    close(&mut decision.allowance);
    let plan = plan::make(&Asked { decision, ..asked.clone() })?;
    let Way::Worker(worker) = plan.way else { return Ok(None) };
    let mut worker = Arc::unwrap_or_clone(worker);
    worker.request["do"] = "consider".into();
    Ok(Some(worker))
}

/// Asks it.
pub(crate) fn consider(
    question: &Worker,
    launcher: &Launcher,
    workers: &Workers,
    warmth: Warmth,
) -> Result<Considered, CallError> {
    let until = Instant::now() + PATIENCE;
    let said = workers
        .ask(launcher, question, &Redactor::new([]), warmth, until, &Leash::default())
        .answer?;
    let names = said["requiredSecrets"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(Considered {
        wants_approval: said["requiresApproval"] != false,
        message: said["message"].as_str().map(str::to_owned),
        secrets: names.map(Input::secret).collect(),
    })
}

/// Takes away everything that was granted.
fn close(allowance: &mut Allowance) {
    allowance.hosts.clear();
    allowance.read.clear();
    allowance.write.clear();
    allowance.devices.clear();
    allowance.environment.clear();
}
