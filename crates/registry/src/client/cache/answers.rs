//! Answers, by the address they came from.
//!
//! A file is a line of JSON and then the answer, byte for byte. The line names the address and the digest of the
//! answer, so a file that was damaged, or moved, is none.

use std::fs::{self, File};
use std::io::{self, Read, Write};

use package::digest::Digest;
use serde::{Deserialize, Serialize};

use super::{Cache, make, open_to_write};
use crate::versions::Yank;

/// The longest line.
const LONGEST_LINE: usize = 32 << 10;
/// The largest answer that is kept.
pub const LARGEST: usize = 16 << 20;

/// An answer that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What the registry calls this answer.
    pub tag: Option<String>,
    /// Why what it is about was taken back.
    pub yanked: Option<Yank>,
    /// Where it goes on.
    pub next: Option<String>,
    /// The answer.
    pub body: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    url: String,
    sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    yanked: Option<Yank>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Kept {
    /// The file of an answer.
    pub fn to_bytes(&self, url: &str) -> Vec<u8> {
        let line = Line {
            url: url.to_owned(),
            sha256: Digest::of(&self.body).to_string(),
            tag: self.tag.clone(),
            yanked: self.yanked.clone(),
            next: self.next.clone(),
        };
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Reads the file of an answer; none where it is not the answer of this address, whole.
    pub fn from_bytes(url: &str, bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().take(LONGEST_LINE).position(|byte| *byte == b'\n')?;
        let line: Line = serde_json::from_slice(&bytes[..end]).ok()?;
        let body = &bytes[end + 1..];
        let is_it = line.url == url
            && body.len() <= LARGEST
            && Digest::parse(&line.sha256) == Some(Digest::of(body));
        let Line { tag, yanked, next, .. } = line;
        is_it.then(|| Self { tag, yanked, next, body: body.to_vec() })
    }
}

impl Cache {
    /// The answer that an address gave.
    pub fn answer(&self, url: &str) -> Option<Kept> {
        let path = self.answers().join(key(url));
        let file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        let most = (LARGEST + LONGEST_LINE) as u64;
        (&file).take(most + 1).read_to_end(&mut bytes).ok()?;
        let kept = Kept::from_bytes(url, &bytes);
        match &kept {
            Some(_) => {
                let _still_as_old = file.set_modified(std::time::SystemTime::now());
            }
            None => {
                let _gone_already = fs::remove_file(&path);
            }
        }
        kept
    }

    /// Keeps an answer, in place of the one that may be there.
    pub fn keep_answer(&self, url: &str, kept: &Kept) -> io::Result<()> {
        if kept.body.len() > LARGEST {
            return Ok(());
        }
        let folder = self.answers();
        make(&folder)?;
        let path = folder.join(key(url));
        let chance = getrandom::u64().unwrap_or_default();
        let beside = folder.join(format!("{}-{chance:016x}.new", std::process::id()));
        let write = || -> io::Result<()> {
            open_to_write(&beside)?.write_all(&kept.to_bytes(url))?;
            fs::rename(&beside, &path)
        };
        write().inspect_err(|_| {
            let _gone_already = fs::remove_file(&beside);
        })
    }
}

fn key(url: &str) -> String {
    Digest::of(url.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://tools.example.com/v1/tools/a.b";

    fn kept() -> Kept {
        let next = Some(format!("{URL}?page=2"));
        let tag = Some("W/\"x\"".to_owned());
        Kept { tag, yanked: None, next, body: b"{\n\"a\": 1}".to_vec() }
    }

    #[test]
    fn an_answer_is_found_by_its_address_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), super::super::MOST);
        assert_eq!(cache.answer(URL), None);
        cache.keep_answer(URL, &kept()).unwrap();
        assert_eq!(cache.answer(URL), Some(kept()));
        let other = "https://tools.example.com/v1/tools/c.d";
        assert_eq!(cache.answer(other), None);
        fs::copy(cache.answers().join(key(URL)), cache.answers().join(key(other))).unwrap();
        assert_eq!(cache.answer(other), None, "a file that was moved is no answer");
    }

    #[test]
    fn every_damage_is_noticed() {
        let bytes = kept().to_bytes(URL);
        assert_eq!(Kept::from_bytes(URL, &bytes), Some(kept()));
        for at in 0..bytes.len() {
            assert_eq!(Kept::from_bytes(URL, &bytes[..at]), None, "cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let read = Kept::from_bytes(URL, &changed);
            assert!(read.is_none_or(|read| read.body == kept().body), "changed at {at}");
        }
    }
}
