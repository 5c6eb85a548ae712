//! The path of a call as a whole.

mod asking;
mod chaining;
mod choosing;
mod errand;
mod foreseeing;
mod kept;
mod killing;
mod listing;
mod places;
mod planning;
mod readying;
mod running;
mod signing;
mod trying;
mod underway;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ledger::audit;
use manifest::dialect::Dialect;
use manifest::model::{Action, Implementation, SignIn};
use policy::{Answer, Decision, Denial, Grants, Memory, Policy, SetBy, Verdict, decide};
use sandbox::Launcher;
use vault::FileVault;

pub use self::choosing::{Fallen, Way, ways};
use self::kept::Plans;
pub use self::listing::{Discovered, Request};
use self::places::check_unmoved;
use self::readying::{Noted, Ready};
use self::running::{Ran, Running};
pub use self::underway::SWITCHED_OFF;
use self::underway::Underway;

use crate::blocked::Blocked;
use crate::call::{Call, Output, Tool};
use crate::chain::cache::{Cache, Key};
use crate::chain::trace::Trace;
use crate::confine::{self, Forbidden};
use crate::consider::Considered;
use crate::endpoint;
use crate::eras::InHome;
use crate::error::{CallError, Kind};
use crate::input::{self, Input};
use crate::limit;
use crate::login::{Logins, scopes};
use crate::plan;
use crate::records::{CountAs, Records, deny, written_down};
use crate::run::a2a::Agents;
use crate::run::http::Web;
use crate::run::mcp::Servers;
use crate::run::mcp::era::Eras;
use crate::run::mcp::notice::Notice;
use crate::run::signed::Signer;
use crate::run::turns::Turns;
use crate::run::worker::{Warmth, Workers};
use crate::secrets::{Collector, Elsewhere};
use crate::tape::Tape;
use crate::template::Variable;
use crate::violation::Violation;

/// For how long a look at what was granted counts.
const LATELY: Duration = Duration::from_millis(1);

/// What a host is told of the world once; it reads nothing of it by itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The owner's policy.
    pub policy: Policy,
    /// The home of Haft, a folder that is there and that no tool sees.
    pub home: PathBuf,
    /// The owner's own home folder.
    pub user_home: Option<PathBuf>,
    /// Where programs are looked for, as `PATH` has it.
    pub search_path: OsString,
    /// The caller's variables.
    pub environment: Vec<(String, String)>,
}

impl Settings {
    /// A variable of the caller.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// Runs calls.
///
/// Every runtime that makes calls has to be driven for as long as there is a host: calls are counted a little later, by a task
/// of the runtime that made them, which holds the database meanwhile, and whoever waits for it waits for that one.
#[derive(Clone, Debug)]
pub struct Host {
    settings: Arc<Settings>,
    launcher: Launcher,
    workers: Arc<Workers>,
    servers: Arc<Servers>,
    web: Arc<Web>,
    agents: Arc<Agents>,
    signer: Arc<Signer>,
    vault: Arc<FileVault>,
    records: Arc<Records>,
    turns: Arc<Turns>,
    /// What each package was granted when it was last called, and when it was last looked whether that is still what it was.
    granted: Arc<Mutex<HashMap<String, (Grants, Instant)>>>,
    /// What pure steps of chains answered before.
    cache: Option<Arc<Cache>>,
    /// Plans that were made a moment ago.
    plans: Arc<Plans>,
    underway: Arc<Underway>,
}

/// What the owner has said about a package before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// What it was granted.
    pub grants: Grants,
    /// Where it may be called from.
    pub places: Vec<String>,
    /// Where it was last called, whether or not anything was kept for it then.
    pub last_place: Option<String>,
    /// What was answered.
    pub memory: Memory,
    /// Whether they are signed in for it.
    pub is_signed_in: bool,
    /// What the action needs of a provider and their sign-in was not granted.
    pub missing_scopes: Vec<String>,
}

/// A call and all that is known about it.
#[derive(Debug)]
struct Prepared<'t> {
    action: &'t Action,
    implementation: &'t Implementation,
    input: Input,
}

