//! From a path the user typed to tools that can be called, each with its files.

use std::path::{Path, PathBuf};

use host::Tool;
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
use crate::printer::Printer;

/// Tools at a path, and what was unpacked for them.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) tools: Vec<Tool>,
    /// The file that each of them was found in.
    pub(crate) files: Vec<PathBuf>,
    _unpacked: Option<Unpacked>,
}

/// Files of a package that lie in the home for as long as a call takes.
#[derive(Debug)]
struct Unpacked(PathBuf);

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Finds the tools at a path: a manifest, a folder, an archive, a bundle.
pub(crate) fn at(
    path: &Path,
    loading: Loading<'_>,
    home: &Home,
    printer: Printer,
) -> Result<Found, Failure> {
    let located = loading.located(path, printer)?;
    let needs_unpacking = |(file, package): &(PathBuf, Package)| {
        container::is_archive(file)
            || (package.dialect == Dialect::Jumith && package.files_sha256.is_some())
    };
    let unpacked = match located.as_slice() {
        [one] if needs_unpacking(one) => Some(unpack(&one.0, home, printer)?),
        _ => None,
    };
    let (mut tools, mut files) = (Vec::new(), Vec::new());
    for (file, package) in located {
        let folder = match &unpacked {
            Some(unpacked) => unpacked.0.clone(),
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
        tools.push(Tool { package, root, place, consent, source_trust });
        files.push(file);
    }
    Ok(Found { tools, files, _unpacked: unpacked })
}

/// Unpacks a package into the home, where nothing but the call sees it.
fn unpack(file: &Path, home: &Home, printer: Printer) -> Result<Unpacked, Failure> {
    let staging = home.path().join("staging");
    for folder in [home.path(), &staging] {
        output::make_private_folder(folder)?;
    }
    sweep(&staging);
    let folder = staging.join(format!("{PREFIX}{}", std::process::id()));
    interrupt::watch(&staging);
    let container = container::open(file, printer)?;
    container.check_unbroken()?;
    let failed = |error: package::extract::ExtractError| {
        let message = format!("failed to unpack `{}`", file.display());
        Failure::new(Exit::Unavailable, message).cause(format!("{error:?}"))
    };
    let archive = container.into_archive()?;
    let staged = extract(&archive, &folder).map_err(failed)?;
    let unpacked = Unpacked(folder);
    staged.promote(Durability::Left).map_err(failed)?;
    Ok(unpacked)
}

/// What the folders of calls are called: this, and the number of the process.
const PREFIX: &str = "call-";

/// Removes what a process that was killed left behind.
fn sweep(staging: &Path) {
    for entry in std::fs::read_dir(staging).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
