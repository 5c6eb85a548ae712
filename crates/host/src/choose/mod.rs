//! Which implementation of a tool runs here, and why the others do not.

use std::ffi::OsStr;
use std::sync::LazyLock;

use manifest::dialect::Dialect;
use manifest::model::{Acquire, Action, Entry, Implementation, Package};

use crate::brought::Brought;
use crate::error::{CallError, Kind};

/// What this machine has.
pub(crate) struct Machine<'m> {
    /// Its platform, as packages name it.
    pub(crate) platform: &'m str,
    /// Whether a program of that name can be found.
    pub(crate) has_program: &'m dyn Fn(&OsStr) -> bool,
    /// What was acquired for the tool, where it is installed.
    pub(crate) brought: Option<&'m Brought>,
}

/// This machine's platform, as packages name it; empty where they have no name for it.
pub(crate) const PLATFORM: &str = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
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
pub(crate) static CHAIN: LazyLock<Implementation> = LazyLock::new(|| Implementation {
    id: "chain".to_owned(),
    language: None,
    runtime: None,
    platforms: Vec::new(),
    entry: Entry::Undeclared,
    timeout_ms: Some(u64::MAX),
    requirements: None,
});

/// Chooses the first implementation that runs here.
pub(crate) fn implementation<'p>(
    package: &'p Package,
    action: &Action,
    machine: &Machine<'_>,
) -> Result<&'p Implementation, CallError> {
    let mut not_chosen = Vec::new();
    for one in &package.implementations {
        let has_own = matches!(package.dialect, Dialect::Agentcli | Dialect::Skill);
        if has_own && one.id != action.name {
            continue;
        }
        if is_in_an_image(package, one) {
            return Ok(one);
        }
        match why_not_yet(package, one, machine).or_else(|| why_not(package, one, machine)) {
            None => return Ok(one),
            Some(reason) => not_chosen.push(format!("`{}` {reason}", one.id)),
        }
    }
    let message = match not_chosen.as_slice() {
        [] => format!("`{}` does not say how it is run", package.id),
        reasons => format!("nothing of `{}` runs here: {}", package.id, reasons.join("; ")),
    };
    Err(CallError::new(Kind::Unavailable, message).with("implementations", not_chosen))
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
fn why_not_yet(package: &Package, one: &Implementation, machine: &Machine<'_>) -> Option<String> {
    if package.dialect != Dialect::ServerJson {
        return None;
    }
    if machine.brought.is_some() {
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

/// Why an implementation does not run here.
fn why_not(package: &Package, one: &Implementation, machine: &Machine<'_>) -> Option<String> {
    if !one.platforms.is_empty() && !one.platforms.iter().any(|name| name == machine.platform) {
        return Some(format!("is for {}, this is {}", one.platforms.join(", "), machine.platform));
    }
    let program = match &one.entry {
        Entry::Argv { argv, .. } | Entry::McpStdio { argv, .. } => {
            let started = machine.brought.map(|one| one.started(argv, &package.acquire));
            started.as_ref().unwrap_or(argv).first().cloned()
        }
        Entry::NodeModule { .. } => Some("node".to_owned()),
        Entry::PythonCallable { .. } => Some("python3".to_owned()),
        Entry::Undeclared => return Some("does not say how it is run".to_owned()),
        _ => None,
    };
    // A path is looked at when it is started, from the folder it is meant in, and a template when it is filled in.
    let program = program.filter(|program| !program.contains('/') && !program.contains("${"))?;
    (!(machine.has_program)(OsStr::new(&program)))
        .then(|| format!("needs `{program}`, which is not here"))
}
