//! What is known before a call and written down after it.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ledger::audit::{self, Audit, Begun, Durability, Ending};
use ledger::state::approvals::{Answer, Ticket, TicketId};
use ledger::state::counting::Counted;
use ledger::state::flows::{Flow, Key};
use ledger::state::grants::GrantKind;
use ledger::state::metrics::{BESIDE, NOT_STARTED, Series};
use ledger::state::rules::{Lasts, Rule};
use ledger::state::{Database, Mark};
use ledger::{AuditError, State, StateError, Time};
use policy::{Grant, Grants, Memory, Pattern, Remembered};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::blocked::{Blocked, Why};
use crate::call::{Call, Output, Tool};
use crate::error::{CallError, Kind};
use crate::host::{Host, Known};
use crate::surface::in_short;
use crate::ticket::is_first;

/// The ledger of a home.
#[derive(Debug)]
pub struct Records {
    /// What was decided and counted.
    pub state: State,
    /// What happened.
    pub audit: Audit,
    /// The folder of that.
    log: PathBuf,
    /// Calls that are not counted yet.
    counts: Mutex<Counts>,
    /// What was known last, by package, action and surface.
    last: Mutex<HashMap<String, Last>>,
    /// Held by whoever looks what is known now.
    looking: tokio::sync::Mutex<()>,
    /// Held by whoever counts the calls that wait for it.
    settling: tokio::sync::Mutex<()>,
    /// Held by whoever leaves a question for the owner.
    pub(crate) asking: tokio::sync::Mutex<()>,
    /// What digests of values are made with, once it was asked for.
    key: OnceCell<Key>,
}

/// What was known last.
#[derive(Debug)]
struct Last {
    known: Arc<Known>,
    /// What the state looked like then.
    mark: Option<Mark>,
    /// When that was, and how often this process may have changed something by then.
    at: Instant,
    taken: u64,
}

/// Calls that are counted together, because what is counted may come a moment later; what happened is in
/// the log in any case.
#[derive(Debug, Default)]
struct Counts {
    waiting: Vec<Counted>,
    /// Packages of which enough further calls were counted that somebody should look whether they got worse.
    due: BTreeSet<String>,
    /// Whether somebody will count them.
    is_awaited: bool,
}

/// As what something is counted that was run.
#[derive(Clone, Debug)]
pub(crate) enum CountAs {
    /// As a call, which took so long, and what went in and came out where that is kept.
    Call(Duration, Option<Box<Flow>>),
    /// As something beside the calls: how it went says nothing of how they go.
    Beside,
}

/// How long calls wait to be counted.
const COUNTED_AFTER: Duration = Duration::from_millis(500);

/// How many calls wait while the state cannot be used; what comes later is in the log alone.
const MOST_WAITING: usize = 50_000;

/// The database of a home.
const STATE: &str = "state.db";

/// For how long a look at the state counts that may have changed since.
const LATELY: Duration = Duration::from_millis(1);

/// How much that was known is kept.
const MOST_KNOWN: usize = 256;

impl Records {
    /// Opens the ledger of a home, a folder that is there.
    pub async fn open(home: &Path) -> Result<Self, StateError> {
        Ok(Self::of(home, State::open(&home.join(STATE)).await?))
    }

    /// Opens the ledger of a home that is a replica: what happens in it is written there, and what is decided and counted
    /// is shared.
    pub async fn join(home: &Path, database: &Database) -> Result<Self, StateError> {
        Ok(Self::of(home, State::join(database).await?))
    }

    /// Opens the ledger of a home to look at it: where there is none, it is an empty one that nobody keeps.
    pub async fn look(home: &Path) -> Result<Self, StateError> {
        Ok(Self::of(home, State::look(&home.join(STATE)).await?))
    }

    /// The ledger for a trial: what happens is written into the log of the home, and what is decided and counted into
    /// a copy of its state in this folder, which somebody else takes away.
    pub async fn for_trial(home: &Path, folder: &Path) -> Result<Self, StateError> {
        let copy = folder.join(STATE);
        State::copy(&home.join(STATE), &copy).await?;
        Ok(Self::of(home, State::open(&copy).await?))
    }

