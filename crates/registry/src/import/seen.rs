//! What came from a source before, so that it is noticed what the source has no more.
//!
//! A list can be cut without anybody saying so. So only a few tools at a time are taken to be gone: where it would be
//! many, it is the list that is not believed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::read::{Checked, Fault, Unreadable, read};

/// One in so many tools may be gone from one import to the next.
const FEW: usize = 10;

/// The tools that came from a source: their names, and the digest of each version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    tools: BTreeMap<String, BTreeMap<String, String>>,
}

/// What a list has no more that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// These versions: the name, the version and the digest of each.
    Versions(Vec<(String, String, String)>),
    /// So many tools of all that it cannot be believed.
    TooMany(usize, usize),
}

impl Checked for Seen {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Seen {
    /// Reads what was written.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        read(bytes)
    }

    /// What is written.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Notes that a version came from there.
    pub fn note(&mut self, name: &str, version: &str, sha256: &str) {
        let versions = self.tools.entry(name.to_owned()).or_default();
        versions.insert(version.to_owned(), sha256.to_owned());
    }

    /// Forgets a version: nothing more is to be done about it.
    pub fn forget(&mut self, name: &str, version: &str) {
        if let Some(versions) = self.tools.get_mut(name) {
            versions.remove(version);
            if versions.is_empty() {
                self.tools.remove(name);
            }
        }
    }

    /// All versions: the name, the version and the digest of each.
    pub fn versions(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.tools.iter().flat_map(|(name, versions)| {
            versions
                .iter()
                .map(|(version, sha256)| (name.as_str(), version.as_str(), sha256.as_str()))
        })
    }

    /// The tools of which a list, read to its end, has no version any more.
    pub fn gone(&self, is_listed: impl Fn(&str) -> bool) -> Gone {
        let all = self.tools.len();
        let gone = self.tools.keys().filter(|name| !is_listed(name)).count();
        // One may always be gone, unless it is all there was.
        if gone > (all / FEW).max(1) || (gone == all && all > 0) {
            return Gone::TooMany(gone, all);
        }
        let each = self.versions().filter(|(name, ..)| !is_listed(name));
        let each = each.map(|(name, version, sha256)| (name.into(), version.into(), sha256.into()));
        Gone::Versions(each.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(count: usize) -> Seen {
        let mut seen = Seen::default();
        for number in 0..count {
            seen.note(&format!("a.b/{number:03}"), "1.0.0", "x");
        }
        seen
    }

    #[test]
    fn a_few_are_gone_and_many_are_not_believed() {
        let gone = |all: usize, listed: usize| match seen(all)
            .gone(|name| name[4..].parse::<usize>().is_ok_and(|number| number < listed))
        {
            Gone::Versions(gone) => Ok(gone.len()),
            Gone::TooMany(gone, all) => Err((gone, all)),
        };
        for (all, listed, expected) in [
            (0, 0, Ok(0)),
            (1, 0, Err((1, 1))),
            (2, 1, Ok(1)),
            (2, 0, Err((2, 2))),
            (3, 1, Err((2, 3))),
            (19, 18, Ok(1)),
            (19, 17, Err((2, 19))),
            (100, 90, Ok(10)),
            (100, 89, Err((11, 100))),
            (100, 0, Err((100, 100))),
            (100, 100, Ok(0)),
        ] {
            assert_eq!(gone(all, listed), expected, "{listed} of {all}");
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_all_versions_of_a_tool_are_gone_together() {
        let mut seen = seen(3);
        seen.note("a.b/000", "1.1.0", "y");
        assert_eq!(Seen::read(&seen.to_bytes()), Ok(seen.clone()));
        let text = |text: &str| text.to_owned();
        let Gone::Versions(gone) = seen.gone(|name| name != "a.b/000") else { panic!("too many") };
        let one = |version, digest| (text("a.b/000"), text(version), text(digest));
        assert_eq!(gone, [one("1.0.0", "x"), one("1.1.0", "y")]);
        seen.forget("a.b/000", "1.0.0");
        seen.forget("a.b/000", "1.1.0");
        assert_eq!(seen.gone(|name| name != "a.b/000"), Gone::Versions(Vec::new()));
        assert!(Seen::read(b"{}").is_err() && Seen::read(b"[]").is_err());
    }
}
