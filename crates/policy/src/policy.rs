//! `policy.toml`: what the owner allows, whoever calls.
//!
//! Every key has a default, so an absent file is a policy too. A key that we do not know is an
//! error and never ignored: a misspelt wall is no wall.

mod agents;
mod doubt;
mod fault;
mod read;
mod table;

use std::collections::BTreeMap;
use std::fmt;

use manifest::dialect::Dialect;
use manifest::model::{Package, SideEffects, Trust};

pub use agents::{AgentInstall, AgentRules, Profile, Which, check_profile};
pub use doubt::Doubt;
pub use fault::{Fault, PolicyError};

/// A file that says what holds where there is none: every key with its default, and what it means.
pub const DEFAULTS: &str = include_str!("policy/defaults.toml");

/// What the owner allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Which packages may be called at all.
    pub trust: TrustGate,
    /// Hosts for every package.
    pub network: NetworkRules,
    /// Folders for every package.
    pub folders: FolderRules,
    /// When the owner is asked.
    pub approval: ApprovalRules,
    /// How much may be spent in a day by all packages together, and by each.
    pub budget: Budget,
    /// The walls.
    pub sandbox: SandboxRules,
    /// Variables of the caller.
    pub environment: EnvironmentRules,
    /// Secrets that are kept elsewhere.
    pub secrets: SecretRules,
    /// How tools that are container images are run.
    pub containers: ContainerRules,
    /// Where packages of other package managers are had.
    pub sources: SourceRules,
    /// How tools are ranked.
    pub rank: RankRules,
    /// When the tests of packages are run.
    pub tests: TestRules,
    /// What is kept of chains.
    pub chains: ChainRules,
    /// What agents are shown, and what they may bring about.
    pub agents: AgentRules,
    /// Parts of what is installed, by their names.
    pub profiles: BTreeMap<String, Profile>,
    /// What is different for one package, by its canonical id or its bare one.
    pub packages: BTreeMap<String, PackageRules>,
}

/// Which packages may be called at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustGate {
    /// The levels of trust that pass.
    pub allow: Vec<Trust>,
}

/// Hosts for every package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkRules {
    /// Hosts that every package may reach.
    pub allow: Vec<String>,
    /// Hosts that nobody may, whatever else is said.
    pub deny: Vec<String>,
}

/// Folders for every package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderRules {
    /// Folders that every package may read.
    pub read: Vec<String>,
    /// Folders that every package may write.
    pub write: Vec<String>,
    /// Folders that nobody may see, whatever else is said.
    pub deny: Vec<String>,
}

/// What is done about an action before it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// It goes ahead.
    Allow,
    /// The owner is asked the first time, then no more.
    First,
    /// The owner is asked.
    Ask,
    /// It is refused.
    Deny,
}

impl Rule {
    /// Every rule with its name.
    pub const ALL: [(Rule, &'static str); 4] =
        [(Rule::Allow, "allow"), (Rule::First, "first"), (Rule::Ask, "ask"), (Rule::Deny, "deny")];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// When the owner is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRules {
    /// For actions that change nothing.
    pub none: Rule,
    /// For actions that look at the owner's data.
    pub read: Rule,
    /// For actions that change something that can be undone.
    pub write: Rule,
    /// For actions that cannot be undone.
    pub destructive: Rule,
    /// For actions that do not say, called by an agent. The owner's own terminal is not asked.
    pub undeclared: Rule,
    /// How long an answer counts, in seconds.
    pub expires_seconds: u64,
    /// What granting, approving and secrets take.
    pub owner_presence: Presence,
}

impl ApprovalRules {
    /// The key of that rule.
    pub(crate) fn key_of(effects: SideEffects) -> &'static str {
        match effects {
            SideEffects::None => "approval.none",
            SideEffects::Read => "approval.read",
            SideEffects::Write => "approval.write",
            SideEffects::Destructive => "approval.destructive",
        }
    }

    /// The rule for what an action changes.
    pub fn of(&self, effects: SideEffects) -> Rule {
        match effects {
            SideEffects::None => self.none,
            SideEffects::Read => self.read,
            SideEffects::Write => self.write,
            SideEffects::Destructive => self.destructive,
        }
    }
}

/// What shows that the owner is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// That the program runs as the owner; whoever does is taken for them.
    Any,
    /// And that it was started at a terminal.
    Terminal,
    /// The passphrase of the vault.
    Passphrase,
}

/// How much may be spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Calls in a day.
    pub calls_per_day: Option<u64>,
    /// Cents in a day, by the prices that packages state.
    pub cents_per_day: Option<u64>,
    /// Calls in a minute.
    pub calls_per_minute: Option<u64>,
}

/// How strong the walls must be. The same levels as those of the walls themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// None at all.
    L0,
    /// Files and system calls.
    L1,
    /// And namespaces.
    L2,
    /// And control groups.
    L3,
}

