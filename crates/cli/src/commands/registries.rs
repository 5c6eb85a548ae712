//! `haft registry add|list|rm|login|logout|get`: the registries of others.

mod login;

pub(super) use login::login;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use registry::Yank;
use registry::client::list::Kind;
use registry::client::many::Place;
use registry::client::{FindError, Listed, Registries};
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::bar::Bar;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::remote::{self, Known, Offline, Which};
use crate::{output, owner};

#[derive(Args, Debug)]
#[command(
    after_help = "What is at the address is seen from how it ends: `.json` is a catalog, `.well-known/install-manifests.json` an index of manifests, a path of yours a folder or a file. What comes out of a catalog is untrusted.\n\nExamples:\n  haft registry add acme https://tools.acme.example --priority 10\n  haft registry add team ./shared/tools"
)]
pub(crate) struct AddArgs {
    /// What you call it: letters of ASCII, digits, `-`, `_` and `.`
    #[arg(value_name = "NAME")]
    name: String,
    /// Where it is: an address, or a path
    #[arg(value_name = "URL")]
    url: String,
    /// The higher, the earlier among equals
    #[arg(long, value_name = "N", default_value = "0", allow_hyphen_values = true)]
    priority: i32,
    /// What is there: registry, catalog, well-known, folder [default: seen from the address]
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
}

#[derive(Args, Debug)]
pub(crate) struct NamedArgs {
    /// The registry, as `haft registry list` shows it
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Args, Debug)]
#[command(
    after_help = "The package is checked against the digest that the registry describes, and kept; another time it is not fetched again. A download that breaks off is gone on with.\n\nExamples:\n  haft registry get demo.echo\n  haft registry get demo.echo@0.1.0 --registry acme -o echo.mcpkg"
)]
pub(crate) struct GetArgs {
    /// The tool, as ID or ID@VERSION
    #[arg(value_name = "ID")]
    id: String,
    /// Write to this file, or with `-` into a pipe [default: `ID-VERSION.mcpkg` in the current folder]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How far along, where no version is named: stable, or beta, which has what is stable too
    #[arg(long, value_name = "CHANNEL", value_parser = super::registry::channel)]
    channel: Option<registry::Channel>,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    offline: Offline,
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::named(name).ok_or_else(|| super::no_such("kind", name, &Kind::ALL.map(|(_, name)| name)))
}

pub(super) fn add(args: &AddArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let failed = |error| remote::list_failure(&error);
    let kind = args.kind.unwrap_or_else(|| seen(&args.url));
    let url = if kind.has_address(&args.url) {
        args.url.clone()
    } else {
        // It is meant from wherever a command is typed.
        let found = Path::new(&args.url).canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let what = if kind == Kind::Folder { "folder" } else { "file" };
                Failure::new(Exit::NotFound, format!("there is no {what} `{}`", args.url))
            }
            _ => Failure::new(Exit::Unavailable, format!("failed to find `{}`", args.url))
                .cause(error),
        })?;
        if kind == Kind::Folder && !found.is_dir() {
            let message = format!("`{}` is no folder", args.url);
            return Err(Failure::invalid(message).hint("a catalog is a file that ends in .json"));
        }
        found
            .into_os_string()
            .into_string()
            .map_err(|_| Failure::invalid(format!("the path of `{}` is no text", args.url)))?
    };
    let listed = Listed::new(&args.name, &url, kind, args.priority).map_err(failed)?;
    output::make_private_folder(home.path())?;
    owner::check_home(home)?;
    let added = listed.clone();
    Registries::change(home.path(), |list| list.add(added)).map_err(failed)?;
    if json_wanted {
        printer.json(&json!(listed))?;
    } else {
        let (name, url) = (line(&listed.name), line(&listed.url));
        printer.note(&format!("Added {name}: the {} at {url}", listed.kind.name()));
    }
    Ok(Exit::Done)
}

/// What is at an address, as far as it can be seen.
fn seen(url: &str) -> Kind {
    let is_json = Path::new(url).extension().is_some_and(|kind| kind == "json");
    match url.contains("://") {
        true if url.ends_with("/install-manifests.json") => Kind::WellKnown,
        true if is_json => Kind::Catalog,
        false if is_json => Kind::Catalog,
        false if is_path(url) => Kind::Folder,
        _ => Kind::Registry,
    }
}

