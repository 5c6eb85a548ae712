//! Calls, counted: many at once, and in a bounded place.
//!
//! Hours are kept for two weeks, then days for 400 days, then one span for all that was before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::flows::{self, Flow};
use super::latency::bucket_of;
use super::metrics::{Series, is_of_tool};
use super::packages::note_place;
use super::query::{Alone, Turn, query};
use super::recent::{self, KEPT, Ran};
use super::{State, StateError, decay, read, stored};
use crate::Time;

/// After how many further calls of a series somebody should look whether it got worse.
pub const STEP: u64 = 16;

/// The length of a span, and how long those of that length are kept.
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const HOURS_KEPT: i64 = 14 * DAY;
const DAYS_KEPT: i64 = 400 * DAY;

/// A call that is to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Of what; calls that wait together may share it.
    pub series: Arc<Series>,
    /// Empty, or the kind of failure.
    pub failure: String,
    /// How long it took.
    pub latency: Duration,
    /// When.
    pub at: Time,
    /// Where the package was called from, if that is a place that can be looked at again.
    pub place: Option<Arc<str>>,
    /// What went in and came out, where that is kept.
    pub flow: Option<Box<Flow>>,
}

impl State {
    /// Counts calls, all or none. Gives the packages of which so many further calls were counted that somebody should
    /// look whether they got worse.
    pub async fn count_calls(&self, calls: &[Counted]) -> Result<BTreeSet<String>, StateError> {
        let failed = |error| self.failed("count a call", error);
        let mut series: BTreeMap<&Series, Added> = BTreeMap::new();
        let mut spans: BTreeMap<(&Series, i64, &str, usize), u64> = BTreeMap::new();
        let mut places: BTreeMap<&str, &str> = BTreeMap::new();
        let mut last = None;
        for call in calls {
            series.entry(&call.series).or_default().add(call);
            let hour = call.at.unix_millis() / HOUR * HOUR;
            let span = (&*call.series, hour, call.failure.as_str(), bucket_of(call.latency));
            *spans.entry(span).or_default() += 1;
            places.extend(call.place.as_deref().map(|place| (&*call.series.package, place)));
            last = last.max(Some(call.at));
        }
        let Some(last) = last else { return Ok(BTreeSet::new()) };
        let kept: Vec<&Flow> = calls.iter().filter_map(|call| call.flow.as_deref()).collect();
        let mut connection = self.connection().await?;
        let mut alone = connection.alone(Turn::Calls).await.map_err(failed)?;
        let mut due = BTreeSet::new();
        for ((series, hour, failure, bucket), count) in spans {
            put_span(&mut alone, series, hour, failure, bucket, count).await.map_err(failed)?;
        }
        for (series, added) in series {
            let after = put_total(&mut alone, series, &added).await.map_err(failed)?;
            if after / STEP != after.saturating_sub(added.calls) / STEP {
                due.insert(series.package.clone());
            }
        }
        for (package, place) in places {
            note_place(&mut alone, package, place).await.map_err(failed)?;
        }
        if !kept.is_empty() {
            flows::put(&mut alone, &kept).await.map_err(failed)?;
            flows::forget_old(&mut alone).await.map_err(failed)?;
        }
        fold(&mut alone, last).await.map_err(failed)?;
        alone.commit().await.map_err(failed)?;
        Ok(due)
    }
}

/// What a batch adds to a series.
#[derive(Default)]
struct Added {
    calls: u64,
    failed: u64,
    micros: u64,
    first: Option<Time>,
    last: Time,
    weight: f64,
    weight_well: f64,
    weight_micros: f64,
    letters: String,
}

impl Added {
    fn add(&mut self, call: &Counted) {
        self.first = Some(self.first.map_or(call.at, |first| first.min(call.at)));
        self.last = self.last.max(call.at);
        let is_well = call.failure.is_empty();
        if !is_well && !is_of_tool(&call.failure) {
            return;
        }
        let weight = decay::weight(call.at);
        self.calls += 1;
        self.weight += weight;
        if is_well {
            let micros = u64::try_from(call.latency.as_micros()).unwrap_or(u64::MAX);
            // A clock that stood for years is no latency, and sums must stay numbers.
            let micros = micros.min(1 << 40);
            self.micros += micros;
            self.weight_well += weight;
            #[expect(clippy::cast_precision_loss, reason = "it is less than 2^53")]
            let weighed = weight * micros as f64;
            self.weight_micros += weighed;
            self.letters.push(recent::letter(Ran::Well(bucket_of(call.latency))));
        } else {
            self.failed += 1;
            self.letters.push(recent::letter(Ran::Failed));
        }
    }
}

