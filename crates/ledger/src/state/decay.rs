//! How much a call of long ago still counts.
//!
//! A call weighs half as much as one that was made 30 days later ([`HALF_LIFE`]). The weight is taken from a fixed
//! moment on and grows with time, so that a sum of weights stays right without being touched; whoever reads it divides
//! by the weight of a call of that moment.

use std::time::Duration;

use crate::Time;

/// After how long a call counts half.
pub const HALF_LIFE: Duration = Duration::from_hours(30 * 24);

/// The beginning of 2025, when a call weighs 1. `version_5.sql` knows it too.
const LANDMARK: i64 = 1_735_689_600_000;

/// The most half-lives that are told apart, which are reached in 2103: more is no number once calls are added up.
const MOST: f64 = 960.0;

/// What a call of a moment weighs.
pub(super) fn weight(at: Time) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a weight is no account")]
    let since = (at.unix_millis() - LANDMARK) as f64;
    (since / HALF_LIFE.as_secs_f64() / 1_000.0).clamp(-MOST, MOST).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_half_after_thirty_days() {
        let then = Time::from_unix_millis(1_794_000_000_000);
        let later = then.plus(HALF_LIFE);
        assert!((weight(later) / weight(then) - 2.0).abs() < 1e-9);
        assert!((weight(Time::from_unix_millis(LANDMARK)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn no_clock_makes_a_weight_that_is_no_number() {
        for millis in [0, i64::MAX] {
            let weight = weight(Time::from_unix_millis(millis));
            assert!(weight > 0.0 && (weight * 1e15).is_finite(), "{weight}");
        }
    }
}
