//! Calls and cents of a day, and how many calls may come at once.
//!
//! The limits are the caller's; what is used up is counted here, so that two processes cannot
//! both take the last of something.

use std::time::Duration;

use super::query::{Alone, On, Turn, query};
use super::{State, StateError, read, stored};
use crate::Time;
use crate::time::Day;

/// The row of all packages together.
const OVERALL: &str = "";

/// What may be used in a day; what is not given is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Calls.
    pub calls: Option<u64>,
    /// Cents.
    pub cents: Option<u64>,
}

/// What was used in a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls.
    pub calls: u64,
    /// Cents.
    pub cents: u64,
}

/// Whose budget it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One package's.
    Package,
    /// That of all together.
    Overall,
}

/// Whether a call may be paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It is counted.
    Yes,
    /// Nothing is counted: this budget has no more calls.
    NoCalls(Scope),
    /// Nothing is counted: this budget has not so many cents.
    NoCents(Scope),
}

/// How many calls may come: so many at once, and then one every so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many at once.
    pub burst: u32,
    /// How long until there is room for one more.
    pub every: Duration,
}

/// Whether a call comes too soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paced {
    /// It may run.
    Yes,
    /// It may run after this time.
    Wait(Duration),
}

impl State {
    /// Counts a call and its price against the package's budget and that of all together: both, or
    /// neither. What has no limit is not counted, so that a limit which is set later begins with nothing.
    pub async fn reserve(
        &self,
        day: Day,
        package: &str,
        cents: u64,
        of_package: Budget,
        overall: Budget,
    ) -> Result<Reserved, StateError> {
        let failed = |error| self.failed("count against a budget", error);
        let mut connection = self.connection().await?;
        let mut alone = connection.alone(Turn::Budgets).await.map_err(failed)?;
        let budgets = [(Scope::Package, package, of_package), (Scope::Overall, OVERALL, overall)];
        for (scope, row, budget) in budgets {
            let spent = spent(&mut alone, day, row).await.map_err(failed)?;
            if budget.calls.is_some_and(|most| spent.calls >= most) {
                return Ok(Reserved::NoCalls(scope));
            }
            if budget.cents.is_some_and(|most| spent.cents.saturating_add(cents) > most) {
                return Ok(Reserved::NoCents(scope));
            }
        }
        for (_, row, budget) in budgets.into_iter().filter(|one| one.2 != Budget::default()) {
            let calls = i64::from(budget.calls.is_some());
            let cents = budget.cents.map_or(0, |_| stored(cents));
            add(&mut alone, day, row, calls, cents).await.map_err(failed)?;
        }
        alone.commit().await.map_err(failed)?;
        Ok(Reserved::Yes)
    }

    /// What a package used in a day; all together when none is named.
    pub async fn spent(&self, day: Day, package: Option<&str>) -> Result<Spent, StateError> {
        let mut connection = self.connection().await?;
        let spent = spent(&mut connection, day, package.unwrap_or(OVERALL)).await;
        spent.map_err(|error| self.failed("read a budget", error))
    }

    /// Takes one call from a bucket that fills up again with time.
    pub async fn pace(&self, name: &str, rate: Rate, now: Time) -> Result<Paced, StateError> {
        let now = now.unix_millis() * 1_000;
        let (every, window) = span(rate);
        // A bucket that is full later than it can be was filled by a clock that has gone back.
        let taken: Option<(i64,)> = query(
            "INSERT INTO rates (name, \"full\") VALUES ($1, $2 + $3) \
             ON CONFLICT (name) DO UPDATE SET \"full\" = $3 + CASE \
             WHEN rates.full < $2 OR rates.full > $2 + $4 THEN $2 ELSE rates.full END \
             WHERE rates.full + $3 <= $2 + $4 OR rates.full > $2 + $4 RETURNING rates.full",
        )
        .bind(name)
        .bind(now)
        .bind(every)
        .bind(window)
        .fetch_optional(&mut self.connection().await?)
        .await
        .map_err(|error| self.failed("pace a call", error))?;
        if taken.is_some() {
            return Ok(Paced::Yes);
        }
        let (full,): (i64,) = query("SELECT rates.full FROM rates WHERE name = $1")
            .bind(name)
            .fetch_one(&mut self.connection().await?)
            .await
            .map_err(|error| self.failed("pace a call", error))?;
        Ok(Paced::Wait(Duration::from_micros(read(full + every - now - window))))
    }

    /// How many calls a bucket has room for now, and how long it is until there is room for one. Nothing is taken.
    pub async fn paced(
        &self,
        name: &str,
        rate: Rate,
        now: Time,
    ) -> Result<(u32, Duration), StateError> {
        let full: Option<(i64,)> = query("SELECT rates.full FROM rates WHERE name = $1")
            .bind(name)
            .fetch_optional(&mut self.connection().await?)
            .await
            .map_err(|error| self.failed("look at the pace of calls", error))?;
        let now = now.unix_millis() * 1_000;
        let (every, window) = span(rate);
        // The same clock that has gone back.
        let full = full.map(|(full,)| full);
        let full = full.filter(|full| (now..=now + window).contains(full)).unwrap_or(now);
        let room = u32::try_from((now + window - full) / every).unwrap_or(u32::MAX);
        let wait = Duration::from_micros(read(full + every - now - window));
        Ok((room, if room > 0 { Duration::ZERO } else { wait }))
    }
}

/// A rate in microseconds: from one call to the next, and as long as it takes until all are there again.
fn span(rate: Rate) -> (i64, i64) {
    let every = i64::try_from(rate.every.as_micros()).unwrap_or(i64::MAX / 4).max(1);
    (every, every.saturating_mul(i64::from(rate.burst.max(1))))
}

async fn spent(on: impl Into<On<'_>>, day: Day, row: &str) -> Result<Spent, sqlx::Error> {
    let found: Option<(i64, i64)> =
        query("SELECT calls, cents FROM budgets WHERE day = $1 AND package = $2")
            .bind(day.to_string())
            .bind(row)
            .fetch_optional(on)
            .await?;
    let (calls, cents) = found.unwrap_or_default();
    Ok(Spent { calls: read(calls), cents: read(cents) })
}

async fn add(
    alone: &mut Alone<'_>,
    day: Day,
    row: &str,
    calls: i64,
    cents: i64,
) -> Result<(), sqlx::Error> {
    query(
        "INSERT INTO budgets (day, package, calls, cents) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (day, package) DO UPDATE \
         SET calls = budgets.calls + excluded.calls, cents = budgets.cents + excluded.cents",
    )
    .bind(day.to_string())
    .bind(row)
    .bind(calls)
    .bind(cents)
    .execute(alone)
    .await
    .map(drop)
}
