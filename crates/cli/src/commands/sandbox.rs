//! `haft sandbox`: any program, inside the walls.

mod values;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clap::Args;
use egress::attempt::{Attempt, Outcome as Ending, Stage};
use egress::resolve::SystemResolver;
use egress::{Limits as ProxyLimits, Refusal, Rule, Rules, Running};
use sandbox::runtime::{FindError, Word};
use sandbox::{
    Confinement, Ended, Killer, Level, Network, PROXY_PORT, SCRATCH, SpawnError, Stream, runtime,
};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::hosts;
use crate::interrupt;
use crate::output;
use crate::printer::{Printer, line};
use crate::shell;
use crate::walls;

/// Variables that say how to speak to the person, and nothing of the machine.
const PASSED_ON: [&str; 9] =
    ["TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_TIME", "TZ"];

#[derive(Args, Debug)]
#[command(
    after_help = "The program sees the system's programs and libraries, an empty scratch folder (/tmp, also its HOME) and what is granted; nothing else of this machine, and no network but the hosts it is allowed. Its exit code is passed on; 128 + N: ended by signal N. See docs/sandbox.md.\n\nExamples:\n  haft sandbox -- python3 -c 'print(1)'\n  haft sandbox --read . -- node build.mjs\n  haft sandbox --read . --write ./out --allow-host api.example.com --timeout 60 -- ./fetch.sh"
)]
pub(crate) struct SandboxArgs {
    /// Let it read a file or folder; may be repeated
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// Let it read and write a file or folder; may be repeated
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// Let it reach a host: NAME, *.NAME, NAME:PORT, ADDRESS, NETWORK/BITS; may be repeated
    #[arg(long, value_name = "HOST", value_parser = hosts::parse)]
    allow_host: Vec<Rule>,
    /// The same, also when the name leads to a private address
    #[arg(long, value_name = "HOST", value_parser = hosts::parse)]
    allow_private_host: Vec<Rule>,
    /// Memory for it and all it starts, such as 512M
    #[arg(long, value_name = "SIZE", default_value = "1G", allow_negative_numbers = true, value_parser = values::memory)]
    memory: u64,
    /// End it after this long, such as 90 (seconds), 500ms, 5m
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = super::duration)]
    timeout: Option<Duration>,
    /// The most it can put into its scratch folder
    #[arg(long, value_name = "SIZE", default_value = "256M", allow_negative_numbers = true, value_parser = super::size)]
    scratch: u64,
    /// Processes and threads at a time
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=32_000))]
    processes: u32,
    /// Processors it may use at a time, such as 1.5 (below L3 whole ones only)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::processors)]
    cpus: Option<u32>,
    /// Give it a variable: NAME=VALUE, or NAME to pass on yours; may be repeated
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Start in this folder [default: this one if it is granted, else the scratch folder]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The least the walls must be: L2, or L3 with control groups; `haft doctor` shows what there is
    #[arg(long, value_name = "LEVEL", default_value = "L2", value_parser = values::level)]
    require: Level,
    /// Write what it used and whom it tried to reach to a file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &SandboxArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    if json_wanted {
        return Err(Failure::invalid(
            "what is printed is the program's own, so --json has no meaning here",
        )
        .hint("--report FILE writes what it used and whom it tried to reach as JSON"));
    }
    let here = std::env::current_dir().map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to find this folder").cause(error)
    })?;
    let (confinement, argv) = confine(args, home, &here)?;
    let report_place = args.report.as_deref().map(Place::find).transpose()?;
    for path in confinement.writable.iter().filter(|path| runtime::is_system(path)) {
        let path = path.display();
        printer.warn(&format!("`{path}` is the system's: what it writes there, others will run"));
    }
    let launcher = walls::launcher()?;
    if args.cpus.is_some_and(|share| share % 100 != 0) && launcher.walls().level() < Level::L3 {
        printer.warn("below L3 --cpus counts whole processors; `haft doctor` tells what L3 needs");
    }
    // Who is told to stop while the program starts waits until it can be ended.
    let killer = Arc::new(OnceLock::<Killer>::new());
    let started = Arc::clone(&killer);
    interrupt::end_first(move || started.wait().kill());
    let mut child = launcher.spawn(&confinement, &argv).map_err(|error| walls::failure(&error))?;
    let _ = killer.set(child.killer());
    let tried = Arc::new(Mutex::new(Tried::default()));
    let proxy = match child.take_network() {
        Some(ends) => Some(open_proxy(ends, args, &tried, printer)?),
        None => None,
    };
    let asked = child.take_asked();
    #[cfg(unix)]
    if let Some(theirs) = child.take_terminal() {
        crate::terminal::lend(&theirs, &mut child);
    }
    let ended = child.wait();
    // All that was tried is reported when the proxy is gone.
    drop(proxy);
    let mut tried = std::mem::take(&mut *tried.lock().unwrap_or_else(PoisonError::into_inner));
    let asked = asked.map(|asked| asked.take()).unwrap_or_default();
    for attempt in egress::names::refused(&asked) {
        tried.note(&attempt, printer);
    }
    if let Some(place) = &report_place {
        let report = report(&ended, launcher.walls().level(), &tried.entries);
        let text = serde_json::to_string_pretty(&report).unwrap_or_default() + "\n";
        output::replace(&place.check()?, text.as_bytes())?;
    }
    if interrupt::was_told_to_stop() {
        return Ok(Exit::Of(interrupt::CODE));
    }
    for hint in &tried.hints {
        printer.note(&format!("hint: {hint}"));
    }
    outcome(args, &confinement, &ended, &here, printer)
}

