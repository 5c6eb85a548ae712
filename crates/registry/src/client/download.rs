//! A package file, in as many parts as it takes.
//!
//! What arrived before a connection broke, or before we were killed, is gone on with. Whatever a registry sends, the
//! file is one only if it has the digest that was described.

use std::fs::File;
use std::io;

use egress::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Url};
use package::digest::Digest;

use super::bounds::other;
use super::cache::{Begun, Part};
use super::error::FetchError;
use super::fetch::{Fetcher, Reach, refused};

/// A package file that is wanted.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Where it is.
    pub(super) url: Url,
    /// The digest that was described.
    pub(super) digest: Digest,
    /// How many bytes were described.
    pub(super) size: Option<u64>,
    /// What it is called in messages.
    pub(super) shown: String,
}

impl Fetcher {
    /// A file of which the digest is known: from what is kept, or in as many parts as it takes.
    pub async fn file(&self, url: Url, digest: Digest, shown: String) -> Result<File, FetchError> {
        fetch(self, &Wanted { url, digest, size: None, shown }).await
    }
}

/// How a part of it ended.
enum Came {
    /// All of it is there.
    All,
    /// What was there before was no beginning of it; there is nothing now.
    Nothing,
}

/// The file, from what is kept or from the registry.
pub(super) async fn fetch(fetcher: &Fetcher, wanted: &Wanted) -> Result<File, FetchError> {
    let most = fetcher.settings.limits.package;
    if let Some(bytes) = wanted.size.filter(|bytes| *bytes > most) {
        return Err(FetchError::TooLarge { bytes, most });
    }
    let cannot = |error: io::Error| FetchError::Cache(fetcher.cache.folder().to_owned(), error);
    if let Some(file) = fetcher.cache.package(wanted.digest).map_err(cannot)? {
        return Ok(file);
    }
    if fetcher.settings.reach == Reach::Offline {
        return Err(FetchError::Offline(wanted.shown.clone()));
    }
    let (cache, digest) = (std::sync::Arc::clone(&fetcher.cache), wanted.digest);
    // It may wait for another process.
    let begun = tokio::task::spawn_blocking(move || cache.begin(digest)).await;
    let begun = begun.map_err(|error| cannot(io::Error::other(error)))?.map_err(cannot)?;
    let mut part = match begun {
        Begun::Whole(file) => return Ok(file),
        Begun::Part(part) => part,
    };
    let mut had_some = part.length() > 0;
    // What came before counts too.
    fetcher.watch.passed(part.length());
    let mut failures = 0;
    loop {
        let before = part.length();
        match rest(fetcher, wanted, &mut part).await {
            Ok(Came::All) => {
                let finished = part.finish().map_err(cannot)?;
                match finished {
                    Ok(file) => {
                        fetcher.cache.prune(Some(wanted.digest));
                        return Ok(file);
                    }
                    // What was there before may be at fault; once it is fetched as a whole.
                    Err(_) if had_some => {
                        had_some = false;
                        let begun = fetcher.cache.begin(wanted.digest).map_err(cannot)?;
                        part = match begun {
                            Begun::Whole(file) => return Ok(file),
                            Begun::Part(part) => part,
                        };
                        part.restart(None).map_err(cannot)?;
                    }
                    Err(arrived) => {
                        return Err(FetchError::Digest { described: wanted.digest, arrived });
                    }
                }
            }
            Ok(Came::Nothing) if had_some => had_some = false,
            Ok(Came::Nothing) => {
                part.discard().map_err(cannot)?;
                return Err(other("bytes", &wanted.shown, "others than those"));
            }
            Err(error) => {
                failures += 1;
                // A connection that brings something, even if little, is worth another.
                had_some = had_some || part.length() > before;
                if !(error.passes() && fetcher.pause(failures, &error).await) {
                    // Only a beginning is worth keeping.
                    if part.length() == 0 {
                        part.discard().map_err(cannot)?;
                    }
                    return Err(error);
                }
            }
        }
    }
}

