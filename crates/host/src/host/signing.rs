//! Questions to servers and agents as whoever is signed in.

use std::time::Instant;

use manifest::model::Action;
use tokio_util::sync::CancellationToken;
use vault::{Redactor, Secret};

use super::Host;
use crate::call::{Output, TraceContext};
use crate::error::{CallError, Kind};
use crate::plan::a2a::Agent;
use crate::plan::mcp::Mcp;
use crate::run::Answered;
use crate::run::mcp::{Asked, Replied, Terms};
use crate::run::signed::Signable;
use crate::surface::Surface;

/// What is asked by a plan, perhaps a second time with another token.
pub(super) trait Question {
    type Plan: Signable + Sync;
    type Answer;

    fn ask(
        &self,
        host: &Host,
        plan: &Self::Plan,
    ) -> impl Future<Output = Answered<Self::Answer>> + Send;
}

/// A tool of a server is called.
pub(super) struct Calling<'t>(pub(super) Terms<'t>);

impl Question for Calling<'_> {
    type Plan = Mcp;
    type Answer = Output;

    async fn ask(&self, host: &Host, plan: &Mcp) -> Answered<Output> {
        Box::pin(host.servers.call(&host.launcher, plan, self.0.clone())).await
    }
}

/// A server is asked what it offers.
pub(super) struct Listing<'l> {
    pub(super) redactor: &'l Redactor,
    pub(super) until: Instant,
}

impl Question for Listing<'_> {
    type Plan = Mcp;
    type Answer = Surface;

    async fn ask(&self, host: &Host, plan: &Mcp) -> Answered<Surface> {
        host.servers.list(&host.launcher, plan, self.redactor, self.until).await.into()
    }
}

/// A server is asked for something that is no call of a tool.
pub(super) struct Requesting<'r>(pub(super) Asked<'r>);

impl Question for Requesting<'_> {
    type Plan = Mcp;
    type Answer = Replied;

    async fn ask(&self, host: &Host, plan: &Mcp) -> Answered<Replied> {
        host.servers.request(&host.launcher, plan, &self.0).await
    }
}

/// An agent is sent a message.
pub(super) struct Messaging<'m> {
    pub(super) action: &'m Action,
    pub(super) until: Instant,
    pub(super) context: Option<&'m TraceContext>,
    pub(super) called_off: &'m CancellationToken,
}

impl Question for Messaging<'_> {
    type Plan = Agent;
    type Answer = Output;

    async fn ask(&self, host: &Host, plan: &Agent) -> Answered<Output> {
        let asked = (plan, self.context);
        host.agents.call(asked, self.action, self.until, self.called_off).await.into()
    }
}

impl Host {
    /// Asks somebody as whoever is signed in; once more where a token has to be renewed. Whatever is secret about the tokens is
    /// added to what was told.
    pub(super) async fn ask_signed<Q: Question>(
        &self,
        question: &Q,
        package: &str,
        plan: &mut Q::Plan,
        told: &mut Vec<Secret>,
        until: Instant,
    ) -> Answered<Q::Answer> {
        let failed = |error: CallError| Err(error).into();
        if let Err(error) = self.signer.sign(package, plan, told, until).await {
            return failed(error);
        }
        let first = question.ask(self, plan).await;
        match first.answer {
            Err(error) if error.kind == Kind::NeedsLogin => {
                match self.signer.sign_again(package, plan, error, told, until).await {
                    Ok(()) => question.ask(self, plan).await,
                    Err(error) => failed(error),
                }
            }
            answer => Answered { answer, ..first },
        }
    }
}
