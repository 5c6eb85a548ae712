//! How often, how fast, how well.
//!
//! Latencies are counted in buckets whose bounds grow by half an octave, from 128 µs to 18
//! minutes ([`bound`]); a quantile is the upper bound of its bucket, so it is at most 42 % too high.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::Connection;

use super::packages::note_place;
use super::{ALONE, State, StateError, read, stored};
use crate::Time;

/// How many buckets have a bound; one more holds what is slower.
pub const BUCKETS: usize = 48;

/// The upper bound of a bucket; there is none for the last one.
pub fn bound(bucket: usize) -> Option<Duration> {
    // 128 and 181: the second is the first times the square root of two.
    let base = if bucket.is_multiple_of(2) { 128 } else { 181 };
    (bucket < BUCKETS).then(|| Duration::from_micros(base << (bucket / 2)))
}

/// The bucket of a latency.
pub fn bucket_of(latency: Duration) -> usize {
    let bounds: [Option<Duration>; BUCKETS] = std::array::from_fn(bound);
    bounds.partition_point(|bound| bound.is_some_and(|bound| bound < latency))
}

/// What was counted for an action of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// The package: a digest, or id and version, as the caller counted it.
    pub package: String,
    /// The action.
    pub action: String,
    /// How many calls there were.
    pub count: u64,
    /// How many of them failed, by the kind of failure.
    pub failures: BTreeMap<String, u64>,
    /// How many fell into each bucket.
    pub histogram: [u64; BUCKETS + 1],
    /// When the last one ended.
    pub last_used: Time,
}

impl Metrics {
    /// The latency that so many percent of the calls stayed within; the largest that can be told when
    /// it lies beyond the last bound, none without calls.
    pub fn percentile(&self, percent: u8) -> Option<Duration> {
        let total: u64 = self.histogram.iter().sum();
        let wanted = (u128::from(total) * u128::from(percent.min(100))).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.histogram.iter().position(|count| {
            seen += u128::from(*count);
            seen >= wanted
        })?;
        bound(bucket).or_else(|| bound(BUCKETS - 1))
    }

    /// The median.
    pub fn p50(&self) -> Option<Duration> {
        self.percentile(50)
    }

    /// What nineteen of twenty calls stay within.
    pub fn p95(&self) -> Option<Duration> {
        self.percentile(95)
    }
}

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went<'a> {
    /// Well.
    Well,
    /// Not well, with this kind of failure.
    Failed(&'a str),
}

/// A call that is to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The package.
    pub package: String,
    /// The action.
    pub action: String,
    /// Empty, or the kind of failure.
    pub failure: String,
    /// How long it took.
    pub latency: Duration,
    /// When.
    pub at: Time,
    /// The id of the package without its version, and where it was called from, if that is a place that can be
    /// looked at again.
    pub place: Option<(String, String)>,
}

impl State {
    /// Counts a call.
    pub async fn count_call(
        &self,
        package: &str,
        action: &str,
        went: Went<'_>,
        latency: Duration,
        now: Time,
    ) -> Result<(), StateError> {
        let failure = match went {
            Went::Well => String::new(),
            Went::Failed(kind) => kind.to_owned(),
        };
        let (package, action) = (package.to_owned(), action.to_owned());
        self.count_calls(&[Counted { package, action, failure, latency, at: now, place: None }])
            .await
    }

    /// Counts many calls at once.
    pub async fn count_calls(&self, calls: &[Counted]) -> Result<(), StateError> {
        let failed = |error| self.failed("count a call", error);
        let mut connection = self.connection().await;
        let mut alone = connection.begin_with(ALONE).await.map_err(failed)?;
        for call in calls {
            let counted = sqlx::query(
                "INSERT INTO calls (package, action, failure, bucket, count, last_used) \
                 VALUES ($1, $2, $3, $4, 1, $5) \
                 ON CONFLICT (package, action, failure, bucket) DO UPDATE \
                 SET count = calls.count + 1, last_used = excluded.last_used",
            )
            .bind(&call.package)
            .bind(&call.action)
            .bind(&call.failure)
            .bind(stored(bucket_of(call.latency) as u64))
            .bind(call.at.unix_millis())
            .execute(&mut *alone)
            .await;
            counted.map_err(failed)?;
            if let Some((package, place)) = &call.place {
                note_place(&mut alone, package, place).await.map_err(failed)?;
            }
        }
        alone.commit().await.map_err(failed)
    }

    /// What was counted, of one package or of all.
    pub async fn metrics(&self, package: Option<&str>) -> Result<Vec<Metrics>, StateError> {
        let rows: Vec<(String, String, String, i64, i64, i64)> = sqlx::query_as(
            "SELECT package, action, failure, bucket, count, last_used FROM calls \
             WHERE $1 IS NULL OR package = $1 ORDER BY package, action",
        )
        .bind(package)
        .fetch_all(&mut *self.connection().await)
        .await
        .map_err(|error| self.failed("read metrics", error))?;
        let mut all: Vec<Metrics> = Vec::new();
        for (package, action, failure, bucket, count, last_used) in rows {
            let is_same = |last: &Metrics| last.package == package && last.action == action;
            if !all.last().is_some_and(is_same) {
                all.push(Metrics {
                    package,
                    action,
                    count: 0,
                    failures: BTreeMap::new(),
                    histogram: [0; BUCKETS + 1],
                    last_used: Time::default(),
                });
            }
            let metrics = all.last_mut().expect("one was just put there");
            metrics.count += read(count);
            let bucket = usize::try_from(bucket).unwrap_or(BUCKETS).min(BUCKETS);
            metrics.histogram[bucket] += read(count);
            metrics.last_used = metrics.last_used.max(Time::from_unix_millis(last_used));
            if !failure.is_empty() {
                *metrics.failures.entry(failure).or_default() += read(count);
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_within_the_bounds_of_its_bucket() {
        for micros in (0..2_000_000_000).step_by(777_777).chain([127, 128, 129, 181, 182]) {
            let latency = Duration::from_micros(micros);
            let bucket = bucket_of(latency);
            assert!(bound(bucket).is_none_or(|bound| latency <= bound));
            assert!(bucket == 0 || bound(bucket - 1).is_some_and(|bound| latency > bound));
        }
        assert_eq!(bucket_of(Duration::MAX), BUCKETS);
    }

    #[test]
    fn percentiles_are_bounds_of_buckets() {
        let mut metrics = Metrics {
            package: String::new(),
            action: String::new(),
            count: 0,
            failures: BTreeMap::new(),
            histogram: [0; BUCKETS + 1],
            last_used: Time::default(),
        };
        assert_eq!(metrics.p50(), None);
        for millis in 1..=100 {
            metrics.histogram[bucket_of(Duration::from_millis(millis))] += 1;
        }
        for (percent, exact) in [(50, 50), (95, 95), (100, 100), (0, 1)] {
            let told = metrics.percentile(percent).unwrap();
            let exact = Duration::from_millis(exact);
            assert!(told >= exact && told < exact.mul_f64(1.42), "{percent}: {told:?}");
        }
    }
}
