//! From a path the user typed to tools that can be called, each with its files.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use host::{Brought, Given, Tool};
use manifest::dialect::Dialect;
use manifest::model::{Package, Trust};
use package::extract::{Durability, extract};
use policy::Consent;

use crate::container;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::interrupt;
use crate::load::Loading;
use crate::output;
use crate::printer::{Printer, line};

/// Tools at a path, and what was unpacked for them.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) tools: Vec<Tool>,
    /// The file that each of them was found in.
    pub(crate) files: Vec<PathBuf>,
    _unpacked: Option<Unpacked>,
    /// What else has to be there for as long as they are.
    _others: Vec<Found>,
}

impl Found {
    /// One that is installed.
    pub(crate) fn installed(tool: Tool) -> Self {
        let files = vec![tool.root.clone()];
        Self { tools: vec![tool], files, _unpacked: None, _others: Vec::new() }
    }

    /// The same, for as long as which these stay where they are too: their steps call them.
    pub(crate) fn keeping(self, others: Vec<Found>) -> Self {
        Self { _others: others, ..self }
    }

    /// Refuses an id that was typed for what has one of its own: it would count for nothing.
    pub(crate) fn check_id(&self, typed: Option<&str>, path: &Path) -> Result<(), Failure> {
        let is_nameless = |tool: &Tool| tool.package.dialect == Dialect::Agentcli;
        let (Some(id), Some(first)) = (typed, self.tools.first()) else { return Ok(()) };
        if self.tools.iter().any(is_nameless) {
            return Ok(());
        }
        let message = format!("--id names a tools.json, and there is none at `{}`", path.display());
        let own = line(&first.package.canonical_id());
        let hint = format!("leave out `--id {}`: what is there is called {own}", line(id));
        Err(Failure::invalid(message).hint(hint))
    }
}

/// Where the files of a package are put that have to be unpacked.
#[derive(Clone, Copy)]
enum Staging<'h> {
    /// Into the home, where no tool sees those of another.
    Home(&'h Home),
    /// Where the system has temporary files.
    Temporary,
}

/// A folder for the files of a package, which is there for as long as a command takes.
#[derive(Debug)]
pub(crate) struct Unpacked {
    folder: PathBuf,
    /// Locked, by which others know that it is in use, wherever they count processes.
    _held: File,
}

