//! All that is needed while something is acquired.

use std::path::Path;
use std::sync::Arc;

use egress::http::Url;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use package::digest::Digest;

use super::artefact::{Artefact, Method, shown};
use super::bench::Bench;
use super::command::{Command, Workplace};
use super::error::AcquireError;
use super::fetch::{Files, Origin};
use super::integrity;
use super::requirement::{Manager, Requirement};
use super::sources::{Reach, Sources, plain};
use super::store::Store;
use crate::report::Reporter;

/// How many files are fetched at a time.
pub(super) const AT_ONCE: usize = 8;

/// All that is needed while something is acquired.
#[derive(Debug)]
pub(super) struct Workshop<'w> {
    /// The files that come with the package.
    pub(super) beside: Option<&'w Path>,
    /// The folder that things are acquired into. Programs see none of it.
    pub(super) folder: &'w Path,
    pub(super) workplace: Workplace<'w>,
    pub(super) sources: &'w Sources,
    pub(super) store: &'w Store,
    pub(super) files: Files<'w>,
    pub(super) reporter: Arc<dyn Reporter>,
    pub(super) locked: Option<&'w [Artefact]>,
    /// What was run.
    pub(super) commands: std::sync::Mutex<Vec<String>>,
}

/// A file that is wanted.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) method: Method,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) url: Url,
    pub(super) expected: Expected,
    pub(super) place: Option<String>,
}

/// By what a file is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// By its SHA-256.
    Sha256(Digest),
    /// By what a lockfile of npm says of it.
    Integrity(String),
    /// By nothing but where it came from, this first time.
    Nothing,
}

impl Workshop<'_> {
    /// A folder for programs to work in.
    pub(super) fn bench(&self) -> Result<Bench, AcquireError> {
        Bench::new(self.folder)
    }

    /// Runs a command and notes it.
    pub(super) async fn run(
        &self,
        command: &Command,
        bench: &Bench,
    ) -> Result<Vec<u8>, AcquireError> {
        if let Ok(mut commands) = self.commands.lock() {
            commands.push(command.to_string());
        }
        let ran = command.run(self.workplace, bench.path()).await;
        ran.map_err(|error| match error {
            AcquireError::Failed { command, exit, said, refused } => {
                AcquireError::Failed { command, exit, said: self.sources.redacted(said), refused }
            }
            other => other,
        })
    }

    /// What the lock has of a method, which must be something.
    pub(super) fn locked(
        &self,
        method: Method,
        wanted: &str,
    ) -> Result<Option<Vec<Artefact>>, AcquireError> {
        let Some(locked) = self.locked else { return Ok(None) };
        let own: Vec<_> = locked.iter().filter(|one| one.method == method).cloned().collect();
        if own.is_empty() { Err(AcquireError::NotLocked(wanted.to_owned())) } else { Ok(Some(own)) }
    }

    /// What the lock has of a manager, among it all that is required.
    pub(super) fn locked_packages(
        &self,
        method: Method,
        requirements: &[Requirement],
    ) -> Result<Option<Vec<Artefact>>, AcquireError> {
        let shown = |one: &Requirement| format!("`{one}`");
        let all: Vec<_> = requirements.iter().map(shown).collect();
        let Some(locked) = self.locked(method, &all.join(", "))? else { return Ok(None) };
        let is_there = |wanted: &Requirement| {
            locked.iter().any(|one| one.is_called(wanted.manager(), wanted.name()))
        };
        match requirements.iter().find(|wanted| !is_there(wanted)) {
            Some(missing) => Err(AcquireError::NotLocked(shown(missing))),
            None => Ok(Some(locked)),
        }
    }

    /// What a question was answered with before, where that counts.
    pub(super) fn kept(
        &self,
        question: &str,
        wanted: impl FnOnce() -> Vec<String>,
    ) -> Result<Option<Vec<Artefact>>, AcquireError> {
        match (self.sources.reach, self.store.resolved(question)) {
            (Reach::Kept | Reach::Offline, Some(kept)) => Ok(Some(kept)),
            (Reach::Offline, None) => Err(AcquireError::Offline(wanted())),
            (Reach::Kept, None) | (Reach::Fresh, _) => Ok(None),
        }
    }

    /// Has all of these in the store. Where nobody is asked, all that is missing is told at once.
    pub(super) async fn have(&self, all: &[Artefact], from: &Origin) -> Result<(), AcquireError> {
        if self.sources.reach == Reach::Offline {
            let mut missing = Vec::new();
            for one in all {
                if !self.store.has(one.sha256)? {
                    missing.push(one.shown());
                }
            }
            if !missing.is_empty() {
                return Err(AcquireError::Offline(missing));
            }
        }
        let each = all.iter().map(async |one| {
            let bad = |_| AcquireError::Place { place: one.url.clone(), why: "it is no URL" };
            let url = Url::parse(&one.url).map_err(bad)?;
            self.files.known(&one.shown(), &url, one.sha256, from).await
        });
        stream::iter(each).buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Fetches what was resolved, each file held against what is said of it.
    pub(super) async fn fetch(
        &self,
        wanted: Vec<Wanted>,
        from: &Origin,
    ) -> Result<Vec<Artefact>, AcquireError> {
        let each = wanted.into_iter().map(|one| self.fetch_one(one, from));
        let mut artefacts: Vec<Artefact> =
            stream::iter(each).buffer_unordered(AT_ONCE).try_collect().await?;
        // A lock is compared with the next one.
        artefacts
            .sort_by(|a, b| (&a.name, &a.version, &a.place).cmp(&(&b.name, &b.version, &b.place)));
        Ok(artefacts)
    }

    async fn fetch_one(&self, wanted: Wanted, from: &Origin) -> Result<Artefact, AcquireError> {
        let Wanted { method, name, version, url, expected, place } = wanted;
        let shown = shown(&name, &version);
        let sha256 = match expected {
            Expected::Sha256(digest) => {
                self.files.known(&shown, &url, digest, from).await?;
                digest
            }
            Expected::Integrity(integrity) => {
                let bytes = self.files.unknown(&shown, &url, from).await?;
                integrity::check(&shown, &integrity, &bytes)?;
                self.store.put(&bytes)?
            }
            Expected::Nothing => self.store.put(&self.files.unknown(&shown, &url, from).await?)?,
        };
        Ok(Artefact { method, name, version, url: plain(&url).to_string(), sha256, place })
    }

    /// Whom files of a manager are taken from.
    pub(super) fn indexes(&self, manager: Manager) -> Origin {
        let indexes = self.sources.indexes(manager).into_iter().cloned().collect();
        Origin::indexes(indexes, self.sources.rules(manager))
    }
}
