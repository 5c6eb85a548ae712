//! The consent card: everything that matters about a package before it is installed.
//!
//! It is plain data, in the order in which it is shown; each face draws it. Its digest is kept with the answer, so that
//! what was agreed to is what was shown.

use manifest::model::{
    Acquire, Action, Channel, Entry, Input, InputSource, Json, Package, Person, Resources, Step,
    Trust,
};
use package::digest::Digest;
use serde::Serialize;
use serde_json::Value;

use crate::beside::Beside;
use crate::estimate::Estimate;
use crate::pinned::{Sha256, Source};
use crate::typed;

/// What the owner is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    /// Its id, with its dialect.
    pub id: String,
    /// Its version.
    pub version: String,
    /// What kind of capability it is.
    pub kind: &'static str,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Who wrote and who publishes it, as it says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Its licence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Its page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// Where it comes from.
    pub source: Source,
    /// What stands for all its files.
    pub package: Sha256,
    /// The file that it came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<Sha256>,
    /// What its signatures come to.
    pub signature: String,
    /// How far it is trusted.
    pub trust: &'static str,
    /// Why.
    pub trust_because: String,
    /// What it does on the owner's behalf.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<ScopeShown>,
    /// Whether its author says what it reaches. It is for words alone: nothing more or less is agreed to by it.
    #[serde(skip)]
    pub declared: bool,
    /// Hosts that it may reach.
    pub hosts: Vec<String>,
    /// Hosts that only its smoke test may reach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub smoke_hosts: Vec<String>,
    /// Hosts that only its kill switch may reach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kill_switch_hosts: Vec<String>,
    /// What it wants of the disk and of devices.
    pub folders: Folders,
    /// What it asks the owner for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputShown>,
    /// What can be called.
    pub actions: Vec<ActionShown>,
    /// Packages of other managers that it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// How it reaches the machine.
    pub acquired: String,
    /// Who is asked for it, where that is not its source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub acquired_from: Vec<String>,
    /// Where it is asked, when it runs elsewhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// The tools that it calls in its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// How it is driven, where that is not by a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Exactly what will be run.
    pub commands: Vec<String>,
    /// Whether the owner signs in before it is used.
    pub requires_oauth: bool,
    /// What it costs, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Value>,
    /// What its author estimates that it costs, where that was asked for. It is no part of what is agreed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// What becomes of private data, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_boundary: Option<Value>,
    /// The walls around it.
    pub sandbox: String,
    /// The processor time and the memory that it wants, as it says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// How it is tried before it counts as installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoke: Option<Value>,
    /// How it is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_switch: Option<Value>,
}

/// One scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScopeShown {
    /// What is accessed.
    pub resource: String,
    /// What is done to it.
    pub verbs: Vec<String>,
    /// Why.
    pub rationale: String,
    /// The provider's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_scope: Option<String>,
}

/// What it wants of the disk and of devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Folders {
    /// Folders to read.
    pub read: Vec<String>,
    /// Folders to write.
    pub write: Vec<String>,
    /// Devices.
    pub devices: Vec<String>,
    /// What it may do with folders that it is granted, at most, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<String>,
}

/// One value that the owner is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputShown {
    /// Its name.
    pub name: String,
    /// Whether it is kept from everybody else.
    pub secret: bool,
    /// Whether the tool cannot do without.
    pub required: bool,
    /// Whether it is what calls sign in with: it can be given later, and nothing is called before.
    pub signs_in: bool,
    /// What the author says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Where it is to be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obtain_url: Option<String>,
    /// What it is when nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Where it is kept, where that is not the vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionShown {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What it changes, as it says.
    pub side_effects: &'static str,
    /// Whether each call needs the owner's word, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<bool>,
}

/// Where a package comes from, and how far that speaks for it.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Where it comes from.
    pub source: Source,
    /// What stands for all its files.
    pub package: Digest,
    /// The file that it came in.
    pub archive: Option<Digest>,
    /// What its signatures come to, in words.
    pub signature: String,
    /// How far it is trusted.
    pub trust: Trust,
    /// Why.
    pub trust_because: String,
}

