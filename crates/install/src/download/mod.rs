//! Files from addresses that the owner typed.
//!
//! Whatever is fetched passes the gate of `egress`: only the origin that was typed may be a private place, or `http`
//! on this machine. A redirect inherits nothing of that. How much is taken depends on what the file begins as.
//!
//! | module | what it is |
//! |---|---|
//! | `address` | the address of a file, as the owner typed it |
//! | `size` | how much of a file is taken, judged from how it begins |
//! | `error` | why a file was not fetched |
//! | `alone` | whether a manifest can do without the files around it |

mod address;
mod alone;
mod error;
mod size;

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use egress::http::{Client, HeaderName, Method, Request, Url, is_here};
use egress::resolve::{Resolve, SystemResolver};
use egress::{Rules, Watch};
use manifest::document::{MAX_INDEX, MAX_MANIFEST};
use package::digest::Digest;
use registry::catalog::read::{Index, Pointed};
use registry::client::{Address, Cache, FetchError, Fetcher, Limits, Reach, Settings};

pub use address::{AddressError, FileAddress};
pub use alone::own_file;
pub use error::DownloadError;
use size::Size;

/// How many redirects are followed.
const MOST_REDIRECTS: usize = 5;
/// How long a whole file may take.
const TRANSFER: Duration = Duration::from_mins(10);
/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(30);
/// How long an index may take to arrive, and a manifest that it points to.
const INDEX_WITHIN: Duration = Duration::from_secs(15);

/// A file that was fetched.
#[derive(Clone, Debug)]
pub struct Downloaded {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
    /// The address that was asked for first, as it is written down.
    pub shown: String,
}

/// Fetches files.
#[derive(Clone, Debug)]
pub struct Downloads {
    /// Files of which the digest was known before are kept here, and not fetched twice.
    pub cache: Arc<Cache>,
    /// Whether anybody is asked.
    pub reach: Reach,
    /// Is told of the bytes as they arrive.
    pub watch: Watch,
}

/// What is fetched.
struct Wanted<'w> {
    url: &'w Url,
    /// The origin that the owner typed, which may be a private one.
    typed: &'w Url,
    digest: Option<Digest>,
    size: Size,
    within: Duration,
}

impl Downloads {
    /// Fetches a file. One of which the digest is known is gone on with where it broke off, and is then kept.
    pub async fn file(&self, address: &FileAddress) -> Result<Downloaded, DownloadError> {
        let (url, digest) = (address.url(), address.digest());
        let size = Size::AsItBegins;
        self.fetch(&Wanted { url, typed: url, digest, size, within: TRANSFER }).await
    }

    /// Fetches an index, the address of which is this.
    pub async fn index(&self, address: &FileAddress) -> Result<Index, DownloadError> {
        let (url, digest) = (address.url(), address.digest());
        let size = Size::UpTo(MAX_INDEX as u64, "an index");
        let within = INDEX_WITHIN;
        let fetched = self.fetch(&Wanted { url, typed: url, digest, size, within }).await?;
        registry::catalog::read::index(&fetched.bytes)
            .map_err(|why| DownloadError::Index(address.shown(), why))
    }

    /// Fetches a manifest that an index points to. It must be of the id that is listed.
    pub async fn pointed(
        &self,
        index: &FileAddress,
        pointed: &Pointed,
    ) -> Result<Downloaded, DownloadError> {
        let place = || clip(&pointed.url);
        let url = index.url().join(&pointed.url);
        let url = url.map_err(|_| DownloadError::place(place(), "it is no URL"))?;
        let size = Size::UpTo(MAX_MANIFEST as u64, "a manifest");
        let (typed, within) = (index.url(), INDEX_WITHIN);
        let fetched = self.fetch(&Wanted { url: &url, typed, digest: None, size, within }).await?;
        registry::catalog::read::pointed(pointed, &fetched.bytes)
            .map_err(|why| DownloadError::Manifest(pointed.id.clone(), why))?;
        Ok(fetched)
    }

