//! From a path the user typed to tools that can be called, each with its files.

use std::io;
use std::path::{Path, PathBuf};

use host::{Brought, Given, Tool};
use manifest::dialect::Dialect;
use manifest::model::{Package, Trust};
use package::extract::{Durability, extract};
use policy::Consent;
use sandbox::held::{self, HeldFolder};

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
    _unpacked: Option<HeldFolder>,
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
            Some(unpacked) => files_of(unpacked),
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
pub(crate) fn room(home: &Home) -> Result<HeldFolder, Failure> {
    let staging = home.path().join("staging");
    for folder in [home.path(), &staging] {
        output::make_private_folder(folder)?;
    }
    held::sweep(&staging, PREFIX);
    let room = make_room(&staging).map_err(|error| {
        let message = format!("failed to make a folder in `{}`", staging.display());
        Failure::new(Exit::Unavailable, message).cause(error)
    })?;
    interrupt::watch(room.path());
    Ok(room)
}

fn make_room(staging: &Path) -> io::Result<HeldFolder> {
    for _ in 0..MOST_TRIES {
        match HeldFolder::make(staging, PREFIX) {
            // Whoever made the staging area for a change that came to nothing has just taken it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let _ = output::make_private_folder(staging);
            }
            made => return made,
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// A folder where the system has temporary files.
fn temporary() -> io::Result<HeldFolder> {
    let folder = std::env::temp_dir();
    interrupt::watch(&folder);
    HeldFolder::make(&folder, &interrupt::prefix())
}

/// Where the files of what is unpacked into a folder are.
fn files_of(unpacked: &HeldFolder) -> PathBuf {
    unpacked.path().join("files")
}

/// Unpacks a package to where nothing but the call sees it.
fn unpack(file: &Path, staging: Staging<'_>, printer: Printer) -> Result<HeldFolder, Failure> {
    let unpacked = match staging {
        Staging::Home(home) => room(home)?,
        Staging::Temporary => temporary().map_err(|error| {
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
    let staged = extract(&archive, &files_of(&unpacked)).map_err(failed)?;
    staged.promote(Durability::Left).map_err(failed)?;
    Ok(unpacked)
}

/// How often the staging area may be gone when a folder is to be made in it.
const MOST_TRIES: u32 = 64;

/// What the names of the folders of calls begin with.
const PREFIX: &str = "call-";