/// What the arguments allow, and the program as it is called inside.
fn confine(
    args: &SandboxArgs,
    home: &Home,
    here: &Path,
) -> Result<(Confinement, Vec<OsString>), Failure> {
    let mut confinement = Confinement {
        required: args.require,
        scratch: args.scratch,
        stdin: stream(std::io::stdin().is_terminal()),
        stdout: stream(std::io::stdout().is_terminal()),
        stderr: stream(std::io::stderr().is_terminal()),
        ..Confinement::default()
    };
    confinement.limits.memory = Some(args.memory);
    confinement.limits.deadline = args.timeout;
    confinement.limits.processes = args.processes;
    confinement.limits.cpu_share = args.cpus;
    for path in &args.read {
        let granted = grant(path, here, &mut confinement)?;
        confinement.readable.push(granted);
    }
    for path in &args.write {
        let granted = grant(path, here, &mut confinement)?;
        confinement.writable.push(granted);
    }
    // Keys, secrets and state are never a tool's, whatever folder around them is granted.
    let mut granted = confinement.readable.iter().chain(&confinement.writable);
    if let Ok(own) = here.join(home.path()).canonicalize()
        && let Some(path) = granted.find(|one| is_private(one, &own))
    {
        let message = format!(
            "`{}` is where haft keeps keys, secrets and state, which no program gets",
            path.display()
        );
        return Err(Failure::new(Exit::Denied, message));
    }
    if let Some(home) = hidden_home(home, here, &confinement)? {
        confinement.hidden.push(home);
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let program = runtime::find(&args.command[0], &search, here, Word::Owner).map_err(|error| {
        let failure = Failure::of(Exit::NotFound, &error);
        match error {
            FindError::NotExecutable(path) if path.is_file() => {
                failure.hint(shell::making_executable(&path.display().to_string()))
            }
            _ => failure,
        }
    })?;
    program.allow(&mut confinement);
    confinement.folder = match &args.folder {
        Some(folder) => canonical(folder, here)?,
        None => match here.canonicalize() {
            Ok(here) if is_there(&here, &confinement) => here,
            _ => SCRATCH.into(),
        },
    };
    if !args.allow_host.is_empty() || !args.allow_private_host.is_empty() {
        confinement.network = Network::Allow;
        confinement.doors = rules(args).doors().into_iter().map(egress::Port::number).collect();
        for (name, value) in egress::environment::proxy_variables(PROXY_PORT) {
            set(&mut confinement.environment, name.into(), value.into());
        }
    }
    for (name, value) in variables(args)? {
        set(&mut confinement.environment, name, value);
    }
    let mut argv = args.command.clone();
    argv[0] = program.path.into();
    Ok((confinement, argv))
}

/// Whether a path is one of those in the home that are nobody else's. Others, such as tools, may be granted.
fn is_private(path: &Path, home: &Path) -> bool {
    const PRIVATE: [&str; 5] = ["keys", "vault", "audit", "locks", "policy.toml"];
    let part = path.strip_prefix(home).ok().and_then(|rest| rest.components().next());
    part.and_then(|part| part.as_os_str().to_str())
        .is_some_and(|name| PRIVATE.contains(&name) || name.starts_with("state.db"))
}

/// A terminal is lent through one of the program's own, everything else is handed on.
fn stream(is_terminal: bool) -> Stream {
    if is_terminal { Stream::Terminal } else { Stream::Inherit }
}

/// The home without links. One that is not made yet cannot be hidden, and a program that may write
/// around it could make it and put keys there that the owner would trust; so it is made.
fn hidden_home(
    home: &Home,
    here: &Path,
    confinement: &Confinement,
) -> Result<Option<PathBuf>, Failure> {
    let path = here.join(home.path());
    if let Ok(path) = path.canonicalize() {
        return Ok(Some(path));
    }
    let around = path.ancestors().find_map(|above| above.canonicalize().ok());
    if around.is_none_or(|around| writable_around(&around, confinement).is_none()) {
        return Ok(None);
    }
    output::make_private_folder(&path)?;
    canonical(&path, here).map(Some)
}

/// The grant by which a path can be written.
fn writable_around<'a>(path: &Path, confinement: &'a Confinement) -> Option<&'a Path> {
    let deepest = |paths: &'a [PathBuf]| {
        let around = paths.iter().filter(|one| path.starts_with(one));
        around.max_by_key(|one| one.components().count())
    };
    let writable = deepest(&confinement.writable)?;
    let is_closed_below = deepest(&confinement.readable)
        .is_some_and(|one| one != writable && one.starts_with(writable));
    (!is_closed_below).then_some(writable)
}

