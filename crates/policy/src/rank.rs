//! How good a tool is, as one number that explains itself.
//!
//! `score = clamp(0.30·correctness + 0.25·latency + 0.15·cost + 0.20·safety + 0.10·resilience)`, each from 0 to 1; the weights are
//! the owner's (`[rank]` in the policy). A dimension of which nothing is known counts nothing and is named: no tool is ranked by
//! what somebody made up.

use crate::policy::{RankRules, Weights};

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

#[cfg(test)]
mod tests {
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
}
