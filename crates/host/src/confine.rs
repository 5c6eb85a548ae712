//! What was allowed, as walls.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use egress::{Rule, Rules};
use manifest::dialect::Dialect;
use manifest::model::Acquire;
use policy::{Allowance, GrantKind, Level};
use sandbox::{Confinement, Network, PROXY_PORT, SCRATCH, Stream, runtime};

use crate::call::Tool;
use crate::error::{CallError, Kind};
use crate::host::Settings;

/// The walls around one process of a tool, and the rules of its network.
#[derive(Clone, Debug)]
pub(crate) struct Walls {
    pub(crate) confinement: Confinement,
    pub(crate) rules: Rules,
}

/// How much of a tool's own folder it sees, and what it is called in there.
pub(crate) struct Inside<'i> {
    /// The folder it starts in.
    pub(crate) folder: PathBuf,
    /// Its variables.
    pub(crate) variables: Vec<(String, String)>,
    /// The program that is started.
    pub(crate) program: &'i sandbox::runtime::Program,
}

/// Builds the walls of a process.
pub(crate) fn walls(
    tool: &Tool,
    allowance: &Allowance,
    inside: Inside<'_>,
    settings: &Settings,
) -> Result<Walls, CallError> {
    let mut confinement = Confinement {
        required: level(allowance.level),
        scratch: allowance.scratch,
        environment: environment(tool.package.dialect, settings),
        stdin: Stream::Pipe,
        stdout: Stream::Pipe,
        stderr: Stream::Pipe,
        ..Confinement::default()
    };
    confinement.limits.memory = Some(allowance.memory);
    confinement.limits.cpu_share = allowance.cpu_share;
    confinement.limits.processes = allowance.processes;
    confinement.limits.output = Some(allowance.output);
    confinement.limits.deadline = Some(Duration::from_millis(allowance.timeout_ms));
    let forbidden = Forbidden::new(settings);
    let folders = &settings.policy.folders;
    confinement.readable.extend(own_files(tool, settings, &forbidden.home)?);
    confinement.readable.extend(tool.brought.folder.clone());
    lead_to_brought(&mut confinement.environment, tool);
    for (texts, of_policy, kind, into) in [
        (&allowance.read, &folders.read, GrantKind::Read, &mut confinement.readable),
        (&allowance.write, &folders.write, GrantKind::Write, &mut confinement.writable),
    ] {
        let (known, granted): (Vec<_>, Vec<_>) =
            texts.iter().cloned().partition(|text| of_policy.contains(text));
        let mut found = paths(&known, settings);
        for text in granted {
            found.extend(unmoved(&text, kind)?);
        }
        into.extend(found.into_iter().filter(|one| !forbidden.holds(one)));
    }
    // By its own name, which may be a link: what is not plugged in now does not keep the tool from the rest.
    let devices = allowance.devices.iter().map(PathBuf::from);
    confinement.devices.extend(devices.filter(|device| device.symlink_metadata().is_ok()));
    let program = inside.program;
    let mut parts = std::iter::once(&program.path).chain(&program.needs);
    if let Some(part) = parts.find(|one| forbidden.holds(one) && !tool.holds(one)) {
        let message = format!("`{}` is in a folder that no tool gets", part.display());
        let is_of_policy = !part.starts_with(&forbidden.home);
        let rule = if is_of_policy { "folders.deny" } else { "" };
        return Err(CallError::new(Kind::Denied, message).by(rule));
    }
    program.allow(&mut confinement);
    // A cover over nothing would be seen.
    let is_image = matches!(tool.package.acquire, Acquire::Container { .. });
    let is_around = |path: &Path| {
        let mut granted = confinement.readable.iter().chain(&confinement.writable);
        let is_system = runtime::is_system(path) || path.starts_with("/etc");
        // An image has its own there.
        (is_system && !is_image)
            || granted.any(|one| path.starts_with(one) || one.starts_with(path))
    };
    let Forbidden { home, hidden } = forbidden;
    let covered: Vec<_> = hidden.into_iter().chain([home]).filter(|one| is_around(one)).collect();
    confinement.hidden.extend(covered);
    let rules = rules(allowance)?;
    if rules.iter().next().is_some() {
        confinement.network = Network::Allow;
        confinement.doors = rules.doors().into_iter().map(egress::Port::number).collect();
        for (name, value) in egress::environment::proxy_variables(PROXY_PORT) {
            set(&mut confinement.environment, name, value);
        }
    }
    for (name, value) in inside.variables {
        set(&mut confinement.environment, name, value);
    }
    confinement.folder =
        if is_there(&inside.folder, &confinement) { inside.folder } else { SCRATCH.into() };
    Ok(Walls { confinement, rules })
}

