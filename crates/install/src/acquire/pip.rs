//! Python packages: resolved by pip, fetched by us, installed by pip without a network.
//!
//! They lie in a folder of their own that says nothing of where it is: whoever runs them names it (`PYTHONPATH`), and their commands
//! begin with the interpreter, which is the machine's. Packages come as wheels, which run nothing when they are
//! installed; one that is trusted by name is built from source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use egress::http::Url;
use egress::{Rule, Rules};
use package::digest::Digest;
use serde::Deserialize;

use super::artefact::{Artefact, Method};
use super::bench::Bench;
use super::command::Command;
use super::error::AcquireError;
use super::fetch::Origin;
use super::npm::standing_out;
use super::requirement::{Manager, Requirement, folded};
use super::sources::{Index, Sources, plain};
use super::workshop::{Expected, Wanted, Workshop};

/// Where the packages lie, below the folder.
pub(super) const LIBRARY: &str = "python";
/// Where their commands lie.
pub(super) const COMMANDS: &str = "python/bin";

/// Asks Python what it is, and pip where it gets packages by itself.
const QUESTION: &str = "import sys, sysconfig; from pip._internal.models.index import PyPI; \
print(sys.implementation.cache_tag, sysconfig.get_platform(), PyPI.simple_url, PyPI.file_storage_domain)";

/// Which Python it is, and where its pip gets packages.
struct Python {
    /// What wheels must fit, such as `cpython-311 linux-x86_64`.
    fits: String,
    indexes: Vec<Index>,
    rules: Rules,
}

/// What would be run.
pub(super) fn commands(requirements: &[Requirement], sources: &Sources) -> Vec<Command> {
    vec![asking(), resolving(requirements, sources), installing(requirements, sources)]
}

/// Acquires packages and all they need.
pub(super) async fn acquire(
    workshop: &Workshop<'_>,
    requirements: &[Requirement],
) -> Result<Vec<Artefact>, AcquireError> {
    let python = ask(workshop).await?;
    let from = Origin::indexes(python.indexes.clone(), python.rules.clone());
    let artefacts = match workshop.locked_packages(Method::Pip, requirements)? {
        Some(locked) => {
            workshop.have(&locked, &from).await?;
            locked
        }
        None => resolve(workshop, requirements, &python, &from).await?,
    };
    install(workshop, requirements, &python, &artefacts).await?;
    Ok(artefacts)
}

fn asking() -> Command {
    Command::new(["python3", "-I", "-c", QUESTION])
}

fn resolving(requirements: &[Requirement], sources: &Sources) -> Command {
    let mut words = pip("install");
    words.extend(["--dry-run", "--ignore-installed", "--report=-"].map(str::to_owned));
    words.extend(formats(requirements, sources));
    words.push("--".to_owned());
    words.extend(requirements.iter().map(ToString::to_string));
    Command::new(words)
}

fn installing(requirements: &[Requirement], sources: &Sources) -> Command {
    let mut words = pip("install");
    words.extend(["--no-deps", "--require-hashes"].map(str::to_owned));
    // What is built from source needs what it is built with.
    if built(requirements, sources).is_empty() {
        words.push("--no-index".to_owned());
    }
    words.extend(formats(requirements, sources));
    words.push("--find-links=files".to_owned());
    words.push(format!("--target={LIBRARY}"));
    words.push("--requirement=requirements.txt".to_owned());
    Command::new(words)
}

fn pip(verb: &str) -> Vec<String> {
    ["python3", "-I", "-m", "pip", verb, "--quiet"].map(str::to_owned).to_vec()
}

/// Wheels for all, and for those that are trusted the source.
fn formats(requirements: &[Requirement], sources: &Sources) -> Vec<String> {
    let mut words = vec!["--only-binary=:all:".to_owned()];
    words.extend(built(requirements, sources).iter().map(|name| format!("--no-binary={name}")));
    words
}

/// Those of the owner's list that are built from source, where anything of Python is required.
fn built(requirements: &[Requirement], sources: &Sources) -> BTreeSet<String> {
    let trusted = sources.trusted.iter().filter(|(manager, _)| *manager == Manager::Pip);
    let named = trusted.map(|(manager, name)| folded(*manager, name));
    // The list is the owner's, and yet a name that is none must not become an option.
    let named = named.filter(|name| Requirement::new(Manager::Pip, name, None).is_ok());
    if requirements.is_empty() { BTreeSet::new() } else { named.collect() }
}

