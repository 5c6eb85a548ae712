//! Calls of MCP servers that want to know who is asking.

use std::time::Instant;

use vault::Secret;

use crate::error::{CallError, Kind};
use crate::login::Logins;
use crate::login::logins::Wanted;
use crate::plan::mcp::{Mcp, Place};

/// Says who is asking, where the owner signed in.
#[derive(Debug)]
pub(crate) struct Signer {
    pub(crate) logins: Logins,
}

impl Signer {
    /// Puts a token into a plan, where there is one. Whatever is secret about it is added to what was told.
    pub(crate) async fn sign(
        &self,
        package: &str,
        plan: &mut Mcp,
        told: &mut Vec<Secret>,
        until: Instant,
    ) -> Result<(), CallError> {
        let signed = self.signed(package, plan, Wanted::Any, until).await;
        told.extend(signed.map_err(|error| naming(error, package))?);
        Ok(())
    }

    /// Puts another token into a plan whose server did not take the first, so that it can be asked once
    /// more: what it refused so, it did not do. Else says why there is no answer.
    pub(crate) async fn sign_again(
        &self,
        package: &str,
        plan: &mut Mcp,
        refusal: CallError,
        told: &mut Vec<Secret>,
        until: Instant,
    ) -> Result<(), CallError> {
        // A token that was not sent was not refused either.
        let is_refused = plan.is_signed() && is_unauthorized(&refusal);
        let Some(used) = told.first().cloned().filter(|_| is_refused) else {
            return Err(naming(refusal, package));
        };
        match self.signed(package, plan, Wanted::Another(&used), until).await {
            Ok(tokens) if !tokens.is_empty() => {
                told.extend(tokens);
                Ok(())
            }
            Ok(_) => Err(naming(refusal, package)),
            // The server's own words say more than that there is nothing to renew.
            Err(error) if error.kind == Kind::NeedsLogin => Err(naming(refusal, package)),
            Err(error) => Err(error),
        }
    }

    /// Puts a token into a plan; gives it, and then what else is secret about it.
    async fn signed(
        &self,
        package: &str,
        plan: &mut Mcp,
        wanted: Wanted<'_>,
        until: Instant,
    ) -> Result<Vec<Secret>, CallError> {
        let rules = match &plan.place {
            Place::Process { .. } => return Ok(Vec::new()),
            Place::Url { rules, .. } | Place::Registry { rules, .. } => rules,
        };
        plan.bearer = self.logins.bearer(package, wanted, rules, until).await?;
        let bearer = plan.bearer.as_ref();
        Ok(bearer.map(|one| one.secrets().cloned().collect()).unwrap_or_default())
    }
}

fn is_unauthorized(error: &CallError) -> bool {
    error.kind == Kind::NeedsLogin && error.details["status"] == 401
}

/// A failure that names the package that is to be signed in for.
fn naming(error: CallError, package: &str) -> CallError {
    match error.kind {
        Kind::NeedsLogin => error.with("package", package),
        _ => error,
    }
}
