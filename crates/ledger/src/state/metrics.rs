//! How often, how fast, how well: by package, version, action and implementation.
//!
//! Every call is counted, with the kind of its failure, in a span of an hour. Not every failure is the tool's: see
//! [`is_of_tool`]. Latencies are those of calls that went well.

use std::collections::BTreeMap;
use std::time::Duration;

use super::latency::{BUCKETS, Histogram};
use super::query::query;
use super::recent::{self, Ran};
use super::{State, StateError, decay, read};
use crate::Time;

pub use super::decay::HALF_LIFE;

/// A call that never began, because something was not there that it would have run with.
pub const NOT_STARTED: &str = "not_started";

/// Something that was run beside the calls: a server that was asked what it offers, a smoke test.
pub const BESIDE: &str = "beside";

/// Whether a failure of a kind is held against the tool: it broke, took too long, said too much or what it should not,
/// or could not be reached any more once it was called. What was refused, called off, asked for wrongly or never began is
/// no failure of the tool, and no success either.
pub fn is_of_tool(failure: &str) -> bool {
    matches!(
        failure,
        "tool_failed" | "timed_out" | "too_much_output" | "bad_output" | "unavailable"
    )
}

/// What is counted apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Series {
    /// The package, by its id with the dialect.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The action.
    pub action: String,
    /// The implementation that ran; empty where none was chosen, or it was not written down.
    pub implementation: String,
}

/// What was counted for a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Of what.
    pub series: Series,
    /// How many calls the tool had a part in.
    pub calls: u64,
    /// How many of these failed.
    pub failed: u64,
    /// How many calls did not go well, by the kind of failure, whoever's it was.
    pub failures: BTreeMap<String, u64>,
    /// The latencies of those that went well.
    pub latencies: Histogram,
    /// The mean of these; none where none went well.
    pub mean: Option<Duration>,
    /// When the first one ended.
    pub first_used: Time,
    /// When the last one ended.
    pub last_used: Time,
    /// The last calls that the tool had a part in, the oldest first.
    pub recent: Vec<Ran>,
}

impl Metrics {
    /// How many of the calls went well, of those that the tool had a part in; none without any.
    pub fn success(&self) -> Option<f64> {
        rate(self.calls, self.failed)
    }

    /// Counts all of another too. What is known call by call is not: their order among each other is not known.
    pub fn join(&mut self, other: &Self) {
        #[expect(clippy::cast_precision_loss, reason = "a mean is no account")]
        let sum = |one: &Self| {
            one.mean.map_or(0.0, |mean| mean.as_secs_f64() * (one.calls - one.failed) as f64)
        };
        let sums = sum(self) + sum(other);
        let is_first = self.calls == 0 && self.failures.is_empty();
        self.first_used =
            if is_first { other.first_used } else { self.first_used.min(other.first_used) };
        self.last_used = self.last_used.max(other.last_used);
        self.calls += other.calls;
        self.failed += other.failed;
        self.latencies.join(&other.latencies);
        for (kind, count) in &other.failures {
            *self.failures.entry(kind.clone()).or_default() += count;
        }
        #[expect(clippy::cast_precision_loss, reason = "a mean is no account")]
        let well = (self.calls - self.failed) as f64;
        self.mean = (well > 0.0).then(|| Duration::from_secs_f64(sums / well));
        self.recent.clear();
    }
}

/// What was counted in a while, of all series of a package together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// When it begins.
    pub begins: Time,
    /// How long it is; nothing for all that was before what is still told apart.
    pub lasts: Duration,
    /// How many calls the tool had a part in.
    pub calls: u64,
    /// How many of these failed.
    pub failed: u64,
    /// The latencies of those that went well.
    pub latencies: Histogram,
}

impl Span {
    /// How many of the calls went well; none without any.
    pub fn success(&self) -> Option<f64> {
        rate(self.calls, self.failed)
    }
}

/// How a version stands: what its calls come to, each counting the less the longer ago it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The package.
    pub package: String,
    /// The version.
    pub version: String,
    /// How many calls the tool had a part in.
    pub calls: u64,
    /// What they weigh together, in calls of this moment.
    pub weight: f64,
    /// How many of them went well; none without any.
    pub success: Option<f64>,
    /// The mean latency of these, in milliseconds.
    pub mean_ms: Option<f64>,
    /// When the last one ended.
    pub last_used: Time,
}

