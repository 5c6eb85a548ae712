//! What is installed in the home, found by the names that people type.

use std::path::{Path, PathBuf};

use host::surface::Surface;
use host::{Brought, Given, Tool};
use install::error::Doing;
use install::project::View;
use install::record::{ACQUIRED, How, Record};
use install::{HomeError, Installed, Layer, Listed, Pinned, catalog};
use manifest::diff::{Change, Class, diff};
use manifest::document::{Options, read};
use manifest::model::{Acquire, Package, Trust};
use manifest::shape::suggest;
use policy::Consent;
use rayon::prelude::*;
use serde_json::json;

use crate::commands::install::has_server;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::tools::Found;
use crate::{owner, project, remote, shell, steps};

/// The home as it is changed.
pub(crate) fn home(home: &Home) -> install::Home {
    install::Home::at(home.path())
}

/// One package, and whether it may be called.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) id: String,
    pub(crate) id_in_catalog: String,
    pub(crate) layer: Layer,
    pub(crate) enabled: bool,
    pub(crate) trust: Trust,
    /// What is installed; an entry of a catalog alone has nothing.
    pub(crate) pinned: Option<Pinned>,
}

/// A package by its id: as a tool, or why it can be none.
pub(crate) type Loaded = (String, Result<Tool, Failure>);

/// The package of the user's home that a name stands for.
pub(crate) fn named(name: &str, at: &install::Home) -> Result<Named, Failure> {
    let contents = at.read()?;
    one_of(name, &contents.called(name), &contents.listed())
}

/// The package that a name stands for in the working folder: of the project's home, where that counts, else of the user's.
pub(crate) fn named_around(name: &str, home: &Home, printer: Printer) -> Result<Named, Failure> {
    let view = project::view(home, printer)?;
    agreed(one_of(name, &view.called(name), &view.listed())?, &view)
}

/// A package as the owner has agreed to it, where it is a project that names it.
fn agreed(mut named: Named, view: &View) -> Result<Named, Failure> {
    if let (Layer::Project, Some(pinned)) = (named.layer, &named.pinned) {
        // What runs lies in the user's home, and was agreed to there.
        let record = view.agreed(pinned).ok_or_else(|| {
            let message = format!(
                "the project's lockfile names `{}` {}, which is not installed with those bytes",
                line(&pinned.id),
                line(&pinned.version)
            );
            Failure::new(Exit::Unavailable, message)
                .hint("`haft sync .mcp/haft.lock` in the project's folder brings what it names, once you accept it")
        })?;
        named.pinned = Some(record.pinned);
    }
    Ok(named)
}

fn one_of(name: &str, called: &[Listed<'_>], listed: &[Listed<'_>]) -> Result<Named, Failure> {
    match called {
        [one] => Ok(named_of(one)),
        [] => {
            let failure =
                Failure::new(Exit::NotFound, format!("`{}` is not installed", line(name)));
            let known = listed.iter().map(|one| bare(&one.id));
            Err(match suggest(name, known) {
                Some(near) => failure.hint(format!("did you mean `{}`?", line(near))),
                None if listed.is_empty() => failure.hint("nothing is; `haft install` takes a path, an address or the id of a tool in a registry"),
                None => failure.hint("`haft list` shows what is"),
            })
        }
        several => {
            let ids: Vec<_> = several.iter().map(|one| shell::word(&one.id)).collect();
            let message = format!("`{}` is the name of {} packages", line(name), ids.len());
            Err(Failure::new(Exit::Conflict, message).hint(format!("name one: {}", ids.join(", "))))
        }
    }
}

/// What is listed, by itself.
pub(crate) fn named_of(one: &Listed<'_>) -> Named {
    Named {
        id: one.id.clone(),
        id_in_catalog: match one.pinned {
            Some(pinned) => install::catalog::id_in_catalog(pinned).to_owned(),
            None => one.id.split_once(':').map_or(one.id.clone(), |(_, id)| id.to_owned()),
        },
        layer: one.layer,
        enabled: one.enabled,
        trust: one.trust,
        pinned: one.pinned.cloned(),
    }
}

