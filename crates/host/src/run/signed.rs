//! Calls of servers and agents that want to know who is asking.

use std::time::Instant;

use egress::Rules;
use vault::Secret;

use crate::error::{CallError, Kind};
use crate::login::logins::Wanted;
use crate::login::{Bearer, Logins};
use crate::plan::a2a::Agent;
use crate::plan::mcp::{Mcp, Place};

/// Says who is asking, where the owner signed in.
#[derive(Debug)]
pub(crate) struct Signer {
    pub(crate) logins: Logins,
}

/// A plan that can say who is asking.
pub(crate) trait Signable {
    /// Which token it needs.
    const WANTED: Wanted<'static>;

    /// What may be reached for it; `None` where nobody is told who is asking.
    fn rules(&self) -> Option<&Rules>;

    /// Where the token is put.
    fn bearer(&mut self) -> &mut Option<Bearer>;

    /// Whether whoever is signed in is named.
    fn is_signed(&self) -> bool;
}

impl Signable for Mcp {
    const WANTED: Wanted<'static> = Wanted::Any;

    fn rules(&self) -> Option<&Rules> {
        match &*self.place {
            Place::Process { .. } => None,
            Place::Url { rules, .. } | Place::Registry { rules, .. } => Some(rules),
        }
    }

    fn bearer(&mut self) -> &mut Option<Bearer> {
        &mut self.bearer
    }

    /// Where a registry says where the server is, it may be.
    fn is_signed(&self) -> bool {
        match (&*self.place, &self.bearer) {
            (Place::Url { url, .. }, Some(bearer)) => bearer.header(url).is_some(),
            (Place::Registry { .. }, bearer) => bearer.is_some(),
            (Place::Url { .. }, None) | (Place::Process { .. }, _) => false,
        }
    }
}

impl Signable for Agent {
    /// A task is asked after with what it was begun with.
    const WANTED: Wanted<'static> = Wanted::Lasting;

    fn rules(&self) -> Option<&Rules> {
        Some(&self.rules)
    }

    fn bearer(&mut self) -> &mut Option<Bearer> {
        &mut self.bearer
    }

    fn is_signed(&self) -> bool {
        self.signed().is_some()
    }
}

impl Signer {
    /// Puts a token into a plan, where there is one. Whatever is secret about it is added to what was told.
    pub(crate) async fn sign<P: Signable>(
        &self,
        package: &str,
        plan: &mut P,
        told: &mut Vec<Secret>,
        until: Instant,
    ) -> Result<(), CallError> {
        let signed = self.signed(package, plan, P::WANTED, until).await;
        told.extend(signed.map_err(|error| error.of_package(package))?);
        Ok(())
    }

    /// Puts another token into a plan whose server did not take the first, so that it can be asked once
    /// more: what it refused so, it did not do. Else says why there is no answer.
    pub(crate) async fn sign_again<P: Signable>(
        &self,
        package: &str,
        plan: &mut P,
        refusal: CallError,
        told: &mut Vec<Secret>,
        until: Instant,
    ) -> Result<(), CallError> {
        // A token that was not sent was not refused either.
        let is_refused = plan.is_signed() && is_unauthorized(&refusal);
        let Some(used) = told.first().cloned().filter(|_| is_refused) else {
            return Err(refusal.of_package(package));
        };
        match self.signed(package, plan, Wanted::Another(&used), until).await {
            Ok(tokens) if !tokens.is_empty() => {
                told.extend(tokens);
                Ok(())
            }
            Ok(_) => Err(refusal.of_package(package)),
            // The server's own words say more than that there is nothing to renew.
            Err(error) if error.kind == Kind::NeedsLogin => Err(refusal.of_package(package)),
            Err(error) => Err(error),
        }
    }

    /// Puts a token into a plan; gives it, and then what else is secret about it.
    async fn signed<P: Signable>(
        &self,
        package: &str,
        plan: &mut P,
        wanted: Wanted<'_>,
        until: Instant,
    ) -> Result<Vec<Secret>, CallError> {
        let Some(rules) = plan.rules() else { return Ok(Vec::new()) };
        let bearer = Box::pin(self.logins.bearer(package, wanted, rules, until)).await?;
        // One that the package itself is given was collected with its other values.
        let bearer = bearer.filter(|one| one.value().is_none());
        let secrets = bearer.iter().flat_map(|one| one.secrets().cloned()).collect();
        *plan.bearer() = bearer;
        Ok(secrets)
    }
}

/// Whether a token was not taken. Who has begun a task has taken it, and would begin another one.
fn is_unauthorized(error: &CallError) -> bool {
    error.kind == Kind::NeedsLogin
        && error.details["status"] == 401
        && error.details.get("task").is_none()
}
