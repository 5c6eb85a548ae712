//! The path of a call as a whole.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::audit;
use manifest::dialect::Dialect;
use manifest::model::{Action, Entry, Implementation};
use policy::{Decision, Grants, Memory, Policy, Surface, Verdict, decide};
use sandbox::{Launcher, runtime};
use vault::{FileVault, Redactor};

use crate::call::{Call, Output, Progress, Reply, Tool};
use crate::choose::{self, Machine, PLATFORM};
use crate::consider::{Considered, consider, question};
use crate::error::{CallError, Kind};
use crate::input::{self, Input};
use crate::output;
use crate::plan::{self, Plan, Way, Worker};
use crate::records::Records;
use crate::run::http::Web;
use crate::run::mcp::era::{Eras, InMemory};
use crate::run::mcp::{Servers, Terms, assumed};
use crate::run::worker::{Warmth, Workers};
use crate::run::{Blocked, engine, process};
use crate::secrets::{self, Collector};
use crate::template::Variable;

/// What a host is told of the world once; it reads nothing of it by itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The owner's policy.
    pub policy: Policy,
    /// The home of Haft, which no tool sees.
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
#[derive(Clone, Debug)]
pub struct Host {
    settings: Arc<Settings>,
    launcher: Launcher,
    workers: Arc<Workers>,
    servers: Arc<Servers>,
    web: Arc<Web>,
    vault: Arc<FileVault>,
    records: Arc<Records>,
}

