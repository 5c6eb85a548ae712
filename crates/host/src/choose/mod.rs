//! Which implementation of a tool runs here, in which order they are tried, and why the others do not.
//!
//! An implementation is for this platform, its runtime is here in a version that does, and so is all else that it requires; of
//! those that run here the one that was measured to do best comes first. See [`Choice`].

mod machine;
mod needs;
mod order;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

use ledger::state::implementations::Past;
use manifest::dialect::Dialect;
use manifest::model::{Acquire, Action, Entry, Implementation, Package};
use policy::Consent;
use sandbox::{Launcher, runtime};

use self::machine::Machine;
pub(crate) use self::machine::stamp;
use self::needs::{Language, Needs, Runtime, RuntimeKind};
use crate::brought::Brought;
use crate::call::Tool;
use crate::error::{CallError, Kind};
use crate::host::Settings;
use crate::records::{Records, broken, now};

/// This machine's platform, as packages name it; empty where they have no name for it.
const PLATFORM: &str = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    "linux-x64"
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    "linux-arm64"
} else if cfg!(all(target_os = "macos", target_arch = "x86_64")) {
    "darwin-x64"
} else if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
    "darwin-arm64"
} else if cfg!(all(target_os = "windows", target_arch = "x86_64")) {
    "win-x64"
} else {
    ""
};

/// How a chain is run: by its steps. It says nothing of its time, which is that of its steps, so the owner's own bound
/// for whatever takes longest holds.
static CHAIN: LazyLock<Implementation> = LazyLock::new(|| Implementation {
    id: "chain".to_owned(),
    language: None,
    runtime: None,
    platforms: Vec::new(),
    entry: Entry::Undeclared,
    timeout_ms: Some(u64::MAX),
    requirements: None,
});

/// All that an action can be run by.
#[derive(Debug)]
pub(crate) struct Choice<'t> {
    /// Those that run here, in the order in which they are tried.
    pub(crate) prospects: Vec<Prospect<'t>>,
    /// The others: their ids, and why they do not.
    pub(crate) others: Vec<(&'t str, String)>,
    /// Whether one of the others could be started, and only lacks what it requires.
    has_lacking: bool,
}

/// An implementation that runs here.
#[derive(Debug)]
pub(crate) struct Prospect<'t> {
    pub(crate) implementation: Cow<'t, Implementation>,
    /// What it requires and nobody here can look at.
    pub(crate) unknown: Vec<String>,
    /// How it fared; nothing where it is the only one.
    pub(crate) past: Past,
}

impl<'t> Prospect<'t> {
    fn new(implementation: Cow<'t, Implementation>, unknown: Vec<String>) -> Self {
        Self { implementation, unknown, past: Past::default() }
    }
}

/// Whether an implementation runs here.
enum Fit<'t> {
    Runs(Prospect<'t>),
    /// It could be started, and lacks what it requires.
    Lacks(Cow<'t, Implementation>, Vec<String>),
    /// It cannot be started.
    Cannot(String),
}

/// Where implementations are looked at.
pub(crate) struct Choosing<'c> {
    pub(crate) settings: &'c Settings,
    pub(crate) launcher: &'c Launcher,
    pub(crate) records: &'c Records,
}

