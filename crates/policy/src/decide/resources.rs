//! Limits as manifests write them.

/// Bytes of `256Mi`, `1Gi`, `512MB`, `1000000`.
pub(super) fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 13] = [
        ("", 1),
        ("B", 1),
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("K", 1000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("k", 1000),
        ("KB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("Ti", 1 << 40),
    ];
    quantity(text, &UNITS)
}

/// Hundredths of a processor in `500m`, `2`, `0.5`.
pub(super) fn share(text: &str) -> Option<u32> {
    if let Some(thousandths) = text.strip_suffix('m') {
        let thousandths: u32 = thousandths.parse().ok()?;
        return Some(thousandths.div_ceil(10)).filter(|share| *share > 0);
    }
    let processors: f64 = text.parse().ok()?;
    if !(0.001..=1024.0).contains(&processors) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was checked")]
    Some((processors * 100.0).ceil() as u32)
}

fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares_are_read_as_manifests_write_them() {
        assert_eq!(bytes("256Mi"), Some(256 << 20));
        assert_eq!(bytes("1Gi"), Some(1 << 30));
        assert_eq!(bytes("512MB"), Some(512_000_000));
        assert_eq!(bytes("1048576"), Some(1 << 20));
        for odd in ["", "Mi", "-1Mi", "1.5Gi", "0Mi", "99999999999999999999", "1Qi"] {
            assert_eq!(bytes(odd), None, "{odd}");
        }
        assert_eq!(share("500m"), Some(50));
        assert_eq!(share("2"), Some(200));
        assert_eq!(share("0.5"), Some(50));
        assert_eq!(share("1m"), Some(1));
        for odd in ["", "0", "-1", "m", "NaN", "inf", "99999"] {
            assert_eq!(share(odd), None, "{odd}");
        }
    }
}
