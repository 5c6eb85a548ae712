//! Where a registry is administered: at its database, or over HTTP.

use std::path::PathBuf;

use clap::Args;
use egress::http::Method;
use registry::client::{Errand, FetchError, Kind, Remote};
use registry::read::Checked;
use serde::de::DeserializeOwned;
use server::Store;
use server::store::StoreError;

use super::super::stores::{DatabaseArgs, open_existing};
use crate::ask::Ask;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::printer::line;
use crate::remote::{self, Known, Which};
use crate::{owner, shell};

#[derive(Args, Debug)]
pub(super) struct PlaceArgs {
    #[command(flatten)]
    pub(super) database: DatabaseArgs,
    /// A registry over HTTP instead, by name or address, with the token of an administrator [default: `REGISTRY_BASE_URL`, where neither --home nor a database is named]
    #[arg(long, value_name = "NAME|URL", conflicts_with_all = ["database", "database_file"])]
    registry: Option<String>,
}

impl PlaceArgs {
    /// The registry over HTTP, where one is named. What is typed wins over a variable; `--home` beside `--registry` says
    /// where the names and the tokens of registries are kept.
    pub(super) fn office(&self, home: &Home, ask: Ask) -> Result<Option<Office>, Failure> {
        if let Some(text) = &self.registry {
            return Office::open(&Which::named(text.clone()), home, ask).map(Some);
        }
        let is_here = self.database.is_named() || home.is_typed();
        let Some(which) = Which::by_environment().filter(|_| !is_here) else { return Ok(None) };
        let office = Office::open(&which, home, ask)?;
        Ok(Some(Office { instead: Some(home.path().to_owned()), ..office }))
    }
}

impl PlaceArgs {
    /// Ends a token or a publisher of this id, over HTTP or at the database; what is not there is told.
    pub(super) fn end(
        &self,
        (home, ask): (&Home, Ask),
        what: &str,
        id: &str,
        end_here: impl AsyncFnOnce(Store) -> Result<bool, StoreError>,
    ) -> Result<(), Failure> {
        let there =
            self.registry.clone().map_or_else(String::new, |text| Which::named(text).typed());
        let missing = || {
            let message = format!("there is no {what} `{}`", line(id));
            let hint = format!("`haft registry {what} list{there}` shows them");
            Failure::new(Exit::NotFound, message).hint(hint)
        };
        if let Some(office) = self.office(home, ask)? {
            let path = [&*format!("{what}s"), id];
            let ended = office.tell(Errand::new(Method::DELETE, &path));
            return ended.map_err(|failure| match failure.exit {
                Exit::NotFound => missing(),
                _ => failure,
            });
        }
        let was_there = owner::runtime()?.block_on(async {
            let ended = end_here(open_existing(&self.database, home).await?).await;
            ended.map_err(|error| Failure::of(Exit::Unavailable, &error))
        })?;
        if was_there { Ok(()) } else { Err(missing()) }
    }
}

/// A registry over HTTP, and what its answers mean.
pub(super) struct Office {
    remote: Remote,
    /// The home whose own registry may have been meant, where only a variable says that this one is.
    instead: Option<PathBuf>,
}

impl Office {
    pub(super) fn open(which: &Which, home: &Home, ask: Ask) -> Result<Self, Failure> {
        Ok(Self { remote: Known::new(home, ask)?.one(which)?, instead: None })
    }

    pub(super) fn ask<T: DeserializeOwned + Checked>(
        &self,
        errand: Errand<'_>,
    ) -> Result<T, Failure> {
        let answered = owner::runtime()?.block_on(self.remote.ask(errand));
        answered.map_err(|error| self.failed(&error))
    }

    pub(super) fn tell(&self, errand: Errand<'_>) -> Result<(), Failure> {
        let answered = owner::runtime()?.block_on(self.remote.tell(errand));
        answered.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &FetchError) -> Failure {
        let failure = remote::failed(self.remote.name(), error);
        let is_about_token = error.kind() == Kind::Denied || matches!(error, FetchError::NoToken);
        match &self.instead {
            Some(home) if is_about_token => failure.hint(format!(
                "{} is set, so the registry there is asked, which wants the token of an administrator; --home {} means the one of this machine",
                remote::ADDRESS,
                shell::word(&home.to_string_lossy())
            )),
            _ => failure,
        }
    }
}
