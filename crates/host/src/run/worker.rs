//! Processes that wait for requests: one interpreter serves many calls of one tool.
//!
//! A worker has the walls of its tool and of no other, serves one call at a time, and is ended
//! by anything that is not an answer to what it was asked.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use manifest::dialect::Dialect;
use sandbox::{Child, Ended, Exit, Launcher};
use serde_json::{Value, json};
use vault::Redactor;

use super::leash::Leash;
use super::pipe::Pipe;
use super::said::{Hearing, Said};
use super::tidying::Tidying;
use super::{Answered, Network, not_started};
use crate::blocked::Blocked;
use crate::call::TraceContext;
use crate::error::{CallError, Kind};
use crate::output::ended_by;
use crate::plan::Worker;
use crate::strict::strict;

/// How many workers that have nothing to do are kept, of all tools together.
const MOST_IDLE: usize = 32;

/// How many workers of one tool run at a time; whoever comes later waits.
pub(crate) const MOST_OF_ONE: usize = 8;

/// The workers of all tools.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    /// Those that have nothing to do.
    idle: Mutex<HashMap<Key, Vec<Idle>>>,
    tidying: Tidying,
}

/// All that makes one worker different from another: whose it is, and its program, what it has loaded, its
/// walls, the secrets it is told, and the files of its package as they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    package: String,
    rest: String,
}

impl Key {
    fn of(plan: &Worker) -> Self {
        let mut confinement = plan.walls.confinement.clone();
        // These are counted by call.
        (confinement.limits.deadline, confinement.limits.output) = (None, None);
        let Worker { owner, argv, load, walls, .. } = plan;
        // Who was told no secrets can tell none.
        let told = &plan.request["env"];
        let rest =
            format!("{} {argv:?} {load} {confinement:?} {:?} {told}", owner.state, walls.rules);
        Self { package: owner.package.clone(), rest }
    }
}

#[derive(Debug)]
struct Idle {
    worker: Running,
    since: Instant,
}

/// Whether a worker may be one that has served before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmth {
    /// It may.
    Warm,
    /// It is started for this call and ended after it.
    Cold,
}

impl Workers {
    /// A pool whose idle workers end after so long.
    pub(crate) fn tidied_after(idle: Duration) -> Self {
        Self { idle: Mutex::default(), tidying: Tidying::after(idle) }
    }

    /// Asks a worker, an idle one or a new one. Idle ones end after a while.
    pub(crate) fn ask(
        self: &Arc<Self>,
        launcher: &Launcher,
        (plan, redactor, context): (&Worker, &Redactor, Option<&TraceContext>),
        warmth: Warmth,
        until: Instant,
        leash: &Leash,
    ) -> Answered<Value> {
        let key = Key::of(plan);
        let mut taken = match warmth {
            Warmth::Warm => self.take(&key),
            Warmth::Cold => None,
        };
        // One that died while it waited is no failure of this call.
        if taken.as_mut().is_some_and(Running::has_ended) {
            taken = None;
        }
        let started = match taken {
            Some(worker) => Ok(worker),
            None => Running::start(launcher, plan, redactor, until, leash),
        };
        let mut worker = match started {
            Ok(worker) => worker,
            Err(error) => {
                let blocked = Blocked::of(&error);
                return Answered { answer: Err(error), blocked, said: None };
            }
        };
        leash.hold(worker.child.killer());
        let asked = worker.ask(&plan.request, context, until);
        leash.release();
        let blocked = worker.network.take_blocked();
        let answer = match asked {
            Ok(answer) => {
                if warmth == Warmth::Warm {
                    self.keep(key, worker);
                }
                answer
            }
            // Whatever it is now doing, it does not for anybody else.
            Err(error) => Err(error),
        };
        Answered { answer, blocked, said: None }
    }

    /// Ends those of a package that have nothing to do: what they may is not what it may now.
    pub(crate) fn retire(&self, package: &str) {
        let retired: Vec<_> = self.lock().extract_if(|key, _| key.package == package).collect();
        drop(retired);
    }

    /// The packages of which any is kept.
    pub(crate) fn packages(&self) -> Vec<String> {
        self.lock().keys().map(|key| key.package.clone()).collect()
    }

    fn take(&self, key: &Key) -> Option<Running> {
        let mut idle = self.lock();
        let of_tool = idle.get_mut(key)?;
        let taken = of_tool.pop();
        if of_tool.is_empty() {
            idle.remove(key);
        }
        taken.map(|one| one.worker)
    }

