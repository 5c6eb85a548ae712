//! What is told of a call: the result, or why there is none.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use host::{Blocked, CallError, Fallen, Kind, Made, Output, Tool};
use ledger::Time;
use policy::Consent;
use serde_json::{Value, json};

use super::blocked::{
    absent_words, blocked_words, is_about_network, own_folder_words, relative_words,
};
use super::values;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::owner::{self, Passphrase};
use crate::printer::{Printer, escaped, json_escaped, line};
use crate::{login_words, shell, time, walls};

/// Why no call was made. Programs are told the error of the host where there is one.
pub(crate) struct Unmade {
    pub(super) failure: Failure,
    pub(super) error: Option<Box<CallError>>,
}

impl From<Failure> for Unmade {
    fn from(failure: Failure) -> Self {
        Self { failure, error: None }
    }
}

impl From<Unmade> for Failure {
    fn from(unmade: Unmade) -> Self {
        match unmade.error {
            Some(error) => unmade.failure.kind(error.kind.code()),
            None => unmade.failure,
        }
    }
}

impl Unmade {
    pub(super) fn to_value(&self) -> Value {
        match &self.error {
            Some(error) => with_hints(error, &self.failure),
            None => self.failure.to_value(),
        }
    }
}

/// The error of a call, with the hints that people are shown.
fn with_hints(error: &CallError, failure: &Failure) -> Value {
    let mut told = error.to_value();
    told["hints"] = json!(failure.hints);
    told
}

/// The same as [`failure`], with the command that signs in where that helps.
pub(super) fn failed(error: &CallError, blocked: &[Blocked], tool: &Tool, from: &Path) -> Failure {
    let failure = failure(error, blocked, tool);
    let about = tool.about(error);
    let (tool, from) = if std::ptr::eq(about, tool) { (tool, from) } else { (about, &*about.root) };
    match login_hint(error, &login_command(error, tool, from)) {
        Some(words) => failure.hint(words),
        None => failure,
    }
}

/// The command that signs in for what a call needs. A server says which scopes, so each is one word to the
/// shell whatever is in it.
pub(in crate::commands) fn login_hint(error: &CallError, command: &str) -> Option<String> {
    if error.kind != Kind::NeedsLogin {
        return None;
    }
    let scopes = error.details.get("scopes").and_then(Value::as_array);
    let scopes = scopes.into_iter().flatten().filter_map(Value::as_str);
    let scopes: String = scopes.map(|scope| format!(" --scope {}", shell::word(scope))).collect();
    Some(login_words::signs_in(&format!("{command}{scopes}")))
}

/// What signs in for a tool: an installed one by its id, another by where it is.
fn login_command(error: &CallError, tool: &Tool, from: &Path) -> String {
    let what = match tool.consent {
        Consent::ByCard { .. } => shell::word(&tool.package.canonical_id()),
        Consent::ByPath => format!("--from {}", shell::word(&from.display().to_string())),
    };
    // Where somebody signed in before, it is known whom they named.
    let is_first = error.message == policy::Denial::Login.to_string();
    let first = if is_first { login_words::first(&tool.package) } else { "" };
    format!("haft login {what}{first}")
}

