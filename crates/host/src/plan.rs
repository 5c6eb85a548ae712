//! Exactly what a call would run, and with what.

pub(crate) mod a2a;
mod braces;
pub(crate) mod container;
pub(crate) mod engine;
mod lent;
pub(crate) mod mcp;
pub(crate) mod outlook;
pub(crate) mod owner;
mod told;

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use manifest::dialect::Dialect;
use manifest::model::{Action, Channel, Entry, Implementation, Invocation, Kind as PackageKind};
use policy::{Decision, GrantKind};
use sandbox::Confinement;
use sandbox::runtime::{self, FindError, Word};
use serde_json::{Value, json};
use vault::Redactor;

use crate::blocked::Blocked;
use crate::call::Tool;
use crate::chain::Linked;
use crate::confine::{self, Inside, Walls};
use crate::error::{CallError, Kind};
use crate::host::Settings;
use crate::input::{Input, tell_taken};
use crate::request::{self, Account, Http, Sources, Written};
use crate::secrets;
use crate::template::{self, LONGEST_ARGUMENT, Values, Variable};
use a2a::Agent;
use container::InImage;
use engine::Engine;
use mcp::{Mcp, Place};
use outlook::Outlook;
use owner::Owner;

/// Exactly what a call would run, and with what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The package, as grants and secrets name it.
    pub package: String,
    /// What was decided, and why.
    pub decision: Arc<Decision>,
    /// Which implementation was chosen.
    pub implementation: String,
    /// What is run.
    pub(crate) way: Way,
    /// The image it is run in.
    pub(crate) image: Option<InImage>,
    /// Knows the secrets it is given.
    pub(crate) redactor: Redactor,
    /// Paths among its settings that its walls keep from it.
    pub unseen: Vec<Blocked>,
    /// What may still keep it from being made, where nothing is run.
    pub(crate) outlook: Option<Outlook>,
}

impl Plan {
    /// The walls that a process of it gets, where it starts one.
    pub fn confinement(&self) -> Option<&Confinement> {
        let walls = match &self.way {
            Way::Process(one) => &one.walls,
            Way::Worker(one) => &one.walls,
            Way::Mcp(one) => match &*one.place {
                Place::Process { walls, .. } => walls,
                Place::Url { .. } | Place::Registry { .. } => return None,
            },
            Way::Http(_) | Way::A2a(_) | Way::Engine(_) | Way::Chain(_) => return None,
        };
        Some(&walls.confinement)
    }

    /// What was granted and is not there now: devices, files and folders, each with the kind of its grant.
    pub fn absent(&self) -> Vec<(GrantKind, &str)> {
        let (Some(walls), allowance) = (self.confinement(), &self.decision.allowance) else {
            return Vec::new();
        };
        let is_absent = |device: &&str| walls.devices.iter().all(|one| one != Path::new(device));
        let devices = allowance.devices.iter().map(String::as_str).filter(is_absent);
        let mut absent: Vec<_> = devices.map(|device| (GrantKind::Device, device)).collect();
        for (paths, kind) in
            [(&allowance.read, GrantKind::Read), (&allowance.write, GrantKind::Write)]
        {
            // One of the policy may be written from the owner's folder.
            let gone =
                paths.iter().filter(|path| path.starts_with('/') && !Path::new(path).exists());
            absent.extend(gone.map(|path| (kind, path.as_str())));
        }
        absent
    }

    /// Refuses what would tell a secret to everybody on the way, or where nothing may be sent.
    pub(crate) fn check_told(&self) -> Result<(), CallError> {
        let checked = match &self.way {
            Way::Http(one) => one.check_told(),
            Way::A2a(one) => one.check_private(),
            // Whoever signs in at a server looks at its address then.
            Way::Process(_) | Way::Worker(_) | Way::Mcp(_) | Way::Engine(_) | Way::Chain(_) => {
                Ok(())
            }
        };
        checked.map_err(|mut error| {
            error.redact(&self.redactor);
            error
        })
    }

    /// Why the call would be refused, where that is known before.
    pub fn refusal(&self) -> Option<&CallError> {
        self.outlook.as_ref()?.refused.as_ref()
    }