/// Where a report is to be written: a folder without links, and a name in it.
#[derive(Debug)]
struct Place {
    folder: PathBuf,
    name: OsString,
}

impl Place {
    fn find(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let message = "standard output is the program's own, so the report needs a file";
            return Err(Failure::invalid(message).hint("--report ./- names a file called `-`"));
        }
        let name = path.file_name().ok_or_else(|| {
            Failure::invalid(format!("`{}` is not the name of a file", path.display()))
        })?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let folder = parent.canonicalize().map_err(|error| {
            let message =
                format!("failed to find `{}`, where the report is to be", parent.display());
            Failure::new(Exit::NotFound, message).cause(error)
        })?;
        let place = Self { folder, name: name.to_owned() };
        if place.folder.join(&place.name).is_dir() {
            let message = format!("`{}` is a folder, and the report is a file", path.display());
            return Err(Failure::invalid(message));
        }
        Ok(place)
    }

    /// The path, if it still leads there: a program that may write around it could have
    /// put a link in the folder's place, and we would write where it may not.
    fn check(&self) -> Result<PathBuf, Failure> {
        if self.folder.canonicalize().is_ok_and(|folder| folder == self.folder) {
            return Ok(self.folder.join(&self.name));
        }
        let message = format!("`{}` is not the folder it was", self.folder.display());
        Err(Failure::new(Exit::Conflict, message)
            .hint("--report names a file where the program cannot write"))
    }
}

/// The path without links, which stays reachable as it was typed.
fn grant(path: &Path, here: &Path, confinement: &mut Confinement) -> Result<PathBuf, Failure> {
    let granted = canonical(path, here)?;
    if granted == Path::new("/") {
        return Err(walls::failure(&SpawnError::BadPath(granted)));
    }
    let typed: PathBuf = here.join(path).components().collect();
    let is_plain = typed.components().all(|part| part != std::path::Component::ParentDir);
    if typed != granted && is_plain && !runtime::is_system(&typed) {
        confinement.links.push((typed, granted.clone()));
    }
    Ok(granted)
}

