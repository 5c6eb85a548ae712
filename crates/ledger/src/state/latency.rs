//! Latencies, counted in buckets.
//!
//! The bounds of the buckets grow by half an octave, from 128 µs to 18 minutes ([`bound`]); a quantile is the upper
//! bound of its bucket, so it is at most 42 % too high.

use std::time::Duration;

/// How many buckets have a bound; one more holds what is slower.
pub const BUCKETS: usize = 48;

/// The upper bound of a bucket; there is none for the last one.
pub fn bound(bucket: usize) -> Option<Duration> {
    // 128 and 181: the second is the first times the square root of two.
    let base = if bucket.is_multiple_of(2) { 128 } else { 181 };
    (bucket < BUCKETS).then(|| Duration::from_micros(base << (bucket / 2)))
}

/// The bucket of a latency.
pub fn bucket_of(latency: Duration) -> usize {
    let bounds: [Option<Duration>; BUCKETS] = std::array::from_fn(bound);
    bounds.partition_point(|bound| bound.is_some_and(|bound| bound < latency))
}

/// Where a quantile lies: all that is known of it is the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// It is no higher than this.
    AtMost(Duration),
    /// It is higher than this, beyond what has a bound.
    MoreThan(Duration),
}

/// How many latencies fell into each bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram([u64; BUCKETS + 1]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; BUCKETS + 1])
    }
}

impl Histogram {
    /// Counts so many in a bucket; what has no bucket is in the last one.
    pub fn add(&mut self, bucket: usize, count: u64) {
        let known = &mut self.0[bucket.min(BUCKETS)];
        *known = known.saturating_add(count);
    }

    /// Counts all of another too.
    pub fn join(&mut self, other: &Self) {
        for (bucket, count) in other.0.iter().enumerate() {
            self.add(bucket, *count);
        }
    }

    /// The same without what another has.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|bucket| self.0[bucket].saturating_sub(other.0[bucket])))
    }

    /// How many there are in each bucket.
    pub fn counts(&self) -> &[u64; BUCKETS + 1] {
        &self.0
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The latency that so many percent stayed within; the largest that can be told when it lies beyond the last
    /// bound, none without any.
    pub fn percentile(&self, percent: u8) -> Option<Duration> {
        self.quantile(percent).map(|quantile| match quantile {
            Quantile::AtMost(bound) | Quantile::MoreThan(bound) => bound,
        })
    }

    /// The same, and on which side of it so many percent are.
    pub fn quantile(&self, percent: u8) -> Option<Quantile> {
        let total: u128 = self.0.iter().map(|count| u128::from(*count)).sum();
        let wanted = (total * u128::from(percent.min(100))).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.0.iter().position(|count| {
            seen += u128::from(*count);
            seen >= wanted
        })?;
        let within = bound(bucket).map(Quantile::AtMost);
        within.or_else(|| bound(BUCKETS - 1).map(Quantile::MoreThan))
    }

    /// The geometric mean, in milliseconds, as if each were in the middle of its bucket; none without any.
    pub fn typical(&self) -> Option<f64> {
        /// The middle of the first bucket.
        const FIRST: f64 = 0.107_634;
        #[expect(clippy::cast_precision_loss, reason = "it is a mean of many")]
        let (sum, count) = self.0.iter().enumerate().fold((0.0, 0.0), |(sum, all), (at, count)| {
            // From one bucket to the next it is half an octave.
            (sum + at as f64 * *count as f64, all + *count as f64)
        });
        (count > 0.0).then(|| FIRST * (sum / count / 2.0).exp2())
    }
}

impl FromIterator<usize> for Histogram {
    /// One for each bucket that is named.
    fn from_iter<I: IntoIterator<Item = usize>>(buckets: I) -> Self {
        let mut histogram = Self::default();
        buckets.into_iter().for_each(|bucket| histogram.add(bucket, 1));
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_within_the_bounds_of_its_bucket() {
        for micros in (0..2_000_000_000).step_by(777_777).chain([127, 128, 129, 181, 182]) {
            let latency = Duration::from_micros(micros);
            let bucket = bucket_of(latency);
            assert!(bound(bucket).is_none_or(|bound| latency <= bound));
            assert!(bucket == 0 || bound(bucket - 1).is_some_and(|bound| latency > bound));
        }
        assert_eq!(bucket_of(Duration::MAX), BUCKETS);
    }

    #[test]
    fn percentiles_are_bounds_of_buckets() {
        assert_eq!(Histogram::default().percentile(50), None);
        let histogram: Histogram =
            (1..=100).map(|millis| bucket_of(Duration::from_millis(millis))).collect();
        for (percent, exact) in [(50, 50), (95, 95), (100, 100), (0, 1)] {
            let told = histogram.percentile(percent).unwrap();
            let exact = Duration::from_millis(exact);
            assert!(told >= exact && told < exact.mul_f64(1.42), "{percent}: {told:?}");
            assert_eq!(histogram.quantile(percent), Some(Quantile::AtMost(told)));
        }
        // Of what is beyond the last bound, nothing is told that it might not be.
        let slow: Histogram = [bucket_of(Duration::MAX)].into_iter().collect();
        let last = bound(BUCKETS - 1).unwrap();
        assert_eq!(slow.quantile(95), Some(Quantile::MoreThan(last)));
    }

    #[test]
    fn what_is_twice_as_slow_has_twice_the_typical_latency() {
        let of = |millis: f64| {
            let spread = [0.7, 1.0, 1.0, 1.4].map(|factor| millis * factor / 1_000.0);
            spread.map(|time| bucket_of(Duration::from_secs_f64(time))).into_iter().collect()
        };
        let (one, two): (Histogram, Histogram) = (of(50.0), of(100.0));
        let (one, two) = (one.typical().unwrap(), two.typical().unwrap());
        assert!((two / one - 2.0).abs() < 0.01, "{one} {two}");
        assert!(one > 35.0 && one < 65.0, "{one}");
        assert_eq!(Histogram::default().typical(), None);
    }
}
