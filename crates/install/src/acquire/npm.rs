//! Node packages: resolved by npm, fetched and unpacked by us.
//!
//! npm makes its lockfile and runs nothing of the packages. Each tarball is held against that lockfile and unpacked where it
//! says, so there is nobody who could run an install script; those of a package that is trusted by name are run
//! afterwards, on purpose.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use egress::http::Url;
use flate2::read::GzDecoder;
use sandbox::SCRATCH;
use serde_json::{Map, Value, json};

use super::artefact::{Artefact, Method};
use super::command::Command;
use super::error::AcquireError;
use super::requirement::{Manager, Requirement};
use super::sources::{Index, Sources};
use super::unpack::{Without, is_below, make_executable, unpack};
use super::workshop::{Expected, Wanted, Workshop};

/// Where the packages lie, below the folder.
pub(super) const LIBRARY: &str = "node_modules";
/// Where their commands lie.
pub(super) const COMMANDS: &str = "node_modules/.bin";
/// What the names of variables end with that hold a token.
const TOKEN: &str = ":_authToken";
/// The largest lockfile.
const LARGEST: usize = 64 << 20;

/// What would be run.
pub(super) fn commands(requirements: &[Requirement], sources: &Sources) -> Vec<Command> {
    let trusted = trusted(requirements, sources);
    std::iter::once(resolving()).chain((!trusted.is_empty()).then(|| building(&trusted))).collect()
}

/// Acquires packages and all they need.
pub(super) async fn acquire(
    workshop: &Workshop<'_>,
    requirements: &[Requirement],
) -> Result<Vec<Artefact>, AcquireError> {
    let from = workshop.indexes(Manager::Npm);
    let artefacts = match workshop.locked_packages(Method::Npm, requirements)? {
        Some(locked) => {
            workshop.have(&locked, &from).await?;
            locked
        }
        None => resolve(workshop, requirements).await?,
    };
    workshop.reporter.begins("unpacking Node packages");
    let bench = workshop.bench()?;
    // A package before those that lie in its folder.
    let mut in_order: Vec<&Artefact> = artefacts.iter().collect();
    in_order.sort_by_key(|one| one.place.as_deref());
    for one in &in_order {
        place(workshop, bench.path(), one)?;
    }
    for one in &in_order {
        link_commands(bench.path(), one)?;
    }
    let mut trusted = trusted(requirements, workshop.sources);
    trusted.retain(|name| artefacts.iter().any(|one| one.is_called(Manager::Npm, name)));
    if !trusted.is_empty() {
        workshop.reporter.begins("running install scripts of trusted Node packages");
        let mut variables = variables(workshop.sources);
        // What runs now is theirs.
        variables.retain(|(name, _)| !name.ends_with(TOKEN));
        let command =
            building(&trusted).with(variables).reaching(workshop.sources.rules(Manager::Npm));
        workshop.run(&command, &bench).await?;
    }
    bench.take(LIBRARY, &workshop.folder.join(LIBRARY))?;
    Ok(artefacts)
}

fn resolving() -> Command {
    let words =
        ["npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"];
    Command::new(words)
}

fn building(trusted: &[String]) -> Command {
    let words = ["npm", "rebuild", "--ignore-scripts=false", "--foreground-scripts", "--"];
    Command::new(words.map(str::to_owned).into_iter().chain(trusted.iter().cloned()))
}

/// Those of the owner's list whose install scripts run, where anything of Node is required.
fn trusted(requirements: &[Requirement], sources: &Sources) -> Vec<String> {
    let trusted = sources.trusted.iter().filter(|(manager, _)| *manager == Manager::Npm);
    let named = trusted.map(|(_, name)| name.clone());
    let named = named.filter(|name| Requirement::new(Manager::Npm, name, None).is_ok());
    if requirements.is_empty() { Vec::new() } else { named.collect() }
}