impl State {
    /// What was counted, of one package or of all, series by series.
    pub async fn metrics(&self, package: Option<&str>) -> Result<Vec<Metrics>, StateError> {
        type Total = (String, String, String, String, i64, i64, i64, i64, i64, String);
        type Sum = (String, String, String, String, String, i64, i64);
        let failed = |error| self.failed("read metrics", error);
        let mut connection = self.connection().await?;
        let totals: Vec<Total> = query(
            "SELECT package, version, action, implementation, calls, failed, micros, first_used, \
             last_used, recent FROM totals WHERE $1 IS NULL OR package = $1",
        )
        .bind(package)
        .fetch_all(&mut connection)
        .await
        .map_err(failed)?;
        let sums: Vec<Sum> = query(
            "SELECT package, version, action, implementation, failure, bucket, CAST(sum(count) AS BIGINT) \
             FROM spans WHERE $1 IS NULL OR package = $1 \
             GROUP BY package, version, action, implementation, failure, bucket",
        )
        .bind(package)
        .fetch_all(&mut connection)
        .await
        .map_err(failed)?;
        let mut all = BTreeMap::new();
        for row in totals {
            let (package, version, action, implementation, calls, failed, micros, ..) = row;
            let series = Series { package, version, action, implementation };
            let (calls, failed) = (read(calls), read(failed));
            let metrics = Metrics {
                series: series.clone(),
                calls,
                failed,
                mean: read(micros)
                    .checked_div(calls.saturating_sub(failed))
                    .map(Duration::from_micros),
                first_used: Time::from_unix_millis(row.7),
                last_used: Time::from_unix_millis(row.8),
                recent: recent::read(&row.9),
                ..Metrics::default()
            };
            all.insert(series, metrics);
        }
        for (package, version, action, implementation, failure, bucket, count) in sums {
            let series = Series { package, version, action, implementation };
            // Both are written together.
            let Some(metrics) = all.get_mut(&series) else { continue };
            if failure.is_empty() {
                metrics.latencies.add(bucket_from(bucket), read(count));
            } else {
                *metrics.failures.entry(failure).or_default() += read(count);
            }
        }
        Ok(all.into_values().collect())
    }

    /// What was counted of a package over time, of one version or of all; the oldest first.
    pub async fn over_time(
        &self,
        package: &str,
        version: Option<&str>,
    ) -> Result<Vec<Span>, StateError> {
        let rows: Vec<(i64, i64, String, i64, i64)> = query(
            "SELECT begins, lasts, failure, bucket, CAST(sum(count) AS BIGINT) FROM spans \
             WHERE package = $1 AND ($2 IS NULL OR version = $2) \
             GROUP BY begins, lasts, failure, bucket ORDER BY begins, lasts",
        )
        .bind(package)
        .bind(version)
        .fetch_all(&mut self.connection().await?)
        .await
        .map_err(|error| self.failed("read metrics", error))?;
        let mut spans: Vec<Span> = Vec::new();
        for (begins, lasts, failure, bucket, count) in rows {
            let (begins, lasts) =
                (Time::from_unix_millis(begins), Duration::from_millis(read(lasts)));
            if spans.last().is_none_or(|last| (last.begins, last.lasts) != (begins, lasts)) {
                spans.push(Span { begins, lasts, ..Span::default() });
            }
            let span = spans.last_mut().expect("one was just put there");
            if failure.is_empty() {
                span.latencies.add(bucket_from(bucket), read(count));
                span.calls += read(count);
            } else if is_of_tool(&failure) {
                span.calls += read(count);
                span.failed += read(count);
            }
        }
        Ok(spans)
    }

    /// How every version stands that was ever called.
    pub async fn standings(&self, now: Time) -> Result<Vec<Standing>, StateError> {
        type Row = (String, String, i64, f64, f64, f64, i64);
        // Of many packages, adding them up there would take longer, too.
        let mut rows: Vec<Row> = self
            .in_one(
                "package, version, calls, weight, weight_well, weight_micros, last_used",
                "FROM totals WHERE $1 IS NULL OR package = $1",
                None,
                "read metrics",
            )
            .await?;
        rows.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
        rows.dedup_by(|next, first| {
            let is_same = (&next.0, &next.1) == (&first.0, &first.1);
            if is_same {
                first.2 += next.2;
                first.3 += next.3;
                first.4 += next.4;
                first.5 += next.5;
                first.6 = first.6.max(next.6);
            }
            is_same
        });
        let one = decay::weight(now);
        let standing = |(package, version, calls, weight, well, micros, last_used): Row| Standing {
            package,
            version,
            calls: read(calls),
            weight: weight / one,
            success: (weight > 0.0).then(|| (well / weight).min(1.0)),
            mean_ms: (well > 0.0).then(|| micros / well / 1_000.0),
            last_used: Time::from_unix_millis(last_used),
        };
        Ok(rows.into_iter().map(standing).collect())
    }
}

fn rate(calls: u64, failed: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a rate is no account")]
    let rate = calls.saturating_sub(failed) as f64 / calls as f64;
    (calls > 0).then_some(rate)
}

fn bucket_from(number: i64) -> usize {
    usize::try_from(number).unwrap_or(BUCKETS).min(BUCKETS)
}
