//! The tests that a version carries, and what is reported of them.

use registry::{Provenance, TestReport, TestedCase};

use super::date::Moment;
use super::inert::short;
use super::inside::{Case, Files};
use super::words::duration;

/// The tests of a version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tested {
    pub(super) lines: Vec<Line>,
    /// How many more there are.
    pub(super) more: usize,
    pub(super) claim: Option<Claim>,
}

/// One test.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) about: String,
    /// How much it looks at, where that is known.
    pub(super) checks: Option<usize>,
    pub(super) result: Option<Outcome>,
}

/// What is reported of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) passed: bool,
    pub(super) took: String,
}

/// What a publisher says of all of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) says: String,
    /// The same, where there is little room.
    pub(super) brief: String,
    pub(super) all_passed: bool,
    /// Who says so.
    pub(super) who: String,
    pub(super) when: Moment,
    pub(super) took: String,
    pub(super) ran_by: String,
    pub(super) walls: Option<String>,
}

/// The tests of a package with so many of them, whose files may be out of reach.
pub(super) fn tested(
    count: usize,
    files: Option<&Files>,
    report: Option<&TestReport>,
    provenance: Option<&Provenance>,
) -> Tested {
    let reported = report.map_or(&[][..], |report| report.cases.as_slice());
    let lines: Vec<Line> = match files {
        Some(files) => files.cases.iter().map(|case| line(case, reported)).collect(),
        None => reported.iter().map(bare).collect(),
    };
    let more = count.saturating_sub(lines.len());
    Tested { lines, more, claim: report.map(|report| claim(report, provenance)) }
}

fn line(case: &Case, reported: &[TestedCase]) -> Line {
    let result = reported.iter().find(|one| one.path == case.path).map(outcome);
    let (name, about) = (case.name.clone(), case.about.clone());
    Line { name, about, checks: Some(case.checks), result }
}

fn bare(case: &TestedCase) -> Line {
    let result = Some(outcome(case));
    Line { name: short(&case.name, 80), about: String::new(), checks: None, result }
}

fn outcome(case: &TestedCase) -> Outcome {
    Outcome { passed: case.passed, took: duration(case.took_ms) }
}

fn claim(report: &TestReport, provenance: Option<&Provenance>) -> Claim {
    let all_passed = report.failed == 0;
    let says = match report.total() {
        1 if all_passed => "The test passed".to_owned(),
        1 => "The test failed".to_owned(),
        many if all_passed => format!("All {many} passed"),
        many => format!("{} of {many} failed", report.failed),
    };
    let who = match provenance.and_then(|sworn| sworn.repository.as_deref()) {
        Some(repository) => format!("its publisher, the build of {}", short(repository, 120)),
        None => "its publisher".to_owned(),
    };
    Claim {
        says,
        brief: match report.total() {
            1 => format!("{} of 1 test reported passed", report.passed),
            many => format!("{} of {many} tests reported passed", report.passed),
        },
        all_passed,
        who,
        when: Moment(report.ran_at),
        took: duration(report.took_ms),
        ran_by: short(&report.ran_by, 60),
        walls: report.sandbox.as_deref().map(|level| short(level, 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(failed: u32) -> TestReport {
        let case = |path: &str, passed| TestedCase {
            path: path.to_owned(),
            name: format!("name of {path}"),
            passed,
            took_ms: 1_500,
        };
        TestReport {
            sha256: "5f".repeat(32),
            passed: 2 - failed,
            failed,
            cases: vec![case("a", true), case("b", failed == 0)],
            ran_at: 0,
            took_ms: 3_000,
            sandbox: Some("L3".to_owned()),
            ran_by: "haft 0.1.0".to_owned(),
        }
    }

    fn files() -> Files {
        let case = |path: &str| Case {
            path: path.to_owned(),
            name: format!("own name of {path}"),
            about: String::new(),
            checks: 1,
        };
        Files { cases: vec![case("b"), case("c")], ..Files::default() }
    }

    #[test]
    fn each_test_has_the_result_that_is_reported_of_its_file() {
        let shown = tested(3, Some(&files()), Some(&report(1)), None);
        assert_eq!((shown.lines.len(), shown.more), (2, 1));
        assert_eq!(shown.lines[0].name, "own name of b");
        let failed = Outcome { passed: false, took: "1.5 s".to_owned() };
        assert_eq!((&shown.lines[0].result, &shown.lines[1].result), (&Some(failed), &None));
        let claim = shown.claim.unwrap();
        assert_eq!((claim.says.as_str(), claim.who.as_str()), ("1 of 2 failed", "its publisher"));
        assert_eq!(claim.brief, "1 of 2 tests reported passed");
        let alone = TestReport { passed: 1, failed: 0, ..report(0) };
        assert_eq!(super::claim(&alone, None).brief, "1 of 1 test reported passed");
    }

    #[test]
    fn without_its_files_there_is_what_was_reported_and_without_a_report_nothing_is_claimed() {
        let shown = tested(2, None, Some(&report(0)), None);
        assert_eq!((shown.lines[1].name.as_str(), shown.lines[1].checks), ("name of b", None));
        assert_eq!(shown.claim.unwrap().says, "All 2 passed");
        let silent = tested(2, Some(&files()), None, None);
        assert!(silent.claim.is_none() && silent.lines.iter().all(|line| line.result.is_none()));
    }
}