/// What the owner has said about a package before.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// What it was granted.
    pub grants: Grants,
    /// What was answered.
    pub memory: Memory,
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
        settings: Settings,
        launcher: Launcher,
        vault: Arc<FileVault>,
        records: Arc<Records>,
    ) -> Self {
        let servers = Servers::new(Arc::new(InMemory::default()));
        let (workers, web) = (Workers::new(), Web::new());
        Self { settings: Arc::new(settings), launcher, workers, servers, web, vault, records }
    }

    /// The same host, with a memory of its own for the eras of MCP servers.
    #[must_use]
    pub fn remembering(mut self, eras: Arc<dyn Eras>) -> Self {
        self.servers = Servers::new(eras);
        self
    }

    /// What the walls of this machine are worth.
    pub fn level(&self) -> sandbox::Level {
        self.launcher.walls().level()
    }

    /// Says exactly what a call would run and whether it may, and runs nothing: not even the hooks of the
    /// tool, so it may want more than this.
    pub async fn plan(&self, tool: &Tool, call: &Call) -> Result<Plan, CallError> {
        let known = self.records.known(tool, call).await?;
        let prepared = self.prepare(tool, call)?;
        let decision = self.decide(tool, call, &prepared, &known, &Considered::default());
        let collected = self.collector(tool, &known).collect(&decision.allowance, &[]);
        let variables = collected.unwrap_or_default();
        plan::make(&self.asked(tool, call, &prepared, decision, &variables))
    }

    /// Makes a call, and writes down that it was made, or why not.
    pub async fn call(&self, tool: &Tool, call: &Call, warmth: Warmth) -> Made {
        let began = Instant::now();
        let mut record = self.record_of(tool, call);
        let (answered, begun) = match self.ready(tool, call, warmth, &mut record).await {
            Ok(ready) => {
                let Ready { plan, action, redactor, begun } = ready;
                let progress = call.progress.clone();
                let mut ran = self.run(plan, action, tool.package.dialect, warmth, progress).await;
                ran.redact(&redactor);
                (ran, begun)
            }
            Err(error) => {
                if matches!(error.kind, Kind::Denied | Kind::NeedsApproval(_)) {
                    record.decision = audit::Decision::Denied(error.message.clone());
                }
                (Ran::failed(error), None)
            }
        };
        let took = began.elapsed();
        let ending = answered.ending(took);
        let Ran { output, blocked, attempts, is_walled, .. } = answered;
        let package = format!("{}@{}", record.package, tool.package.semver());
        let unwritten = self.records.finish(begun, &record, &ending, &package, &blocked).await;
        let level = is_walled.then(|| self.level());
        let reply = output.map(|output| Reply { output, took, attempts, level });
        Made { reply, blocked, unwritten }
    }

    /// Approval, then secrets; then it may be run.
    async fn ready(
        &self,
        tool: &Tool,
        call: &Call,
        warmth: Warmth,
        record: &mut audit::Call,
    ) -> Result<Ready, CallError> {
        let prepared = self.prepare(tool, call)?;
        record.action.clone_from(&prepared.action.name);
        record.arguments = audit::shape_of(prepared.input.arguments.value());
        let known = self.records.known(tool, call).await?;
        let open = self.decide(tool, call, &prepared, &known, &Considered::default());
        if let Verdict::Denied(denial) = &open.verdict {
            return Err(CallError::new(Kind::Denied, denial.to_string()));
        }
        let hooks = self.asked(tool, call, &prepared, open, &[]);
        let considered = match question(&hooks)? {
            Some(question) => self.consider(question, warmth).await?,
            None => Considered::default(),
        };
        let decision = self.decide(tool, call, &prepared, &known, &considered);
        check_allowed(&decision, &considered)?;
        self.records.reserve(tool, &self.settings.policy).await?;
        let collector = self.collector(tool, &known);
        let variables = collector.collect(&decision.allowance, &considered.secrets)?;
        let plan = plan::make(&self.asked(tool, call, &prepared, decision, &variables))?;
        let plan = prepare_image(plan).await?;
        let redactor = secrets::redactor(&variables);
        (record.argv, record.env_keys) = plan.shown();
        if matches!(plan.way, Way::Engine(_)) {
            "engine".clone_into(&mut record.sandbox);
        }
        let begun = self.records.begin(prepared.action, record)?;
        Ok(Ready { plan, action: prepared.action.clone(), redactor, begun })
    }

    async fn consider(&self, question: Worker, warmth: Warmth) -> Result<Considered, CallError> {
        let host = self.clone();
        let asked = tokio::task::spawn_blocking(move || {
            consider(&question, &host.launcher, &host.workers, warmth)
        });
        asked.await.unwrap_or_else(|error| {
            let message = format!("the call broke off: {error}");
            Err(CallError::new(Kind::Unavailable, message))
        })
    }

    async fn run(
        &self,
        plan: Plan,
        action: Action,
        dialect: Dialect,
        warmth: Warmth,
        progress: Option<Arc<dyn Progress>>,
    ) -> Ran {
        let until = Instant::now() + Duration::from_millis(plan.decision.allowance.timeout_ms);
        match plan.way {
            Way::Process(one) => {
                self.on_a_thread(move |host| match process::run(&host.launcher, &one, |_| {}) {
                    Ok((finished, blocked)) => Ran::finished(&finished, blocked, &action, dialect),
                    Err(error) => Ran::failed(error),
                })
                .await
            }
            Way::Engine(one) => {
                let ran = self.on_a_thread(move |_| match engine::run(&one) {
                    Ok(finished) => Ran::finished(&finished, Vec::new(), &action, dialect),
                    Err(error) => Ran::failed(error),
                });
                Ran { is_walled: false, ..ran.await }
            }
            Way::Worker(one) => {
                self.on_a_thread(move |host| {
                    let answered = host.workers.ask(&host.launcher, &one, warmth, until);
                    let output = answered.answer.map(Output::Json);
                    let output = output.and_then(|output| output::check_promise(output, &action));
                    Ran::of(output, answered.blocked)
                })
                .await
            }
            Way::Mcp(one) => {
                // Only there the author says what a tool of a server answers with.
                let format = action.output_format.filter(|_| dialect == Dialect::InstallManifest);
                let is_walled = !one.is_remote();
                let terms = Terms { warmth, until, format, progress };
                let answered = Box::pin(self.servers.call(&self.launcher, &one, terms)).await;
                let output = answered.answer;
                let output = output.and_then(|output| output::check_promise(output, &action));
                Ran { is_walled, ..Ran::of(output, answered.blocked) }
            }
            Way::Http(one) => {
                let answered = self.web.call(&one, &action, until).await;
                let ran = Ran::of(answered.output, answered.blocked);
                Ran { attempts: answered.attempts, is_walled: false, ..ran }
            }
        }
    }

    /// Waits for something that blocks.
    async fn on_a_thread(&self, run: impl FnOnce(&Self) -> Ran + Send + 'static) -> Ran {
        let host = self.clone();
        tokio::task::spawn_blocking(move || run(&host)).await.unwrap_or_else(|error| {
            let message = format!("the call broke off: {error}");
            Ran::failed(CallError::new(Kind::Unavailable, message))
        })
    }

    /// What is written down of a call, as far as it is known before anything was looked at.
    fn record_of(&self, tool: &Tool, call: &Call) -> audit::Call {
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
            cwd: call.folder.display().to_string(),
            sandbox: self.level().to_string(),
            ..audit::Call::default()
        }
    }

    fn collector<'a>(&'a self, tool: &'a Tool, known: &'a Known) -> Collector<'a> {
        let (settings, vault) = (&*self.settings, &*self.vault);
        Collector { tool, settings, vault, grants: &known.grants }
    }

    /// The actions of a tool that says only when it runs what it can do: an MCP server is started or
    /// reached and asked. Nothing is called, so nobody is asked; what is denied stays denied.
    pub async fn discover(&self, tool: &Tool) -> Result<Vec<Action>, CallError> {
        let began = Instant::now();
        let action = assumed("tools/list");
        let implementation = self.implementation(tool, &action)?;
        let call = Call {
            action: action.name.clone(),
            input: "{}".to_owned(),
            surface: Surface::Test,
            answer: None,
            folder: tool.root.clone(),
            progress: None,
        };
        let input = input::read(&call.input, &action, tool.package.dialect)?;
        let prepared = Prepared { action: &action, implementation, input };
        let known = self.records.known(tool, &call).await?;
        let decision = self.decide(tool, &call, &prepared, &known, &Considered::default());
        if let Verdict::Denied(denial) = &decision.verdict {
            return Err(CallError::new(Kind::Denied, denial.to_string()));
        }
        let variables = self.collector(tool, &known).collect(&decision.allowance, &[])?;
        let plan = plan::make(&self.asked(tool, &call, &prepared, decision, &variables))?;
        let plan = prepare_image(plan).await?;
        let until = began + Duration::from_millis(plan.decision.allowance.timeout_ms);
        match plan.way {
            Way::Mcp(one) => {
                let listed = self.servers.list(&self.launcher, &one, Warmth::Warm, until);
                Box::pin(listed).await
            }
            _ => Ok(tool.package.actions.clone()),
        }
    }

    fn prepare<'t>(&self, tool: &'t Tool, call: &Call) -> Result<Prepared<'t>, CallError> {
        let action = tool.action(&call.action).ok_or_else(|| {
            let names: Vec<_> = tool.package.actions.iter().map(|one| one.name.clone()).collect();
            CallError::new(Kind::Unknown, format!("unknown tool: {}", call.action))
                .with("actions", names)
        })?;
        let implementation = self.implementation(tool, action)?;
        let input = input::read(&call.input, action, tool.package.dialect)?;
        Ok(Prepared { action, implementation, input })
    }

    fn implementation<'t>(
        &self,
        tool: &'t Tool,
        action: &Action,
    ) -> Result<&'t Implementation, CallError> {
        let search = &self.settings.search_path;
        let has_program = |name: &OsStr| runtime::find(name, search, &tool.root).is_ok();
        let machine = Machine { platform: PLATFORM, has_program: &has_program };
        choose::implementation(&tool.package, action, &machine)
    }

    fn decide(
        &self,
        tool: &Tool,
        call: &Call,
        prepared: &Prepared<'_>,
        known: &Known,
        considered: &Considered,
    ) -> Decision {
        let mut memory = known.memory.clone();
        memory.answer = call.answer.clone().or(memory.answer);
        let asked = policy::Asked {
            package: &tool.package,
            action: prepared.action,
            implementation: Some(prepared.implementation),
            trust: tool.trust(),
            consent: tool.consent,
            endpoints: &endpoints(prepared.implementation),
            surface: &call.surface,
            arguments: &prepared.input.arguments,
            wants_approval: considered.wants_approval,
            is_signed_in: false,
        };
        decide(&asked, &self.settings.policy, &known.grants, &memory)
    }

    fn asked<'a>(
        &'a self,
        tool: &'a Tool,
        call: &'a Call,
        prepared: &'a Prepared<'_>,
        decision: Decision,
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
    pub reply: Result<Reply, CallError>,
    /// What the tool was kept from reaching.
    pub blocked: Vec<Blocked>,
    /// What could not be written down.
    pub unwritten: Vec<String>,
}

