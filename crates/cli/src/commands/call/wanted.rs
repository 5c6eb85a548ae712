//! What is wanted: which action, of which tool, with what.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use host::{Blocked, Call, CallError, CancellationToken, Host, Kind, Tool};
use manifest::dialect::Dialect;
use manifest::model::Action;
use manifest::shape::suggest;
use policy::Surface;
use serde_json::{Value, json};

use super::told::{Unmade, failed};
use crate::exit::{Exit, Failure};
use crate::printer::line;
use crate::shell;
use crate::tools::Found;

// Which action, and with what. A doc comment would stand in the help of the verb.
#[derive(Args, Debug)]
pub(crate) struct Wanted {
    /// Call what is at this path, without installing it: a manifest, a folder, an archive, a bundle
    #[arg(long, value_name = "PATH")]
    pub(super) from: Option<PathBuf>,
    /// The id of an installed package, unless --from names one; its action, or the id or name of a tool with one
    /// action, where there are several; and the input: a JSON object, @FILE, or - for standard input [default: {}]
    #[arg(value_name = "[ID] [ACTION] [INPUT]", num_args = 0..=3, hide_default_value = true)]
    words: Vec<String>,
    /// Tools that the steps of a chain may call without being installed, at this path; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(super) with: Vec<PathBuf>,
    /// The dialect, when it is not to be recognised
    #[arg(long, value_name = "NAME", value_parser = crate::commands::dialect)]
    pub(super) dialect: Option<Dialect>,
    /// The id of a tools.json [default: its folder's name]
    #[arg(long, value_name = "ID")]
    pub(super) id: Option<String>,
    /// Make the call by this implementation, whatever else would be chosen, and by no other
    #[arg(long, value_name = "ID")]
    implementation: Option<String>,
    /// Give it less time than it may have: 10 (seconds), 500ms, 5m
    #[arg(long, value_name = "TIME", value_parser = crate::commands::duration)]
    timeout: Option<Duration>,
}

impl Wanted {
    /// The installed package that is meant, where no path names one.
    pub(super) fn package(&self) -> Result<&str, Failure> {
        let first = self.words.first().filter(|word| !is_input(word));
        first.map(String::as_str).ok_or_else(|| {
            Failure::invalid("it is not said what to call")
                .hint("`haft list` shows what is installed; --from PATH calls what is not")
        })
    }

    /// Where the tool is, for a command that is to be typed next.
    pub(super) fn place<'t>(&'t self, tool: &'t Tool) -> &'t Path {
        self.from.as_deref().unwrap_or(&tool.root)
    }

    /// What was typed after the package: a name and an input.
    fn rest(&self) -> (Option<&String>, Option<&String>) {
        let rest = &self.words[usize::from(self.from.is_none()).min(self.words.len())..];
        (rest.first(), rest.get(1))
    }

    /// The name that was typed. What stands alone and can only be an input is one.
    pub(super) fn name(&self) -> Option<&str> {
        let (name, input) = self.rest();
        name.map(String::as_str).filter(|name| input.is_some() || !is_input(name))
    }

    /// Refuses what was typed in the wrong order.
    pub(super) fn check_order(&self) -> Result<(), Failure> {
        if let (Some(_), Some(more)) = (&self.from, self.words.get(2)) {
            let message = format!("`{}` is one word too many", line(more));
            return Err(Failure::invalid(message).hint("with --from it is [NAME] [INPUT]"));
        }
        let (first, second) = self.rest();
        if let Some((word, meant)) =
            [first, second].into_iter().flatten().find_map(|word| as_pair(word))
        {
            let message = format!("the input is a JSON object, and `{}` is none", line(word));
            let meant = shell::word(&meant.to_string());
            return Err(Failure::invalid(message).hint(format!("write it as: {meant}")));
        }
        match (first, second) {
            (Some(name), Some(input)) if is_input(name) && !is_input(input) => {
                let message =
                    format!("NAME comes before the input, and `{}` is no input", line(input));
                let (input, name) = (shell::word(name), shell::word(input));
                Err(Failure::invalid(message).hint(format!("write them as: {name} {input}")))
            }
            _ => Ok(()),
        }
    }

    fn input(&self) -> Option<&str> {
        let (name, input) = self.rest();
        input.or(name.filter(|_| self.name().is_none())).map(String::as_str)
    }

