//! The files of one commit.
//!
//! Whatever is named, a commit is what is pinned. Git fetches it alone, without submodules, by `https`, and writes
//! its files as one archive, which is what is kept.

use std::path::{Path, PathBuf};

use egress::http::Url;

use super::artefact::{Artefact, Method};
use super::command::Command;
use super::error::AcquireError;
use super::sources::{Index, Reach, Sources, plain, rule_for};
use super::unpack::{Without, is_below, unpack};
use super::workshop::Workshop;

/// Where the files lie, below the folder.
pub(super) const FILES: &str = "files";

/// A repository, and what of it.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    /// Where it is, as the manifest has it.
    url: Url,
    /// Where it is really had.
    instead: Option<Url>,
    /// What is asked for: a commit, a tag, a branch.
    reference: String,
    /// The folder in it.
    subpath: Option<PathBuf>,
    /// How that folder is laid out.
    layout: Layout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// A package or anything at all: its files are taken as they are.
    Any,
    /// Folders with skills.
    Skills,
}

impl Repository {
    /// Reads what a manifest names.
    pub(super) fn new(
        url: &str,
        reference: &str,
        subpath: Option<&str>,
        layout: Option<&str>,
        sources: &Sources,
    ) -> Result<Self, AcquireError> {
        let refuse = |place: &str, why| AcquireError::Place { place: place.to_owned(), why };
        let why = "a repository is had by `https`, from a host";
        let parsed = Url::parse(url).ok().filter(|url| url.scheme() == "https" && url.has_host());
        let parsed = parsed.ok_or_else(|| refuse(url, why))?;
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(refuse(url, "a repository has no parameters and no fragment"));
        }
        let instead = sources.repository(url).map(|instead| {
            let parsed = Url::parse(&instead).ok();
            let parsed = parsed.filter(|url| ["https", "http"].contains(&url.scheme()));
            parsed.ok_or_else(|| refuse(&instead, why))
        });
        if !is_reference(reference) {
            return Err(refuse(reference, "it names no commit, tag or branch"));
        }
        let subpath = subpath.map(|path| path.trim_matches('/')).filter(|path| !path.is_empty());
        let below = |path: &str| {
            let is_plain = is_below(Path::new(path)) && !path.starts_with([':', '-']);
            let why = "it is no folder of a repository";
            if is_plain { Ok(PathBuf::from(path)) } else { Err(refuse(path, why)) }
        };
        Ok(Self {
            instead: instead.transpose()?,
            url: plain(&parsed),
            reference: reference.to_owned(),
            subpath: subpath.map(below).transpose()?,
            layout: if layout == Some("skill-bundle") { Layout::Skills } else { Layout::Any },
        })
    }

    /// The same, of a commit.
    fn at(&self, commit: &str) -> Self {
        Self { reference: commit.to_owned(), ..self.clone() }
    }

    /// What would be run.
    pub(super) fn commands(&self) -> [Command; 4] {
        let repository = "--git-dir=repository";
        let git = |words: &[&str]| {
            let always = [
                "git",
                repository,
                "-c",
                "protocol.allow=never",
                "-c",
                "protocol.https.allow=always",
            ];
            let plain = ["-c", "protocol.http.allow=always"];
            let is_plain = self.instead.as_ref().is_some_and(|url| url.scheme() == "http");
            let words =
                always.iter().chain(is_plain.then_some(&plain).into_iter().flatten()).chain(words);
            Command::new(words.copied())
        };
        let from = plain(self.instead.as_ref().unwrap_or(&self.url)).to_string();
        let mut archiving = vec!["archive", "--format=tar", "--output=files.tar", "FETCH_HEAD"];
        let subpath = self.subpath.as_ref().map(|path| path.display().to_string());
        if let Some(subpath) = &subpath {
            archiving.extend(["--", subpath]);
        }
        [
            Command::new(["git", "init", "--quiet", "--bare", "--template=", "repository"]),
            git(&[
                "fetch",
                "--quiet",
                "--depth=1",
                "--no-tags",
                "--no-recurse-submodules",
                "--",
                &from,
                &self.reference,
            ]),
            git(&["rev-parse", "--verify", "FETCH_HEAD^{commit}"]),
            git(&archiving),
        ]
    }
}

/// Acquires the files of a commit.
pub(super) async fn acquire(
    workshop: &Workshop<'_>,
    repository: &Repository,
) -> Result<Artefact, AcquireError> {
    let shown = format!("`{}` of `{}`", repository.reference, repository.url);
    let artefact = match workshop.locked(Method::Git, &shown)? {
        Some(locked) => {
            let same = locked.into_iter().find(|one| one.name == name(repository));
            let locked = same.ok_or(AcquireError::NotLocked(shown))?;
            if !workshop.store.has(locked.sha256)? {
                if workshop.sources.reach == Reach::Offline {
                    return Err(AcquireError::Offline(vec![locked.shown()]));
                }
                let fetched = fetch(workshop, &repository.at(&locked.version)).await?;
                if fetched.sha256 != locked.sha256 {
                    let (described, arrived) = (locked.sha256, fetched.sha256);
                    return Err(AcquireError::digest(locked.shown(), described, arrived));
                }
            }
            locked
        }
        None => resolve(workshop, repository, &shown).await?,
    };
    place(workshop, repository, &artefact)?;
    Ok(artefact)
}

