//! What several tests of archives need.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use package::digest::Digest;

/// Everything beneath a folder: paths, kinds, contents.
pub(crate) fn snapshot(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            let facts = fs::symlink_metadata(&path).unwrap();
            let content = if facts.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            let said = format!("{:?} {:?}", facts.permissions(), Digest::of(&content));
            found.push((path.display().to_string(), said));
            if facts.is_dir() {
                left.push(path);
            }
        }
    }
    found.sort();
    found
}
