//! The address of the registry itself, for answers that must name it.

use axum::extract::Request;
use axum::http::header;
use axum::http::uri::Authority;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::address::{self, Peer};
use super::refused::Refused;
use crate::service::Registry;

/// What stays as it is in a segment of a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b'~');

/// The address of the registry: the one the operator gave, else the one that was asked.
pub(super) fn of(registry: &Registry, request: &Request) -> Result<String, Refused> {
    if let Some(known) = &registry.settings.public_url {
        return Ok(known.trim_end_matches('/').to_owned());
    }
    // HTTP/2 names the host in the address itself.
    let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host =
        named.or_else(|| request.uri().authority().map(Authority::as_str)).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]_".contains(c);
    if host.is_empty() || host.len() > 255 || !host.chars().all(is_plain) {
        return Err(Refused::invalid("the request does not name the host it is for"));
    }
    // A proxy says whether it speaks TLS before us, after whatever a client has written there.
    let is_proxy = request
        .extensions()
        .get::<Peer>()
        .is_some_and(|peer| address::is_among(&registry.settings.proxies, peer.0));
    let said = request.headers().get_all("x-forwarded-proto").iter().next_back();
    let is_tls = is_proxy && said.is_some_and(|said| said == "https");
    let scheme = if is_tls { "https" } else { "http" };
    Ok(format!("{scheme}://{host}"))
}

/// Where something of a version is to be had.
pub(super) fn of_version(base: &str, id: &str, version: &str, part: &str) -> String {
    let plain = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
    format!("{base}/v1/tools/{}/versions/{}/{part}", plain(id), plain(version))
}
