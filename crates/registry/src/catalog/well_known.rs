//! The install-manifests that an index points to.
//!
//! The owner named the site of the index, so it may be a private one. The manifests may be anywhere else, but nowhere
//! private and only encrypted.

use std::collections::HashSet;

use egress::http::Url;
use egress::{Rule, Rules};
use futures_util::StreamExt;
use futures_util::stream;
use manifest::document::{MAX_INDEX, MAX_MANIFEST};

use super::read::{self, Held, Listed, Listing, Pointed};
use super::{WITHIN, each_page};
use crate::client::error::FetchError;
use crate::client::fetch::Fetcher;

/// Where an index is on a site.
const PLACE: [&str; 2] = [".well-known", "install-manifests.json"];
/// How many manifests are fetched side by side.
const AT_ONCE: usize = 8;
/// How often a manifest is tried: one that is not there is passed over.
const TRIES: u32 = 2;

/// Fetches an index, page by page, and what it points to.
pub(super) async fn fetch(fetcher: &Fetcher) -> Result<Listing, FetchError> {
    let address = fetcher.address();
    let is_index = address.url().path().ends_with(PLACE[1]);
    let url = if is_index { address.url().clone() } else { address.below(&PLACE) };
    let mut listing = Listing::default();
    let (mut pointed, mut seen) = (Vec::new(), HashSet::new());
    let take = |body: &[u8], listing: &mut Listing| {
        let page = read::index(body)?;
        for warning in page.warnings {
            listing.warn(warning);
        }
        for one in page.pointed {
            if seen.insert(one.id.clone()) {
                pointed.push(one);
            } else {
                listing.warn(format!("`{}` is there already", one.id));
            }
        }
        Ok(pointed.len())
    };
    each_page(fetcher, url.clone(), MAX_INDEX, &mut listing, take).await?;
    let mut rules = Rules::from_iter(address.rule().ok());
    let mut wanted = Vec::new();
    for one in pointed {
        match place(&url, &one) {
            Ok((at, rule)) => {
                rules = rules.allowing(rule);
                wanted.push((one, at));
            }
            Err(why) => listing.warn(format!("`{}`: {why}", one.id)),
        }
    }
    let mut fetcher =
        fetcher.with_rules(rules).map_err(|error| FetchError::Catalog(error.to_string()))?;
    fetcher.settings.pace.tries = TRIES;
    let fetcher = &fetcher;
    let each = wanted.into_iter().map(|(one, at)| async move {
        let fetched = fetcher.get(at.clone(), MAX_MANIFEST as u64, WITHIN).await;
        let read = match fetched {
            Ok(answer) => read::pointed(&one, &answer.body)
                .map(|package| Listed { package, held: Held::ManifestAt(at, answer.body) }),
            Err(error) => Err(error.to_string()),
        };
        (one, read)
    });
    let mut arriving = stream::iter(each).buffered(AT_ONCE);
    while let Some((one, read)) = arriving.next().await {
        match read {
            Ok(package) => {
                if let Some(instead) = &one.deprecated_for {
                    listing.warn(format!("`{}` is deprecated; use `{instead}`", one.id));
                }
                listing.packages.push(package);
            }
            Err(why) => listing.warn(format!("`{}`: {why}", one.id)),
        }
    }
    Ok(listing)
}

/// Where a manifest is, and what lets a connection through to it where it is not on the site of the index.
fn place(index: &Url, pointed: &Pointed) -> Result<(Url, Option<Rule>), String> {
    let url = index.join(&pointed.url).map_err(|error| error.to_string())?;
    if url.origin() == index.origin() {
        return Ok((url, None));
    }
    if url.scheme() != "https" {
        return Err("its manifest is not to be had over `https`".to_owned());
    }
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let rule = Rule::parse(&format!("{host}:{port}")).map_err(|error| error.to_string())?;
    // Nobody typed it: it leads nowhere private, also where it names a private place itself.
    if rule.names_private() {
        return Err(format!("its manifest is at `{host}`, a private place"));
    }
    Ok((url, Some(rule)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_nowhere_private_and_encrypted() {
        let index = Url::parse("http://127.0.0.1:8000/.well-known/install-manifests.json").unwrap();
        let at = |url: &str| {
            let text = format!(
                r#"{{"version":"1","manifests":[{{"id":"a","manifest_url":"{url}","status":"active"}}]}}"#
            );
            let pointed = read::index(text.as_bytes()).unwrap().pointed.remove(0);
            place(&index, &pointed).map(|(url, rule)| (url.to_string(), rule.is_some()))
        };
        assert_eq!(at("/a.json"), Ok(("http://127.0.0.1:8000/a.json".to_owned(), false)));
        assert_eq!(at("https://x.example/a"), Ok(("https://x.example/a".to_owned(), true)));
        for url in [
            "http://x.example/a",
            "https://127.0.0.1/a",
            "https://10.0.0.1/a",
            "https://169.254.169.254/latest",
            "file:///etc/passwd",
            "https://[::1]/a",
        ] {
            assert!(at(url).is_err(), "{url}");
        }
    }
}