fn bare(id: &str) -> &str {
    id.split_once(':').map_or(id, |(_, id)| id)
}

/// An installed package as a tool that can be called, with what its steps call where it is a chain.
pub(crate) fn found(name: &str, home: &Home, printer: Printer) -> Result<Found, Failure> {
    found_with(name, &[], home, printer)
}

/// The same, with tools that its steps may call beside the installed ones.
pub(crate) fn found_with(
    name: &str,
    with: &[Found],
    home: &Home,
    printer: Printer,
) -> Result<Found, Failure> {
    let mut found = unlinked(name, home, printer)?;
    steps::link_all(&mut found, with, home, printer);
    Ok(found)
}

/// An installed package as a tool; nobody has looked up what its steps call.
pub(crate) fn unlinked(name: &str, home: &Home, printer: Printer) -> Result<Found, Failure> {
    let named = named_around(name, home, printer)?;
    tool_of(&named, home, printer).map(Found::installed)
}

/// Everything that is listed in the working folder, by id: each as a tool, or why it can be none. Nobody has looked up what
/// their steps call.
pub(crate) fn all(home: &Home, printer: Printer) -> Result<Vec<Loaded>, Failure> {
    let view = project::view(home, printer)?;
    let tool = |one: &Listed<'_>| {
        let named = agreed(named_of(one), &view);
        (one.id.clone(), named.and_then(|named| tool_of(&named, home, printer)))
    };
    Ok(view.listed().par_iter().map(tool).collect())
}

fn tool_of(named: &Named, home: &Home, printer: Printer) -> Result<Tool, Failure> {
    if let (Some(pinned), Some(reason)) = (&named.pinned, taken_back(named, home)) {
        let (id, version) = (line(&pinned.id), line(&pinned.version));
        printer.alarm(&format!("{id} {version} was taken back for security: {}", line(&reason)));
    }
    with_files(named, home, drop).map(|(tool, ())| tool)
}

/// A package as a tool, and the files that it is made of and that were agreed to, noted before it is looked whether they still are
/// what they were.
pub(crate) fn with_files<N>(
    named: &Named,
    home: &Home,
    note: impl FnOnce(Vec<PathBuf>) -> N,
) -> Result<(Tool, N), Failure> {
    let at = self::home(home);
    check_not_locked(named, home)?;
    let Some(pinned) = &named.pinned else { return Ok((declared(named, &at)?, note(Vec::new()))) };
    let installed = Installed::load(&at, pinned)?;
    let noted = note(files_of(&installed));
    check_unchanged(&installed, named)?;
    Ok((tool(installed, named)?, noted))
}

/// How many files of a broken package are watched, about.
const MOST_WATCHED: usize = 4096;

/// The files that a package is made of, also where they are not what was agreed to: when one of them is another, it may be again.
pub(crate) fn files(named: &Named, home: &Home) -> Vec<PathBuf> {
    let (at, Some(pinned)) = (self::home(home), &named.pinned) else { return Vec::new() };
    match Installed::load(&at, pinned) {
        Ok(installed) => files_of(&installed),
        // Nobody says which they are, so it is whatever lies there.
        Err(_) => {
            let mut all: Vec<_> =
                pinned.key().map(|key| at.folder(&key, &pinned.folder())).into_iter().collect();
            let mut looked_at = 0;
            while let Some(folder) = all.get(looked_at).filter(|_| all.len() < MOST_WATCHED) {
                let inner = std::fs::read_dir(folder).into_iter().flatten().flatten();
                let inner: Vec<_> = inner.map(|entry| entry.path()).collect();
                all.extend(inner);
                looked_at += 1;
            }
            all
        }
    }
}

fn files_of(installed: &Installed) -> Vec<PathBuf> {
    installed.record.files.iter().map(|file| installed.root.join(&file.path)).collect()
}

