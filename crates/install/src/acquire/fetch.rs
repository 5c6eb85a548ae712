//! Files from indexes and from anywhere, into the store.
//!
//! A file of which the digest is known is gone on with where it broke off. What a redirect leads to is held against the same rules:
//! never from `https` to `http`, and to no private place that the owner has not named.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use egress::http::{Client, HeaderValue, Settings as HttpSettings, Url};
use egress::resolve::{Resolve, SystemResolver};
use egress::{Passed, Rule, Rules, Watch};
use package::digest::Digest;
use registry::client::{Address, FetchError, Fetcher, Limits, Reach as Asking, Settings};

use super::error::AcquireError;
use super::sources::{Index, Reach, Sources, plain, rule_for};
use super::store::Store;
use crate::report::Reporter;

/// The largest file.
const LARGEST: u64 = 4 << 30;
/// The largest file of which no SHA-256 is known before: it is held in memory until it was looked at.
const LARGEST_UNKNOWN: u64 = 512 << 20;
/// How long one part of a file may take.
const TRANSFER: Duration = Duration::from_mins(30);
/// How many redirects are followed.
const MOST_REDIRECTS: usize = 5;

/// Whom files are taken from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// From these, and from what their rules name; one client for all, since they are many files.
    Indexes(Vec<Index>, Rules, OnceLock<Client>),
    /// From a registry, to which this rule lets through, and from anybody on the public internet that it sends to, since
    /// the digests are known. Nobody but the registry is shown anything.
    Registry(Index, Option<Rule>),
    /// From anybody on the public internet, since their digests are known.
    Anybody,
}

impl Origin {
    pub(super) fn indexes(indexes: Vec<Index>, rules: Rules) -> Self {
        Self::Indexes(indexes, rules, OnceLock::new())
    }

    /// The index that a URL belongs to.
    fn index(&self, url: &Url) -> Option<&Index> {
        let is_there = |index: &&Index| index.url.origin() == url.origin();
        match self {
            Self::Indexes(indexes, ..) => indexes.iter().find(is_there),
            Self::Registry(index, _) => Some(index).filter(is_there),
            Self::Anybody => None,
        }
    }
}

/// A file of which the digest is known.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// As it is told.
    pub(super) shown: String,
    pub(super) url: Url,
    pub(super) digest: Digest,
    /// How large it may be.
    pub(super) most: u64,
    /// What kinds of it are wanted, for servers that have several.
    pub(super) accept: Option<HeaderValue>,
}

/// Fetches files.
#[derive(Clone, Debug)]
pub(super) struct Files<'f> {
    sources: &'f Sources,
    store: &'f Store,
    reporter: Arc<dyn Reporter>,
    /// Bytes of all files that have come.
    came: Arc<AtomicU64>,
}

impl<'f> Files<'f> {
    pub(super) fn new(sources: &'f Sources, store: &'f Store, reporter: Arc<dyn Reporter>) -> Self {
        Self { sources, store, reporter, came: Arc::default() }
    }

    /// A file of which the digest is known, put into the store if it is not there.
    pub(super) async fn known(
        &self,
        shown: &str,
        url: &Url,
        digest: Digest,
        from: &Origin,
    ) -> Result<(), AcquireError> {
        let (shown, url) = (shown.to_owned(), url.clone());
        self.have(&Known { shown, url, digest, most: LARGEST, accept: None }, from).await
    }

    /// The same, of which more is known.
    pub(super) async fn have(&self, known: &Known, from: &Origin) -> Result<(), AcquireError> {
        let Known { shown, url, digest, most, accept } = known;
        if self.store.has(*digest)? {
            return Ok(());
        }
        let ask = async |fetcher: &Fetcher, url| {
            let fetcher = fetcher.clone().at_most((*most).min(LARGEST));
            let fetcher = match accept {
                Some(kinds) => fetcher.accepting(kinds.clone()),
                None => fetcher,
            };
            fetcher.file(url, *digest, shown.clone()).await
        };
        self.follow(shown, url, from, ask).await.map(drop)
    }

    /// A file of which no SHA-256 is known; who gets its bytes says whether they are the right ones.
    pub(super) async fn unknown(
        &self,
        shown: &str,
        url: &Url,
        from: &Origin,
    ) -> Result<Vec<u8>, AcquireError> {
        let ask =
            async |fetcher: &Fetcher, url| fetcher.bytes(url, LARGEST_UNKNOWN, TRANSFER).await;
        self.follow(shown, url, from, ask).await
    }