    /// Why its secrets cannot be had, where that is known before.
    pub fn no_secrets(&self) -> Option<&CallError> {
        self.outlook.as_ref()?.no_secrets.as_ref()
    }
}

/// A way to run.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// A process for this call.
    Process(Arc<Process>),
    /// A request to a process that may serve many calls.
    Worker(Arc<Worker>),
    /// A request to an MCP server.
    Mcp(Box<Mcp>),
    /// A request to a server.
    Http(Box<Http>),
    /// A message to an agent.
    A2a(Box<Agent>),
    /// A container of an engine.
    Engine(Box<Engine>),
    /// Calls of other tools.
    Chain(Arc<Chain>),
}

/// Calls of other tools.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) linked: Arc<Linked>,
    /// What it is given, with defaults.
    pub(crate) input: Value,
}

/// A process for one call.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) argv: Vec<OsString>,
    /// The arguments that may be written down: without those that hold the input.
    pub(crate) shown: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) walls: Walls,
}

/// A request to a process that waits for requests.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) owner: Owner,
    pub(crate) argv: Vec<OsString>,
    pub(crate) shown: Vec<String>,
    /// What it is told first: what to load.
    pub(crate) load: Value,
    /// What is asked of it.
    pub(crate) request: Value,
    pub(crate) walls: Walls,
}

/// What a plan is made of.
#[derive(Clone)]
pub(crate) struct Asked<'p> {
    pub(crate) tool: &'p Tool,
    pub(crate) action: &'p Action,
    pub(crate) implementation: &'p Implementation,
    pub(crate) input: &'p Input,
    pub(crate) decision: Arc<Decision>,
    pub(crate) variables: &'p [(String, Variable)],
    pub(crate) settings: &'p Settings,
    /// The caller's folder.
    pub(crate) caller: &'p Path,
}

/// Plans a call whose input passed and of which a decision was made.
pub(crate) fn make(asked: &Asked<'_>) -> Result<Plan, CallError> {
    let plan = sketch(asked)?;
    plan.check_told()?;
    Ok(plan)
}

/// Plans a call that is only looked at: nobody has checked yet whom it would tell a secret.
pub(crate) fn sketch(asked: &Asked<'_>) -> Result<Plan, CallError> {
    planned(
        asked,
        match asked.in_an_image() {
            Ok(None) => asked.way().map(|way| (way, None)),
            Ok(Some(planned)) => Ok(planned),
            Err(error) => Err(error),
        },
    )
}

/// Plans a request that a manifest writes out beside its actions.
pub(crate) fn request(asked: &Asked<'_>, of: &Written<'_>) -> Result<Plan, CallError> {
    let allowance = &asked.decision.allowance;
    let made = confine::rules(allowance)
        .and_then(|rules| request::written(of, &asked.values(), rules, allowance.output));
    let plan = planned(asked, made.map(|made| (Way::Http(Box::new(made)), None)))?;
    plan.check_told()?;
    Ok(plan)
}

fn planned(
    asked: &Asked<'_>,
    planned: Result<(Way, Option<InImage>), CallError>,
) -> Result<Plan, CallError> {
    let redactor = secrets::redactor(asked.variables);
    let (way, image) = planned.map_err(|mut error| {
        error.redact(&redactor);
        error
    })?;
    let (decision, implementation) = (Arc::clone(&asked.decision), asked.implementation.id.clone());
    let package = asked.tool.package.canonical_id();
    let (unseen, outlook) = (Vec::new(), None);
    let plan = Plan { package, decision, implementation, way, image, redactor, unseen, outlook };
    let unseen = plan.confinement().map(|walls| asked.unseen(walls));
    Ok(Plan { unseen: unseen.unwrap_or_default(), ..plan })
}

