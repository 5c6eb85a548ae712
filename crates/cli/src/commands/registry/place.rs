//! Where a registry is administered: at its database, or over HTTP.

use clap::Args;
use egress::http::Method;

use super::DatabaseArgs;
use crate::exit::Failure;
use crate::remote::{Ask, Identity, Remote};

#[derive(Args, Debug)]
pub(super) struct PlaceArgs {
    #[command(flatten)]
    pub(super) database: DatabaseArgs,
    /// A registry over HTTP instead, with a token of an administrator in `HAFT_TOKEN`
    #[arg(long, value_name = "URL", conflicts_with = "database")]
    registry: Option<String>,
}

impl PlaceArgs {
    /// The registry over HTTP, where one is named.
    pub(super) fn remote(&self) -> Result<Option<Remote>, Failure> {
        self.registry.as_deref().map(|address| Remote::find(Some(address))).transpose()
    }
}

/// A request of somebody who is known.
pub(super) fn known<'a>(method: Method, path: &'a [&'a str], body: Option<Vec<u8>>) -> Ask<'a> {
    Ask { method, path, query: &[], body, identity: Identity::Token }
}
