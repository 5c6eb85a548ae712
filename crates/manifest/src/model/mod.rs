//! One model for all dialects: what a tool says about itself.
//!
//! *Undeclared* is a value of its own everywhere: an absent option means that
//! the author said nothing, never that something is harmless.

mod auth;
mod json;
mod run;
mod sign_in;

pub use auth::{AccountPart, Auth, AuthKind};
pub use json::Json;
pub use run::{Acquire, Chain, Entry, Implementation, Invocation, Step};
pub use sign_in::SignIn;

use crate::dialect::Dialect;

/// A package: what is installed.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// The dialect it was written in.
    pub dialect: Dialect,
    /// The version of the dialect.
    pub format_version: Option<&'static str>,
    /// The id, verbatim.
    pub id: String,
    /// The namespace, where the dialect has one apart from the id.
    pub namespace: Option<String>,
    /// The version, verbatim; a tools.json has none.
    pub version: Option<String>,
    /// What kind of capability.
    pub kind: Kind,
    /// The name people see.
    pub name: Option<String>,
    /// One line on what it does.
    pub summary: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// Its page.
    pub homepage: Option<String>,
    /// Its licence.
    pub license: Option<String>,
    /// Who wrote it.
    pub author: Option<Person>,
    /// Who publishes it.
    pub publisher: Option<Person>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// How it reaches the machine.
    pub acquire: Acquire,
    /// The ways to run it, best guess first; none for a chain.
    pub implementations: Vec<Implementation>,
    /// The steps, when it is made of other tools.
    pub chain: Option<Chain>,
    /// Variables and secrets it is given.
    pub inputs: Vec<Input>,
    /// What it does on the owner's behalf.
    pub scopes: Vec<Scope>,
    /// What it may touch.
    pub permissions: Permissions,
    /// The walls it asks for.
    pub sandbox: Option<Sandbox>,
    /// Its limits.
    pub resources: Resources,
    /// How long one call may take.
    pub timeout_ms: Option<u64>,
    /// How its requests are authenticated.
    pub auth: Option<Auth>,
    /// What can be called.
    pub actions: Vec<Action>,
    /// The smoke test, verbatim.
    pub smoke: Option<Json>,
    /// Paths of tests in the package.
    pub tests: Vec<String>,
    /// Paths of examples in the package.
    pub examples: Vec<String>,
    /// How it is revoked, verbatim.
    pub kill_switch: Option<Json>,
    /// What it costs, verbatim.
    pub cost: Option<Json>,
    /// Whether it spends money; absent when the author does not say.
    pub uses_payment: Option<bool>,
    /// Packages it needs beside it, as `manager:package==version`.
    pub dependencies: Vec<String>,
    /// Which private data it reads, sends and keeps, verbatim.
    pub data_boundary: Option<Json>,
    /// What its author promises over time, verbatim.
    pub verify: Option<Json>,
    /// Where to get help, verbatim.
    pub support: Option<Json>,
    /// What is claimed about its trust; only ever lowers it.
    pub trust: Trust,
    /// Whether it may be called.
    pub enabled: bool,
    /// Whether the owner must sign in first.
    pub requires_oauth: bool,
    /// How it is driven.
    pub channel: Channel,
    /// Where it comes from, verbatim.
    pub origin: Option<Json>,
    /// SHA-256 over the paths and contents of bundled files, in hexadecimal.
    pub files_sha256: Option<String>,
    /// SHA-256 of the document's bytes, in hexadecimal.
    pub raw_sha256: String,
}

/// What kind of capability a package is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A tool.
    Tool,
    /// An MCP server.
    McpServer,
    /// A set of agent skills.
    SkillPack,
    /// An agent on the network.
    A2aPeer,
    /// A workflow of an agent.
    AgentWorkflow,
}

