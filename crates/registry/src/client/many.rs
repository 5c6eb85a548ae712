//! Several registries as one.
//!
//! What each finds best comes first, whoever found it; the owner's priorities decide among equals. An id that two of
//! them have is nobody's: the owner says which one is meant.

use std::fmt;

use futures_util::future::join_all;
use manifest::model::Package;

use super::error::{FetchError, Kind};
use super::limits;
use super::remote::{Described, Question, Remote};
use crate::catalog::Catalog;
use crate::error::ErrorCode;
use crate::find::{Found, Page};
use crate::versions::Version;

/// Where tools are found.
#[derive(Debug)]
pub enum Source {
    /// A registry.
    Registry(Box<Remote>),
    /// A catalog.
    Catalog(Box<Catalog>),
}

/// Several sources, in the order of their priorities.
#[derive(Debug, Default)]
pub struct Client {
    sources: Vec<Source>,
}

/// A tool that was found, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundIn {
    /// The name of the registry.
    pub registry: String,
    /// The tool.
    pub found: Found,
}

/// What several registries found.
#[derive(Debug, Default)]
pub struct Results {
    /// The tools, best first.
    pub results: Vec<FoundIn>,
    /// How many there are on all pages, counting a tool wherever it is.
    pub total: u64,
    /// Who did not answer, and why.
    pub failed: Vec<(String, FetchError)>,
    /// What was passed over, by catalogs or here.
    pub warnings: Vec<(String, String)>,
}

/// What is known of a tool that one source has.
#[derive(Debug)]
pub enum Place<'c> {
    /// A registry has it.
    Registry(&'c Remote, Box<Described>),
    /// A catalog lists it.
    Catalog(&'c Catalog, &'c Package),
}

/// What a source has of a tool.
enum Has<'c> {
    Version(Place<'c>),
    /// The id is taken there all the same, by these where they are told.
    OtherVersions(Vec<Version>),
}

/// Why it is not known which tool is meant.
#[derive(Debug)]
pub enum FindError {
    /// Nobody has it.
    Nowhere,
    /// The registry that has it does not offer this version, or none at all; these it tells of.
    NoVersion(String, Vec<Version>),
    /// These registries have it.
    InSeveral(Vec<String>),
    /// This registry did not answer, so it may have it too.
    Failed(String, FetchError),
    /// There is no registry to ask.
    NoRegistries,
}

impl fmt::Display for FindError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindError::Nowhere => out.write_str("no registry has it"),
            FindError::NoVersion(name, _) => {
                write!(out, "`{name}` has it, but offers no such version")
            }
            FindError::InSeveral(names) => {
                write!(out, "it is found in {}", names.join(" and in "))
            }
            FindError::Failed(name, _) => {
                write!(out, "`{name}` did not answer, and may have it")
            }
            FindError::NoRegistries => out.write_str("no registry is named"),
        }
    }
}

impl std::error::Error for FindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FindError::Failed(_, error) => Some(error),
            _ => None,
        }
    }
}

impl Source {
    /// What its owner calls it.
    pub fn name(&self) -> &str {
        match self {
            Source::Registry(remote) => remote.name(),
            Source::Catalog(catalog) => catalog.name(),
        }
    }

    async fn page(&self, question: &Question) -> Result<Page, FetchError> {
        match self {
            Source::Registry(remote) => remote.search(question).await,
            Source::Catalog(catalog) => catalog.search(question).await,
        }
    }

    /// The best so many, in as many pages as it takes.
    async fn best(&self, question: &Question, count: usize) -> Result<Page, FetchError> {
        let mut all = Page::default();
        while all.results.len() < count {
            let offset = all.results.len();
            let limit = (count - offset).min(limits::PAGE);
            let page = self.page(&Question { offset, limit, ..question.clone() }).await?;
            let is_last = page.results.len() < limit;
            all.total = page.total;
            all.results.extend(page.results);
            if is_last {
                break;
            }
        }
        Ok(all)
    }
}

impl Client {
    /// A client of these sources, of which the first has the highest priority.
    pub fn new(sources: Vec<Source>) -> Self {
        Self { sources }
    }