async fn resolve(
    workshop: &Workshop<'_>,
    repository: &Repository,
    shown: &str,
) -> Result<Artefact, AcquireError> {
    let question = format!("git {} {}", name(repository), repository.reference);
    let kept = workshop.kept(&question, || vec![shown.to_owned()])?;
    if let Some(kept) = kept.and_then(|kept| kept.into_iter().next()) {
        if workshop.store.has(kept.sha256)? {
            return Ok(kept);
        }
        if workshop.sources.reach == Reach::Offline {
            return Err(AcquireError::Offline(vec![shown.to_owned()]));
        }
    }
    let artefact = fetch(workshop, repository).await?;
    workshop.store.keep_resolved(&question, std::slice::from_ref(&artefact));
    Ok(artefact)
}

/// What is acquired, as it is told apart from other parts of the same repository.
fn name(repository: &Repository) -> String {
    match &repository.subpath {
        Some(path) => format!("{}#{}", repository.url, path.display()),
        None => repository.url.to_string(),
    }
}

async fn fetch(workshop: &Workshop<'_>, repository: &Repository) -> Result<Artefact, AcquireError> {
    workshop.reporter.begins(&format!("fetching `{}`", repository.url));
    let rule = match &repository.instead {
        // The owner named it, so it may be a private place.
        Some(instead) => Index::at(instead.clone()).rule(),
        None => rule_for(&repository.url),
    };
    let rules = rule.into_iter().chain(workshop.sources.hosts.iter().cloned()).collect();
    let [begin, fetch, ask, archive] = repository.commands();
    let variables: Vec<(String, String)> = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_OPTIONAL_LOCKS", "0"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let bench = workshop.bench()?;
    workshop.run(&begin.with(variables.clone()), &bench).await?;
    workshop.run(&fetch.with(variables.clone()).reaching(rules), &bench).await?;
    let commit = workshop.run(&ask.with(variables.clone()), &bench).await?;
    let commit = String::from_utf8_lossy(&commit).trim().to_owned();
    let is_other = is_commit(&repository.reference) && commit != repository.reference;
    if !is_commit(&commit) || is_other {
        let what = format!("the commit of `{}`", repository.url);
        return Err(AcquireError::Digest {
            what,
            described: repository.reference.clone(),
            arrived: commit,
        });
    }
    workshop.run(&archive.with(variables), &bench).await?;
    Ok(Artefact {
        method: Method::Git,
        name: name(repository),
        version: commit,
        url: repository.url.to_string(),
        sha256: workshop.store.put_file(&bench.file("files.tar")?)?,
        place: None,
    })
}

fn place(
    workshop: &Workshop<'_>,
    repository: &Repository,
    artefact: &Artefact,
) -> Result<(), AcquireError> {
    let into = workshop.folder.join(FILES);
    let gone = || AcquireError::Disk(into.clone(), std::io::ErrorKind::NotFound.into());
    let tar = workshop.store.open(artefact.sha256)?.ok_or_else(gone)?;
    let without = repository.subpath.as_deref().unwrap_or(Path::new(""));
    let count = unpack(&artefact.shown(), tar, &into, Without::Folder(without))?;
    let absent = |why| Err(AcquireError::Absent { what: artefact.shown(), why });
    if count == 0 {
        return absent("there are no files in that folder");
    }
    if repository.layout == Layout::Skills && !has_skill(&into) {
        return absent("neither the folder nor one in it has a SKILL.md");
    }
    Ok(())
}

fn has_skill(folder: &Path) -> bool {
    let is_skill = |folder: &Path| folder.join("SKILL.md").is_file();
    let below = std::fs::read_dir(folder).into_iter().flatten().flatten();
    is_skill(folder) || below.into_iter().any(|one| is_skill(&one.path()))
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether a text is the name of a commit, a tag or a branch and nothing that git could take for an option, a
/// range or a direction.
fn is_reference(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-+@".contains(&byte);
    (1..=255).contains(&text.len())
        && text.bytes().all(is_plain)
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && !text.contains("..")
        && !text.contains("@{")
        && !text.ends_with(['/', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(url: &str, reference: &str, subpath: Option<&str>) -> Option<Repository> {
        Repository::new(url, reference, subpath, None, &Sources::default()).ok()
    }

    #[test]
    fn a_repository_is_had_by_https_from_a_host() {
        assert!(repository("https://code.test/a/b.git", "v1.0", Some("tools/x")).is_some());
        for url in [
            "ext::sh -c id",
            "file:///etc",
            "/etc",
            "../x",
            "ssh://git@code.test/x",
            "git@code.test:x",
            "git://code.test/x",
            "http://code.test/x",
            "https://",
            "https://code.test/x?a=b",
            "--upload-pack=id",
        ] {
            assert!(repository(url, "main", None).is_none(), "{url}");
        }
        for reference in
            ["", "-x", "--upload-pack=id", "a..b", "a:b", "+main", "a b", "main/", "^a", "a~1"]
        {
            assert!(repository("https://code.test/x", reference, None).is_none(), "{reference}");
        }
        for subpath in ["..", "a/../..", "-x", ":(glob)*", ".git/hooks"] {
            assert!(
                repository("https://code.test/x", "main", Some(subpath)).is_none(),
                "{subpath}"
            );
        }
    }

    #[test]
    fn what_is_told_holds_no_password() {
        let told = repository("https://name:secret@code.test/x", "main", None).unwrap();
        let all: Vec<_> = told.commands().iter().map(ToString::to_string).collect();
        assert!(!all.join("\n").contains("secret"), "{all:?}");
    }
}
