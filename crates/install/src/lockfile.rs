//! `haft.lock`: exactly what is installed, made to be committed. It holds no grants and no secrets.

use serde::{Deserialize, Serialize};

use crate::pinned::Pinned;

/// Its name in a home.
pub const NAME: &str = "haft.lock";
/// The longest that is read.
pub const MOST: u64 = 32 << 20;

/// What is installed, in the order of ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lockfile {
    version: u32,
    packages: Vec<Pinned>,
}

impl Default for Lockfile {
    fn default() -> Self {
        Self { version: 1, packages: Vec::new() }
    }
}

impl Lockfile {
    /// Reads one; why it cannot be, otherwise.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let lock: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if lock.version != 1 {
            return Err(format!("it is of version {}, and this is for 1", lock.version));
        }
        let mut keys = std::collections::BTreeSet::new();
        for package in &lock.packages {
            let key = package.key().map_err(|error| error.to_string())?;
            if !is_version(&package.version) {
                return Err(format!("`{}` of `{}` is no version", package.version, package.id));
            }
            if !keys.insert(key) {
                return Err(format!("`{}` is in it twice", package.id));
            }
        }
        Ok(lock)
    }

    /// As it is written: a field a line, so that two can be compared.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a lockfile is plain data");
        bytes.push(b'\n');
        bytes
    }

    /// What is in it, by id.
    pub fn packages(&self) -> &[Pinned] {
        &self.packages
    }

    /// The one of this id, with its dialect.
    pub fn get(&self, id: &str) -> Option<&Pinned> {
        self.packages.iter().find(|package| package.id == id)
    }

    /// Puts a package in, for the one of its id.
    pub fn put(&mut self, pinned: Pinned) {
        self.take(&pinned.id);
        let at = self.packages.partition_point(|package| package.id < pinned.id);
        self.packages.insert(at, pinned);
    }

    /// Takes a package out.
    pub fn take(&mut self, id: &str) -> Option<Pinned> {
        let at = self.packages.iter().position(|package| package.id == id)?;
        Some(self.packages.remove(at))
    }
}

/// Whether a text is a version, and so can be a part of a folder's name.
fn is_version(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.len() <= 100
        && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use package::digest::Digest;

    use super::*;
    use crate::pinned::{Sha256, Source};

    fn pinned(id: &str, version: &str) -> Pinned {
        let digest = Sha256(Digest::of(version.as_bytes()));
        Pinned {
            id: id.into(),
            version: version.into(),
            kind: "tool".into(),
            actions: vec!["run".into()],
            source: Source::Path("/x".into()),
            package: digest,
            manifest: digest,
            archive: None,
            surface: None,
            artefacts: Vec::new(),
        }
    }

    #[test]
    fn it_is_read_as_it_was_written_whatever_the_order() {
        let mut lock = Lockfile::default();
        for id in ["mcpkg:b.b", "mcpkg:a.a", "capability:x", "mcpkg:b.b"] {
            lock.put(pinned(id, "1.0.0"));
        }
        let ids: Vec<_> = lock.packages().iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, ["capability:x", "mcpkg:a.a", "mcpkg:b.b"]);
        assert_eq!(Lockfile::parse(&lock.to_bytes()), Ok(lock));
    }

    #[test]
    fn what_would_lead_elsewhere_is_refused() {
        let written = |id: &str, version: &str| {
            let mut lock = Lockfile::default();
            lock.put(pinned(id, version));
            Lockfile::parse(&lock.to_bytes()).is_ok()
        };
        assert!(written("mcpkg:a.b", "1.0.0-rc.1+b"));
        assert!(!written("mcpkg:../../x", "1.0.0"));
        assert!(!written("mcpkg:a.b", "../1"));
        assert!(!written("mcpkg:a.b", "1/../.."));
        assert!(!written("nothing", "1.0.0"));
    }
}
