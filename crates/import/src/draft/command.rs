//! What a command line starts: a package that has to be had first, a server elsewhere, or a program that is here.

use crate::config::Transport;
use crate::secret::{is_secret_name, is_secret_value};

/// What is behind a command.
#[derive(Debug)]
pub(crate) enum Runner {
    /// Something that a package manager or an engine fetches.
    Registry(Wanted),
    /// A server elsewhere, behind a program that only passes messages on.
    Remote { url: String, headers: Vec<(String, String)>, transport: Transport },
    /// A program of this machine.
    Program { command: String, args: Vec<String> },
}

/// A package that has to be had first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) manager: Manager,
    pub(crate) package: String,
    pub(crate) version: Option<String>,
    /// Arguments before the package.
    pub(crate) before: Vec<String>,
    /// Arguments after it.
    pub(crate) after: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) warnings: Vec<String>,
}

/// Who has a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manager {
    Npm,
    Pypi,
    Oci,
}

impl Manager {
    pub(crate) fn registry_type(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Oci => "oci",
        }
    }
}

type Pairs = [(String, String)];

/// What a command line starts, or why that cannot be carried.
pub(crate) fn runner(command: &str, args: &[String], env: &Pairs) -> Result<Runner, String> {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let name = name.strip_suffix(".cmd").or(name.strip_suffix(".exe")).unwrap_or(name);
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match (name, words.as_slice()) {
        // A shell of Windows around the command that is meant.
        ("cmd", ["/c" | "/C", inner, ..]) => runner(inner, &args[2..], env),
        ("npx" | "bunx" | "pnpx", _) => npx(args, env),
        ("npm", ["exec", ..]) | ("pnpm", ["dlx", ..]) => npx(&args[1..], env),
        ("uvx", _) => uvx(args, env).map(Runner::Registry),
        ("uv", ["tool", "run", ..]) => uvx(&args[2..], env).map(Runner::Registry),
        ("pipx", ["run", ..]) => pipx(&args[1..], env).map(Runner::Registry),
        ("docker" | "podman", ["run", ..]) => docker(&args[1..], env).map(Runner::Registry),
        ("docker" | "podman", ["container", "run", ..]) => {
            docker(&args[2..], env).map(Runner::Registry)
        }
        _ => Ok(Runner::Program { command: command.to_owned(), args: args.to_vec() }),
    }
}

/// Refuses an argument that holds a secret, by the option before it or by itself.
pub(crate) fn check_argument(argument: &str, before: Option<&String>) -> Result<(), String> {
    let refuse = |what: &str| {
        Err(format!(
            "a secret stands in its arguments ({what}), which other processes can read; give it in `env`"
        ))
    };
    if is_secret_value(argument) {
        return refuse("by its look");
    }
    let is_value =
        |value: &str| !value.is_empty() && !value.contains("${") && !value.starts_with('-');
    if let Some((option, value)) = argument.split_once('=')
        && is_secret_name(option)
        && !is_path_like(value)
        && is_value(value)
    {
        return refuse(&format!("`{option}`"));
    }
    if let Some((header, value)) = argument.split_once(':')
        && ["authorization", "x-api-key", "cookie"]
            .contains(&header.trim().to_ascii_lowercase().as_str())
        && is_value(value.trim())
    {
        return refuse(&format!("`{header}`"));
    }
    if let Some(option) = before
        && option.starts_with('-')
        && !option.contains('=')
        && is_secret_name(option)
        && is_value(argument)
        && !is_path_like(argument)
    {
        return refuse(&format!("`{option}`"));
    }
    Ok(())
}

fn is_path_like(value: &str) -> bool {
    value.starts_with(['/', '.', '~']) || value.bytes().all(|byte| byte.is_ascii_digit())
}

