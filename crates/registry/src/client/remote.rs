//! One registry.

use std::fs::File;
use std::io::Read;

use egress::Watch;
use egress::http::{HeaderName, HeaderValue, Method, Url};
use package::archive::{Archive, Trailer};
use package::bundle::{self, BundleError};
use package::digest::Digest;
use package::limits::Limits as PackageLimits;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::address::{Address, VERSION};
use super::bounds;
use super::download;
use super::error::FetchError;
use super::fetch::{Again, Answer, Fetcher};
use super::form::form;
use super::limits;
use crate::bundle::Bundle;
use crate::channel::Channel;
use crate::describe::{Describe, EntryPoint};
use crate::find::Page;
use crate::read::{Checked, Unreadable, read};
use crate::tested::TestReport;
use crate::versions::{Published, Versions, Yank};

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// What a tool should do, in anybody's words.
    pub words: String,
    /// What it must have: the name of a filter as the API has it, and a value.
    pub filters: Vec<(String, String)>,
    /// How many to pass over.
    pub offset: usize,
    /// How many are wanted.
    pub limit: usize,
}

/// What is said of a version.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// What is said.
    pub describe: Describe,
    /// Why it was taken back, where it was.
    pub yanked: Option<Yank>,
}

/// A package file, and what is said of it.
#[derive(Debug)]
pub struct Fetched {
    /// What is said.
    pub described: Described,
    /// Its digest.
    pub digest: Digest,
    /// The file, from its beginning. It has that digest, and the archive in it is sound.
    pub file: File,
}

/// One registry that speaks the registry API.
#[derive(Clone, Debug)]
pub struct Remote {
    name: String,
    pub(super) fetcher: Fetcher,
}

impl Remote {
    /// A registry, under the name that its owner gave it.
    pub fn new(name: &str, fetcher: Fetcher) -> Self {
        Self { name: name.to_owned(), fetcher }
    }