    /// The same where the state is shared: what is allowed is copied, and nothing of what was counted.
    pub async fn for_shared_trial(
        home: &Path,
        database: &Database,
        folder: &Path,
    ) -> Result<Self, StateError> {
        let (shared, copy) =
            (State::join(database).await?, State::open(&folder.join(STATE)).await?);
        for grant in shared.grants(None).await? {
            copy.grant(&grant).await?;
        }
        for one in shared.remembered(None).await? {
            copy.remember(&one.rule, one.created).await?;
        }
        shared.close().await?;
        Ok(Self::of(home, copy))
    }

    fn of(home: &Path, state: State) -> Self {
        let log = home.join("audit");
        let audit = Audit::new(&log, Durability::Process);
        let (counts, last, looking, settling, asking, key) = Default::default();
        Self { state, audit, log, counts, last, looking, settling, asking, key }
    }

    /// The folder of the log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// What the owner has said before about the package with this id.
    pub(crate) async fn known(
        &self,
        tool: &Tool,
        call: &Call,
        id: &str,
    ) -> Result<Arc<Known>, CallError> {
        let (action, surface) = (&*call.action, call.surface.name());
        let key = format!("{}:{}:{id}{action}{surface}", id.len(), action.len());
        match self.known_lately(&key) {
            Some(known) => Ok(known),
            None => Box::pin(self.known_now(key, tool, call, id)).await,
        }
    }

    /// The same by a look at the state.
    async fn known_now(
        &self,
        key: String,
        tool: &Tool,
        call: &Call,
        id: &str,
    ) -> Result<Arc<Known>, CallError> {
        // While it is not certain that nothing was changed, many may want to look: one does, for all who wait.
        let _turn = self.looking.lock().await;
        if let Some(known) = self.known_lately(&key) {
            return Ok(known);
        }
        let (mark, taken, at) = (self.state.mark(), self.state.taken(), Instant::now());
        let known = Arc::new(self.look_up(tool, call, id).await?);
        let mut last = lock(&self.last);
        // What is the same as before is the very same, so that nobody has to compare it.
        let same = last.get(&key).map(|last| &last.known).filter(|before| **before == known);
        let known = same.cloned().unwrap_or(known);
        if last.len() >= MOST_KNOWN {
            last.clear();
        }
        last.insert(key, Last { known: Arc::clone(&known), mark, at, taken });
        Ok(known)
    }

    /// What was known last, where the state looks as it did then, or it was a moment ago and this process changed nothing since.
    fn known_lately(&self, key: &str) -> Option<Arc<Known>> {
        let mark = self.state.mark();
        let last = lock(&self.last);
        let Last { known, mark: then, at, taken } = last.get(key)?;
        let is_same = mark.is_some() && *then == mark;
        let is_lately = at.elapsed() < LATELY && *taken == self.state.taken();
        (is_same || is_lately).then(|| Arc::clone(known))
    }

    /// What a package was granted, and where it may be called from.
    pub(crate) async fn granted(&self, id: &str) -> Result<(Grants, Vec<String>), StateError> {
        let (mut grants, mut places) = (Vec::new(), Vec::new());
        for one in self.state.grants(Some(id)).await? {
            let kind = match one.kind {
                GrantKind::Host => policy::GrantKind::Host,
                GrantKind::Read => policy::GrantKind::Read,
                GrantKind::Write => policy::GrantKind::Write,
                GrantKind::Device => policy::GrantKind::Device,
                GrantKind::Env => policy::GrantKind::Environment,
                GrantKind::From => {
                    places.push(one.value);
                    continue;
                }
            };
            grants.push(Grant { kind, value: one.value });
        }
        Ok((grants.into_iter().collect(), places))
    }

    async fn look_up(&self, tool: &Tool, call: &Call, id: &str) -> Result<Known, CallError> {
        let (grants, places) = self.granted(id).await.map_err(|error| broken(&error))?;
        let mut memory = Memory::default();
        let action = tool.action(&call.action).map(|one| &*one.name);
        let rules = self.state.remembered(Some(id)).await.map_err(|error| broken(&error))?;
        for one in rules {
            let session = match one.rule.lasts {
                Lasts::Always => None,
                Lasts::Session(session) => Some(session),
                // It says that a first call was allowed where it came from, and nothing else.
                Lasts::First(surface) => {
                    let is_here = surface == call.surface.name();
                    memory.is_known |= is_here && action == Some(&*one.rule.action);
                    continue;
                }
                Lasts::Once => continue,
            };
            // A pattern that cannot be read allows nothing.
            if let Ok(pattern) = Pattern::parse(&one.rule.arguments) {
                memory.remembered.push(Remembered { action: one.rule.action, pattern, session });
            }
        }
        let last_place = self.state.last_place(id).await.map_err(|error| broken(&error))?;
        Ok(Known { grants, places, last_place, memory, ..Known::default() })
    }