/// A granted path, if something is there. One that has become a link since is refused: somebody else would choose what
/// is granted. Whoever uses the path follows none.
pub(crate) fn unmoved(granted: &str, kind: GrantKind) -> Result<Option<PathBuf>, CallError> {
    let path = Path::new(granted);
    match path.canonicalize() {
        Ok(found) if found != path => {
            let message =
                format!("`{granted}` was granted, and leads to `{}` by now", found.display());
            Err(CallError::new(Kind::Denied, message)
                .with("granted", kind.name())
                .with("path", granted))
        }
        Ok(found) => Ok(Some(found)),
        // What is not there is not given either.
        Err(_) => Ok(None),
    }
}

/// What no tool is given, whatever is granted in there or around it.
pub(crate) struct Forbidden {
    /// Haft's own: keys, secrets and state.
    home: PathBuf,
    /// What the policy hides.
    hidden: Vec<PathBuf>,
}

impl Forbidden {
    pub(crate) fn new(settings: &Settings) -> Self {
        let hidden = paths(&settings.policy.folders.deny, settings);
        Self { home: settings.home.clone(), hidden }
    }

    /// Whether a path lies there, as somebody wrote it.
    pub(crate) fn hides(&self, text: &str, settings: &Settings) -> bool {
        paths(&[text.to_owned()], settings).iter().any(|path| self.holds(path))
    }

    /// Whether a path without links lies there.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        std::iter::once(&self.home).chain(&self.hidden).any(|one| path.starts_with(one))
    }
}

/// Where in the home the files of packages lie; everything else in there is Haft's own.
const OF_PACKAGES: [&str; 2] = ["packages", "staging"];

/// The folder of a tool's own files. A tools.json lies where its owner works, with all that is there: of that, only what
/// is beneath `tools` is the tools'.
pub(crate) fn own_folder(tool: &Tool) -> PathBuf {
    match tool.package.dialect {
        Dialect::Agentcli => tool.root.join("tools"),
        _ => tool.root.clone(),
    }
}

/// The tool's own files. They lie in its own folder, and nothing else of the owner's does.
fn own_files(tool: &Tool, settings: &Settings, home: &Path) -> Result<Vec<PathBuf>, CallError> {
    if matches!(tool.package.acquire, Acquire::Container { .. }) {
        // The image is the tool.
        return Ok(Vec::new());
    }
    let own = own_folder(tool);
    if own.symlink_metadata().is_err() {
        // It has none: its commands may all be the system's.
        return Ok(Vec::new());
    }
    let denied =
        |why: &str| Err(CallError::new(Kind::Denied, format!("`{}` is {why}", own.display())));
    if own.canonicalize().is_ok_and(|found| found != own) {
        return denied("a link, and the files of a package lie in its own folder");
    }
    if settings.user_home.as_ref().is_some_and(|home| home.starts_with(&own))
        || own == Path::new("/")
    {
        return denied(
            "the folder of this package, and holds everything of yours; put the package into one of its own",
        );
    }
    let is_ours = |home: &Path| {
        own.starts_with(home) && !OF_PACKAGES.iter().any(|name| own.starts_with(home.join(name)))
    };
    if is_ours(home) {
        return denied("haft's own, which no tool gets");
    }
    if paths(&settings.policy.folders.deny, settings).iter().any(|one| own.starts_with(one)) {
        let why = "in a folder that your policy keeps from every tool ([folders] deny)";
        return denied(why).map_err(|error: CallError| error.by("folders.deny"));
    }
    Ok(vec![own])
}

