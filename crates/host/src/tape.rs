//! Requests and their answers apart from the network, so that a tool that asks a server can be tested without it.
//!
//! A tape stands where requests are sent. What it is told is without secrets: those that the call was given are named
//! in their place, and of the headers only the few come along that say how an answer is to be read.

use std::fmt;

use egress::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Url};
use serde_json::Value;
use sha2::{Digest, Sha256};
use vault::Redactor;

use crate::request::Http;

/// Hears the requests of a host, or answers them. Whoever tests brings one.
pub trait Tape: fmt::Debug + Send + Sync {
    /// Who answers a request.
    fn answer(&self, asked: &Asked) -> Turn;

    /// Is told what a server answered.
    fn heard(&self, asked: Asked, answer: Answer);

    /// Whether nothing is reached but what it answers itself.
    fn is_offline(&self) -> bool;
}

/// Who answers a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The server.
    Server,
    /// The tape, with this.
    Kept(Answer),
    /// Nobody: the tape does not know the request, and the server is not asked.
    Nobody,
}

/// A request, without secrets. Those that are equal have the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Asked {
    /// Its method.
    pub method: String,
    /// Its URL.
    pub url: String,
    /// SHA-256 of its body, in hexadecimal, where it has one.
    pub body_sha256: Option<String>,
}

/// An answer, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How it went.
    pub status: u16,
    /// How it is to be read; names are in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The headers of an answer that are kept. No other means anything to a call, and many are secrets.
const HEADERS: [&str; 3] = ["content-type", "content-encoding", "retry-after"];

impl Asked {
    pub(crate) fn of(plan: &Http, redactor: &Redactor) -> Self {
        let digest = |body: &Vec<u8>| {
            let digest = Sha256::digest(redactor.bytes(body));
            digest.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        Self {
            method: plan.method.to_string(),
            url: redactor.text(plan.url.as_str()),
            body_sha256: plan.body.as_ref().map(digest),
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.method, self.url)?;
        match &self.body_sha256 {
            Some(digest) => write!(out, " with the body sha256:{digest}"),
            None => Ok(()),
        }
    }
}

impl Answer {
    /// Whether a header of an answer is one that is kept.
    pub fn keeps(name: &str) -> bool {
        HEADERS.contains(&name)
    }

    /// What a server answered, without any secret that these know.
    pub(crate) fn of(response: &Response, redactors: &[&Redactor]) -> Self {
        let text = |text: &str| {
            redactors.iter().fold(text.to_owned(), |text, redactor| redactor.text(&text))
        };
        let header = |name: &&str| {
            let value = response.headers.get(*name)?.to_str().ok()?;
            Some(((*name).to_owned(), text(value)))
        };
        Self {
            status: response.status.as_u16(),
            headers: HEADERS.iter().filter_map(header).collect(),
            body: redacted(&response.body, redactors),
        }
    }

    /// The same as what came from a URL; none where no server answers so.
    pub(crate) fn into_response(self, url: Url) -> Option<Response> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            headers.append(name, HeaderValue::from_str(value).ok()?);
        }
        let status = StatusCode::from_u16(self.status).ok()?;
        Some(Response { status, headers, body: self.body, url, redirects: 0 })
    }
}

/// A body without secrets. Of JSON also those that are too short to be found in the middle of a text, where they are a
/// value of their own.
fn redacted(body: &[u8], redactors: &[&Redactor]) -> Vec<u8> {
    let mut body = body.to_vec();
    if let Ok(value) = serde_json::from_slice::<Value>(&body) {
        let mut clean = value.clone();
        for redactor in redactors {
            redactor.json(&mut clean);
        }
        if clean != value {
            body = clean.to_string().into_bytes();
        }
    }
    redactors.iter().fold(body, |body, redactor| redactor.bytes(&body))
}

#[cfg(test)]
mod tests {
    use egress::http::Method;
    use vault::Secret;

    use super::*;
    use crate::request::Redirects;

    fn request(url: &str, body: Option<&str>) -> Http {
        Http {
            method: Method::POST,
            url: Url::parse(url).unwrap(),
            shown: String::new(),
            headers: HeaderMap::new(),
            body: body.map(|body| body.as_bytes().to_vec()),
            account: None,
            tells_secret: false,
            rules: egress::Rules::default(),
            most: 1,
            redirects: Redirects::Followed,
        }
    }

    fn knowing(value: &str) -> Redactor {
        Redactor::new([("KEY", &Secret::new(value.to_owned()).unwrap())])
    }

    #[test]
    fn a_request_is_the_same_whatever_the_secrets_in_it_are() {
        let asked = |secret: &str| {
            let url = format!("https://a.test/x?key={secret}&q=1");
            Asked::of(&request(&url, Some(&format!("{{\"k\":\"{secret}\"}}"))), &knowing(secret))
        };
        assert_eq!(asked("s3cret-one"), asked("another-value"));
        assert!(!asked("s3cret-one").to_string().contains("s3cret-one"));
        let other = Asked::of(&request("https://a.test/x?q=2", None), &knowing("s3cret-one"));
        assert_ne!(other, asked("s3cret-one"));
        assert_eq!(other.to_string(), "POST https://a.test/x?q=2");
    }

    #[test]
    fn an_answer_is_kept_without_secrets_and_cookies() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/json"),
            ("set-cookie", "session=1"),
            ("authorization", "Bearer x"),
            ("x-api-key", "y"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let url = Url::parse("https://a.test/").unwrap();
        let body = br#"{"you":"s3cret-one"}"#.to_vec();
        let status = StatusCode::OK;
        let response = Response { status, headers, body, url: url.clone(), redirects: 0 };
        let answer = Answer::of(&response, &[&knowing("s3cret-one")]);
        assert_eq!(answer.headers, [("content-type".to_owned(), "application/json".to_owned())]);
        assert_eq!(answer.body, br#"{"you":"[secret KEY]"}"#);
        let short = Answer::of(&response, &[&knowing("no"), &knowing("s3cret-one")]);
        assert_eq!(short, answer, "what changes nothing leaves every byte");
        let body = br#"{"t": "t1", "n": [1, "not t1"]}"#.to_vec();
        let short = Answer::of(&Response { body, ..response }, &[&knowing("t1")]);
        assert_eq!(short.body, br#"{"t":"[secret KEY]","n":[1,"not t1"]}"#);
        let again = answer.clone().into_response(url.clone()).unwrap();
        assert_eq!((again.status, &again.body), (StatusCode::OK, &answer.body));
        let bad = Answer { status: 7, ..answer };
        assert!(bad.into_response(url).is_none());
    }
}