impl Kind {
    /// Every kind with its name.
    pub const ALL: [(Kind, &'static str); 5] = [
        (Kind::Tool, "tool"),
        (Kind::McpServer, "mcp_server"),
        (Kind::SkillPack, "skill_pack"),
        (Kind::A2aPeer, "a2a_peer"),
        (Kind::AgentWorkflow, "agent_workflow"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

/// A person or organisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// Id in a registry.
    pub id: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Page.
    pub url: Option<String>,
}

/// A variable, secret or setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// What a value is.
    pub kind: InputKind,
    /// Whether several values may be given.
    pub multiple: bool,
    /// Whether it must never be shown.
    pub secret: bool,
    /// Whether the tool cannot do without.
    pub required: bool,
    /// What the owner is told.
    pub prompt: Option<String>,
    /// ECMAScript pattern of a value.
    pub validation_regex: Option<String>,
    /// Value when none is given; a JSON list of texts where several may be.
    pub default: Option<String>,
    /// Where a value is to be had.
    pub obtain_url: Option<String>,
    /// Where a secret is kept.
    pub reference: Option<String>,
    /// Where the value comes from when a call runs.
    pub source: InputSource,
}

/// What the value of an input is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InputKind {
    /// A text.
    Text,
    /// A number within these bounds, both included.
    Number {
        /// Smallest.
        min: Option<f64>,
        /// Largest.
        max: Option<f64>,
    },
    /// Yes or no.
    Flag,
    /// The path of a folder.
    Folder,
    /// The path of a file.
    File,
}

/// Where the value of an input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// The owner is asked, and the answer is kept.
    Owner,
    /// The caller's own environment.
    Caller,
}

impl Input {
    /// A secret of that name.
    pub fn secret(name: impl Into<String>) -> Self {
        Input {
            name: name.into(),
            kind: InputKind::Text,
            multiple: false,
            secret: true,
            required: true,
            prompt: None,
            validation_regex: None,
            default: None,
            obtain_url: None,
            reference: None,
            source: InputSource::Owner,
        }
    }
}

/// What a tool does to one resource on the owner's behalf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// What is accessed.
    pub resource: String,
    /// What is done to it.
    pub verbs: Vec<String>,
    /// Why.
    pub rationale: String,
    /// The provider's name for it.
    pub provider_scope: Option<String>,
}

/// What a tool may touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Whether the author said anything at all.
    pub declared: bool,
    /// Hosts it may reach.
    pub hosts: Vec<String>,
    /// Those of them that stand for every host below them too; the host of an endpoint does not.
    pub domains: Vec<String>,
    /// Folders it reads.
    pub read: Vec<String>,
    /// Folders it writes.
    pub write: Vec<String>,
    /// Devices it uses.
    pub devices: Vec<String>,
    /// The ceiling on folders: none, read or write.
    pub filesystem: Option<String>,
}

/// The walls a tool asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// Around a process.
    Process,
    /// Of a container.
    Container,
}

/// Limits of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Processor time, as written.
    pub cpu: Option<String>,
    /// Memory, as written.
    pub memory: Option<String>,
}

/// How far a source is trusted, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// Not at all.
    Untrusted,
    /// A registry vouches for it.
    Community,
    /// A pinned key signed it.
    Verified,
    /// The owner's own.
    Local,
}

impl Trust {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Trust::Untrusted => "untrusted",
            Trust::Community => "community",
            Trust::Verified => "verified",
            Trust::Local => "local",
        }
    }

    /// The level of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Trust::Untrusted, Trust::Community, Trust::Verified, Trust::Local]
            .into_iter()
            .find(|trust| trust.name() == name)
    }
}

/// How a capability is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// By program.
    Programmatic,
    /// Through a screen or a private network.
    VdiVpn,
}