/// Why the version that is active was taken back for security, once its registry has said so.
pub(crate) fn taken_back(named: &Named, home: &Home) -> Option<String> {
    let archive = named.pinned.as_ref()?.archive?;
    remote::cache(home).taken_back(archive.0)
}

/// A version of an installed package that is still here, active or not.
pub(crate) fn version(
    name: &str,
    version: &str,
    home: &Home,
    printer: Printer,
) -> Result<Found, Failure> {
    let at = self::home(home);
    let named = named_around(name, home, printer)?;
    check_not_locked(&named, home)?;
    let missing = || {
        let message = format!("version {} of `{}` is not here", line(version), line(name));
        Failure::new(Exit::NotFound, message).hint("`haft status` shows which versions are")
    };
    let pinned = named.pinned.as_ref().ok_or_else(missing)?;
    let key = pinned.key().map_err(|_| missing())?;
    let folder = at.folder(&key, &pinned.folder());
    let beginning = format!("{version}-");
    let others = folder.parent().and_then(|all| std::fs::read_dir(all).ok()).into_iter().flatten();
    let names = others.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_it = |name: &String| {
        // What follows is the beginning of a digest, so that 1.0 is not taken for 1.0-beta.
        name.strip_prefix(&beginning).is_some_and(|rest| rest.len() == 12 && !rest.contains('-'))
    };
    let found = names.filter(is_it).max().ok_or_else(missing)?;
    let record = at.record(&key, &found)?;
    let installed = Installed::load(&at, &record.pinned)?;
    check_unchanged(&installed, &named)?;
    Ok(Found::installed(tool(installed, &named)?))
}

/// Refuses what stands above a baseline that the policy holds to.
fn check_not_locked(named: &Named, home: &Home) -> Result<(), Failure> {
    let policy = owner::policy(home)?;
    let rules = policy.of(&named.id, bare(&named.id));
    if named.layer == Layer::Base || !rules.is_some_and(|rules| rules.locked) {
        return Ok(());
    }
    let message = format!(
        "your policy locks `{}` to what the baseline says of it, and the {} layer says something else",
        line(&named.id),
        named.layer.name()
    );
    Err(Failure::new(Exit::Denied, message))
}

/// What was agreed to is what runs.
fn check_unchanged(installed: &Installed, named: &Named) -> Result<(), Failure> {
    let changed = installed.changed_files();
    if changed.is_empty() {
        return Ok(());
    }
    let id = line(&named.id);
    let message =
        format!("`{id}` was changed after it was installed: {}", line(&changed.join(", ")));
    Err(Failure::new(Exit::Denied, message)
        .hint("installing it again, or `haft sync --locked`, puts back what it was"))
}

/// An entry that is only declared in a catalog of the home, as a tool. It has the files that its origin names, or none.
fn declared(named: &Named, at: &install::Home) -> Result<Tool, Failure> {
    let path = at.path().join(match named.layer {
        Layer::Base => catalog::BASE,
        Layer::Local => catalog::LOCAL,
        Layer::Project => {
            let id = line(&named.id);
            let message = format!(
                "`{id}` is declared by the project and not installed: nobody has agreed to it"
            );
            return Err(Failure::new(Exit::Unavailable, message)
                .hint("what a project's lockfile names is called once it is installed"));
        }
    });
    let mut package = entry(&path, &named.id_in_catalog)?.ok_or_else(|| without(&path))?;
    if named.layer == Layer::Local {
        check_not_wider(&package, &at.path().join(catalog::BASE))?;
    }
    package.enabled &= named.enabled;
    // The home itself is no tool's.
    let none = at.path().join("packages").join(".none");
    let root = match &package.acquire {
        Acquire::LocalPath { path: Some(path) } => without_links(Path::new(path))?,
        _ => none,
    };
    let root = if root.is_file() { root.parent().unwrap_or(&root).to_owned() } else { root };
    Ok(Tool {
        package,
        place: root.clone(),
        root,
        brought: Brought::default(),
        // Whoever can write the catalogs of the home is its owner.
        consent: Consent::ByCard { admitted: Trust::Local },
        source_trust: named.trust,
        given: Given::default(),
        surface: None,
        links: None,
        // Its files are its owner's, who may change them.
        digest: None,
    })
}

