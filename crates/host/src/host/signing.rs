//! Calls of MCP servers as whoever is signed in.

use std::time::Instant;

use vault::{Redactor, Secret};

use super::Host;
use crate::blocked::Blocked;
use crate::call::Output;
use crate::error::{CallError, Kind};
use crate::plan::mcp::Mcp;
use crate::run::mcp::{Answered, Terms};
use crate::surface::Surface;

impl Host {
    /// Calls a tool of a server as whoever is signed in; once more where a token has to be renewed.
    pub(super) async fn ask_signed(
        &self,
        package: &str,
        plan: &mut Mcp,
        terms: &Terms,
        told: &mut Vec<Secret>,
    ) -> Answered<Output> {
        let failed = |error: CallError| {
            let blocked = Blocked::of(&error);
            Answered { answer: Err(error), blocked }
        };
        if let Err(error) = self.signer.sign(package, plan, told, terms.until).await {
            return failed(error);
        }
        let first = self.servers.call(&self.launcher, plan, terms.clone()).await;
        match first.answer {
            Err(error) if error.kind == Kind::NeedsLogin => {
                let again = self.signer.sign_again(package, plan, error, told, terms.until);
                match again.await {
                    Ok(()) => self.servers.call(&self.launcher, plan, terms.clone()).await,
                    Err(error) => failed(error),
                }
            }
            answer => Answered { answer, ..first },
        }
    }

    /// Asks a server what it offers as whoever is signed in; once more where a token has to be renewed.
    pub(super) async fn list_signed(
        &self,
        package: &str,
        plan: &mut Mcp,
        redactor: &Redactor,
        told: &mut Vec<Secret>,
        until: Instant,
    ) -> Result<Surface, CallError> {
        self.signer.sign(package, plan, told, until).await?;
        match self.servers.list(&self.launcher, plan, redactor, until).await {
            Err(error) if error.kind == Kind::NeedsLogin => {
                self.signer.sign_again(package, plan, error, told, until).await?;
                self.servers.list(&self.launcher, plan, redactor, until).await
            }
            listed => listed,
        }
    }
}
