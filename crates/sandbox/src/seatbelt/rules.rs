//! From what a process may have to an ordered list of rules: every path is
//! looked at here, so that a rule names the file that is meant and not a link to it.

use std::path::{Path, PathBuf};

use crate::check::check_absolute;
use crate::confinement::Confinement;
use crate::outcome::SpawnError;

/// What a rule does with its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    Hide,
}

/// What is at the path of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    File,
    Folder,
    /// A folder that is a git repository itself.
    Repository,
}

/// One word about one path and all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    pub(crate) shape: Shape,
}

/// All rules in one list, parents before children; of two words on one path the later kind holds:
/// read, then write, then hide.
pub(crate) fn look(confinement: &Confinement, scratch: &Path) -> Result<Vec<Rule>, SpawnError> {
    let mut rules = vec![rule(scratch, Access::Write)?];
    for (paths, access) in [
        (&confinement.readable, Access::Read),
        (&confinement.writable, Access::Write),
        (&confinement.hidden, Access::Hide),
    ] {
        for path in paths {
            rules.push(rule(path, access)?);
        }
    }
    rules.sort_by_key(|rule| rule.path.components().count());
    Ok(rules)
}

/// Whether the last rule about a path lets it be seen; `None` when no rule is about it.
pub(crate) fn is_visible(rules: &[Rule], path: &Path) -> Option<bool> {
    let last = rules.iter().rev().find(|rule| path.starts_with(&rule.path));
    last.map(|rule| rule.access != Access::Hide)
}

fn rule(path: &Path, access: Access) -> Result<Rule, SpawnError> {
    check_absolute(path)?;
    let shape = match path.canonicalize() {
        Ok(real) if real != path => return Err(SpawnError::Link(path.to_owned())),
        Ok(_) => shape(path),
        // It may come while the process runs, and is hidden then.
        Err(_) if access == Access::Hide => Shape::Folder,
        Err(error) => return Err(SpawnError::Missing(path.to_owned(), error)),
    };
    // What is compared is bytes, so a slash at the end would make it another path.
    Ok(Rule { path: path.components().collect(), access, shape })
}

fn shape(path: &Path) -> Shape {
    if !path.is_dir() {
        Shape::File
    } else if path.join("HEAD").is_file() && path.join("objects").is_dir() {
        Shape::Repository
    } else {
        Shape::Folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        (folder, path)
    }

    #[test]
    fn parents_come_before_children_and_hiding_last() {
        let (_kept, path) = folder();
        let confinement = Confinement {
            readable: vec![path.join("a/b")],
            writable: vec![path.join("a")],
            hidden: vec![path.join("a"), path.join("a/b/missing")],
            ..Default::default()
        };
        let rules = look(&confinement, &path).unwrap();
        let access: Vec<_> = rules.iter().map(|rule| rule.access).collect();
        let (read, write, hide) = (Access::Read, Access::Write, Access::Hide);
        assert_eq!(access, [write, write, hide, read, hide]);
        assert_eq!(is_visible(&rules, &path.join("a/x")), Some(false));
        assert_eq!(is_visible(&rules, &path.join("a/b/x")), Some(true));
        assert_eq!(is_visible(&rules, &path.join("a/b/missing/x")), Some(false));
        assert_eq!(is_visible(&rules, Path::new("/elsewhere")), None);
    }

    #[test]
    fn a_path_through_a_link_is_refused_also_when_it_hides() {
        let (_kept, path) = folder();
        std::os::unix::fs::symlink("a", path.join("link")).unwrap();
        for hidden in [path.join("link"), path.join("link/b")] {
            let confinement = Confinement { hidden: vec![hidden], ..Default::default() };
            assert!(matches!(look(&confinement, &path), Err(SpawnError::Link(_))));
        }
    }

    #[test]
    fn a_path_is_plain_and_a_grant_is_there() {
        let (_kept, path) = folder();
        for bad in ["/", "a", "", "/a/../b"] {
            let confinement = Confinement { readable: vec![bad.into()], ..Default::default() };
            assert!(matches!(look(&confinement, &path), Err(SpawnError::BadPath(_))), "{bad}");
        }
        let confinement = Confinement { readable: vec![path.join("gone")], ..Default::default() };
        assert!(matches!(look(&confinement, &path), Err(SpawnError::Missing(..))));
        let slash = Confinement { readable: vec![path.join("a/")], ..Default::default() };
        let rules = look(&slash, &path).unwrap();
        assert_eq!(rules[1].path.as_os_str(), path.join("a").as_os_str());
    }
}