fn canonical(path: &Path, here: &Path) -> Result<PathBuf, Failure> {
    here.join(path).canonicalize().map_err(|error| {
        let message = format!("failed to find `{}`", path.display());
        Failure::new(Exit::NotFound, message).cause(error)
    })
}

/// Whether a folder is to be seen inside: it is granted, or on the way to something that is.
fn is_there(folder: &Path, confinement: &Confinement) -> bool {
    let mut granted = confinement.readable.iter().chain(&confinement.writable);
    is_granted(folder, confinement) || granted.any(|one| one.starts_with(folder))
}

fn is_granted(path: &Path, confinement: &Confinement) -> bool {
    let granted = confinement.readable.iter().chain(&confinement.writable);
    let deepest = |paths: &mut dyn Iterator<Item = &PathBuf>| {
        paths.filter(|one| path.starts_with(one)).map(|one| one.components().count()).max()
    };
    let granted = deepest(&mut granted.into_iter());
    granted > deepest(&mut confinement.hidden.iter())
}

fn variables(args: &SandboxArgs) -> Result<Vec<(OsString, OsString)>, Failure> {
    let passed_on = |name: &str| Some((name.into(), std::env::var_os(name)?));
    let mut variables: Vec<(OsString, OsString)> =
        PASSED_ON.iter().filter_map(|name| passed_on(name)).collect();
    for text in &args.env {
        variables.push(match text.split_once('=') {
            Some(("", _)) => {
                return Err(Failure::invalid(format!("`{text}` names no variable"))
                    .hint("--env NAME=VALUE sets one"));
            }
            Some((name, value)) => (name.into(), value.into()),
            None => passed_on(text).ok_or_else(|| {
                Failure::invalid(format!("there is no variable `{text}` to pass on"))
                    .hint(format!("--env {text}=VALUE sets it"))
            })?,
        });
    }
    Ok(variables)
}

/// Sets a variable in place of one of that name: of two, programs do not agree which is meant.
fn set(environment: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    environment.retain(|(own, _)| *own != name);
    environment.push((name, value));
}

/// How many different refusals are told of.
const MOST_SAID: usize = 50;

/// How many attempts a report tells of; one that tries for ever must not fill our memory.
const MOST_ENTRIES: usize = 10_000;

/// Whom it tried to reach: for the report, and what would have let it.
#[derive(Debug, Default)]
struct Tried {
    entries: Vec<Value>,
    /// What was said already: a program that tries again and again is told of once.
    said: BTreeSet<String>,
    hints: BTreeSet<String>,
}

fn rules(args: &SandboxArgs) -> Rules {
    let private = args.allow_private_host.iter().cloned().map(Rule::reaching_private);
    args.allow_host.iter().cloned().map(Rule::as_typed).chain(private).collect()
}

fn open_proxy(
    ends: sandbox::Ends,
    args: &SandboxArgs,
    tried: &Arc<Mutex<Tried>>,
    printer: Printer,
) -> Result<Running, Failure> {
    let sandbox::Ends { proxy, names, doors } = ends;
    let ends = egress::Ends { proxy, names, doors };
    let tried = Arc::clone(tried);
    let told = move |attempt: Attempt| {
        let mut tried = tried.lock().unwrap_or_else(PoisonError::into_inner);
        tried.note(&attempt, printer);
    };
    let (rules, resolver) = (rules(args), SystemResolver::default());
    Running::in_background(ends, rules, resolver, ProxyLimits::DEFAULT, told)
        .map_err(|error| Failure::new(Exit::Unavailable, "failed to start the proxy").cause(error))
}

