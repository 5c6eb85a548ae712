//! The registries that the owner has named, kept in one file of the home.
//!
//! A change is one rename, made by one process at a time: whatever is killed and whenever, the list is as before or
//! as after.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::address::{Address, AddressError, shown};
use crate::read::{Checked, Fault, Unreadable, read};

/// What the file is called.
pub const FILE: &str = "registries.json";
/// The largest file, in bytes.
const LARGEST: u64 = 1 << 20;
/// The most registries.
pub const MOST: usize = 64;
/// The longest name.
const LONGEST_NAME: usize = 64;

/// One registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// What the owner calls it.
    pub name: String,
    /// Where it is: an address, or for catalogs and folders perhaps a path.
    pub url: String,
    /// What is there.
    #[serde(default)]
    pub kind: Kind,
    /// The higher, the earlier among equals.
    #[serde(default)]
    pub priority: i32,
}

/// What is at an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A registry that speaks the registry API.
    #[default]
    Registry,
    /// A catalog of capabilities: one JSON document, at an address or in a file.
    Catalog,
    /// An index of install-manifests, `.well-known/install-manifests.json`.
    WellKnown,
    /// A folder with manifests and packages.
    Folder,
}

impl Kind {
    /// Every kind with its name.
    pub const ALL: [(Kind, &'static str); 4] = [
        (Kind::Registry, "registry"),
        (Kind::Catalog, "catalog"),
        (Kind::WellKnown, "well-known"),
        (Kind::Folder, "folder"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// Whether what is of this kind and was named so is at an address, not on this machine.
    pub fn has_address(self, url: &str) -> bool {
        match self {
            Kind::Registry | Kind::WellKnown => true,
            Kind::Catalog => url.contains("://"),
            Kind::Folder => false,
        }
    }
}

/// All registries that the owner has named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registries {
    /// The registries, those with the highest priority first, then by name.
    #[serde(default)]
    registries: Vec<Listed>,
}

/// Why the list cannot be read or changed.
#[derive(Debug)]
pub enum ListError {
    /// The file cannot be read, or the new one not written.
    Disk(PathBuf, io::Error),
    /// The file holds something else.
    Unreadable(PathBuf, Unreadable),
    /// The name cannot be one.
    Name(String),
    /// The name is taken.
    Taken(String),
    /// There is none of that name.
    Unknown(String),
    /// The address is none.
    Address(String, AddressError),
    /// There are too many.
    Full,
}

impl fmt::Display for ListError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListError::Disk(path, _) => write!(out, "failed to use `{}`", path.display()),
            ListError::Unreadable(path, _) => {
                write!(out, "`{}` is no list of registries", path.display())
            }
            ListError::Name(name) => write!(out, "`{name}` cannot be the name of a registry"),
            ListError::Taken(name) => write!(out, "there is a registry `{name}` already"),
            ListError::Unknown(name) => write!(out, "there is no registry `{name}`"),
            ListError::Address(text, _) => {
                write!(out, "`{}` is no address of a registry", shown(text))
            }
            ListError::Full => write!(out, "there are {MOST} registries, and no more fit"),
        }
    }
}

impl std::error::Error for ListError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ListError::Disk(_, error) => Some(error),
            ListError::Unreadable(_, error) => Some(error),
            ListError::Address(_, error) => Some(error),
            ListError::Name(_) | ListError::Taken(_) | ListError::Unknown(_) | ListError::Full => {
                None
            }
        }
    }
}

/// Whether a text can be the name of a registry; then it is no address.
pub fn is_name(name: &str) -> bool {
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    begins && name.len() <= LONGEST_NAME && name.bytes().all(is_plain)
}

impl Listed {
    /// A registry that was just named. What can only be at an address must have one.
    pub fn new(name: &str, url: &str, kind: Kind, priority: i32) -> Result<Self, ListError> {
        if !is_name(name) {
            return Err(ListError::Name(name.to_owned()));
        }
        let url = if kind.has_address(url) {
            let parsed = match kind {
                Kind::Registry => Address::of_registry(url),
                Kind::Catalog | Kind::WellKnown | Kind::Folder => Address::parse(url),
            };
            parsed.map_err(|error| ListError::Address(url.to_owned(), error))?.to_string()
        } else {
            url.to_owned()
        };
        Ok(Self { name: name.to_owned(), url, kind, priority })
    }

    /// Whether it is at an address, not on this machine.
    pub fn has_address(&self) -> bool {
        self.kind.has_address(&self.url)
    }
}

