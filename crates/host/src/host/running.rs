//! From a plan to a result: tried once, and again where that is safe.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ledger::audit::{self, Begun};
use manifest::dialect::Dialect;
use manifest::model::{Action, OutputFormat};
use policy::{GrantKind, Surface};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use vault::Redactor;

use super::chaining::OfSteps;
use super::signing::{Calling, Messaging};
use super::{Host, broken_off};
use crate::blocked::{Blocked, Why};
use crate::call::{AskedStep, Call, Output, TraceContext};
use crate::chain::trace::Trace;
use crate::complaint::{self, Complaint, Scene};
use crate::confine::{self, Forbidden};
use crate::error::{CallError, Kind};
use crate::input::Input;
use crate::limit::too_late;
use crate::output;
use crate::plan::a2a::Agent;
use crate::plan::mcp::Mcp;
use crate::plan::{Plan, Way};
use crate::promise::check_promise;
use crate::records::Records;
use crate::run::http::tokens;
use crate::run::leash::Leash;
use crate::run::mcp::{Declared, Terms};
use crate::run::worker::{self, Warmth};
use crate::run::{engine, process};
use crate::stream::Stream;

/// How often a call is tried at most.
const MOST_ATTEMPTS: u32 = 3;

/// How long to wait before the second attempt; before the third twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// How long it may take to tell others that a call was called off.
const FAREWELL: Duration = Duration::from_secs(4);

/// How long after its time an attempt may take to come to its end by itself; an engine is given most of it to
/// end a container.
const SLACK: Duration = Duration::from_secs(30);

/// What is to be run.
pub(super) struct Running<'r> {
    pub(super) plan: &'r Plan,
    pub(super) action: &'r Action,
    pub(super) input: &'r Input,
    pub(super) dialect: Dialect,
    pub(super) warmth: Warmth,
    pub(super) call: &'r Call,
    /// The folder of its own files.
    pub(super) own: &'r Path,
    /// Whether a grant would let it write.
    pub(super) may_write: bool,
    /// How long it may take.
    pub(super) allowed: Duration,
    /// What is written down of it, and that it was: before that nothing of it runs.
    pub(super) record: &'r audit::Call,
    pub(super) begun: &'r OnceLock<Begun>,
    /// The chain that it belongs to, or is.
    pub(super) trace: Option<&'r Trace>,
    /// Of a chain: the steps that the owner was shown, and said yes to with this very call.
    pub(super) agreed: &'r [AskedStep],
}

impl Running<'_> {
    /// Writes down that it is about to run, unless that was done.
    fn begin(&self, records: &Records) -> Result<(), CallError> {
        if self.begun.get().is_none() {
            let _ = self.begun.set(records.begin(self.record)?);
        }
        Ok(())
    }

    /// Who is told the records of this call as they come.
    fn stream(&self, until: Instant) -> Option<Stream> {
        let told = self.call.progress.as_ref()?;
        (self.action.output_format == Some(OutputFormat::NdjsonStream))
            .then(|| Stream::new(Arc::clone(told), self.action, self.plan.redactor.clone(), until))
    }

    /// Waits until it should have come to its end by itself long ago.
    async fn stuck(&self, until: Instant) {
        loop {
            let before = self.call.waited();
            tokio::time::sleep_until((until + before + SLACK).into()).await;
            if self.call.waited() <= before {
                return;
            }
        }
    }

    /// Waits until the call is called off, and those who have to tell somebody else so have had their time.
    async fn called_off(&self) {
        self.call.called_off.cancelled().await;
        if self.is_ended() || matches!(self.plan.way, Way::A2a(_) | Way::Chain(_)) {
            tokio::time::sleep(FAREWELL).await;
        }
    }

    /// Whether what runs for it is ended as soon as it is called off, and then says what it was kept from.
    fn is_ended(&self) -> bool {
        matches!(self.plan.way, Way::Process(_) | Way::Worker(_))
    }

    /// What came of an attempt. One that was called off came to nothing, but what it was kept from counts.
    fn came(&self, ran: Ran) -> Ran {
        if self.is_ended() && self.call.called_off.is_cancelled() {
            return Ran { output: Err(CallError::called_off()), ..ran };
        }
        ran
    }
}

