//! What was found to be worse than before.

use super::metrics::Series;
use super::query::{Turn, query};
use super::{State, StateError, read, stored};
use crate::Time;

/// How many are kept of each package.
const KEPT: i64 = 100;

/// What got worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// It is slower: `before` and `after` are typical latencies, in milliseconds.
    Latency,
    /// It fails more often: `before` and `after` are parts of the calls that went well.
    Success,
}

impl What {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Success => "success",
        }
    }
}

/// Something that is worse than before.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// Its number.
    pub id: i64,
    /// Of what.
    pub series: Series,
    /// What got worse.
    pub what: What,
    /// The version that was better; none where it is earlier calls of the same.
    pub against: Option<String>,
    /// How many calls show it.
    pub calls: u64,
    /// How it was.
    pub before: f64,
    /// How it is.
    pub after: f64,
    /// How likely calls would look so different, or more, if nothing had changed; at most.
    pub chance: f64,
    /// When it was seen first.
    pub seen: Time,
    /// Since when it is as good as before again.
    pub over: Option<Time>,
    /// Whether it is in the log.
    pub is_written: bool,
}

impl State {
    /// Notes that something got worse, unless that is known and not over; whether it is news. Its number is given here.
    pub async fn note_regression(&self, found: &Regression) -> Result<bool, StateError> {
        let failed = |error| self.failed("note a regression", error);
        let mut connection = self.connection().await?;
        let mut alone = connection.alone(Turn::Regressions).await.map_err(failed)?;
        let Series { package, version, action, implementation } = &found.series;
        let noted = query(
            "INSERT INTO regressions (package, version, action, implementation, what, against, calls, \
             before, after, chance, seen, written) \
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 WHERE NOT EXISTS \
             (SELECT 1 FROM regressions WHERE package = $1 AND version = $2 AND action = $3 \
             AND implementation = $4 AND what = $5 AND over IS NULL)",
        )
        .bind(package)
        .bind(version)
        .bind(action)
        .bind(implementation)
        .bind(found.what.name())
        .bind(found.against.as_deref().unwrap_or_default())
        .bind(stored(found.calls))
        .bind(found.before)
        .bind(found.after)
        .bind(found.chance)
        .bind(found.seen.unix_millis())
        .bind(false)
        .execute(&mut alone)
        .await
        .map_err(failed)?;
        let is_news = noted > 0;
        if is_news {
            let forgotten = query(
                "DELETE FROM regressions WHERE package = $1 AND id NOT IN \
                 (SELECT id FROM regressions WHERE package = $1 ORDER BY id DESC LIMIT $2)",
            );
            forgotten.bind(package).bind(KEPT).execute(&mut alone).await.map_err(failed)?;
        }
        alone.commit().await.map_err(failed)?;
        Ok(is_news)
    }

    /// What got worse, of one package or of all, the newest first.
    pub async fn regressions(&self, package: Option<&str>) -> Result<Vec<Regression>, StateError> {
        type Row = (
            i64,
            String,
            String,
            String,
            String,
            String,
            String,
            i64,
            f64,
            f64,
            f64,
            i64,
            Option<i64>,
            bool,
        );
        let rows: Vec<Row> = query(
            "SELECT id, package, version, action, implementation, what, against, calls, before, \
             after, chance, seen, over, written FROM regressions \
             WHERE $1 IS NULL OR package = $1 ORDER BY id DESC",
        )
        .bind(package)
        .fetch_all(&mut self.connection().await?)
        .await
        .map_err(|error| self.failed("read regressions", error))?;
        let mut all = Vec::new();
        for row in rows {
            let (id, package, version, action, implementation, what, against, calls, ..) = row;
            let (.., before, after, chance, seen, over, is_written) = row;
            all.push(Regression {
                id,
                series: Series { package, version, action, implementation },
                what: if what == What::Latency.name() { What::Latency } else { What::Success },
                against: Some(against).filter(|against| !against.is_empty()),
                calls: read(calls),
                before,
                after,
                chance,
                seen: Time::from_unix_millis(seen),
                over: over.map(Time::from_unix_millis),
                is_written,
            });
        }
        Ok(all)
    }

    /// Notes that one is in the log.
    pub async fn note_written(&self, id: i64) -> Result<(), StateError> {
        query("UPDATE regressions SET written = $2 WHERE id = $1")
            .bind(id)
            .bind(true)
            .execute(&mut self.connection().await?)
            .await
            .map_err(|error| self.failed("note a regression", error))
            .map(drop)
    }

    /// Notes that one is over.
    pub async fn end_regression(&self, id: i64, now: Time) -> Result<(), StateError> {
        query("UPDATE regressions SET over = $2 WHERE id = $1 AND over IS NULL")
            .bind(id)
            .bind(now.unix_millis())
            .execute(&mut self.connection().await?)
            .await
            .map_err(|error| self.failed("end a regression", error))
            .map(drop)
    }
}
