//! `haft.lock`: exactly what is installed, made to be committed. It holds no grants and no secrets.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::pinned::{Pinned, Source};
use crate::project;

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

    /// The same for a file in this folder, which somebody else may have in another place: paths beside it, or beside the
    /// project whose home the folder is, are told from there.
    pub fn told_from(mut self, folder: &Path) -> Self {
        let (around, up) = match folder.file_name() {
            Some(name) if name == project::FOLDER => (folder.parent().unwrap_or(folder), ".."),
            _ => (folder, "."),
        };
        self.each_path(|path| {
            let beside = Path::new(path).strip_prefix(around).ok()?.to_str()?;
            Some(format!("{up}/{beside}"))
        });
        self
    }

    /// The same with every path whole, as it is read from a file in this folder.
    pub fn read_from(mut self, folder: &Path) -> Self {
        self.each_path(|path| {
            let parts = Path::new(path).components();
            let is_told_from_there = path.starts_with("./") || path.starts_with("../");
            let whole = parts.fold(folder.to_owned(), |mut whole, part| {
                match part {
                    Component::ParentDir => drop(whole.pop()),
                    Component::CurDir => {}
                    part => whole.push(part),
                }
                whole
            });
            is_told_from_there.then(|| whole.to_string_lossy().into_owned())
        });
        self
    }

    fn each_path(&mut self, told: impl Fn(&str) -> Option<String>) {
        for package in &mut self.packages {
            if let Source::Path(path) | Source::Listed(path) = &mut package.source
                && let Some(other) = told(path)
            {
                *path = other;
            }
        }
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
    use crate::pinned::Sha256;

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
    fn paths_beside_it_are_told_from_where_it_lies() {
        let of = |path: &str| {
            let mut lock = Lockfile::default();
            lock.put(Pinned { source: Source::Path(path.into()), ..pinned("mcpkg:a.b", "1.0.0") });
            lock
        };
        for (path, folder, told) in [
            ("/p/tools/echo", "/p", "./tools/echo"),
            ("/p/tools/echo", "/p/.mcp", "../tools/echo"),
            ("/p/tools/echo", "/q", "/p/tools/echo"),
            ("/pp/echo", "/p", "/pp/echo"),
        ] {
            let there = of(path).told_from(Path::new(folder));
            assert_eq!(there, of(told), "{path} from {folder}");
            assert_eq!(there.read_from(Path::new(folder)), of(path), "{told} at {folder}");
        }
        let moved = of("/p/tools/echo").told_from(Path::new("/p/.mcp"));
        assert_eq!(moved.read_from(Path::new("/r/.mcp")), of("/r/tools/echo"));
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
