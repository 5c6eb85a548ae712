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
use policy::policy::{RankRules, Weights};
use serde_json::Value;

/// What measurements have to weigh, in fresh ones, to say anything.
const LEAST_WEIGHT: f64 = 0.5;

/// By how many places a score moves a tool at most among those that were found.
const MOST_PLACES: f64 = 2.0;

/// What a score is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Whether it does what it should.
    Correctness,
    /// How fast it is.
    Latency,
    /// What it takes to be called.
    Cost,
    /// How little it can do wrong.
    Safety,
    /// How seldom it fails.
    Resilience,
}

impl Dimension {
    /// All, in the order of their usual weights in the formula.
    pub const ALL: [Self; 5] =
        [Self::Correctness, Self::Latency, Self::Cost, Self::Safety, Self::Resilience];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Correctness => "correctness",
            Self::Latency => "latency",
            Self::Cost => "cost",
            Self::Safety => "safety",
            Self::Resilience => "resilience",
        }
    }
}

/// What is known of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The part of its tests that passed.
    pub correctness: Option<f64>,
    /// The mean latency of calls that went well, in milliseconds.
    pub latency_ms: Option<f64>,
    /// How cheap it is, from 0 to 1.
    pub cost: Option<f64>,
    /// What it costs in money, where that is known.
    pub price: Option<Price>,
    /// How safe it is, from 0 to 1.
    pub safety: Option<f64>,
    /// The part of its calls that went well.
    pub resilience: Option<f64>,
}

/// What a tool costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Cents a month; what is paid once is spread over a year.
    pub cents_per_month: f64,
    /// Cents a call.
    pub cents_per_call: f64,
}

impl Price {
    /// How cheap that is, from 0 to 1.
    pub fn cheapness(self) -> f64 {
        (1.0 - self.cents_per_month / 2_000.0 - self.cents_per_call / 10.0).clamp(0.0, 1.0)
    }
}

/// One part of a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Of what.
    pub dimension: Dimension,
    /// From 0 to 1; none where nothing is known.
    pub value: Option<f64>,
    /// What it counts.
    pub weight: f64,
}

impl Term {
    /// What it adds to the score.
    pub fn worth(self) -> f64 {
        self.value.unwrap_or(0.0) * self.weight
    }
}

/// A score, with what it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// From 0 to 1.
    pub total: f64,
    /// Every part.
    pub terms: [Term; 5],
}

impl Score {
    /// The dimensions of which nothing is known.
    pub fn unknown(&self) -> impl Iterator<Item = Dimension> {
        self.terms.iter().filter(|term| term.value.is_none()).map(|term| term.dimension)
    }
}

/// How good a tool is by what is known of it.
pub fn score(facts: &Facts, weights: &Weights) -> Score {
    let latency = facts.latency_ms.map(|ms| (1.0 - ms / 1_000.0).max(0.0));
    let terms = [
        (Dimension::Correctness, facts.correctness, weights.correctness),
        (Dimension::Latency, latency, weights.latency),
        (Dimension::Cost, facts.cost, weights.cost),
        (Dimension::Safety, facts.safety, weights.safety),
        (Dimension::Resilience, facts.resilience, weights.resilience),
    ];
    let terms = terms.map(|(dimension, value, weight)| {
        // What is no number is not known either.
        let value = value.filter(|value| value.is_finite()).map(|value| value.clamp(0.0, 1.0));
        Term { dimension, value, weight }
    });
    let total = terms.iter().map(|term| term.worth()).sum::<f64>().clamp(0.0, 1.0);
    Score { total, terms }
}