/// The variables that tell npm where to look. A token is in no argument.
fn variables(sources: &Sources) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = [
        // That of the owner is in a home that is not to be seen.
        ("npm_config_globalconfig", "/dev/null"),
        ("npm_config_cache", SCRATCH),
        ("npm_config_logs_max", "0"),
        ("npm_config_update_notifier", "false"),
        ("npm_config_omit_lockfile_registry_resolved", "false"),
        ("npm_config_ignore_scripts", "true"),
        ("npm_config_loglevel", "error"),
        // Somebody who waits is told soon that nobody answers.
        ("npm_config_fetch_retry_mintimeout", "500"),
        ("npm_config_fetch_retry_maxtimeout", "3000"),
        ("npm_config_yes", "false"),
        // No package is had from a repository.
        ("npm_config_git", "/nonexistent"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let registries = sources.npm.iter().map(|index| ("registry".to_owned(), index)).chain(
        sources
            .npm_scopes
            .iter()
            .map(|(scope, index)| (format!("@{}:registry", scope.trim_start_matches('@')), index)),
    );
    for (name, index) in registries {
        variables.push((format!("npm_config_{name}"), index.plain().to_string()));
        variables.extend(credentials(index));
    }
    variables
}

/// What npm shows an index.
fn credentials(index: &Index) -> Option<(String, String)> {
    let token = index.token.clone()?;
    let url = index.plain();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let place = format!("//{}{port}{}/", url.host_str()?, url.path().trim_end_matches('/'));
    Some((format!("npm_config_{place}{TOKEN}"), token))
}

async fn resolve(
    workshop: &Workshop<'_>,
    requirements: &[Requirement],
) -> Result<Vec<Artefact>, AcquireError> {
    let from = workshop.indexes(Manager::Npm);
    let ranges: Map<String, Value> =
        requirements.iter().map(|one| (one.name().to_owned(), Value::from(one.range()))).collect();
    let asked = json!({ "private": true, "dependencies": ranges }).to_string();
    let indexes = workshop.sources.indexes(Manager::Npm);
    let indexes: Vec<_> = indexes.into_iter().map(|index| index.plain().to_string()).collect();
    let platform = format!("{} {}", os(), cpu());
    let question = format!("{}\n{asked}\n{platform}\n{}", resolving(), indexes.join(" "));
    let shown = || requirements.iter().map(|one| format!("`{one}`")).collect();
    if let Some(kept) = workshop.kept(&question, shown)? {
        workshop.have(&kept, &from).await?;
        return Ok(kept);
    }
    workshop.reporter.begins("asking which Node packages are needed");
    let bench = workshop.bench()?;
    bench.write("package.json", &asked)?;
    let command = resolving()
        .with(variables(workshop.sources))
        .reaching(workshop.sources.rules(Manager::Npm));
    workshop.run(&command, &bench).await?;
    let lockfile = bench.file("package-lock.json")?;
    let text = fs::read(&lockfile).map_err(|error| AcquireError::Disk(lockfile, error))?;
    let artefacts = workshop.fetch(read_lockfile(&text)?, &from).await?;
    workshop.store.keep_resolved(&question, &artefacts);
    Ok(artefacts)
}

/// Reads what npm would put where.
fn read_lockfile(text: &[u8]) -> Result<Vec<Wanted>, AcquireError> {
    let unreadable = |why: String| AcquireError::Unreadable { what: "the lockfile of npm", why };
    if text.len() > LARGEST {
        return Err(unreadable("it is too large".to_owned()));
    }
    let lockfile: Value =
        serde_json::from_slice(text).map_err(|error| unreadable(error.to_string()))?;
    let packages = lockfile.get("packages").and_then(Value::as_object);
    let packages = packages.ok_or_else(|| unreadable("it lists no packages".to_owned()))?;
    let mut all = Vec::new();
    for (place, entry) in packages.iter().filter(|(place, _)| !place.is_empty()) {
        let text = |field: &str| entry.get(field).and_then(Value::as_str);
        let says = |field: &str| entry.get(field) == Some(&Value::Bool(true));
        // What travels in another package is unpacked with it; what is for other machines is left out.
        let is_for_others = !(fits(entry, "os", os()) && fits(entry, "cpu", cpu()));
        if says("inBundle") || (says("optional") && is_for_others) {
            continue;
        }
        let bad = |why: &str| unreadable(format!("`{place}` {why}"));
        let folder = package_at(place).ok_or_else(|| bad("is no place of a package"))?;
        let url = text("resolved").filter(|_| !says("link"));
        let url = url.and_then(|url| Url::parse(url).ok());
        let url = url.filter(|url| ["https", "http"].contains(&url.scheme()));
        all.push(Wanted {
            method: Method::Npm,
            name: text("name").unwrap_or(folder).to_owned(),
            version: text("version").unwrap_or_default().to_owned(),
            url: url.ok_or_else(|| bad("is had from no registry"))?,
            expected: text("integrity")
                .map(|integrity| Expected::Integrity(integrity.to_owned()))
                .ok_or_else(|| bad("has no digest"))?,
            place: Some(place.clone()),
        });
    }
    Ok(all)
}

/// The package whose folder this is: `node_modules/a/node_modules/@b/c`.
fn package_at(place: &str) -> Option<&str> {
    let mut last = None;
    let mut rest = place;
    while !rest.is_empty() {
        rest = rest.strip_prefix("node_modules/")?;
        let end = rest.find("/node_modules/").unwrap_or(rest.len());
        let name = &rest[..end];
        Requirement::new(Manager::Npm, name, None).ok()?;
        last = Some(name);
        rest = rest[end..].trim_start_matches('/');
    }
    last
}

/// Whether a package is for machines such as this one: `["linux"]`, `["!win32"]`.
fn fits(entry: &Value, field: &str, own: &str) -> bool {
    let Some(listed) = entry.get(field).and_then(Value::as_array) else { return true };
    let words: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
    let is_refused = words.iter().any(|word| word.strip_prefix('!') == Some(own));
    let mut wanted = words.iter().filter(|word| !word.starts_with('!')).peekable();
    !is_refused && (wanted.peek().is_none() || wanted.any(|word| [own, "any"].contains(word)))
}

/// This system, as Node calls it.
fn os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// This processor, as Node calls it.
fn cpu() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        "x86" => "ia32",
        other => other,
    }
}

