//! Where a registry is administered: at its database, or over HTTP.

use clap::Args;
use registry::client::{Errand, Remote};
use registry::read::Checked;
use serde::de::DeserializeOwned;
use server::Store;
use server::store::StoreError;

use super::super::stores::{DatabaseArgs, open_existing};
use crate::ask::Ask;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::owner;
use crate::remote::{self, Known, Which};

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
        let named = self.registry.clone().map(Which::named);
        let is_here = self.database.is_named() || home.is_typed();
        let named = named.or_else(|| Which::by_environment().filter(|_| !is_here));
        named.map(|which| Office::open(&which, home, ask)).transpose()
    }
}

impl PlaceArgs {
    /// Ends something of this id at the database; what is not there is told.
    pub(super) fn end_here(
        &self,
        home: &Home,
        what: &str,
        id: &str,
        end: impl AsyncFnOnce(Store) -> Result<bool, StoreError>,
    ) -> Result<(), Failure> {
        let was_there = owner::runtime()?.block_on(async {
            let ended = end(open_existing(&self.database, home).await?).await;
            ended.map_err(|error| Failure::of(Exit::Unavailable, &error))
        })?;
        if was_there {
            return Ok(());
        }
        let message = format!("there is no {what} `{id}`");
        let hint = format!("`haft registry {what} list`");
        Err(Failure::new(Exit::NotFound, message).hint(hint))
    }
}

/// A registry over HTTP, and what its answers mean.
pub(super) struct Office(Remote);

impl Office {
    pub(super) fn open(which: &Which, home: &Home, ask: Ask) -> Result<Self, Failure> {
        Known::new(home, ask)?.one(which).map(Self)
    }

    pub(super) fn ask<T: DeserializeOwned + Checked>(
        &self,
        errand: Errand<'_>,
    ) -> Result<T, Failure> {
        let answered = owner::runtime()?.block_on(self.0.ask(errand));
        answered.map_err(|error| remote::failed(self.0.name(), &error))
    }

    pub(super) fn tell(&self, errand: Errand<'_>) -> Result<(), Failure> {
        let answered = owner::runtime()?.block_on(self.0.tell(errand));
        answered.map_err(|error| remote::failed(self.0.name(), &error))
    }
}