impl Choosing<'_> {
    /// The implementation that the policy names.
    pub(crate) fn by_policy(&self, tool: &Tool) -> Option<&str> {
        let rules = self.settings.policy.of_package(&tool.package);
        rules?.implementation.as_deref()
    }

    /// What runs an action. Where the owner names one, it is that, as long as it can be started.
    pub(crate) async fn choose<'t>(
        &self,
        tool: &'t Tool,
        action: &Action,
        named: Option<&str>,
    ) -> Result<Choice<'t>, CallError> {
        let package = &tool.package;
        // What is named for a call goes before what the policy names.
        let by_policy = self.by_policy(tool).filter(|_| named.is_none());
        let named = named.or(by_policy);
        if package.chain.is_some() {
            tool.linked()?;
        }
        let ids: Vec<_> = of_action(package, action).map(|one| &*one.id).collect();
        if let Some(named) = named.filter(|named| !ids.contains(named)) {
            return Err(unknown(named, ids, &package.id, by_policy.is_some()));
        }
        let choice = self.look(tool, action, named).await?;
        if choice.prospects.is_empty() {
            return Err(nothing(&choice, &package.id, named.is_some()));
        }
        Ok(choice)
    }

    /// All that could run an action, or the one that is named, whether or not any of it does.
    pub(crate) async fn look<'t>(
        &self,
        tool: &'t Tool,
        action: &Action,
        named: Option<&str>,
    ) -> Result<Choice<'t>, CallError> {
        let package = &tool.package;
        let mut choice = Choice { prospects: Vec::new(), others: Vec::new(), has_lacking: false };
        if package.chain.is_some() {
            choice.prospects.push(Prospect::new(Cow::Borrowed(&*CHAIN), Vec::new()));
            return Ok(choice);
        }
        let machine = Machine {
            tool,
            launcher: self.launcher,
            records: self.records,
            search: tool.brought.before(&self.settings.search_path),
        };
        let is_meant = |one: &&Implementation| named.is_none_or(|named| one.id == named);
        for one in of_action(package, action).filter(is_meant) {
            match machine.fit(one).await {
                Fit::Runs(prospect) => choice.prospects.push(prospect),
                // Whoever names it means it, whatever it lacks.
                Fit::Lacks(forced, unmet) if named.is_some() => {
                    choice.prospects.push(Prospect::new(forced, unmet));
                }
                Fit::Lacks(_, unmet) => {
                    choice.has_lacking = true;
                    choice.others.push((&*one.id, unmet.join("; ")));
                }
                Fit::Cannot(why) => choice.others.push((&*one.id, why)),
            }
        }
        if choice.prospects.len() > 1 {
            // What is called from a path may have been changed since, and its author wants to see it as it is.
            if tool.consent != Consent::ByPath {
                let (id, version) = (package.canonical_id(), package.semver());
                let pasts = self.records.state.pasts(&id, &version, now()).await;
                let mut pasts = pasts.map_err(|error| broken(&error))?;
                for one in &mut choice.prospects {
                    one.past = pasts.remove(&one.implementation.id).unwrap_or_default();
                }
            }
            order::sort(&mut choice.prospects, &self.settings.policy.rank.weights, now());
        }
        Ok(choice)
    }
}

/// The implementations of an action: where each action has its own, that one.
fn of_action<'t>(
    package: &'t Package,
    action: &Action,
) -> impl Iterator<Item = &'t Implementation> {
    let own = matches!(package.dialect, Dialect::Agentcli | Dialect::Skill);
    let name = own.then(|| action.name.clone());
    package
        .implementations
        .iter()
        .filter(move |one| name.as_ref().is_none_or(|name| one.id == *name))
}

fn unknown(named: &str, ids: Vec<&str>, package: &str, by_policy: bool) -> CallError {
    let who = if by_policy { ", which your policy names (`implementation`)" } else { "" };
    let message = format!("`{package}` has no implementation `{named}`{who}");
    CallError::new(Kind::BadInput, message).with("implementations", ids)
}

fn nothing(choice: &Choice<'_>, package: &str, is_named: bool) -> CallError {
    let others = choice.others.iter();
    let reasons: Vec<_> = others.map(|(id, reason)| format!("`{id}` {reason}")).collect();
    let message = match reasons.as_slice() {
        [] => format!("`{package}` does not say how it is run"),
        [only] if is_named => format!("it does not run here: {only}"),
        reasons => format!("nothing of `{package}` runs here: {}", reasons.join("; ")),
    };
    let error = CallError::new(Kind::Unavailable, message).with("implementations", reasons);
    if choice.has_lacking { error.with("lacking", true) } else { error }
}

