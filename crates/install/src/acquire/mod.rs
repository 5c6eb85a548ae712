//! How the artefacts of a package reach this machine, inside the walls.
//!
//! One way for all: *resolve* (a package manager inside the walls says which files are needed, and reaches nobody but its
//! index), *fetch* (we take them, each known by its digest), *put in place* (without a network, and without running
//! anything of theirs). What was fetched and resolved is kept, so a second time needs no network.
//!
//! | module | what it is |
//! |---|---|
//! | [`requirement`] | packages as manifests name them; nothing else can be asked for |
//! | [`artefact`], [`sources`], [`error`] | what was acquired; where from; why not |
//! | `machine` | what this machine's own package managers are set to, understood |
//! | `store`, `fetch`, `integrity` | what is kept; files on their way; whether they are the right ones |
//! | `command`, `bench`, `unpack` | a program inside the walls; the one folder that it may write; files of an archive |
//! | `workshop` | all of it together |
//! | `pip`, `npm`, `git`, `one_file`, `image`, `probe` | the methods |

pub mod artefact;
mod bench;
mod command;
pub mod error;
mod fetch;
mod git;
mod image;
mod integrity;
mod machine;
mod npm;
mod one_file;
mod pip;
mod probe;
pub mod requirement;
pub mod sources;
mod store;
mod unpack;
mod workshop;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use manifest::model::Acquire;
use sandbox::Launcher;
use serde::{Deserialize, Serialize};

pub use artefact::{Artefact, Method};
pub use error::{AcquireError, Kind};
pub use requirement::{BadRequirement, Manager, Requirement};
pub use sources::{Bringer, Images, Index, Reach, Sources};

use self::command::{Command, Workplace};
use self::fetch::Files;
use self::git::Repository;
use self::store::Store;
use self::workshop::Workshop;
use crate::report::Reporter;

/// What is to be acquired, and with what.
#[derive(Debug)]
pub struct Acquiring<'a> {
    /// How the manifest says that its artefacts are had.
    pub what: &'a Acquire,
    /// Packages that are needed beside them.
    pub packages: Vec<Requirement>,
    /// An empty folder, to be filled. Nothing is written elsewhere but what is kept.
    pub into: &'a Path,
    /// The files that come with the package, where any do.
    pub beside: Option<&'a Path>,
    /// Where files and answers are kept for the next time.
    pub cache: &'a Path,
    /// Where packages are had, and what their owner allows them.
    pub sources: &'a Sources,
    /// Starts programs inside the walls.
    pub launcher: &'a Launcher,
    /// Is told how far it is.
    pub reporter: Arc<dyn Reporter>,
    /// Where something was acquired before: exactly this, or nothing.
    pub locked: Option<&'a [Artefact]>,
}

/// What was acquired. Paths are below the folder, which may be moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acquired {
    /// Every file, for the lock.
    pub artefacts: Vec<Artefact>,
    /// Folders of commands.
    pub path: Vec<PathBuf>,
    /// The folder of Python packages, for `PYTHONPATH`.
    pub python: Option<PathBuf>,
    /// The folder of Node packages.
    pub node: Option<PathBuf>,
    /// What a repository or a download brought: a folder, or one file.
    pub files: Option<PathBuf>,
    /// The command of the package itself, where one of its commands stands out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// Exactly what was run.
    pub commands: Vec<String>,
}

/// Who is asked for it, before anybody is: the hosts of the indexes that are named, or whose settings say.
pub fn from(what: &Acquire, packages: &[Requirement], sources: &Sources) -> Vec<String> {
    let managers: BTreeSet<_> = match what {
        Acquire::Pip { .. } => Some(Manager::Pip),
        Acquire::Npm { .. } => Some(Manager::Npm),
        _ => None,
    }
    .into_iter()
    .chain(packages.iter().map(Requirement::manager))
    .collect();
    let mut from = Vec::new();
    for manager in managers {
        let indexes = sources.indexes(manager);
        let hosts = indexes.iter().filter_map(|index| index.url.host_str()).map(str::to_owned);
        let before = from.len();
        from.extend(hosts);
        if from.len() == before {
            from.push(format!("the index that {manager} has by itself"));
        }
    }
    from.dedup();
    from
}

/// What would be run at most, before anything is.
pub fn commands(
    what: &Acquire,
    packages: &[Requirement],
    sources: &Sources,
) -> Result<Vec<String>, AcquireError> {
    let (pip, npm) = requirements(what, packages)?;
    let mut all: Vec<Command> = Vec::new();
    if !pip.is_empty() {
        all.extend(pip::commands(&pip, sources));
    }
    if !npm.is_empty() {
        all.extend(npm::commands(&npm, sources));
    }
    match what {
        Acquire::Git { .. } => {
            all.extend(repository(what, sources)?.iter().flat_map(Repository::commands));
        }
        Acquire::Url { url, sha256 } => drop(one_file::read(url, sha256)?),
        Acquire::Container { image } => drop(image::read(image)?),
        Acquire::Preinstalled { locator } => all.extend(probe::commands(locator)?),
        Acquire::Pip { .. }
        | Acquire::Npm { .. }
        | Acquire::Bundle
        | Acquire::LocalPath { .. }
        | Acquire::Nothing => {}
    }
    Ok(all.iter().map(ToString::to_string).collect())
}

