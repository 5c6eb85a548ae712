//! What a package has run beside its calls, by the path of a call: its smoke test, its kill switch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use egress::http::Response;
use ledger::audit;
use manifest::model::{Action, Entry, Implementation, Invocation};
use policy::{Decision, Surface};
use sandbox::{Exit, Finished};
use tokio_util::sync::CancellationToken;

use super::readying::prepare_image;
use super::running::Ran;
use super::{Host, Known, Prepared, check_verdict};
use crate::blocked::Blocked;
use crate::call::{Call, Output, Tool};
use crate::consider::Considered;
use crate::endpoint;
use crate::error::{CallError, Kind};
use crate::input;
use crate::kill::credential;
use crate::limit;
use crate::plan::{self, Plan, Way};
use crate::request::{Redirects, Written};
use crate::run::http::answered;
use crate::run::mcp::assumed;
use crate::run::{engine, process};
use crate::secrets::{self, Collector, Variables};

/// What is run.
pub(super) struct Errand<'e> {
    /// What it is called in the log.
    pub(super) name: &'static str,
    pub(super) what: What<'e>,
    /// How long it may take; what the owner allows bounds it.
    pub(super) within: Duration,
}

/// What an errand is.
pub(super) enum What<'e> {
    /// A command of the package, as its own process.
    Command { argv: &'e [String], lacking: Lacking },
    /// A request that we send for it.
    Request(Written<'e>),
    /// A request of the owner's, who takes back what the package was given: nothing of the package has a part in it, so
    /// it may be sent whatever becomes of calls.
    Revocation { url: &'e str, secret: Option<&'e str> },
}

/// What is done about values that are not there.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Lacking {
    /// Nothing is run without them.
    Refused,
    /// It is run without them.
    Left,
}

/// What came of an errand, and what it was given.
pub(super) struct Done {
    pub(super) came: Came,
    pub(super) variables: Variables,
    pub(super) blocked: Vec<Blocked>,
    pub(super) took: Duration,
}

/// What comes of an errand.
pub(super) enum Came {
    Finished(Finished),
    Response(Response),
}

/// What is known of something before it is run.
pub(super) struct Grounds {
    pub(super) known: Arc<Known>,
    pub(super) decision: Arc<Decision>,
}

impl What<'_> {
    fn lacking(&self) -> Lacking {
        match self {
            Self::Command { lacking, .. } => *lacking,
            Self::Request(_) => Lacking::Refused,
            Self::Revocation { .. } => Lacking::Left,
        }
    }
}

impl Host {
    /// Runs an errand, and writes it down as a call is.
    pub(super) async fn run_errand(
        &self,
        tool: &Tool,
        errand: &Errand<'_>,
        called_off: &CancellationToken,
    ) -> Result<Done, CallError> {
        let (began, asked) = (Instant::now(), self.vault.waited());
        let call = beside(tool, errand.name, called_off);
        let mut record = Self::record_of(tool, &call);
        let mut begun = None;
        let done = tokio::select! {
            done = Box::pin(self.go(tool, errand, &call, &mut record, &mut begun)) => done,
            () = called_off.cancelled() => Err(CallError::called_off()),
        };
        let took = began.elapsed().saturating_sub(self.vault.waited().saturating_sub(asked));
        let (done, ended) = match done {
            Ok((done, ran)) => (Ok(Done { took, ..done }), Ok(ran)),
            Err(mut error) => {
                error.shorten();
                (Err(error.clone()), Err(error))
            }
        };
        self.note_end(tool, record, begun, ended, took).await;
        done
    }

    async fn go(
        &self,
        tool: &Tool,
        errand: &Errand<'_>,
        call: &Call,
        record: &mut audit::Call,
        begun: &mut Option<audit::Begun>,
    ) -> Result<(Done, Ran), CallError> {
        let action = Action {
            invocation: Invocation::Subcommand { argv_template: Vec::new() },
            timeout_ms: u64::try_from(errand.within.as_millis()).ok(),
            ..assumed(errand.name)
        };
        let own = way_of(tool)?;
        let Grounds { known, decision } = self.grounds(tool, call, &action).await?;
        if !matches!(errand.what, What::Revocation { .. }) {
            check_verdict(&decision, tool)?;
        }
        let variables = self.values(tool, &known, &decision, errand.what.lacking()).await?;
        let redactor = secrets::redactor(&variables);
        // Whatever is wrong from here on may tell of the values.
        let redacted = |mut error: CallError| {
            error.redact(&redactor);
            error
        };
        let input = input::read(&call.input, &action, tool.package.dialect)?;
        let written = |asked: &plan::Asked<'_>, request: &Written<'_>| {
            let plan = plan::request(asked, request)?;
            if let Way::Http(one) = &plan.way {
                endpoint::check_url(&one.url, &one.rules)?;
            }
            Ok(plan)
        };
        let prepared = Prepared { action: &action, implementation: own, input };
        let asked = self.asked(tool, call, &prepared, decision, &variables);
        let plan = match &errand.what {
            What::Command { argv, .. } => {
                let implementation = &starting(own, argv);
                plan::make(&plan::Asked { implementation, ..asked })
            }
            What::Request(request) => written(&asked, request),
            What::Revocation { url, secret } => {
                let secret = credential(&variables, *secret)?;
                let bearer = |name| ("authorization".to_owned(), format!("Bearer ${{env.{name}}}"));
                let headers: Vec<_> = secret.map(bearer).into_iter().collect();
                // Who is not told the secret cannot say that it is worth nothing any more.
                let redirects = Redirects::Left;
                let request =
                    Written { method: "DELETE", url, headers: &headers, body: None, redirects };
                written(&asked, &request)
            }
        };
        let plan = plan.map_err(redacted)?;
        self.check_offline(&plan)?;
        let plan = prepare_image(plan, &call.called_off).await.map_err(redacted)?;
        record.decision = audit::Decision::Allowed;
        self.note_plan(record, &plan);
        *begun = Some(self.records.begin(record)?);
        let until = Instant::now() + Duration::from_millis(plan.decision.allowance.timeout_ms);
        let ran = self.carry_out(&plan, until).await;
        let (came, mut ran) = ran.map_err(|mut error| {
            limit::tell(&mut error, &plan.decision.allowance, tool.package.dialect);
            redacted(error)
        })?;
        ran.redact(&redactor);
        let (blocked, took) = (ran.blocked.clone(), Duration::ZERO);
        Ok((Done { came, variables, blocked, took }, ran))
    }