/// Why there is no result, as the person sees it.
pub(in crate::commands) fn failure(error: &CallError, blocked: &[Blocked], tool: &Tool) -> Failure {
    let tool = tool.about(error);
    let said = error.details.get("stderr").or_else(|| error.details.get("body"));
    let said = said.and_then(Value::as_str).unwrap_or_default().trim();
    let (message, mut details) = words(&error.message, said);
    if let (Kind::NeedsApproval(_), Some(said)) = (&error.kind, error.details.get("message")) {
        let said = said.as_str().unwrap_or_default();
        details.push(format!("the tool itself says: \"{}\"", shown(said)));
    }
    if let Some(shape) = error.details["step"].get("input").filter(|shape| !shape.is_null()) {
        details.push(line(&format!("the input of the step looks like {shape}")));
    }
    let mut failure = Failure::new(exit_of(&error.kind), line(message)).details(details);
    let id = tool.package.canonical_id();
    let package = shell::word(&id);
    let text = |name: &str| error.details.get(name).and_then(Value::as_str);
    failure = match &error.kind {
        Kind::Denied => match (text("refused"), changed_words(error, &package)) {
            (_, Some(words)) => failure.hint(words),
            (Some("package"), _) => failure.hint(
                "`haft policy show` shows your policy; `allow` of this package in it says so",
            ),
            (Some(_), _) => failure.hint(
                "`haft policy show` shows your policy; the same call with --explain says which rule of it refuses",
            ),
            _ if error.message == policy::Denial::Disabled.to_string() => failure.hint(format!(
                "`haft status {package}` says why; `haft enable {package}` lets it be called, unless it was revoked"
            )),
            _ => failure,
        },
        Kind::NeedsApproval(open) if open.question.is_first => failure.hint(format!(
            "--approve approves this one call; `haft approve always {package} {}` every one",
            shell::word(&open.question.action)
        )),
        Kind::NeedsApproval(_) => failure.hint("--approve approves this one call"),
        Kind::Distrusted => failure.hint(format!(
            "`allow` below `[trust]` in policy.toml says who is trusted enough; `allow = true` below `[package.{}]` lets this one",
            // Quoted as TOML quotes too.
            line(&Value::from(id.as_str()).to_string())
        )),
        _ => failure,
    };
    // Only what runs here reads a file of the owner's.
    let runs_here = tool.package.implementations.iter().any(|one| one.entry.is_process());
    let longest = error.details.get("longest").filter(|_| runs_here).map(|_| {
        format!("give it in a file, where the tool takes one; `haft grant {package} --read FILE` lets it be read")
    });
    let obstacle = text("obstacle").and_then(walls::obstacle_words).map(str::to_owned);
    let others = [
        implementation_words(error, tool),
        next_words(error, tool),
        taken_words(error),
        text("login").map(|_| login_words::impossible(&tool.package).to_owned()),
        limit_words(error),
        obstacle,
        longest,
    ];
    let found = error.details.get("hints").and_then(Value::as_array).into_iter().flatten();
    let found = found.filter_map(|hint| hint.as_str().map(str::to_owned));
    let values = values::hints(error, &id, Passphrase::Typed).into_iter();
    let hints = values.chain(image_words(error)).chain(found).chain(broken_words(error));
    let hints = hints.chain(others.into_iter().flatten());
    failure = hints.fold(failure, Failure::hint);
    let is_its_own = error.kind == Kind::Failed;
    if is_its_own && blocked.is_empty() && [&*error.message, said].into_iter().any(is_about_network)
    {
        failure = failure.hint(if policy::denies_network(&tool.package) {
            "its manifest says that it needs no network, and no grant changes that".to_owned()
        } else {
            format!(
                "it reaches what it was granted and no other port: `haft grant {package}` lists it, `--host NAME` or `--host NAME:PORT` adds to it"
            )
        });
    }
    let absent = error.details.get("absent").and_then(Value::as_array).into_iter().flatten();
    let absent = absent.filter_map(Value::as_object).flatten();
    let absent = absent.filter_map(|(kind, value)| Some(absent_words(kind, value.as_str()?, tool)));
    let blocked = blocked.iter().map(|one| blocked_words(one, tool));
    let own = own_folder_words(error, tool);
    let words = relative_words(error).into_iter().chain(own).chain(absent).chain(blocked);
    words.fold(failure, Failure::hint)
}

/// What the owner can do about a call that they did not make themselves, in a program that nobody watches.
pub(crate) fn remedies(error: &CallError, tool: &Tool) -> Vec<String> {
    let id = tool.about(error).package.canonical_id();
    let values = values::hints(error, &id, Passphrase::PassedOn).into_iter();
    let changed = changed_words(error, &shell::word(&id));
    values.chain(changed).chain(image_words(error)).chain(broken_words(error)).collect()
}

