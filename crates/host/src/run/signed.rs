//! Calls of MCP servers that want to know who is asking.

use std::sync::Arc;
use std::time::Instant;

use vault::Secret;

use super::http::Web;
use super::mcp::Answered;
use crate::error::{CallError, Kind};
use crate::login::logins::Wanted;
use crate::login::{LoginError, Logins};
use crate::plan::mcp::{Mcp, Place};
use crate::request::put_bearer;

/// Says who is asking: by an account of the package, or as the owner signed in.
#[derive(Debug)]
pub(crate) struct Signer {
    pub(crate) logins: Logins,
    pub(crate) web: Arc<Web>,
}

impl Signer {
    /// Asks a server. One that does not take the token is asked once more with a new one: what it refused
    /// so, it did not do. Gives the tokens that were told along with the answer.
    pub(crate) async fn ask<T>(
        &self,
        package: &str,
        plan: &mut Mcp,
        until: Instant,
        ask: impl AsyncFn(&Mcp) -> Answered<T>,
    ) -> (Answered<T>, Vec<Secret>) {
        let failed = |error: CallError| Answered { answer: Err(error), blocked: Vec::new() };
        let mut told = Vec::new();
        match self.sign(package, plan, Wanted::Any, until).await {
            Ok(tokens) => told.extend(tokens),
            Err(error) => return (failed(with_package(error, package)), told),
        }
        let answered = ask(plan).await;
        let is_refused = matches!(&answered.answer, Err(error) if is_unauthorized(error));
        let Some(used) = told.first().cloned().filter(|_| is_refused) else {
            return (answered.naming(package), told);
        };
        match self.sign(package, plan, Wanted::Another(&used), until).await {
            Ok(tokens) if !tokens.is_empty() => told.extend(tokens),
            Ok(_) => return (answered.naming(package), told),
            // The server's own words say more than that there is nothing to renew.
            Err(error) if error.kind == Kind::NeedsLogin => {
                return (answered.naming(package), told);
            }
            Err(error) => return (failed(error), told),
        }
        (ask(plan).await.naming(package), told)
    }

    /// Puts a token into a plan, where there is one; gives it, and then what else is secret about it.
    async fn sign(
        &self,
        package: &str,
        plan: &mut Mcp,
        wanted: Wanted<'_>,
        until: Instant,
    ) -> Result<Vec<Secret>, CallError> {
        let rules = match &mut plan.place {
            Place::Process { .. } => return Ok(Vec::new()),
            Place::Url { headers, account: Some(account), rules, .. } => {
                if let Wanted::Another(_) = wanted {
                    self.web.forget(account);
                }
                let token = self.web.token(account, rules, until).await?;
                put_bearer(headers, &token)?;
                return Ok(Secret::new(token).into_iter().collect());
            }
            Place::Url { headers, .. } if headers.contains_key("authorization") => {
                return Ok(Vec::new());
            }
            Place::Url { rules, .. } | Place::Registry { rules, .. } => rules,
        };
        let bearer = self.logins.bearer(package, wanted, rules);
        let late = |_| CallError::from(LoginError::TimedOut);
        plan.bearer = tokio::time::timeout_at(until.into(), bearer).await.map_err(late)??;
        let bearer = plan.bearer.as_ref();
        Ok(bearer.map(|one| one.secrets().cloned().collect()).unwrap_or_default())
    }
}

fn is_unauthorized(error: &CallError) -> bool {
    error.kind == Kind::NeedsLogin && error.details["status"] == 401
}

impl<T> Answered<T> {
    /// The same, and a failure names the package that is to be signed in for.
    fn naming(mut self, package: &str) -> Self {
        self.answer = self.answer.map_err(|error| with_package(error, package));
        self
    }
}

fn with_package(error: CallError, package: &str) -> CallError {
    match error.kind {
        Kind::NeedsLogin => error.with("package", package),
        _ => error,
    }
}