/// Paths as they are written in grants and policy; what is not there is left out.
fn paths(texts: &[String], settings: &Settings) -> Vec<PathBuf> {
    let expand = |text: &String| match (text.strip_prefix('~'), &settings.user_home) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    };
    texts.iter().filter_map(|text| expand(text).canonicalize().ok()).collect()
}

/// Whether a host is a private one, as far as its name tells.
pub(crate) fn is_private(host: &str) -> bool {
    Rule::parse(host).is_ok_and(|rule| rule.names_private())
}

/// What the policy refuses, whatever is granted.
pub fn denied(policy: &policy::Policy) -> Rules {
    let denied = policy.network.deny.iter().filter_map(|text| Rule::parse(text).ok());
    Rules::default().denying(denied.collect())
}

/// What may be reached.
pub(crate) fn rules(allowance: &Allowance) -> Result<Rules, CallError> {
    let parse = |text: &str| {
        Rule::parse(text).map_err(|error| {
            let message = format!("`{text}` is no host that can be allowed: {error}");
            CallError::new(Kind::Unavailable, message)
        })
    };
    let mut rules = Vec::new();
    for host in &allowance.hosts {
        let rule = parse(&host.rule)?;
        rules.push(if host.may_be_private { rule.reaching_private() } else { rule });
    }
    let denied = allowance.denied_hosts.iter().map(|text| parse(text));
    Ok(Rules::from_iter(rules).denying(denied.collect::<Result<_, _>>()?))
}

/// The variables every process of a dialect has.
fn environment(dialect: Dialect, settings: &Settings) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ("HOME".into(), SCRATCH.into()),
    ];
    if dialect != Dialect::Agentcli {
        variables.push(("TMPDIR".into(), SCRATCH.into()));
        variables.push(("LANG".into(), "C.UTF-8".into()));
        for name in ["LANG", "LC_ALL", "TZ"] {
            if let Some(value) = settings.variable(name) {
                set(&mut variables, name.to_owned(), value.to_owned());
            }
        }
    }
    variables
}

/// Lets a process find what was acquired for its tool.
fn lead_to_brought(variables: &mut Vec<(OsString, OsString)>, tool: &Tool) {
    if let Some((_, path)) = variables.iter_mut().find(|(name, _)| name == "PATH") {
        *path = tool.brought.before(path).into_owned();
    }
    for (name, folder) in tool.brought.variables() {
        variables.push((name.into(), folder.into()));
    }
}

fn set(variables: &mut Vec<(OsString, OsString)>, name: String, value: String) {
    let (name, value) = (OsString::from(name), OsString::from(value));
    match variables.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => variables.push((name, value)),
    }
}

fn is_there(folder: &Path, confinement: &Confinement) -> bool {
    let granted = || confinement.readable.iter().chain(&confinement.writable);
    let deepest = |paths: &mut dyn Iterator<Item = &PathBuf>| {
        let around = paths.filter(|one| folder.starts_with(one));
        around.map(|one| one.components().count()).max()
    };
    // What is granted below something hidden is there again.
    let (seen, hidden) = (deepest(&mut granted()), deepest(&mut confinement.hidden.iter()));
    seen > hidden || (hidden.is_none() && granted().any(|one| one.starts_with(folder)))
}

fn level(level: Level) -> sandbox::Level {
    match level {
        Level::L0 => sandbox::Level::L0,
        Level::L1 => sandbox::Level::L1,
        Level::L2 => sandbox::Level::L2,
        Level::L3 => sandbox::Level::L3,
    }
}
