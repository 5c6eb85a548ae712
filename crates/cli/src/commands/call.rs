//! `haft call`: one call of a tool, inside the walls.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use host::{
    Blocked, Call, CallError, CancellationToken, Host, Kind, Made, Output, Said, Settings, Tool,
    Warmth,
};
use manifest::dialect::Dialect;
use manifest::model::Entry;
use policy::Surface;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::approver::Owner;
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::load::Loading;
use crate::printer::{Printer, escaped, line};
use crate::progress::{Records, Watcher};
use crate::tools::{self, Tools};
use crate::{interrupt, owner, shell, walls};

#[derive(Args, Debug)]
#[command(
    after_help = "The result goes to standard output, everything else to standard error; a call that fails leaves standard output empty, unless --json is given.\n\nExamples:\n  haft call --from examples/agentcli/tools.json get_time '{\"timezone\":\"UTC\"}'\n  haft call --from examples/install-manifest/word-count count '{\"text\":\"one two\"}'\n  haft call --from examples/jumith/dice.bundle.json demo.dice --explain"
)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    wanted: Wanted,
    /// Approve this one call
    #[arg(long)]
    approve: bool,
    /// Show what would be run, with what and why, and run nothing
    #[arg(long)]
    explain: bool,
    /// Start everything anew for this call
    #[arg(long)]
    cold: bool,
}

