//! What a lockfile of npm says of a file: one or more digests, as the web writes them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use super::error::AcquireError;

/// Refuses bytes that are not what is said of them. Of several digests the strongest counts; one that nobody trusts any more
/// counts for nothing.
pub(super) fn check(what: &str, integrity: &str, bytes: &[u8]) -> Result<(), AcquireError> {
    let strongest = ["sha512-", "sha384-", "sha256-"].into_iter().find_map(|kind| {
        let of_kind: Vec<_> =
            integrity.split_whitespace().filter(|one| one.starts_with(kind)).collect();
        (!of_kind.is_empty()).then_some((kind, of_kind))
    });
    let Some((kind, described)) = strongest else {
        return Err(AcquireError::Unreadable {
            what: "the lockfile of npm",
            why: format!("{what} has no digest that can be trusted (`{integrity:.100}`)"),
        });
    };
    let digest = match kind {
        "sha512-" => STANDARD.encode(Sha512::digest(bytes)),
        "sha384-" => STANDARD.encode(Sha384::digest(bytes)),
        _ => STANDARD.encode(Sha256::digest(bytes)),
    };
    let arrived = format!("{kind}{digest}");
    // What follows a question mark are options, of which there are none.
    if described.iter().any(|one| one.split('?').next() == Some(&arrived)) {
        return Ok(());
    }
    let described = described.join(" ");
    Err(AcquireError::Digest { what: what.to_owned(), described, arrived })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_digest_counts() {
        let right = format!("sha512-{}", STANDARD.encode(Sha512::digest(b"bytes")));
        let weak = format!("sha256-{}", STANDARD.encode(Sha256::digest(b"bytes")));
        let wrong = format!("sha512-{}", STANDARD.encode(Sha512::digest(b"others")));
        for (text, is_right) in [
            (right.clone(), true),
            (weak.clone(), true),
            (format!("{weak} {wrong}"), false),
            (format!("{wrong} {right}"), true),
            (format!("{right}?x"), true),
            ("sha1-AAAA".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(check("it", &text, b"bytes").is_ok(), is_right, "{text}");
        }
    }
}