    /// Takes what the owner said to a call that waits, and writes it into the log, with where they said it: whether that was
    /// the answer. A yes to what is asked about the first time only is for whoever calls it from there, so it is remembered at
    /// once, and all who wait for the same have their answer.
    pub async fn answer(
        &self,
        id: &TicketId,
        answer: Answer,
        surface: &str,
    ) -> Result<bool, StateError> {
        let waiting = self.state.waiting(now()).await?;
        let Some(ticket) = waiting.iter().find(|one| one.id == *id) else { return Ok(false) };
        if !self.state.answer(id, answer, now()).await? {
            return Ok(false);
        }
        let (asked, about) = (&ticket.asked, ticket.shown.value());
        let package = about["package"].as_str().unwrap_or_default();
        let change = match answer {
            Answer::Approved => audit::record::APPROVE,
            Answer::Refused => audit::record::REFUSE,
        };
        let told = audit::Call {
            package: package.to_owned(),
            action: asked.action.clone(),
            surface: surface.to_owned(),
            session: about["by"].as_str().unwrap_or(&ticket.shown.session).to_owned(),
            change: change.to_owned(),
            ..audit::Call::default()
        };
        // Where it cannot be written, the call that it is for is not made.
        let _ = self.audit.record(&told, &Ending::default(), now());
        // What steps of a chain are allowed is remembered where they are known.
        let is_for_all = answer == Answer::Approved
            && about["is_first"] == true
            && about.get("steps").is_none()
            && !package.is_empty();
        if is_for_all {
            let rule = Rule {
                package: package.to_owned(),
                action: asked.action.clone(),
                arguments: Pattern::any().to_string(),
                lasts: Lasts::First(asked.surface.clone()),
                by: surface.to_owned(),
            };
            self.state.remember(&rule, now()).await?;
            let is_same = |one: &&Ticket| {
                let (own, other) = (asked, &one.asked);
                (&other.package, &other.action, &other.surface)
                    == (&own.package, &own.action, &own.surface)
                    && is_first(one)
            };
            for one in waiting.iter().filter(is_same) {
                // What it allows is allowed by the rule, and should not outlive that.
                self.state.answer(&one.id, answer, now()).await?;
                self.state.spend(&one.id, now()).await?;
            }
        }
        Ok(true)
    }

    /// Remembers where a package is called from.
    pub(crate) async fn note_place(&self, tool: &Tool) -> Result<(), CallError> {
        // A path that is no text cannot be kept, and is as good as new each time.
        let Some(place) = tool.place.to_str() else { return Ok(()) };
        let grant = ledger::state::grants::Grant {
            package: tool.package.canonical_id(),
            kind: GrantKind::From,
            value: place.to_owned(),
            by: "first call".to_owned(),
            created: now(),
        };
        self.state.grant(&grant).await.map(drop).map_err(|error| broken(&error))
    }

    /// Writes that a call is about to run; without that it must not. What a package says of its side effects is
    /// its own word, so no call is spared.
    pub(crate) fn begin(&self, call: &audit::Call) -> Result<Begun, CallError> {
        self.audit.begin(call, now()).map_err(|error| {
            let message =
                format!("the call cannot be written down, so it is not made: {}", whole(&error));
            CallError::new(Kind::Unavailable, message).with("unwritten", true)
        })
    }