/// Which action, and with what.
#[derive(Args, Debug)]
pub(crate) struct Wanted {
    /// Call what is at this path, without installing it: a manifest, a folder, an archive, a bundle
    #[arg(long, value_name = "PATH")]
    from: PathBuf,
    /// The action, or the id or name of a tool with one action
    #[arg(value_name = "NAME")]
    name: String,
    /// The input: a JSON object, @FILE, or - for standard input [default: {}]
    #[arg(value_name = "INPUT")]
    input: Option<String>,
    /// The dialect, when it is not to be recognised
    #[arg(long, value_name = "NAME", value_parser = super::dialect)]
    dialect: Option<Dialect>,
    /// The id of a tools.json [default: its folder's name]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

pub(crate) fn run(
    args: &CallArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    if args.explain {
        return explain(&args.wanted, Surface::Terminal, home, ask, json_wanted, printer);
    }
    let began = Instant::now();
    match make(args, home, ask, json_wanted, printer) {
        Ok(exit) => Ok(exit),
        Err(unmade) if json_wanted => {
            let exit = unmade.failure.exit;
            printer.json(&document(Err(unmade.to_value()), began.elapsed(), 0, None, &[]))?;
            Ok(exit)
        }
        Err(unmade) => Err(unmade.failure),
    }
}

/// Why no call was made. Programs are told the error of the host where there is one.
struct Unmade {
    failure: Failure,
    error: Option<Box<CallError>>,
}

impl From<Failure> for Unmade {
    fn from(failure: Failure) -> Self {
        Self { failure, error: None }
    }
}

impl Unmade {
    fn to_value(&self) -> Value {
        if let Some(error) = &self.error {
            return error.to_value();
        }
        let Failure { exit, message, details, causes, hint } = &self.failure;
        let code = match exit {
            Exit::Invalid => "bad_input",
            Exit::NotFound => "not_found",
            Exit::Denied => "denied",
            Exit::Conflict => "conflict",
            Exit::Done | Exit::Failed | Exit::Unavailable | Exit::Bug | Exit::Of(_) => {
                "unavailable"
            }
        };
        let details = json!({ "details": details, "causes": causes, "hint": hint });
        json!({ "code": code, "message": message, "details": details })
    }
}

fn make(
    args: &CallArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Result<Exit, Unmade> {
    let Ready { runtime, host, mut found } = Ready::new(&args.wanted, home, ask, printer)?;
    let began = Instant::now();
    let called_off = CancellationToken::new();
    interrupt::end_first(calling_off(&called_off));
    let discovered = runtime.block_on(async {
        tokio::select! {
            discovered = discover(&mut found.tools, &args.wanted, &host) => Some(discovered),
            () = called_off.cancelled() => None,
        }
    });
    runtime.block_on(host.settle());
    let Some(discovered) = discovered else { return Ok(Exit::Of(interrupt::CODE)) };
    discovered?;
    let asked_for = began.elapsed();
    let tool = choose(&found.tools, &args.wanted.name)?;
    let records = match (json_wanted, std::io::stdout().is_terminal()) {
        (true, _) => Records::Nowhere,
        (false, true) => Records::Terminal,
        (false, false) => Records::Output,
    };
    let notes = std::io::stderr().is_terminal().then_some(printer);
    let watcher = Watcher::new(notes, records, called_off.clone());
    let approver = Arc::new(Owner::new(home, ask, args.approve.then_some(Said::Once)));
    let call = Call {
        approver: Some(Arc::<Owner>::clone(&approver)),
        progress: Some(Arc::<Watcher>::clone(&watcher)),
        called_off,
        ..args.wanted.call(Surface::Terminal)?
    };
    let warmth = if args.cold { Warmth::Cold } else { Warmth::Warm };
    let mut made = runtime.block_on(host.call(tool, &call, warmth));
    runtime.block_on(host.settle());
    interrupt::nothing_runs();
    if let Err(error) = runtime.block_on(host.records().settle()) {
        made.unwritten.push(error.to_string());
    }
    for fault in &made.unwritten {
        printer.warn(&format!("the call could not be written down: {}", line(fault)));
    }
    if interrupt::was_told_to_stop() {
        // A question may still wait for its answer, and nobody waits for the question.
        runtime.shutdown_background();
        if json_wanted {
            made.took += asked_for;
            in_json(made, printer)?;
        }
        interrupt::restore_terminal();
        return Ok(Exit::Of(interrupt::CODE));
    }
    if json_wanted {
        made.took += asked_for;
        return Ok(in_json(made, printer)?);
    }
    if let Some(failure) = approver.take_failure() {
        return Err(failure.into());
    }
    let output =
        made.reply.map_err(|error| failed(&error, &made.blocked, tool, &args.wanted.from))?;
    for one in &made.blocked {
        printer.note(&format!("hint: {}", blocked_words(one, tool)));
    }
    if matches!(output, Output::Records(_)) && watcher.has_shown() {
        return Ok(Exit::Done);
    }
    Ok(show(&output, printer)?)
}

/// The same as [`failure`], with the command that signs in where that helps.
fn failed(error: &CallError, blocked: &[Blocked], tool: &Tool, from: &Path) -> Failure {
    let failure = failure(error, blocked, tool);
    match login_words(error, from) {
        Some(words) => failure.hint(words),
        None => failure,
    }
}

/// What calls a call off.
fn calling_off(token: &CancellationToken) -> impl FnOnce() + Send + 'static {
    let token = token.clone();
    move || token.cancel()
}

/// All that a call needs.
struct Ready {
    runtime: Runtime,
    host: Host,
    found: Tools,
}

impl Ready {
    fn new(wanted: &Wanted, home: &Home, ask: Ask, printer: Printer) -> Result<Self, Failure> {
        let launcher = walls::Starting::begin();
        let loading = Loading { dialect: wanted.dialect, id: wanted.id.as_deref() };
        let found = tools::at(&wanted.from, loading, home, printer)?;
        let settings = settings(home)?;
        let runtime = owner::runtime()?;
        let records = owner::records(home, &runtime)?;
        let vault = owner::vault(home, ask)?;
        let host = Host::new(settings, launcher.finish()?, vault, records);
        Ok(Self { runtime, host, found })
    }
}

impl Wanted {
    /// The call that is wanted, with nobody who watches it.
    fn call(&self, surface: Surface) -> Result<Call, Failure> {
        let folder = std::env::current_dir().map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to find this folder").cause(error)
        })?;
        Ok(Call {
            action: self.name.clone(),
            input: input(self.input.as_deref())?,
            surface,
            approver: None,
            ticket: None,
            folder,
            progress: None,
            called_off: CancellationToken::new(),
        })
    }
}

