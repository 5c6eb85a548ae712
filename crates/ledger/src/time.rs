//! Moments and days, in UTC.
//!
//! A [`Time`] is data: the caller reads the clock, nothing in this crate does.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const DAY_MILLIS: i64 = 86_400_000;
/// The last millisecond that has a year of four digits.
const LAST: i64 = 253_402_300_799_999;

/// A moment, to the millisecond; written as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

/// A day in UTC; written `YYYYMMDD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(u32);

impl Time {
    /// Milliseconds since 1970; what lies outside the years 1970 to 9999 is moved to their edge.
    pub fn from_unix_millis(millis: i64) -> Self {
        Self(millis.clamp(0, LAST))
    }

    /// So much later.
    #[must_use]
    pub fn plus(self, time: Duration) -> Self {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self::from_unix_millis(self.unix_millis().saturating_add(millis))
    }

    /// So much earlier.
    #[must_use]
    pub fn minus(self, time: Duration) -> Self {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self::from_unix_millis(self.unix_millis().saturating_sub(millis))
    }

    /// Milliseconds since 1970.
    pub fn unix_millis(self) -> i64 {
        self.0
    }

    /// The day it is in.
    pub fn day(self) -> Day {
        let (year, month, day) = date(self.0 / DAY_MILLIS);
        Day(u32::try_from(year * 10_000 + month * 100 + day).expect("years have four digits"))
    }

    /// When the day after it begins.
    #[must_use]
    pub fn next_day(self) -> Self {
        Self::from_unix_millis((self.0 / DAY_MILLIS + 1) * DAY_MILLIS)
    }

    /// Reads `YYYY-MM-DDTHH:MM:SS.mmmZ`, and no other form.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let form = b"0000-00-00T00:00:00.000Z";
        let fits = bytes.len() == form.len()
            && bytes.iter().zip(form).all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                mark => byte == mark,
            });
        let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
        if !fits {
            return None;
        }
        let days = days(number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let minutes = (days * 24 + number(11, 13)?) * 60 + number(14, 16)?;
        let time = Self((minutes * 60 + number(17, 19)?) * 1_000 + number(20, 23)?);
        // What is not written the same way again was no real date.
        ((0..=LAST).contains(&time.0) && time.written() == bytes).then_some(time)
    }

    /// As it is written. Every record has one, and the machinery of formats takes ten times as long.
    fn written(self) -> [u8; 24] {
        let (year, month, day) = date(self.0 / DAY_MILLIS);
        let rest = self.0 % DAY_MILLIS;
        let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
        let (second, millis) = (rest / 1_000 % 60, rest % 1_000);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let places =
            [(year, 3), (month, 6), (day, 9), (hour, 12), (minute, 15), (second, 18), (millis, 22)];
        for (mut number, mut last) in places {
            while number > 0 {
                text[last] = b'0' + u8::try_from(number % 10).expect("it is one digit");
                (number, last) = (number / 10, last.wrapping_sub(1));
            }
        }
        text
    }
}

impl Day {
    /// Reads `YYYYMMDD`.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
        let dashed = is_plain
            .then(|| format!("{}-{}-{}T00:00:00.000Z", &text[..4], &text[4..6], &text[6..]))?;
        Time::parse(&dashed).map(Time::day)
    }
}

/// Year, month and day of a number of days since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the leap day comes last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The other way round; what is no date gives some other day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(std::str::from_utf8(&self.written()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:08}", self.0)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Time::parse(&text).ok_or_else(|| de::Error::custom("no time as RFC 3339 writes it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_again() {
        for (millis, text, day) in [
            (0, "1970-01-01T00:00:00.000Z", "19700101"),
            (951_827_696_007, "2000-02-29T12:34:56.007Z", "20000229"),
            (1_763_164_800_000, "2025-11-15T00:00:00.000Z", "20251115"),
            (LAST, "9999-12-31T23:59:59.999Z", "99991231"),
        ] {
            let time = Time::from_unix_millis(millis);
            assert_eq!(time.to_string(), text);
            assert_eq!(Time::parse(text), Some(time));
            assert_eq!(time.day().to_string(), day);
            assert_eq!(Day::parse(day), Some(time.day()));
        }
    }

    #[test]
    fn a_day_ends_where_the_next_begins() {
        for (text, next) in [
            ("2024-02-28T23:59:59.999Z", "2024-02-29T00:00:00.000Z"),
            ("2024-02-29T00:00:00.000Z", "2024-03-01T00:00:00.000Z"),
            ("9999-12-31T12:00:00.000Z", "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Time::parse(text).unwrap().next_day().to_string(), next);
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2025-02-29T00:00:00.000Z",
            "2025-13-01T00:00:00.000Z",
            "2025-01-01T24:00:00.000Z",
            "2025-01-01T00:00:00Z",
            "2025-01-01 00:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
            "+025-01-01T00:00:00.000Z",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
        assert_eq!(Day::parse("20250230"), None);
        assert_eq!(Day::parse("2025011"), None);
    }
}