/// Asks for what is missing, and adds what arrives.
async fn rest(fetcher: &Fetcher, wanted: &Wanted, part: &mut Part) -> Result<Came, FetchError> {
    let cannot = |error: io::Error| FetchError::Cache(fetcher.cache.folder().to_owned(), error);
    let limits = fetcher.settings.limits;
    let most = wanted.size.unwrap_or(limits.package).min(limits.package);
    let mut tag = part.tag();
    if part.length() > most || (tag.is_none() && Some(part.length()) != wanted.size) {
        part.restart(None).map_err(cannot)?;
        tag = None;
    }
    let have = part.length();
    if have > 0 && wanted.size == Some(have) {
        return Ok(Came::All);
    }
    // One byte more than it may have, so that more is noticed.
    let room = most - have + 1;
    let room = room.max(limits.refusal);
    let mut request = fetcher.request(Method::GET, wanted.url.clone(), room, limits.transfer);
    if have > 0
        && let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(&tag).ok())
    {
        let range = HeaderValue::from_str(&format!("bytes={have}-"));
        if let Ok(range) = range {
            request.headers.insert(HeaderName::from_static("range"), range);
            request.headers.insert(HeaderName::from_static("if-range"), tag);
        }
    }
    let mut incoming = fetcher.client.begin(request, limits.silence).await?;
    match incoming.status {
        StatusCode::OK => {
            let tag = incoming.headers.get("etag").and_then(|tag| tag.to_str().ok());
            part.restart(tag).map_err(cannot)?;
        }
        StatusCode::PARTIAL_CONTENT => {
            let range = content_range(&incoming.headers);
            let goes_on = range.is_some_and(|(first, total)| {
                first == have && have > 0 && wanted.size.is_none_or(|size| size == total)
            });
            if !goes_on {
                part.restart(None).map_err(cannot)?;
                return Ok(Came::Nothing);
            }
        }
        StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => {
            part.restart(None).map_err(cannot)?;
            return Ok(Came::Nothing);
        }
        status => {
            let headers = incoming.headers.clone();
            let mut body = Vec::new();
            while let Some(piece) = incoming.piece().await? {
                body.extend_from_slice(piece.as_ref());
                if body.len() as u64 > limits.refusal {
                    break;
                }
            }
            return Err(refused(status, &headers, &body));
        }
    }
    let total = incoming.length().map(|length| length + part.length());
    if let (Some(size), Some(total)) = (wanted.size, total)
        && size != total
    {
        return Err(other("size", &size.to_string(), &total.to_string()));
    }
    while let Some(piece) = incoming.piece().await? {
        let piece = piece.as_ref();
        if part.length() + piece.len() as u64 > most {
            return Err(FetchError::TooMuch("package"));
        }
        part.write(piece).map_err(cannot)?;
        fetcher.watch.passed(piece.len() as u64);
    }
    if let Some(size) = wanted.size.filter(|size| *size != part.length()) {
        return Err(other("size", &size.to_string(), &part.length().to_string()));
    }
    Ok(Came::All)
}

/// Reads `Content-Range`: the first byte and how many there are in all.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64)> {
    let text = headers.get("content-range")?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok()).flatten()
    };
    let (first, last, total) = (number(first)?, number(last)?, number(total)?);
    (first <= last && last.checked_add(1) == Some(total)).then_some((first, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_goes_on_to_the_end_is_gone_on_with() {
        for (text, read) in [
            ("bytes 5-9/10", Some((5, 10))),
            ("bytes 5-8/10", None),
            ("bytes 9-5/10", None),
            ("bytes 5-9/*", None),
            ("bytes +5-9/10", None),
            ("bytes 5-18446744073709551615/18446744073709551615", None),
            ("lines 5-9/10", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("content-range", text.parse().unwrap());
            assert_eq!(content_range(&headers), read, "{text}");
        }
    }
}
