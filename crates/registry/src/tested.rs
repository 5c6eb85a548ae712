//! How the tests of a version went, and who says so.

use std::collections::HashSet;

use manifest::path::MAX_PATH;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::{Checked, Fault};

/// How the tests of a version went. Whoever can say so has a member of their own, so that nobody's word is taken for
/// somebody else's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tests {
    /// What its publisher reports: a claim, which the registry keeps as it was made and has not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<TestReport>,
}

/// What a publisher reports of the tests of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestReport {
    /// SHA-256 of the package file it is about, in hexadecimal: of no other bytes does it say anything.
    pub sha256: String,
    /// How many tests passed.
    pub passed: u32,
    /// How many did not.
    pub failed: u32,
    /// Each test, in order; of very many the first.
    pub cases: Vec<TestedCase>,
    /// When they were run.
    #[serde(with = "crate::moment")]
    #[schemars(schema_with = "crate::moment::schema")]
    pub ran_at: u64,
    /// How long all of them took together, in milliseconds.
    pub took_ms: u64,
    /// The walls they were run in, from `L0` to `L3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The program that ran them, and its version.
    pub ran_by: String,
}

/// How one test went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestedCase {
    /// The path of its file in the package.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Whether the answer was as it should be.
    pub passed: bool,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

impl TestReport {
    /// The most bytes of a report, as JSON.
    pub const MOST_BYTES: usize = 256 << 10;
    /// The most tests that are told one by one.
    pub const MOST_CASES: usize = 100;
    /// The longest name of a test, and of the program that ran it, in bytes.
    pub const LONGEST_NAME: usize = 200;

    /// How many tests there were.
    pub fn total(&self) -> u64 {
        u64::from(self.passed) + u64::from(self.failed)
    }

    /// Whether the counts are those of the cases, as far as these are told.
    fn check_counts(&self) -> Result<(), Fault> {
        let told = |passed: bool| self.cases.iter().filter(|case| case.passed == passed).count();
        let is_cut = self.cases.len() == Self::MOST_CASES;
        for (field, count, told) in
            [("passed", self.passed, told(true)), ("failed", self.failed, told(false))]
        {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            if count < told || (count > told && !is_cut) {
                return Err(Fault::Number(field));
            }
        }
        Ok(())
    }
}

impl Checked for TestReport {
    fn check(&self) -> Result<(), Fault> {
        if package::digest::Digest::parse(&self.sha256).is_none() {
            return Err(Fault::Digest("sha256"));
        }
        if self.cases.is_empty() {
            return Err(Fault::Empty("cases"));
        }
        if self.cases.len() > Self::MOST_CASES {
            return Err(Fault::Long("cases"));
        }
        check_line("ranBy", &self.ran_by)?;
        if let Some(level) = &self.sandbox {
            check_line("sandbox", level)?;
        }
        let mut paths = HashSet::new();
        for case in &self.cases {
            check_line("name", &case.name)?;
            if case.path.len() > MAX_PATH {
                return Err(Fault::Long("path"));
            }
            if !paths.insert(&case.path) {
                return Err(Fault::Twice(case.path.clone()));
            }
        }
        self.check_counts()
    }
}

fn check_line(field: &'static str, text: &str) -> Result<(), Fault> {
    if text.trim().is_empty() {
        Err(Fault::Empty(field))
    } else if text.len() > TestReport::LONGEST_NAME {
        Err(Fault::Long(field))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn report() -> Value {
        json!({
            "sha256": "5f".repeat(32), "passed": 1, "failed": 1, "ranAt": "2026-11-16T00:00:00.000Z", "tookMs": 40,
            "sandbox": "L3", "ranBy": "haft 0.1.0",
            "cases": [
                {"path": "tests/a.test.json", "name": "a", "passed": true, "tookMs": 30},
                {"path": "tests/b.test.json", "name": "b", "passed": false, "tookMs": 10},
            ],
        })
    }

    fn read(report: &Value) -> Result<TestReport, crate::Unreadable> {
        crate::read(report.to_string().as_bytes())
    }

    #[test]
    fn a_report_is_read_and_may_say_more_than_we_know() {
        let mut more = report();
        more["flaky"] = json!(2);
        more["cases"][0]["attempts"] = json!(3);
        let read = read(&more).unwrap();
        assert_eq!((read.total(), read.cases[1].passed), (2, false));
        assert_eq!(json!(read), report());
    }

    #[test]
    fn a_report_that_does_not_add_up_or_has_no_bounds_is_refused() {
        let long = "x".repeat(1_100);
        for (at, value) in [
            ("/sha256", json!("5f")),
            ("/passed", json!(2)),
            ("/failed", json!(0)),
            ("/passed", json!(-1)),
            ("/cases", json!([])),
            ("/ranBy", json!(" ")),
            ("/ranBy", json!(long)),
            ("/sandbox", json!(long)),
            ("/ranAt", json!(1_794_787_200_000_u64)),
            ("/ranAt", json!("10000-01-01T00:00:00Z")),
            ("/cases/0/name", json!("")),
            ("/cases/0/name", json!(long)),
            ("/cases/0/path", json!(long)),
            ("/cases/0/path", json!("tests/b.test.json")),
            ("/cases/0/passed", json!("yes")),
        ] {
            let mut changed = report();
            *changed.pointer_mut(at).unwrap() = value;
            assert!(read(&changed).is_err(), "{at}");
        }
    }

    #[test]
    fn of_very_many_tests_the_first_are_told_and_all_are_counted() {
        let case =
            |n: usize| json!({"path": format!("{n}"), "name": "n", "passed": true, "tookMs": 1});
        let with = |told: usize, passed: usize| {
            let mut many = report();
            many["cases"] = (0..told).map(case).collect();
            (many["passed"], many["failed"]) = (json!(passed), json!(0));
            read(&many)
        };
        assert!(with(TestReport::MOST_CASES, 5_000).is_ok());
        assert!(with(TestReport::MOST_CASES + 1, TestReport::MOST_CASES + 1).is_err());
        assert!(with(TestReport::MOST_CASES, TestReport::MOST_CASES - 1).is_err());
        assert!(with(3, 5_000).is_err());
    }
}
