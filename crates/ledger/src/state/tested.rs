//! How the tests of packages went the last time.

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
    /// When they were run.
    pub at: Time,
}

impl State {
    /// Notes how the tests of a version went; what was noted of it before is forgotten.
    pub async fn note_tests(&self, tested: &Tested) -> Result<(), StateError> {
        let noted = sqlx::query(
            "INSERT INTO tests VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT DO UPDATE SET total = excluded.total, passed = excluded.passed, \
             flaky = excluded.flaky, at = excluded.at",
        );
        noted
            .bind(&tested.package)
            .bind(&tested.version)
            .bind(stored(tested.total))
            .bind(stored(tested.passed))
            .bind(stored(tested.flaky))
            .bind(tested.at.unix_millis())
            .execute(&mut *self.connection().await)
            .await
            .map_err(|error| self.failed("note tests", error))
            .map(drop)
    }

    /// How the tests went, of one package or of all, version by version.
    pub async fn tested(&self, package: Option<&str>) -> Result<Vec<Tested>, StateError> {
        let rows: Vec<(String, String, i64, i64, i64, i64)> = self
            .in_one(
                "SELECT json_group_array(json_array(package, version, total, passed, flaky, at)) FROM \
                 (SELECT * FROM tests WHERE $1 IS NULL OR package = $1 ORDER BY package, version)",
                package,
                "read tests",
            )
            .await?;
        let tested = |(package, version, total, passed, flaky, at)| Tested {
            package,
            version,
            total: read(total),
            passed: read(passed),
            flaky: read(flaky),
            at: Time::from_unix_millis(at),
        };
        Ok(rows.into_iter().map(tested).collect())
    }
}