impl Level {
    /// Every level with its name.
    pub const ALL: [(Level, &'static str); 4] =
        [(Level::L0, "L0"), (Level::L1, "L1"), (Level::L2, "L2"), (Level::L3, "L3")];
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(Self::ALL[*self as usize].1)
    }
}

/// The walls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxRules {
    /// The least they must be.
    pub level: Level,
    /// How long a call may take when nobody says, in milliseconds.
    pub timeout_ms: u64,
    /// How long a call may take, whoever says.
    pub max_timeout_ms: u64,
    /// The memory of a call when nobody says, in bytes.
    pub memory: u64,
    /// The memory of a call, whoever says.
    pub max_memory: u64,
    /// Processes at a time.
    pub processes: u32,
    /// The size of the scratch folder.
    pub scratch: u64,
    /// Bytes of an answer.
    pub output: u64,
    /// What becomes of an installed package that reaches for what it was not given.
    pub on_violation: OnViolation,
}

/// What becomes of an installed package that reaches for what it was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnViolation {
    /// It is told, and nothing else.
    Nothing,
    /// It is switched off.
    Disable,
    /// It is revoked.
    Revoke,
}

impl OnViolation {
    /// Each with its name.
    pub const ALL: [(OnViolation, &'static str); 3] = [
        (OnViolation::Nothing, "none"),
        (OnViolation::Disable, "disable"),
        (OnViolation::Revoke, "revoke"),
    ];
}

/// Variables of the caller that may be passed on although they change what a program does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentRules {
    /// Their names.
    pub allow: Vec<String>,
}

/// Secrets that are kept elsewhere. New ones are always kept in the vault of the home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretRules {
    /// Variables of the owner's environment that `env://` may name.
    pub environment: Vec<String>,
    /// References to what others keep, `vault://…` and `keyring://…`, that packages may name.
    pub references: Vec<String>,
    /// The server that `vault://` leads to.
    pub server: Option<VaultServer>,
}

/// A Vault server of the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultServer {
    /// Its address.
    pub address: String,
    /// The file with the token for it; without one, the token is in the owner's own vault.
    pub token_file: Option<String>,
    /// The namespace, where the server has several.
    pub namespace: Option<String>,
    /// What its key-value stores are like.
    pub store: Store,
}

/// What a key-value store of a Vault server is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Version 1: one value for each path.
    First,
    /// Version 2: versions of each value, of which the latest counts.
    Second,
}

/// How tools that are container images are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerRules {
    /// The ways that are tried, the first that is there first.
    pub order: Vec<ContainerWay>,
    /// Whether an engine is given secrets, which it writes into its own files as they are.
    pub engine_secrets: bool,
}

/// Where packages of other package managers are had; what is not said is as this machine's own managers are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceRules {
    /// The addresses of Python indexes, the main one first.
    pub pip: Vec<String>,
    /// The address of a Node registry.
    pub npm: Option<String>,
    /// The address that is asked for container images in place of their own registries.
    pub images: Option<String>,
    /// Further hosts that files may come from.
    pub hosts: Vec<String>,
    /// A file of certificates that are trusted too.
    pub certificates: Option<String>,
    /// Packages that may run code of their own while they are installed, such as `npm:esbuild`.
    pub run_scripts: Vec<String>,
}

/// How tools are ranked: what counts how much, and what a tool has to meet to be ranked among the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankRules {
    /// What counts how much.
    pub weights: Weights,
    /// The most that a call may take on the average, in milliseconds.
    pub max_latency_ms: Option<u64>,
    /// The most it may cost in a month, in cents.
    pub max_cents_per_month: Option<u64>,
    /// The most a call may cost, in cents.
    pub max_cents_per_call: Option<u64>,
    /// The least part of its tests that must have passed.
    pub min_correctness: Option<f64>,
    /// How safe it must be at least.
    pub min_safety: Option<f64>,
}

/// What each dimension of a tool counts in its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Whether it does what it should.
    pub correctness: f64,
    /// How fast it is.
    pub latency: f64,
    /// How cheap it is.
    pub cost: f64,
    /// How little it can do wrong.
    pub safety: f64,
    /// How seldom it fails.
    pub resilience: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { correctness: 0.30, latency: 0.25, cost: 0.15, safety: 0.20, resilience: 0.10 }
    }
}

/// When the tests of packages are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestRules {
    /// Whether they are run before a package is installed.
    pub on_install: OnInstall,
}

/// What is kept of chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainRules {
    /// How many bytes of answers of pure steps are kept; none for nothing.
    pub cache: u64,
    /// Whether digests of what goes into calls and comes out are kept, which chains are suggested from.
    pub flows: bool,
}

impl Default for ChainRules {
    fn default() -> Self {
        Self { cache: 64 << 20, flows: true }
    }
}

