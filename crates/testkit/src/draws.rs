//! Numbers that decide what is made.
//!
//! A generator asks for one choice after another. Zero, and the end of the
//! numbers, mean the simplest choice: so a counterexample shrinks by shortening
//! a list and lowering its numbers, whatever was made from it, and the bytes of
//! a fuzzer serve as well as those of `proptest`.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

/// How many characters of a counterexample are shown.
const MOST_SHOWN: usize = 8_000;

/// A source of choices.
#[derive(Debug)]
pub struct Draws<'d> {
    left: &'d [u16],
}

impl<'d> Draws<'d> {
    /// Choices from these numbers.
    pub fn new(numbers: &'d [u16]) -> Self {
        Self { left: numbers }
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        let Some((first, rest)) = self.left.split_first() else { return 0 };
        self.left = rest;
        // Scaled, not the remainder: a lower draw must be a simpler choice.
        (usize::from(*first) * end) >> 16
    }

    /// Yes, once in so many times; no when the numbers have run out.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) + 1 == times
    }

    /// One of these; the first is the simplest.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Whether there are no more numbers.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}

/// What is made from at most so many choices.
pub fn made<T: Debug>(most: usize, make: impl Fn(&mut Draws<'_>) -> T) -> impl Strategy<Value = T> {
    numbers(most).prop_map(move |numbers| make(&mut Draws::new(&numbers)))
}

/// At most so many numbers to draw.
pub fn numbers(most: usize) -> impl Strategy<Value = Vec<u16>> {
    vec(any::<u16>(), 0..=most)
}

/// Holds a property over so many cases; panics with the smallest counterexample.
///
/// The cases are the same in every run, so that no failure comes by chance. `HAFT_CASES=20` asks
/// for twenty times as many, and for other ones in every run.
pub fn holds<S: Strategy>(
    cases: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let times = std::env::var("HAFT_CASES").ok().and_then(|times| times.parse().ok());
    let config = Config {
        cases: cases.saturating_mul(times.unwrap_or(1)),
        rng_seed: if times.is_some() { RngSeed::Random } else { RngSeed::Fixed(1) },
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    match TestRunner::new(config).run(strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(reason, smallest)) => {
            let shown: String = format!("{smallest:#?}").chars().take(MOST_SHOWN).collect();
            panic!("{reason}\nfor {shown}")
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_numbers_is_the_simplest_choice() {
        let mut draws = Draws::new(&[u16::MAX]);
        assert_eq!(draws.below(10), 9);
        assert_eq!(draws.below(10), 0);
        assert!(!draws.once_in(2));
        assert_eq!(draws.pick(&["simple", "other"]), "simple");
    }

    #[test]
    fn a_counterexample_shrinks_to_the_smallest() {
        let failure = std::panic::catch_unwind(|| {
            holds(100, &made(20, |draws| draws.below(1000)), |number| {
                if number < 100 { Ok(()) } else { Err(TestCaseError::fail("too large")) }
            });
        });
        let message = failure.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("too large") && message.ends_with("for 100"), "{message}");
    }
}
