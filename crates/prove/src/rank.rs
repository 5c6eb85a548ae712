//! How good a tool is, as one number that explains itself.
//!
//! `score = clamp(0.30·correctness + 0.25·latency + 0.15·cost + 0.20·safety + 0.10·resilience)`, each from 0 to 1; the weights are
//! the owner's (`[rank]` in the policy). A dimension of which nothing is known counts nothing and is named: no tool is ranked by
//! what somebody made up.
//!
//! | dimension | what it is |
//! |---|---|
//! | correctness | how many of its tests passed the last time they were run here |
//! | latency | `max(0, 1 − mean ms ÷ 1000)` of its calls that went well |
//! | cost | `max(0, 1 − cents a month ÷ 2000 − cents a call ÷ 10)`, by what its manifest and the owner say |
//! | safety | half how far its source is trusted, half how strong its walls are |
//! | resilience | how many of its calls went well |
//!
//! Measurements grow old: a call counts half after 30 days, and once all of them together weigh less than half a fresh one,
//! nothing is known any more. The same holds for tests.

use host::Level;
use ledger::Time;
use ledger::state::metrics::{HALF_LIFE, Standing};
use ledger::state::tested::Tested;
use manifest::model::Trust;
use serde_json::Value;

pub use policy::rank::{Dimension, Facts, Price, Score, Term, score, unmet};

/// What measurements have to weigh, in fresh ones, to say anything.
const LEAST_WEIGHT: f64 = 0.5;

/// By how many places a score moves a tool at most among those that were found.
const MOST_PLACES: f64 = 2.0;

/// Where a tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walls {
    /// Here, inside walls of this worth.
    Here(Level),
    /// On another machine: nothing of this one is within its reach but what it is sent.
    Elsewhere,
}

/// How safe a tool is: half by how far its source is trusted, half by its walls.
pub fn safety(trust: Trust, walls: Walls) -> f64 {
    let trust = match trust {
        Trust::Untrusted => 0.0,
        Trust::Community => 0.4,
        Trust::Verified => 0.8,
        Trust::Local => 1.0,
    };
    let walls = match walls {
        Walls::Here(Level::L0) => 0.0,
        Walls::Here(Level::L1) => 0.35,
        Walls::Here(Level::L2) | Walls::Elsewhere => 0.7,
        Walls::Here(Level::L3) => 1.0,
    };
    f64::midpoint(trust, walls)
}

/// What a tool costs, by the `cost` of its manifest, whether it says that it spends money, and what the owner says a call
/// costs. None where nobody says, or where it charges by use and nobody says how much.
pub fn price(
    cost: Option<&Value>,
    uses_payment: Option<bool>,
    cents_per_call: u64,
) -> Option<Price> {
    #[expect(clippy::cast_precision_loss, reason = "nobody pays so much")]
    let call = cents_per_call as f64;
    let of_owner = Price { cents_per_month: 0.0, cents_per_call: call };
    let Some(cost) = cost else {
        let is_known = cents_per_call > 0 || uses_payment == Some(false);
        return is_known.then_some(of_owner);
    };
    let cents = |name: &str| cost.get(name).and_then(Value::as_f64).unwrap_or(0.0).max(0.0);
    let by_use = match cost.get("usage_model").and_then(Value::as_str) {
        Some("none") => false,
        Some(_) => true,
        // Who names a fee and no use charges the fee.
        None => cost.get("monthly_fee_cents").or(cost.get("install_fee_cents")).is_none(),
    };
    if by_use && cents_per_call == 0 {
        return None;
    }
    let cents_per_month = cents("monthly_fee_cents") + cents("install_fee_cents") / 12.0;
    Some(Price { cents_per_month, ..of_owner })
}

/// The part of a version's tests that passed, as long as that is worth anything.
pub fn correctness(tested: &Tested, now: Time) -> Option<f64> {
    let age = now.unix_millis().saturating_sub(tested.at.unix_millis()).max(0);
    #[expect(clippy::cast_precision_loss, reason = "it is a part of few")]
    let (age, total, passed) = (age as f64, tested.total as f64, tested.passed as f64);
    let weight = total * (-age / 1_000.0 / HALF_LIFE.as_secs_f64()).exp2();
    (weight >= LEAST_WEIGHT).then(|| (passed / total).min(1.0))
}