/// The folder of a package, below the one that things are acquired into.
fn folder_of(artefact: &Artefact) -> Result<&str, AcquireError> {
    let place = artefact.place.as_deref().unwrap_or_default();
    let why = "it says of no place where it belongs";
    let bad = || AcquireError::Place { place: artefact.shown(), why };
    package_at(place).map(|_| place).ok_or_else(bad)
}

fn place(workshop: &Workshop<'_>, inside: &Path, artefact: &Artefact) -> Result<(), AcquireError> {
    let folder = inside.join(folder_of(artefact)?);
    let gone = || AcquireError::Disk(folder.clone(), io::ErrorKind::NotFound.into());
    let tarball = workshop.store.open(artefact.sha256)?.ok_or_else(gone)?;
    unpack(&artefact.shown(), GzDecoder::new(tarball), &folder, Without::First).map(drop)
}

/// Puts the commands of a package where others find them.
fn link_commands(folder: &Path, artefact: &Artefact) -> Result<(), AcquireError> {
    let place = folder_of(artefact)?;
    let package = folder.join(place);
    let Ok(text) = fs::read(package.join("package.json")) else { return Ok(()) };
    let Ok(description) = serde_json::from_slice::<Value>(&text) else { return Ok(()) };
    let name = package_at(place).unwrap_or_default();
    let around = place.strip_suffix(name).unwrap_or_default();
    for (command, file) in named_commands(&description, name) {
        let target = package.join(&file);
        // npm leaves out what is not there, too.
        if !target.is_file() {
            continue;
        }
        let beside = folder.join(around).join(".bin");
        let link = || -> io::Result<()> {
            fs::create_dir_all(&beside)?;
            make_executable(&target)?;
            let to = Path::new("..").join(name).join(&file);
            match link_to(&to, &target, &beside.join(&command)) {
                // Whoever comes first has the name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                made => made,
            }
        };
        link().map_err(|error| AcquireError::Disk(beside.join(&command), error))?;
    }
    Ok(())
}

/// The commands that a package has, with the file of each. What is no plain name or lies elsewhere is none.
fn named_commands(description: &Value, name: &str) -> Vec<(String, PathBuf)> {
    let short = name.rsplit('/').next().unwrap_or(name);
    let named: Vec<(&str, &str)> = match description.get("bin") {
        Some(Value::String(file)) => vec![(short, file)],
        Some(Value::Object(all)) => {
            all.iter().filter_map(|(name, file)| Some((name.as_str(), file.as_str()?))).collect()
        }
        _ => Vec::new(),
    };
    let plain = |(name, file): (&str, &str)| {
        let name = name.rsplit('/').next().unwrap_or(name);
        let file: PathBuf =
            Path::new(file).components().filter(|part| part.as_os_str() != ".").collect();
        let is_name = is_below(Path::new(name)) && !name.starts_with(['.', '-']);
        (is_name && is_below(&file)).then(|| (name.to_owned(), file))
    };
    named.into_iter().filter_map(plain).collect()
}

