//! The path of a call as a whole.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use manifest::model::{Action, Entry, Implementation, InputSource};
use policy::{Decision, Grants, Memory, Policy, Verdict, decide};
use sandbox::{Launcher, runtime};

use crate::call::{Call, Output, Reply, Tool};
use crate::choose::{self, Machine, PLATFORM};
use crate::consider::{Considered, consider};
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

    /// Says exactly what a call would run and whether it may, and runs nothing: not even the hooks of the
    /// tool, so it may want more than this.
    pub fn plan(&self, tool: &Tool, call: &Call, known: &Known) -> Result<Plan, CallError> {
        let prepared = self.prepare(tool, call)?;
        let decision = self.decide(tool, call, &prepared, known, &Considered::default());
        let allowed = &decision.allowance.environment;
        let variables = self.variables(tool, allowed, &[]).unwrap_or_default();
        plan::make(&self.asked(tool, call, &prepared, decision, &variables))
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
        let (host, tool, call, known) = (self.clone(), tool.clone(), call.clone(), known.clone());
        let run = tokio::task::spawn_blocking(move || host.run(&tool, &call, &known, warmth));
        let (output, blocked) = run.await.unwrap_or_else(|error| {
            let message = format!("the call broke off: {error}");
            (Err(CallError::new(Kind::Unavailable, message)), Vec::new())
        });
        let level = Some(self.launcher.walls().level());
        let reply =
            output.map(|output| Reply { output, took: began.elapsed(), attempts: 1, level });
        (reply, blocked)
    }

    /// Approval, then secrets, then the tool.
    fn run(
        &self,
        tool: &Tool,
        call: &Call,
        known: &Known,
        warmth: Warmth,
    ) -> (Result<Output, CallError>, Vec<Blocked>) {
        let planned = self.prepare(tool, call).and_then(|prepared| {
            let open = self.decide(tool, call, &prepared, known, &Considered::default());
            if let Verdict::Denied(denial) = &open.verdict {
                return Err(CallError::new(Kind::Denied, denial.to_string()));
            }
            let hooks = self.asked(tool, call, &prepared, open, &[]);
            let considered = consider(&hooks, &self.launcher, &self.workers, warmth)?;
            let decision = self.decide(tool, call, &prepared, known, &considered);
            check_allowed(&decision, &considered)?;
            let allowed = &decision.allowance.environment;
            let variables = self.variables(tool, allowed, &considered.secrets)?;
            let plan = plan::make(&self.asked(tool, call, &prepared, decision, &variables))?;
            Ok((plan, prepared.action))
        });
        let (plan, action) = match planned {
            Ok(planned) => planned,
            Err(error) => return (Err(error), Vec::new()),
        };
        let time = Duration::from_millis(plan.decision.allowance.timeout_ms);
        match &plan.way {
            Way::Process(one) => match process::run(&self.launcher, one, |_| {}) {
                Ok((finished, blocked)) => {
                    (output::read(&finished, action, tool.package.dialect), blocked)
                }
                Err(error) => (Err(error), Vec::new()),
            },
            Way::Worker(one) => {
                let until = Instant::now() + time;
                let answered = self.workers.ask(&self.launcher, one, warmth, until);
                let output = answered.answer.map(Output::Json);
                let output = output.and_then(|output| output::check_promise(output, action));
                (output, answered.blocked)
            }
        }
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

    /// The variables a process is given: those it declares, and those that were granted.
    fn variables(
        &self,
        tool: &Tool,
        allowed: &[String],
        more: &[manifest::model::Input],
    ) -> Result<Vec<(String, Variable)>, CallError> {
        let mut variables: Vec<(String, Variable)> = Vec::new();
        for name in allowed {
            if let Some(value) = self.settings.variable(name) {
                let variable = Variable { value: value.to_owned(), is_secret: false };
                variables.push((name.clone(), variable));
            }
        }
        for input in tool.package.inputs.iter().chain(more) {
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
                    return Err(error.with("name", &*input.name));
                }
                None => {}
            }
        }
        Ok(variables)
    }
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