/// Shows what would be run for a caller, with what and why. Nothing is run: to ask a server what it can do
/// would be to run it, so what it does not declare is taken for granted.
pub(crate) fn explain(
    wanted: &Wanted,
    surface: Surface,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let Ready { runtime, host, mut found } = Ready::new(wanted, home, ask, printer)?;
    let tools = &mut found.tools;
    if tools.iter().all(|tool| tool.action(&wanted.name).is_none()) {
        for tool in tools.iter_mut().filter(|tool| is_server(tool)) {
            tool.package.actions.push(host::assumed(&wanted.name));
        }
    }
    let tool = choose(tools, &wanted.name).map_err(|unmade| unmade.failure)?;
    let plan = runtime.block_on(host.plan(tool, &wanted.call(surface)?));
    let document = plan.map_err(|error| failure(&error, &[], tool))?.to_value();
    if json_wanted {
        printer.json(&document)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    write_lines(&document, Path::new(""), &mut text);
    printer.result(&text)?;
    Ok(Exit::Done)
}

/// Asks those that say only when they run what they can do, MCP servers, where no other has the action.
async fn discover(tools: &mut [Tool], wanted: &Wanted, host: &Host) -> Result<(), Unmade> {
    if tools.iter().any(|tool| tool.action(&wanted.name).is_some()) {
        return Ok(());
    }
    for tool in tools.iter_mut().filter(|tool| is_server(tool)) {
        let found = host.discover(tool, &Surface::Terminal).await;
        let found = found.map_err(|error| {
            let failure = failed(&error, &[], tool, &wanted.from);
            Unmade { failure, error: Some(Box::new(error)) }
        })?;
        let declared: Vec<_> = tool.package.actions.iter().map(|one| one.name.clone()).collect();
        tool.package.actions.extend(found.into_iter().filter(|one| !declared.contains(&one.name)));
    }
    Ok(())
}

/// Whether a tool is an MCP server, which may have more tools than its package says.
fn is_server(tool: &Tool) -> bool {
    let mut entries = tool.package.implementations.iter().map(|one| &one.entry);
    entries.any(|entry| matches!(entry, Entry::McpStdio { .. } | Entry::McpHttp { .. }))
}

/// The tool that is meant by a name.
fn choose<'t>(tools: &'t [Tool], name: &str) -> Result<&'t Tool, Unmade> {
    let matching: Vec<_> = tools.iter().filter(|tool| tool.action(name).is_some()).collect();
    match matching.as_slice() {
        [tool] => Ok(tool),
        [] => {
            let actions = |tool: &Tool| -> Vec<String> {
                tool.package.actions.iter().map(|action| action.name.clone()).collect()
            };
            if let Some(tool) = tools.iter().find(|tool| tool.is_called(name)) {
                let message = format!("`{}` has more than one action", line(name));
                return Err(Failure::invalid(message)
                    .hint(format!("name one: {}", line(&actions(tool).join(", "))))
                    .into());
            }
            let known: Vec<_> = tools.iter().flat_map(actions).collect();
            let message = format!("unknown tool: {name}");
            let failure = Failure::new(Exit::NotFound, line(&message))
                .hint(format!("there is {}", line(&known.join(", "))));
            let error = CallError::new(Kind::Unknown, message).with("actions", known);
            Err(Unmade { failure, error: Some(Box::new(error)) })
        }
        several => {
            let ids: Vec<_> = several.iter().map(|tool| tool.package.canonical_id()).collect();
            let message = format!("`{}` is in more than one package", line(name));
            Err(Failure::new(Exit::Conflict, message)
                .hint(format!("name the file of one with --from: {}", line(&ids.join(", "))))
                .into())
        }
    }
}

/// The input as it was typed, or from where it was said to be.
fn input(typed: Option<&str>) -> Result<String, Failure> {
    /// More is refused by the host in any case.
    const MOST: u64 = 16 << 20;
    let read = |reader: &mut dyn Read, name: &str| {
        let mut text = String::new();
        reader.take(MOST).read_to_string(&mut text).map_err(|error| {
            Failure::new(Exit::Unavailable, format!("failed to read {name}")).cause(error)
        })?;
        Ok(text)
    };
    match typed {
        None => Ok("{}".to_owned()),
        Some("-") => read(&mut std::io::stdin().lock(), "standard input"),
        Some(text) => match text.strip_prefix('@') {
            Some(path) => {
                let mut file = std::fs::File::open(path).map_err(|error| {
                    let message = format!("failed to read `{}`", line(path));
                    Failure::new(Exit::NotFound, message).cause(error)
                })?;
                read(&mut file, &format!("`{}`", line(path)))
            }
            None => Ok(text.to_owned()),
        },
    }
}

/// What the host has to know of this process and its owner.
pub(super) fn settings(home: &Home) -> Result<Settings, Failure> {
    let policy = owner::policy(home)?;
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Ok(Settings {
        policy,
        home: home.path().to_owned(),
        user_home: std::env::home_dir(),
        search_path: std::env::var_os("PATH").unwrap_or_default(),
        environment: std::env::vars_os().filter_map(text).collect(),
    })
}

