//! What a tool says of itself only when it runs: the actions of an MCP server, and where it is.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use egress::Rules;
use egress::http::Url;
use ledger::audit;
use manifest::model::{Action, Entry, Implementation};
use policy::{Decision, Surface};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::errand::beside;
use super::readying::prepare_image;
use super::running::Ran;
use super::signing::{Listing, Requesting};
use super::{Host, Known, Prepared, check_verdict, grantable};
use crate::call::{Call, Peer, Progress, Tool};
use crate::complaint::Scene;
use crate::confine;
use crate::consider::Considered;
use crate::endpoint;
use crate::error::{CallError, Kind};
use crate::input;
use crate::limit;
use crate::login::Protocol;
use crate::plan::{self, Plan, Way};
use crate::records::{CountAs, deny, note_refusal};
use crate::run::http::tokens;
use crate::run::mcp::{Asked, Replied, Servers, Told, actions_of, assumed};
use crate::surface::Surface as Offered;

/// What a tool says that it can do.
#[derive(Clone, Debug)]
pub struct Discovered {
    /// Its actions.
    pub actions: Vec<Action>,
    /// All that it offers, where it is a server: what an owner approves of.
    pub surface: Option<Offered>,
}

/// What a server is asked that is no call of a tool.
#[derive(Debug)]
pub struct Request<'r> {
    /// In the words of the protocol; [`crate::GREETING`] where nothing is asked but what it said of itself.
    pub method: &'r str,
    /// What the method takes.
    pub params: Value,
    /// Where the question comes from.
    pub surface: &'r Surface,
    /// Whom it can speak with meanwhile.
    pub peer: Option<Arc<dyn Peer>>,
    /// Who is told how far it is.
    pub progress: Option<Arc<dyn Progress>>,
}

impl Host {
    /// The actions of a tool that says only when it runs what it can do: an MCP server is started or
    /// reached and asked. Nothing is called, so nobody is asked; what is denied stays denied. It is written
    /// down as a call is, as `tools/list`.
    pub async fn discover(
        &self,
        tool: &Tool,
        surface: &Surface,
        within: Option<Duration>,
        called_off: &CancellationToken,
    ) -> Result<Discovered, CallError> {
        let (began, asked) = (Instant::now(), self.vault.waited());
        let listing = Call { within, ..listing(tool) };
        let mut record = Self::record_of(tool, &listing);
        surface.name().clone_into(&mut record.surface);
        let mut begun = None;
        let listed = tokio::select! {
            listed = Box::pin(self.list(tool, &listing, &mut record, &mut begun)) => listed,
            () = called_off.cancelled() => Err(CallError::called_off()),
        };
        let told = listed.as_ref().map(|_| Ran::listed()).map_err(Clone::clone);
        let took = began.elapsed().saturating_sub(self.vault.waited().saturating_sub(asked));
        self.note_end(tool, record, begun, told, took).await;
        listed
    }

    /// Writes down how something went that is run beside the calls.
    pub(super) async fn note_end(
        &self,
        tool: &Tool,
        mut record: audit::Call,
        begun: Option<audit::Begun>,
        ended: Result<Ran, CallError>,
        took: Duration,
    ) {
        let ran = match ended {
            Ok(ran) => ran,
            Err(error) if begun.is_some() => {
                note_refusal(&mut record, &error);
                Ran::failed(error)
            }
            Err(error) => {
                if error.kind.is_refusal() {
                    deny(&mut record, &error);
                } else if matches!(error.kind, Kind::MissingInput | Kind::BadInput) {
                    // It may be asked, and lacks a value to be asked with.
                    record.decision = audit::Decision::Allowed;
                }
                Ran::refused(error)
            }
        };
        let (ending, blocked) = (ran.ending(took), grantable(&ran.blocked, tool));
        // That it began is written down in any case.
        let _ = self.records.finish(begun, &record, &ending, tool, &blocked, CountAs::Beside).await;
    }