impl Host {
    /// A host with these settings and walls, and the vault and the ledger of the owner's home.
    pub fn new(
        mut settings: Settings,
        launcher: Launcher,
        vault: Arc<FileVault>,
        records: Arc<Records>,
    ) -> Self {
        // Every path is held against these, so their links are followed once.
        settings.home = without_links(settings.home);
        settings.user_home = settings.user_home.map(without_links);
        let servers = Servers::new(Arc::new(InHome::new(Arc::clone(&records))));
        let web = Web::new(Arc::clone(&vault), &settings.home, None);
        let agents = Agents::new(Arc::clone(&web));
        let logins = Logins::new(Arc::clone(&vault), &settings.home);
        let signer = Arc::new(Signer { logins });
        let (settings, workers) = (Arc::new(settings), Arc::<Workers>::default());
        let (turns, granted, plans, underway) = Default::default();
        let cache = Cache::of_home(&settings.home, settings.policy.chains.cache).map(Arc::new);
        Self {
            settings,
            launcher,
            workers,
            servers,
            web,
            agents,
            signer,
            vault,
            records,
            turns,
            granted,
            cache,
            plans,
            underway,
        }
    }

    /// The same host with other settings of the same home: what runs for the one is there for the other.
    #[must_use]
    pub fn with_settings(mut self, mut settings: Settings) -> Self {
        settings.home.clone_from(&self.settings.home);
        settings.user_home = settings.user_home.map(without_links);
        self.settings = Arc::new(settings);
        self
    }

    /// The same host, which makes every step of a chain anew, and keeps no answer.
    #[must_use]
    pub fn without_cache(mut self) -> Self {
        self.cache = None;
        self
    }

    /// The same host, with a memory of its own for the eras of MCP servers.
    #[must_use]
    pub fn remembering(mut self, eras: Arc<dyn Eras>) -> Self {
        self.servers = Servers::new(eras);
        self
    }

    /// The same host, with nothing running yet, which keeps for so long what has nothing to do. It is for tests, which do not wait
    /// for as long as that is kept otherwise.
    #[must_use]
    pub fn keeping_idle_for(mut self, idle: Duration) -> Self {
        self.workers = Arc::new(Workers::tidied_after(idle));
        self.servers = self.servers.tidied_after(idle);
        self
    }

    /// The same host, whose requests a tape hears or answers.
    #[must_use]
    pub fn taped(mut self, tape: Arc<dyn Tape>) -> Self {
        self.web = Web::new(Arc::clone(&self.vault), &self.settings.home, Some(tape));
        self.agents = Agents::new(Arc::clone(&self.web));
        self
    }

    /// The ledger of the owner's home.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// What is different about what the server of a tool offers from what the owner approved, where it was seen when it was last asked.
    pub fn changed_surface(&self, tool: &Tool) -> Option<String> {
        self.servers.changed.of(&tool.package.canonical_id(), tool.surface.as_ref()?)
    }

    /// What the walls of this machine are worth.
    pub fn level(&self) -> sandbox::Level {
        self.launcher.walls().level()
    }

    /// Makes a call, and writes down that it was made, or why not.
    pub async fn call(&self, tool: &Tool, call: &Call, warmth: Warmth) -> Made {
        self.make(tool, call, warmth, None).await
    }