    /// The call of an action that is wanted, with nobody who watches it.
    pub(super) fn call(&self, action: &str, surface: Surface) -> Result<Call, Failure> {
        let folder = std::env::current_dir().map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to find this folder").cause(error)
        })?;
        Ok(Call {
            action: action.to_owned(),
            input: read_input(self.input())?,
            surface,
            approver: None,
            ticket: None,
            folder,
            within: self.timeout,
            progress: None,
            implementation: self.implementation.clone(),
            peer: None,
            resumed: None,
            context: None,
            called_off: CancellationToken::new(),
        })
    }
}

/// How long what was approved of a server may be read.
const READING: Duration = Duration::from_secs(10);

/// Whether a word that stands alone is an input, and no name of an action.
fn is_input(word: &str) -> bool {
    word == "-" || word.starts_with(['{', '[', '"', '@'])
}

/// A word that is a member of the input as other programs take it, and the input that is meant.
fn as_pair(word: &str) -> Option<(&str, Value)> {
    let (name, text) = word.split_once('=').filter(|_| !is_input(word))?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    (!name.is_empty() && name.chars().all(is_name)).then(|| (word, json!({ name: value })))
}

/// Asks those that say only when they run what they can do, MCP servers, where no other has the action. Among several
/// packages one that cannot be asked stands in nobody's way; what is to be told of it comes back.
pub(super) async fn discover(
    tools: &mut [Tool],
    wanted: &Wanted,
    host: &Host,
    called_off: &CancellationToken,
) -> Result<Vec<String>, Unmade> {
    let mut unasked = Vec::new();
    if tools.iter().any(|tool| has(tool, wanted.name())) {
        return Ok(unasked);
    }
    let is_alone = tools.len() == 1;
    for tool in tools.iter_mut().filter(|tool| tool.package.is_server()) {
        match offered(tool, &Surface::Terminal, wanted.timeout, host, called_off).await {
            Ok(actions) => {
                let declared: Vec<_> =
                    tool.package.actions.iter().map(|one| one.name.clone()).collect();
                let more = actions.into_iter().filter(|one| !declared.contains(&one.name));
                tool.package.actions.extend(more);
            }
            Err(error) if is_alone => {
                let failure = failed(&error, &Blocked::of(&error), tool, wanted.place(tool));
                return Err(Unmade { failure, error: Some(Box::new(error)) });
            }
            Err(error) => {
                let id = tool.package.canonical_id();
                unasked.push(line(&format!("`{id}` was not asked what it has: {error}")));
            }
        }
    }
    Ok(unasked)
}

/// What a server has to be called, as it says itself.
pub(in crate::commands) async fn offered(
    tool: &Tool,
    surface: &Surface,
    within: Option<Duration>,
    host: &Host,
    called_off: &CancellationToken,
) -> Result<Vec<Action>, CallError> {
    match &tool.surface {
        // Another than the approved one would not be called.
        Some(approved) => host::actions_of(approved, Instant::now() + READING).await,
        None => {
            let found = host.discover(tool, surface, within, called_off).await;
            found.map(|found| found.actions)
        }
    }
}

/// Whether a tool has the action of a name, or any where none is named.
pub(super) fn has(tool: &Tool, name: Option<&str>) -> bool {
    match name {
        Some(name) => tool.action(name).is_some(),
        None => !tool.package.actions.is_empty(),
    }
}

/// The tool that is meant, and the name of its action. Where there is none, it is told which servers could not be asked.
pub(super) fn choose<'t>(
    found: &'t Found,
    name: Option<&str>,
    unasked: &[String],
) -> Result<(&'t Tool, String), Unmade> {
    let tools = &found.tools;
    let Some(name) = name else { return the_only(found, unasked) };
    let matching: Vec<_> = tools.iter().filter(|tool| tool.action(name).is_some()).collect();
    match matching.as_slice() {
        [tool] => Ok((tool, name.to_owned())),
        [] => {
            if let Some(tool) = tools.iter().find(|tool| tool.is_called(name)) {
                let message = format!("`{name}` has more than one action");
                return Err(several(message, &actions(tool)));
            }
            let known: Vec<_> = tools.iter().flat_map(actions).collect();
            let message = format!("unknown tool: {name}");
            let mut failure = Failure::new(Exit::NotFound, line(&message));
            if let Some(near) = suggest(name, known.iter().map(String::as_str)) {
                failure = failure.hint(format!("did you mean `{}`?", line(near)));
            }
            if !known.is_empty() {
                let is = if known.len() == 1 { "is" } else { "are" };
                failure = failure.hint(format!("there {is} {}", line(&known.join(", "))));
            }
            failure = unasked.iter().fold(failure, Failure::hint);
            let error = CallError::new(Kind::Unknown, message).with("actions", known);
            Err(Unmade { failure, error: Some(Box::new(error)) })
        }
        several => {
            let message = format!("`{}` is in more than one package", line(name));
            Err(Failure::new(Exit::Conflict, message).hint(name_one(found, several)).into())
        }
    }
}

