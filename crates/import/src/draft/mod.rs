//! A package made of what somebody else's settings or document say, before anybody agreed to it.
//!
//! | what it is | the dialect that carries it whole |
//! |---|---|
//! | a program on this machine | `mcpb`, started by its `mcp_config` |
//! | a package of npm or `PyPI`, an image | `server-json`, `packages` |
//! | a server on the network | `server-json`, `remotes` |
//! | operations of an OpenAPI document | `install-manifest` |
//!
//! An install-manifest would demand a smoke test, which no settings have and nobody can make up.

pub(crate) mod asked;
mod bundle;
pub(crate) mod command;
mod place;
mod remote;
pub(crate) use remote::{is_private, origin};
mod server;

use std::fmt::Write as _;

use manifest::document::{Options, read};
use manifest::model::Package;
use package::contents::Contents;
use package::refusal::ReadError;
use serde_json::Value;
use sha2::{Digest, Sha256};
use vault::Secret;

use crate::config::{AskedFor, Entry, Launch};
use crate::draft::asked::Asked;
use crate::draft::command::Runner;

pub use place::{Kind, Machine};

/// A package that could be installed.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What it is called where it comes from.
    pub name: String,
    /// What it says about itself, read back by our own reader.
    pub package: Package,
    /// Its files.
    pub files: Vec<(String, Vec<u8>)>,
    /// Secrets that stood where it comes from, and stand in none of its files.
    pub secrets: Vec<(String, Secret)>,
    /// Folders and files that it has to read to start.
    pub reads: Vec<String>,
    /// Its own host, where that is on this machine or a private network: only the owner's word leads there.
    pub private_host: Option<String>,
    /// What is not carried, or should be known.
    pub warnings: Vec<String>,
}

/// The files of a draft, to be packed.
#[derive(Clone, Copy, Debug)]
pub struct Files<'d>(pub &'d [(String, Vec<u8>)]);

impl Files<'_> {
    fn get(&self, path: &str) -> Option<&Vec<u8>> {
        self.0.iter().find(|(name, _)| name == path).map(|(_, bytes)| bytes)
    }
}

impl Contents for Files<'_> {
    fn paths(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn size(&self, path: &str) -> Option<u64> {
        self.get(path).map(|bytes| bytes.len() as u64)
    }

    fn is_executable(&self, _path: &str) -> bool {
        false
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let missing = || ReadError::Disk(std::io::ErrorKind::NotFound.into());
        self.get(path).cloned().ok_or_else(missing)
    }
}

/// What is known of the place that settings come from.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// What the client asks its owner for.
    pub inputs: &'a [AskedFor],
    /// The folder that the client starts its servers in, where it has one of its own.
    pub folder: Option<&'a str>,
    /// The files of this machine.
    pub machine: &'a dyn Machine,
}

/// Makes a package of a server of somebody's settings, under a name that a package can have.
///
/// # Errors
/// Says why it cannot be carried.
pub fn of_entry(name: &str, entry: &Entry, around: &Around<'_>) -> Result<Draft, String> {
    let mut warnings = Vec::new();
    if !entry.unknown.is_empty() {
        let keys: Vec<_> = entry.unknown.iter().map(|key| format!("`{key}`")).collect();
        warnings.push(format!("stays with the client alone: {}", keys.join(", ")));
    }
    let asked = Asked::new(around);
    let mut draft = match &entry.launch {
        Launch::Remote { url, headers, transport } => {
            remote::draft(name, url, headers, *transport, asked)
        }
        Launch::Command { command, args, env, cwd } => match command::runner(command, args, env)? {
            Runner::Registry(wanted) => server::draft(name, wanted, asked),
            Runner::Remote { url, headers, transport } => {
                remote::draft(name, &url, &headers, transport, asked)
            }
            Runner::Program { command, args } => {
                let started = bundle::Started { command, args, env, cwd: cwd.as_deref() };
                bundle::draft(name, &started, asked, around)
            }
        },
    }?;
    warnings.append(&mut draft.warnings);
    draft.warnings = warnings;
    Ok(draft)
}

/// The longest name of a package that is made.
const LONGEST_NAME: usize = 60;

/// A name as a package can have it: letters, digits, `.`, `_` and `-`.
pub fn plain_name(name: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' }
    };
    let mapped: String = name.chars().map(plain).take(LONGEST_NAME).collect();
    let mut whole = String::new();
    for letter in mapped.chars() {
        if !(letter == '-' && whole.ends_with('-')) {
            whole.push(letter);
        }
    }
    let trimmed = whole.trim_matches(|letter: char| "._-".contains(letter));
    if trimmed.is_empty() { "server".to_owned() } else { trimmed.to_owned() }
}

/// How the version of a dialect takes what follows from the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// As build metadata.
    Build,
    /// As a pre-release, where there is no metadata.
    PreRelease,
}

/// A document with its version at a place, which follows from all that it says: other settings are another version.
pub(crate) fn versioned(mut document: Value, core: &str, place: &str, mark: Mark) -> Value {
    let digest = Sha256::digest(document.to_string().as_bytes());
    let mut short = String::new();
    for byte in &digest[..6] {
        let _ = write!(short, "{byte:02x}");
    }
    // A part of a pre-release that is a number must not begin with a zero, so it is none.
    let version = match mark {
        Mark::Build => format!("{core}+{short}"),
        Mark::PreRelease => format!("{core}-import.x{short}"),
    };
    if let Some(place) = document.pointer_mut(place) {
        *place = version.into();
    }
    document
}

/// A document as the text of a manifest.
pub(crate) fn bytes_of(document: &Value) -> Vec<u8> {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text.into_bytes()
}

/// What a manifest that was made says about itself, or what is wrong with it.
pub(crate) fn read_back(bytes: &[u8]) -> Result<Package, String> {
    match read(bytes, &Options::default()) {
        Ok((_, mut packages)) if packages.len() == 1 => Ok(packages.remove(0)),
        Ok(_) => Err("it would be no single package".to_owned()),
        Err(report) => {
            let errors = report.findings.iter();
            let errors = errors.filter(|one| one.severity == manifest::finding::Severity::Error);
            let words: Vec<_> = errors.take(3).map(|one| one.message.clone()).collect();
            Err(format!("the package made of it would not be valid: {}", words.join("; ")))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