    async fn fetch(&self, wanted: &Wanted<'_>) -> Result<Downloaded, DownloadError> {
        let mut url = wanted.url.clone();
        url.set_fragment(None);
        let first = address::shown(&url);
        for _ in 0..=MOST_REDIRECTS {
            let client = client(&url, wanted.typed)?;
            let came = match wanted.digest {
                Some(digest) => self.known(client, &url, digest, wanted).await,
                None => self.unknown(client, &url, wanted).await,
            };
            match came {
                Ok(bytes) => {
                    let digest = Digest::of(&bytes);
                    return Ok(Downloaded { bytes, digest, shown: first });
                }
                Err(DownloadError::Fetch(_, error)) if is_redirect(&error).is_some() => {
                    let to = is_redirect(&error).unwrap_or_default();
                    url = next(&url, to)?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(DownloadError::place(address::shown(&url), "one redirect followed another"))
    }

    /// A file of which the digest is known: from what is kept, or in as many parts as it takes.
    async fn known(
        &self,
        client: Client,
        url: &Url,
        digest: Digest,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<u8>, DownloadError> {
        let origin = url.origin().ascii_serialization();
        let address = Address::parse(&origin);
        let address = address.map_err(|_| DownloadError::place(origin, "it has no host"))?;
        let limits =
            Limits { package: wanted.size.most(), transfer: wanted.within, ..Limits::DEFAULT };
        let settings = Settings { limits, reach: self.reach, ..Settings::default() };
        let cache = Arc::clone(&self.cache);
        let fetcher = Fetcher::through(client, &address, cache, settings, self.watch.clone());
        let failed = |error| DownloadError::fetch(url, error);
        let asked = fetcher.file(url.clone(), digest, format!("`{}`", address::shown(url))).await;
        let mut file = asked.map_err(failed)?;
        let mut bytes = Vec::new();
        let read = file.read_to_end(&mut bytes);
        read.map_err(|error| failed(FetchError::Cache(self.cache.folder().to_owned(), error)))?;
        wanted.size.check(&bytes)?;
        Ok(bytes)
    }

    /// A file of which nothing is known. Nothing is kept of it.
    async fn unknown(
        &self,
        client: Client,
        url: &Url,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<u8>, DownloadError> {
        let failed = |error| DownloadError::fetch(url, error);
        if self.reach == Reach::Offline {
            return Err(failed(FetchError::Offline(format!("`{}`", address::shown(url)))));
        }
        let mut request = Request::new(Method::GET, url.clone());
        (request.most, request.within, request.redirects) =
            (wanted.size.most() + 1, wanted.within, 0);
        let began = client.begin(request, SILENCE.min(wanted.within)).await;
        let mut incoming = began.map_err(|error| failed(error.into()))?;
        let status = incoming.status;
        if status.is_redirection() {
            let to = incoming.headers.get(HeaderName::from_static("location"));
            let to = to.and_then(|to| to.to_str().ok()).unwrap_or_default();
            return Err(failed(FetchError::Redirected(to.to_owned())));
        }
        if !status.is_success() {
            let status = status.as_u16();
            return Err(failed(FetchError::Refused { status, said: None, again: None }));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = incoming.piece().await.map_err(|error| failed(error.into()))? {
            bytes.extend_from_slice(piece.as_ref());
            wanted.size.check(&bytes)?;
            self.watch.passed(piece.as_ref().len() as u64);
        }
        Ok(bytes)
    }
}

/// Where an answer points that is none itself.
fn is_redirect(error: &FetchError) -> Option<&str> {
    match error {
        FetchError::Redirected(to) => Some(to),
        _ => None,
    }
}

/// What asks the host of a URL and nobody else.
fn client(url: &Url, typed: &Url) -> Result<Client, DownloadError> {
    let rules = rules(url, typed)?;
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::default());
    Client::new(rules, resolver).map_err(DownloadError::Setup)
}

/// What may be dialled for a URL: nobody typed any other origin than one, so all others are public and encrypted.
fn rules(url: &Url, typed: &Url) -> Result<Rules, DownloadError> {
    let refuse = |why| DownloadError::place(address::shown(url), why);
    let is_typed = url.origin() == typed.origin();
    let is_safe = url.scheme() == "https" || (is_typed && url.scheme() == "http" && is_here(url));
    if !is_safe {
        return Err(refuse("it is not `https`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("it holds a name or a password"));
    }
    let rule = address::rule(url).map_err(|_| refuse("its host cannot be dialled"))?;
    let rule = match rule {
        rule if is_typed => rule.reaching_private(),
        rule if rule.names_private() => {
            return Err(refuse("it is a private place, which nobody typed"));
        }
        rule => rule,
    };
    Ok(Rules::from_iter([rule]))
}

/// Where a redirect leads.
fn next(from: &Url, to: &str) -> Result<Url, DownloadError> {
    let next = from.join(to).ok().filter(|_| !to.is_empty());
    let mut next = next.ok_or_else(|| {
        DownloadError::place(address::shown(from), "it was redirected to what is no URL")
    })?;
    next.set_fragment(None);
    Ok(next)
}

fn clip(text: &str) -> String {
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_origin_that_was_typed_may_be_private_or_plain() {
        let check = |url: &str, typed: &str| {
            rules(&Url::parse(url).unwrap(), &Url::parse(typed).unwrap()).is_ok()
        };
        let here = "http://127.0.0.1:8000/x";
        for (url, typed) in [
            (here, here),
            ("http://127.0.0.1:8000/other", here),
            ("https://a.example/x", here),
            ("https://10.0.0.1/x", "https://10.0.0.1/y"),
            ("https://b.example/x", "https://a.example/x"),
        ] {
            assert!(check(url, typed), "{url} of {typed}");
        }
        for (url, typed) in [
            ("http://127.0.0.1:8001/x", here),
            ("https://127.0.0.1:8000/x", here),
            ("http://localhost:8000/x", here),
            (here, "https://a.example/x"),
            ("http://a.example/x", "https://a.example/x"),
            ("https://localhost/x", "https://a.example/x"),
            ("https://169.254.169.254/x", "https://a.example/x"),
            ("https://[::1]/x", "https://a.example/x"),
            ("https://10.0.0.1/x", "https://a.example/x"),
            ("https://u@b.example/x", "https://a.example/x"),
            ("file:///etc/passwd", "https://a.example/x"),
        ] {
            assert!(!check(url, typed), "{url} of {typed}");
        }
    }
}