/// The command that signs in for what a call needs. A server says which scopes, so each is one word to the
/// shell whatever is in it.
fn login_words(error: &CallError, from: &Path) -> Option<String> {
    if error.kind != Kind::NeedsLogin {
        return None;
    }
    let scopes = error.details.get("scopes").and_then(Value::as_array);
    let scopes = scopes.into_iter().flatten().filter_map(Value::as_str);
    let scopes: String = scopes.map(|scope| format!(" --scope {}", shell::word(scope))).collect();
    let from = shell::word(&from.display().to_string());
    Some(format!("`haft login --from {from}{scopes}` signs in"))
}

/// What a tool was kept from, and the command that would allow it, where one can.
fn blocked_words(one: &Blocked, tool: &Tool) -> String {
    let (asked, why) = (line(&one.asked), one.why);
    if why == egress::Refusal::Denied {
        return format!(
            "{asked} was not reached: your policy refuses it ([network] deny), and no grant helps"
        );
    }
    if egress::Rule::parse(&one.asked).is_err() {
        return format!("{asked} was not reached ({why}); it is no host that can be granted");
    }
    let (id, host) = (shell::word(&tool.package.canonical_id()), shell::word(&one.asked));
    format!("{asked} was not reached ({why}); `haft grant {id} --host {host}` allows it")
}

/// Whether a tool complains in the words of those who find no network, where names lead nowhere.
fn is_about_network(said: &str) -> bool {
    const WORDS: [&str; 7] = [
        "resolve host",
        "name resolution",
        "Name or service not known",
        "getaddrinfo",
        "EAI_AGAIN",
        "fetch failed",
        "Network is unreachable",
    ];
    WORDS.iter().any(|words| said.contains(words))
}

/// Why there is no result, as the person sees it.
pub(super) fn failure(error: &CallError, blocked: &[Blocked], tool: &Tool) -> Failure {
    // Of several lines, as of a traceback, the first says least when they are made one.
    let (first, rest) = error.message.split_once('\n').unwrap_or((&error.message, ""));
    let mut failure = Failure::new(exit_of(&error.kind), line(first));
    if !rest.trim().is_empty() {
        failure = failure.details(rest.trim_end().lines().map(line).collect::<Vec<_>>());
    }
    let said = error.details.get("stderr").or_else(|| error.details.get("body"));
    if let Some(said) = said.and_then(Value::as_str)
        && !said.trim().is_empty()
    {
        failure = failure.details(said.trim().lines().map(line).collect::<Vec<_>>());
    }
    let id = tool.package.canonical_id();
    let package = shell::word(&id);
    let text = |name: &str| error.details.get(name).and_then(Value::as_str);
    failure = match &error.kind {
        Kind::MissingInput => match text("name") {
            Some(name) => {
                let name = shell::word(name);
                let keep = format!("`haft secret set {package} {name}` keeps it");
                failure.hint(match error.details.get("secret") {
                    Some(Value::Bool(false)) => format!(
                        "`haft grant {package} --env {name}` passes on your variable of that name; {keep}"
                    ),
                    _ => keep,
                })
            }
            None => failure,
        },
        Kind::Denied => match (text("granted"), text("path")) {
            (Some("from"), Some(path)) => failure.hint(format!(
                "`haft grant {package} --from {}` says that you mean this one too",
                shell::word(path)
            )),
            (Some(kind), Some(path)) => failure.hint(format!(
                "`haft ungrant {package} --{kind} {}` takes it back; grant what is there now, if you want that",
                shell::word(path)
            )),
            _ => failure,
        },
        Kind::NeedsApproval(_) => failure.hint("--approve approves this one call"),
        Kind::Distrusted => failure.hint(format!(
            "`[trust] allow` in policy.toml says who is trusted enough; `[package.{}] allow = true` lets this one",
            // Quoted as TOML quotes too.
            line(&Value::from(id).to_string())
        )),
        _ => failure,
    };
    let said = said.and_then(Value::as_str).unwrap_or_default();
    if blocked.is_empty() && [&*error.message, said].into_iter().any(is_about_network) {
        failure = failure.hint(if policy::denies_network(&tool.package) {
            "its manifest says that it needs no network, and no grant changes that".to_owned()
        } else {
            format!(
                "it may have no network; `haft grant {package} --host NAME` lets it reach a host"
            )
        });
    }
    for one in blocked {
        failure = failure.hint(blocked_words(one, tool));
    }
    failure
}