    /// Makes a call by one implementation; it may be a step of a chain.
    async fn make_by(
        &self,
        tool: &Tool,
        call: &Call,
        warmth: Warmth,
        around: Option<&Trace>,
        by: Result<&Implementation, CallError>,
        answer: &mut Option<Answer>,
    ) -> Made {
        let began = Instant::now();
        let (record, answer_before) = (Self::record_of(tool, call), answer.take());
        let mut noted =
            Noted { record, waited: Duration::ZERO, begun: None, answer: answer_before };
        let traced = Trace::of_call(tool, around);
        let trace = traced.as_ref().ok().and_then(Option::as_ref);
        if let Some(trace) = trace {
            noted.record.trace.clone_from(&trace.id);
            noted.record.step.clone_from(&trace.step);
        }
        let ready = match (&traced, by) {
            (Ok(_), Ok(by)) => {
                Box::pin(self.ready(tool, call, by, warmth, trace, &mut noted)).await
            }
            (Ok(_), Err(error)) => Err(error),
            (Err(error), _) => Err(error.clone()),
        };
        let Noted { mut record, waited, begun, answer: given } = noted;
        *answer = given;
        let begun = begun.map_or_else(OnceLock::new, OnceLock::from);
        let mut unseen = Vec::new();
        let mut answered = match ready {
            Ok(ready) => {
                let Ready { plan, action, input, allowed, agreed, key } = ready;
                unseen.clone_from(&plan.unseen);
                let own = confine::own_folder(tool);
                let running = Running {
                    plan: &plan,
                    action,
                    input: &input,
                    dialect: tool.package.dialect,
                    warmth,
                    call,
                    own: &own,
                    may_write: !policy::denies(&tool.package, policy::GrantKind::Write),
                    allowed,
                    record: &record,
                    begun: &begun,
                    trace,
                    agreed: &agreed,
                };
                let mut ran = match self.kept(key.as_ref()) {
                    Some(answer) => Ran::kept(answer),
                    None => self.run(&running).await,
                };
                // Of a step that failed it was told which limit of its own it ran into.
                if let Err(error) = &mut ran.output
                    && error.details.get("step").is_none()
                {
                    limit::tell(error, &plan.decision.allowance, tool.package.dialect);
                }
                ran.redact(&plan.redactor);
                if let (Some(cache), Some(key), Ok(output)) = (&self.cache, &key, &ran.output)
                    && !ran.is_cached
                {
                    cache.put(key, output);
                }
                ran
            }
            Err(error) => {
                if error.kind.is_refusal() {
                    deny(&mut record, &error);
                }
                Ran::refused(error)
            }
        };
        answered.output = answered.output.map_err(|error| written_down(&mut record, error));
        let took = began.elapsed().saturating_sub(waited + call.waited());
        let ending = answered.ending(took);
        let lasted = (took, began.elapsed());
        let counted = self.count_as((tool, call), &record, &answered, around, lasted).await;
        let Ran { output: reply, mut blocked, attempts, is_walled, steps, said, .. } = answered;
        let wanted = grantable(&blocked, tool);
        let begun = begun.into_inner();
        let (has_begun, ran_in_walls) = (begun.is_some(), is_walled && begun.is_some());
        let mut unwritten = steps.unwritten;
        unwritten
            .extend(self.records.finish(begun, &record, &ending, tool, &wanted, counted).await);
        let level = is_walled.then(|| self.level()).or(steps.level);
        let reached = blocked.iter().filter(|one| ran_in_walls && !unseen.contains(one));
        let violation = Violation::of(reached, call, tool, &self.settings.policy);
        blocked.extend(steps.blocked);
        let step_violations = steps.violations;
        Made {
            reply,
            took,
            attempts,
            level,
            blocked,
            violation,
            step_violations,
            unwritten,
            said,
            implementation: record.implementation,
            fallen: Vec::new(),
            has_begun,
        }
    }

    /// As what a call is counted that ended: how long the tool took, and how long all of it.
    async fn count_as(
        &self,
        (tool, call): (&Tool, &Call),
        record: &audit::Call,
        answered: &Ran,
        around: Option<&Trace>,
        (took, lasted): (Duration, Duration),
    ) -> CountAs {
        match &answered.output {
            // How fast an answer is found says nothing of the tool.
            _ if answered.is_cached => CountAs::Beside,
            // Nothing has come of it yet.
            Err(error) if error.kind == Kind::Unfinished => CountAs::Beside,
            // What a chain passes on is written down in it already, and a test is nobody's habit.
            Ok(output)
                if self.settings.policy.chains.flows
                    && around.is_none()
                    && call.surface != policy::Surface::Test =>
            {
                let passed = (call.input.as_str(), output);
                CountAs::Call(took, self.records.flow(tool, record, passed, lasted).await)
            }
            _ => CountAs::Call(took, None),
        }
    }

    /// What a pure step answered before.
    fn kept(&self, key: Option<&Key>) -> Option<serde_json::Value> {
        self.cache.as_ref()?.get(key?)
    }

