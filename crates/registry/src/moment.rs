//! Moments, as they are told: in UTC, as RFC 3339 writes them.
//!
//! Inside they are milliseconds since 1970. Fields of wire types say `#[serde(with = "moment")]`, or
//! `moment::maybe` where there may be none.

use chrono::{DateTime, SecondsFormat};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// The last moment that has a year of four digits; RFC 3339 knows no later one.
const LAST: u64 = 253_402_300_799_999;

/// A moment as a text: `2026-11-16T22:00:00.000Z`.
pub fn text(milliseconds: u64) -> String {
    let signed = i64::try_from(milliseconds.min(LAST)).unwrap_or_default();
    let moment = DateTime::from_timestamp_millis(signed).unwrap_or_default();
    moment.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The moment that a text of RFC 3339 stands for, at whatever offset; none before 1970.
pub fn read(text: &str) -> Option<u64> {
    let moment = DateTime::parse_from_rfc3339(text).ok()?;
    u64::try_from(moment.timestamp_millis()).ok()
}

/// Tells a moment.
pub fn serialize<S: Serializer>(milliseconds: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text(*milliseconds))
}

/// Reads a moment.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let told = String::deserialize(from)?;
    read(&told).ok_or_else(|| D::Error::custom("a moment is written as 2026-11-16T22:00:00Z"))
}

/// What a moment looks like.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// A moment that there may be.
pub mod maybe {
    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Tells it, where there is one.
    pub fn serialize<S: Serializer>(moment: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        match moment {
            Some(moment) => to.serialize_some(&super::text(*moment)),
            None => to.serialize_none(),
        }
    }

    /// Reads it, where there is one.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        let told = Option::<String>::deserialize(from)?;
        let read = |told: String| super::read(&told).ok_or(told);
        told.map(read)
            .transpose()
            .map_err(|told| D::Error::custom(format!("`{told}` is no moment")))
    }

    pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "null"], "format": "date-time"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_in_utc_and_read_from_everywhere() {
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(951_827_696_789), "2000-02-29T12:34:56.789Z");
        for same in ["2000-02-29T12:34:56.789Z", "2000-02-29T14:34:56.789+02:00"] {
            assert_eq!(read(same), Some(951_827_696_789), "{same}");
        }
        for none in ["1969-12-31T23:59:59Z", "951827696789", "yesterday", ""] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_too_far_away_is_told_as_the_last_moment_there_is() {
        assert_eq!(text(u64::MAX), "9999-12-31T23:59:59.999Z");
        assert_eq!(read(&text(u64::MAX)), Some(LAST));
    }
}