impl Host {
    /// Runs a plan until there is a result, its time is over, or it is called off. What is not said to be
    /// idempotent is tried once, and so is what somebody was already told a part of.
    pub(super) async fn run(&self, running: &Running<'_>) -> Ran {
        let until = Instant::now() + running.allowed;
        // What a second try mends in a test would look sound; of steps only the author of the chain says otherwise.
        let is_tested = running.trace.is_some() && running.call.surface == Surface::Test;
        let may_repeat = running.action.idempotent == Some(true) && !is_tested;
        let most = if may_repeat { MOST_ATTEMPTS } else { 1 };
        let (mut tries, mut attempts, mut blocked) = (0, 0, Vec::new());
        loop {
            let stream = running.stream(until);
            let mut ran = tokio::select! {
                biased;
                () = running.called_off() => Ran::failed(CallError::called_off()),
                ran = self.attempt(running, until, stream.as_ref()) => running.came(ran),
                // Every way looks at the clock itself. Should one be stuck, its caller is not.
                () = running.stuck(until) => Ran::failed(stuck()),
            };
            tries += 1;
            attempts += ran.attempts;
            blocked.append(&mut ran.blocked);
            if let Some(stream) = &stream {
                stream.finish(ran.output.is_ok());
            }
            let wait = ran.output.as_ref().err().and_then(|error| error.passes_after);
            let wait = wait.map(|asked| {
                Duration::from_secs(asked.into()).max(FIRST_WAIT * 2_u32.pow(tries - 1))
            });
            let is_told = stream.is_some_and(|stream| stream.is_told());
            match wait {
                Some(wait) if tries < most && !is_told && Instant::now() + wait < until => {
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = running.call.called_off.cancelled() => {
                            let ran = Ran::failed(CallError::called_off());
                            return Ran { blocked, attempts, ..ran };
                        }
                    }
                }
                _ => {
                    if let (Err(error), Some(walls)) = (&mut ran.output, running.plan.confinement())
                    {
                        let scene = Scene {
                            action: running.action,
                            input: &running.call.input,
                            walls,
                            may_write: running.may_write,
                            own: running.own,
                            caller: &running.call.folder,
                            user_home: self.settings.user_home.as_deref(),
                        };
                        blocked.extend(self.missed(error, &scene));
                    }
                    if let (Err(error), Some(_)) = (&ran.output, running.plan.confinement())
                        && let Ok(rules) = confine::rules(&running.plan.decision.allowance)
                    {
                        blocked.extend(complaint::loopback(error, &running.call.input, &rules));
                    }
                    if let Err(error) = &mut ran.output {
                        let absent = running.plan.absent();
                        if !absent.is_empty() {
                            let told =
                                |(kind, value): &(GrantKind, &str)| json!({ kind.name(): value });
                            error.details["absent"] = absent.iter().map(told).collect();
                        }
                        // To grant it again would not bring it back.
                        blocked.retain(|one| absent.iter().all(|(_, value)| *value != one.asked));
                    }
                    let mut known = running.plan.unseen.clone();
                    for one in blocked {
                        if !known.contains(&one) {
                            known.push(one);
                        }
                    }
                    return Ran { blocked: known, attempts, ..ran };
                }
            }
        }
    }

    /// The files that a tool missed by its own complaint; what else the complaint says is told with the error.
    pub(super) fn missed(&self, error: &mut CallError, scene: &Scene<'_>) -> Vec<Blocked> {
        let Some(complaint) = Complaint::of(error) else { return Vec::new() };
        let forbidden = Forbidden::new(&self.settings);
        // No tool gets to change itself.
        let is_kept = |path: &Path| forbidden.holds(path) || path.starts_with(scene.own);
        let files = complaint.files(scene, is_kept);
        let is_about_itself = files.is_empty() && complaint.is_about_itself(scene);
        if let Some(details) = error.details.as_object_mut() {
            let relative = complaint.relative(scene);
            if !relative.is_empty() {
                details.insert("relative".into(), relative.into());
            }
            if is_about_itself {
                details.insert("own_folder".into(), true.into());
            }
        }
        files
    }

    async fn attempt(&self, running: &Running<'_>, until: Instant, stream: Option<&Stream>) -> Ran {
        let Running { plan, action, dialect, warmth, call, .. } = running;
        let (dialect, warmth, off) = (*dialect, *warmth, &call.called_off);
        if off.is_cancelled() {
            return Ran::failed(CallError::called_off());
        }
        if !matches!(plan.way, Way::Process(_))
            && let Err(error) = running.begin(&self.records)
        {
            return Ran::refused(error);
        }
        match &plan.way {
            Way::Process(one) => {
                let (one, action) = (Arc::clone(one), (*action).clone());
                let stream = stream.cloned();
                let context = context_of(call, dialect, &action);
                let (written, is_written) = std::sync::mpsc::channel();
                let running_it =
                    Box::pin(self.on_a_thread((plan, off), until, move |host, leash| {
                        let may = || is_written.recv().is_ok();
                        let mut heard = |bytes: &[u8]| {
                            if let Some(stream) = &stream {
                                stream.hear(bytes);
                            }
                        };
                        let (launcher, context) = (&host.launcher, context.as_ref());
                        let heard = &mut heard;
                        match process::run(launcher, &one, context, until, leash, may, heard) {
                            Ok((finished, blocked)) => {
                                let stream = stream.as_ref();
                                let read = output::read(&finished, &action, dialect, until, stream);
                                Ran::finished(&finished, blocked, read)
                            }
                            Err(error) => Ran::failed(error),
                        }
                    }));
                // It is written down while a room is made ready for it, which waits for that.
                let writing = async {
                    running.begin(&self.records)?;
                    let _ = written.send(());
                    drop(written);
                    Ok(())
                };
                match tokio::join!(running_it, writing) {
                    (ran, Ok(())) => ran.unwrap_or_else(Ran::refused),
                    (_, Err(error)) => Ran::refused(error),
                }
            }
            Way::Engine(one) => {
                let (one, action) = (one.clone(), (*action).clone());
                let run = move |_: &Self, leash: &Leash| {
                    if let Err(error) = engine::check_image(&one, until, leash) {
                        return Ran::refused(error);
                    }
                    match engine::run(&one, until, leash) {
                        Ok(finished) => {
                            let read = output::read(&finished, &action, dialect, until, None);
                            Ran::finished(&finished, Vec::new(), read)
                        }
                        Err(error) => Ran::failed(error),
                    }
                };
                let ran = Box::pin(self.on_a_thread((plan, off), until, run)).await;
                Ran { is_walled: false, ..ran.unwrap_or_else(Ran::refused) }
            }
            Way::Worker(one) => {
                let (one, action) = (Arc::clone(one), (*action).clone());
                let (redactor, context) = (plan.redactor.clone(), call.context.clone());
                let asking = self.on_a_thread((plan, off), until, move |host, leash| {
                    let (workers, launcher) = (&host.workers, &host.launcher);
                    let wanted = (&*one, &redactor, context.as_ref());
                    let answered = workers.ask(launcher, wanted, warmth, until, leash);
                    let output = answered.answer.map(Output::Json);
                    let output = output.and_then(|output| check_promise(output, &action));
                    Ran::of(output, answered.blocked)
                });
                Box::pin(asking).await.unwrap_or_else(Ran::refused)
            }
            Way::Mcp(one) => self.call_server(running, one, until).await,
            Way::Http(one) => {
                let asked = (&**one, &plan.redactor, running.call.context.as_ref());
                let answered = self.web.call(asked, action, until, stream);
                let answered = Box::pin(answered).await;
                let mut ran = Ran::of(answered.output, answered.blocked);
                ran.redact(&tokens(&answered.told));
                Ran { attempts: answered.attempts, is_walled: false, ..ran }
            }
            Way::Chain(chain) => Box::pin(self.follow(running, chain, until)).await,
            Way::A2a(one) => Box::pin(self.message(running, one, until)).await,
        }
    }

    /// Calls a tool of a server, as whoever is signed in where that is one on the network.
    async fn call_server(&self, running: &Running<'_>, one: &Mcp, until: Instant) -> Ran {
        let Running { plan, action, input, dialect, warmth, call, .. } = running;
        // Only there the author says what a tool of a server answers with.
        let format = action.output_format.filter(|_| *dialect == Dialect::InstallManifest);
        let declared = Declared { format, standard_errors: action.standard_errors };
        let is_walled = !one.is_remote();
        let nothing = Map::new();
        let terms = Terms {
            arguments: input.arguments.value().as_object().unwrap_or(&nothing),
            warmth: *warmth,
            until,
            declared,
            progress: call.progress.clone(),
            peer: call.peer.clone(),
            resumed: call.resumed.clone(),
            context: call.context.clone(),
            redactor: plan.redactor.clone(),
        };
        let mut told = Vec::new();
        let answered = if one.is_remote() {
            let (mut one, asks) = (one.clone(), Calling(terms));
            let asked = self.ask_signed(&asks, &plan.package, &mut one, &mut told, until);
            Box::pin(asked).await
        } else {
            // Nobody is told who is asking.
            Box::pin(self.servers.call(&self.launcher, one, terms)).await
        };
        let output = answered.answer;
        let output = output.and_then(|output| check_promise(output, action));
        let said = answered.said.filter(|_| is_as_promised(&output));
        let mut ran = Ran { is_walled, said, ..Ran::of(output, answered.blocked) };
        ran.redact(&tokens(&told));
        ran
    }

    /// Sends an agent a message, as whoever is signed in.
    async fn message(&self, running: &Running<'_>, agent: &Agent, until: Instant) -> Ran {
        let Running { plan, action, call, .. } = running;
        let (context, called_off) = (call.context.as_ref(), &call.called_off);
        let question = Messaging { action, until, context, called_off };
        let (mut agent, mut told) = (agent.clone(), Vec::new());
        let asked = self.ask_signed(&question, &plan.package, &mut agent, &mut told, until);
        let answered = asked.await;
        let ran = Ran::of(answered.answer, answered.blocked);
        let mut ran = Ran { is_walled: false, ..ran };
        ran.redact(&tokens(&told));
        ran
    }

    /// Waits for something that blocks, when it is the turn of the package. It is ended when it is called off, and when nobody waits
    /// any more.
    pub(super) async fn on_a_thread<T: Send + 'static>(
        &self,
        (plan, off): (&Plan, &CancellationToken),
        until: Instant,
        run: impl FnOnce(&Self, &Leash) -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let most = match plan.way {
            Way::Worker(_) => worker::MOST_OF_ONE,
            _ => process::MOST_OF_ONE,
        };
        let turn = tokio::select! {
            biased;
            () = off.cancelled() => return Err(CallError::called_off()),
            turn = self.turns.wait(&plan.package, most, until) => turn?,
        };
        let (host, leash) = (self.clone(), Leash::default());
        let guard = leash.guard();
        let mut ran = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            run(&host, &leash)
        });
        let ran = tokio::select! {
            ran = &mut ran => ran,
            () = off.cancelled() => {
                drop(guard);
                ran.await
            }
        };
        ran.map_err(|error| broken_off(&error))
    }
}