pub(super) fn exit_of(kind: &Kind) -> Exit {
    match kind {
        Kind::Failed | Kind::TimedOut | Kind::TooMuchOutput | Kind::BadOutput | Kind::Cancelled => {
            Exit::Failed
        }
        Kind::BadInput | Kind::MissingInput => Exit::Invalid,
        Kind::Unknown => Exit::NotFound,
        Kind::Denied
        | Kind::Distrusted
        | Kind::Blocked(_)
        | Kind::NeedsApproval(_)
        | Kind::NeedsLogin => Exit::Denied,
        Kind::Unavailable => Exit::Unavailable,
    }
}

fn in_json(made: Made, printer: Printer) -> Outcome {
    let (told, exit) = match made.reply {
        Ok(output) => (Ok(output.into_value()), Exit::Done),
        Err(error) => (Err(error.to_value()), exit_of(&error.kind)),
    };
    printer.json(&document(told, made.took, made.attempts, made.level, &made.blocked))?;
    Ok(exit)
}

/// What programs are told of a call: the result or the error, and how it went.
fn document(
    told: Result<Value, Value>,
    took: Duration,
    attempts: u32,
    level: Option<sandbox::Level>,
    blocked: &[Blocked],
) -> Value {
    let blocked = blocked.iter();
    let blocked: Vec<_> =
        blocked.map(|one| json!({ "host": one.asked, "why": one.why.to_string() })).collect();
    let (is_ok, name, told) = match told {
        Ok(result) => (true, "result", result),
        Err(error) => (false, "error", error),
    };
    json!({
        "ok": is_ok,
        name: told,
        "ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "attempts": attempts,
        "sandbox": { "level": level.map(|level| level.to_string()), "blocked": blocked },
    })
}

/// The result, exactly; on a terminal nothing of it steers the terminal.
fn show(output: &Output, printer: Printer) -> Outcome {
    let is_terminal = std::io::stdout().is_terminal();
    let text = |text: &str| {
        let text = if is_terminal { text.trim_end_matches('\n') } else { text };
        if is_terminal { printer.result(&(escaped(text) + "\n")) } else { printer.result(text) }
    };
    match output {
        Output::Json(value) => text(&format!("{value}\n"))?,
        Output::Text(said) => text(said)?,
        Output::Records(records) => {
            for record in records {
                text(&format!("{record}\n"))?;
            }
        }
        Output::Binary { bytes, media_type } if is_terminal => {
            let kind = media_type.as_deref().unwrap_or("bytes");
            let message = format!("the result is {} bytes ({kind})", bytes.len());
            return Err(Failure::invalid(message).hint("send it to a file: > FILE"));
        }
        Output::Binary { bytes, .. } => {
            let written = std::io::stdout().lock().write_all(bytes);
            written.map_err(|error| {
                Failure::new(Exit::Unavailable, "failed to write the result").cause(error)
            })?;
        }
        Output::Nothing => {}
    }
    Ok(Exit::Done)
}

/// A document as indented lines.
fn write_lines(value: &Value, at: &Path, text: &mut String) {
    let indent = "  ".repeat(at.components().count());
    let Value::Object(members) = value else { return };
    for (name, value) in members {
        match value {
            Value::Object(_) => {
                *text += &format!("{indent}{name}:\n");
                write_lines(value, &at.join(name), text);
            }
            Value::Array(items) => {
                *text +=
                    &format!("{indent}{name}:{}\n", if items.is_empty() { " none" } else { "" });
                for item in items {
                    let words = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
                    *text += &format!("{indent}  - {}\n", line(&words));
                }
            }
            Value::Null => {}
            Value::String(words) => *text += &format!("{indent}{name}: {}\n", line(words)),
            other => *text += &format!("{indent}{name}: {other}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_of_a_stranger_is_one_word_of_the_command_that_is_shown() {
        let error = CallError::new(Kind::NeedsLogin, "no")
            .with("scopes", vec!["files:read", "$(rm)", "a;b'c", "-x\u{1b}"]);
        assert_eq!(
            login_words(&error, Path::new("my tools")).unwrap(),
            r"`haft login --from 'my tools' --scope files:read --scope '$(rm)' --scope 'a;b'\''c' --scope '-x\u{1b}'` signs in"
        );
        assert_eq!(login_words(&CallError::new(Kind::Denied, "no"), Path::new("x")), None);
    }
}
