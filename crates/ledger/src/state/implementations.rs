//! How each implementation of a package fared: what its calls come to, and whether it broke the last times it ran.

use std::collections::BTreeMap;

use super::query::query;
use super::{State, StateError, decay, read};
use crate::Time;

/// How an implementation fared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    /// What its calls weigh together, in calls of this moment: each counts the less the longer ago it was.
    pub weight: f64,
    /// How many of them went well; none without any.
    pub success: Option<f64>,
    /// The mean latency of these, in milliseconds.
    pub mean_ms: Option<f64>,
    /// That it broke the last times it ran.
    pub broken: Option<Broken>,
}

/// That an implementation broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// How often, one after the other.
    pub times: u64,
    /// Whether the last time leaves no doubt: it could not even be started.
    pub is_sure: bool,
    /// What was said of it then.
    pub why: String,
    /// When it last did.
    pub at: Time,
}

impl State {
    /// How the implementations of a version fared, by their ids; those that never ran are not among them.
    pub async fn pasts(
        &self,
        package: &str,
        version: &str,
        now: Time,
    ) -> Result<BTreeMap<String, Past>, StateError> {
        let failed = |error| self.failed("read how implementations fared", error);
        let mut connection = self.connection().await?;
        let totals: Vec<(String, f64, f64, f64)> = query(
            "SELECT implementation, sum(weight), sum(weight_well), sum(weight_micros) FROM totals \
             WHERE package = $1 AND version = $2 GROUP BY implementation",
        )
        .bind(package)
        .bind(version)
        .fetch_all(&mut connection)
        .await
        .map_err(failed)?;
        let broken: Vec<(String, i64, bool, String, i64)> = query(
            "SELECT implementation, times, is_sure, why, at FROM broken \
             WHERE package = $1 AND version = $2",
        )
        .bind(package)
        .bind(version)
        .fetch_all(&mut connection)
        .await
        .map_err(failed)?;
        let one = decay::weight(now);
        let past = |(implementation, weight, well, micros): (String, f64, f64, f64)| {
            let past = Past {
                weight: weight / one,
                success: (weight > 0.0).then(|| (well / weight).min(1.0)),
                mean_ms: (well > 0.0).then(|| micros / well / 1_000.0),
                broken: None,
            };
            (implementation, past)
        };
        let mut pasts: BTreeMap<_, _> = totals.into_iter().map(past).collect();
        for (implementation, times, is_sure, why, at) in broken {
            let broken =
                Broken { times: read(times), is_sure, why, at: Time::from_unix_millis(at) };
            pasts.entry(implementation).or_default().broken = Some(broken);
        }
        Ok(pasts)
    }

    /// Notes that an implementation broke once more.
    pub async fn note_broken(
        &self,
        (package, version, implementation): (&str, &str, &str),
        (why, is_sure): (&str, bool),
        at: Time,
    ) -> Result<(), StateError> {
        let noted = query(
            "INSERT INTO broken VALUES ($1, $2, $3, 1, $4, $5, $6) \
             ON CONFLICT (package, version, implementation) DO UPDATE \
             SET times = broken.times + 1, is_sure = excluded.is_sure, \
             why = excluded.why, at = excluded.at",
        );
        noted
            .bind(package)
            .bind(version)
            .bind(implementation)
            .bind(is_sure)
            .bind(why)
            .bind(at.unix_millis())
            .execute(&mut self.connection().await?)
            .await
            .map_err(|error| self.failed("note a broken implementation", error))
            .map(drop)
    }

    /// Notes that an implementation works.
    pub async fn note_whole(
        &self,
        (package, version, implementation): (&str, &str, &str),
    ) -> Result<(), StateError> {
        query("DELETE FROM broken WHERE package = $1 AND version = $2 AND implementation = $3")
            .bind(package)
            .bind(version)
            .bind(implementation)
            .execute(&mut self.connection().await?)
            .await
            .map_err(|error| self.failed("note a whole implementation", error))
            .map(drop)
    }
}