impl Asked<'_> {
    fn way(&self) -> Result<Way, CallError> {
        let package = &self.tool.package;
        if package.channel == Channel::VdiVpn {
            return Err(unavailable(
                "it is driven through a screen or a private network (`vdi_vpn`)",
            ));
        }
        // Of a skill that brings its files, scripts can be called.
        if package.kind == PackageKind::SkillPack && package.dialect != Dialect::Skill {
            return Err(unavailable("a pack of skills is read, not called"));
        }
        if package.chain.is_some() {
            let (linked, input) = (Arc::clone(self.tool.linked()?), self.input.arguments.value());
            return Ok(Way::Chain(Arc::new(Chain { linked, input: input.clone() })));
        }
        match &self.implementation.entry {
            Entry::Argv { argv, cwd, .. } => {
                self.process(argv, cwd.as_deref()).map(|one| Way::Process(Arc::new(one)))
            }
            Entry::PythonCallable { callable } => {
                let libraries = &self.tool.brought.python;
                let load = json!({
                    "root": self.tool.root, "callable": callable, "libraries": libraries,
                });
                self.worker("python3", PYTHON, load).map(|one| Way::Worker(Arc::new(one)))
            }
            Entry::NodeModule { main, export } => {
                let (root, main) = (&self.tool.root, self.beneath(main)?);
                let load = json!({
                    "root": root,
                    "main": main.strip_prefix(root).unwrap_or(&main),
                    "export": export,
                    "toolName": package.name,
                });
                let mut worker = self.worker("node", NODE, load)?;
                worker.request["env"] = self.context();
                Ok(Way::Worker(Arc::new(worker)))
            }
            Entry::McpStdio { argv, cwd, env } => {
                let request = self.mcp_process(argv, cwd.as_deref(), env)?;
                Ok(Way::Mcp(Box::new(request)))
            }
            Entry::McpHttp { .. }
            | Entry::Http { .. }
            | Entry::McpTool { .. }
            | Entry::KnownServer { .. }
            | Entry::A2a { .. } => match (&self.implementation.entry, &self.action.invocation) {
                (Entry::McpHttp { url, headers }, Invocation::McpTool { .. }) => {
                    Ok(Way::Mcp(Box::new(self.mcp_url(url, headers)?)))
                }
                (Entry::McpTool { registry_url, server_id, .. }, _) => {
                    let request = self.mcp_registry(registry_url, server_id.as_deref())?;
                    Ok(Way::Mcp(Box::new(request)))
                }
                (Entry::A2a { endpoint }, _) => Ok(Way::A2a(Box::new(self.agent(endpoint)?))),
                _ => self.request(),
            },
            Entry::Undeclared => Err(unavailable("it does not say how it is run")),
        }
    }

    fn request(&self) -> Result<Way, CallError> {
        let (package, nothing) = (&self.tool.package, Vec::new());
        let (base, method, path, headers) =
            match (&self.implementation.entry, &self.action.invocation) {
                (Entry::Http { base, method: Some(method) }, _) => (base, method, "", &nothing),
                (
                    Entry::Http { base, .. } | Entry::McpHttp { url: base, .. },
                    Invocation::Http { method, path, headers },
                ) => (base, method, path.as_str(), headers),
                _ => return Err(unavailable("this kind of tool cannot be called yet")),
            };
        let mut request = request::make(Sources {
            base,
            method,
            path,
            headers,
            auth: package.auth.as_ref(),
            format: self.action.output_format,
            values: self.values(),
            rules: confine::rules(&self.decision.allowance)?,
            most: self.decision.allowance.output,
        })
        .map_err(|error| {
            // Of a variable it helps to know where it is from, not what the action takes.
            if error.details.get("name").is_some() {
                return self.looked_for(error);
            }
            let needed = template::inputs(path).into_iter().filter_map(|at| at.split('.').next());
            tell_taken(error, self.action, &needed.collect::<Vec<_>>())
        })?;
        request.account = request.account.map(|account| self.keeping(account));
        Ok(Way::Http(Box::new(request)))
    }

    /// The error of a variable, with where its value was found.
    fn looked_for(&self, error: CallError) -> CallError {
        let name = error.details["name"].as_str().unwrap_or_default().to_owned();
        let is_passed = self.decision.allowance.environment.contains(&name)
            && self.settings.variable(&name).is_some();
        match self.tool.package.inputs.iter().find(|input| input.name == name) {
            _ if is_passed => error.with("variable", name),
            Some(input) => secrets::refusal::looked_for(error, input),
            None => error,
        }
    }

    /// An account that knows where the vault keeps its refresh token, if it does.
    fn keeping(&self, mut account: Account) -> Account {
        let name = account.refresh_name.as_ref().filter(|_| account.refresh_token.is_some());
        let is_given = |name: &&String| self.decision.allowance.environment.contains(name);
        let name = name.filter(|name| !is_given(name));
        account.kept_at = name.and_then(|name| secrets::kept_at(&self.tool.package, name));
        account
    }

    fn process(&self, argv: &[String], cwd: Option<&str>) -> Result<Process, CallError> {
        let dialect = self.tool.package.dialect;
        let start = self.start(argv)?;
        let (name, rest) =
            start.split_first().ok_or_else(|| unavailable("its command is empty"))?;
        let program = self.program(name)?;
        let mut arguments = rest.to_vec();
        let mut shown = argv.to_vec();
        let stdin = match &self.action.invocation {
            Invocation::Subcommand { argv_template } => {
                let filled = template::arguments(argv_template, &self.values())?;
                shown.extend(argv_template.iter().cloned());
                arguments.extend(filled);
                Vec::new()
            }
            Invocation::StdinJson { argv_template } => {
                let filled = template::arguments(argv_template, &self.values())?;
                shown.extend(argv_template.iter().cloned());
                arguments.extend(filled);
                self.stdin()
            }
            // An mcpkg may have been chosen for an endpoint of another kind than its first.
            Invocation::ArgvJson | Invocation::Http { .. } => {
                let text = self.input.arguments.value().to_string();
                // A longer one is on standard input only.
                if text.len() < LONGEST_ARGUMENT {
                    arguments.push(text.clone());
                    shown.push("<input>".to_owned());
                }
                text.into_bytes()
            }
            Invocation::Script => {
                let input = self.input.arguments.value();
                let given = input.get("args").and_then(Value::as_array).into_iter().flatten();
                for one in given.filter_map(Value::as_str) {
                    template::check_length(one, &["args"])?;
                    arguments.push(one.to_owned());
                }
                if input.get("args").is_some() {
                    shown.push("<args>".to_owned());
                }
                input.get("stdin").and_then(Value::as_str).unwrap_or_default().into()
            }
            other => {
                let message = format!("a command cannot be called by {}", other.words());
                return Err(unavailable(&message));
            }
        };
        if dialect == Dialect::Capability
            && let Some(Value::Array(extra)) = self.input.arguments.value().get("argv_extra")
            && extra.iter().all(Value::is_string)
        {
            for one in extra.iter().filter_map(Value::as_str) {
                template::check_length(one, &["argv_extra"])?;
                arguments.push(one.to_owned());
            }
            shown.push("<argv_extra>".to_owned());
        }
        let folder = match (dialect, cwd) {
            (Dialect::Agentcli, _) => self.caller.to_owned(),
            (_, Some(cwd)) => self.beneath(cwd)?,
            (_, None) => self.tool.root.clone(),
        };
        let walls = self.walls(&program, folder)?;
        let mut whole = vec![program.path.clone().into_os_string()];
        whole.extend(arguments.into_iter().map(OsString::from));
        Ok(Process { argv: whole, shown, stdin, walls })
    }

    /// What starts the tool, filled in where its dialect has templates there. A server outlives a call, so
    /// there is no input for any of them.
    fn start(&self, argv: &[String]) -> Result<Vec<String>, CallError> {
        let package = &self.tool.package;
        let argv = self.tool.brought.started(argv, &package.acquire);
        if package.dialect != Dialect::InstallManifest {
            return Ok(argv.into_owned());
        }
        template::command(&argv, &Values { input: &Value::Null, ..self.values() })
    }

    /// The input as the dialect wants it on standard input.
    fn stdin(&self) -> Vec<u8> {
        match self.tool.package.dialect {
            Dialect::Agentcli => self.input.verbatim.clone().into_bytes(),
            _ => self.input.arguments.value().to_string().into_bytes(),
        }
    }

    fn worker(&self, name: &str, script: &Script, load: Value) -> Result<Worker, CallError> {
        let program = self.program(name)?;
        let walls = self.walls(&program, self.tool.root.clone())?;
        let mut argv = vec![program.path.clone().into_os_string()];
        argv.extend(script.flags.iter().map(OsString::from));
        argv.push(script.text.into());
        let request = json!({ "input": self.input.arguments.value() });
        let text = |name: &str| load.get(name).and_then(Value::as_str);
        let files = text("main").map(PathBuf::from).into_iter();
        let files = files.chain(text("callable").into_iter().flat_map(owner::files_of));
        let owner = Owner::of(self.tool, files, Some(&walls.confinement));
        Ok(Worker { owner, argv, shown: vec![name.to_owned()], load, request, walls })
    }

    /// The secrets of a Node tool, which are told and not in its environment: each under the name of the tool
    /// and its own, and under its own alone.
    fn context(&self) -> Value {
        let tool = self.tool.package.name.as_deref().unwrap_or_default();
        let told = self.variables.iter().filter(|(_, one)| one.is_secret);
        told.flat_map(|(name, one)| {
            let value = Value::from(one.value.as_str());
            [(secrets::told_as(tool, name), value.clone()), (name.clone(), value)]
        })
        .collect()
    }

    fn walls(&self, program: &runtime::Program, folder: PathBuf) -> Result<Walls, CallError> {
        let is_told = self.tool.package.dialect == Dialect::Jumith;
        let given = self.variables.iter().filter(|(_, one)| !(is_told && one.is_secret));
        let variables = given.map(|(name, one)| (name.clone(), one.value.clone())).collect();
        let inside = Inside { folder, variables, program };
        confine::walls(self.tool, &self.decision.allowance, inside, self.settings)
    }

    fn program(&self, name: &str) -> Result<runtime::Program, CallError> {
        let root = &self.tool.root;
        if self.tool.package.dialect == Dialect::Agentcli && !name.starts_with('/') {
            // Neither may be a link: what a package calls its folder is not where another's files are.
            let bin = root.join("tools/bin");
            if root.join(name).canonicalize().is_ok_and(|path| !path.starts_with(bin)) {
                let message = format!("`{name}` leads out of tools/bin");
                return Err(CallError::new(Kind::Denied, message));
            }
        }
        let search = self.tool.brought.before(&self.settings.search_path);
        runtime::find(OsStr::new(name), &search, root, Word::Package).map_err(|error| {
            let told = CallError::new(Kind::Unavailable, error.to_string()).with("program", name);
            match &error {
                FindError::NotExecutable(path) if path.is_file() => {
                    told.with("not_executable", path.to_string_lossy())
                }
                _ => told,
            }
        })
    }

    /// A path of the package, which must not lead out of it.
    fn beneath(&self, path: &str) -> Result<PathBuf, CallError> {
        let odd = || {
            let message = format!("`{path}` leads out of the package");
            CallError::new(Kind::Denied, message)
        };
        let is_plain = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_plain {
            return Err(odd());
        }
        let joined = self.tool.root.join(path);
        match joined.canonicalize() {
            Ok(found) if found.starts_with(&self.tool.root) => Ok(found),
            Ok(_) => Err(odd()),
            Err(_) => Err(unavailable(&format!("`{path}` is not in the package"))),
        }
    }

    fn values(&self) -> Values<'_> {
        Values { input: self.input.arguments.value(), variables: self.variables }
    }
}

fn unavailable(why: &str) -> CallError {
    CallError::new(Kind::Unavailable, why)
}

/// A script that makes a runtime wait for requests.
struct Script {
    flags: &'static [&'static str],
    text: &'static str,
}

const PYTHON: &Script = &Script { flags: &["-I", "-u", "-c"], text: include_str!("run/worker.py") };

const NODE: &Script =
    &Script { flags: &["--input-type=module", "-e"], text: include_str!("run/worker.mjs") };