    /// What is written down of a call, as far as it is known before anything was looked at.
    pub(crate) fn record_of(tool: &Tool, call: &Call) -> audit::Call {
        let name = match tool.package.dialect {
            Dialect::Agentcli => call.action.clone(),
            _ => tool.package.name.clone().unwrap_or_else(|| tool.package.id.clone()),
        };
        audit::Call {
            tool: name,
            package: tool.package.canonical_id(),
            package_digest: tool.package.raw_sha256.clone(),
            action: call.action.clone(),
            surface: call.surface.name().to_owned(),
            session: call.surface.client().to_owned(),
            cwd: call.folder.display().to_string(),
            decision: audit::Decision::Open,
            ..audit::Call::default()
        }
    }

    fn collector<'a>(&'a self, tool: &'a Tool, known: &'a Known) -> Collector<'a> {
        let (settings, vault) = (&*self.settings, &*self.vault);
        let elsewhere = if self.web.is_offline() { Elsewhere::Left } else { Elsewhere::Asked };
        let logins = known.is_signed_in.then(|| self.logins());
        Collector { tool, settings, vault, grants: &known.grants, logins, elsewhere }
    }

    /// Waits for tokens that are being fetched, also where nobody waits for them any more, because they have
    /// to be kept; for a while.
    pub async fn settle(&self) {
        self.logins().settle().await;
        self.web.settle().await;
    }

    /// Tells somebody what servers say to nobody in particular, and which package each is of. They must return soon.
    pub fn listen(&self, told: impl Fn(&str, Notice) + Send + Sync + 'static) {
        self.servers.board.listen(told);
    }

    /// Ends what is kept running of a package.
    pub fn retire(&self, package: &str) {
        self.workers.retire(package);
        self.servers.retire(package);
    }

    /// The sign-ins of this home.
    pub fn logins(&self) -> &Logins {
        &self.signer.logins
    }

    /// What the owner has said about a package before.
    async fn known(&self, tool: &Tool, call: &Call) -> Result<Arc<Known>, CallError> {
        let package = tool.package.canonical_id();
        let mut known = self.records.known(tool, call, &package).await?;
        if !tool.given.grants.is_empty() {
            let all = known.grants.iter().chain(&tool.given.grants).cloned().collect();
            Arc::make_mut(&mut known).grants = all;
        }
        self.check_granted(&package, &known.grants)?;
        let can_sign_in = tool.package.sign_in() != SignIn::Impossible;
        if can_sign_in && self.logins().is_signed_in(&package) {
            let known = Arc::make_mut(&mut known);
            known.is_signed_in = true;
            known.missing_scopes = self.missing_scopes(tool, call);
        }
        Ok(known)
    }

    /// What an action needs and a sign-in was not granted. One that cannot be read is told when its token is wanted.
    fn missing_scopes(&self, tool: &Tool, call: &Call) -> Vec<String> {
        let needed = tool.action(&call.action).map(|one| scopes::needed(&tool.package, one));
        let Some(needed) = needed.filter(|needed| !needed.is_empty()) else { return Vec::new() };
        match self.logins().kept(&tool.package.canonical_id()) {
            Ok(Some(kept)) => scopes::missing(needed, &kept.scopes),
            Ok(None) | Err(_) => Vec::new(),
        }
    }

    /// Refuses a package a part of whose grants is not what it was, and ends what is kept of it since it was granted something
    /// else than now. Calls that come within a moment share the look at the disk.
    fn check_granted(&self, package: &str, grants: &Grants) -> Result<(), CallError> {
        let lock = || self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        let last = lock().get(package).map(|(last, at)| (last == grants, at.elapsed() < LATELY));
        match last {
            Some((true, true)) => return Ok(()),
            Some((false, _)) => self.retire(package),
            _ => {}
        }
        check_unmoved(grants)?;
        lock().insert(package.to_owned(), (grants.clone(), Instant::now()));
        Ok(())
    }

    fn prepare<'t>(
        tool: &'t Tool,
        call: &Call,
        implementation: &'t Implementation,
    ) -> Result<Prepared<'t>, CallError> {
        let action = action_of(tool, call)?;
        let input = input::read(&call.input, action, tool.package.dialect)?;
        Ok(Prepared { action, implementation, input })
    }

    fn decide(
        &self,
        tool: &Tool,
        call: &Call,
        prepared: &Prepared<'_>,
        known: &Known,
        considered: &Considered,
    ) -> Arc<Decision> {
        let (denied, forbidden) =
            (confine::denied(&self.settings.policy), Forbidden::new(&self.settings));
        let asked = policy::Asked {
            package: &tool.package,
            action: prepared.action,
            implementation: Some(prepared.implementation),
            trust: tool.trust(),
            consent: tool.consent,
            endpoints: &endpoint::hosts(prepared.implementation),
            agreed: &tool.given.hosts,
            is_private: confine::is_private,
            is_denied: &|host| denied.refuses(host),
            is_hidden: &|path| forbidden.hides(path, &self.settings),
            surface: &call.surface,
            arguments: &prepared.input.arguments,
            wants_approval: considered.wants_approval.as_ref(),
            is_signed_in: known.is_signed_in,
            missing_scopes: &known.missing_scopes,
        };
        let mut decision = decide(&asked, &self.settings.policy, &known.grants, &known.memory);
        let allowance = &mut decision.allowance;
        let within = call.within.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        if let Some(within) = within.filter(|within| *within < allowance.timeout_ms) {
            (allowance.timeout_ms, allowance.timeout_by) = (within, SetBy::Caller);
        }
        Arc::new(decision)
    }

    fn asked<'a>(
        &'a self,
        tool: &'a Tool,
        call: &'a Call,
        prepared: &'a Prepared<'_>,
        decision: Arc<Decision>,
        variables: &'a [(String, Variable)],
    ) -> plan::Asked<'a> {
        plan::Asked {
            tool,
            action: prepared.action,
            implementation: prepared.implementation,
            input: &prepared.input,
            decision,
            variables,
            settings: &self.settings,
            caller: &call.folder,
        }
    }
}