impl Machine<'_> {
    /// Whether an implementation runs here.
    async fn fit<'t>(&self, one: &'t Implementation) -> Fit<'t> {
        let package = &self.tool.package;
        if is_in_an_image(package, one) {
            return Fit::Runs(Prospect::new(Cow::Borrowed(one), Vec::new()));
        }
        let brought =
            matches!(self.tool.consent, Consent::ByCard { .. }).then_some(&self.tool.brought);
        let needs = Needs::of(one);
        let cannot = why_not_yet(package, one, brought).or_else(|| why_not_at_all(one, &needs));
        if let Some(why) = cannot {
            return Fit::Cannot(why);
        }
        // Only there an author says more of what is needed.
        let needs = match package.dialect {
            Dialect::Mcpkg | Dialect::Mcpb => needs,
            _ => Needs::default(),
        };
        let program = match &one.entry {
            Entry::Argv { argv, .. } | Entry::McpStdio { argv, .. } => {
                let started = brought.map(|one| one.started(argv, &package.acquire));
                started.as_deref().unwrap_or(argv).first().cloned()
            }
            Entry::NodeModule { .. } => Some("node".to_owned()),
            Entry::PythonCallable { .. } => Some("python3".to_owned()),
            _ => None,
        };
        // A path is looked at when it is started, from the folder it is meant in, and a template when it is filled in.
        let program = program.filter(|program| !program.contains('/') && !program.contains("${"));
        let mut lacking = Vec::new();
        if !one.platforms.is_empty() && !one.platforms.iter().any(|name| name == PLATFORM) {
            lacking.push(format!("is for {}, this is {PLATFORM}", one.platforms.join(", ")));
        }
        let mut silent = Vec::new();
        let started = match &program {
            Some(program) => match self.program(program, &needs.runtimes).await {
                Ok((started, unknown)) => {
                    silent = unknown;
                    Some(started)
                }
                Err(Missed::Program) => {
                    return Fit::Cannot(format!("needs `{program}`, which is not here"));
                }
                Err(Missed::Version(started, why)) => {
                    lacking.push(why);
                    Some(started)
                }
            },
            None => None,
        };
        let mut unknown = self.lacks(one, &needs, started.as_deref(), &mut lacking).await;
        unknown.extend(silent);
        let implementation = match (&program, started) {
            (Some(program), Some(started)) if *program != started => {
                Cow::Owned(starting(one, &started))
            }
            _ => Cow::Borrowed(one),
        };
        if lacking.is_empty() {
            Fit::Runs(Prospect::new(implementation, unknown))
        } else {
            Fit::Lacks(implementation, lacking)
        }
    }

    /// The program that stands for one which a manifest names: itself, or another of the same runtime, where that is
    /// not here or in no version that does.
    async fn program(
        &self,
        named: &str,
        runtimes: &[Runtime],
    ) -> Result<(String, Vec<String>), Missed> {
        let kind = RuntimeKind::of_program(named);
        let mut programs = vec![named.to_owned()];
        let own: Vec<_> = runtimes.iter().filter(|one| Some(&one.kind) == kind.as_ref()).collect();
        for one in kind.iter().flat_map(RuntimeKind::programs) {
            if !programs.contains(&one) {
                programs.push(one);
            }
        }
        if kind == Some(RuntimeKind::Python) {
            // A system may have several beside each other.
            let minor =
                own.iter().flat_map(|one| &one.versions.comparators).find_map(|one| one.minor);
            programs.extend(minor.map(|minor| format!("python3.{minor}")));
        }
        programs.retain(|one| self.has(one));
        let mut missed = None;
        for program in programs {
            let mut unknown = Vec::new();
            match self.unmet(&own, &program, &mut unknown).await {
                None => return Ok((program, unknown)),
                Some(why) => missed = missed.or(Some(Missed::Version(program, why))),
            }
        }
        Err(missed.unwrap_or(Missed::Program))
    }

    /// Which of these runtimes a program is not, in words. What does not say its version is taken at its name, and named
    /// among what nobody can look at.
    async fn unmet(
        &self,
        runtimes: &[&Runtime],
        program: &str,
        unknown: &mut Vec<String>,
    ) -> Option<String> {
        for Runtime { kind, versions } in runtimes.iter().copied() {
            if versions.comparators.is_empty() {
                continue;
            }
            let name = kind.name();
            let Some(found) = self.versions(kind, program).await else {
                return Some(format!("needs {name} {versions}, and `{program}` does not run"));
            };
            if found.is_empty() {
                unknown.push(format!("{name} {versions}"));
            } else if !found.iter().any(|one| versions.matches(one)) {
                let found: Vec<_> = found.iter().map(ToString::to_string).collect();
                let found = found.join(", ");
                return Some(format!("needs {name} {versions}, and `{program}` is {found}"));
            }
        }
        None
    }

    /// Adds what an implementation lacks beside the program that it starts; what nobody can look at comes back.
    async fn lacks(
        &self,
        one: &Implementation,
        needs: &Needs,
        started: Option<&str>,
        lacking: &mut Vec<String>,
    ) -> Vec<String> {
        let mut unknown = needs.unknown.clone();
        let own = started.and_then(RuntimeKind::of_program);
        for other in needs.runtimes.iter().filter(|one| Some(&one.kind) != own.as_ref()) {
            let programs = other.kind.programs();
            match programs.iter().find(|program| self.has(program)) {
                None => lacking.push(format!("needs `{}`, which is not here", programs[0])),
                Some(program) => lacking.extend(self.unmet(&[other], program, &mut unknown).await),
            }
        }
        for command in needs.commands.iter().filter(|command| !self.has(command)) {
            lacking.push(format!("needs `{command}`, which is not here"));
        }
        let named = Some(one).filter(|_| !needs.packages.is_empty());
        let missed = match named.map(Language::of_implementation) {
            None => Some(Vec::new()),
            Some(Some(Language::Node)) => Some(self.lacking_in_node(&needs.packages)),
            Some(Some(Language::Python)) => {
                let python = started.filter(|_| own == Some(RuntimeKind::Python));
                self.lacking_in_python(python.unwrap_or("python3"), &needs.packages).await
            }
            Some(None) => None,
        };
        match missed {
            Some(missed) => lacking.extend(missed.into_iter().map(|one| format!("needs {one}"))),
            None => unknown.push("packages".to_owned()),
        }
        if needs.gpu && !Self::has_gpu() {
            lacking.push("needs a graphics card, which is not here".to_owned());
        }
        let counts: [fn() -> Option<u64>; 2] = [Self::memory, Self::cores];
        let wanted = [(needs.memory, "MiB of memory"), (needs.cores, "processors")];
        for ((wanted, unit), count) in wanted.into_iter().zip(counts) {
            let Some(wanted) = wanted else { continue };
            match count() {
                Some(found) if found < wanted => {
                    lacking.push(format!("needs {wanted} {unit}, this machine has {found}"));
                }
                Some(_) => {}
                None => unknown.push(unit.to_owned()),
            }
        }
        unknown
    }
}