impl Unpacked {
    fn make(staging: &Path) -> io::Result<Self> {
        for number in 0_u32.. {
            let folder = staging.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match std::fs::create_dir(&folder) {
                // Processes of different namespaces can have one number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                // Whoever made the staging area for a change that came to nothing has just taken it away.
                Err(error) if error.kind() == io::ErrorKind::NotFound && number < MOST_TRIES => {
                    let _ = output::make_private_folder(staging);
                    continue;
                }
                made => made?,
            }
            // Somebody may have taken it for a leftover before it was locked.
            if let Ok(held) = File::open(&folder)
                && held.try_lock().is_ok()
                && folder.exists()
            {
                return Ok(Self { folder, _held: held });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn temporary() -> io::Result<Self> {
        interrupt::watch(&std::env::temp_dir());
        let folder = tempfile::Builder::new().prefix(&interrupt::prefix()).tempdir()?;
        let held = File::open(folder.path())?;
        Ok(Self { folder: folder.keep(), _held: held })
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn files(&self) -> PathBuf {
        self.folder.join("files")
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Finds the tools at a path: a manifest, a folder, an archive, a bundle.
pub(crate) fn at(
    path: &Path,
    loading: Loading<'_>,
    home: &Home,
    printer: Printer,
) -> Result<Found, Failure> {
    find(path, loading, Staging::Home(home), printer)
}

/// The same, to be looked at and not to be run: nothing is put into the home.
pub(crate) fn to_look(
    path: &Path,
    loading: Loading<'_>,
    printer: Printer,
) -> Result<Found, Failure> {
    find(path, loading, Staging::Temporary, printer)
}

fn find(
    path: &Path,
    loading: Loading<'_>,
    staging: Staging<'_>,
    printer: Printer,
) -> Result<Found, Failure> {
    let located = loading.located(path, printer)?;
    let needs_unpacking = |(file, package): &(PathBuf, Package)| {
        container::is_archive(file)
            || (package.dialect == Dialect::Jumith && package.files_sha256.is_some())
    };
    let unpacked = match located.as_slice() {
        [one] if needs_unpacking(one) => Some(unpack(&one.0, staging, printer)?),
        _ => None,
    };
    let (mut tools, mut files) = (Vec::new(), Vec::new());
    for (file, package) in located {
        let folder = match &unpacked {
            Some(unpacked) => unpacked.files(),
            None => file.parent().unwrap_or(Path::new("")).to_owned(),
        };
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let without_links = |path: &Path| {
            path.canonicalize().map_err(|error| {
                let message = format!("failed to find `{}`", path.display());
                Failure::new(Exit::Unavailable, message).cause(error)
            })
        };
        let root = without_links(&folder)?;
        let place = if unpacked.is_some() { without_links(&file)? } else { root.clone() };
        // A path the owner typed is the owner's own.
        let (consent, source_trust) = (Consent::ByPath, Trust::Local);
        let (given, surface, brought) = (Given::default(), None, Brought::default());
        // Its files may change between two calls.
        let (links, digest) = (None, None);
        tools.push(Tool {
            package,
            root,
            place,
            consent,
            source_trust,
            given,
            surface,
            brought,
            links,
            digest,
        });
        files.push(file);
    }
    Ok(Found { tools, files, _unpacked: unpacked, _others: Vec::new() })
}

/// A folder of our own in the home. Should we be killed, whoever makes the next one removes it.
pub(crate) fn room(home: &Home) -> Result<Unpacked, Failure> {
    let staging = home.path().join("staging");
    for folder in [home.path(), &staging] {
        output::make_private_folder(folder)?;
    }
    sweep(&staging);
    let unpacked = Unpacked::make(&staging).map_err(|error| {
        let message = format!("failed to make a folder in `{}`", staging.display());
        Failure::new(Exit::Unavailable, message).cause(error)
    })?;
    interrupt::watch(&unpacked.folder);
    Ok(unpacked)
}

/// Unpacks a package to where nothing but the call sees it.
fn unpack(file: &Path, staging: Staging<'_>, printer: Printer) -> Result<Unpacked, Failure> {
    let unpacked = match staging {
        Staging::Home(home) => room(home)?,
        Staging::Temporary => Unpacked::temporary().map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to make a temporary folder").cause(error)
        })?,
    };
    let container = container::open(file, printer)?;
    container.check_unbroken()?;
    let failed = |error: package::extract::ExtractError| {
        let mut failure = Failure::of(Exit::Unavailable, &error);
        let message = format!("failed to unpack `{}`", file.display());
        failure.causes.insert(0, std::mem::replace(&mut failure.message, message));
        failure
    };
    let archive = container.into_archive()?;
    let staged = extract(&archive, &unpacked.files()).map_err(failed)?;
    staged.promote(Durability::Left).map_err(failed)?;
    Ok(unpacked)
}

/// How often the staging area may be gone when a folder is to be made in it.
const MOST_TRIES: u32 = 64;

/// What the names of the folders of calls begin with.
const PREFIX: &str = "call-";

/// Removes what a process that was killed left behind.
fn sweep(staging: &Path) {
    for entry in std::fs::read_dir(staging).into_iter().flatten().flatten() {
        let is_of_a_call = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_of_a_call
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_call_is_swept_when_nobody_holds_it() {
        let staging = tempfile::tempdir().unwrap();
        let running = Unpacked::make(staging.path()).unwrap();
        let other = Unpacked::make(staging.path()).unwrap();
        assert_ne!(running.folder, other.folder);
        // What a process leaves that is killed, whoever has its number now.
        let left = staging.path().join(format!("{PREFIX}{}-7", std::process::id()));
        std::fs::create_dir_all(left.join("files")).unwrap();
        sweep(staging.path());
        assert!(running.folder.exists() && other.folder.exists() && !left.exists());
        drop((running, other));
        assert_eq!(std::fs::read_dir(staging.path()).unwrap().count(), 0);
    }
}