    /// What is decided about something beside the calls.
    pub(super) async fn grounds(
        &self,
        tool: &Tool,
        call: &Call,
        action: &Action,
    ) -> Result<Grounds, CallError> {
        let known = self.known(tool, call).await?;
        self.check_place(tool, &known)?;
        let input = input::read(&call.input, action, tool.package.dialect)?;
        let prepared = Prepared { action, implementation: way_of(tool)?, input };
        let decision = self.decide(tool, call, &prepared, &known, &Considered::default());
        Ok(Grounds { known, decision })
    }

    /// The values it is given.
    pub(super) async fn values(
        &self,
        tool: &Tool,
        known: &Known,
        decision: &Decision,
        lacking: Lacking,
    ) -> Result<Variables, CallError> {
        let collector = self.collector(tool, known);
        let unsigned = Collector { logins: None, ..self.collector(tool, known) };
        let collected = match collector.collect(&decision.allowance, &[]).await {
            // A sign-in that has ended is one more value that is not there.
            Err(error) if error.kind == Kind::NeedsLogin && lacking == Lacking::Left => {
                unsigned.collect(&decision.allowance, &[]).await?
            }
            collected => collected?,
        };
        match lacking {
            Lacking::Refused => collected.whole(),
            Lacking::Left => Ok(collected.variables),
        }
    }

    /// Runs a plan once. How it is to be judged is for others.
    async fn carry_out(&self, plan: &Plan, until: Instant) -> Result<(Came, Ran), CallError> {
        // Whoever calls it off waits no more, which ends it.
        let never = CancellationToken::new();
        match &plan.way {
            Way::Process(one) => {
                let one = Arc::clone(one);
                let run = self.on_a_thread((plan, &never), until, move |host, leash| {
                    process::run(&host.launcher, &one, None, until, leash, || true, &mut |_| {})
                });
                let (finished, blocked) = run.await??;
                let ran = Ran::finished(&finished, blocked, outcome(&finished));
                Ok((Came::Finished(finished), ran))
            }
            Way::Engine(one) => {
                let one = one.clone();
                let run = self.on_a_thread((plan, &never), until, move |_, leash| {
                    engine::check_image(&one, until, leash)?;
                    engine::run(&one, until, leash)
                });
                let finished = run.await??;
                let ran = Ran::finished(&finished, Vec::new(), outcome(&finished));
                Ok((Came::Finished(finished), Ran { is_walled: false, ..ran }))
            }
            Way::Http(one) => {
                let response = self.web.fetch((one, &plan.redactor), until).await?;
                let output = if response.status.is_success() {
                    Ok(Output::Nothing)
                } else {
                    Err(answered(response.status, &response.headers, &response.body))
                };
                let ran = Ran { is_walled: false, ..Ran::of(output, Vec::new()) };
                Ok((Came::Response(response), ran))
            }
            Way::Worker(_) | Way::Mcp(_) | Way::A2a(_) | Way::Chain(_) => {
                let message = "a package has nothing of this kind run beside its calls";
                Err(CallError::new(Kind::Unavailable, message))
            }
        }
    }
}

/// The call that stands for something beside the calls.
pub(super) fn beside(tool: &Tool, name: &str, called_off: &CancellationToken) -> Call {
    Call {
        action: name.to_owned(),
        input: "{}".to_owned(),
        surface: Surface::Test,
        approver: None,
        ticket: None,
        folder: tool.root.clone(),
        within: None,
        progress: None,
        implementation: None,
        peer: None,
        resumed: None,
        context: None,
        called_off: called_off.clone(),
    }
}

/// How the package itself is run. Whether it runs here does not matter for what is run beside it.
fn way_of(tool: &Tool) -> Result<&Implementation, CallError> {
    tool.package.implementations.first().ok_or_else(|| {
        let message = format!("`{}` does not say how it is run", tool.package.id);
        CallError::new(Kind::Unavailable, message)
    })
}

/// The same way with another command, from the same folder.
fn starting(own: &Implementation, argv: &[String]) -> Implementation {
    let cwd = match &own.entry {
        Entry::Argv { cwd, .. } | Entry::McpStdio { cwd, .. } => cwd.clone(),
        _ => None,
    };
    let entry = Entry::Argv { argv: argv.to_vec(), cwd, runtime: own.runtime.clone() };
    Implementation { entry, ..own.clone() }
}

/// What is written down of a process that ended.
fn outcome(finished: &Finished) -> Result<Output, CallError> {
    match finished.ended.exit {
        Exit::Code(0) => Ok(Output::Nothing),
        Exit::Deadline => Err(limit::too_late("the command had not ended")),
        exit => Err(CallError::new(Kind::Failed, format!("the command {exit}"))),
    }
}