/// Something that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// What it is called by.
    pub name: String,
    /// One line on what it does.
    pub summary: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// How it is called.
    pub invocation: Invocation,
    /// JSON Schema of its input.
    pub input: Option<Json>,
    /// The wire format of its answer.
    pub output_format: Option<OutputFormat>,
    /// JSON Schema of its answer.
    pub output: Option<Json>,
    /// What it changes; absent when the author does not say.
    pub side_effects: Option<SideEffects>,
    /// Whether calling twice is calling once; absent when the author does not say.
    pub idempotent: Option<bool>,
    /// Which scopes it uses.
    pub scopes_used: Vec<String>,
    /// Whether errors have the standard shape.
    pub standard_errors: bool,
    /// Whether each call needs the owner's word; absent when the author does not say.
    pub requires_approval: Option<bool>,
    /// How long one call may take.
    pub timeout_ms: Option<u64>,
    /// Names of the caller's variables it is given.
    pub environment: Vec<String>,
    /// Calls worth seeing.
    pub examples: Vec<Example>,
    /// Short notes for agents, verbatim.
    pub docs: Option<Json>,
    /// Where it stands in the source document.
    pub pointer: crate::json::Pointer,
}

impl Action {
    /// An action of which nothing else is said.
    pub fn new(name: impl Into<String>, invocation: Invocation) -> Self {
        Self {
            name: name.into(),
            summary: None,
            description: None,
            invocation,
            input: None,
            output_format: None,
            output: None,
            side_effects: None,
            idempotent: None,
            scopes_used: Vec::new(),
            standard_errors: false,
            requires_approval: None,
            timeout_ms: None,
            environment: Vec::new(),
            examples: Vec::new(),
            docs: None,
            pointer: crate::json::Pointer::root(),
        }
    }
}

/// A call worth seeing.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// What it shows.
    pub description: String,
    /// What is given.
    pub input: Option<Json>,
    /// What comes back.
    pub output: Option<Json>,
}

/// The wire format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// One JSON value.
    Json,
    /// Text.
    Text,
    /// Bytes.
    Binary,
    /// One JSON object a line.
    NdjsonStream,
    /// Nothing.
    None,
}

impl OutputFormat {
    /// The format of that name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "json" => Self::Json,
            "text" => Self::Text,
            "binary" => Self::Binary,
            "ndjson-stream" => Self::NdjsonStream,
            "none" => Self::None,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
            Self::Binary => "binary",
            Self::NdjsonStream => "ndjson-stream",
            Self::None => "none",
        }
    }
}

/// What an action changes, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SideEffects {
    /// Nothing.
    None,
    /// Nothing, but it looks at the owner's data.
    Read,
    /// Something that can be undone.
    Write,
    /// Something that cannot.
    Destructive,
}

impl SideEffects {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            SideEffects::None => "none",
            SideEffects::Read => "read",
            SideEffects::Write => "write",
            SideEffects::Destructive => "destructive",
        }
    }

    /// The effects of that name.
    pub fn named(name: &str) -> Option<Self> {
        [SideEffects::None, SideEffects::Read, SideEffects::Write, SideEffects::Destructive]
            .into_iter()
            .find(|effects| effects.name() == name)
    }
}

impl Package {
    /// Whether it is an MCP server, which may have more actions than it says here.
    pub fn is_server(&self) -> bool {
        let mut entries = self.implementations.iter().map(|one| &one.entry);
        entries.any(|entry| matches!(entry, Entry::McpStdio { .. } | Entry::McpHttp { .. }))
    }

    /// The id by which the package is known across dialects.
    pub fn canonical_id(&self) -> String {
        match &self.namespace {
            Some(namespace) => [self.dialect.name(), ":", namespace, "/", &self.id].concat(),
            None => [self.dialect.name(), ":", &self.id].concat(),
        }
    }

    /// The version inside: a tools.json gets one made from its bytes.
    pub fn semver(&self) -> String {
        self.version.clone().unwrap_or_else(|| format!("0.0.0+{}", &self.raw_sha256[..12]))
    }

    /// The line that says best what it does.
    pub fn blurb(&self) -> Option<&str> {
        self.summary.as_deref().or(self.description.as_deref())
    }
}