/// Where a call belongs among those of others, as the program that makes it is told. A contract that names every variable of a program is
/// kept: there each has to be one of them.
pub(super) fn context_of(call: &Call, dialect: Dialect, action: &Action) -> Option<TraceContext> {
    let is_named = |at: usize| {
        let mut named = action.environment.iter();
        dialect != Dialect::Agentcli || named.any(|name| name == TraceContext::VARIABLES[at])
    };
    let TraceContext { parent, state } = call.context.clone().filter(|_| is_named(0))?;
    Some(TraceContext { parent, state: state.filter(|_| is_named(1)) })
}

/// Whether what a server said is what may be passed on: a result, or the tool's own word that there is none.
fn is_as_promised(output: &Result<Output, CallError>) -> bool {
    match output {
        Ok(_) => true,
        Err(error) => matches!(error.kind, Kind::Failed | Kind::Unfinished),
    }
}

fn stuck() -> CallError {
    too_late("it did not end with its time")
}

/// A call that was run.
pub(super) struct Ran {
    pub(super) output: Result<Output, CallError>,
    pub(super) blocked: Vec<Blocked>,
    pub(super) exit: Option<i32>,
    /// Bytes of standard output and of standard error.
    pub(super) written: (u64, u64),
    pub(super) attempts: u32,
    /// Whether something ran inside our walls.
    pub(super) is_walled: bool,
    /// What the steps of a chain leave.
    pub(super) steps: OfSteps,
    /// Whether the answer was known from before.
    pub(super) is_cached: bool,
    /// What a server said, in its own words.
    pub(super) said: Option<Value>,
}