/// A call that was made, or was not.
#[derive(Debug)]
pub struct Made {
    /// The result.
    pub reply: Result<Output, CallError>,
    /// How long it took.
    pub took: Duration,
    /// How often it was tried.
    pub attempts: u32,
    /// What the walls were worth, where there was something to wall in.
    pub level: Option<sandbox::Level>,
    /// What the tool was kept from reaching.
    pub blocked: Vec<Blocked>,
    /// What the owner wants done about that, where they want anything done: whoever made the call does it.
    pub violation: Option<Violation>,
    /// The same of the steps of a chain, each with its tool.
    pub step_violations: Vec<(Arc<Tool>, Violation)>,
    /// What could not be written down.
    pub unwritten: Vec<String>,
    /// What a server said, in its own words, where the call was made for somebody who speaks them.
    pub said: Option<serde_json::Value>,
    /// The implementation that ran last; empty where none was chosen.
    pub implementation: String,
    /// Those that were tried before it.
    pub fallen: Vec<Fallen>,
    /// Whether anything of the tool may have run.
    has_begun: bool,
}

/// The action that a call names.
fn action_of<'t>(tool: &'t Tool, call: &Call) -> Result<&'t Action, CallError> {
    tool.action(&call.action).ok_or_else(|| {
        let names: Vec<_> = tool.package.actions.iter().map(|one| one.name.clone()).collect();
        CallError::new(Kind::Unknown, format!("unknown tool: {}", call.action))
            .with("actions", names)
    })
}

/// What a grant would give it, of what it was kept from.
fn grantable(blocked: &[Blocked], tool: &Tool) -> Vec<Blocked> {
    let is_given = |one: &&Blocked| !policy::denies(&tool.package, one.kind());
    blocked.iter().filter(is_given).cloned().collect()
}

/// A thread that worked for a call is gone.
fn broken_off(error: &tokio::task::JoinError) -> CallError {
    CallError::new(Kind::Unavailable, format!("the call broke off: {error}"))
}

/// Why a call may not go ahead.
fn denied(denial: &Denial, tool: &Tool) -> CallError {
    CallError::denied(denial).of_package(&tool.package.canonical_id())
}

/// Refuses what may not go ahead, whatever the owner would say.
fn check_verdict(decision: &Decision, tool: &Tool) -> Result<(), CallError> {
    match &decision.verdict {
        Verdict::Allowed | Verdict::Ask(_) => Ok(()),
        Verdict::Denied(denial) => {
            let reasons: Vec<_> = decision.reasons.iter().map(ToString::to_string).collect();
            Err(denied(denial, tool).with("reasons", reasons).by(decision.rule))
        }
    }
}

/// A path without links, where it leads somewhere.
fn without_links(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}