    /// Writes down how a call went and what it could be granted, and counts it. What cannot be written is told.
    pub(crate) async fn finish(
        self: &Arc<Self>,
        begun: Option<Begun>,
        call: &audit::Call,
        ending: &Ending,
        tool: &Tool,
        blocked: &[Blocked],
        counted_as: CountAs,
    ) -> Vec<String> {
        let has_begun = begun.is_some();
        let written = match begun {
            Some(begun) => self.audit.end(begun, call, ending, now()),
            None => self.audit.record(call, ending, now()),
        };
        let mut faults: Vec<String> = written.err().iter().map(|error| whole(error)).collect();
        self.count(Counted {
            series: self.series(call, tool),
            failure: match (&ending.outcome, &counted_as) {
                (_, CountAs::Beside) => BESIDE.to_owned(),
                (audit::Outcome::Ok, CountAs::Call(..)) => String::new(),
                // What was never tried says nothing of the tool.
                (audit::Outcome::Error(code), CountAs::Call(..))
                    if has_begun || code != Kind::Unavailable.code() =>
                {
                    code.clone()
                }
                (audit::Outcome::Error(_), CountAs::Call(..)) => NOT_STARTED.to_owned(),
            },
            latency: match counted_as {
                CountAs::Call(took, _) => took,
                CountAs::Beside => Duration::ZERO,
            },
            at: now(),
            // A path that is no text cannot be kept.
            // Whoever is refused is none that the owner has called.
            place: (call.decision == audit::Decision::Allowed).then(|| self.place(tool)).flatten(),
            flow: match counted_as {
                CountAs::Call(_, flow) => flow,
                CountAs::Beside => None,
            },
        });
        for one in blocked {
            let kind = match one.why {
                Why::Network(_) => GrantKind::Host,
                Why::Hidden => GrantKind::Read,
                Why::HiddenToWriting | Why::ReadOnly => GrantKind::Write,
                // Nobody is offered for good what may never have been wanted.
                Why::HiddenPerhapsToWriting => continue,
            };
            let noted = self.state.note_blocked(&call.package, kind, &one.asked, now());
            faults.extend(Box::pin(noted).await.err().iter().map(|error| whole(error)));
        }
        faults
    }

    /// What went into a call and came out of it, as far as it is kept. Where there is no key, nothing is, and nothing of a call
    /// that says nothing.
    pub(crate) async fn flow(
        &self,
        tool: &Tool,
        record: &audit::Call,
        (input, output): (&str, &Output),
        lasted: Duration,
    ) -> Option<Box<Flow>> {
        let key = match self.key.get() {
            Some(key) => key,
            None => Box::pin(self.key.get_or_try_init(|| self.state.flow_key())).await.ok()?,
        };
        let inputs = serde_json::from_str(input).map(|input| key.inputs(&input));
        let inputs = inputs.unwrap_or_default();
        let ended = now();
        let millis = i64::try_from(lasted.as_millis()).unwrap_or(0);
        let outputs = match output {
            Output::Json(value) => key.outputs(value),
            Output::Text(text) => key.outputs(&Value::from(text.as_str())),
            Output::Records(all) => key.outputs(&Value::from(all.as_slice())),
            Output::Binary { .. } | Output::Nothing => Vec::new(),
        };
        if inputs.is_empty() && outputs.is_empty() {
            return None;
        }
        Some(Box::new(Flow {
            package: record.package.clone(),
            version: tool.package.semver(),
            action: record.action.clone(),
            began: Time::from_unix_millis(ended.unix_millis() - millis),
            ended,
            inputs,
            outputs,
        }))
    }

    /// What a call is counted under: that of the last one, where it is the same.
    fn series(&self, call: &audit::Call, tool: &Tool) -> Arc<Series> {
        let version = tool.counted_version();
        let is_same = |one: &Series| {
            one.package == call.package
                && one.version == version
                && one.action == call.action
                && one.implementation == call.implementation
        };
        let waiting = lock(&self.counts).waiting.last().map(|last| Arc::clone(&last.series));
        waiting.filter(|one| is_same(one)).unwrap_or_else(|| {
            Arc::new(Series {
                package: call.package.clone(),
                version,
                action: call.action.clone(),
                implementation: call.implementation.clone(),
            })
        })
    }

    /// Where a tool is called from, in the same way.
    fn place(&self, tool: &Tool) -> Option<Arc<str>> {
        let place = tool.place.to_str()?;
        let waiting = lock(&self.counts).waiting.last().and_then(|last| last.place.clone());
        Some(waiting.filter(|one| **one == *place).unwrap_or_else(|| place.into()))
    }