/// What of the owner's conditions a tool does not meet, each in words. What is not known is not met.
pub fn unmet(facts: &Facts, rules: &RankRules) -> Vec<String> {
    let most = |what: &str, limit: Option<f64>, is: Option<f64>, unit: &str| match (limit, is) {
        (Some(limit), Some(is)) if is > limit => {
            Some(format!("{what} is {is:.0}{unit}, more than {limit:.0}{unit}"))
        }
        (Some(_), None) => Some(format!("{what} is not known")),
        _ => None,
    };
    let least = |what: &str, limit: Option<f64>, is: Option<f64>| match (limit, is) {
        (Some(limit), Some(is)) if is < limit => {
            Some(format!("{what} is {is:.2}, less than {limit:.2}"))
        }
        (Some(_), None) => Some(format!("{what} is not known")),
        _ => None,
    };
    #[expect(clippy::cast_precision_loss, reason = "nobody waits or pays so much")]
    let number = |limit: Option<u64>| limit.map(|limit| limit as f64);
    let month = facts.price.map(|price| price.cents_per_month);
    let call = facts.price.map(|price| price.cents_per_call);
    [
        most("latency", number(rules.max_latency_ms), facts.latency_ms, " ms"),
        most("cost a month", number(rules.max_cents_per_month), month, " cents"),
        most("cost a call", number(rules.max_cents_per_call), call, " cents"),
        least("correctness", rules.min_correctness, facts.correctness),
        least("safety", rules.min_safety, facts.safety),
    ]
    .into_iter()
    .flatten()
    .collect()
}

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

    fn weights() -> Weights {
        RankRules::default().weights
    }

    #[test]
    fn the_score_of_the_formula_is_what_it_says() {
        let facts = Facts {
            correctness: Some(1.0),
            latency_ms: Some(150.0),
            cost: Some(0.8),
            safety: None,
            resilience: Some(0.98),
            price: None,
        };
        let score = score(&facts, &weights());
        assert!((score.total - 0.7305).abs() < 1e-12, "{}", score.total);
        assert_eq!(score.unknown().map(Dimension::name).collect::<Vec<_>>(), ["safety"]);
        let worth: Vec<_> = score.terms.iter().map(|term| (term.worth() * 1e4).round()).collect();
        assert_eq!(worth, [3_000.0, 2_125.0, 1_200.0, 0.0, 980.0]);
    }

    #[test]
    fn a_score_is_from_0_to_1_whatever_is_known() {
        let nothing = score(&Facts::default(), &weights());
        assert_eq!(nothing.unknown().count(), 5);
        assert!(nothing.total.abs() < f64::EPSILON);
        let wild = Facts {
            correctness: Some(7.0),
            latency_ms: Some(1e9),
            cost: Some(f64::NAN),
            resilience: Some(-1.0),
            ..Facts::default()
        };
        let heavy = Weights { correctness: 5.0, ..weights() };
        assert!((score(&wild, &heavy).total - 1.0).abs() < f64::EPSILON);
        let slow = score(&wild, &weights());
        assert!((slow.total - 0.3).abs() < 1e-12, "{slow:?}");
        assert_eq!(slow.unknown().count(), 2);
    }

    #[test]
    fn what_is_not_known_meets_no_condition() {
        let rules = RankRules {
            max_latency_ms: Some(500),
            max_cents_per_call: Some(2),
            min_correctness: Some(0.9),
            ..RankRules::default()
        };
        let good = Facts {
            latency_ms: Some(499.0),
            price: Some(Price { cents_per_month: 900.0, cents_per_call: 2.0 }),
            correctness: Some(0.9),
            ..Facts::default()
        };
        assert!(unmet(&good, &rules).is_empty());
        let bad = Facts { latency_ms: Some(900.0), correctness: Some(0.5), ..good };
        assert_eq!(
            unmet(&bad, &rules),
            ["latency is 900 ms, more than 500 ms", "correctness is 0.50, less than 0.90"]
        );
        let unknown = unmet(&Facts::default(), &rules);
        assert_eq!(unknown.len(), 3);
        assert!(unknown.iter().all(|words| words.ends_with("not known")), "{unknown:?}");
        assert!(unmet(&Facts::default(), &RankRules::default()).is_empty());
    }

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
