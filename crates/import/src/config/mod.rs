//! The settings of a client: which servers it starts or reaches, and how.
//!
//! | file | where its servers are |
//! |---|---|
//! | Claude Desktop, Claude Code, Cursor, Gemini CLI | `mcpServers` |
//! | VS Code | `servers`, or `mcp.servers`, with `inputs` beside them |
//! | Codex | `[mcp_servers.NAME]`, in TOML |

mod json;
mod toml;

use std::fmt;

pub(crate) use json::tree;
pub(crate) use toml::{TABLE, broken};

/// The most bytes of a file that is read; one client keeps its history beside its settings.
pub const MAX_FILE: usize = 32 * 1024 * 1024;
/// The most servers of a file.
pub const MAX_ENTRIES: usize = 256;
/// The most arguments, variables or headers of a server.
pub const MAX_PARTS: usize = 256;
/// The most bytes of a name, and of a value.
pub const MAX_NAME: usize = 128;
/// The most bytes of one value.
pub const MAX_VALUE: usize = 32 * 1024;

/// The settings of a client, as far as they speak of servers.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The servers, in the order of the file.
    pub entries: Vec<Found>,
    /// What the client asks its owner for.
    pub inputs: Vec<AskedFor>,
}

/// A server of a file, or why it is none that can be imported.
#[derive(Clone, Debug)]
pub struct Found {
    /// What it is called there.
    pub name: String,
    /// What it is.
    pub entry: Result<Entry, String>,
}

/// How a client starts or reaches a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which way.
    pub launch: Launch,
    /// Whether the client uses it.
    pub enabled: bool,
    /// Keys that nothing here stands for.
    pub unknown: Vec<String>,
}

/// Which way a server is started or reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Launch {
    /// A program on this machine.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that are set for it.
        env: Vec<(String, String)>,
        /// The folder it starts in.
        cwd: Option<String>,
    },
    /// A server on the network.
    Remote {
        /// Its address.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
        /// Whether it is spoken to in the oldest way.
        transport: Transport,
    },
}

/// The values may be secrets, so only names are shown.
impl fmt::Debug for Launch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| -> Vec<String> {
            pairs.iter().map(|(name, _)| name.clone()).collect()
        };
        match self {
            Self::Command { command, env, .. } => out
                .debug_struct("Command")
                .field("command", command)
                .field("env", &names(env))
                .finish_non_exhaustive(),
            Self::Remote { headers, transport, .. } => out
                .debug_struct("Remote")
                .field("headers", &names(headers))
                .field("transport", transport)
                .finish_non_exhaustive(),
        }
    }
}

/// How a server on the network is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Every message is a request.
    Http,
    /// Events over one address, messages to another.
    Sse,
}

/// Something that a client asks its owner for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedFor {
    /// What it is called.
    pub id: String,
    /// What the owner is told.
    pub description: Option<String>,
    /// Whether it must not be shown.
    pub password: bool,
    /// The value when the owner gives none.
    pub default: Option<String>,
}

/// Why a file is not read as settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It has more bytes than are read.
    TooLarge,
    /// It is no text.
    NoText,
    /// It is broken, and where.
    Broken {
        /// What is wrong.
        what: String,
        /// The line, where that is known.
        line: Option<usize>,
    },
    /// There are more servers than are read.
    TooMany(usize),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => {
                write!(out, "it has more than {MAX_FILE} bytes, and no more are read")
            }
            Self::NoText => out.write_str("it is no text in UTF-8"),
            Self::Broken { what, line: Some(line) } => write!(out, "{what} (line {line})"),
            Self::Broken { what, line: None } => out.write_str(what),
            Self::TooMany(count) => {
                write!(out, "it names {count} servers, and at most {MAX_ENTRIES} are read")
            }
        }
    }
}

impl std::error::Error for Unreadable {}

/// The keys below which the servers of a file are.
pub type Path = Vec<String>;

/// Where the servers are in a file that is JSON: the first of these that is there.
pub const USUAL: [&[&str]; 3] = [&["mcpServers"], &["servers"], &["mcp", "servers"]];

/// Reads the servers of a JSON file (comments and last commas are put up with) below those keys.
///
/// # Errors
/// Where the file is too large, no text, or broken.
pub fn read_json(bytes: &[u8], path: &[String]) -> Result<Config, Unreadable> {
    json::read(text_of(bytes)?, path)
}

/// Reads the servers of a TOML file, below `mcp_servers`.
///
/// # Errors
/// Where the file is too large, no text, or broken.
pub fn read_toml(bytes: &[u8]) -> Result<Config, Unreadable> {
    toml::read(text_of(bytes)?)
}

/// The text of a file that is not too large.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, Unreadable> {
    if bytes.len() > MAX_FILE {
        return Err(Unreadable::TooLarge);
    }
    std::str::from_utf8(bytes).map_err(|_| Unreadable::NoText)
}

/// Parts of a server that several forms of settings have.
#[derive(Default)]
struct Parts {
    command: Option<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    cwd: Option<String>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    sse: bool,
    off: bool,
    unknown: Vec<String>,
}

impl Parts {
    /// The server they make up, or why they make up none.
    fn entry(self) -> Result<Entry, String> {
        let Self { command, args, env, cwd, url, headers, sse, off, unknown } = self;
        check_count(&args, "arguments")?;
        check_count(&env, "variables")?;
        check_count(&headers, "headers")?;
        let named = env.iter().chain(&headers);
        let texts = args.iter().chain(named.flat_map(|(name, value)| [name, value]));
        if texts.chain(&command).chain(&cwd).chain(&url).any(|text| text.len() > MAX_VALUE) {
            return Err(format!("one of its values has more than {MAX_VALUE} bytes"));
        }
        let launch = match (command.filter(|command| !command.is_empty()), url) {
            (Some(command), None) => Launch::Command { command, args, env, cwd },
            (None, Some(url)) => {
                let transport = if sse { Transport::Sse } else { Transport::Http };
                Launch::Remote { url, headers, transport }
            }
            (Some(_), Some(_)) => return Err("it has both a command and an address".to_owned()),
            (None, None) => return Err("it has neither a command nor an address".to_owned()),
        };
        Ok(Entry { launch, enabled: !off, unknown })
    }
}

fn check_count<T>(parts: &[T], noun: &str) -> Result<(), String> {
    if parts.len() > MAX_PARTS {
        return Err(format!("it has {} {noun}, and at most {MAX_PARTS} are read", parts.len()));
    }
    Ok(())
}

/// Whether a name can be one of a server.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(format!("its name is empty, longer than {MAX_NAME} bytes, or no plain text"));
    }
    Ok(())
}
