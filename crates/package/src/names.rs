//! The paths of a package, all together: each plain, no two the same on any system.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use manifest::path::{check_path, folded};

use crate::limits::Limits;
use crate::refusal::{Refusal, RefusalCode};

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file.
    File,
    /// A folder, listed or implied by what lies in it.
    Folder,
}

/// Refuses paths that are not plain, or could be one file on some system.
pub(crate) fn check_names<'p>(
    paths: impl IntoIterator<Item = (&'p str, Kind)>,
    limits: &Limits,
) -> Result<(), Refusal> {
    let mut names = Vec::new();
    for (path, kind) in paths {
        check_path(path).map_err(|fault| Refusal::path(path, fault))?;
        names.push((path, folded(path), kind));
    }
    // Every folder above a path counts as a name too: `A/x` and `a/y` meet in one folder.
    let mut seen: HashMap<&str, (&str, Kind, Listed)> = HashMap::new();
    for (path, fold, kind) in &names {
        let above = ends(path).zip(ends(fold));
        for (end, fold_end) in above {
            meet(&mut seen, &fold[..fold_end], &path[..end], Kind::Folder, Listed::Implied)
                .map_err(|fault| fault.at(path))?;
        }
        meet(&mut seen, fold, path, *kind, Listed::ByName).map_err(|fault| fault.at(path))?;
        // Folders cost too, and a short archive can imply many.
        if seen.len() > 2 * limits.entries {
            let message = format!("the files lie in more than {} folders", limits.entries);
            return Err(Refusal::new(RefusalCode::TooManyEntries, message));
        }
    }
    Ok(())
}

/// Whether a name stands for itself or only above another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    ByName,
    Implied,
}

/// Where each folder of a path ends.
fn ends(path: &str) -> impl Iterator<Item = usize> {
    path.match_indices('/').map(|(at, _)| at)
}

/// Two names that are one.
struct Meeting<'p> {
    code: RefusalCode,
    other: &'p str,
}

impl Meeting<'_> {
    fn at(&self, path: &str) -> Refusal {
        let other = manifest::shape::clip(self.other);
        let words = match self.code {
            RefusalCode::DuplicatePath => "appears twice".to_owned(),
            RefusalCode::FileAsParent => {
                format!("and `{other}`: one is a file, and the folder of the other")
            }
            RefusalCode::CaseTwin => format!("is `{other}` on systems that ignore case"),
            _ => format!("is `{other}` on systems that normalise names"),
        };
        Refusal::entry(self.code, path, words)
    }
}

fn meet<'p>(
    seen: &mut HashMap<&'p str, (&'p str, Kind, Listed)>,
    fold: &'p str,
    path: &'p str,
    kind: Kind,
    listed: Listed,
) -> Result<(), Meeting<'p>> {
    let mut there = match seen.entry(fold) {
        Entry::Vacant(free) => {
            free.insert((path, kind, listed));
            return Ok(());
        }
        Entry::Occupied(there) => there,
    };
    let (other, other_kind, other_listed) = *there.get();
    let is_same = other == path;
    if is_same && kind == Kind::Folder && other_kind == Kind::Folder {
        if listed == Listed::ByName {
            if other_listed == Listed::ByName {
                return Err(Meeting { code: RefusalCode::DuplicatePath, other });
            }
            there.insert((path, kind, listed));
        }
        return Ok(());
    }
    let code = if is_same && kind != other_kind {
        RefusalCode::FileAsParent
    } else if is_same {
        RefusalCode::DuplicatePath
    } else if other.to_lowercase() == path.to_lowercase() {
        RefusalCode::CaseTwin
    } else {
        RefusalCode::FormTwin
    };
    Err(Meeting { code, other })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(paths: &[&str]) -> Option<RefusalCode> {
        let kind = |path: &&str| if path.ends_with('/') { Kind::Folder } else { Kind::File };
        let named = paths.iter().map(|path| (path.trim_end_matches('/'), kind(path)));
        check_names(named, &Limits::DEFAULT).err().map(|refusal| refusal.code)
    }

    #[test]
    fn different_files_and_their_folders_pass() {
        assert_eq!(code(&["a", "b/", "b/c", "b/d/e", "b/d/"]), None);
    }

    #[test]
    fn names_that_meet_on_some_system_are_refused() {
        let cases = [
            (&["a", "a"][..], RefusalCode::DuplicatePath),
            (&["b/", "b/"], RefusalCode::DuplicatePath),
            (&["a", "A"], RefusalCode::CaseTwin),
            (&["a/x", "A/y"], RefusalCode::CaseTwin),
            (&["ﬁ", "fi"], RefusalCode::FormTwin),
            (&["e\u{301}", "\u{e9}"], RefusalCode::FormTwin),
            (&["a", "a/b"], RefusalCode::FileAsParent),
            (&["a/b", "a"], RefusalCode::FileAsParent),
            (&["a/b/c", "a/../b"], RefusalCode::ParentSegment),
        ];
        for (paths, expected) in cases {
            assert_eq!(code(paths), Some(expected), "{paths:?}");
        }
    }
}