async fn put_span(
    alone: &mut Alone<'_>,
    series: &Series,
    hour: i64,
    failure: &str,
    bucket: usize,
    count: u64,
) -> Result<(), sqlx::Error> {
    let put = query(
        "INSERT INTO spans VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (package, version, action, implementation, begins, lasts, failure, bucket) \
         DO UPDATE SET count = spans.count + excluded.count",
    );
    put.bind(&series.package)
        .bind(&series.version)
        .bind(&series.action)
        .bind(&series.implementation)
        .bind(hour)
        .bind(HOUR)
        .bind(failure)
        .bind(stored(bucket as u64))
        .bind(stored(count))
        .execute(alone)
        .await
        .map(drop)
}

/// Adds to what a series comes to; how many calls that are then.
async fn put_total(
    alone: &mut Alone<'_>,
    series: &Series,
    added: &Added,
) -> Result<u64, sqlx::Error> {
    // Each call is one letter; of both together the last 256 are kept, see `KEPT`.
    let put = query(
        "INSERT INTO totals VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
         ON CONFLICT (package, version, action, implementation) DO UPDATE SET \
         calls = totals.calls + excluded.calls, failed = totals.failed + excluded.failed, \
         micros = totals.micros + excluded.micros, last_used = CASE \
         WHEN totals.last_used > excluded.last_used THEN totals.last_used ELSE excluded.last_used END, \
         weight = totals.weight + excluded.weight, \
         weight_well = totals.weight_well + excluded.weight_well, \
         weight_micros = totals.weight_micros + excluded.weight_micros, \
         recent = substr(totals.recent || excluded.recent, CASE \
         WHEN length(totals.recent) + length(excluded.recent) > 256 \
         THEN length(totals.recent) + length(excluded.recent) - 255 ELSE 1 END) \
         RETURNING totals.calls",
    );
    let last = &added.letters[added.letters.len().saturating_sub(KEPT)..];
    let (calls,): (i64,) = put
        .bind(&series.package)
        .bind(&series.version)
        .bind(&series.action)
        .bind(&series.implementation)
        .bind(stored(added.calls))
        .bind(stored(added.failed))
        .bind(stored(added.micros))
        .bind(added.first.unwrap_or(added.last).unix_millis())
        .bind(added.last.unix_millis())
        .bind(added.weight)
        .bind(added.weight_well)
        .bind(added.weight_micros)
        .bind(last)
        .fetch_one(alone)
        .await?;
    Ok(read(calls))
}

/// Makes days of old hours and one span of old days, once a day.
async fn fold(alone: &mut Alone<'_>, now: Time) -> Result<(), sqlx::Error> {
    let today = now.unix_millis() / DAY * DAY;
    let last: Option<(i64,)> = query("SELECT day FROM folded").fetch_optional(&mut *alone).await?;
    // A clock that went wrong for a day must not keep it from ever being done again.
    if last == Some((today,)) {
        return Ok(());
    }
    for (lasts, kept, into, day) in [(HOUR, HOURS_KEPT, DAY, 1_i64), (DAY, DAYS_KEPT, 0, 0)] {
        let folded = query(
            "INSERT INTO spans SELECT package, version, action, implementation, \
             (begins - begins % 86400000) * $4, $1, failure, bucket, sum(count) FROM spans \
             WHERE lasts = $2 AND begins < $3 GROUP BY 1, 2, 3, 4, 5, 7, 8 \
             ON CONFLICT (package, version, action, implementation, begins, lasts, failure, bucket) \
             DO UPDATE SET count = spans.count + excluded.count",
        );
        let old = today - kept;
        folded.bind(into).bind(lasts).bind(old).bind(day).execute(&mut *alone).await?;
        let forgotten = query("DELETE FROM spans WHERE lasts = $1 AND begins < $2");
        forgotten.bind(lasts).bind(old).execute(&mut *alone).await?;
    }
    let noted = query(match last {
        None => "INSERT INTO folded VALUES (1, $1)",
        Some(_) => "UPDATE folded SET day = $1",
    });
    noted.bind(today).execute(alone).await.map(drop)
}
