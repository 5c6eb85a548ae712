//! How tests ended.

use std::sync::Arc;
use std::time::Duration;

use host::{CallError, Fallen, Kind, Level, Tool, Violation};

use crate::case::Origin;
use crate::fault::Fault;
use crate::verify::Tally;

/// How a test ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The path of its file in the package.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// What came of it.
    pub outcome: Outcome,
    /// How long a call took; the mean of several.
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
    Failed(Vec<Fault>),
    /// There is no answer.
    NoAnswer(Box<CallError>),
    /// It is no test, for this reason.
    NoTest(String),
    /// It was called several times, and did not always end the same.
    Flaky {
        /// How often it passed.
        passed: u32,
        /// How often it was called.
        calls: u32,
        /// What came of it when it first did not pass.
        other: Box<Outcome>,
    },
}

impl Outcome {
    /// Whether it passed.
    pub fn is_passed(&self) -> bool {
        *self == Self::Passed
    }

    /// Its name. A test whose input the tool does not take is as wrong as one that cannot be read.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::NoAnswer(error) if error.kind == Kind::BadInput => "invalid",
            Self::NoAnswer(_) => "error",
            Self::NoTest(_) => "invalid",
            Self::Flaky { .. } => "flaky",
        }
    }

    /// About how many bytes it takes to keep it.
    fn weight(&self) -> usize {
        match self {
            Self::Passed => 0,
            Self::Failed(faults) => {
                let weight = |one: &Fault| {
                    one.path.len() + one.expected.len() + one.found.as_ref().map_or(0, String::len)
                };
                faults.iter().map(weight).sum()
            }
            Self::NoAnswer(error) => error.to_value().to_string().len(),
            Self::NoTest(why) => why.len(),
            Self::Flaky { other, .. } => other.weight(),
        }
    }

    /// The same without what it would take much to keep.
    fn without_details(self) -> Self {
        match self {
            Self::Passed => Self::Passed,
            Self::Failed(_) => Self::Failed(Vec::new()),
            Self::NoAnswer(error) => {
                let short = CallError::new(error.kind, "its details are not kept");
                Self::NoAnswer(Box::new(short))
            }
            Self::NoTest(_) => Self::NoTest("its details are not kept".to_owned()),
            Self::Flaky { passed, calls, other } => {
                let other = Box::new(other.without_details());
                Self::Flaky { passed, calls, other }
            }
        }
    }
}

/// How all tests ended, in order. However many fail, it stays small: the details of the last ones are not kept.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The tests.
    pub ended: Vec<Ended>,
    /// How the cases went that the author promises about.
    pub promised: Tally,
    /// What the tool reached for and the owner wants something done about.
    pub violation: Option<Violation>,
    /// The same of the steps of a chain: of each tool the first.
    pub step_violations: Vec<(Arc<Tool>, Violation)>,
    /// The implementations that broke, so that another made the call: of each the first time.
    pub fallen: Vec<Fallen>,
    /// Why a call could not be written down.
    pub unwritten: Option<String>,
    /// Whether there was no time to begin all of them.
    pub is_cut_short: bool,
    passed: usize,
    /// How many of those that nothing is promised about did not pass.
    failed_by_itself: usize,
    /// Bytes of details that are kept.
    kept: usize,
}

/// Bytes of details that are kept.
const MOST_KEPT: usize = 8 << 20;

impl Report {
    /// How many there were.
    pub fn total(&self) -> usize {
        self.ended.len()
    }

    /// How many passed.
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// How many did not.
    pub fn failed(&self) -> usize {
        self.ended.len() - self.passed
    }

    /// How long those took that passed, on the average.
    pub fn latency(&self) -> Option<Duration> {
        let took = self.ended.iter().filter(|one| one.outcome.is_passed()).map(|one| one.took);
        let passed = u32::try_from(self.passed).ok().filter(|passed| *passed > 0)?;
        Some(took.sum::<Duration>() / passed)
    }

    /// Whether every test passed that has to: of those that the author promises about, as many as they promise.
    pub fn is_good_but_for_promises(&self) -> bool {
        self.failed_by_itself == 0
    }

    /// What the weakest walls of any test were worth; none where nothing was walled in.
    pub fn level(&self) -> Option<Level> {
        self.ended.iter().filter_map(|one| one.level).min()
    }

    /// One has ended before all others.
    pub fn add_first(&mut self, ended: Ended) {
        self.add(ended);
        self.ended.rotate_right(1);
    }

    /// One more has ended.
    pub fn add(&mut self, mut ended: Ended) {
        let is_passed = ended.outcome.is_passed();
        self.passed += usize::from(is_passed);
        if ended.origin == Origin::Promised {
            self.promised.cases += 1;
            self.promised.passed += u64::from(is_passed);
            match ended.outcome.name() {
                "error" => self.promised.unanswered += 1,
                "invalid" => {}
                _ => self.promised.add(ended.took),
            }
        } else {
            self.failed_by_itself += usize::from(!is_passed);
        }
        self.kept += ended.outcome.weight();
        if self.kept > MOST_KEPT {
            ended.outcome = ended.outcome.without_details();
        }
        self.ended.push(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(origin: Origin, outcome: Outcome) -> Ended {
        let (path, name) = ("p".to_owned(), "n".to_owned());
        Ended { path, name, origin, outcome, took: Duration::from_millis(1), level: None }
    }

    #[test]
    fn a_report_of_many_failures_stays_small() {
        let mut report = Report::default();
        let fault = || Fault::new("$.a", "e".repeat(4_000), Some("f".repeat(4_000)));
        for _ in 0..2_000 {
            report.add(ended(Origin::File, Outcome::Failed(vec![fault()])));
        }
        assert_eq!((report.total(), report.failed()), (2_000, 2_000));
        let kept: usize = report.ended.iter().map(|one| one.outcome.weight()).sum();
        assert!(kept <= MOST_KEPT && kept > MOST_KEPT / 2, "{kept}");
        assert_eq!(report.ended[1_999].outcome, Outcome::Failed(Vec::new()));
        assert_eq!(report.ended[1_999].outcome.name(), "failed");
    }

    #[test]
    fn what_is_promised_about_counts_by_the_promise() {
        let mut report = Report::default();
        let failed = || Outcome::NoAnswer(Box::new(CallError::new(Kind::Failed, "no")));
        report.add(ended(Origin::Promised, failed()));
        report.add(ended(Origin::Promised, Outcome::Passed));
        assert!(report.is_good_but_for_promises());
        let Tally { cases, passed, unanswered, .. } = report.promised;
        assert_eq!((cases, passed, unanswered), (2, 1, 1));
        report.add(ended(Origin::File, failed()));
        assert!(!report.is_good_but_for_promises());
        let wrong = Outcome::NoAnswer(Box::new(CallError::new(Kind::BadInput, "no")));
        assert_eq!((failed().name(), wrong.name()), ("error", "invalid"));
    }
}
