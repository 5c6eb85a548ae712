//! What an author promises of a package over time, held against how its cases went.

use std::time::Duration;

use manifest::model::Package;
use serde_json::Value;

/// What an author promises.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verify {
    /// The file of cases, as the manifest names it.
    pub cases: Option<String>,
    /// The share of them that must pass.
    pub pass_threshold: f64,
    /// How many there are, where that is said.
    pub case_count: Option<u64>,
    /// What half of them stay within, in milliseconds.
    pub p50_ms: Option<u64>,
    /// What nineteen of twenty stay within, in milliseconds.
    pub p95_ms: Option<u64>,
    /// The largest share that may get no answer.
    pub error_rate_max: Option<f64>,
    /// Whether the cases are run when the package is installed.
    pub on_install: bool,
}

impl Verify {
    /// What the author of a package promises, if anything.
    pub fn of(package: &Package) -> Option<Self> {
        let value = package.verify.as_ref()?.value();
        let (suite, sla, schedule) = (&value["suite"], &value["sla"], &value["schedule"]);
        let whole = |value: &Value| value.as_f64().map(whole);
        Some(Self {
            cases: suite["ref"].as_str().map(str::to_owned),
            pass_threshold: suite["pass_threshold"].as_f64().unwrap_or(1.0),
            case_count: whole(&suite["case_count"]),
            p50_ms: whole(&sla["p50_latency_ms"]),
            p95_ms: whole(&sla["p95_latency_ms"]),
            error_rate_max: sla["error_rate_max"].as_f64(),
            on_install: schedule["on_install"] == true || schedule["cadence"] == "on-install",
        })
    }

    /// What is promised of cases that went so. Where none were run, nothing can be said.
    pub fn promises(&self, tally: &Tally) -> Vec<Promise> {
        if self.cases.is_none() || tally.cases == 0 {
            return Vec::new();
        }
        let share = |part: u64| as_float(part) / as_float(tally.cases);
        let passed = share(tally.passed);
        let mut promises = vec![Promise {
            name: "pass_threshold",
            expected: format!("at least {}", self.pass_threshold),
            found: rounded(passed),
            // The share that was promised may have no exact form.
            is_kept: passed + 1e-9 >= self.pass_threshold,
        }];
        let most = |name, most: Option<u64>, found: u64| {
            let most = most?;
            let (expected, found_told) = (format!("at most {most}"), found.to_string());
            Some(Promise { name, expected, found: found_told, is_kept: found <= most })
        };
        promises.extend(self.case_count.map(|count| Promise {
            name: "case_count",
            expected: count.to_string(),
            found: tally.cases.to_string(),
            is_kept: count == tally.cases,
        }));
        promises.extend(most("p50_latency_ms", self.p50_ms, tally.percentile(50)));
        promises.extend(most("p95_latency_ms", self.p95_ms, tally.percentile(95)));
        promises.extend(self.error_rate_max.map(|most| {
            let found = share(tally.unanswered);
            Promise {
                name: "error_rate_max",
                expected: format!("at most {most}"),
                found: rounded(found),
                is_kept: found <= most + 1e-9,
            }
        }));
        promises
    }
}

/// Something that an author promised, and whether it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Its name in manifests.
    pub name: &'static str,
    /// What was promised.
    pub expected: String,
    /// What was found.
    pub found: String,
    /// Whether it was kept.
    pub is_kept: bool,
}

/// How the cases of a file went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many were run.
    pub cases: u64,
    /// How many passed.
    pub passed: u64,
    /// How many got no answer.
    pub unanswered: u64,
    /// How long each took that got one, in milliseconds.
    took: Vec<u32>,
}

impl Tally {
    /// Counts the time of a case that got an answer.
    pub(crate) fn add(&mut self, took: Duration) {
        self.took.push(u32::try_from(took.as_millis()).unwrap_or(u32::MAX));
    }

    /// The time that so many percent stayed within, in milliseconds.
    fn percentile(&self, percent: usize) -> u64 {
        let mut sorted = self.took.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
        sorted.get(at).copied().unwrap_or_default().into()
    }
}

/// A share to be read: four digits.
fn rounded(share: f64) -> String {
    format!("{share:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[expect(clippy::cast_precision_loss, reason = "there are far fewer cases than that")]
fn as_float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the shape of a manifest allows whole numbers from zero alone"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(verify: &Verify, tally: &Tally) -> Vec<(&'static str, String, bool)> {
        let promises = verify.promises(tally);
        promises.into_iter().map(|one| (one.name, one.found, one.is_kept)).collect()
    }

    #[test]
    fn promises_are_held_against_what_was_found() {
        let mut tally = Tally { cases: 20, passed: 18, unanswered: 1, ..Tally::default() };
        for took in 1..=19 {
            tally.add(Duration::from_millis(took * 10));
        }
        let verify = Verify {
            cases: Some("cases.jsonl".to_owned()),
            pass_threshold: 0.9,
            case_count: Some(20),
            p50_ms: Some(100),
            p95_ms: Some(180),
            error_rate_max: Some(0.05),
            on_install: false,
        };
        assert_eq!(
            kept(&verify, &tally),
            [
                ("pass_threshold", "0.9".to_owned(), true),
                ("case_count", "20".to_owned(), true),
                ("p50_latency_ms", "100".to_owned(), true),
                ("p95_latency_ms", "190".to_owned(), false),
                ("error_rate_max", "0.05".to_owned(), true),
            ]
        );
        let strict = Verify { pass_threshold: 0.91, case_count: Some(21), ..verify.clone() };
        let broken: Vec<_> =
            kept(&strict, &tally).into_iter().filter(|one| !one.2).map(|one| one.0).collect();
        assert_eq!(broken, ["pass_threshold", "case_count", "p95_latency_ms"]);
        assert_eq!(kept(&verify, &Tally::default()), []);
        assert_eq!(kept(&Verify { cases: None, ..verify }, &tally), []);
    }
}