/// What a catalog says of an entry that is not installed, and which does.
pub(crate) fn said(
    named: &Named,
    home: &Home,
    printer: Printer,
) -> Result<(PathBuf, Package), Failure> {
    let at = self::home(home);
    let view = project::view(home, printer)?;
    let (place, names): (_, &[_]) = match (named.layer, view.place()) {
        (Layer::Project, Some(place)) => (place, &[catalog::LOCAL, catalog::BASE]),
        (Layer::Base, _) => (at.path(), &[catalog::BASE]),
        (Layer::Local | Layer::Project, _) => (at.path(), &[catalog::LOCAL]),
    };
    for path in names.iter().map(|name| place.join(name)).filter(|path| path.exists()) {
        if let Some(package) = entry(&path, &named.id_in_catalog)? {
            return Ok((path, package));
        }
    }
    Err(without(place))
}

/// What to say of a catalog that has lost an entry since it was read.
fn without(path: &Path) -> Failure {
    Failure::new(Exit::Unavailable, format!("`{}` is without this entry", path.display()))
}

/// The entry of a catalog, where it has one.
fn entry(catalog: &Path, id: &str) -> Result<Option<Package>, Failure> {
    let broken =
        |why: &str| Failure::new(Exit::Unavailable, format!("`{}` is {why}", catalog.display()));
    let bytes = std::fs::read(catalog).map_err(|error| broken("not to be read").cause(error))?;
    let (_, packages) = read(&bytes, &Options::default())
        .map_err(|_| broken("not valid").hint(format!("`haft validate {}`", catalog.display())))?;
    Ok(packages.into_iter().find(|package| package.id == id))
}

/// Refuses an entry above one of the baseline that would be let do more than that: nobody was shown a card for it.
fn check_not_wider(package: &Package, base: &Path) -> Result<(), Failure> {
    let Some(base) = (if base.exists() { entry(base, &package.id)? } else { None }) else {
        return Ok(());
    };
    let is_about_limits = |change: &&Change| {
        let place = change.pointer.as_ref().map(ToString::to_string).unwrap_or_default();
        change.class == Class::NeedsReview
            && ["/permissions", "/runtime/resources", "/secrets"]
                .iter()
                .any(|about| place.starts_with(about))
    };
    let changes = diff(&base, package);
    let wider: Vec<_> = changes
        .iter()
        .filter(is_about_limits)
        .map(|change| format!("{}: {}", change.subject, change.message))
        .collect();
    if wider.is_empty() {
        return Ok(());
    }
    let message =
        format!("the local catalog lets `{}` do more than the baseline does", line(&package.id));
    Err(Failure::new(Exit::Denied, message)
        .details(wider)
        .hint("what asks for more is installed, so that its card is accepted"))
}

/// An installed package as a tool; a server of which nothing was approved is none.
pub(crate) fn tool(installed: Installed, named: &Named) -> Result<Tool, Failure> {
    let surface = approved(&installed.record, named)?;
    if surface.is_none() && has_server(&installed.package) {
        return Err(unapproved(named));
    }
    Ok(Tool { surface, ..unasked(installed, named)? })
}

/// What was approved of all that a server offers.
pub(crate) fn approved(record: &Record, named: &Named) -> Result<Option<Surface>, Failure> {
    let read = |value| {
        Surface::from_value(value).map_err(|error| {
            let message = format!("what was approved of `{}` cannot be read", line(&named.id));
            Failure::new(Exit::Unavailable, message).cause(error)
        })
    };
    record.surface.as_ref().map(read).transpose()
}