    fn keep(self: &Arc<Self>, key: Key, worker: Running) {
        self.tidying.begin("workers", self, Self::tidy);
        let mut idle = self.lock();
        if idle.values().map(Vec::len).sum::<usize>() < MOST_IDLE {
            idle.entry(key).or_default().push(Idle { worker, since: Instant::now() });
        }
    }

    fn tidy(&self) {
        let mut old = Vec::new();
        let mut idle = self.lock();
        for of_tool in idle.values_mut() {
            old.extend(of_tool.extract_if(.., |one| one.since.elapsed() > self.tidying.idle()));
        }
        idle.retain(|_, of_tool| !of_tool.is_empty());
        drop(idle);
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<Idle>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker that runs.
#[derive(Debug)]
struct Running {
    child: Child,
    stdin: Option<Pipe>,
    lines: Receiver<io::Result<Vec<u8>>>,
    said: Said,
    /// What it says to the call that it serves.
    heard: Hearing,
    /// How many bytes it said on standard error to this call.
    errors: Arc<AtomicU64>,
    longest: u64,
    network: Network,
    next: u64,
}

impl Running {
    fn start(
        launcher: &Launcher,
        plan: &Worker,
        redactor: &Redactor,
        until: Instant,
        leash: &Leash,
    ) -> Result<Self, CallError> {
        let mut confinement = plan.walls.confinement.clone();
        // Its time and its answers are counted by call, not for as long as it lives.
        confinement.limits.deadline = None;
        let longest = confinement.limits.output.take().unwrap_or(u64::MAX);
        let spawned = launcher.spawn(&confinement, &plan.argv);
        let mut child = spawned.map_err(|error| not_started(&error))?;
        leash.hold(child.killer());
        let network = Network::open(&mut child, &plan.walls.rules)?;
        let stdin = child.take_stdin().map(Pipe::new).transpose().map_err(|error| {
            CallError::new(Kind::Unavailable, format!("failed to prepare a pipe: {error}"))
        })?;
        let (sender, lines) = mpsc::sync_channel(4);
        if let Some(stdout) = child.take_stdout() {
            spawn_thread(move || {
                let mut reader = BufReader::with_capacity(64 << 10, stdout);
                loop {
                    let line = read_line(&mut reader, longest);
                    let is_over = !matches!(&line, Ok(line) if !line.is_empty());
                    if sender.send(line).is_err() || is_over {
                        return;
                    }
                }
            })?;
        }
        let (said, errors) = (Said::new(redactor), Arc::new(AtomicU64::new(0)));
        if let Some(stderr) = child.take_stderr() {
            let (errors, killer) = (Arc::clone(&errors), child.killer());
            let is_too_much = move |count: usize| {
                let before = errors.fetch_add(count as u64, Ordering::AcqRel);
                let is_too_much = before.saturating_add(count as u64) > longest;
                if is_too_much {
                    killer.kill();
                }
                is_too_much
            };
            said.listen(stderr, is_too_much).map_err(|error| no_thread(&error))?;
        }
        let heard = said.beginning();
        let mut worker =
            Self { child, stdin, lines, said, heard, errors, longest, network, next: 0 };
        match worker.load(&plan.load, until) {
            Ok(()) => Ok(worker),
            Err(error) => Err(error.after(worker.network.take_blocked())),
        }
    }

    /// Has it load its tool.
    fn load(&mut self, load: &Value, until: Instant) -> Result<(), CallError> {
        self.say(load.to_string(), until)?;
        let ready = self.hear(until)?;
        match ready.get("ready") {
            Some(Value::Bool(true)) => Ok(()),
            _ => Err(match failure(&ready) {
                Some(failure) => {
                    let message = format!("it cannot be loaded: {}", failure.message);
                    self.heard.told_with(CallError { message, ..failure })
                }
                None => self.garbled("it did not say that it is ready"),
            }),
        }
    }

    /// Asks for one thing. An error means that the worker must not be asked again; what it
    /// answered is in the other.
    fn ask(
        &mut self,
        request: &Value,
        context: Option<&TraceContext>,
        until: Instant,
    ) -> Result<Result<Value, CallError>, CallError> {
        self.next += 1;
        self.heard = self.said.begin();
        self.errors.store(0, Ordering::Release);
        let mut request = request.clone();
        request["id"] = self.next.into();
        if let Some(context) = context {
            request["trace"] = context.variables().collect();
        }
        self.say(request.to_string(), until)?;
        let mut reply = self.hear(until)?;
        if reply["id"] != json!(self.next) {
            return Err(self.garbled("it answered what was not asked"));
        }
        // A second answer is noticed by the next call at the latest; now, when it is there already.
        if self.lines.try_recv().is_ok() {
            return Err(self.garbled("it answered twice, or ended with its answer"));
        }
        let answer = match (failure(&reply), reply.get_mut("result")) {
            (Some(failure), _) => Err(self.heard.told_with(failure)),
            (None, Some(result)) => Ok(result.take()),
            (None, None) => {
                return Err(self.garbled("its answer has neither a result nor an error"));
            }
        };
        self.heard.end();
        Ok(answer)
    }

    /// Writes a line. A tool decides how much its pipe holds and when it reads, so nobody waits for it past the
    /// end of the call.
    fn say(&mut self, mut text: String, until: Instant) -> Result<(), CallError> {
        text.push('\n');
        let Some(stdin) = &mut self.stdin else { return Err(self.lost()) };
        match stdin.write_all(text.as_bytes(), Some(until)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(self.too_late()),
            Err(_) => Err(self.lost()),
        }
    }

    fn hear(&mut self, until: Instant) -> Result<Value, CallError> {
        let left = until.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            // What it still answers before it ends is no answer any more.
            _ if self.errors.load(Ordering::Acquire) > self.longest => {
                self.child.kill();
                Err(self.heard.told_with(too_much()))
            }
            Ok(Ok(line)) if !line.is_empty() => {
                let text = String::from_utf8(line).ok();
                let value = text.and_then(|text| strict(&text)).filter(Value::is_object);
                value.ok_or_else(|| self.garbled("it said something that is no answer"))
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.child.kill();
                Err(too_much())
            }
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Err(self.lost()),
            Err(RecvTimeoutError::Timeout) => Err(self.too_late()),
        }
    }

    fn too_late(&mut self) -> CallError {
        self.child.kill();
        ended_by(Exit::Deadline, &self.heard.bytes(), Dialect::Jumith)
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_some() || self.lines.try_recv().is_ok()
    }

    /// It is gone, or about to be.
    fn lost(&mut self) -> CallError {
        let until = Instant::now() + Duration::from_secs(1);
        let ended = self.child.wait_until(Some(until));
        self.child.kill();
        match ended {
            Some(Ended { exit: Exit::Code(code), .. }) => {
                let message = format!("the tool ended with code {code} instead of answering");
                let error = CallError::new(Kind::Failed, message).with("exit", code);
                self.heard.told_with(error).passing()
            }
            Some(Ended { exit, .. }) => ended_by(exit, &self.heard.bytes(), Dialect::Jumith),
            None => self.garbled("it closed its output"),
        }
    }

    fn garbled(&mut self, how: &str) -> CallError {
        self.child.kill();
        let message = format!("the tool broke the protocol: {how}");
        self.heard.told_with(CallError::new(Kind::BadOutput, message))
    }
}

fn too_much() -> CallError {
    CallError::new(Kind::TooMuchOutput, "the tool wrote more output than it may")
}

/// The error in a reply.
fn failure(reply: &Value) -> Option<CallError> {
    let error = reply.get("error")?;
    let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let message = match (text("type"), text("message")) {
        ("" | "Error" | "Exception", message) => message.to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, message) => format!("{kind}: {message}"),
    };
    let failure = CallError::new(Kind::Failed, message).with("type", text("type"));
    Some(match text("at") {
        "" => failure,
        at => {
            CallError { message: format!("{} ({at})", failure.message), ..failure.with("at", at) }
        }
    })
}

/// A line of at most so many bytes, without its end; empty at the end of all.
fn read_line(reader: &mut impl BufRead, longest: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(longest.saturating_add(1)).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') if line.is_empty() => Ok(b"?".to_vec()),
        Some(b'\n') => Ok(line),
        Some(_) if line.len() as u64 >= longest => Err(io::ErrorKind::FileTooLarge.into()),
        // A line that was not finished is none.
        Some(_) | None => Ok(Vec::new()),
    }
}

fn spawn_thread(run: impl FnOnce() + Send + 'static) -> Result<(), CallError> {
    let spawned = std::thread::Builder::new().name("worker".into()).spawn(run);
    spawned.map(drop).map_err(|error| no_thread(&error))
}

fn no_thread(error: &io::Error) -> CallError {
    CallError::new(Kind::Unavailable, format!("failed to start a thread: {error}"))
}
