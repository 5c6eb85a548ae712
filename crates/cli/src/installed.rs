//! What is installed in the home, found by the names that people type.

use std::path::{Path, PathBuf};

use host::{Given, Tool};
use install::error::Doing;
use install::record::How;
use install::{HomeError, Installed, Layer, Listed, Pinned};
use manifest::model::Trust;
use manifest::shape::suggest;
use policy::Consent;

use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::tools::Found;
use crate::{project, shell};

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

/// The package of the user's home that a name stands for.
pub(crate) fn named(name: &str, at: &install::Home) -> Result<Named, Failure> {
    let contents = at.read()?;
    one_of(name, &contents.called(name), &contents.listed())
}

/// The package that a name stands for in the working folder: of the project's home, where that counts, else of the user's.
pub(crate) fn named_around(name: &str, home: &Home, printer: Printer) -> Result<Named, Failure> {
    let view = project::view(home, printer)?;
    let mut named = one_of(name, &view.called(name), &view.listed())?;
    if let (Layer::Project, Some(pinned)) = (named.layer, &named.pinned) {
        // What runs lies in the user's home, and was agreed to there.
        let record = view.agreed(pinned).ok_or_else(|| {
            let message = format!(
                "the project's lockfile names `{}` {}, which is not installed with those bytes",
                line(&pinned.id),
                line(&pinned.version)
            );
            Failure::new(Exit::Unavailable, message)
                .hint("`haft sync --locked` brings what a lockfile names, once you accept it")
        })?;
        named.pinned = Some(record.pinned);
    }
    Ok(named)
}

fn one_of(name: &str, called: &[Listed<'_>], listed: &[Listed<'_>]) -> Result<Named, Failure> {
    match called {
        [one] => Ok(Named {
            id: one.id.clone(),
            id_in_catalog: match one.pinned {
                Some(pinned) => install::catalog::id_in_catalog(pinned).to_owned(),
                None => one.id.split_once(':').map_or(one.id.clone(), |(_, id)| id.to_owned()),
            },
            layer: one.layer,
            enabled: one.enabled,
            trust: one.trust,
            pinned: one.pinned.cloned(),
        }),
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

fn bare(id: &str) -> &str {
    id.split_once(':').map_or(id, |(_, id)| id)
}

/// An installed package as a tool that can be called.
pub(crate) fn found(name: &str, home: &Home, printer: Printer) -> Result<Found, Failure> {
    let at = self::home(home);
    let named = named_around(name, home, printer)?;
    let Some(pinned) = &named.pinned else {
        let message = format!(
            "`{}` is declared in the catalog of the home, and not installed",
            line(&named.id)
        );
        return Err(Failure::new(Exit::Unavailable, message));
    };
    let installed = Installed::load(&at, pinned)?;
    Ok(Found::installed(tool(installed, &named)?))
}

/// An installed package as a tool.
pub(crate) fn tool(installed: Installed, named: &Named) -> Result<Tool, Failure> {
    let Installed { mut package, root, record } = installed;
    let root = without_links(&root)?;
    package.enabled &= named.enabled;
    let source_trust = Trust::named(&record.trust).unwrap_or(Trust::Untrusted).min(named.trust);
    let admitted = match record.consent.how {
        // Who looked at the card let in what a registry vouches for.
        How::Asked => Trust::Community,
        How::Beforehand => Trust::Local,
    };
    let place = root.clone();
    Ok(Tool {
        package,
        root,
        place,
        consent: Consent::ByCard { admitted },
        source_trust,
        given: Given::default(),
        surface: None,
    })
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
        HomeError::Broken { .. } => failure.hint("`haft doctor` says what can be done about it"),
        HomeError::Failed { .. } => failure,
    }
}