/// The mean latency and the part that went well of a version's calls, as long as they are worth anything.
pub fn measured(standing: &Standing) -> (Option<f64>, Option<f64>) {
    if standing.weight < LEAST_WEIGHT {
        return (None, None);
    }
    (standing.mean_ms, standing.success)
}

/// In which order tools are shown that were found in this one, when so much is known of how good each is: by its score a
/// tool rises by at most two places, and one of which nothing is known never falls behind by more.
pub fn nudged(scores: &[Option<f64>]) -> Vec<usize> {
    #[expect(clippy::cast_precision_loss, reason = "there are few of them")]
    let place = |at: usize| {
        let risen = scores[at].unwrap_or(0.0).clamp(0.0, 1.0) * MOST_PLACES;
        at as f64 - risen
    };
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|one, other| place(*one).total_cmp(&place(*other)).then(one.cmp(other)));
    order
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_price_is_known_where_somebody_says_it() {
        let price = |cost: Value, call| super::price(Some(&cost), None, call);
        let free = json!({"install_fee_cents": 0, "monthly_fee_cents": 0, "usage_model": "none"});
        assert_eq!(price(free, 0), Some(Price::default()));
        let fee = json!({"monthly_fee_cents": 900, "install_fee_cents": 1_200});
        let known = price(fee, 0).unwrap();
        assert!((known.cents_per_month - 1_000.0).abs() < 1e-9);
        assert!((known.cheapness() - 0.5).abs() < 1e-9);
        assert_eq!(price(json!({"usage_model": "per-call"}), 0), None);
        assert_eq!(price(json!({"usage_model": "external", "monthly_fee_cents": 5}), 0), None);
        let stated = price(json!({"usage_model": "per-call"}), 5).unwrap();
        assert!((stated.cheapness() - 0.5).abs() < 1e-9);
        assert_eq!(super::price(None, None, 0), None);
        assert_eq!(super::price(None, Some(true), 0), None);
        assert_eq!(super::price(None, Some(false), 0), Some(Price::default()));
    }

    #[test]
    fn what_is_trusted_more_or_walled_better_is_safer() {
        let mut last = -1.0;
        for (trust, level) in [
            (Trust::Untrusted, Level::L0),
            (Trust::Untrusted, Level::L2),
            (Trust::Community, Level::L2),
            (Trust::Verified, Level::L2),
            (Trust::Verified, Level::L3),
            (Trust::Local, Level::L3),
        ] {
            let safety = safety(trust, Walls::Here(level));
            assert!(safety > last, "{trust:?} {level:?}");
            last = safety;
        }
        assert!((last - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn measurements_grow_old_until_nothing_is_known() {
        let now = Time::from_unix_millis(1_794_000_000_000);
        let tested = |total, days: u32| Tested {
            package: String::new(),
            version: String::new(),
            total,
            passed: total / 2,
            flaky: 0,
            latency: None,
            at: now.minus(HALF_LIFE / 30 * days),
        };
        assert_eq!(correctness(&tested(8, 0), now), Some(0.5));
        assert_eq!(correctness(&tested(8, 119), now), Some(0.5));
        assert_eq!(correctness(&tested(8, 121), now), None);
        assert_eq!(correctness(&tested(0, 0), now), None);
        let standing = |weight| Standing {
            package: String::new(),
            version: String::new(),
            calls: 3,
            weight,
            success: Some(0.9),
            mean_ms: Some(20.0),
            last_used: now,
        };
        assert_eq!(measured(&standing(0.6)), (Some(20.0), Some(0.9)));
        assert_eq!(measured(&standing(0.4)), (None, None));
    }

    #[test]
    fn a_score_moves_a_tool_by_two_places_at_most() {
        assert_eq!(nudged(&[None, None, None]), [0, 1, 2]);
        assert_eq!(nudged(&[None, None, None, Some(0.9), None]), [0, 1, 3, 2, 4]);
        assert_eq!(nudged(&[Some(0.2), Some(0.9)]), [1, 0]);
        let best_last: Vec<_> = (0..10).map(|at| (at == 9).then_some(1.0)).collect();
        assert_eq!(nudged(&best_last), [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]);
    }
}