async fn ask(workshop: &Workshop<'_>) -> Result<Python, AcquireError> {
    let said = workshop.run(&asking(), &workshop.bench()?).await.map_err(|error| match error {
        AcquireError::Failed { .. } => AcquireError::Absent {
            what: "pip".to_owned(),
            why: "`python3 -m pip` does not work here",
        },
        other => other,
    })?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let unreadable =
        || AcquireError::Unreadable { what: "what Python says of itself", why: said.clone() };
    let [tag, platform, simple, storage] = said.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(unreadable());
    };
    let by_itself = Index::at(Url::parse(simple).map_err(|_| unreadable())?);
    let named = &workshop.sources.pip;
    let is_named = named.is_empty()
        || named.iter().any(|index| index.url.host_str() == by_itself.url.host_str());
    let indexes = if named.is_empty() { vec![by_itself.clone()] } else { named.clone() };
    let mut rules = workshop.sources.rules(Manager::Pip);
    // It keeps its files elsewhere. Where its names lead is settled by this machine and by nobody else: they may be those
    // of a mirror.
    if is_named {
        let hosts = [by_itself.url.host_str().unwrap_or_default(), storage];
        let named = hosts.iter().filter_map(|host| Rule::parse(host).ok());
        rules = rules.allowing(named.map(Rule::reaching_private));
    }
    Ok(Python { fits: format!("{tag} {platform}"), indexes, rules })
}

