//! Tests run through the host: some at a time, told in order.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use host::smoke::Verdict;
use host::{
    Approver, Call, CallError, CancellationToken, Fallen, Host, Kind, Level, Smoked, Tool,
    Violation, Warmth,
};
use policy::Surface;

use crate::case::{Case, CaseError, Origin};
use crate::fault::{Fault, clipped};
use crate::report::{Ended, Outcome, Report};

/// How tests are run.
#[derive(Clone, Debug)]
pub struct How {
    /// The caller's folder.
    pub folder: PathBuf,
    /// Who asks the owner, where a call needs their word.
    pub approver: Option<Arc<dyn Approver>>,
    /// With it the caller calls off the tests that run, and all that follow.
    pub called_off: CancellationToken,
    /// How many are run at a time.
    pub jobs: NonZeroUsize,
    /// How often each is called.
    pub calls: NonZeroU32,
    /// When no further one is begun, if ever.
    pub until: Option<Instant>,
    /// Which are run: those whose name or path contains one of these, or all.
    pub only: Vec<String>,
    /// The implementation that they are run by, and no other.
    pub implementation: Option<String>,
}

impl How {
    /// One test after another, each once, all of them.
    pub fn one_by_one(
        folder: PathBuf,
        approver: Option<Arc<dyn Approver>>,
        called_off: CancellationToken,
    ) -> Self {
        let (jobs, calls) = (NonZeroUsize::MIN, NonZeroU32::MIN);
        let (until, only, implementation) = (None, Vec::new(), None);
        Self { folder, approver, called_off, jobs, calls, until, only, implementation }
    }

    /// Whether a test of this name and path is to be run.
    pub fn means(&self, name: &str, path: &str) -> bool {
        let is_in = |wanted: &String| name.contains(wanted) || path.contains(wanted);
        self.only.is_empty() || self.only.iter().any(is_in)
    }
}

/// What a smoke test is called.
pub const SMOKE: &str = "smoke";

/// How many letters of a name are told.
const LONGEST_NAME: usize = 256;

/// Runs tests; `told` hears of each as it ends, in order. They are read when it is their turn, so there may be many.
pub async fn run(
    host: &Host,
    tool: &Tool,
    cases: impl IntoIterator<Item = Result<Case, CaseError>>,
    how: &How,
    told: &mut (dyn FnMut(&Ended) + Send),
) -> Report {
    let mut report = Report::default();
    let tool = &tried_once(tool);
    let is_meant = |case: &Result<Case, CaseError>| match case {
        Ok(case) => how.means(&case.name, &case.path),
        Err(error) => how.means("", &error.path),
    };
    let is_late = AtomicBool::new(false);
    let goes_on = |_: &Result<Case, CaseError>| {
        let has_time = how.until.is_none_or(|until| Instant::now() < until);
        is_late.store(!has_time, Ordering::Relaxed);
        has_time && !how.called_off.is_cancelled()
    };
    let cases = cases.into_iter().take_while(goes_on).filter(is_meant);
    let running = stream::iter(cases).map(|case| one(host, tool, case, how));
    let mut running = pin!(running.buffered(how.jobs.get()));
    while let Some((ended, aside)) = running.next().await {
        told(&ended);
        report.violation = report.violation.or(aside.violation);
        for (tool, violation) in aside.step_violations {
            let id = tool.package.canonical_id();
            if report.step_violations.iter().all(|(known, _)| known.package.canonical_id() != id) {
                report.step_violations.push((tool, violation));
            }
        }
        for one in aside.fallen {
            if report.fallen.iter().all(|known| known.implementation != one.implementation) {
                report.fallen.push(one);
            }
        }
        report.unwritten = report.unwritten.or(aside.unwritten);
        report.add(ended);
    }
    report.is_cut_short = is_late.load(Ordering::Relaxed);
    report
}