/// A call that may be run.
struct Ready {
    plan: Plan,
    action: Action,
    redactor: Redactor,
    begun: Option<audit::Begun>,
}

/// A call that was run.
struct Ran {
    output: Result<Output, CallError>,
    blocked: Vec<Blocked>,
    exit: Option<i32>,
    /// Bytes of standard output and of standard error.
    written: (u64, u64),
    attempts: u32,
    /// Whether something ran inside our walls.
    is_walled: bool,
}

impl Ran {
    fn failed(error: CallError) -> Self {
        Self::of(Err(error), Vec::new())
    }

    /// A process that ended.
    fn finished(
        finished: &sandbox::Finished,
        blocked: Vec<Blocked>,
        action: &Action,
        dialect: Dialect,
    ) -> Self {
        let exit = match finished.ended.exit {
            sandbox::Exit::Code(code) => Some(code),
            _ => None,
        };
        let written = (finished.stdout.len() as u64, finished.stderr.len() as u64);
        Self { exit, written, ..Self::of(output::read(finished, action, dialect), blocked) }
    }

    /// One try, inside the walls.
    fn of(output: Result<Output, CallError>, blocked: Vec<Blocked>) -> Self {
        Self { output, blocked, exit: None, written: (0, 0), attempts: 1, is_walled: true }
    }