fn npx(args: &[String], env: &Pairs) -> Result<Runner, String> {
    let mut before = Vec::new();
    let mut named = None;
    let mut rest = args.iter();
    let spec = loop {
        let Some(word) = rest.next() else { return Err("`npx` is told no package".to_owned()) };
        match word.as_str() {
            "-y" | "--yes" | "-q" | "--quiet" | "--prefer-offline" | "--prefer-online" | "--"
            | "--bun" => {}
            "-p" | "--package" => named = rest.next().cloned(),
            word if word.starts_with("--package=") => {
                named = word.strip_prefix("--package=").map(str::to_owned);
            }
            word if word.starts_with('-') => {
                return Err(format!("`npx` is told `{word}`, which is not carried"));
            }
            _ if named.is_some() => {
                before.push("-p".to_owned());
                break word.clone();
            }
            _ => break word.clone(),
        }
    };
    let mut after: Vec<String> = rest.cloned().collect();
    let spec = match named {
        // The package, and the command of it that is meant.
        Some(package) => {
            after.insert(0, spec);
            package
        }
        None => spec,
    };
    let (package, version) = npm_spec(&spec)?;
    if package == "mcp-remote" && before.is_empty() {
        return passed_on(&after);
    }
    let (version, warnings) = pinned(&package, version.filter(|version| version != "latest"));
    let manager = Manager::Npm;
    Ok(Runner::Registry(Wanted {
        manager,
        package,
        version,
        before,
        after,
        env: env.to_vec(),
        warnings,
    }))
}

/// A package as npm is asked for one: a name, or a name and a version.
fn npm_spec(spec: &str) -> Result<(String, Option<String>), String> {
    let (name, version) = match spec.get(1..).and_then(|rest| rest.rfind('@')) {
        Some(at) => (&spec[..=at], Some(spec[at + 2..].to_owned()).filter(|text| !text.is_empty())),
        None => (spec, None),
    };
    let scoped = name.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte))
    };
    let is_name = match scoped {
        Some((scope, name)) => is_part(scope) && is_part(name),
        None => is_part(name),
    };
    let is_version = |text: &String| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-^~*".contains(&byte))
            && !text.starts_with('-')
    };
    if !is_name || !version.as_ref().is_none_or(is_version) {
        return Err(format!("`{spec}` is no plain name of a package"));
    }
    Ok((name.to_owned(), version))
}

/// A version, and what is to be said where there is none.
fn pinned(package: &str, version: Option<String>) -> (Option<String>, Vec<String>) {
    match version {
        Some(version) => (Some(version), Vec::new()),
        None => {
            let message = format!(
                "no version of `{package}` is named: the one that is found when it is installed is kept"
            );
            (None, vec![message])
        }
    }
}

/// A server elsewhere, as `mcp-remote` is told of it.
fn passed_on(args: &[String]) -> Result<Runner, String> {
    let mut rest = args.iter();
    let mut url = None;
    let mut headers = Vec::new();
    let mut transport = Transport::Http;
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--header" => {
                let header = rest.next().and_then(|text| text.split_once(':'));
                let (name, value) = header.ok_or("`mcp-remote` is told a header that is none")?;
                headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            "--transport" => {
                let way = rest.next().map(String::as_str).unwrap_or_default();
                transport = if way.starts_with("sse") { Transport::Sse } else { Transport::Http };
            }
            "--debug" | "--silent" | "--allow-http" => {}
            word if word.starts_with('-') => {
                return Err(format!("`mcp-remote` is told `{word}`, which is not carried"));
            }
            _ if url.is_none() => url = Some(word.clone()),
            // The port of its own sign-in.
            word if word.bytes().all(|byte| byte.is_ascii_digit()) => {}
            word => return Err(format!("`mcp-remote` is told `{word}`, which is not carried")),
        }
    }
    let url = url.ok_or("`mcp-remote` is told no address")?;
    Ok(Runner::Remote { url, headers, transport })
}

fn uvx(args: &[String], env: &Pairs) -> Result<Wanted, String> {
    let mut rest = args.iter();
    let (mut from, mut dropped) = (None, Vec::new());
    let word = loop {
        let Some(word) = rest.next() else { return Err("`uvx` is told no package".to_owned()) };
        match word.as_str() {
            "--from" => from = rest.next().cloned(),
            word if word.starts_with("--from=") => {
                from = word.strip_prefix("--from=").map(str::to_owned);
            }
            "--python" | "-p" => dropped.extend(rest.next().map(|_| "--python".to_owned())),
            "-q" | "--quiet" | "--refresh" | "--no-progress" | "--" => {}
            word if word.starts_with('-') => {
                return Err(format!("`uvx` is told `{word}`, which is not carried"));
            }
            _ => break word.clone(),
        }
    };
    let after = rest.cloned().collect();
    let mut wanted = python(word, from, after, env)?;
    wanted.warnings.extend(dropped.iter().map(|option| format!("not carried: `{option}`")));
    Ok(wanted)
}