/// Whether an implementation could be started on this machine, as far as its platform and its program say.
pub fn could_start(one: &Implementation, search: &OsStr) -> bool {
    let program = match &one.entry {
        Entry::Argv { argv, .. } | Entry::McpStdio { argv, .. } => argv.first(),
        _ => None,
    };
    let is_there = |name: &str| runtime::is_there(OsStr::new(name), search, Path::new("/"));
    let has_program = program.is_none_or(|name| {
        let others = RuntimeKind::of_program(name).map(|kind| kind.programs()).unwrap_or_default();
        name.contains('/') || is_there(name) || others.iter().any(|other| is_there(other))
    });
    let is_for_this = one.platforms.is_empty() || one.platforms.iter().any(|name| name == PLATFORM);
    is_for_this && has_program && why_not_at_all(one, &Needs::of(one)).is_none()
}

/// Why no program does.
enum Missed {
    /// There is none of that name.
    Program,
    /// There is one, in a version that does not.
    Version(String, String),
}

/// The same implementation with another program.
fn starting(one: &Implementation, program: &str) -> Implementation {
    let mut one = one.clone();
    if let Entry::Argv { argv, .. } | Entry::McpStdio { argv, .. } = &mut one.entry
        && let Some(first) = argv.first_mut()
    {
        program.clone_into(first);
    }
    one
}

/// Whether what is started lies in an image, so that nothing of this machine is needed for it.
pub(crate) fn is_in_an_image(package: &Package, one: &Implementation) -> bool {
    matches!(package.acquire, Acquire::Container { .. })
        && match &one.entry {
            Entry::Argv { .. } | Entry::McpStdio { .. } => true,
            Entry::Undeclared => one.runtime.as_deref() == Some("container"),
            _ => false,
        }
}

/// Why an implementation cannot run before it is installed. What a server.json lists is fetched from elsewhere, and
/// only whoever installs it is asked for the values that it leaves open.
fn why_not_yet(
    package: &Package,
    one: &Implementation,
    brought: Option<&Brought>,
) -> Option<String> {
    if package.dialect != Dialect::ServerJson {
        return None;
    }
    if brought.is_some() {
        // How the first is had is how the server is had.
        let is_first = package.implementations.first().is_some_and(|first| first.id == one.id);
        let is_other = matches!(one.entry, Entry::McpStdio { .. }) && !is_first;
        return is_other.then(|| "was not fetched when it was installed".to_owned());
    }
    let is_open = || package.inputs.iter().any(|input| input.required);
    match &one.entry {
        Entry::McpStdio { .. } => Some("has to be fetched, and a call fetches nothing".to_owned()),
        Entry::McpHttp { url, .. } if url.contains('{') || is_open() => {
            Some("wants values that are asked for when it is installed".to_owned())
        }
        Entry::McpHttp { headers, .. } if headers.iter().any(|(_, value)| !value.contains('{')) => {
            Some("wants headers that are set when it is installed".to_owned())
        }
        _ => None,
    }
}

/// Why an implementation runs on no machine like this.
fn why_not_at_all(one: &Implementation, needs: &Needs) -> Option<String> {
    match (&one.entry, needs.elsewhere) {
        (Entry::Undeclared, _) => Some("does not say how it is run".to_owned()),
        (entry, Some(place)) if entry.is_process() => Some(format!("runs {place}")),
        _ => None,
    }
}
