//! Tests run through the host.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use host::{Approver, Call, CallError, CancellationToken, Host, Kind, Level, Tool, Warmth};
use policy::Surface;

use crate::case::Case;

/// How tests are run.
#[derive(Clone, Debug)]
pub struct How {
    /// The caller's folder.
    pub folder: PathBuf,
    /// Who asks the owner, where a call needs their word.
    pub approver: Option<Arc<dyn Approver>>,
    /// With it the caller calls off the test that runs, and all that follow.
    pub called_off: CancellationToken,
}

/// How a test ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The path of its file in the package.
    pub path: String,
    /// Its name.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
    /// How long the call took.
    pub took: Duration,
    /// What the walls were worth, where there was something to wall in.
    pub level: Option<Level>,
}

/// What came of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The answer is as it should be.
    Passed,
    /// The answer is not as it should be, for these reasons.
    Failed(Vec<String>),
    /// There is no answer.
    NoAnswer(Box<CallError>),
}

/// How all tests ended, in order.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The tests.
    pub ended: Vec<Ended>,
}

impl Report {
    /// How many passed.
    pub fn passed(&self) -> usize {
        self.ended.iter().filter(|one| one.outcome == Outcome::Passed).count()
    }

    /// How many did not.
    pub fn failed(&self) -> usize {
        self.ended.len() - self.passed()
    }

    /// What the weakest walls of any test were worth; none where nothing was walled in.
    pub fn level(&self) -> Option<Level> {
        self.ended.iter().filter_map(|one| one.level).min()
    }
}

/// Runs tests one after another; `told` hears of each as it ends.
pub async fn run(
    host: &Host,
    tool: &Tool,
    cases: &[Case],
    how: &How,
    told: &mut (dyn FnMut(&Ended) + Send),
) -> Report {
    let mut report = Report::default();
    for case in cases {
        let (outcome, took, level) = if how.called_off.is_cancelled() {
            let off = CallError::new(Kind::Cancelled, "it was called off");
            (Outcome::NoAnswer(Box::new(off)), Duration::ZERO, None)
        } else {
            one(host, tool, case, how).await
        };
        let (path, name) = (case.path.clone(), case.name.clone());
        let ended = Ended { path, name, outcome, took, level };
        told(&ended);
        report.ended.push(ended);
    }
    report
}

async fn one(
    host: &Host,
    tool: &Tool,
    case: &Case,
    how: &How,
) -> (Outcome, Duration, Option<Level>) {
    let mut tool = tool.clone();
    if let (Some(timeout), Some(action)) = (case.timeout, tool.package.actions.first_mut()) {
        // The time of a test stands before that of the tool; what the owner allows still bounds it.
        action.timeout_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1));
    }
    let action = tool.package.actions.first().map(|action| action.name.clone());
    let call = Call {
        action: action.unwrap_or_else(|| tool.package.id.clone()),
        input: case.input.to_string(),
        surface: Surface::Test,
        approver: how.approver.clone(),
        ticket: None,
        folder: how.folder.clone(),
        within: case.timeout,
        progress: None,
        called_off: how.called_off.clone(),
    };
    let made = host.call(&tool, &call, Warmth::Warm).await;
    let outcome = match made.reply {
        Ok(output) => match case.faults(&output.into_value()) {
            faults if faults.is_empty() => Outcome::Passed,
            faults => Outcome::Failed(faults),
        },
        Err(error) => Outcome::NoAnswer(Box::new(error)),
    };
    (outcome, made.took, made.level)
}