fn pipx(args: &[String], env: &Pairs) -> Result<Wanted, String> {
    let mut rest = args.iter();
    let mut from = None;
    let word = loop {
        let Some(word) = rest.next() else { return Err("`pipx` is told no package".to_owned()) };
        match word.as_str() {
            "--spec" => from = rest.next().cloned(),
            "-q" | "--quiet" | "--no-cache" | "--" => {}
            word if word.starts_with('-') => {
                return Err(format!("`pipx` is told `{word}`, which is not carried"));
            }
            _ => break word.clone(),
        }
    };
    python(word, from, rest.cloned().collect(), env)
}

/// A package of Python, the command of it that is meant, and its arguments.
fn python(
    word: String,
    from: Option<String>,
    after: Vec<String>,
    env: &Pairs,
) -> Result<Wanted, String> {
    let (spec, before, after) = match from {
        Some(from) => (from, vec!["--from".to_owned()], [vec![word], after].concat()),
        None => (word, Vec::new(), after),
    };
    let (package, version) = match spec.split_once("==").or_else(|| spec.split_once('@')) {
        Some((package, version)) => (package.trim(), Some(version.trim().to_owned())),
        None => (spec.as_str(), None),
    };
    let (name, extras) = package.split_once('[').unwrap_or((package, "]"));
    let is_plain = |text: &str, others: &[u8]| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
    };
    let is_name =
        name.starts_with(|first: char| first.is_ascii_alphanumeric()) && is_plain(name, b"._-");
    let is_version =
        |text: &String| !text.is_empty() && is_plain(text, b".+!_-") && !text.starts_with('-');
    if !is_name
        || !extras.strip_suffix(']').is_some_and(|extras| is_plain(extras, b"._-,"))
        || !version.as_ref().is_none_or(is_version)
    {
        return Err(format!(
            "`{spec}` is no plain name of a package with at most an exact version"
        ));
    }
    let (version, warnings) = pinned(name, version.filter(|version| version != "latest"));
    let (manager, package) = (Manager::Pypi, package.to_owned());
    Ok(Wanted { manager, package, version, before, after, env: env.to_vec(), warnings })
}

fn docker(args: &[String], env: &Pairs) -> Result<Wanted, String> {
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut rest = args.iter();
    let image = loop {
        let Some(word) = rest.next() else { return Err("the engine is told no image".to_owned()) };
        let mut set = |text: &str| match text.split_once('=') {
            Some((name, value)) => variables.push((name.to_owned(), value.to_owned())),
            None => {
                let given =
                    env.iter().find(|(name, _)| name == text).map(|(_, value)| value.clone());
                let value = given.unwrap_or_else(|| format!("${{{text}}}"));
                variables.push((text.to_owned(), value));
            }
        };
        match word.as_str() {
            "-i" | "--interactive" | "--rm" | "--init" | "-t" | "--tty" | "-it" | "-ti" => {}
            "-e" | "--env" => {
                set(rest.next().ok_or("the engine is told a variable that is none")?);
            }
            word if word.starts_with("--env=") => set(&word["--env=".len()..]),
            "--name" | "--pull" | "--platform" | "--label" | "-l" => {
                rest.next();
            }
            word if ["--name=", "--pull=", "--platform=", "--label="]
                .iter()
                .any(|start| word.starts_with(start)) => {}
            "-v" | "--volume" | "--mount" => {
                return Err("it mounts folders into its container; grant them after it is installed, and leave them out here".to_owned());
            }
            word if word.starts_with('-') => {
                return Err(format!("the engine is told `{word}`, which is not carried"));
            }
            _ => break word.clone(),
        }
    };
    let digest = image.split_once("@sha256:").map(|(_, digest)| digest);
    if !digest.is_some_and(|digest| {
        digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    }) {
        return Err(format!(
            "the image `{image}` is named without its digest, so nobody can say which one it is; write it as NAME@sha256:…"
        ));
    }
    let after = rest.cloned().collect();
    let (manager, before) = (Manager::Oci, Vec::new());
    Ok(Wanted {
        manager,
        package: image,
        version: None,
        before,
        after,
        env: variables,
        warnings: Vec::new(),
    })
}