    async fn list(
        &self,
        tool: &Tool,
        listing: &Call,
        record: &mut audit::Call,
        begun: &mut Option<audit::Begun>,
    ) -> Result<Discovered, CallError> {
        let (plan, until) = self.begin_listing(tool, listing, record, begun).await?;
        let walls = plan.confinement().cloned();
        match plan.way {
            Way::Mcp(mut one) => {
                let (mut told, redactor) = (Vec::new(), &plan.redactor);
                let listed = async {
                    let (question, package) = (Listing { redactor, until }, &plan.package);
                    let surface = self.ask_signed(&question, package, &mut one, &mut told, until);
                    let surface = surface.await.answer?;
                    let actions = actions_of(&surface, until).await?;
                    Ok(Discovered { actions, surface: Some(surface) })
                };
                let listed = Box::pin(listed).await;
                let (allowance, dialect) = (&plan.decision.allowance, tool.package.dialect);
                listed.map_err(|mut error: CallError| {
                    if let Some(walls) = &walls {
                        let scene = Scene {
                            action: &assumed(&listing.action),
                            input: &listing.input,
                            walls,
                            may_write: !policy::denies(&tool.package, policy::GrantKind::Write),
                            own: &tool.root,
                            caller: &listing.folder,
                            user_home: self.settings.user_home.as_deref(),
                        };
                        let missed = self.missed(&mut error, &scene);
                        error.blocked.extend(missed);
                    }
                    limit::tell(&mut error, allowance, dialect);
                    error.redact(&tokens(&told));
                    error.redact(redactor);
                    error.shorten();
                    error
                })
            }
            _ => Ok(Discovered { actions: tool.package.actions.clone(), surface: None }),
        }
    }

    /// Asks the server of a tool for something that is no call: a prompt, a resource, a list of them. Nobody is asked for it; what
    /// is denied stays denied. It is written down as a call is, under the name of the method.
    pub async fn request(
        &self,
        tool: &Tool,
        request: Request<'_>,
        called_off: &CancellationToken,
    ) -> Result<Replied, CallError> {
        let began = Instant::now();
        let Request { method, params, surface, peer, progress } = request;
        let asked = Call { surface: surface.clone(), ..beside(tool, method, called_off) };
        let underway = self.underway.begin(tool, &asked);
        let mut record = Self::record_of(tool, &asked);
        let mut begun = None;
        let asking = async {
            let (plan, until) = self.begin_listing(tool, &asked, &mut record, &mut begun).await?;
            let Way::Mcp(mut one) = plan.way else {
                return Err(CallError::new(Kind::Unknown, "it is no server that could be asked"));
            };
            let (mut told, redactor) = (Vec::new(), &plan.redactor);
            let of_it = Told { progress, peer: peer.clone(), context: None };
            let question = Requesting(Asked { method, params, told: of_it, redactor, until });
            let package = &plan.package;
            let answered = self.ask_signed(&question, package, &mut one, &mut told, until);
            Box::pin(answered).await.answer.map_err(|mut error| {
                limit::tell(&mut error, &plan.decision.allowance, tool.package.dialect);
                error.redact(&tokens(&told));
                error.redact(redactor);
                error.shorten();
                error
            })
        };
        let answer = tokio::select! {
            answer = Box::pin(asking) => answer,
            () = called_off.cancelled() => Err(CallError::called_off()),
        };
        let answer = underway.told(answer);
        let told = answer.as_ref().map(|_| Ran::listed()).map_err(Clone::clone);
        let waited = peer.map(|peer| peer.waited()).unwrap_or_default();
        let took = began.elapsed().saturating_sub(waited);
        self.note_end(tool, record, begun, told, took).await;
        answer
    }

    /// Makes everything ready for a server to be asked, and writes down that it is.
    async fn begin_listing(
        &self,
        tool: &Tool,
        listing: &Call,
        record: &mut audit::Call,
        begun: &mut Option<audit::Begun>,
    ) -> Result<(Plan, Instant), CallError> {
        let known = self.known(tool, listing).await?;
        let (implementation, plan) = self.plan_of_listing(tool, listing, &known).await?;
        endpoint::check(&tool.package, &implementation, &plan.decision.allowance)?;
        self.check_offline(&plan)?;
        let plan = prepare_image(plan, &listing.called_off).await?;
        record.decision = audit::Decision::Allowed;
        self.note_plan(record, &plan);
        *begun = Some(self.records.begin(record)?);
        let until = Instant::now() + Duration::from_millis(plan.decision.allowance.timeout_ms);
        Ok((plan, until))
    }

