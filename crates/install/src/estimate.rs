//! What the author of a package estimates that it costs, fetched for its card under the egress gate.
//!
//! It is somebody's word at one moment, so it is shown and agreed to by nobody: whatever becomes of it, a package is
//! installed or not without it, and the [digest](crate::Card::digest) of a card does not depend on it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use egress::http::{Client, Method, Request, Settings, StatusCode, Url};
use egress::resolve::SystemResolver;
use egress::{Rule, Rules};
use serde::Serialize;

use crate::acquire::sources::rule_for;

/// The largest answer that is read.
const LARGEST: u64 = 64 << 10;
/// How long it may take.
const WITHIN: Duration = Duration::from_secs(5);
/// How many letters of its basis are shown.
const LONGEST: usize = 280;

/// What is known of what a package will cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Estimate {
    /// Its author says so much.
    Given {
        /// Cents of a US dollar a month.
        monthly_estimate_cents: u64,
        /// What that rests on, in the author's words.
        #[serde(skip_serializing_if = "Option::is_none")]
        basis: Option<String>,
    },
    /// It could not be had.
    Unavailable {
        /// Why not.
        why: String,
    },
    /// Nobody was asked.
    NotAsked,
}

/// Whom the owner lets us ask.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// Hosts that the owner has typed. Only those of them may be private places that name one.
    pub typed: Vec<Rule>,
    /// Hosts that nobody may reach.
    pub denied: Vec<Rule>,
    /// A file of certificates that are trusted too.
    pub certificates: Option<PathBuf>,
}

/// Asks for an estimate. Whatever goes wrong is told in it.
pub async fn estimate(url: &str, gate: &Gate) -> Estimate {
    match ask(url, gate).await.and_then(|body| read(&body)) {
        Ok(given) => given,
        Err(why) => Estimate::Unavailable { why },
    }
}

/// The answer of an address: by `https`, from where it says, and nothing is sent along.
async fn ask(url: &str, gate: &Gate) -> Result<Vec<u8>, String> {
    let url = Url::parse(url).map_err(|_| "its address is no URL".to_owned())?;
    if url.scheme() != "https" {
        return Err("its address is not `https`".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("its address holds a name or a password".to_owned());
    }
    let extra_roots = match &gate.certificates {
        Some(path) => std::fs::read(path).map_err(|error| error.to_string())?,
        None => Vec::new(),
    };
    let typed = gate.typed.iter().cloned().map(Rule::as_typed);
    let rules: Rules = rule_for(&url).into_iter().chain(typed).collect();
    let settings = Settings { extra_roots, ..Settings::default() };
    let resolver = Arc::new(SystemResolver::default());
    let client = Client::with(rules.denying(gate.denied.clone()), resolver, settings);
    let client = client.map_err(|_| "the certificates to trust cannot be used".to_owned())?;
    let mut request = Request::new(Method::GET, url);
    (request.most, request.within, request.redirects) = (LARGEST, WITHIN, 0);
    let response = client.send(request).await.map_err(|error| error.to_string())?;
    match response.status {
        StatusCode::OK => Ok(response.body),
        status if status.is_redirection() => Err("it sends elsewhere".to_owned()),
        status => Err(format!("the answer was {}", status.as_u16())),
    }
}

/// Reads an answer: `{"monthly_estimate_cents": 1200, "basis": "…"}`.
fn read(body: &[u8]) -> Result<Estimate, String> {
    let unreadable = || "the answer is no JSON object".to_owned();
    let text = std::str::from_utf8(body).map_err(|_| unreadable())?;
    let parsed = manifest::json::parse(text);
    let root = parsed.root.filter(|root| root.is_object() && parsed.faults.is_empty());
    let root = root.ok_or_else(unreadable)?;
    let cents = root.get("monthly_estimate_cents").and_then(manifest::json::Node::as_count);
    let monthly_estimate_cents = cents
        .ok_or_else(|| "`monthly_estimate_cents` of the answer is no number of cents".to_owned())?;
    let basis = root.get("basis").filter(|basis| !basis.is_null()).map(|basis| {
        let words = basis.as_text().map_or_else(|| basis.to_value().to_string(), str::to_owned);
        let mut short: String = words.chars().take(LONGEST).collect();
        if short.len() < words.len() {
            short.push('…');
        }
        short
    });
    Ok(Estimate::Given { monthly_estimate_cents, basis })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(body: &str) -> Result<(u64, Option<String>), String> {
        read(body.as_bytes()).map(|estimate| match estimate {
            Estimate::Given { monthly_estimate_cents, basis } => (monthly_estimate_cents, basis),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn an_estimate_is_a_number_of_cents_and_perhaps_what_it_rests_on() {
        let whole = r#"{"monthly_estimate_cents":1200,"basis":"100 calls","more":[]}"#;
        assert_eq!(given(whole), Ok((1200, Some("100 calls".to_owned()))));
        assert_eq!(given(r#"{"monthly_estimate_cents":0}"#), Ok((0, None)));
        let object = given(r#"{"monthly_estimate_cents":1,"basis":{"calls":5}}"#).unwrap();
        assert_eq!(object.1.as_deref(), Some(r#"{"calls":5}"#));
        let long = format!(r#"{{"monthly_estimate_cents":1,"basis":"{}"}}"#, "x".repeat(5_000));
        assert_eq!(given(&long).unwrap().1.unwrap().chars().count(), LONGEST + 1);
    }

    #[test]
    fn what_is_no_estimate_is_said_to_be_none() {
        for bad in [
            "",
            "[]",
            "{}",
            "12",
            r#"{"monthly_estimate_cents":-1}"#,
            r#"{"monthly_estimate_cents":1.5}"#,
            r#"{"monthly_estimate_cents":"12"}"#,
            r#"{"monthly_estimate_cents":1,"monthly_estimate_cents":2}"#,
            "{} {}",
        ] {
            assert!(given(bad).is_err(), "{bad}");
        }
        assert!(read(b"\xff\xfe").is_err());
    }

    #[tokio::test]
    async fn nobody_is_asked_in_plain_with_a_password_or_in_a_private_place() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        for url in [
            format!("http://localhost:{port}/e"),
            format!("https://name:word@localhost:{port}/e"),
            format!("https://localhost:{port}/e"),
            format!("https://127.0.0.1:{port}/e"),
            "file:///etc/passwd".to_owned(),
            "nonsense".to_owned(),
        ] {
            let said = estimate(&url, &Gate::default()).await;
            assert!(matches!(said, Estimate::Unavailable { .. }), "{url}: {said:?}");
        }
        assert!(listener.accept().is_err(), "no connection was made");
    }
}