impl Tried {
    fn note(&mut self, attempt: &Attempt, printer: Printer) {
        let Stage::Ended { outcome, reached, up, down, took } = &attempt.stage else { return };
        let asked = line(&attempt.asked);
        let hint = match outcome {
            Ending::Refused(Refusal::Host | Refusal::Port | Refusal::Denied) => {
                Some(format!("--allow-host {asked}"))
            }
            Ending::Refused(Refusal::Address { .. }) => {
                Some(format!("--allow-private-host {asked}, if that address is meant"))
            }
            _ => None,
        };
        let is_quiet = matches!(outcome, Ending::Completed | Ending::ClientLeft | Ending::Stopped);
        let words = format!("haft: {asked}: {}", line(&outcome.to_string()));
        if !is_quiet && self.said.len() < MOST_SAID && self.said.insert(words.clone()) {
            printer.note(&words);
        }
        self.hints.extend(hint.filter(|_| self.said.len() < MOST_SAID));
        if self.entries.len() >= MOST_ENTRIES {
            return;
        }
        self.entries.push(json!({
            "asked": attempt.asked,
            "allowed": !matches!(outcome, Ending::Refused(_) | Ending::Malformed(_)),
            "outcome": outcome.to_string(),
            "rule": reached.as_ref().map(|reached| reached.rule.to_string()),
            "address": reached.as_ref().map(|reached| reached.address.to_string()),
            "up": up,
            "down": down,
            "milliseconds": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }));
    }
}

fn report(ended: &Ended, level: Level, tried: &[Value]) -> Value {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (code, signal) = match ended.exit {
        sandbox::Exit::Code(code) => (Some(code), None),
        sandbox::Exit::Signal(signal) => (None, Some(signal)),
        _ => (None, None),
    };
    json!({
        "level": level.to_string(),
        "ended": ended.exit.to_string(),
        "code": code,
        "signal": signal,
        "usage": {
            "wall_ms": milliseconds(ended.usage.wall),
            "user_ms": milliseconds(ended.usage.user),
            "system_ms": milliseconds(ended.usage.system),
            "peak_memory": ended.usage.peak_memory,
        },
        "network": tried,
    })
}

fn outcome(
    args: &SandboxArgs,
    confinement: &Confinement,
    ended: &Ended,
    here: &Path,
    printer: Printer,
) -> Outcome {
    let name = args.command[0].display();
    let failed = || Failure::new(Exit::Failed, format!("`{name}` {}", ended.exit));
    let code = match ended.exit {
        sandbox::Exit::Code(code) => u8::try_from(code).unwrap_or(u8::MAX),
        sandbox::Exit::Signal(signal) => 128 + u8::try_from(signal).unwrap_or(127),
        sandbox::Exit::Deadline => return Err(failed().hint("--timeout sets how long it may run")),
        sandbox::Exit::Memory => return Err(failed().hint("--memory gives it more")),
        sandbox::Exit::Processes => return Err(failed().hint("--processes allows more")),
        sandbox::Exit::Uncovered => {
            return Err(failed().hint(
                "while it runs, leave what docs/sandbox.md lists alone in the folders of --write; then run it again",
            ));
        }
        sandbox::Exit::Processor
        | sandbox::Exit::Output
        | sandbox::Exit::Cancelled
        | sandbox::Exit::Lost => return Err(failed()),
    };
    if code != 0 {
        if let Some(path) = ungranted(args, confinement, here) {
            printer.note(&format!(
                "hint: `{}` is here but not inside the walls; --read or --write grants it",
                line(&path.to_string_lossy())
            ));
        }
        if confinement.network == Network::Deny && is_networked(&args.command[0]) {
            printer.note("hint: it has no network; --allow-host NAME lets it reach a host");
        }
    }
    Ok(Exit::Of(code))
}

/// Programs that are of little use without a network.
const NETWORKED: [&str; 12] =
    ["cargo", "curl", "git", "go", "npm", "npx", "pip", "pip3", "pnpm", "uv", "wget", "yarn"];

fn is_networked(program: &OsString) -> bool {
    Path::new(program).file_name().is_some_and(|name| NETWORKED.iter().any(|one| name == *one))
}

/// An argument that is a file here and that the program could not see. Words that happen to be the
/// name of a folder, and files of the system that it has its own of, are not meant.
fn ungranted<'a>(
    args: &'a SandboxArgs,
    confinement: &Confinement,
    here: &Path,
) -> Option<&'a OsString> {
    args.command[1..].iter().find(|argument| {
        here.join(argument).canonicalize().is_ok_and(|path| {
            let is_meant = path.is_file() || argument.as_encoded_bytes().contains(&b'/');
            is_meant
                && !path.starts_with("/etc")
                && !runtime::is_system(&path)
                && !is_granted(&path, confinement)
        })
    })
}