/// Acquires the artefacts of a package. Where that fails, the folder is as empty as before.
pub async fn acquire(acquiring: Acquiring<'_>) -> Result<Acquired, AcquireError> {
    let Acquiring { what, packages, into, beside, cache, sources, launcher, reporter, locked } =
        acquiring;
    let (pip, npm) = requirements(what, &packages)?;
    let repository = repository(what, sources)?;
    let unusable = |error| AcquireError::Disk(into.to_owned(), error);
    let folder = into.canonicalize().map_err(unusable)?;
    let staged = Staged(Some(&folder));
    let store = Store::new(cache);
    let workshop = Workshop {
        beside,
        workplace: Workplace {
            launcher,
            search: &sources.search,
            certificates: sources.certificates.as_deref(),
        },
        folder: &folder,
        sources,
        store: &store,
        files: Files::new(sources, &store, Arc::clone(&reporter)),
        reporter,
        locked,
        commands: std::sync::Mutex::default(),
    };
    let mut acquired = Acquired::default();
    if !pip.is_empty() {
        acquired.artefacts.extend(pip::acquire(&workshop, &pip).await?);
        acquired.path.extend(pip::path(&workshop));
        acquired.python = Some(pip::LIBRARY.into());
    }
    if !npm.is_empty() {
        acquired.artefacts.extend(npm::acquire(&workshop, &npm).await?);
        acquired.path.extend(npm::path(&workshop));
        acquired.node = Some(npm::LIBRARY.into());
    }
    acquired.main = match what {
        Acquire::Pip { package, .. } => pip::main(&folder, package),
        Acquire::Npm { package, .. } => npm::main(&folder, package),
        _ => None,
    };
    match what {
        Acquire::Url { url, sha256 } => {
            let (artefact, file) = one_file::acquire(&workshop, url, sha256).await?;
            acquired.artefacts.push(artefact);
            acquired.path.push(one_file::FOLDER.into());
            acquired.files = Some(file);
        }
        Acquire::Container { image } => {
            acquired.artefacts.extend(image::acquire(&workshop, image).await?);
        }
        Acquire::Preinstalled { locator } => probe::check(&workshop, locator).await?,
        Acquire::Git { .. }
        | Acquire::Pip { .. }
        | Acquire::Npm { .. }
        | Acquire::Bundle
        | Acquire::LocalPath { .. }
        | Acquire::Nothing => {}
    }
    if let Some(repository) = &repository {
        acquired.artefacts.push(git::acquire(&workshop, repository).await?);
        acquired.files = Some(git::FILES.into());
    }
    acquired.commands = workshop.commands.into_inner().unwrap_or_default();
    staged.keep();
    Ok(acquired)
}

/// The packages of Python and of Node that are needed.
fn requirements(
    what: &Acquire,
    packages: &[Requirement],
) -> Result<(Vec<Requirement>, Vec<Requirement>), AcquireError> {
    let own = match what {
        Acquire::Pip { package, version_spec } => {
            Some(Requirement::new(Manager::Pip, package, version_spec.as_deref())?)
        }
        Acquire::Npm { package, version_spec } => {
            Some(Requirement::new(Manager::Npm, package, version_spec.as_deref())?)
        }
        _ => None,
    };
    let mut all: Vec<Requirement> = own.into_iter().chain(packages.iter().cloned()).collect();
    all.sort();
    all.dedup();
    // pip says so itself; npm would take the last.
    let is_twice = |pair: &[Requirement]| {
        pair[0].manager() == Manager::Npm
            && pair[0].manager() == pair[1].manager()
            && pair[0].name() == pair[1].name()
    };
    if let Some(pair) = all.windows(2).find(|pair| is_twice(pair)) {
        let (manager, text) = (pair[1].manager(), pair[1].to_string());
        return Err(
            BadRequirement { manager, text, why: "it is asked for in other versions too" }.into()
        );
    }
    Ok(all.into_iter().partition(|one| one.manager() == Manager::Pip))
}

fn repository(what: &Acquire, sources: &Sources) -> Result<Option<Repository>, AcquireError> {
    match what {
        Acquire::Git { url, reference, subpath, layout } => {
            let (subpath, layout) = (subpath.as_deref(), layout.as_deref());
            Repository::new(url, reference, subpath, layout, sources).map(Some)
        }
        _ => Ok(None),
    }
}

/// A folder that is emptied when it is dropped, unless it is kept.
struct Staged<'s>(Option<&'s Path>);

impl Staged<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        let entries = self.0.and_then(|folder| fs::read_dir(folder).ok());
        for entry in entries.into_iter().flatten().flatten() {
            // What cannot be removed goes with the folder around it.
            let _goes_later = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                fs::remove_dir_all(entry.path())
            } else {
                fs::remove_file(entry.path())
            };
        }
    }
}