/// The variables that tell pip where to look. An address may hold a password, which is in no argument.
fn variables(python: &Python, bench: &Bench) -> Vec<(String, String)> {
    let mut urls = python.indexes.iter().map(|index| index.url.to_string());
    let first = urls.next().unwrap_or_default();
    let pairs = [
        ("PIP_CONFIG_FILE", "/dev/null".to_owned()),
        ("PIP_INDEX_URL", first),
        ("PIP_EXTRA_INDEX_URL", urls.collect::<Vec<_>>().join(" ")),
        ("PIP_NO_INPUT", "1".to_owned()),
        ("PIP_NO_CACHE_DIR", "1".to_owned()),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1".to_owned()),
        ("PIP_ROOT_USER_ACTION", "ignore".to_owned()),
        // Large wheels do not fit into a folder that is in memory.
        ("TMPDIR", bench.path().display().to_string()),
    ];
    pairs
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

async fn resolve(
    workshop: &Workshop<'_>,
    requirements: &[Requirement],
    python: &Python,
    from: &Origin,
) -> Result<Vec<Artefact>, AcquireError> {
    let command = resolving(requirements, workshop.sources);
    let indexes: Vec<_> =
        python.indexes.iter().map(|index| plain(&index.url).to_string()).collect();
    let question = format!("{command}\n{}\n{}", python.fits, indexes.join(" "));
    let shown = || requirements.iter().map(|one| format!("`{one}`")).collect();
    if let Some(kept) = workshop.kept(&question, shown)? {
        workshop.have(&kept, from).await?;
        return Ok(kept);
    }
    workshop.reporter.begins("asking which Python packages are needed");
    let bench = workshop.bench()?;
    let command = command.with(variables(python, &bench)).reaching(python.rules.clone());
    let report = workshop.run(&command, &bench).await?;
    let artefacts = workshop.fetch(read_report(&report)?, from).await?;
    workshop.store.keep_resolved(&question, &artefacts);
    Ok(artefacts)
}

/// What pip would install.
#[derive(Deserialize)]
struct Report {
    install: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    download_info: Download,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Download {
    url: String,
    #[serde(default)]
    archive_info: Archive,
}

#[derive(Default, Deserialize)]
struct Archive {
    #[serde(default)]
    hashes: BTreeMap<String, String>,
    /// As pip wrote it before 23.1: `sha256=…`.
    hash: Option<String>,
}

impl Archive {
    fn sha256(&self) -> Option<&str> {
        let older = || self.hash.as_deref()?.strip_prefix("sha256=");
        self.hashes.get("sha256").map(String::as_str).or_else(older)
    }
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
}

fn read_report(report: &[u8]) -> Result<Vec<Wanted>, AcquireError> {
    let unreadable = |why: String| AcquireError::Unreadable { what: "the report of pip", why };
    let report: Report =
        serde_json::from_slice(report).map_err(|error| unreadable(error.to_string()))?;
    let wanted = report.install.into_iter().map(|entry| {
        let Metadata { name, version } = entry.metadata;
        let url = Url::parse(&entry.download_info.url)
            .map_err(|_| unreadable(format!("`{name}` is at no URL")))?;
        let expected = match entry.download_info.archive_info.sha256() {
            Some(text) => {
                let digest = Digest::parse(text);
                let bad = || unreadable(format!("the digest of `{name}` is none"));
                Expected::Sha256(digest.ok_or_else(bad)?)
            }
            None => Expected::Nothing,
        };
        Ok(Wanted { method: Method::Pip, name, version, url, expected, place: None })
    });
    wanted.collect()
}

async fn install(
    workshop: &Workshop<'_>,
    requirements: &[Requirement],
    python: &Python,
    artefacts: &[Artefact],
) -> Result<(), AcquireError> {
    let bench = workshop.bench()?;
    let files = bench.make("files")?;
    let mut lines = String::new();
    for one in artefacts {
        let name = file_name(one)?;
        let is_wheel = Path::new(&name).extension().is_some_and(|end| end == "whl");
        if !is_wheel && !workshop.sources.trusts(Manager::Pip, &one.name) {
            let why = "which is no wheel, and would run code when it is installed";
            return Err(AcquireError::Hostile { what: one.shown(), file: name, why });
        }
        workshop.store.copy(one.sha256, &files.join(&name))?;
        let wanted =
            Requirement::new(Manager::Pip, &one.name, Some(&format!("=={}", one.version)))?;
        lines.push_str(&format!("{wanted} --hash=sha256:{}\n", one.sha256));
    }
    bench.write("requirements.txt", &lines)?;
    workshop.reporter.begins("installing Python packages");
    let mut command = installing(requirements, workshop.sources).with(variables(python, &bench));
    if !built(requirements, workshop.sources).is_empty() {
        command = command.reaching(python.rules.clone());
    }
    workshop.run(&command, &bench).await?;
    bench.take(LIBRARY, &workshop.folder.join(LIBRARY))
}

/// The name of a file of Python packages, which says whom it fits.
fn file_name(artefact: &Artefact) -> Result<String, AcquireError> {
    let refuse = |why| AcquireError::Place { place: artefact.url.clone(), why };
    let url = Url::parse(&artefact.url).map_err(|_| refuse("it is no URL"))?;
    let last = url.path_segments().and_then(|mut segments| segments.next_back());
    let name = percent_encoding::percent_decode_str(last.unwrap_or_default()).decode_utf8_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+!".contains(&byte);
    if name.starts_with(['.', '-']) || name.is_empty() || !name.bytes().all(is_plain) {
        return Err(refuse("it does not name a file of a Python package"));
    }
    Ok(name.into_owned())
}

/// The folder of commands, where there are any.
pub(super) fn path(workshop: &Workshop<'_>) -> Option<PathBuf> {
    workshop.folder.join(COMMANDS).is_dir().then(|| COMMANDS.into())
}

/// The command of a package: its only one, or that of its own name.
pub(super) fn main(folder: &Path, package: &str) -> Option<String> {
    let name = package.split('[').next().unwrap_or(package).trim();
    let is_it = |entry: &std::fs::DirEntry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        let parted = file.strip_suffix(".dist-info").and_then(|stem| stem.rsplit_once('-'));
        parted.is_some_and(|(of, _)| folded(Manager::Pip, of) == folded(Manager::Pip, name))
    };
    let entries = std::fs::read_dir(folder.join(LIBRARY)).ok()?.flatten();
    let described = entries.into_iter().find(is_it)?.path();
    let text = std::fs::read_to_string(described.join("entry_points.txt")).ok()?;
    let after = text.split("[console_scripts]").nth(1)?;
    let lines = after.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    let names =
        lines.filter_map(|line| line.split_once('=')).map(|(name, _)| name.trim().to_owned());
    standing_out(names.collect(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_is_needed_and_by_which_digest() {
        let digest = "ab".repeat(32);
        let report = format!(
            r#"{{"version":"1","install":[
                {{"download_info":{{"url":"https://u:p@a.test/six-1-py3-none-any.whl","archive_info":{{"hashes":{{"sha256":"{digest}"}}}}}},
                  "metadata":{{"name":"six","version":"1"}}}},
                {{"download_info":{{"url":"https://a.test/x-1-py3-none-any.whl"}},"metadata":{{"name":"x","version":"1"}}}}]}}"#
        );
        let wanted = read_report(report.as_bytes()).unwrap();
        assert_eq!(wanted[0].expected, Expected::Sha256(Digest::parse(&digest).unwrap()));
        assert_eq!(wanted[1].expected, Expected::Nothing);
        let older = report.replace(
            &format!(r#""hashes":{{"sha256":"{digest}"}}"#),
            &format!(r#""hash":"sha256={digest}""#),
        );
        assert_eq!(read_report(older.as_bytes()).unwrap()[0].expected, wanted[0].expected);
        for bad in
            ["", "{}", &report.replace(&digest, "00"), &report.replace("https://a.test", "no")]
        {
            assert!(read_report(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_is_called_by_one_plain_name() {
        let named = |url: &str| {
            let (name, version) = ("x".to_owned(), "1".to_owned());
            let (url, sha256) = (url.to_owned(), Digest::of(b""));
            file_name(&Artefact { method: Method::Pip, name, version, url, sha256, place: None })
                .ok()
        };
        assert_eq!(
            named("https://a.test/p/x-1%2Bl-py3-none-any.whl#sha256=0").as_deref(),
            Some("x-1+l-py3-none-any.whl")
        );
        for bad in ["https://a.test/", "https://a.test/%2e%2e%2fx", "https://a.test/-x.whl", "no"] {
            assert_eq!(named(bad), None, "{bad}");
        }
    }
}
