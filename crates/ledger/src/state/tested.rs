//! How the tests of packages went the last time.

use std::time::Duration;

use super::query::query;
use super::{State, StateError, read, stored};
use crate::Time;

/// How the tests of a version went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The package, by its id with the dialect.
    pub package: String,
    /// Its version.
    pub version: String,
    /// How many tests there are.
    pub total: u64,
    /// How many of them passed.
    pub passed: u64,
    /// How many of those went now this way, now that.
    pub flaky: u64,
    /// How long those took that passed, on the average, where that is known.
    pub latency: Option<Duration>,
    /// When they were run.
    pub at: Time,
}

impl State {
    /// Notes how the tests of a version went; what was noted of it before is forgotten.
    pub async fn note_tests(&self, tested: &Tested) -> Result<(), StateError> {
        let noted = query(
            "INSERT INTO tests (package, version, total, passed, flaky, at, latency) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) \
             ON CONFLICT (package, version) DO UPDATE SET total = excluded.total, passed = excluded.passed, \
             flaky = excluded.flaky, at = excluded.at, latency = excluded.latency",
        );
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        noted
            .bind(&tested.package)
            .bind(&tested.version)
            .bind(stored(tested.total))
            .bind(stored(tested.passed))
            .bind(stored(tested.flaky))
            .bind(tested.at.unix_millis())
            .bind(tested.latency.map(micros))
            .execute(&mut self.connection().await?)
            .await
            .map_err(|error| self.failed("note tests", error))
            .map(drop)
    }

    /// How the tests went, of one package or of all, version by version.
    pub async fn tested(&self, package: Option<&str>) -> Result<Vec<Tested>, StateError> {
        type Row = (String, String, i64, i64, i64, i64, Option<i64>);
        let rows: Vec<Row> = self
            .in_one(
                "package, version, total, passed, flaky, at, latency",
                "FROM tests WHERE $1 IS NULL OR package = $1 ORDER BY package, version",
                package,
                "read tests",
            )
            .await?;
        let tested = |(package, version, total, passed, flaky, at, latency)| Tested {
            package,
            version,
            total: read(total),
            passed: read(passed),
            flaky: read(flaky),
            latency: Option::map(latency, |micros| Duration::from_micros(read(micros))),
            at: Time::from_unix_millis(at),
        };
        Ok(rows.into_iter().map(tested).collect())
    }
}
