//! The part of a file that is asked for.

use std::ops::Range;

use axum::http::{HeaderMap, header};

/// Which part of a file is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// All of it.
    Whole,
    /// These bytes.
    Part(Range<u64>),
    /// Bytes that it does not have.
    Beyond,
}

/// Reads the header `Range`. What is not understood, and several parts at once, mean all of it, as the
/// standard has it; so does a condition that does not hold.
pub(super) fn read(headers: &HeaderMap, size: u64, tag: &str) -> Asked {
    if let Some(condition) = headers.get(header::IF_RANGE)
        && condition.as_bytes() != tag.as_bytes()
    {
        return Asked::Whole;
    }
    let range = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let Some((first, last)) = range
        .and_then(|text| text.trim().strip_prefix("bytes="))
        .filter(|text| !text.contains(','))
        .and_then(|text| text.trim().split_once('-'))
    else {
        return Asked::Whole;
    };
    let number = |text: &str| -> Option<u64> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first > last => return Asked::Whole,
        (Some(first), Some(last)) => first..last.saturating_add(1).min(size),
        (Some(first), None) if last.is_empty() => first..size,
        (None, Some(count)) if first.is_empty() => size.saturating_sub(count)..size,
        _ => return Asked::Whole,
    };
    if part.start >= part.end { Asked::Beyond } else { Asked::Part(part) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_the_standard_has_them() {
        for (text, asked) in [
            ("bytes=0-", Asked::Part(0..100)),
            ("bytes=10-19", Asked::Part(10..20)),
            ("bytes=90-200", Asked::Part(90..100)),
            ("bytes=-5", Asked::Part(95..100)),
            ("bytes=-500", Asked::Part(0..100)),
            ("bytes=100-", Asked::Beyond),
            ("bytes=-0", Asked::Beyond),
            ("bytes=99999999999999999999999-", Asked::Beyond),
            ("bytes=20-10", Asked::Whole),
            ("bytes=0-1,5-6", Asked::Whole),
            ("bytes=a-b", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("lines=0-1", Asked::Whole),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, text.parse().unwrap());
            assert_eq!(read(&headers, 100, "\"x\""), asked, "{text}");
            headers.insert(header::IF_RANGE, "\"y\"".parse().unwrap());
            assert_eq!(read(&headers, 100, "\"x\""), Asked::Whole, "{text}");
        }
    }
}