    /// Asks, and asks elsewhere as long as redirects may be followed.
    async fn follow<T>(
        &self,
        shown: &str,
        url: &Url,
        from: &Origin,
        ask: impl AsyncFn(&Fetcher, Url) -> Result<T, FetchError>,
    ) -> Result<T, AcquireError> {
        if self.sources.reach == Reach::Offline {
            return Err(AcquireError::Offline(vec![shown.to_owned()]));
        }
        self.reporter.begins(&format!("fetching {shown}"));
        let mut url = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let fetcher = self.fetcher(shown, &url, from)?;
            match ask(&fetcher, plain(&url)).await {
                Ok(came) => return Ok(came),
                Err(FetchError::Redirected(to)) => url = next(&url, &to)?,
                Err(FetchError::Digest { described, arrived }) => {
                    return Err(AcquireError::digest(shown.to_owned(), described, arrived));
                }
                Err(cause) => {
                    let host = url.host_str().unwrap_or_default();
                    let what = format!("{shown} from `{host}`");
                    return Err(AcquireError::Fetch { what, cause: Box::new(cause) });
                }
            }
        }
        let place = plain(&url).to_string();
        Err(AcquireError::Place { place, why: "one redirect followed another" })
    }

    fn client(&self, shown: &str, rules: Rules) -> Result<Client, AcquireError> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| AcquireError::Disk(path.clone(), error))
        };
        let roots = self.sources.certificates.as_ref().map(read).transpose()?;
        let extra_roots = roots.unwrap_or_default();
        let settings = HttpSettings { extra_roots, ..HttpSettings::default() };
        let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::default());
        Client::with(rules, resolver, settings).map_err(|_| AcquireError::Place {
            place: shown.to_owned(),
            why: "the certificates to trust cannot be used",
        })
    }

    /// A client that reaches the host of one URL.
    pub(super) fn client_for(
        &self,
        shown: &str,
        url: &Url,
        from: &Origin,
    ) -> Result<Client, AcquireError> {
        let index = from.index(url);
        // What the owner has named as `http` may be had so.
        if url.scheme() != "https" && (url.scheme() != "http" || index.is_none()) {
            let place = plain(url).to_string();
            return Err(AcquireError::Place { place, why: "it is not `https`" });
        }
        let beside = self.sources.hosts.iter().cloned();
        Ok(match from {
            Origin::Anybody => {
                self.client(shown, rule_for(url).into_iter().chain(beside).collect())?
            }
            Origin::Registry(_, rule) => {
                let rule = if index.is_some() { rule.clone() } else { rule_for(url) };
                self.client(shown, rule.into_iter().chain(beside).collect())?
            }
            Origin::Indexes(_, rules, made) => match made.get() {
                Some(client) => client.clone(),
                None => {
                    let client = self.client(shown, rules.clone())?;
                    made.get_or_init(|| client).clone()
                }
            },
        })
    }

    /// What asks the host of one URL.
    fn fetcher(&self, shown: &str, url: &Url, from: &Origin) -> Result<Fetcher, AcquireError> {
        let refuse = |why| AcquireError::Place { place: plain(url).to_string(), why };
        let client = self.client_for(shown, url, from)?;
        let address = Address::parse(&url.origin().ascii_serialization());
        let address = address.map_err(|_| refuse("it has no host that can be reached"))?;
        let limits = Limits { package: LARGEST, transfer: TRANSFER, ..Limits::DEFAULT };
        let settings = Settings { limits, reach: Asking::Online, ..Settings::default() };
        let (came, reporter) = (Arc::clone(&self.came), Arc::clone(&self.reporter));
        let watch = Watch::new(move |passed| {
            if let Passed::Bytes(more) = passed {
                reporter.passed(came.fetch_add(more, Ordering::Relaxed) + more, None);
            }
        });
        let cache = Arc::clone(&self.store.cache);
        let fetcher = Fetcher::through(client, &address, cache, settings, watch);
        Ok(match from.index(url).and_then(authorization) {
            Some(shown) => fetcher.showing(shown),
            None => fetcher,
        })
    }
}

/// What an index is shown.
pub(super) fn authorization(index: &Index) -> Option<HeaderValue> {
    let text = match (&index.token, index.url.username(), index.url.password()) {
        (Some(token), _, _) => format!("Bearer {token}"),
        (None, "", None) => return None,
        (None, name, password) => {
            let decoded = |text| percent_encoding::percent_decode_str(text).decode_utf8_lossy();
            let both = format!("{}:{}", decoded(name), decoded(password.unwrap_or_default()));
            format!("Basic {}", STANDARD.encode(both))
        }
    };
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Where a redirect leads, if it may be followed at all.
fn next(from: &Url, to: &str) -> Result<Url, AcquireError> {
    let refuse = |why| AcquireError::Place { place: plain(from).to_string(), why };
    let next = from.join(to).map_err(|_| refuse("it was redirected to what is no URL"))?;
    if from.scheme() == "https" && next.scheme() != "https" {
        return Err(refuse("it was redirected from `https` to `http`"));
    }
    Ok(next)
}
