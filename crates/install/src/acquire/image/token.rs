//! The token that a registry wants to see, from whoever it names: given to everybody who asks.
//!
//! Nobody is told a name or a password but the mirror that the owner has typed them for.

use std::time::Duration;

use egress::http::{
    Challenge, HeaderName, HeaderValue, Method, Request, StatusCode, Url, challenges,
};
use registry::client::FetchError;
use serde::Deserialize;

use super::place::Place;
use super::{ACCEPTED, unshared};
use crate::acquire::error::AcquireError;
use crate::acquire::fetch::authorization;
use crate::acquire::sources::plain;
use crate::acquire::workshop::Workshop;

/// The largest answer that is read.
const LARGEST: u64 = 64 << 10;
/// The longest token.
const LONGEST: usize = 16 << 10;
/// How long one answer may take.
const WITHIN: Duration = Duration::from_secs(15);

/// A token for a repository, which this address of it wants to see.
pub(super) async fn fetch(
    workshop: &Workshop<'_>,
    place: &Place,
    url: &Url,
    name: &str,
) -> Result<String, AcquireError> {
    let challenge = challenge(workshop, place, url, name).await?;
    let realm = realm(&challenge, place).ok_or_else(|| unshared(name))??;
    let shown = format!("a token for `{name}`");
    let client = workshop.files.client_for(&shown, &realm, &place.origin(None))?;
    let host = realm.host_str().unwrap_or_default().to_owned();
    let failed = |cause: FetchError| {
        let what = format!("{shown} from `{host}`");
        AcquireError::Fetch { what, cause: Box::new(cause) }
    };
    let mut request = Request::new(Method::GET, plain(&realm));
    (request.most, request.within, request.redirects) = (LARGEST, WITHIN, 0);
    if realm.origin() == place.index().url.origin()
        && let Some(shown) = authorization(place.index())
    {
        request.headers.insert(HeaderName::from_static("authorization"), shown);
    }
    let response = client.send(request).await.map_err(|error| failed(error.into()))?;
    match response.status {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(unshared(name)),
        status => {
            let (said, again) = (None, None);
            return Err(failed(FetchError::Refused { status: status.as_u16(), said, again }));
        }
    }
    read(&response.body)
}

/// What the registry wants to hear.
async fn challenge(
    workshop: &Workshop<'_>,
    place: &Place,
    url: &Url,
    name: &str,
) -> Result<Challenge, AcquireError> {
    let shown = format!("`{name}`");
    let client = workshop.files.client_for(&shown, url, &place.origin(None))?;
    let mut request = Request::new(Method::GET, url.clone());
    (request.most, request.within, request.redirects) = (LARGEST, WITHIN, 0);
    request.headers.insert(HeaderName::from_static("accept"), HeaderValue::from_static(ACCEPTED));
    let head = client.begin(request, WITHIN).await.map_err(|error| {
        let what = format!("{shown} from `{}`", url.host_str().unwrap_or_default());
        AcquireError::Fetch { what, cause: Box::new(error.into()) }
    })?;
    let said = head.headers.get_all("www-authenticate").iter();
    let said = said.filter_map(|value| value.to_str().ok()).flat_map(challenges);
    let bearer = said.into_iter().find(|one| one.scheme == "bearer");
    bearer.ok_or_else(|| unshared(name))
}

/// Where tokens are given, and for what this one is; nothing where the registry does not say.
fn realm(challenge: &Challenge, place: &Place) -> Option<Result<Url, AcquireError>> {
    let text = challenge.parameter("realm")?;
    let refuse = |why| Some(Err(AcquireError::Place { place: text.to_owned(), why }));
    let Some(mut realm) = Url::parse(text).ok().filter(Url::has_host) else {
        return refuse("the registry sends there for a token, and it is no URL");
    };
    let is_own = realm.origin() == place.index().url.origin();
    // What the owner has typed as `http` may be asked so, and nobody else.
    if realm.scheme() != "https" && !(is_own && realm.scheme() == "http") {
        return refuse("the registry sends there for a token, and it is not `https`");
    }
    let own = format!("repository:{}:pull", place.repository());
    let scope = challenge.parameter("scope").unwrap_or(&own);
    if let Some(service) = challenge.parameter("service") {
        realm.query_pairs_mut().append_pair("service", service);
    }
    realm.query_pairs_mut().append_pair("scope", scope);
    Some(Ok(realm))
}

/// Reads what is answered: older ones say `token`, newer ones `access_token`.
fn read(body: &[u8]) -> Result<String, AcquireError> {
    #[derive(Deserialize)]
    struct Answer {
        token: Option<String>,
        access_token: Option<String>,
    }
    let unreadable =
        |why: String| AcquireError::Unreadable { what: "the answer with a token", why };
    let answer: Answer =
        serde_json::from_slice(body).map_err(|error| unreadable(error.to_string()))?;
    let token = answer.token.or(answer.access_token).filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| unreadable("there is none in it".to_owned()))?;
    if token.len() > LONGEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unreadable("what is in it can be none".to_owned()));
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquire::sources::Index;

    fn place(mirror: &str) -> Place {
        let mirror = Index::at(Url::parse(mirror).unwrap());
        Place::of("registry.test/acme/echo", Some(&mirror)).unwrap()
    }

    fn asked(header: &str, mirror: &str) -> Option<Result<String, String>> {
        let asked = realm(&challenges(header)[0], &place(mirror))?;
        Some(asked.map(|url| url.to_string()).map_err(|error| error.to_string()))
    }

    #[test]
    fn a_realm_is_asked_for_what_the_registry_says_and_else_for_this_repository() {
        let header = r#"Bearer realm="https://a.test/token?x=1",service="r",scope="s:t:pull""#;
        let url = asked(header, "http://127.0.0.1:5000").unwrap().unwrap();
        assert_eq!(url, "https://a.test/token?x=1&service=r&scope=s%3At%3Apull");
        let url = asked(r#"Bearer realm="https://a.test/t""#, "https://m.test/p").unwrap().unwrap();
        assert_eq!(url, "https://a.test/t?scope=repository%3Ap%2Facme%2Fecho%3Apull");
        assert_eq!(asked("Bearer scope=\"x\"", "https://m.test"), None);
    }

    #[test]
    fn a_realm_in_plain_is_asked_only_where_the_owner_typed_it() {
        let own = asked(r#"Bearer realm="http://127.0.0.1:5000/t""#, "http://127.0.0.1:5000");
        assert!(own.unwrap().is_ok());
        for other in ["http://127.0.0.1:5001/t", "http://a.test/t", "ftp://a.test/t", "x"] {
            let header = format!("Bearer realm=\"{other}\"");
            assert!(asked(&header, "http://127.0.0.1:5000").unwrap().is_err(), "{other}");
            assert!(asked(&header, "https://127.0.0.1:5001").unwrap().is_err(), "{other}");
        }
    }

    #[test]
    fn a_token_is_one_word() {
        assert_eq!(read(br#"{"token":"abc"}"#).unwrap(), "abc");
        assert_eq!(read(br#"{"access_token":"abc","expires_in":300}"#).unwrap(), "abc");
        for bad in [&b"{}"[..], br#"{"token":""}"#, br#"{"token":"a\nb"}"#, b"[]", b"\xff"] {
            assert!(read(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