/// What a card says that the package itself does not know.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// Where it comes from.
    pub origin: Origin,
    /// The hosts of its own endpoints.
    pub endpoints: Vec<String>,
    /// What runs to acquire it.
    pub commands: Vec<String>,
    /// Who is asked for it.
    pub acquired_from: Vec<String>,
    /// The level of the walls that its owner wants.
    pub level: String,
}

impl Card {
    /// The card of a package.
    pub fn new(package: &Package, around: Circumstances) -> Self {
        let origin = around.origin;
        let mut hosts = around.endpoints;
        hosts.extend(package.permissions.hosts.iter().cloned());
        let mut known = std::collections::HashSet::new();
        hosts.retain(|host| known.insert(host.clone()));
        let beside = Beside::of(package);
        let only = |mut beside: Vec<String>| {
            beside.retain(|host| !hosts.contains(host));
            beside
        };
        let (smoke_hosts, kill_switch_hosts) = (only(beside.smoke), only(beside.kill_switch));
        let mut commands = around.commands;
        commands.extend(package.implementations.iter().filter_map(|one| run(&one.entry)));
        let value = |json: &Option<Json>| json.as_ref().map(Json::value);
        Self {
            id: package.canonical_id(),
            version: package.semver(),
            kind: package.kind.name(),
            name: package.name.clone(),
            summary: package.blurb().map(str::to_owned),
            by: package.publisher.iter().chain(&package.author).filter_map(person).collect(),
            license: package.license.clone(),
            homepage: package.homepage.clone(),
            source: origin.source,
            package: Sha256(origin.package),
            archive: origin.archive.map(Sha256),
            signature: origin.signature,
            trust: origin.trust.name(),
            trust_because: origin.trust_because,
            scopes: package.scopes.iter().map(scope).collect(),
            declared: package.permissions.declared,
            hosts,
            smoke_hosts,
            kill_switch_hosts,
            folders: Folders {
                read: package.permissions.read.clone(),
                write: package.permissions.write.clone(),
                devices: package.permissions.devices.clone(),
                ceiling: package.permissions.filesystem.clone(),
            },
            inputs: package
                .inputs
                .iter()
                .filter(|input| input.source == InputSource::Owner)
                .map(|one| input(package, one))
                .collect(),
            actions: package.actions.iter().map(action).collect(),
            dependencies: package.dependencies.clone(),
            acquired: acquired(&package.acquire),
            acquired_from: around.acquired_from,
            addresses: package.implementations.iter().filter_map(|one| asked(&one.entry)).collect(),
            steps: package.chain.iter().flat_map(|chain| &chain.steps).map(step).collect(),
            channel: (package.channel == Channel::VdiVpn).then(|| {
                "through a screen or a private network (vdi_vpn): it is kept and listed, not called".to_owned()
            }),
            commands,
            requires_oauth: package.requires_oauth,
            cost: value(&package.cost),
            estimate: None,
            data_boundary: value(&package.data_boundary),
            sandbox: walls(package, &around.level),
            resources: resources(package),
            smoke: value(&package.smoke),
            kill_switch: value(&package.kill_switch),
        }
    }

    /// What stands for the card: for all of it but the estimate, which changes from one moment to the next while the terms
    /// that the manifest states, and the address of the estimate among them, do not.
    pub fn digest(&self) -> Digest {
        let agreed = Self { estimate: None, ..self.clone() };
        Digest::of(&serde_json::to_vec(&agreed).expect("a card is plain data"))
    }
}

fn person(person: &Person) -> Option<String> {
    let name = person.name.as_deref().or(person.id.as_deref())?;
    let more: Vec<_> =
        [&person.url, &person.email].into_iter().flatten().map(String::as_str).collect();
    Some(if more.is_empty() { name.to_owned() } else { format!("{name} ({})", more.join(", ")) })
}

fn scope(scope: &manifest::model::Scope) -> ScopeShown {
    ScopeShown {
        resource: scope.resource.clone(),
        verbs: scope.verbs.clone(),
        rationale: scope.rationale.clone(),
        provider_scope: scope.provider_scope.clone(),
    }
}