#[cfg(unix)]
fn link_to(to: &Path, _target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, link)
}

#[cfg(not(unix))]
fn link_to(_to: &Path, target: &Path, link: &Path) -> io::Result<()> {
    fs::hard_link(target, link)
}

/// The folder of commands, where there are any.
pub(super) fn path(workshop: &Workshop<'_>) -> Option<PathBuf> {
    workshop.folder.join(COMMANDS).is_dir().then(|| COMMANDS.into())
}

/// The command of a package: its only one, or that of its own name.
pub(super) fn main(folder: &Path, package: &str) -> Option<String> {
    let text = fs::read(folder.join(LIBRARY).join(package).join("package.json")).ok()?;
    let description = serde_json::from_slice::<Value>(&text).ok()?;
    let commands = named_commands(&description, package).into_iter().map(|(name, _)| name);
    standing_out(commands.collect(), package.rsplit('/').next().unwrap_or(package))
}

/// The only name, or the one that is called so.
pub(super) fn standing_out(names: Vec<String>, called: &str) -> Option<String> {
    match names.as_slice() {
        [only] => Some(only.clone()),
        _ => names.into_iter().find(|name| name == called),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_of_a_package_or_none() {
        for (place, package) in [
            ("node_modules/a", Some("a")),
            ("node_modules/@a/b", Some("@a/b")),
            ("node_modules/a/node_modules/@b/c", Some("@b/c")),
            ("", None),
            ("a", None),
            ("node_modules/../x", None),
            ("node_modules/a/../../../x", None),
            ("node_modules/.bin", None),
            ("/node_modules/a", None),
            ("node_modules/a/node_modules", None),
            ("packages/a", None),
        ] {
            assert_eq!(package_at(place), package, "{place}");
        }
    }

    #[test]
    fn a_lockfile_names_packages_of_registries_alone() {
        let read = |entry: Value| {
            let lockfile = json!({ "packages": { "": {}, "node_modules/a": entry } });
            read_lockfile(lockfile.to_string().as_bytes())
        };
        let good = json!({ "version": "1.0.0", "resolved": "https://a.test/a.tgz", "integrity": "sha512-x" });
        assert_eq!(read(good.clone()).unwrap()[0].name, "a");
        for (field, value) in [
            ("resolved", json!("git+ssh://a.test/a.git#main")),
            ("resolved", json!("file:../a")),
            ("resolved", Value::Null),
            ("integrity", Value::Null),
            ("link", json!(true)),
        ] {
            let mut bad = good.clone();
            bad[field] = value.clone();
            assert!(read(bad).is_err(), "{field} {value}");
        }
        for (field, value) in [("inBundle", json!(true)), ("os", json!(["plan9"]))] {
            let mut other = good.clone();
            other["optional"] = json!(true);
            other[field] = value;
            assert!(read(other).unwrap().is_empty(), "{field}");
        }
    }

    #[test]
    fn a_machine_is_meant_or_not() {
        let is_meant = |listed: Value| fits(&json!({ "os": listed }), "os", "linux");
        assert!(is_meant(json!(["linux"])) && is_meant(json!(["!win32"])) && is_meant(json!([])));
        assert!(!is_meant(json!(["darwin"])) && !is_meant(json!(["!linux"])));
        assert!(fits(&json!({}), "os", "linux"));
    }

    #[test]
    fn commands_lie_in_the_package() {
        let named = |bin: Value| {
            named_commands(&json!({ "bin": bin }), "@acme/tool")
                .into_iter()
                .map(|(name, file)| format!("{name}={}", file.display()))
                .collect::<Vec<_>>()
        };
        assert_eq!(named(json!("./cli.js")), ["tool=cli.js"]);
        assert_eq!(named(json!({ "a": "bin/a.js", "b": "/etc/passwd" })), ["a=bin/a.js"]);
        assert!(named(json!({ "../../x": "../../y", "..": "a", "-x": "a" })).is_empty());
    }
}
