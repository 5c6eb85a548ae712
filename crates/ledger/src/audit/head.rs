//! The signed end of the chain: which record is the last, and where it stands.
//!
//! The file `head` is one line, `{…,"signature":"…"}`. The signature is ed25519 over all bytes
//! before `,"signature":`. While records come one upon the other it is `{…,"ownerSeal":"…"}`, which only the key itself can check.

use std::fmt::Write;

use serde::Deserialize;

use super::key::{Key, PublicKey};
use super::line::Hash;
use crate::Time;
use crate::time::Day;

/// The name of its file.
pub(super) const FILE: &str = "head";
const SIGNATURE: &str = ",\"signature\":\"";
/// As long as the other: one head is written over another.
const SEAL: &str = ",\"ownerSeal\":\"";
const CLOSE: &str = "\"}\n";
/// How long a head is, or a little more.
const LENGTH: usize = 320;

/// Which record is the last; number zero, with a hash of zeros, before the first. Kept elsewhere, it shows later that nothing before it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the last record.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
    /// When it was written.
    pub ts: Time,
    /// The day whose file it stands in.
    pub day: Day,
    /// How long that file is.
    pub bytes: u64,
}

/// How a head is vouched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vouched {
    /// Whoever has the public key can check it.
    Signed,
    /// The key itself can.
    Sealed,
}

/// What the file `head` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadFile {
    /// There is none.
    Missing,
    /// It is no head, or the key did not sign it.
    Bad,
    /// The key signed it, or sealed it.
    Signed(Head),
}

#[derive(Deserialize)]
struct Members {
    seq: u64,
    hash: String,
    ts: Time,
    file: String,
    bytes: u64,
}

impl Head {
    /// The bytes of the file.
    pub(super) fn write(&self, key: &Key, how: Vouched) -> Vec<u8> {
        let Self { seq, hash, ts, day, bytes } = self;
        let mut text = String::with_capacity(LENGTH);
        // Into a text, writing cannot fail.
        let _ = write!(
            text,
            r#"{{"seq":{seq},"hash":"{hash}","ts":"{ts}","file":"{day}.log","bytes":{bytes}"#
        );
        let (name, proof) = match how {
            Vouched::Signed => (SIGNATURE, key.sign(text.as_bytes())),
            Vouched::Sealed => (SEAL, key.seal(text.as_bytes())),
        };
        for part in [name, &proof, CLOSE] {
            text.push_str(part);
        }
        text.into_bytes()
    }

    /// The last bytes of a log that ends with the record that it names.
    pub(super) fn last_bytes(&self) -> String {
        format!(",\"hash\":\"{}\"}}\n", self.hash)
    }

    fn is_signed(bytes: &[u8], key: &PublicKey) -> bool {
        let text = std::str::from_utf8(bytes).ok();
        let parts = text.and_then(|text| text.strip_suffix(CLOSE)?.rsplit_once(SIGNATURE));
        parts.is_some_and(|(signed, signature)| {
            key.has_signed(signed.as_bytes(), signature.as_bytes())
        })
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let members: Members = serde_json::from_slice(bytes).ok()?;
        Some(Self {
            seq: members.seq,
            hash: Hash::parse(members.hash.as_bytes())?,
            ts: members.ts,
            day: members.file.strip_suffix(".log").and_then(Day::parse)?,
            bytes: members.bytes,
        })
    }
}

impl HeadFile {
    /// What a file says to whoever has the public key.
    pub(super) fn check(bytes: Option<&[u8]>, key: Option<&PublicKey>) -> Self {
        let Some(bytes) = bytes else { return HeadFile::Missing };
        let is_signed = key.is_some_and(|key| Head::is_signed(bytes, key));
        let head = Head::parse(bytes).filter(|_| is_signed);
        head.map_or(HeadFile::Bad, HeadFile::Signed)
    }

    /// Whether a file is sealed, so that the public key says nothing about it.
    pub(super) fn is_sealed(bytes: Option<&[u8]>) -> bool {
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.is_some_and(|text| text.contains(SEAL))
    }

    /// What a file says to whoever has the private key: there is one signature to a message, and
    /// making it again is quicker than checking it.
    pub(super) fn check_own(bytes: Option<&[u8]>, key: &Key) -> Self {
        let Some(bytes) = bytes else { return HeadFile::Missing };
        let how = if Self::is_sealed(Some(bytes)) { Vouched::Sealed } else { Vouched::Signed };
        let head = Head::parse(bytes).filter(|head| head.write(key, how) == bytes);
        head.map_or(HeadFile::Bad, HeadFile::Signed)
    }
}