/// An installed package as a tool, whatever its server offers.
pub(crate) fn unasked(installed: Installed, named: &Named) -> Result<Tool, Failure> {
    let Installed { mut package, root, record } = installed;
    let place = without_links(&root)?;
    let root = without_links(&run_from(&place, &record))?;
    package.enabled &= named.enabled;
    let source_trust = Trust::named(&record.trust).unwrap_or(Trust::Untrusted).min(named.trust);
    let admitted = match record.consent.how {
        // Who looked at the card let in what a registry vouches for.
        How::Asked => Trust::Community,
        How::Beforehand => Trust::Local,
    };
    Ok(Tool {
        package,
        root,
        brought: brought(&place, &record),
        place,
        consent: Consent::ByCard { admitted },
        source_trust,
        given: Given::default(),
        surface: None,
        links: None,
        digest: Some(digest(&record.pinned)),
    })
}

/// What stands for every file of an installed package, those that were acquired for it among them.
fn digest(pinned: &Pinned) -> String {
    let artefacts = serde_json::to_value(&pinned.artefacts).unwrap_or_default();
    policy::digest_of(&json!([pinned.id, pinned.version, pinned.package, artefacts]))
}

/// The hosts that the smoke test of an installed package may reach beside its own: those on the card that was accepted.
pub(crate) fn hosts_of_smoke(
    name: &str,
    home: &Home,
    printer: Printer,
) -> Result<Vec<String>, Failure> {
    let named = named_around(name, home, printer)?;
    check_not_locked(&named, home)?;
    let Some(pinned) = &named.pinned else { return Ok(Vec::new()) };
    Ok(Installed::load(&self::home(home), pinned)?.record.beside.smoke)
}

/// A server that was never asked what it offers: nobody approved of anything yet.
fn unapproved(named: &Named) -> Failure {
    let id = line(&named.id);
    let message = format!("nobody has approved what the server of `{id}` offers");
    Failure::new(Exit::Denied, message)
        .hint(format!("`haft approve surface {id}` shows it and asks"))
}

/// The folder that a version is run from: that of its files, or of the repository or the file that was acquired for it.
pub(crate) fn run_from(place: &Path, record: &Record) -> PathBuf {
    let acquired = record.acquired.as_ref().and_then(|acquired| acquired.files.as_ref());
    match acquired.map(|files| place.join(ACQUIRED).join(files)) {
        Some(files) if files.is_dir() => files,
        Some(file) => file.parent().unwrap_or(place).to_owned(),
        None => place.to_owned(),
    }
}

/// What was acquired for a version that lies at a place.
pub(crate) fn brought(place: &Path, record: &Record) -> Brought {
    let Some(acquired) = &record.acquired else { return Brought::default() };
    let folder = place.join(ACQUIRED);
    let below = |path: &PathBuf| folder.join(path);
    Brought {
        path: acquired.path.iter().map(below).collect(),
        python: acquired.python.as_ref().map(below),
        node: acquired.node.as_ref().map(below),
        main: acquired.main.clone(),
        folder: Some(folder),
    }
}

fn without_links(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| {
        Failure::new(Exit::Unavailable, format!("failed to find `{}`", path.display())).cause(error)
    })
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        failure(&error)
    }
}

/// Why a home could not be read or changed.
pub(crate) fn failure(error: &HomeError) -> Failure {
    let failure = Failure::of(Exit::Unavailable, error);
    match error {
        HomeError::Failed { doing: Doing::Write(_) | Doing::Make(_) | Doing::Move(..), .. } => {
            failure
        }
        HomeError::Broken { path, .. } if path.ends_with(catalog::BASE) => failure
            .hint("the baseline is never written, not even by `haft reset`: whoever put it there mends it, or takes it away"),
        HomeError::Broken { .. } => failure.hint("mend it, or `haft reset` takes away everything that was installed; policy, keys and shared secrets stay"),
        HomeError::Failed { .. } => failure,
    }
}
