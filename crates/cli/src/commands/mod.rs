//! One thin file per verb.

pub(crate) mod approve;
pub(crate) mod audit;
mod audit_shared;
pub(crate) mod call;
mod care;
pub(crate) mod chain;
mod collector;
pub(crate) mod connect;
pub(crate) mod console;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod grant;
pub(crate) mod import;
pub(crate) mod index;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod installed;
pub(crate) mod key;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod metrics;
pub(crate) mod pack;
pub(crate) mod policy;
mod policy_profile;
pub(crate) mod publish;
pub(crate) mod rank;
pub(crate) mod registries;
pub(crate) mod registry;
mod request_log;
pub(crate) mod revoke;
pub(crate) mod sandbox;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod sign;
pub(crate) mod status;
mod stores;
pub(crate) mod surface;
pub(crate) mod sync;
pub(crate) mod test;
pub(crate) mod token;
pub(crate) mod trust;
pub(crate) mod unpack;
pub(crate) mod up;
pub(crate) mod update;
pub(crate) mod validate;
pub(crate) mod verify;
pub(crate) mod yank;

use manifest::dialect::Dialect;
use manifest::json::Pointer;
use manifest::shape::suggest;
use package::digest::Listing;
use package::key::PublicKey;
use package::signature::{State, Verdict};
use serde_json::{Value, json};

use crate::home::Trusted;

/// A number with its noun.
pub(crate) fn count<N: std::fmt::Display + Copy + PartialEq + From<u8>>(
    number: N,
    noun: &str,
) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Reads the name of a dialect.
fn dialect(name: &str) -> Result<Dialect, String> {
    Dialect::named(name).ok_or_else(|| no_such("dialect", name, &Dialect::ALL.map(Dialect::name)))
}

/// Reads the name of a dialect that can be written.
fn target(name: &str) -> Result<Dialect, String> {
    let targets = Dialect::TARGETS.map(Dialect::name);
    match Dialect::named(name) {
        Some(dialect) if dialect.is_target() => Ok(dialect),
        Some(dialect) => {
            Err(format!("{dialect} is read, not written; there are {}", targets.join(", ")))
        }
        None => Err(no_such("dialect", name, &targets)),
    }
}

/// What to say of a name that is none of the known ones.
fn no_such(noun: &str, name: &str, known: &[&'static str]) -> String {
    match suggest(name, known.iter().copied()) {
        Some(near) => format!("no such {noun}; did you mean `{near}`?"),
        None => format!("no such {noun}; there are {}", known.join(", ")),
    }
}

/// Reads `POINTER=VALUE`.
fn setting(text: &str) -> Result<(Pointer, Value), String> {
    let (pointer, value) =
        text.split_once('=').ok_or("write POINTER=VALUE, for example /version=1.0.0")?;
    let pointer = Pointer::parse(pointer)
        .filter(|pointer| !pointer.as_str().is_empty())
        .ok_or_else(|| format!("`{pointer}` is no JSON pointer; it begins with `/`"))?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((pointer, value))
}

/// The files of a package, as `--json` lists them.
fn files_json(listing: &Listing) -> Vec<Value> {
    let file = |file: &package::digest::FileDigest| json!({"path": file.path, "size": file.size, "sha256": file.sha256.to_string()});
    listing.files().iter().map(file).collect()
}

/// What a package's signatures come to, and whose they are, in a few words.
pub(crate) fn signature_words(verdict: &Verdict, trusted: &[Trusted]) -> String {
    let mut words = match verdict.state {
        State::Unsigned => "unsigned",
        State::Valid => "signed",
        State::Partial => "signed in part, which counts as unsigned",
        State::Invalid => "changed after it was signed",
    }
    .to_owned();
    for signed in &verdict.signatures {
        let name = name_of(signed.key, trusted)
            .map_or("a key you do not know".to_owned(), |name| format!("`{name}`"));
        let state = match signed.state {
            State::Valid => String::new(),
            other => format!(", {}", other.name()),
        };
        words += &format!(", by {name} ({}{state})", signed.key);
    }
    words
}

/// What the owner calls a key.
fn name_of(key: PublicKey, trusted: &[Trusted]) -> Option<&str> {
    trusted.iter().find(|known| known.key == key).map(|known| known.name.as_str())
}

/// Reads a size: `4096`, `64K`, `512M`, `2G`.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || "write a size such as 64K, 512M or 2G".to_owned();
    let upper = text.trim().to_ascii_uppercase();
    let upper = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let (digits, shift) = match upper.chars().last() {
        Some('K') => (&upper[..upper.len() - 1], 10),
        Some('M') => (&upper[..upper.len() - 1], 20),
        Some('G') => (&upper[..upper.len() - 1], 30),
        Some('T') => (&upper[..upper.len() - 1], 40),
        _ => (upper, 0),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: Option<u64> = digits.parse().ok().and_then(|n: u64| n.checked_mul(1 << shift));
    match number {
        Some(0) => Err("it must be more than nothing".to_owned()),
        Some(size) => Ok(size),
        None => Err("that is more than there can be".to_owned()),
    }
}

/// Reads a time: `90` (seconds), `500ms`, `30s`, `5m`, `2h`.
fn duration(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || "write a time such as 90 (seconds), 500ms, 5m, 2h or 30d".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    if number.is_nan() || number < 0.0 {
        return Err(wrong());
    }
    match std::time::Duration::try_from_secs_f64(number * unit) {
        Ok(time) if time.is_zero() => Err("it must be more than nothing".to_owned()),
        Ok(time) => Ok(time),
        Err(_) => Err("that is longer than can be counted".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in
            [("4096", 4096), ("64k", 64 << 10), ("512MiB", 512 << 20), ("2G", 2 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1M", "1.5G", "0", "99999999999T", "12Q"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, time) in [
            ("90", Duration::from_secs(90)),
            ("500ms", Duration::from_millis(500)),
            ("1.5s", Duration::from_millis(1500)),
            ("5m", Duration::from_mins(5)),
            ("2h", Duration::from_hours(2)),
        ] {
            assert_eq!(duration(text), Ok(time), "{text}");
        }
        for text in ["", "0", "-1", "5w", "ms", "1e400", "nan"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
