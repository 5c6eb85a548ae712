//! The path of a call as a whole.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use manifest::model::{Action, Entry, Implementation, InputSource};
use policy::{Asked, Grants, Memory, Policy, Verdict, decide};
use sandbox::{Launcher, runtime};

use crate::call::{Call, Output, Reply, Tool};
use crate::choose::{self, Machine, PLATFORM};
use crate::error::{CallError, Kind};
use crate::input::{self, Input};
use crate::output;
use crate::plan::{self, Plan, Way};
use crate::run::worker::{Warmth, Workers};
use crate::run::{Blocked, process};
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
    /// A host with these settings and walls.
    pub fn new(settings: Settings, launcher: Launcher) -> Self {
        Self { settings: Arc::new(settings), launcher, workers: Workers::new() }
    }

    /// What the walls of this machine are worth.
    pub fn level(&self) -> sandbox::Level {
        self.launcher.walls().level()
    }

    /// Says exactly what a call would run and whether it may, and runs nothing.
    pub fn plan(&self, tool: &Tool, call: &Call, known: &Known) -> Result<Plan, CallError> {
        let prepared = self.prepare(tool, call)?;
        self.plan_prepared(tool, call, &prepared, known)
    }

    /// Makes a call. What it was kept from reaching is told in any case.
    pub async fn call(
        &self,
        tool: &Tool,
        call: &Call,
        known: &Known,
        warmth: Warmth,
    ) -> (Result<Reply, CallError>, Vec<Blocked>) {
        let began = Instant::now();
        let prepared = match self.prepare(tool, call) {
            Ok(prepared) => prepared,
            Err(error) => return (Err(error), Vec::new()),
        };
        let planned = self.plan_prepared(tool, call, &prepared, known);
        let plan = match planned.and_then(allowed) {
            Ok(plan) => plan,
            Err(error) => return (Err(error), Vec::new()),
        };
        let host = self.clone();
        let (action, dialect) = (prepared.action.clone(), tool.package.dialect);
        let time = Duration::from_millis(plan.decision.allowance.timeout_ms);
        let run = tokio::task::spawn_blocking(move || match &plan.way {
            Way::Process(one) => match process::run(&host.launcher, one, |_| {}) {
                Ok((finished, blocked)) => (output::read(&finished, &action, dialect), blocked),
                Err(error) => (Err(error), Vec::new()),
            },
            Way::Worker(one) => {
                let answered = host.workers.ask(&host.launcher, one, warmth, began + time);
                let output = answered.answer.map(Output::Json);
                let output = output.and_then(|output| output::check_promise(output, &action));
                (output, answered.blocked)
            }
        });
        let (output, blocked) = run.await.unwrap_or_else(|error| {
            let message = format!("the call broke off: {error}");
            (Err(CallError::new(Kind::Unavailable, message)), Vec::new())
        });
        let level = Some(self.launcher.walls().level());
        let reply =
            output.map(|output| Reply { output, took: began.elapsed(), attempts: 1, level });
        (reply, blocked)
    }

    fn prepare<'t>(&self, tool: &'t Tool, call: &Call) -> Result<Prepared<'t>, CallError> {
        let action = tool.action(&call.action).ok_or_else(|| {
            let names: Vec<_> = tool.package.actions.iter().map(|one| one.name.clone()).collect();
            CallError::new(Kind::Unknown, format!("unknown tool: {}", call.action))
                .with("actions", names)
        })?;
        let search = &self.settings.search_path;
        let has_program = |name: &OsStr| runtime::find(name, search, &tool.root).is_ok();
        let machine = Machine { platform: PLATFORM, has_program: &has_program };
        let implementation = choose::implementation(&tool.package, action, &machine)?;
        let input = input::read(&call.input, action, tool.package.dialect)?;
        Ok(Prepared { action, implementation, input })
    }

    fn plan_prepared(
        &self,
        tool: &Tool,
        call: &Call,
        prepared: &Prepared<'_>,
        known: &Known,
    ) -> Result<Plan, CallError> {
        let Prepared { action, implementation, input } = prepared;
        let mut memory = known.memory.clone();
        memory.answer = call.answer.clone().or(memory.answer);
        let asked = Asked {
            package: &tool.package,
            action,
            implementation: Some(implementation),
            trust: tool.trust(),
            consent: tool.consent,
            endpoints: &endpoints(implementation),
            surface: &call.surface,
            arguments: &input.arguments,
            wants_approval: false,
            is_signed_in: false,
        };
        let decision = decide(&asked, &self.settings.policy, &known.grants, &memory);
        let variables = self.variables(tool, action, &decision.allowance.environment)?;
        plan::make(&plan::Asked {
            tool,
            action,
            implementation,
            input,
            decision,
            variables: &variables,
            settings: &self.settings,
            caller: &call.folder,
        })
    }

    /// The variables a process is given: those it declares, and those that were granted.
    fn variables(
        &self,
        tool: &Tool,
        action: &Action,
        allowed: &[String],
    ) -> Result<Vec<(String, Variable)>, CallError> {
        let mut variables: Vec<(String, Variable)> = Vec::new();
        for name in allowed {
            if let Some(value) = self.settings.variable(name) {
                let variable = Variable { value: value.to_owned(), is_secret: false };
                variables.push((name.clone(), variable));
            }
        }
        for input in &tool.package.inputs {
            if input.source == InputSource::Caller
                || variables.iter().any(|(n, _)| *n == input.name)
            {
                continue;
            }
            let of_caller = self.settings.variable(&input.name).filter(|_| !input.secret);
            match of_caller.map(str::to_owned).or_else(|| input.default.clone()) {
                Some(value) => {
                    let variable = Variable { value, is_secret: input.secret };
                    variables.push((input.name.clone(), variable));
                }
                None if input.required => {
                    let what =
                        if input.secret { "Missing required secret" } else { "missing variable" };
                    let message = format!("{what}: {}", input.name);
                    let error = CallError::new(Kind::MissingInput, message);
                    return Err(error.with("name", &*input.name).with("action", &*action.name));
                }
                None => {}
            }
        }
        Ok(variables)
    }
}

/// A plan that may be carried out.
fn allowed(plan: Plan) -> Result<Plan, CallError> {
    match &plan.decision.verdict {
        Verdict::Allowed => Ok(plan),
        Verdict::Ask(question) => {
            let message = format!("the owner has to be asked, because {}", question.why.words());
            Err(CallError::new(Kind::NeedsApproval(Box::new(question.clone())), message))
        }
        Verdict::Denied(denial) => Err(CallError::new(Kind::Denied, denial.to_string())),
    }
}

/// Hosts of its own endpoints.
fn endpoints(implementation: &Implementation) -> Vec<String> {
    let url = match &implementation.entry {
        Entry::Http { base: url, .. }
        | Entry::McpHttp { url }
        | Entry::A2a { endpoint: url }
        | Entry::McpTool { registry_url: url, .. } => url,
        _ => return Vec::new(),
    };
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() { Vec::new() } else { vec![host.to_ascii_lowercase()] }
}