impl Ran {
    /// Actions that were listed.
    pub(super) fn listed() -> Self {
        Self::of(Ok(Output::Nothing), Vec::new())
    }

    /// A call of which nothing was run.
    pub(super) fn refused(error: CallError) -> Self {
        Self { attempts: 0, is_walled: false, ..Self::failed(error) }
    }

    pub(super) fn failed(error: CallError) -> Self {
        let blocked = Blocked::of(&error);
        Self::of(Err(error), blocked)
    }

    /// A process that ended.
    pub(super) fn finished(
        finished: &sandbox::Finished,
        blocked: Vec<Blocked>,
        output: Result<Output, CallError>,
    ) -> Self {
        let exit = match finished.ended.exit {
            sandbox::Exit::Code(code) => Some(code),
            _ => None,
        };
        let written = (finished.stdout.len() as u64, finished.stderr.len() as u64);
        Self { exit, written, ..Self::of(output, blocked) }
    }

    /// A call whose answer was known from before.
    pub(super) fn kept(answer: serde_json::Value) -> Self {
        let known = Self::of(Ok(Output::Json(answer)), Vec::new());
        Self { attempts: 0, is_walled: false, is_cached: true, ..known }
    }

    /// One try, inside the walls.
    pub(super) fn of(output: Result<Output, CallError>, blocked: Vec<Blocked>) -> Self {
        Self {
            output,
            blocked,
            exit: None,
            written: (0, 0),
            attempts: 1,
            is_walled: true,
            steps: OfSteps::default(),
            is_cached: false,
            said: None,
        }
    }