/// What would let a package be called of which something is no longer what it was when the owner said yes.
fn changed_words(error: &CallError, package: &str) -> Option<String> {
    let text = |name: &str| error.details.get(name).and_then(Value::as_str);
    match (text("granted"), text("path")) {
        _ if error.kind != Kind::Denied => None,
        (Some("from"), Some(path)) => Some(format!(
            "`haft grant {package} --from {}` says that you mean this one too",
            shell::word(path)
        )),
        (Some(kind), Some(path)) => Some(format!(
            "`haft ungrant {package} --{kind} {}` takes it back; grant what is there now, if you want that",
            shell::word(path)
        )),
        _ => error
            .details
            .get("surface")
            .map(|_| format!("`haft approve surface {package}` shows what is different, and asks")),
    }
}

/// What would mend what is broken here, or not set.
fn broken_words(error: &CallError) -> impl Iterator<Item = String> {
    let text = |name: &str| error.details.get(name).and_then(Value::as_str);
    let words = [
        text("damaged").map(owner::without_state),
        setting_words(error),
        text("not_executable").map(shell::making_executable),
    ];
    words.into_iter().flatten()
}

/// How many lines of a tool's own words are shown, and how many letters of each.
const MOST_LINES: usize = 20;
const MOST_LETTERS: usize = 400;

/// An error as a line and those below it, with what the tool said, once.
fn words<'e>(message: &'e str, said: &str) -> (&'e str, Vec<String>) {
    // Of several lines, as of a traceback, the first says least when they are made one.
    let (first, rest) = message.split_once('\n').unwrap_or((message, ""));
    // All of it, where the message is only its beginning.
    if !rest.is_empty() && (said.starts_with(first) || said.starts_with('…')) {
        return (first, end_of(said.strip_prefix(first).unwrap_or(said).trim_start_matches('\n')));
    }
    let mut lines = end_of(rest.trim_end());
    let last = said.lines().next_back().unwrap_or_default();
    match first.strip_suffix(last).and_then(|first| first.strip_suffix(": ")) {
        // The last line of it is a part of the message, and all of it is shown below.
        Some(first) if said.lines().nth(1).is_some() => {
            lines.extend(end_of(said));
            (first, lines)
        }
        Some(_) if !said.is_empty() => (first, lines),
        _ => {
            lines.extend(end_of(said));
            (first, lines)
        }
    }
}

/// The end of what a tool said.
fn end_of(said: &str) -> Vec<String> {
    let all: Vec<_> = said.lines().collect();
    let hidden = all.len().saturating_sub(MOST_LINES);
    let note = (hidden > 0).then(|| format!("… ({hidden} lines before these; --json has more)"));
    note.into_iter().chain(all[hidden..].iter().map(|text| shown(text))).collect()
}

/// The beginning of a stranger's text, on one line.
fn shown(text: &str) -> String {
    match text.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => line(&text[..end]) + "…",
        None => line(text),
    }
}

/// Which implementations there are, or what is known of those that there are.
fn implementation_words(error: &CallError, tool: &Tool) -> Option<String> {
    let all = error.details.get("implementations")?.as_array()?;
    let (all, id) =
        (all.iter().filter_map(Value::as_str), shell::word(&tool.package.canonical_id()));
    match error.kind {
        Kind::BadInput => {
            let all: Vec<_> = all.map(|one| format!("`{one}`")).collect();
            (!all.is_empty()).then(|| line(&format!("there are {}", all.join(", "))))
        }
        Kind::Unavailable if error.details["lacking"] == true => Some(format!(
            "--implementation ID runs one all the same; `haft status {id}` shows all that it has"
        )),
        _ => None,
    }
}

/// Which other implementation there is, of a call that none made because the first may have done something already.
fn next_words(error: &CallError, tool: &Tool) -> Option<String> {
    let next = error.details.get("next")?;
    let id = line(next["implementation"].as_str()?);
    let is_kept = tool.consent != Consent::ByPath && next["sure"] == true;
    let then = if is_kept {
        format!("`{id}` makes the next call")
    } else {
        format!("--implementation {} makes it by another", shell::word(&id))
    };
    Some(format!(
        "{then}; it was not made twice, because nothing says that this does no harm (`sideEffects`, `idempotent`)"
    ))
}