/// Whether a folder is meant where no scheme is written: one that is there, or what no host is called like.
fn is_path(text: &str) -> bool {
    let first = text.split_once('/').map(|(first, _)| first);
    Path::new(text).is_dir()
        || first.is_some_and(|first| {
            first.starts_with(['.', '~']) || first.is_empty() || !first.contains(['.', ':'])
        })
}

pub(super) fn list(home: &Home, ask: Ask, json_wanted: bool, printer: Printer) -> Outcome {
    owner::check_home(home)?;
    let list = Registries::load(home.path()).map_err(|error| remote::list_failure(&error))?;
    let kept = tokens(home, ask)?;
    let has_token = |one: &Listed| {
        one.has_address() && remote::place(&one.url).is_ok_and(|place| kept.contains(&place))
    };
    if json_wanted {
        let one = |one: &Listed| {
            let mut document = json!(one);
            document["token"] = has_token(one).into();
            document
        };
        let all: Vec<Value> = list.iter().map(one).collect();
        printer.json(&json!({"registries": all}))?;
        return Ok(Exit::Done);
    }
    let width = list.iter().map(|one| one.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for one in list.iter() {
        let token = if has_token(one) { "  (token kept)" } else { "" };
        let (name, kind, url) = (&one.name, one.kind.name(), line(&one.url));
        text += &format!("{name:<width$}  {:>3}  {kind:<10}  {url}{token}\n", one.priority);
    }
    printer.result(&text)?;
    if text.is_empty() {
        printer.note("no registries are named; `haft registry add NAME URL` names one");
    }
    Ok(Exit::Done)
}

/// Whose tokens are kept. It needs no passphrase.
fn tokens(home: &Home, ask: Ask) -> Result<Vec<vault::Place>, Failure> {
    if !home.path().join("vault").exists() {
        return Ok(Vec::new());
    }
    let listed = owner::vault(home, ask)?.list().map_err(|error| owner::vault_failure(&error))?;
    Ok(listed.into_iter().map(|one| one.place).collect())
}

pub(super) fn remove(
    args: &NamedArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let failed = |error| remote::list_failure(&error);
    let listed = listed(args, home)?;
    let others = Registries::load(home.path()).map_err(failed)?;
    let is_shared = others.iter().any(|other| other.name != listed.name && other.url == listed.url);
    // First the token, so that none is left of a registry that nobody knows any more.
    if !is_shared {
        forget(&listed, home, ask)?;
    }
    Registries::change(home.path(), |list| list.remove(&args.name)).map_err(failed)?;
    if json_wanted {
        printer.json(&json!(listed))?;
    } else {
        printer.note(&format!("Forgot {}", line(&listed.name)));
    }
    Ok(Exit::Done)
}

pub(super) fn logout(
    args: &NamedArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let listed = listed(args, home)?;
    if !forget(&listed, home, ask)? {
        let message = format!("no token is kept for `{}`", listed.name);
        return Err(Failure::new(Exit::NotFound, message));
    }
    if json_wanted {
        printer.json(&json!({"name": listed.name, "url": listed.url, "token": false}))?;
    } else {
        printer.note(&format!("Forgot the token for {}", line(&listed.name)));
    }
    Ok(Exit::Done)
}

/// Forgets the token of a registry; whether there was one.
fn forget(listed: &Listed, home: &Home, ask: Ask) -> Result<bool, Failure> {
    if !home.path().join("vault").exists() || !listed.has_address() {
        return Ok(false);
    }
    let removed = owner::vault(home, ask)?.remove(&remote::place(&listed.url)?);
    removed.map_err(|error| owner::vault_failure(&error))
}

fn listed(args: &NamedArgs, home: &Home) -> Result<Listed, Failure> {
    owner::check_home(home)?;
    let list = Registries::load(home.path()).map_err(|error| remote::list_failure(&error))?;
    list.get(&args.name).cloned().ok_or_else(|| {
        let message = format!("there is no registry `{}`", args.name);
        Failure::new(Exit::NotFound, message).hint("`haft registry list` shows them")
    })
}

pub(super) fn get(
    args: &GetArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let known = Known::new(home, ask)?.with(&args.offline).offered(args.channel);
    let client = known.client(&args.which)?;
    let (id, version) = match args.id.rsplit_once('@') {
        Some((id, version)) if !id.is_empty() => (id, Some(version)),
        _ => (args.id.as_str(), None),
    };
    let to_pipe = args.output.as_deref() == Some(Path::new("-"));
    if to_pipe && (json_wanted || std::io::stdout().is_terminal()) {
        let message = "a package is not written where something else is read";
        return Err(Failure::invalid(message)
            .hint("`-o -` is for a pipe or a file, without --json; -o FILE names a file"));
    }
    if let Some(path) = args.output.as_deref().filter(|_| !to_pipe) {
        output::check_folder_of(path)?;
    }
    output::make_private_folder(home.path())?;
    let runtime = owner::runtime()?;
    let (name, fetched) = runtime.block_on(async {
        let place = client.find(id, version).await;
        let place = place.map_err(|error| {
            let failure = remote::not_found(&args.id, version, &error);
            match client.sources().len() {
                // Who does not answer may be the one that is meant, unless the owner says otherwise.
                2.. if matches!(error, FindError::Failed(..)) => {
                    failure.hint("--registry NAME asks one of several alone")
                }
                _ => failure,
            }
        });
        match place? {
            Place::Registry(registry, described) => {
                let bytes = described.describe.size;
                let bar = Bar::begin("Downloading", bytes, json_wanted, printer);
                let watched = registry.clone().watched(bar.watch());
                let fetched = watched.package_of(*described).await;
                let fetched = fetched.map_err(|error| remote::failed(registry.name(), &error))?;
                Ok((registry.name().to_owned(), fetched))
            }
            Place::Catalog(catalog, package) => {
                let message = format!(
                    "`{}` is listed in `{}`, which is no registry: nothing is fetched from a catalog or a folder",
                    package.id,
                    catalog.name()
                );
                Err(Failure::invalid(message).hint(
                    "what is in a folder is used as it is there; `haft registry import` publishes it in a registry",
                ))
            }
        }
    })?;
    let describe = &fetched.described.describe;
    let yanked = fetched.described.yanked.as_ref();
    if let Some(Yank { reason, security }) = yanked {
        let mark = if *security { " for security" } else { "" };
        let why = if reason.is_empty() { String::new() } else { format!(": {}", line(reason)) };
        printer.warn(&format!("this version was taken back{mark}{why}"));
    }
    let path = args.output.clone().unwrap_or_else(|| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-+".contains(c) { c } else { '_' };
        let name: String = describe.name.chars().map(plain).collect();
        format!("{}-{}.mcpkg", name.trim_start_matches(['.', '-']), describe.version).into()
    });
    let document = json!({
        "registry": name,
        "id": describe.id,
        "version": describe.version,
        "path": path.to_string_lossy(),
        "sha256": fetched.digest.to_string(),
        "yanked": yanked.map(|yank| &yank.reason),
        "yanked_for_security": yanked.is_some_and(|yank| yank.security),
    });
    let shown = format!(
        "{} {} {} {} {}  (sha256:{})",
        if args.offline.offline { "Kept here:" } else { "Fetched" },
        line(&describe.name),
        line(&describe.version),
        if args.offline.offline { "of" } else { "from" },
        line(&name),
        fetched.digest
    );
    let cannot = |error| Failure::new(Exit::Unavailable, "failed to read the package").cause(error);
    let bytes = fetched.bytes().map_err(cannot)?;
    if to_pipe {
        printer.note(&shown);
        printer.bytes(&bytes)?;
        return Ok(Exit::Done);
    }
    if !is_same(&path, &bytes) {
        output::write_new(&path, &bytes)?;
    }
    if json_wanted {
        printer.json(&document)?;
    } else {
        printer.note(&shown);
        printer.result(&format!("{}\n", line(&path.to_string_lossy())))?;
    }
    Ok(Exit::Done)
}

/// Whether a file holds these bytes already.
fn is_same(path: &Path, bytes: &[u8]) -> bool {
    let Ok(file) = std::fs::File::open(path) else { return false };
    let mut there = Vec::new();
    file.take(bytes.len() as u64 + 1).read_to_end(&mut there).is_ok() && there == bytes
}