    /// The sources.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Finds tools everywhere. Who does not answer is told of; where nobody does, that is a failure.
    pub async fn search(&self, question: &Question) -> Result<Results, FindError> {
        let mut results = Results::default();
        let pages = match self.sources.as_slice() {
            [] => return Err(FindError::NoRegistries),
            // One alone pages by itself, as deep as it likes.
            [only] => vec![only.page(question).await],
            several => {
                let count = question.offset.saturating_add(question.limit).min(limits::DEEPEST);
                join_all(several.iter().map(|source| source.best(question, count))).await
            }
        };
        let is_deep = self.sources.len() > 1
            && question.offset.saturating_add(question.limit) > limits::DEEPEST;
        let mut answered = Vec::new();
        for (source, page) in self.sources.iter().zip(pages) {
            let name = source.name().to_owned();
            match page {
                Ok(page) => {
                    if is_deep && page.total > limits::DEEPEST as u64 {
                        let most = limits::DEEPEST;
                        let text = format!("beside others only its first {most} are looked at");
                        results.warnings.push((name.clone(), text));
                    }
                    results.total += page.total;
                    answered.push((name, page.results));
                }
                Err(error) => results.failed.push((name, error)),
            }
            if let Source::Catalog(catalog) = source {
                let warnings = catalog.warnings().await.unwrap_or_default().iter();
                let named = warnings.map(|text| (catalog.name().to_owned(), text.clone()));
                results.warnings.extend(named);
            }
        }
        if answered.is_empty()
            && let Some((name, error)) = results.failed.pop()
        {
            return Err(FindError::Failed(name, error));
        }
        let passed_over = if self.sources.len() > 1 { question.offset } else { 0 };
        let merged = merge(answered).into_iter();
        results.results = merged.skip(passed_over).take(question.limit).collect();
        Ok(results)
    }

    /// Finds the one source that has a tool. Whoever has the id in other versions has the tool too: otherwise a
    /// stranger's registry would take over whatever ours has not published, or has taken back. Where one of several
    /// does not answer, it may have the tool as well, so nothing is guessed.
    pub async fn find(&self, id: &str, version: Option<&str>) -> Result<Place<'_>, FindError> {
        if self.sources.is_empty() {
            return Err(FindError::NoRegistries);
        }
        let asked = self.sources.iter().map(|source| async move {
            match source {
                Source::Registry(remote) => match remote.describe(id, version).await {
                    Ok(described) => {
                        Ok(Some(Has::Version(Place::Registry(remote, Box::new(described)))))
                    }
                    Err(error) if error.code() == Some(ErrorCode::VersionNotFound) => {
                        // Only what is said of it hangs on that, so a failure is none.
                        let known = remote.versions(id).await;
                        let there = known.map_or_else(|_| Vec::new(), |known| known.versions);
                        Ok(Some(Has::OtherVersions(there)))
                    }
                    Err(error) if error.kind() == Kind::NotFound => Ok(None),
                    Err(error) => Err(error),
                },
                Source::Catalog(catalog) => {
                    let found = catalog.find(id).await?;
                    Ok(found.map(|package| match version {
                        Some(version) if package.semver() != version => {
                            Has::OtherVersions(Vec::new())
                        }
                        _ => Has::Version(Place::Catalog(catalog, package)),
                    }))
                }
            }
        });
        let mut having = Vec::new();
        for (source, has) in self.sources.iter().zip(join_all(asked).await) {
            match has {
                Ok(has) => having.extend(has.map(|has| (source.name(), has))),
                Err(error) => return Err(FindError::Failed(source.name().to_owned(), error)),
            }
        }
        if having.len() > 1 {
            let names = having.iter().map(|(name, _)| format!("`{name}`")).collect();
            return Err(FindError::InSeveral(names));
        }
        match having.pop() {
            Some((_, Has::Version(place))) => Ok(place),
            Some((name, Has::OtherVersions(there))) => {
                Err(FindError::NoVersion(name.to_owned(), there))
            }
            None => Err(FindError::Nowhere),
        }
    }
}

/// What each found best, then what each found second, and so on.
fn merge(answered: Vec<(String, Vec<Found>)>) -> Vec<FoundIn> {
    let mut ranked: Vec<(usize, usize, FoundIn)> = Vec::new();
    for (priority, (registry, found)) in answered.into_iter().enumerate() {
        for (rank, found) in found.into_iter().enumerate() {
            ranked.push((rank, priority, FoundIn { registry: registry.clone(), found }));
        }
    }
    ranked.sort_by_key(|(rank, priority, _)| (*rank, *priority));
    ranked.into_iter().map(|(_, _, found)| found).collect()
}