    /// The server or agent of a tool on the network, which the owner would sign in to.
    pub async fn remote(&self, tool: &Tool) -> Result<(Url, Protocol), CallError> {
        let listing = listing(tool);
        let known = self.known_as_signed_in(tool, &listing).await?;
        let (_, plan) = self.plan_of_listing(tool, &listing, &known).await?;
        let until = Instant::now() + Duration::from_millis(plan.decision.allowance.timeout_ms);
        let found = match &plan.way {
            Way::Mcp(one) => Servers::address(one, until).await?.map(|url| (url, Protocol::Mcp)),
            Way::A2a(one) => Some((one.endpoint.clone(), Protocol::A2a)),
            _ => None,
        };
        found.ok_or_else(|| {
            let message = "it runs here, so there is no server that could be signed in to";
            CallError::new(Kind::BadInput, message)
        })
    }

    /// What may be reached on behalf of a tool while the owner signs in for it.
    pub async fn reach(&self, tool: &Tool) -> Result<Rules, CallError> {
        let listing = listing(tool);
        let known = self.known_as_signed_in(tool, &listing).await?;
        let (action, implementation) = self.listed(tool, &known).await?;
        let (_, decision) =
            self.decide_listing(tool, &listing, &known, (&action, &implementation))?;
        confine::rules(&decision.allowance)
    }

    /// What is known of a tool, as if the owner had signed in for it: so that they can.
    async fn known_as_signed_in(
        &self,
        tool: &Tool,
        listing: &Call,
    ) -> Result<Arc<Known>, CallError> {
        let mut known = self.known(tool, listing).await?;
        let signed_in = Arc::make_mut(&mut known);
        signed_in.is_signed_in = true;
        signed_in.missing_scopes.clear();
        Ok(known)
    }

    /// How a tool would be asked for its actions.
    async fn plan_of_listing<'t>(
        &self,
        tool: &'t Tool,
        listing: &Call,
        known: &Known,
    ) -> Result<(Cow<'t, Implementation>, Plan), CallError> {
        let (action, implementation) = self.listed(tool, known).await?;
        let (prepared, decision) =
            self.decide_listing(tool, listing, known, (&action, &implementation))?;
        let collector = self.collector(tool, known);
        let variables = collector.collect(&decision.allowance, &[]).await?.whole()?;
        let plan = plan::make(&self.asked(tool, listing, &prepared, decision, &variables))?;
        Ok((implementation, plan))
    }

    /// What stands for the action of a tool that is asked for its actions, and how that is run.
    async fn listed<'t>(
        &self,
        tool: &'t Tool,
        known: &Known,
    ) -> Result<(Action, Cow<'t, Implementation>), CallError> {
        self.check_place(tool, known)?;
        let action = assumed("tools/list");
        let mut choice = self.choose_for(tool, &action, None).await?;
        let implementation = choice.prospects.swap_remove(0).implementation;
        Ok(match &implementation.entry {
            // A registry may be asked which server has it.
            Entry::McpTool { tool_name, .. } => (assumed(tool_name), implementation),
            _ => (action, implementation),
        })
    }

    /// Decides about it, and refuses what is denied.
    fn decide_listing<'p>(
        &self,
        tool: &Tool,
        listing: &Call,
        known: &Known,
        (action, implementation): (&'p Action, &'p Implementation),
    ) -> Result<(Prepared<'p>, Arc<Decision>), CallError> {
        let input = input::read(&listing.input, action, tool.package.dialect)?;
        let prepared = Prepared { action, implementation, input };
        let decision = self.decide(tool, listing, &prepared, known, &Considered::default());
        check_verdict(&decision, tool)?;
        Ok((prepared, decision))
    }
}

/// The call that asks a tool for its actions.
fn listing(tool: &Tool) -> Call {
    beside(tool, "tools/list", &CancellationToken::new())
}
