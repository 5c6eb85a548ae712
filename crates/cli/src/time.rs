//! Times as RFC 3339 writes them.

/// Seconds since 1970 as a date and time in UTC.
pub(crate) fn utc(seconds: i64) -> String {
    let time = ledger::Time::from_unix_millis(seconds.saturating_mul(1000)).to_string();
    // Nothing finer than a second is known.
    time.replace(".000Z", "Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(utc(1_763_164_800), "2025-11-15T00:00:00Z");
    }
}
