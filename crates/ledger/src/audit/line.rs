//! A record as the bytes of a line, hashed; and back.
//!
//! A line ends in `,"prev":"…","hash":"…"}`, always. The hash is SHA-256 over all bytes
//! of the line before `,"hash":`, so that it is taken without reading JSON.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::Value;

use super::record::Record;

/// The longest line, without its end.
pub const MAX_LINE: usize = 64 * 1024;
/// How long a text may be at first; less when the record is too long all the same.
const MAX_TEXT: usize = 4 * 1024;
/// How many items a list may have at first.
const MAX_ITEMS: usize = 256;
/// How long the shape of the arguments may be.
const MAX_ARGUMENTS: usize = 16 * 1024;

const FIRST: &[u8] = b"{\"seq\":";
const PREV: &[u8] = b",\"prev\":\"";
const HASH: &[u8] = b",\"hash\":\"";
const CLOSE: &[u8] = b"\"}";
const HEX: usize = 64;
/// As many digits as a number has at most.
const LONGEST_SEQ: usize = 20;
/// The bytes that are not hashed, and those from `,"prev":` on.
const AFTER_HASHED: usize = HASH.len() + HEX + CLOSE.len();
const LINKS: usize = PREV.len() + HEX + 1 + AFTER_HASHED;

/// A SHA-256, shown in hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hash([u8; 32]);

/// What binds a line into the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The number of the record.
    pub seq: u64,
    /// The kind of the record, as it is written.
    pub kind: String,
    /// What the record notes about the log.
    pub note: Option<String>,
    /// Of an `end`: the number of its `begin`.
    pub begin: Option<u64>,
    /// The hash of the record before, as it is written.
    pub prev: Hash,
    /// The hash of this record, as it is written.
    pub hash: Hash,
    /// The hash that these bytes have.
    pub computed: Hash,
}

impl Link {
    /// Whether it is of a call: such a record may be signed for with the one that follows.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self.kind.as_str(), "begin" | "end")
    }
}

/// Why a line is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// It is longer than a record may be.
    TooLong,
    /// It does not end in the two hashes.
    NoHashes,
    /// It is no JSON object with the members of a record.
    NoRecord,
    /// Its hash is another one.
    WrongHash,
}

impl Hash {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Self(hash)
    }

    /// Reads 64 small hex digits.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (pairs, rest) = text.as_chunks::<2>();
        let mut hash = [0; 32];
        if pairs.len() != hash.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(hash))
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; HEX];
        for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        out.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LineError::TooLong => "the line is longer than a record may be",
            LineError::NoHashes => "the line does not end in `prev` and `hash`",
            LineError::NoRecord => "the line is no record",
            LineError::WrongHash => "the line does not have the hash it names",
        })
    }
}

impl std::error::Error for LineError {}

/// A record, as it is written after its number and before the hashes. Texts that are too long are cut, and say so.
#[derive(Debug)]
pub(super) struct Body(Vec<u8>);

impl Body {
    pub(super) fn of(record: &mut Record) -> Self {
        let mut line = Vec::with_capacity(1024);
        let put = |line: &mut Vec<u8>, record: &Record| {
            line.clear();
            serde_json::to_writer(line, record).expect("a record is plain data");
        };
        put(&mut line, record);
        let (mut text, mut items) = (MAX_TEXT, MAX_ITEMS);
        let longest = record.argv.len().max(record.env_keys.len()).max(record.blocked.len());
        // Of a line that is as short as a text may be, no text has to be cut.
        while line.len() > text || longest > items {
            bound(record, text, items);
            put(&mut line, record);
            if line.len() + LONGEST_SEQ + LINKS <= MAX_LINE || items <= 1 {
                break;
            }
            (text, items) = (text / 2, items / 2);
        }
        line.pop();
        // The number comes first, and is another one.
        line.drain(..line.iter().position(|byte| *byte == b',').unwrap_or_default());
        Self(line)
    }

    /// The line of it with its number and the hash before it, with its end; and its hash.
    pub(super) fn line(&self, seq: u64, prev: Hash) -> (Vec<u8>, Hash) {
        let mut line = Vec::with_capacity(FIRST.len() + LONGEST_SEQ + self.0.len() + LINKS + 1);
        line.extend_from_slice(FIRST);
        line.extend_from_slice(seq.to_string().as_bytes());
        line.extend_from_slice(&self.0);
        line.extend_from_slice(PREV);
        line.extend_from_slice(prev.to_string().as_bytes());
        line.push(b'"');
        let hash = Hash::of(&line);
        line.extend_from_slice(HASH);
        line.extend_from_slice(hash.to_string().as_bytes());
        line.extend_from_slice(CLOSE);
        line.push(b'\n');
        (line, hash)
    }
}