    /// Takes the secrets of the call out of all that is told of it.
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        match &mut self.output {
            Ok(Output::Json(value)) => redactor.json(value),
            Ok(Output::Text(text)) => *text = redactor.text(text),
            Ok(Output::Binary { bytes, media_type }) => {
                *bytes = redactor.bytes(bytes);
                // One that tells a secret is none.
                media_type.take_if(|said| redactor.text(said) != *said);
            }
            Ok(Output::Records(records)) => records.iter_mut().for_each(|one| redactor.json(one)),
            Ok(Output::Nothing) => {}
            Err(error) => error.redact(redactor),
        }
        if let Some(said) = &mut self.said {
            redactor.json(said);
        }
        for one in &mut self.blocked {
            one.asked = redactor.text(&one.asked);
        }
    }

    pub(super) fn ending(&self, took: Duration) -> audit::Ending {
        let outcome = match &self.output {
            Ok(_) => audit::Outcome::Ok,
            Err(error) => audit::Outcome::Error(error.kind.code().to_owned()),
        };
        let blocked = |one: &Blocked| audit::Blocked {
            kind: match one.why {
                Why::Network(_) => audit::BlockedKind::Host,
                Why::Hidden
                | Why::HiddenToWriting
                | Why::HiddenPerhapsToWriting
                | Why::ReadOnly => audit::BlockedKind::Path,
            },
            value: one.asked.clone(),
        };
        audit::Ending {
            truncated: self.output.as_ref().is_err_and(|error| error.kind == Kind::TooMuchOutput),
            outcome,
            exit: self.exit,
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            stdout_bytes: self.written.0,
            stderr_bytes: self.written.1,
            attempts: self.attempts,
            blocked: self.blocked.iter().map(blocked).collect(),
            is_cached: self.is_cached,
        }
    }
}
