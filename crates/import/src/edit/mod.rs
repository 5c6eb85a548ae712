//! Entries of a client's file replaced by ours, and put back, with the rest of the file as it was.
//!
//! An entry of ours starts `haft mcp --only ID`. What a client keeps beside the way to a server (rules, times, notes) stays
//! in the entry.

mod json;
mod toml;

use crate::config::{Entry, Launch, Unreadable};

/// The words after the program in an entry of ours.
const WORDS: [&str; 2] = ["mcp", "--only"];

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

/// An entry that takes the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ours {
    /// The name of the entry.
    pub name: String,
    /// The program that is started: this one.
    pub program: String,
    /// The package that it serves.
    pub id: String,
    /// The home that it is installed in, where that is not the usual one.
    pub home: Option<String>,
}

impl Ours {
    fn args(&self) -> Vec<&str> {
        let mut args = vec![WORDS[0], WORDS[1], self.id.as_str()];
        if let Some(home) = &self.home {
            args.extend([HOME, home.as_str()]);
        }
        args
    }
}

/// The package that an entry serves, where it is one of ours.
pub fn served(entry: &Entry) -> Option<&str> {
    let Launch::Command { command, args, .. } = &entry.launch else { return None };
    let program = command.rsplit(['/', '\\']).next()?;
    match args.as_slice() {
        [first, second, id, rest @ ..]
            if [first, second] == WORDS && program.starts_with("haft") =>
        {
            (rest.is_empty() || rest.first().is_some_and(|word| word == HOME)).then_some(id)
        }
        _ => None,
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

#[cfg(test)]
mod tests;