/// Runs the smoke test of a package as a test, for an owner who is asked where that is due.
pub async fn smoke(host: &Host, tool: &Tool, how: &How) -> Ended {
    let smoked = match &how.approver {
        Some(approver) => host.smoke_asking(tool, Arc::clone(approver), &how.called_off).await,
        None => host.smoke(tool, &how.called_off).await,
    };
    let (outcome, took) = match smoked {
        Ok(smoked) if smoked.passed => (Outcome::Passed, smoked.took),
        Ok(smoked) => (Outcome::Failed(faults_of(&smoked)), smoked.took),
        Err(error) => (Outcome::NoAnswer(Box::new(error)), Duration::ZERO),
    };
    let (path, name) = (SMOKE.to_owned(), SMOKE.to_owned());
    Ended { path, name, origin: Origin::Smoke, outcome, took, level: None }
}

fn faults_of(smoked: &Smoked) -> Vec<Fault> {
    let failed = smoked.checks.iter().filter(|check| check.verdict == Verdict::Failed);
    failed
        .map(|check| Fault::new(&check.what, check.expected.clone(), Some(check.found.clone())))
        .collect()
}

/// The same tool, each of whose actions is tried once: what a second try mends would look sound. It does without what
/// no call needs, because it is cloned for tests that have a time of their own.
fn tried_once(tool: &Tool) -> Tool {
    let mut tool = tool.clone();
    tool.package.tests = Vec::new();
    for action in &mut tool.package.actions {
        action.idempotent = Some(false);
    }
    tool
}

/// What is told of a call beside how it ended.
#[derive(Default)]
struct Aside {
    violation: Option<Violation>,
    step_violations: Vec<(Arc<Tool>, Violation)>,
    unwritten: Option<String>,
    fallen: Vec<Fallen>,
}

async fn one(host: &Host, tool: &Tool, case: Result<Case, CaseError>, how: &How) -> (Ended, Aside) {
    let mut aside = Aside::default();
    let case = match case {
        Ok(case) => case,
        Err(CaseError { path, why, origin }) => {
            let (name, outcome) = (clipped(&path, LONGEST_NAME), Outcome::NoTest(why));
            let (took, level) = (Duration::ZERO, None);
            return (Ended { path, name, origin, outcome, took, level }, aside);
        }
    };
    let mut all = Outcomes::default();
    for _ in 0..how.calls.get() {
        if all.calls > 0 && how.called_off.is_cancelled() {
            break;
        }
        all.add(call(host, tool, &case, how, &mut aside).await);
    }
    let Outcomes { calls, took, level, .. } = all;
    let took = took / calls.max(1);
    let outcome = all.together();
    let name = clipped(&case.name, LONGEST_NAME);
    (Ended { path: case.path, name, origin: case.origin, outcome, took, level }, aside)
}

/// How one test ended, each time that it was called.
#[derive(Default)]
struct Outcomes {
    calls: u32,
    passed: u32,
    took: Duration,
    level: Option<Level>,
    /// What came of it when it first did not pass.
    other: Option<Outcome>,
    /// Whether it did not always end the same.
    differ: bool,
}

impl Outcomes {
    fn add(&mut self, (outcome, took, level): (Outcome, Duration, Option<Level>)) {
        let last = self.other.as_ref().map(Outcome::name);
        let is_passed = outcome.is_passed();
        self.differ |= match last {
            Some(last) => last != outcome.name(),
            None => self.passed > 0 && !is_passed,
        };
        self.calls += 1;
        self.passed += u32::from(is_passed);
        self.took += took;
        self.level = self.level.into_iter().chain(level).min();
        if !is_passed && self.other.is_none() {
            self.other = Some(outcome);
        }
    }

    fn together(self) -> Outcome {
        match self.other {
            None => Outcome::Passed,
            Some(other) if self.differ => {
                let (passed, calls) = (self.passed, self.calls);
                Outcome::Flaky { passed, calls, other: Box::new(other) }
            }
            Some(other) => other,
        }
    }
}

