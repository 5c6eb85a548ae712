//! A package, looked at again and again: what got worse is noted once, and written into the log.

use ledger::audit::{self, Audit, Decision, Outcome};
use ledger::state::metrics::{Metrics, Series};
use ledger::state::regressions::{Regression, What};
use ledger::{AuditError, State, StateError, Time};

use crate::regression::{Calls, Than, is_over, look};

/// What the log calls it.
pub const CHANGE: &str = "regression";
/// How the log calls what got slower.
pub const SLOWER: &str = "slower";
/// How the log calls what fails more often.
pub const FAILING: &str = "failing_more";

/// What is known of a package once somebody has looked.
#[derive(Debug)]
pub struct Seen {
    /// What got worse, the newest first, whether or not it is over.
    pub regressions: Vec<Regression>,
    /// Why something of it is not in the log; it is tried again the next time.
    pub unwritten: Option<AuditError>,
}

/// Looks whether a package got worse, notes what did and what is over, and writes into the log what is not there yet.
pub async fn watch(
    state: &State,
    audit: &Audit,
    package: &str,
    now: Time,
) -> Result<Seen, StateError> {
    let metrics = state.metrics(Some(package)).await?;
    for one in &metrics {
        let before = version_before(one, &metrics);
        let calls = before.map(calls_of);
        for worse in look(&calls_of(one), &one.recent, calls.as_ref()) {
            // What shows in many of the last calls and in none of the very last is over already.
            if is_over(worse.what, worse.before, &one.recent) {
                continue;
            }
            let than = before.filter(|_| worse.than == Than::VersionBefore);
            let found = Regression {
                id: 0,
                series: one.series.clone(),
                what: worse.what,
                against: than.map(|before| before.series.version.clone()),
                calls: worse.calls,
                before: worse.before,
                after: worse.after,
                chance: worse.chance,
                seen: now,
                over: None,
                is_written: false,
            };
            state.note_regression(&found).await?;
        }
    }
    let mut unwritten = None;
    for known in state.regressions(Some(package)).await? {
        let of = metrics.iter().find(|one| one.series == known.series);
        if known.over.is_none()
            && of.is_some_and(|one| is_over(known.what, known.before, &one.recent))
        {
            state.end_regression(known.id, now).await?;
        }
        if !known.is_written && unwritten.is_none() {
            match write(audit, &known, now) {
                Ok(()) => state.note_written(known.id).await?,
                Err(error) => unwritten = Some(error),
            }
        }
    }
    Ok(Seen { regressions: state.regressions(Some(package)).await?, unwritten })
}

/// What got worse, in words.
pub fn words(found: &Regression) -> String {
    let (before, after) = match found.what {
        What::Latency => (milliseconds(found.before), milliseconds(found.after)),
        What::Success => (percent(found.before), percent(found.after)),
    };
    let what = match found.what {
        What::Latency => "slower: a call typically takes",
        What::Success => "fails more often: of its calls go well",
    };
    let than = match &found.against {
        Some(version) => format!("with {version}"),
        None => "before".to_owned(),
    };
    format!(
        "{what} {after}, {before} {than}; {} calls show it, by chance {}",
        found.calls,
        odds(found.chance)
    )
}

/// How seldom it is. Beyond a billion nobody reads a number.
fn odds(chance: f64) -> String {
    if chance < 1e-9 {
        return "less than once in a billion".to_owned();
    }
    format!("at most once in {:.0}", 1.0 / chance)
}

fn milliseconds(number: f64) -> String {
    if number < 10.0 { format!("{number:.1} ms") } else { format!("{number:.0} ms") }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

fn write(audit: &Audit, found: &Regression, now: Time) -> Result<(), AuditError> {
    let Series { package, version, action, implementation } = found.series.clone();
    let about = audit::Call {
        package,
        version,
        action,
        implementation,
        change: CHANGE.to_owned(),
        surface: "metrics".to_owned(),
        decision: Decision::Open,
        ..audit::Call::default()
    };
    let outcome = match found.what {
        What::Latency => SLOWER,
        What::Success => FAILING,
    };
    audit.found(&about, &Outcome::Error(outcome.to_owned()), &words(found), now).map(drop)
}

fn calls_of(metrics: &Metrics) -> Calls {
    Calls { latencies: metrics.latencies.clone(), failed: metrics.failed }
}

/// The version that was called before this one, as the same action by the same implementation.
fn version_before<'m>(one: &Metrics, all: &'m [Metrics]) -> Option<&'m Metrics> {
    let is_before = |other: &&Metrics| {
        other.series.version != one.series.version
            && other.series.action == one.series.action
            && other.series.implementation == one.series.implementation
            && other.first_used < one.first_used
    };
    all.iter().filter(is_before).max_by_key(|other| other.first_used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_are_words_that_people_read() {
        assert_eq!(odds(0.001), "at most once in 1000");
        for seldom in [1e-45, 0.0] {
            assert_eq!(odds(seldom), "less than once in a billion");
        }
    }
}