    /// What its owner calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        self.fetcher.address()
    }

    /// Whether a token is shown to it.
    pub fn has_token(&self) -> bool {
        self.fetcher.token.is_some()
    }

    /// The same, which tells of the bytes of packages as they arrive or are sent.
    pub fn watched(mut self, watch: Watch) -> Self {
        self.fetcher.watch = watch;
        self
    }

    /// Finds tools.
    pub async fn search(&self, question: &Question) -> Result<Page, FetchError> {
        let limit = question.limit.clamp(1, limits::PAGE);
        let mut url = self.url(&["tools", "search"]);
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("q", &question.words);
            for (name, value) in &question.filters {
                query.append_pair(name, value);
            }
            query.append_pair("limit", &limit.to_string());
            query.append_pair("offset", &question.offset.to_string());
        }
        let most = self.fetcher.settings.limits.page;
        let page: Page = self.read(url, most, "page of results").await?.0;
        bounds::check_page(&page, limit)?;
        Ok(page)
    }

    /// Says what a version is; the highest where none is named.
    pub async fn describe(&self, id: &str, version: Option<&str>) -> Result<Described, FetchError> {
        Ok(self.described(id, version).await?.0)
    }

    async fn described(
        &self,
        id: &str,
        version: Option<&str>,
    ) -> Result<(Described, Vec<u8>), FetchError> {
        bounds::check_id(id)?;
        let url = match version {
            Some(version) => {
                bounds::check_version(version)?;
                self.url(&["tools", id, "versions", version])
            }
            None => {
                let mut url = self.url(&["tools", id]);
                let channel = self.fetcher.settings.channel;
                // Registries of others know no channels.
                if channel != Channel::default() {
                    url.query_pairs_mut().append_pair("channel", channel.name());
                }
                url
            }
        };
        let most = self.fetcher.settings.limits.describe;
        let (describe, Answer { body, yanked, .. }): (Describe, _) =
            self.read(url, most, "description").await?;
        bounds::check_describe(&describe, id, version)?;
        if version.is_none() {
            // Who names this version later, and asks nobody, finds it too.
            let url = self.url(&["tools", id, "versions", &describe.version]);
            self.fetcher.note(&url, &body, yanked.as_ref());
        }
        Ok((Described { describe, yanked }, body))
    }

    /// Lists the versions of a tool.
    pub async fn versions(&self, id: &str) -> Result<Versions, FetchError> {
        bounds::check_id(id)?;
        let most = self.fetcher.settings.limits.versions;
        let url = self.url(&["tools", id, "versions"]);
        let versions: Versions = self.read(url, most, "list of versions").await?.0;
        bounds::check_versions(&versions, id)?;
        Ok(versions)
    }

    /// Fetches a version as a bundle, by the rules that hold for archives too. What the bundle says of itself must be
    /// what is described, and its files those whose digest was.
    pub async fn bundle(&self, id: &str, version: &str) -> Result<bundle::Bundle, FetchError> {
        let (described, said) = self.described(id, Some(version)).await?;
        let runtime = &described.describe.entry.runtime;
        if !described.describe.entry.is_node() {
            return Err(bounds::other("runtime", EntryPoint::NODE, runtime));
        }
        let limits = self.fetcher.settings.limits;
        let url = self.url(&["tools", id, "versions", version, "bundle"]);
        let answer = self.fetcher.get(url, limits.bundle, limits.transfer).await?;
        let unreadable = |error| FetchError::Unreadable("bundle", error);
        let wire: Bundle = read(&answer.body).map_err(unreadable)?;
        let structure =
            |error: serde_json::Error| unreadable(Unreadable::Structure(error.to_string()));
        let mut whole: Value = serde_json::from_slice(&answer.body).map_err(structure)?;
        let said: Value = serde_json::from_slice(&said).map_err(structure)?;
        if whole.get("manifest") != Some(&said) {
            return Err(bounds::other("bundle", version, "another description"));
        }
        let files = described.describe.files_sha256.as_deref().and_then(Digest::parse);
        if let Some(files) = files {
            let arrived = wire.listing().digest();
            if arrived != files {
                return Err(FetchError::Digest { described: files, arrived });
            }
        }
        // A registry says more of a tool than its author did, whose own words are among the files.
        let own = wire.files.iter().find(|file| file.path == bundle::MANIFEST);
        if let Some(own) = own {
            whole["manifest"] = serde_json::from_slice(&own.bytes()).map_err(structure)?;
        }
        let text = whole.to_string();
        let sound = PackageLimits::DEFAULT;
        let bundle = bundle::Bundle::read(text.as_bytes(), &sound);
        let bundle = bundle.map_err(|error| match error {
            BundleError::Read(error) => FetchError::Package(Box::new(error)),
            BundleError::Invalid(report) => {
                let first = report.findings.first().map(|finding| finding.message.clone());
                unreadable(Unreadable::Structure(first.unwrap_or_default()))
            }
            BundleError::Missing(_) | BundleError::Convert(_) => {
                unreadable(Unreadable::Structure("its manifest cannot be read".to_owned()))
            }
        })?;
        Ok(bundle)
    }

    /// Fetches the package file of a version; the highest where none is named.
    pub async fn package(&self, id: &str, version: Option<&str>) -> Result<Fetched, FetchError> {
        let described = self.describe(id, version).await?;
        self.package_of(described).await
    }

    /// Fetches the package file of what was described.
    pub async fn package_of(&self, described: Described) -> Result<Fetched, FetchError> {
        let describe = &described.describe;
        let digest = describe.sha256.as_deref().and_then(Digest::parse);
        let digest = digest.ok_or(FetchError::NoDigest)?;
        let wanted = download::Wanted {
            url: self.url(&["tools", &describe.id, "versions", &describe.version, "package"]),
            digest,
            size: describe.size,
            shown: format!("the package of `{}` {}", describe.name, describe.version),
        };
        let file = download::fetch(&self.fetcher, &wanted).await?;
        // The bytes are the right ones; whether they are a package is another question.
        let cannot = |error| FetchError::Cache(self.fetcher.cache.folder().to_owned(), error);
        let looked_at = file.try_clone().map_err(cannot)?;
        Archive::open(looked_at, Trailer::Refused, &PackageLimits::DEFAULT)
            .map_err(|error| FetchError::Package(Box::new(error)))?;
        let mut file = file;
        std::io::Seek::rewind(&mut file).map_err(cannot)?;
        Ok(Fetched { described, digest, file })
    }

    /// Publishes a package. The same bytes again change nothing, so it is sent again where it is not known what became
    /// of it. `id` is for a manifest that has none of its own; without a channel it is offered to everybody.
    pub async fn publish(
        &self,
        bytes: Vec<u8>,
        id: Option<&str>,
        channel: Channel,
    ) -> Result<Published, FetchError> {
        self.publish_tested(bytes, id, channel, None).await
    }

    /// The same, with a report of its tests where there is one. It is kept with the version, so it comes with the
    /// publish that makes the version or not at all.
    pub async fn publish_tested(
        &self,
        bytes: Vec<u8>,
        id: Option<&str>,
        channel: Channel,
        report: Option<&TestReport>,
    ) -> Result<Published, FetchError> {
        self.send_package(self.url(&["tools"]), bytes, id, channel, report).await
    }

    /// Asks what publishing a package would come to. Nothing is published.
    pub async fn foresee(
        &self,
        bytes: Vec<u8>,
        id: Option<&str>,
        channel: Channel,
    ) -> Result<Published, FetchError> {
        self.send_package(self.url(&["foresee"]), bytes, id, channel, None).await
    }

    async fn send_package(
        &self,
        mut url: Url,
        bytes: Vec<u8>,
        id: Option<&str>,
        channel: Channel,
        report: Option<&TestReport>,
    ) -> Result<Published, FetchError> {
        self.check_token()?;
        let is_archive = bytes.starts_with(b"PK");
        let digest = Digest::of(&bytes).to_string();
        if let Some(id) = id {
            url.query_pairs_mut().append_pair("id", id);
        }
        // Registries of others know no channels.
        if channel != Channel::default() {
            url.query_pairs_mut().append_pair("channel", channel.name());
        }
        let limits = self.fetcher.settings.limits;
        let mut request = self.fetcher.request(Method::POST, url, limits.describe, limits.transfer);
        let (kind, body) = match report {
            Some(report) => form(&bytes, report),
            None if is_archive => ("application/zip".to_owned(), bytes),
            None => ("application/json".to_owned(), bytes),
        };
        if let Ok(kind) = HeaderValue::try_from(kind) {
            request.headers.insert(HeaderName::from_static("content-type"), kind);
        }
        (request.body, request.watch) = (Some(body), Some(self.fetcher.watch.clone()));
        let response = self.fetcher.send(&request, Again::Freely).await?;
        let published: Published =
            read(&response.body).map_err(|error| FetchError::Unreadable("answer", error))?;
        // A bundle becomes an archive there; an archive stays what it is.
        if is_archive && published.sha256 != digest {
            return Err(bounds::other("digest", &digest, &published.sha256));
        }
        Ok(published)
    }

    /// Takes back a version, or offers it again: then there is no yank.
    pub async fn yank(
        &self,
        id: &str,
        version: &str,
        yank: Option<&Yank>,
    ) -> Result<(), FetchError> {
        bounds::check_id(id)?;
        bounds::check_version(version)?;
        self.check_token()?;
        let limits = self.fetcher.settings.limits;
        let url = self.url(&["tools", id, "versions", version, "yank"]);
        let method = if yank.is_some() { Method::POST } else { Method::DELETE };
        let mut request = self.fetcher.request(method, url, limits.refusal, limits.within);
        if let Some(yank) = yank {
            let body = serde_json::to_vec(yank);
            request.body = Some(body.unwrap_or_default());
            let json = HeaderValue::from_static("application/json");
            request.headers.insert(HeaderName::from_static("content-type"), json);
        }
        // Somebody else may have said the opposite meanwhile, so it is not said twice.
        self.fetcher.send(&request, Again::Unheard).await?;
        Ok(())
    }

    /// Refuses to change anything without saying who we are.
    pub(super) fn check_token(&self) -> Result<(), FetchError> {
        self.check_private_talk()?;
        if self.fetcher.token.is_none() {
            return Err(FetchError::NoToken);
        }
        Ok(())
    }

    /// Refuses to say what others could read on the way.
    pub(super) fn check_private_talk(&self) -> Result<(), FetchError> {
        if self.fetcher.address().is_private_talk() {
            return Ok(());
        }
        Err(FetchError::TokenInPlain)
    }

    pub(super) fn url(&self, segments: &[&str]) -> Url {
        let all: Vec<&str> = std::iter::once(VERSION).chain(segments.iter().copied()).collect();
        self.fetcher.address().below(&all)
    }

    async fn read<T: DeserializeOwned + Checked>(
        &self,
        url: Url,
        most: u64,
        what: &'static str,
    ) -> Result<(T, Answer), FetchError> {
        let within = self.fetcher.settings.limits.within;
        let answer = self.fetcher.get(url, most, within).await.map_err(|error| match error {
            FetchError::TooMuch(_) => FetchError::TooMuch(what),
            other => other,
        })?;
        let value = read(&answer.body).map_err(|error| FetchError::Unreadable(what, error))?;
        Ok((value, answer))
    }
}

impl Fetched {
    /// All bytes of the file.
    pub fn bytes(mut self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