async fn call(
    host: &Host,
    tool: &Tool,
    case: &Case,
    how: &How,
    aside: &mut Aside,
) -> (Outcome, Duration, Option<Level>) {
    let action = match action(tool, case) {
        Ok(action) => action,
        Err(why) => return (Outcome::NoTest(why), Duration::ZERO, None),
    };
    let timed = case.timeout.map(|time| within(tool, &action, time));
    let call = Call {
        action,
        input: case.input.to_string(),
        surface: Surface::Test,
        approver: how.approver.clone(),
        ticket: None,
        folder: how.folder.clone(),
        within: case.timeout,
        progress: None,
        implementation: how.implementation.clone(),
        peer: None,
        resumed: None,
        context: None,
        called_off: how.called_off.clone(),
    };
    let made = host.call(timed.as_ref().unwrap_or(tool), &call, Warmth::Warm).await;
    let outcome = match made.reply {
        Ok(output) => match case.faults(&output.into_value()) {
            faults if faults.is_empty() => Outcome::Passed,
            faults => Outcome::Failed(faults),
        },
        Err(error) => {
            let error = CallError { blocked: made.blocked, ..error };
            let error = match case.timeout {
                Some(_) => error.timed_by("`timeoutMs` of the test"),
                None => error,
            };
            Outcome::NoAnswer(Box::new(error))
        }
    };
    aside.violation = aside.violation.take().or(made.violation);
    aside.step_violations.extend(made.step_violations);
    aside.fallen.extend(made.fallen);
    aside.unwritten = aside.unwritten.take().or(made.unwritten.into_iter().next());
    (outcome, made.took, made.level)
}

/// The action that a test calls: the one it names, or the only one.
fn action(tool: &Tool, case: &Case) -> Result<String, String> {
    let actions = &tool.package.actions;
    match (&case.action, actions.as_slice()) {
        (Some(name), _) if tool.action(name).is_some() => Ok(name.clone()),
        (Some(name), _) => Err(format!("there is no action `{}`", clipped(name, LONGEST_NAME))),
        (None, [only]) => Ok(only.name.clone()),
        // Whoever says nothing of its actions is called by its own name.
        (None, []) => Ok(tool.package.id.clone()),
        (None, several) => {
            Err(format!("it does not say which of the {} actions it calls", several.len()))
        }
    }
}

/// The same tool with another time for an action. The time of a test stands before that of the tool; what the owner
/// allows still bounds it.
fn within(tool: &Tool, action: &str, time: Duration) -> Tool {
    let mut tool = tool.clone();
    let name = tool.action(action).map(|action| action.name.clone());
    if let Some(action) =
        tool.package.actions.iter_mut().find(|one| Some(&one.name) == name.as_ref())
    {
        action.timeout_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
    }
    tool
}

/// Whether a test could not be run because it was called off.
pub fn is_called_off(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NoAnswer(error) if error.kind == Kind::Cancelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn together(outcomes: &[Outcome]) -> Outcome {
        let mut all = Outcomes::default();
        for outcome in outcomes {
            all.add((outcome.clone(), Duration::from_millis(2), None));
        }
        all.together()
    }

    #[test]
    fn what_does_not_always_end_the_same_is_flaky() {
        let failed =
            |found: &str| Outcome::Failed(vec![Fault::new("$", "1", Some(found.to_owned()))]);
        let silent = Outcome::NoAnswer(Box::new(CallError::new(Kind::Failed, "no")));
        assert_eq!(together(&[Outcome::Passed, Outcome::Passed]), Outcome::Passed);
        // Wrong in another way each time is wrong each time.
        assert_eq!(together(&[failed("2"), failed("3")]), failed("2"));
        let flaky = |passed, other: &Outcome| Outcome::Flaky {
            passed,
            calls: 3,
            other: Box::new(other.clone()),
        };
        let passed = Outcome::Passed;
        assert_eq!(
            together(&[passed.clone(), failed("2"), passed.clone()]),
            flaky(2, &failed("2"))
        );
        assert_eq!(together(&[failed("2"), passed.clone(), passed]), flaky(2, &failed("2")));
        assert_eq!(together(&[failed("2"), silent, failed("2")]), flaky(0, &failed("2")));
    }
}