fn input(package: &Package, input: &Input) -> InputShown {
    let of_auth = package.auth.as_ref().filter(|auth| auth.env.contains(&input.name));
    InputShown {
        name: input.name.clone(),
        secret: input.secret,
        required: input.required,
        signs_in: of_auth.is_some(),
        prompt: input.prompt.clone(),
        obtain_url: input.obtain_url.clone().or_else(|| of_auth?.docs_url.clone()),
        default: input.default.clone().filter(|_| !input.secret),
        reference: input.reference.clone(),
    }
}

fn action(action: &Action) -> ActionShown {
    ActionShown {
        name: action.name.clone(),
        summary: action.summary.clone().or_else(|| action.description.clone()),
        side_effects: action.side_effects.map_or("undeclared", manifest::model::SideEffects::name),
        requires_approval: action.requires_approval,
    }
}

/// How a package reaches the machine, in words.
fn acquired(acquire: &Acquire) -> String {
    let spec = |package: &String, version: &Option<String>| match version {
        Some(version) => format!("{package} {version}"),
        None => package.clone(),
    };
    match acquire {
        Acquire::Bundle => "with the package".to_owned(),
        Acquire::Pip { package, version_spec } => {
            format!("by pip: {}", spec(package, version_spec))
        }
        Acquire::Npm { package, version_spec } => {
            format!("by npm: {}", spec(package, version_spec))
        }
        Acquire::Git { url, reference, .. } => format!("by git: {url} at {reference}"),
        Acquire::Container { image } => format!("as an image: {image}"),
        Acquire::Url { url, sha256 } if sha256.is_empty() => {
            format!("from {url} (nobody says what its digest is)")
        }
        Acquire::Url { url, sha256 } => format!("from {url} (sha256:{sha256})"),
        Acquire::Preinstalled { locator } => {
            format!("it must be there already: {}", located(&locator.value()))
        }
        Acquire::LocalPath { path: Some(path) } => format!("from {path}"),
        Acquire::LocalPath { path: None } | Acquire::Nothing => "nothing is acquired".to_owned(),
    }
}

/// What must be there: of which kind, and how it is called.
fn located(locator: &Value) -> String {
    let said = locator.as_object().into_iter().flatten();
    let words = said.map(|(_, value)| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What is started, as it would be typed.
fn run(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Argv { argv, .. } | Entry::McpStdio { argv, .. } => Some(typed::command(argv)),
        Entry::NodeModule { main, .. } => Some(format!("node {main}")),
        Entry::PythonCallable { callable } => Some(format!("python3, {callable}")),
        Entry::McpHttp { .. }
        | Entry::Http { .. }
        | Entry::McpTool { .. }
        | Entry::KnownServer { .. }
        | Entry::A2a { .. }
        | Entry::Undeclared => None,
    }
}

/// Where a tool is asked that runs elsewhere.
fn asked(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Http { base, method: Some(method) } => Some(format!("{method} {base}")),
        Entry::Http { base: url, method: None }
        | Entry::McpHttp { url, .. }
        | Entry::A2a { endpoint: url } => Some(url.clone()),
        Entry::McpTool { registry_url, tool_name, .. } => {
            Some(format!("the tool {tool_name} of a server that {registry_url} names"))
        }
        Entry::KnownServer { server_id } => Some(format!("the server {server_id} of this machine")),
        Entry::Argv { .. }
        | Entry::McpStdio { .. }
        | Entry::NodeModule { .. }
        | Entry::PythonCallable { .. }
        | Entry::Undeclared => None,
    }
}

fn resources(package: &Package) -> Vec<String> {
    let Resources { cpu, memory } = &package.resources;
    [("cpu", cpu), ("memory", memory)]
        .iter()
        .filter_map(|(name, amount)| Some(format!("{name} {}", amount.as_ref()?)))
        .collect()
}

fn step(step: &Step) -> String {
    format!("{}: {}", step.name, step.tool)
}

/// The walls around it, in words.
fn walls(package: &Package, level: &str) -> String {
    let entries = || package.implementations.iter().map(|one| &one.entry);
    if package.chain.is_some() {
        return "those of the tools that its steps call".to_owned();
    }
    if entries().any(|entry| asked(entry).is_some()) && !entries().any(Entry::is_process) {
        return "nothing of it runs here; requests go through the gate, to its network alone"
            .to_owned();
    }
    format!("a process inside the walls, level {level} or better")
}
