//! The home of a project: a folder `.mcp` above the working folder, which adds a catalog and a lockfile to the user's home.
//!
//! It says *which* packages a project uses, and nothing about what they may do. It counts for nothing until its owner
//! trusts it, as it is then: another byte in its catalogs or its lockfile, and it counts for nothing again. What runs are the
//! packages in the user's home, with the digests that the project names; grants, secrets, policy and trust are the
//! user's alone.

mod trusted;
mod view;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use package::digest::Digest;

use crate::catalog;
use crate::contents::Contents;
use crate::error::{Doing, HomeError};
use crate::lockfile::{self, Lockfile};
use crate::revoked::Revocations;

pub use trusted::{NAME as TRUSTED, Standing, Trusted, TrustedProject};
pub use view::View;

/// What the folder is called.
pub const FOLDER: &str = ".mcp";

/// The files that count, each with the most that is read of it.
const FILES: [(&str, u64); 3] = [
    (catalog::BASE, catalog::MOST),
    (catalog::LOCAL, catalog::MOST),
    (lockfile::NAME, lockfile::MOST),
];

/// The home of a project, read once.
#[derive(Clone, Debug)]
pub struct Project {
    folder: PathBuf,
    digest: Digest,
    contents: Contents,
}

/// The home of the project around a folder: that of the nearest folder which has one. Nothing above a home of the user's
/// own, of which these are the paths, is a project's.
pub fn around(folder: &Path, own: &[&Path]) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let own: Vec<_> = own.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let is_one = |path: &PathBuf| own.contains(path) || is_home(path);
    let found = folder.ancestors().map(|above| above.join(FOLDER)).find(is_one)?;
    (!own.contains(&found)).then_some(found)
}

/// Whether there is a folder, and no link to one, with anything in it that could count. Others call folders so too.
fn is_home(path: &Path) -> bool {
    let is_there = |(name, _): &(&str, u64)| fs::symlink_metadata(path.join(name)).is_ok();
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) && FILES.iter().any(is_there)
}

impl Project {
    /// Reads the home of a project: what is looked at is what its digest stands for.
    pub fn read(folder: &Path) -> Result<Self, HomeError> {
        let mut said = "haft project 1\n".to_owned();
        let mut all = Vec::new();
        for (name, most) in FILES {
            let bytes = file(&folder.join(name), most)?;
            said += &match &bytes {
                Some(bytes) => format!("{name} {}\n", Digest::of(bytes)),
                None => format!("{name} none\n"),
            };
            all.push(bytes.unwrap_or_default());
        }
        let broken = |at: usize| {
            move |why: String| HomeError::Broken { path: folder.join(FILES[at].0), why }
        };
        let entries = |at: usize| match all[at].as_slice() {
            [] => Ok(Vec::new()),
            bytes => catalog::briefs(bytes).map_err(broken(at)),
        };
        let lock = match all[2].as_slice() {
            [] => Lockfile::default(),
            bytes => Lockfile::parse(bytes).map_err(broken(2))?,
        };
        let revoked = Revocations::default();
        let contents = Contents { lock, revoked, local: entries(1)?, base: entries(0)? };
        Ok(Self { folder: folder.to_owned(), digest: Digest::of(said.as_bytes()), contents })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What stands for its catalogs and its lockfile.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What is in it.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }
}

/// A file of the home, where it is there. A link could lead anywhere, and would change without the folder.
fn file(path: &Path, most: u64) -> Result<Option<Vec<u8>>, HomeError> {
    let doing = Doing::Read(path.to_owned());
    let broken = |why: &str| HomeError::Broken { path: path.to_owned(), why: why.to_owned() };
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(|cause| doing.failed(cause))?,
    };
    if !found.is_file() {
        return Err(broken("it is no plain file"));
    }
    let mut bytes = Vec::new();
    let opened = File::open(path).map_err(|cause| doing.failed(cause))?;
    opened.take(most + 1).read_to_end(&mut bytes).map_err(|cause| doing.failed(cause))?;
    if bytes.len() as u64 > most {
        return Err(broken("it is longer than it may be"));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_folder_counts_and_nothing_above_a_home_of_the_user() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let made = |path: &str| {
            fs::create_dir_all(root.join(path)).unwrap();
            if path.ends_with(FOLDER) {
                fs::write(root.join(path).join(lockfile::NAME), "{}").unwrap();
            }
            root.join(path)
        };
        fs::create_dir_all(root.join("a/b/c/.mcp/of-others")).unwrap();
        let (outer, inner) = (made("a/.mcp"), made("a/b/.mcp"));
        let (deep, beside) = (made("a/b/c/d"), made("a/x"));
        assert_eq!(around(&deep, &[]), Some(inner.clone()));
        assert_eq!(around(&beside, &[]), Some(outer.clone()));
        assert_eq!(around(&deep, &[&inner]), None);
        assert_eq!(around(&beside, &[&root.join("nowhere")]), Some(outer));
        #[cfg(unix)]
        {
            let linked = made("l");
            std::os::unix::fs::symlink(&inner, linked.join(FOLDER)).unwrap();
            let found = around(&linked, &[]);
            assert!(found.is_none_or(|found| !found.starts_with(&linked)));
        }
    }

    #[test]
    fn every_byte_of_what_counts_is_in_the_digest_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let digest = || Project::read(place.path()).unwrap().digest();
        let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
        let empty = digest();
        write("policy.toml", "[trust]\nallow = [\"untrusted\"]\n");
        assert_eq!(digest(), empty);
        write(lockfile::NAME, "{\"version\": 1, \"packages\": []}");
        let locked = digest();
        write(catalog::LOCAL, "{\"capabilities\": []}");
        let listed = digest();
        write(lockfile::NAME, "{\"version\": 1, \"packages\": [] }");
        let changed = digest();
        fs::remove_file(place.path().join(catalog::LOCAL)).unwrap();
        write(catalog::BASE, "{\"capabilities\": []}");
        let all = [empty, locked, listed, changed, digest()];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        write(catalog::BASE, "{");
        assert!(matches!(Project::read(place.path()), Err(HomeError::Broken { .. })));
    }
}