/// What an action takes, where it was given something else.
fn taken_words(error: &CallError) -> Option<String> {
    let taken = error.details.get("takes")?.as_array()?;
    let words = taken.iter().filter_map(|one| {
        let kind = one["type"].as_str();
        let required = one["required"].as_bool().filter(|is| *is).map(|_| "required");
        let kind = kind.map(str::to_owned).into_iter().chain(required.map(str::to_owned));
        let more: Vec<_> = kind.chain(values_words(one)).collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        Some(format!("`{}`{more}", one["name"].as_str()?))
    });
    let words: Vec<_> = words.collect();
    (!words.is_empty()).then(|| line(&format!("it takes {}", words.join(", "))))
}

/// The values that a member takes, where it takes only some.
fn values_words(taken: &Value) -> Option<String> {
    let values: Vec<_> = taken["values"].as_array()?.iter().map(Value::to_string).collect();
    let more = taken["more_values"].as_u64().map(|count| format!(" and {count} more"));
    Some(format!("one of {}{}", values.join(", "), more.unwrap_or_default()))
}

/// What would get an image that cannot be run, by each of the ways to run one that the policy has.
fn image_words(error: &CallError) -> Vec<String> {
    let text = |name: &str| error.details.get(name).and_then(Value::as_str);
    let Some(image) = text("image") else { return Vec::new() };
    let from = shell::word(&format!("docker://{image}"));
    if text("refusal") == Some("not-pinned") {
        return vec![format!(
            "`skopeo inspect --format '{{{{.Digest}}}}' {from}` shows its digest"
        )];
    }
    let word = shell::word(image);
    let pull = text("engine").map(|engine| format!("`{engine} pull {word}` gets it for {engine}"));
    let copy = text("images").map(|folder| {
        let to = shell::word(&format!("oci-archive:{folder}/NAME.tar"));
        format!("`skopeo copy {from} {to}` gets it for haft itself, which needs no engine")
    });
    pull.into_iter().chain(copy).collect()
}

/// The limit that a call ran into, where its message does not say it.
fn limit_words(error: &CallError) -> Option<String> {
    let limit = error.details.get("limit")?;
    let text = |name: &str| limit.get(name).and_then(Value::as_str);
    let (name, number, set_by) = (text("name")?, text("words")?, text("set_by")?);
    if limit.get("free_at").is_some() {
        let free = text("free_at").and_then(Time::parse).map(Time::unix_millis);
        return Some(match free {
            Some(free) => {
                // Up to a second that has begun.
                let free = time::utc(free.saturating_add(999).div_euclid(1000));
                format!("{set_by} sets the limit; the next call fits in at {free}")
            }
            None => format!("{set_by} sets the limit; no call fits in, at any time"),
        });
    }
    let may = match name {
        "timeout" => format!("it may take {number}"),
        "output" => format!("it may write {number}"),
        "memory" => format!("it may use {number} of memory"),
        "processes" => format!("it may have {number} processes at a time"),
        _ => format!("its scratch folder may hold {number}"),
    };
    (!error.message.contains(set_by)).then(|| format!("{may} (set by {set_by})"))
}

/// The setting of the policy without which there is no call.
fn setting_words(error: &CallError) -> Option<String> {
    match error.details.get("setting")?.as_str()? {
        "vault_address" => Some(
            "`vault_address = \"https://HOST:PORT\"` below `[secrets]` in policy.toml says where your Vault server is"
                .to_owned(),
        ),
        _ => None,
    }
}

pub(in crate::commands) fn exit_of(kind: &Kind) -> Exit {
    match kind {
        Kind::Failed
        | Kind::TimedOut
        | Kind::TooMuchOutput
        | Kind::BadOutput
        | Kind::Unfinished
        | Kind::Cancelled => Exit::Failed,
        Kind::BadInput | Kind::MissingInput | Kind::BadChain => Exit::Invalid,
        Kind::Unknown => Exit::NotFound,
        Kind::Denied
        | Kind::Distrusted
        | Kind::Blocked(_)
        | Kind::NeedsApproval(_)
        | Kind::NeedsLogin => Exit::Denied,
        Kind::Unavailable => Exit::Unavailable,
    }
}

