//! Which files of a package are other ones in a newer version.

use install::record::FileRecord;
use package::digest::Listing;
use serde::Serialize;

use crate::printer::line;

/// How many files are told by their names, of each kind.
const MOST_NAMED: usize = 8;

/// What became of the files.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Files {
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
}

impl Files {
    pub(super) fn between(before: &[FileRecord], after: &Listing) -> Self {
        let known = |path: &str| before.iter().find(|file| file.path == path);
        let (mut added, mut changed) = (Vec::new(), Vec::new());
        for file in after.files() {
            match known(&file.path) {
                None => added.push(file.path.clone()),
                Some(was) if was.sha256.0 != file.sha256 => changed.push(file.path.clone()),
                Some(_) => {}
            }
        }
        let removed = before.iter().filter(|file| after.get(&file.path).is_none());
        Self { added, changed, removed: removed.map(|file| file.path.clone()).collect() }
    }

    /// A line for each kind that there is.
    pub(super) fn words(&self) -> String {
        [("new", &self.added), ("changed", &self.changed), ("gone", &self.removed)]
            .iter()
            .filter(|(_, files)| !files.is_empty())
            .map(|(what, files)| {
                let mut named: Vec<_> =
                    files.iter().take(MOST_NAMED).map(|path| line(path)).collect();
                if files.len() > MOST_NAMED {
                    named.push(format!("and {} more", files.len() - MOST_NAMED));
                }
                format!("files {what}: {}\n", named.join(", "))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use install::Sha256;
    use package::digest::{Digest, FileDigest};

    use super::*;

    #[test]
    fn what_is_new_changed_or_gone_is_told() {
        let before = [("a", "1"), ("b", "1"), ("c", "1")].map(|(path, text)| FileRecord {
            path: path.to_owned(),
            size: 1,
            sha256: Sha256(Digest::of(text.as_bytes())),
        });
        let after = [("a", "1"), ("b", "2"), ("d", "1")].map(|(path, text)| FileDigest {
            path: path.to_owned(),
            size: 1,
            sha256: Digest::of(text.as_bytes()),
        });
        let files = Files::between(&before, &Listing::new(after.to_vec()));
        assert_eq!(files.words(), "files new: d\nfiles changed: b\nfiles gone: c\n");
    }

    #[test]
    fn of_many_files_some_are_named() {
        let added = (0..10).map(|number| number.to_string()).collect();
        let files = Files { added, changed: Vec::new(), removed: Vec::new() };
        assert_eq!(files.words(), "files new: 0, 1, 2, 3, 4, 5, 6, 7, and 2 more\n");
    }
}
