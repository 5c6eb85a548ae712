//! Two tools on the same tests: which passes more of them, and whether one is faster.
//!
//! Each test is called on both in turn, so that whatever slows the machine slows both. Of every such pair it is asked only
//! which was faster; were they alike, each would be as often as the other, and the exact two-sided sign test says how
//! probable a result at least this uneven would be then. Below [`CLEAR`] one of them is called faster.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use host::{Host, Tool};

use crate::case::Case;
use crate::report::Ended;
use crate::run::{How, run};

/// Below this probability a difference is no chance.
pub const CLEAR: f64 = 0.01;

/// What was found of two tools.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// The first and the second.
    pub sides: [Standing; 2],
    /// Pairs of calls in which both passed: how often each was the faster one.
    pub faster: [u64; 2],
}

/// How one of them did.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Names of the tests that passed each time.
    pub passed: Vec<String>,
    /// How those ended that did not, the first time.
    pub failed: Vec<Ended>,
    /// How long calls took that passed.
    times: Vec<Duration>,
}

impl Standing {
    /// The time that half of its calls took at most.
    pub fn median(&self) -> Option<Duration> {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }
}

impl Compared {
    /// How probable it is that two tools that are alike differ as much.
    pub fn chance(&self) -> f64 {
        sign_test(self.faster[0], self.faster[1])
    }

    /// Which is the faster one, 0 or 1, where that is clear.
    pub fn faster(&self) -> Option<usize> {
        let [first, second] = self.faster;
        (self.chance() < CLEAR).then_some(usize::from(second > first))
    }

    /// How much longer the first takes than the second, by their medians.
    pub fn ratio(&self) -> Option<f64> {
        let [first, second] = [self.sides[0].median()?, self.sides[1].median()?];
        Some(first.as_secs_f64() / second.as_secs_f64().max(f64::MIN_POSITIVE))
    }

    /// Tests that the first passes and the second does not.
    pub fn lost(&self) -> Vec<&str> {
        let [first, second] = &self.sides;
        let is_lost = |name: &&String| !second.passed.contains(name);
        first.passed.iter().filter(is_lost).map(String::as_str).collect()
    }
}

/// What is held against another: a tool, and perhaps one of its implementations alone.
pub type Side<'s> = (&'s Tool, Option<&'s str>);

/// Runs the same tests on both, each so often in turn, after one time that is not counted.
pub async fn compare(
    host: &Host,
    sides: [Side<'_>; 2],
    cases: &[Case],
    rounds: NonZeroU32,
    how: &How,
) -> Compared {
    let how = How { jobs: NonZeroUsize::MIN, calls: NonZeroU32::MIN, ..how.clone() };
    let mut compared = Compared::default();
    for (number, case) in cases.iter().enumerate() {
        let mut failed: [Option<Ended>; 2] = [None, None];
        for round in 0..=rounds.get() {
            let mut took = [None, None];
            // Neither is always the first.
            let first = (round as usize + number) % 2;
            for side in [first, 1 - first] {
                if how.called_off.is_cancelled() {
                    return compared;
                }
                let (tool, implementation) = sides[side];
                let how = How { implementation: implementation.map(str::to_owned), ..how.clone() };
                let report = run(host, tool, [Ok(case.clone())], &how, &mut |_| {}).await;
                let Some(ended) = report.ended.into_iter().next() else { continue };
                if ended.outcome.is_passed() {
                    took[side] = Some(ended.took);
                } else if failed[side].is_none() {
                    failed[side] = Some(ended);
                }
            }
            if round > 0 {
                compared.add(took);
            }
        }
        for (side, failed) in failed.into_iter().enumerate() {
            match failed {
                Some(ended) => compared.sides[side].failed.push(ended),
                None => compared.sides[side].passed.push(case.name.clone()),
            }
        }
    }
    compared
}

impl Compared {
    fn add(&mut self, took: [Option<Duration>; 2]) {
        for (side, took) in took.into_iter().enumerate() {
            self.sides[side].times.extend(took);
        }
        if let [Some(first), Some(second)] = took {
            self.faster[0] += u64::from(first < second);
            self.faster[1] += u64::from(second < first);
        }
    }
}

/// How probable so uneven a result is of fair coins, in both directions.
fn sign_test(one: u64, other: u64) -> f64 {
    let (few, all) = (one.min(other), one + other);
    // In logarithms: half to the power of a thousand is nothing.
    #[expect(clippy::cast_precision_loss, reason = "nobody makes so many calls")]
    let log = |number: u64| (number as f64).ln();
    #[expect(clippy::cast_precision_loss, reason = "nobody makes so many calls")]
    let mut term = -(all as f64) * std::f64::consts::LN_2;
    let mut sum = term.exp();
    for number in 1..=few {
        term += log(all - number + 1) - log(number);
        sum += term.exp();
    }
    (2.0 * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_that_are_fair_are_found_to_be() {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-4, "{found}");
        near(sign_test(0, 0), 1.0);
        near(sign_test(5, 5), 1.0);
        near(sign_test(0, 5), 0.0625);
        near(sign_test(1, 9), 0.0215);
        near(sign_test(0, 10), 0.00195);
        near(sign_test(8, 2), 0.1094);
        assert!(sign_test(900, 1_100) < 1e-4 && sign_test(0, 5_000) < 1e-9);
    }

    #[test]
    fn one_is_faster_when_that_is_no_chance_and_the_ratio_is_of_medians() {
        let ms = Duration::from_millis;
        let mut compared = Compared::default();
        for number in 0..10 {
            compared.add([Some(ms(20 + number)), Some(ms(10))]);
        }
        compared.add([None, Some(ms(1))]);
        assert_eq!((compared.faster, compared.faster()), ([0, 10], Some(1)));
        assert!((compared.ratio().unwrap() - 2.5).abs() < 0.01, "{:?}", compared.ratio());
        compared.faster = [4, 6];
        assert_eq!(compared.faster(), None);
    }

    #[test]
    fn what_only_the_first_passes_is_lost() {
        let standing = |names: &[&str]| Standing {
            passed: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Standing::default()
        };
        let sides = [standing(&["a", "b"]), standing(&["b", "c"])];
        assert_eq!(Compared { sides, ..Compared::default() }.lost(), ["a"]);
    }
}
