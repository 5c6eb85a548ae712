//! Where the files of a new package come from, and what is known of them.

use std::path::{Path, PathBuf};

use manifest::meta;
use package::contents::{Contents, listing};
use package::gather::{Gathered, gather};
use package::limits::Limits;
use package::signature::{self, State};
use serde_json::Value;

use super::PackArgs;
use super::failures::unpackable;
use crate::commands::count;
use crate::container::{self, Described};
use crate::exit::Failure;
use crate::printer::Printer;
use crate::{disk, git};

/// Where the files come from.
pub(super) enum Source {
    Folder(PathBuf, Gathered),
    File(Box<container::Container>),
}

impl Source {
    pub(super) fn find(args: &PackArgs, printer: Printer) -> Result<Self, Failure> {
        if !args.path.is_dir() {
            return Ok(Source::File(Box::new(container::open(&args.path, printer)?)));
        }
        let gathered = gather(&args.path, &Limits::DEFAULT).map_err(|error| unpackable(&error))?;
        Ok(Source::Folder(args.path.clone(), gathered))
    }

    pub(super) fn contents(&self) -> &dyn Contents {
        match self {
            Source::Folder(_, gathered) => gathered,
            Source::File(container) => container.contents(),
        }
    }

    pub(super) fn left_out(&self) -> &[String] {
        match self {
            Source::Folder(_, gathered) => &gathered.left_out,
            Source::File(_) => &[],
        }
    }

    pub(super) fn described(&self, args: &PackArgs) -> Result<Described, Failure> {
        match self {
            Source::File(container) => container.described(args.id.as_deref()),
            Source::Folder(path, gathered) => {
                let name = disk::folder_name(&path.join("manifest.json")).unwrap_or_default();
                container::describe(gathered, args.id.as_deref().unwrap_or(&name), path)
            }
        }
    }
}

/// What to say of the commit that is packed, when that is wanted.
pub(super) fn provenance(
    args: &PackArgs,
    source: &Source,
    printer: Printer,
) -> Result<Option<Vec<u8>>, Failure> {
    if !args.provenance {
        return Ok(None);
    }
    let Source::Folder(folder, gathered) = source else {
        let message = "--provenance needs the folder that git knows, not a file made of it";
        return Err(Failure::invalid(message));
    };
    let mut paths = gathered.paths();
    paths.retain(|path| ![meta::PROVENANCE, signature::PATH].contains(path));
    let Some(commit) = git::commit(folder, &paths)? else {
        printer.warn("no commit is known to git here, so provenance is left out");
        return Ok(None);
    };
    if !commit.changed.is_empty() {
        let differs = commit.changed.iter().map(|path| format!("`{path}` differs from the commit"));
        let message = "the folder is not what the commit holds, so it has no provenance";
        return Err(Failure::invalid(message)
            .details(differs)
            .hint("commit these files, or pack without --provenance"));
    }
    let mut document = serde_json::Map::new();
    if let Some(remote) = commit.remote {
        document.insert("sourceRepo".into(), remote.into());
    }
    document.insert("commit".into(), commit.id.into());
    document.insert("builtAt".into(), commit.time.into());
    if !commit.beside.is_empty() {
        let count = count(commit.beside.len(), "file");
        printer.warn(&format!("{count} not in the commit, which meta/provenance.json lists"));
        document.insert("notInCommit".into(), commit.beside.into());
    }
    Ok(Some(format!("{:#}\n", Value::Object(document)).into_bytes()))
}

/// Why a signature in the folder no longer holds; nothing when it does, or there is none.
pub(super) fn stale_signature(contents: &dyn Contents) -> Result<Option<String>, Failure> {
    if contents.size(signature::PATH).is_none() {
        return Ok(None);
    }
    let failed =
        |error: package::refusal::ReadError| container::refused(Path::new(signature::PATH), &error);
    let content = contents.read(signature::PATH).map_err(failed)?;
    let verdict = signature::check(&listing(contents).map_err(failed)?, Some(&content));
    let is_stale = verdict.state == State::Invalid;
    Ok(is_stale.then(|| verdict.faults.join(", ")))
}
