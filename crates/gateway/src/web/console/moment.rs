//! Moments, times and numbers as people write them.

pub(super) use manifest::words::grouped;
use std::time::Duration;

use ledger::Time;
use ledger::state::latency::{Histogram, Quantile};

/// A moment: the exact one, which a script writes in the owner's own time, and a short one without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// As RFC 3339 has it.
    pub(super) exact: String,
    /// Without the day where it is today, in UTC.
    pub(super) short: String,
}

impl Moment {
    pub(super) fn new(time: Time, now: Time) -> Self {
        let exact = time.to_string();
        let clock = exact.get(11..19).unwrap_or_default();
        let short = if time.day() == now.day() {
            format!("{clock} UTC")
        } else {
            format!(
                "{} {} UTC",
                exact.get(..10).unwrap_or_default(),
                clock.get(..5).unwrap_or_default()
            )
        };
        Self { exact, short }
    }

    /// One that is told as RFC 3339 has it; what is none stays as it is.
    pub(super) fn told(text: String, now: Time) -> Self {
        match Time::parse(&text) {
            Some(time) => Self::new(time, now),
            None => Self { exact: text.clone(), short: text },
        }
    }
}

/// How long it is until then.
pub(super) fn left(until: Time, now: Time) -> String {
    let millis = until.unix_millis().saturating_sub(now.unix_millis()).max(0);
    let seconds = millis / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds.div_euclid(60)),
        _ => format!("{} h", seconds.div_euclid(3_600)),
    }
}

/// A latency.
pub(super) fn latency(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    match millis {
        _ if millis < 10.0 => format!("{millis:.1} ms"),
        _ if millis < 10_000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.1} s", millis / 1e3),
    }
}

/// What so many percent of calls took, as far as that is known: the edge of a bucket.
pub(super) fn quantile(latencies: &Histogram, percent: u8) -> String {
    match latencies.quantile(percent) {
        Some(Quantile::AtMost(time)) => format!("≤ {}", latency(time)),
        Some(Quantile::MoreThan(time)) => format!("> {}", latency(time)),
        None => "–".to_owned(),
    }
}

/// The same within a sentence.
pub(super) fn quantile_said(latencies: &Histogram, percent: u8) -> String {
    match latencies.quantile(percent) {
        Some(Quantile::AtMost(time)) => format!("at most {}", latency(time)),
        Some(Quantile::MoreThan(time)) => format!("more than {}", latency(time)),
        None => "a time that is not known".to_owned(),
    }
}

/// A part of a whole.
pub(super) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent > 99.9 && percent < 100.0 { "99.9 %".to_owned() } else { format!("{percent:.1} %") }
}

/// A number with its noun.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_said_as_people_say_them() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([count(1, "call"), count(2, "call")], ["1 call", "2 calls"]);
        assert_eq!([percent(1.0), percent(0.9999), percent(0.5)], ["100.0 %", "99.9 %", "50.0 %"]);
        let now = Time::parse("2026-11-17T12:00:00.000Z").unwrap();
        let at = |text| Moment::new(Time::parse(text).unwrap(), now).short;
        assert_eq!(at("2026-11-17T09:08:07.000Z"), "09:08:07 UTC");
        assert_eq!(at("2026-11-16T09:08:07.000Z"), "2026-11-16 09:08 UTC");
        assert_eq!(left(now.plus(Duration::from_secs(271)), now), "4 min");
        assert_eq!(left(now, now.plus(Duration::from_secs(9))), "0 s");
    }

    #[test]
    fn a_quantile_is_told_as_the_bound_that_it_is() {
        use ledger::state::latency::bucket_of;
        let of = |time: Duration| [bucket_of(time)].into_iter().collect::<Histogram>();
        let fast = of(Duration::from_millis(3));
        assert_eq!(quantile(&fast, 95), "≤ 4.1 ms");
        assert_eq!(quantile_said(&fast, 95), "at most 4.1 ms");
        assert!(quantile(&of(Duration::MAX), 95).starts_with("> "));
        assert_eq!(quantile(&Histogram::default(), 95), "–");
    }
}