    /// Takes the secrets of the call out of all that is told of it.
    fn redact(&mut self, redactor: &Redactor) {
        match &mut self.output {
            Ok(Output::Json(value)) => redactor.json(value),
            Ok(Output::Text(text)) => *text = redactor.text(text),
            Ok(Output::Binary { bytes, .. }) => *bytes = redactor.bytes(bytes),
            Ok(Output::Records(records)) => records.iter_mut().for_each(|one| redactor.json(one)),
            Ok(Output::Nothing) => {}
            Err(error) => {
                error.message = redactor.text(&error.message);
                redactor.json(&mut error.details);
            }
        }
        for one in &mut self.blocked {
            one.asked = redactor.text(&one.asked);
        }
    }

    fn ending(&self, took: Duration) -> audit::Ending {
        let outcome = match &self.output {
            Ok(_) => audit::Outcome::Ok,
            Err(error) => audit::Outcome::Error(error.kind.code().to_owned()),
        };
        let blocked = |one: &Blocked| audit::Blocked {
            kind: audit::BlockedKind::Host,
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
        }
    }
}

/// Has the image of a call unpacked, where it runs in one.
async fn prepare_image(mut plan: Plan) -> Result<Plan, CallError> {
    if plan.image.is_none() {
        return Ok(plan);
    }
    let prepared = tokio::task::spawn_blocking(move || {
        plan::container::prepare(&mut plan)?;
        Ok(plan)
    });
    prepared.await.unwrap_or_else(|error| {
        let message = format!("the call broke off: {error}");
        Err(CallError::new(Kind::Unavailable, message))
    })
}

/// Refuses what may not go ahead, or not yet.
fn check_allowed(decision: &Decision, considered: &Considered) -> Result<(), CallError> {
    match &decision.verdict {
        Verdict::Allowed => Ok(()),
        Verdict::Ask(question) => {
            let message = format!("the owner has to be asked, because {}", question.why.words());
            let error = CallError::new(Kind::NeedsApproval(Box::new(question.clone())), message);
            Err(match &considered.message {
                Some(message) => error.with("message", &**message),
                None => error,
            })
        }
        Verdict::Denied(denial) => Err(CallError::new(Kind::Denied, denial.to_string())),
    }
}

/// Hosts of its own endpoints.
fn endpoints(implementation: &Implementation) -> Vec<String> {
    let (Entry::Http { base: url, .. }
    | Entry::McpHttp { url }
    | Entry::A2a { endpoint: url }
    | Entry::McpTool { registry_url: url, .. }) = &implementation.entry
    else {
        return Vec::new();
    };
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() { Vec::new() } else { vec![host.to_ascii_lowercase()] }
}