/// How one of several tools is named: by its file, or, where they share one, by its id.
fn name_one(found: &Found, several: &[&Tool]) -> String {
    let is_meant = |tool: &&Tool| several.iter().any(|one| std::ptr::eq(*one, *tool));
    let places = found.tools.iter().zip(&found.files).filter(|(tool, _)| is_meant(tool));
    let mut files: Vec<&Path> = places.map(|(_, file)| file.as_path()).collect();
    files.dedup();
    if files.len() == several.len() {
        let words = files.iter().map(|file| shell::word(&file.display().to_string()));
        format!("name one with --from: {}", words.collect::<Vec<_>>().join(" or "))
    } else {
        let ids = several.iter().map(|tool| shell::word(&tool.package.canonical_id()));
        format!("name one of {}", ids.collect::<Vec<_>>().join(", "))
    }
}

/// The only action that there is, where none was named. A server that was not asked may have others.
fn the_only<'t>(found: &'t Found, unasked: &[String]) -> Result<(&'t Tool, String), Unmade> {
    let tools = &found.tools;
    let mut all: Vec<_> = tools
        .iter()
        .flat_map(|tool| actions(tool).into_iter().map(move |one| (tool, one)))
        .collect();
    let is_silent = |tool: &&Tool| tool.package.actions.is_empty() && tool.package.is_server();
    let silent: Vec<_> = tools.iter().filter(is_silent).collect();
    match all.as_slice() {
        [_] if silent.is_empty() => Ok(all.remove(0)),
        [] if silent.len() > 1 => {
            let failure = Failure::invalid("none of the servers here says what can be called");
            let failure = unasked.iter().fold(failure, Failure::hint);
            Err(failure.hint(name_one(found, &silent)).into())
        }
        [] => Err(Failure::invalid("it does not say what can be called")
            .hint("name an action")
            .into()),
        all => {
            let mut names: Vec<_> = all.iter().map(|(_, action)| action.clone()).collect();
            let ids = silent.iter().map(|tool| tool.package.canonical_id());
            names.extend(ids.map(|id| format!("what `{id}` has")));
            Err(several("there is more than one action".to_owned(), &names))
        }
    }
}

/// Nobody can tell which of several actions is meant.
fn several(message: String, actions: &[String]) -> Unmade {
    let hint = format!("name one: {}", line(&actions.join(", ")));
    let failure = Failure::invalid(line(&message)).hint(hint);
    let error = CallError::new(Kind::BadInput, message).with("actions", actions);
    Unmade { failure, error: Some(Box::new(error)) }
}

fn actions(tool: &Tool) -> Vec<String> {
    tool.package.actions.iter().map(|action| action.name.clone()).collect()
}

/// The input as it was typed, or from where it was said to be.
fn read_input(typed: Option<&str>) -> Result<String, Failure> {
    match typed {
        None => Ok("{}".to_owned()),
        Some("-") => read(&mut std::io::stdin().lock(), "standard input"),
        Some(text) => match text.strip_prefix('@') {
            Some("") => {
                Err(Failure::invalid("`@` names no file").hint("@FILE reads the input from it"))
            }
            Some(path) => {
                let mut file = std::fs::File::open(path)
                    .map_err(|error| Failure::unread(line(path), error))?;
                read(&mut file, &format!("`{}`", line(path)))
            }
            None => Ok(text.to_owned()),
        },
    }
}

/// Reads text, which some programs begin with a byte order mark.
fn read(reader: &mut dyn Read, name: &str) -> Result<String, Failure> {
    /// More is refused by the host in any case.
    const MOST: u64 = 16 << 20;
    let mut bytes = Vec::new();
    reader.take(MOST).read_to_end(&mut bytes).map_err(|error| {
        let exit = match error.kind() {
            ErrorKind::IsADirectory => Exit::Invalid,
            _ => Exit::Unavailable,
        };
        Failure::new(exit, format!("failed to read {name}")).cause(error)
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|error| Failure::invalid(format!("{name} is no UTF-8 text")).cause(error))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