/// Reads a line, without its end, as far as the chain needs it.
pub fn link(line: &[u8]) -> Result<Link, LineError> {
    #[derive(Deserialize)]
    struct Members {
        seq: u64,
        kind: String,
        note: Option<String>,
        begin: Option<u64>,
        prev: String,
        hash: String,
    }
    if line.len() > MAX_LINE {
        return Err(LineError::TooLong);
    }
    let start = line.len().checked_sub(LINKS).ok_or(LineError::NoHashes)?;
    let (hashed, closing) = line.split_at(line.len() - AFTER_HASHED);
    let prev = hashed[start..].strip_prefix(PREV).and_then(|rest| rest.strip_suffix(b"\""));
    let hash = closing.strip_prefix(HASH).and_then(|rest| rest.strip_suffix(CLOSE));
    let prev = prev.and_then(Hash::parse).ok_or(LineError::NoHashes)?;
    let hash = hash.and_then(Hash::parse).ok_or(LineError::NoHashes)?;
    let members: Members = serde_json::from_slice(line).map_err(|_| LineError::NoRecord)?;
    // Members that are not looked at are not read above, and may hold what is no text.
    let _: serde_json::Value = serde_json::from_slice(line).map_err(|_| LineError::NoRecord)?;
    // The end of the line could lie inside of a text; then the members are others.
    if Hash::parse(members.prev.as_bytes()) != Some(prev)
        || Hash::parse(members.hash.as_bytes()) != Some(hash)
    {
        return Err(LineError::NoHashes);
    }
    let Members { seq, kind, note, begin, .. } = members;
    Ok(Link { seq, kind, note, begin, prev, hash, computed: Hash::of(hashed) })
}

/// Reads a line, without its end, as a record that has the hash it names.
pub fn parse(line: &[u8]) -> Result<Record, LineError> {
    let link = link(line)?;
    if link.hash != link.computed {
        return Err(LineError::WrongHash);
    }
    serde_json::from_slice(line).map_err(|_| LineError::NoRecord)
}

/// Cuts whatever is too long.
fn bound(record: &mut Record, text: usize, items: usize) {
    let Record { tool, package, package_digest, action, surface, session, cwd, sandbox, .. } =
        record;
    for part in [tool, package, package_digest, action, surface, session, cwd, sandbox] {
        cut(part, text);
    }
    let Record { change, version, card, implementation, trace, step, rule, .. } = record;
    for part in [change, version, card, implementation, trace, step, rule] {
        cut(part, text);
    }
    let Record { decision, reason, outcome, note, .. } = record;
    for part in [decision, reason, outcome, note].into_iter().flatten() {
        cut(part, text);
    }
    for list in [&mut record.argv, &mut record.env_keys] {
        if list.len() > items {
            let more = list.len() - items + 1;
            list.truncate(items - 1);
            list.push(format!("… {more} more"));
        }
        for part in list {
            cut(part, text);
        }
    }
    record.blocked.truncate(items);
    record.blocked.iter_mut().for_each(|blocked| cut(&mut blocked.value, text));
    if items < MAX_ITEMS || !record.arguments.is_null() {
        let length = record.arguments.to_string().len();
        if length > MAX_ARGUMENTS.min(text * 4) {
            record.arguments = Value::String(format!("… {length} bytes"));
        }
    }
}

/// Cuts a text at a character, and says how much is gone.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let at = text.floor_char_boundary(most);
        let more = text.len() - at;
        text.truncate(at);
        text.push_str(&format!("… {more} bytes more"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::audit::record::{Blocked, BlockedKind, Kind};

    fn write(record: &mut Record, prev: Hash) -> (Vec<u8>, Hash) {
        Body::of(record).line(record.seq, prev)
    }

    fn record() -> Record {
        Record { seq: 7, ..Record::blank(Kind::Call, Time::from_unix_millis(5)) }
    }

    #[test]
    fn a_record_is_read_back_from_its_line() {
        let mut record = Record { argv: vec!["a\nb".into(), "\u{1b}[2J".into()], ..record() };
        let (line, hash) = write(&mut record, Hash::of(b"before"));
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        let read = parse(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(read.prev, Hash::of(b"before").to_string());
        assert_eq!(read.hash, hash.to_string());
        assert_eq!(Record { prev: String::new(), hash: String::new(), ..read }, record);
    }

    #[test]
    fn one_changed_byte_is_another_hash() {
        let (line, _) = write(&mut record(), Hash::default());
        let line = line.strip_suffix(b"\n").unwrap();
        for at in 0..line.len() {
            let mut changed = line.to_vec();
            changed[at] ^= 1;
            assert!(parse(&changed).is_err(), "{at}");
        }
    }

    #[test]
    fn a_record_that_is_too_long_is_cut_at_characters_and_says_so() {
        let mut record = Record {
            argv: vec!["\0ü".repeat(40_000); 3_000],
            cwd: "日".repeat(100_000),
            env_keys: vec!["\u{1}".repeat(4_000); 300],
            blocked: vec![Blocked { kind: BlockedKind::Host, value: "\u{1}".repeat(9_000) }; 3_000],
            arguments: vec!["x"; 100_000].into(),
            note: Some("x".repeat(1_000_000)),
            ..record()
        };
        let (line, _) = write(&mut record, Hash::default());
        assert!(line.len() <= MAX_LINE + 1, "{}", line.len());
        let read = parse(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert!(read.cwd.starts_with("日日") && read.cwd.ends_with("bytes more"), "{}", read.cwd);
        assert!(read.argv.last().unwrap().contains("more"));
    }

    #[test]
    fn the_hashes_must_be_members_and_not_the_end_of_a_text() {
        let zeros = Hash::default();
        let text =
            format!("{{\"seq\":1,\"kind\":\"call\",\"note\":\",\\\"prev\\\":\\\"{zeros}\"}}");
        assert!(link(text.as_bytes()).is_err());
        let double = format!(
            "{{\"seq\":1,\"kind\":\"call\",\"hash\":\"{zeros}\",\"prev\":\"{zeros}\",\"hash\":\"{zeros}\"}}"
        );
        assert_eq!(link(double.as_bytes()), Err(LineError::NoRecord));
        let many = format!("{}{}", "[".repeat(60_000), "x".repeat(LINKS));
        assert_eq!(link(many.as_bytes()), Err(LineError::NoHashes));
    }
}
