//! What a definition can be told with beside itself: what its author shows, and how its tests went.

use std::time::Duration;

use serde_json::{Value, json};

/// What is known of a package beside what it declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The texts of its examples.
    pub examples: Vec<String>,
    /// How its tests went, where they were run.
    pub tests: Option<TestSummary>,
}

/// How the tests of a package went the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestSummary {
    /// How many there are.
    pub total: u64,
    /// How many of them passed.
    pub passed: u64,
    /// How long those took on the average, where that is known.
    pub latency: Option<Duration>,
}

impl TestSummary {
    pub(super) fn to_value(self) -> Value {
        let failed = self.total.saturating_sub(self.passed);
        let mut summary = json!({"total": self.total, "passed": self.passed, "failed": failed});
        if let Some(latency) = self.latency {
            // A tenth of a millisecond is as much as anybody can tell.
            let ms = (latency.as_secs_f64() * 10_000.0).round() / 10.0;
            summary["average_latency_ms"] = json!(ms);
        }
        summary
    }
}