    /// Counts a call, a little later and together with others.
    fn count(self: &Arc<Self>, call: Counted) {
        let mut counts = lock(&self.counts);
        counts.waiting.push(call);
        if !std::mem::replace(&mut counts.is_awaited, true) {
            let records = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep(COUNTED_AFTER).await;
                if let Some(records) = records.upgrade() {
                    // What cannot be counted now is counted with the next.
                    let _ = records.settle().await;
                }
            });
        }
    }

    /// Counts all calls that wait for it. Whoever is about to end does this.
    pub async fn settle(&self) -> Result<(), StateError> {
        // Those that somebody is counting right now count for whoever comes next, too.
        let _turn = self.settling.lock().await;
        let waiting = {
            let mut counts = lock(&self.counts);
            counts.is_awaited = false;
            std::mem::take(&mut counts.waiting)
        };
        if waiting.is_empty() {
            return Ok(());
        }
        match self.state.count_calls(&waiting).await {
            Ok(due) => {
                lock(&self.counts).due.extend(due);
                Ok(())
            }
            Err(error) => {
                let counted_later = &mut lock(&self.counts).waiting;
                counted_later.splice(0..0, waiting);
                counted_later.truncate(MOST_WAITING);
                Err(error)
            }
        }
    }

    /// The packages of which enough further calls were counted, since this was last asked, that somebody should look
    /// whether they got worse.
    pub fn take_due(&self) -> BTreeSet<String> {
        std::mem::take(&mut lock(&self.counts).due)
    }

    /// Remembers that the owner let an action be called.
    pub(crate) async fn remember(
        &self,
        tool: &Tool,
        action: &str,
        arguments: &Pattern,
        lasts: Lasts,
    ) -> Result<(), CallError> {
        let rule = Rule {
            package: tool.package.canonical_id(),
            action: action.to_owned(),
            arguments: arguments.to_string(),
            lasts,
            by: "terminal".to_owned(),
        };
        self.state.remember(&rule, now()).await.map(drop).map_err(|error| broken(&error))
    }
}

/// A failure as it is told, and written down.
pub(crate) fn written_down(record: &mut audit::Call, mut error: CallError) -> CallError {
    note_refusal(record, &error);
    error.shorten();
    error
}

/// Says why something was refused after it had begun: what it was refused for came to light only then.
pub(crate) fn note_refusal(record: &mut audit::Call, error: &CallError) {
    if !error.rule.is_empty() {
        record.rule.replace_range(.., &error.rule);
    }
    if error.kind.is_refusal() && record.decision == audit::Decision::Allowed {
        let words = match in_short(error) {
            Some(words) => format!("its server offers other tools than you approved: {words}"),
            None => error.message.clone(),
        };
        record.decision = audit::Decision::Denied(words);
        record.rule.replace_range(.., &error.rule);
    }
}

/// Says why something was refused before it had begun, and by which key of the policy.
pub(crate) fn deny(record: &mut audit::Call, error: &CallError) {
    record.decision = audit::Decision::Denied(error.message.clone());
    record.rule = error.rule.clone().into_owned();
}

/// Writes down in a home that a call was refused before there was a host to make it: why, and as what.
pub fn refuse(
    home: &Path,
    tool: &Tool,
    call: &Call,
    why: &str,
    outcome: &str,
) -> Result<(), AuditError> {
    let mut record = Host::record_of(tool, call);
    record.decision = audit::Decision::Denied(why.to_owned());
    let ending = Ending { outcome: audit::Outcome::Error(outcome.to_owned()), ..Ending::default() };
    let audit = Audit::new(home.join("audit"), Durability::Process);
    audit.record(&record, &ending, now()).map(drop)
}

/// An error with all that caused it.
pub fn whole(error: &dyn Error) -> String {
    let (mut words, mut cause) = (error.to_string(), error.source());
    while let Some(next) = cause {
        words = format!("{words}: {next}");
        cause = next.source();
    }
    words
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This moment.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The state cannot be used.
pub(crate) fn broken(error: &StateError) -> CallError {
    let why = whole(error);
    let message = format!("the state of the home cannot be used: {why}");
    let told = CallError::new(Kind::Unavailable, message);
    match error {
        StateError::Corrupt { path, .. } => told.with("damaged", path.display().to_string()),
        _ => told,
    }
}