/// Tells programs of a call that was made. Where the owner's word did not count, `refused` says why.
pub(super) fn in_json(
    made: Made,
    consequence: Option<Value>,
    refused: Option<Failure>,
    tool: &Tool,
    from: &Path,
    home: &Home,
    printer: Printer,
) -> Outcome {
    let (told, exit) = match made.reply {
        Ok(output) => (Ok(output.into_value()), Exit::Done),
        Err(error) => {
            let failure = refused.unwrap_or_else(|| failed(&error, &made.blocked, tool, from));
            let failure = home.place(failure);
            (Err(with_hints(&error, &failure)), failure.exit)
        }
    };
    let mut told = document(told, made.took, made.attempts, made.level, &made.blocked);
    if !made.implementation.is_empty() {
        told["implementation"] = made.implementation.into();
    }
    if !made.fallen.is_empty() {
        let fallen = |one: &Fallen| json!({ "implementation": one.implementation, "why": one.why });
        told["fallen"] = made.fallen.iter().map(fallen).collect();
    }
    if let Some(consequence) = consequence {
        told["violation"] = consequence;
    }
    printer.json(&told)?;
    Ok(exit)
}

/// That another implementation had to make a call.
pub(in crate::commands) fn fallen_words(one: &Fallen) -> String {
    let Fallen { implementation, why } = one;
    let words =
        format!("the implementation `{implementation}` broke ({why}); the next one was tried");
    line(&words)
}

/// What programs are told of a call: the result or the error, and how it went.
pub(super) fn document(
    told: Result<Value, Value>,
    took: Duration,
    attempts: u32,
    level: Option<sandbox::Level>,
    blocked: &[Blocked],
) -> Value {
    let blocked = blocked.iter();
    let blocked: Vec<_> = blocked
        .map(|one| json!({ one.kind().name(): one.asked, "why": one.why.to_string() }))
        .collect();
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
pub(super) fn show(output: &Output, printer: Printer) -> Outcome {
    let is_terminal = std::io::stdout().is_terminal();
    // JSON stays JSON there: it has escapes of its own.
    let in_one_line = |value: &Value| {
        let line = format!("{value}\n");
        if is_terminal { json_escaped(&line) } else { line }
    };
    let text = |text: &str| {
        let text = if is_terminal { text.trim_end_matches('\n') } else { text };
        if is_terminal { printer.result(&(escaped(text) + "\n")) } else { printer.result(text) }
    };
    match output {
        Output::Json(value) => text(&in_one_line(value))?,
        Output::Text(said) => text(said)?,
        Output::Records(records) => {
            for record in records {
                text(&in_one_line(record))?;
            }
        }
        Output::Binary { bytes, media_type } if is_terminal => {
            let name = keep(bytes)?;
            let kind = media_type.as_deref().map(|kind| format!(" of {kind}")).unwrap_or_default();
            // This stands for the result, so it is said in quiet too.
            let words = format!("the result is {} bytes{kind}, kept in `{name}`\n", bytes.len());
            printer.result(&words)?;
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

/// Keeps a result that no terminal shows in a file of this folder that was not there; its name.
fn keep(bytes: &[u8]) -> Result<String, Failure> {
    let failed = |error| {
        let message = "the result is binary, and no file could be made for it in this folder";
        let failure = Failure::new(Exit::Unavailable, message).cause(error);
        failure.hint("the call was made; send its result to a file: > FILE")
    };
    let made = tempfile::Builder::new().prefix("result-").suffix(".bin").tempfile_in(".");
    let mut made = made.map_err(failed)?;
    made.write_all(bytes).map_err(failed)?;
    let (_, path) = made.keep().map_err(|error| failed(error.error))?;
    Ok(path.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_of_a_stranger_is_one_word_of_the_command_that_is_shown() {
        let error = CallError::new(Kind::NeedsLogin, "no")
            .with("scopes", vec!["files:read", "$(rm)", "a;b'c", "-x\u{1b}"]);
        assert_eq!(
            login_hint(&error, "haft login --from 'my tools'").unwrap(),
            r"`haft login --from 'my tools' --scope files:read --scope '$(rm)' --scope 'a;b'\''c' --scope '-x\u{1b}'` signs in"
        );
        assert_eq!(login_hint(&CallError::new(Kind::Denied, "no"), "x"), None);
    }
}