/// Whether the tests of a package are run before it is installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInstall {
    /// They are; a package that fails one is refused.
    Run,
    /// They are not, unless its author wants it.
    #[default]
    Skip,
    /// They are not, whatever its author wants.
    Never,
}

impl OnInstall {
    /// Each with its name.
    pub const ALL: [(OnInstall, &'static str); 3] =
        [(OnInstall::Run, "run"), (OnInstall::Skip, "skip"), (OnInstall::Never, "never")];
}

/// A way to run an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerWay {
    /// From files on this machine, inside our own walls.
    Image,
    /// By podman or docker.
    Engine,
}

impl ContainerWay {
    /// Every way with its name.
    pub const ALL: [(ContainerWay, &'static str); 2] =
        [(ContainerWay::Image, "image"), (ContainerWay::Engine, "engine")];
}

/// What is different for one package.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PackageRules {
    /// Whether it may be called at all, whatever its trust.
    pub allow: Option<bool>,
    /// Whether only what the baseline says of it counts: it is neither installed nor laid over.
    pub locked: bool,
    /// The least the walls must be.
    pub level: Option<Level>,
    /// How long a call may take when it does not say.
    pub timeout_ms: Option<u64>,
    /// The memory of a call when it does not say.
    pub memory: Option<u64>,
    /// How much it may spend.
    pub budget: Budget,
    /// What one call of it costs, in cents. No dialect says, so the owner does.
    pub cents_per_call: u64,
    /// The implementation that makes its calls, and no other.
    pub implementation: Option<String>,
    /// What becomes of it when it reaches for what it was not given.
    pub on_violation: Option<OnViolation>,
    /// The rule for all of its actions.
    pub approval: Option<Rule>,
    /// Rules for single actions.
    pub actions: BTreeMap<String, Rule>,
}

/// Who knows what others can use: each says what is wrong with a value, in words that follow its key.
#[derive(Clone, Copy, Debug)]
pub struct Judges {
    /// A host that tools may or may not reach.
    pub host: fn(&str) -> Result<(), String>,
    /// The address of a Vault server.
    pub server: fn(&str) -> Result<(), String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            trust: TrustGate { allow: vec![Trust::Local, Trust::Verified] },
            network: NetworkRules::default(),
            folders: FolderRules::default(),
            approval: ApprovalRules {
                none: Rule::Allow,
                read: Rule::Allow,
                write: Rule::Allow,
                destructive: Rule::Ask,
                undeclared: Rule::First,
                expires_seconds: 600,
                owner_presence: Presence::Any,
            },
            budget: Budget::default(),
            sandbox: SandboxRules {
                level: Level::L2,
                timeout_ms: 30_000,
                max_timeout_ms: 600_000,
                memory: 1 << 30,
                max_memory: 8 << 30,
                processes: 512,
                scratch: 256 << 20,
                output: 16 << 20,
                on_violation: OnViolation::Nothing,
            },
            environment: EnvironmentRules::default(),
            containers: ContainerRules {
                order: vec![ContainerWay::Image, ContainerWay::Engine],
                engine_secrets: false,
            },
            sources: SourceRules::default(),
            rank: RankRules::default(),
            tests: TestRules::default(),
            chains: ChainRules::default(),
            agents: AgentRules::default(),
            profiles: BTreeMap::new(),
            secrets: SecretRules::default(),
            packages: BTreeMap::new(),
        }
    }
}

impl Policy {
    /// Reads the text of a `policy.toml`.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        Self::parse_with(text, &Judges { host: |_| Ok(()), server: |_| Ok(()) })
    }

    /// The same, where others have a say about values that they will have to use.
    pub fn parse_with(text: &str, judges: &Judges) -> Result<Self, PolicyError> {
        read::parse(text, judges)
    }

    /// What it says that can be read and never counts as it is written.
    pub fn doubts(&self) -> Vec<Doubt> {
        doubt::doubts(self)
    }

    /// What is said of a package.
    pub fn of_package(&self, package: &Package) -> Option<&PackageRules> {
        // Most say nothing of any.
        if self.packages.is_empty() {
            return None;
        }
        self.of(&package.canonical_id(), &package.id)
    }

    /// What is said of one package, by its canonical id or else its bare one. A key that begins with a
    /// dialect is a canonical id and no bare one, so a package cannot take another's rules by its id.
    pub fn of(&self, canonical: &str, bare: &str) -> Option<&PackageRules> {
        let is_canonical =
            bare.split_once(':').is_some_and(|(dialect, _)| Dialect::named(dialect).is_some());
        let by_bare = || self.packages.get(bare).filter(|_| !is_canonical);
        self.packages.get(canonical).or_else(by_bare)
    }

    /// What becomes of a package that reaches for what it was not given.
    pub fn on_violation(&self, canonical: &str, bare: &str) -> OnViolation {
        let of_package = self.of(canonical, bare).and_then(|rules| rules.on_violation);
        of_package.unwrap_or(self.sandbox.on_violation)
    }
}
