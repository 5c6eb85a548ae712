//! Entries of a client's file replaced by ours and put back, added and taken out, with the rest of the file as it was.
//!
//! An entry of ours starts `haft mcp`, for one package (`--only ID`) or for all that is installed. What a client keeps
//! beside the way to a server (rules, times, notes) stays in the entry.

mod json;
mod layout;
mod toml;

use crate::config::{Entry, Launch, Unreadable};

/// The word after the program in an entry of ours.
const VERB: &str = "mcp";

/// The word before the package, where one alone is served.
const ONLY: &str = "--only";

/// The word before the profile, where one is named.
const PROFILE: &str = "--profile";

/// The word before the home, where it is named.
const HOME: &str = "--home";

/// Keys of an entry that say how a server is reached; everything else is the client's own.
const OF_LAUNCH: [&str; 21] = [
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "type",
    "transport",
    "envFile",
    "headersHelper",
    "env_vars",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "dev",
    "oauth",
    "gallery",
    "version",
    "headers_helper",
];

/// What the servers of a file are below, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON, perhaps with comments; the servers are below those keys.
    Json(crate::config::Path),
    /// TOML.
    Toml,
}

/// An entry that starts this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ours {
    /// The name of the entry.
    pub name: String,
    /// The program that is started: this one.
    pub program: String,
    /// What it serves.
    pub serves: Serves,
    /// The home that it is installed in, where that is not the usual one.
    pub home: Option<String>,
}

/// What an entry of ours serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serves {
    /// One package, by its id.
    Package(String),
    /// What is installed, or as much of it as a profile has.
    Installed {
        /// The profile.
        profile: Option<String>,
    },
}

impl Ours {
    /// The words after the program.
    pub fn args(&self) -> Vec<&str> {
        let mut args = vec![VERB];
        match &self.serves {
            Serves::Package(id) => args.extend([ONLY, id]),
            Serves::Installed { profile: Some(profile) } => args.extend([PROFILE, profile]),
            Serves::Installed { profile: None } => {}
        }
        if let Some(home) = &self.home {
            args.extend([HOME, home]);
        }
        args
    }

    /// Whether an entry starts exactly this.
    pub fn is_started_by(&self, entry: &Entry) -> bool {
        let Launch::Command { command, args, .. } = &entry.launch else { return false };
        *command == self.program && *args == self.args()
    }
}

/// What an entry serves, where it is one of ours.
pub fn serves(entry: &Entry) -> Option<Serves> {
    let Launch::Command { command, args, .. } = &entry.launch else { return None };
    let program = command.rsplit(['/', '\\']).next()?;
    // It is called so by a link, too.
    let is_this = program.starts_with("haft") || matches!(program, "mcp" | "mcp.exe");
    let (verb, options) = args.split_first()?;
    if !is_this || verb != VERB || options.len() % 2 != 0 {
        return None;
    }
    let (mut id, mut profile, mut home) = (None, None, None);
    for option in options.chunks_exact(2) {
        let place = match option[0].as_str() {
            ONLY => &mut id,
            PROFILE => &mut profile,
            HOME => &mut home,
            _ => return None,
        };
        // What is said twice is not of ours.
        if place.replace(option[1].clone()).is_some() {
            return None;
        }
    }
    match (id, profile) {
        (Some(id), None) => Some(Serves::Package(id)),
        (None, profile) => Some(Serves::Installed { profile }),
        (Some(_), Some(_)) => None,
    }
}

/// The text of a file in which entries of ours stand for others. One that is not there is left out.
///
/// # Errors
/// Where the file is broken.
pub fn replaced(text: &str, form: &Form, entries: &[Ours]) -> Result<String, Unreadable> {
    match form {
        Form::Json(path) => json::replaced(text, path, entries),
        Form::Toml => toml::replaced(text, entries),
    }
}

/// Entries of a file as they are, each as a document of its own, from which it can be [`restored`].
///
/// # Errors
/// Where the file is broken.
pub fn taken(
    text: &str,
    form: &Form,
    names: &[String],
) -> Result<Vec<(String, String)>, Unreadable> {
    match form {
        Form::Json(path) => json::taken(text, path, names),
        Form::Toml => toml::taken(text, names),
    }
}

/// The text of a file in which an entry is again what it was when it was [`taken`].
///
/// # Errors
/// Where one of both is broken.
pub fn restored(text: &str, taken: &str, form: &Form, name: &str) -> Result<String, Unreadable> {
    match form {
        Form::Json(path) => json::restored(text, taken, path, name),
        Form::Toml => toml::restored(text, taken, name),
    }
}

/// The text of a file with one more entry, after those that are there. A file that says nothing yet is one of ours alone.
///
/// # Errors
/// Where the file is broken, or something else stands where servers are.
pub fn added(text: &str, form: &Form, ours: &Ours) -> Result<String, Unreadable> {
    match form {
        Form::Json(path) => json::added(text, path, ours),
        Form::Toml => toml::added(text, ours),
    }
}

/// The text of a file without an entry: what [`added`] put there is gone again.
///
/// # Errors
/// Where the file is broken.
pub fn without(text: &str, form: &Form, name: &str) -> Result<String, Unreadable> {
    match form {
        Form::Json(path) => json::without(text, path, name),
        Form::Toml => toml::without(text, name),
    }
}

/// The text with other words in some places.
fn edited(text: &str, mut edits: Vec<(std::ops::Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut whole = String::with_capacity(text.len());
    let mut at = 0;
    for (range, words) in edits {
        whole.push_str(&text[at..range.start]);
        whole.push_str(&words);
        at = range.end;
    }
    whole.push_str(&text[at..]);
    whole
}

/// How lines end in a text.
fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests;
