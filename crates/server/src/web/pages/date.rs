//! Moments as people and machines write them.

use std::fmt;

const DAY: u64 = 86_400_000;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A moment in UTC, from milliseconds since 1970. Shown it is a day: `16 Nov 2026`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment(pub(super) u64);

impl Moment {
    /// As RFC 3339 has it.
    pub(super) fn exact(self) -> String {
        let (year, month, day) = self.civil();
        let second = self.0 % DAY / 1_000;
        let (hour, minute) = (second / 3_600, second / 60 % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
    }

    /// Year, month and day: the days since 1 March of the year 0 are counted off in cycles of 400 years.
    fn civil(self) -> (u64, u64, u64) {
        let days = self.0 / DAY + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        (era * 400 + year + u64::from(month <= 2), month, day)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        let month = usize::try_from(month).ok().and_then(|month| MONTHS.get(month - 1));
        write!(out, "{day} {} {year}", month.unwrap_or(&""))
    }
}

/// A number of bytes, as people say it.
pub(super) fn bytes(count: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let tenths = (count * 10).div_ceil(unit);
        if tenths >= 100 {
            format!("{} {name}", tenths.div_ceil(10))
        } else {
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
    };
    // What is left over counts as a whole step, so that the last of them is one of the next unit.
    match count {
        1 => "1 byte".to_owned(),
        0..1_000 => format!("{count} bytes"),
        1_000..=999_000 => scaled(1_000, "kB"),
        _ => scaled(1_000_000, "MB"),
    }
}

/// A number, its thousands apart.
pub(super) fn grouped(count: usize) -> String {
    manifest::words::grouped(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_days_of_the_calendar() {
        for (moment, day, exact) in [
            (0, "1 Jan 1970", "1970-01-01T00:00:00Z"),
            (951_782_399_000, "28 Feb 2000", "2000-02-28T23:59:59Z"),
            (951_782_400_000, "29 Feb 2000", "2000-02-29T00:00:00Z"),
            (1_794_787_200_000, "16 Nov 2026", "2026-11-16T00:00:00Z"),
            (4_107_542_400_000, "1 Mar 2100", "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(
                (Moment(moment).to_string(), Moment(moment).exact()),
                (day.into(), exact.into())
            );
        }
    }

    #[test]
    fn numbers_are_said_as_people_say_them() {
        assert_eq!((bytes(999), bytes(1_500)), ("999 bytes".to_owned(), "1.5 kB".to_owned()));
        assert_eq!((bytes(0), bytes(1)), ("0 bytes".to_owned(), "1 byte".to_owned()));
        for (count, said) in [(999_000, "999 kB"), (999_001, "1.0 MB"), (1_000_000, "1.0 MB")] {
            assert_eq!(bytes(count), said);
        }
        assert_eq!(
            (bytes(64_000_000), bytes(1_234_567)),
            ("64 MB".to_owned(), "1.3 MB".to_owned())
        );
        assert_eq!(
            (grouped(7), grouped(1_000), grouped(1_234_567)),
            ("7".into(), "1,000".into(), "1,234,567".into())
        );
    }
}
