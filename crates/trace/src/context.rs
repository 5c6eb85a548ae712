//! Where a request belongs among those of others.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The trace of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The trace, in hexadecimal.
    pub id: String,
    /// The part of it that asked; none where it begins with the request.
    pub parent: Option<String>,
    /// The part of it that the request is, drawn by us.
    pub span: String,
    /// Whether it is told to a collector.
    pub is_sampled: bool,
}

impl Trace {
    /// A trace that begins here.
    pub(crate) fn begin() -> Self {
        Self { id: drawn() + &drawn(), parent: None, span: drawn(), is_sampled: false }
    }

    /// Reads a `traceparent` of the form `00-<trace>-<parent>-<flags>`; one that is not of it is passed over.
    pub fn follow(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, id, parent, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hexadecimal = |text: &str, length: usize| {
            text.len() == length
                && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        let is_set = |text: &str| text.bytes().any(|byte| byte != b'0');
        let is_good = is_hexadecimal(version, 2)
            && version != "ff"
            && (version != "00" || parts.next().is_none())
            && is_hexadecimal(id, 32)
            && is_hexadecimal(parent, 16)
            && is_hexadecimal(flags, 2)
            && is_set(id)
            && is_set(parent);
        let is_sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
        is_good.then(|| Self {
            id: id.to_owned(),
            parent: Some(parent.to_owned()),
            span: drawn(),
            is_sampled,
        })
    }

    /// As the `traceparent` of what is done for the request.
    pub fn to_parent(&self) -> String {
        let flags = u8::from(self.is_sampled);
        format!("00-{}-{}-{flags:02x}", self.id, self.span)
    }
}

/// A name that no other request has: a number that nobody guesses, and another from it each time.
pub fn drawn() -> String {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        let mut seed = [0; 8];
        // Without randomness requests of two starts have the same names, and are answered all the same.
        let _ = getrandom::fill(&mut seed);
        AtomicU64::new(u64::from_le_bytes(seed))
    });
    let step = 0x9e37_79b9_7f4a_7c15;
    let mut number = NEXT.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    format!("{:016x}", number ^ (number >> 31))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_taken_over_when_it_is_one() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let found = Trace::follow(good).unwrap();
        assert_eq!(found.id, "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((found.parent.as_deref(), found.span.len()), (Some("00f067aa0ba902b7"), 16));
        let unsampled = Trace::follow(&good.replace("-01", "-00")).unwrap();
        assert!(found.is_sampled && !unsampled.is_sampled);
        for one in [found, unsampled] {
            let below = Trace::follow(&one.to_parent()).unwrap();
            assert_eq!(
                (&below.id, below.parent, below.is_sampled),
                (&one.id, Some(one.span), one.is_sampled)
            );
        }
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        ] {
            assert_eq!(Trace::follow(bad), None, "{bad}");
        }
    }
}