impl Registries {
    /// Reads the text of a list.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut list: Self = read(bytes)?;
        list.sort();
        Ok(list)
    }

    /// The list in a home; an absent file is an empty list.
    pub fn load(home: &Path) -> Result<Self, ListError> {
        let path = home.join(FILE);
        let disk = |error| ListError::Disk(path.clone(), error);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            opened => opened.map_err(disk)?,
        };
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).map_err(disk)?;
        Self::parse(&bytes).map_err(|error| ListError::Unreadable(path.clone(), error))
    }

    /// Changes the list in a home, while nobody else does.
    pub fn change<T>(
        home: &Path,
        change: impl FnOnce(&mut Self) -> Result<T, ListError>,
    ) -> Result<T, ListError> {
        let path = home.join(FILE);
        let disk = |error| ListError::Disk(path.clone(), error);
        let lock = path.with_extension("lock");
        let lock = private(OpenOptions::new().create(true).truncate(false).write(true)).open(lock);
        let lock = lock.map_err(disk)?;
        lock.lock().map_err(disk)?;
        let mut list = Self::load(home)?;
        let changed = change(&mut list)?;
        list.sort();
        let text = serde_json::to_string_pretty(&list).unwrap_or_default() + "\n";
        // Only the holder of the lock writes, so a file that a killed one left is written over.
        let beside = path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file =
                private(options.create(true).truncate(true).write(true)).open(&beside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            File::open(home)?.sync_all()
        };
        write().map_err(disk)?;
        Ok(changed)
    }

    /// The registries, those with the highest priority first.
    pub fn iter(&self) -> impl Iterator<Item = &Listed> {
        self.registries.iter()
    }

    /// The registry of that name.
    pub fn get(&self, name: &str) -> Option<&Listed> {
        self.registries.iter().find(|one| one.name == name)
    }

    /// Adds one; a name is used once.
    pub fn add(&mut self, listed: Listed) -> Result<(), ListError> {
        if self.get(&listed.name).is_some() {
            return Err(ListError::Taken(listed.name));
        }
        if self.registries.len() >= MOST {
            return Err(ListError::Full);
        }
        self.registries.push(listed);
        Ok(())
    }

    /// Takes one out.
    pub fn remove(&mut self, name: &str) -> Result<Listed, ListError> {
        let at = self.registries.iter().position(|one| one.name == name);
        let at = at.ok_or_else(|| ListError::Unknown(name.to_owned()))?;
        Ok(self.registries.remove(at))
    }

    fn sort(&mut self) {
        self.registries.sort_by(|a, b| b.priority.cmp(&a.priority).then(a.name.cmp(&b.name)));
    }
}

impl Checked for Registries {
    fn check(&self) -> Result<(), Fault> {
        let mut names = std::collections::HashSet::new();
        if self.registries.len() > MOST {
            return Err(Fault::Long("registries"));
        }
        for listed in &self.registries {
            if !is_name(&listed.name) {
                return Err(Fault::Name(listed.name.clone()));
            }
            if !names.insert(&listed.name) {
                return Err(Fault::Twice(listed.name.clone()));
            }
            if Listed::new(&listed.name, &listed.url, listed.kind, listed.priority).is_err() {
                return Err(Fault::Address(shown(&listed.url).into_owned()));
            }
        }
        Ok(())
    }
}

/// A file for its owner alone.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, priority: i32) -> Listed {
        Listed::new(name, "https://tools.example.com", Kind::Registry, priority).unwrap()
    }

    #[test]
    fn the_highest_priority_comes_first_and_a_name_is_used_once() {
        let home = tempfile::tempdir().unwrap();
        let add = |one: Listed| Registries::change(home.path(), |list| list.add(one));
        for (name, priority) in [("b", 0), ("a", 0), ("c", 5)] {
            add(listed(name, priority)).unwrap();
        }
        let list = Registries::load(home.path()).unwrap();
        assert_eq!(list.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["c", "a", "b"]);
        assert!(matches!(add(listed("a", 9)), Err(ListError::Taken(_))));
        let remove = |name| Registries::change(home.path(), |list| list.remove(name));
        assert_eq!(remove("a").unwrap().name, "a");
        assert!(matches!(remove("a"), Err(ListError::Unknown(_))));
        // What a killed one left is no hindrance.
        fs::write(home.path().join("registries.new"), "{\"regi").unwrap();
        add(listed("d", 1)).unwrap();
        assert_eq!(Registries::load(home.path()).unwrap().iter().count(), 3);
    }

    #[test]
    fn many_at_once_lose_nothing() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let home = home.path();
                scope.spawn(move || {
                    let one = listed(&format!("r{number}"), number);
                    Registries::change(home, |list| list.add(one)).unwrap();
                });
            }
        });
        assert_eq!(Registries::load(home.path()).unwrap().iter().count(), 16);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in [
            "",
            "[]",
            r#"{"registries":[{"name":"a"}]}"#,
            r#"{"registries":[{"name":"a b","url":"https://x.example"}]}"#,
            r#"{"registries":[{"name":"a","url":"ftp://x.example"}]}"#,
            r#"{"registries":[{"name":"a","url":"https://x.example","token":"secret"}]}"#,
            r#"{"registries":[{"name":"a","url":"https://x.example"},{"name":"a","url":"https://y.example"}]}"#,
        ] {
            assert!(Registries::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(Registries::parse(b"{}").unwrap(), Registries::default());
    }
}
