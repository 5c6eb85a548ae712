//! Identities that an issuer has sworn: who builds a package, as the service says that it is built on.
//!
//! An identity is a JWT. It is good when a rule of the registry trusts its issuer for its audience and its
//! claims, when it is signed by a key that the issuer publishes, in a way that the rule allows, and when it is
//! its time. It is good once: it is exchanged for a token.
//!
//! | module | what it is |
//! |---|---|
//! | `claims` | what an identity says, held against a rule |
//! | [`keys`] | the keys of issuers, fetched and kept for a while |

mod claims;
pub mod keys;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use egress::http::{Url, is_here};
use futures_util::future::join_all;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use package::digest::Digest;
use registry::{NewPublisher, Provenance, Publisher};
use serde_json::{Map, Value};

use crate::store::{Store, StoreError};
use crate::token::Scope;
use keys::{Keys, KeysError};

/// The longest identity that is looked at, in bytes.
const LONGEST: usize = 16 << 10;
/// How far clocks may be apart, in seconds.
const LEEWAY: u64 = 30;
/// The longest life of an identity, in seconds.
const LONGEST_LIFE: u64 = 24 * 3_600;
/// How long an identity is remembered after nobody should take it any more, in seconds: clocks of replicas are apart too, and
/// whoever was found to be good may wait for the database.
const REMEMBERED: u64 = 600;
/// How an identity may be signed. What needs a shared secret is not among them, whatever a rule says.
const ALGORITHMS: [(Algorithm, &str); 9] = [
    (Algorithm::RS256, "RS256"),
    (Algorithm::RS384, "RS384"),
    (Algorithm::RS512, "RS512"),
    (Algorithm::PS256, "PS256"),
    (Algorithm::PS384, "PS384"),
    (Algorithm::PS512, "PS512"),
    (Algorithm::ES256, "ES256"),
    (Algorithm::ES384, "ES384"),
    (Algorithm::EdDSA, "EdDSA"),
];

/// Why an identity is not good.
#[derive(Debug)]
pub enum IdentityError {
    /// It is no JWT.
    NotOne,
    /// No rule trusts its issuer.
    Issuer,
    /// It is not signed in a way that a rule allows.
    Algorithm,
    /// Its key is none of the issuer's, or none for that.
    Key,
    /// It is not signed by the key it names.
    Signature,
    /// It is not its time.
    Time(&'static str),
    /// It is for somebody else.
    Audience,
    /// No rule of the issuer fits what it says.
    Claims,
    /// It would do for several namespaces, and none is named.
    Ambiguous(Vec<String>),
    /// It was exchanged before.
    Used,
    /// The issuer's keys are not to be had.
    Keys(KeysError),
    /// The database refuses.
    Store(StoreError),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::NotOne => out.write_str("the identity is no signed JWT"),
            IdentityError::Issuer => out.write_str("the issuer of the identity is not trusted"),
            IdentityError::Algorithm => {
                out.write_str("the identity is not signed in a way that is allowed")
            }
            IdentityError::Key => {
                out.write_str("the identity's key is none that its issuer signs with")
            }
            IdentityError::Signature => out.write_str("the signature of the identity is wrong"),
            IdentityError::Time(why) => write!(out, "the identity {why}"),
            IdentityError::Audience => out.write_str("the identity is for another audience"),
            IdentityError::Claims => {
                out.write_str("no trusted publisher fits the claims of the identity")
            }
            IdentityError::Ambiguous(names) => {
                write!(out, "the identity is good for several namespaces: {}", names.join(", "))
            }
            IdentityError::Used => out.write_str("the identity was used before"),
            IdentityError::Keys(error) => error.fmt(out),
            IdentityError::Store(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for IdentityError {}

/// Why a rule cannot be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// This is no address to ask for keys: neither HTTPS nor on this machine.
    Address(String),
    /// There is no such way to sign that needs no shared secret.
    Algorithm(String),
    /// A value is not what it should be.
    Value(registry::read::Fault),
}

impl fmt::Display for RuleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::Address(address) => {
                let shown = registry::client::address::shown(address);
                write!(
                    out,
                    "`{shown}` is no address of an issuer; it begins with https://, without a password"
                )
            }
            RuleError::Algorithm(name) => write!(
                out,
                "`{name}` is no way to sign an identity; there are {}",
                ALGORITHMS.map(|(_, name)| name).join(", ")
            ),
            RuleError::Value(fault) => fault.fmt(out),
        }
    }
}

impl std::error::Error for RuleError {}

/// What was sworn, and what it is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sworn {
    /// Whose names may be published.
    pub namespace: String,
    /// Who builds, and what.
    pub provenance: Provenance,
    /// What the identity is known by.
    pub hash: String,
    /// Until when it must be remembered, in milliseconds since 1970.
    pub remembered_until: u64,
}

/// Whether a rule can be one.
pub fn check_rule(rule: &NewPublisher) -> Result<(), RuleError> {
    registry::read::Checked::check(rule).map_err(RuleError::Value)?;
    for address in [Some(&rule.issuer), rule.keys.as_ref()].into_iter().flatten() {
        check_address(address).ok_or_else(|| RuleError::Address(address.clone()))?;
    }
    let unknown = rule.algorithms.iter().find(|name| !ALGORITHMS.iter().any(|(_, k)| k == name));
    unknown.map_or(Ok(()), |name| Err(RuleError::Algorithm(name.clone())))
}

/// An address that may be asked: over HTTPS, or on this machine; without credentials.
fn check_address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_here(&url));
    let is_plain = url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
        && url.host_str().is_some();
    (is_safe && is_plain).then_some(url)
}

/// Checks an identity against the rules of the registry. `now` is in milliseconds since 1970.
pub async fn check(
    store: &Store,
    keys: &Keys,
    identity: &str,
    namespace: Option<&str>,
    now: u64,
) -> Result<Sworn, IdentityError> {
    let identity = identity.trim();
    if identity.len() > LONGEST {
        return Err(IdentityError::NotOne);
    }
    // Nothing of this is believed yet: it says which rules and which key are to be looked at.
    let issuer = said_issuer(identity).ok_or(IdentityError::NotOne)?;
    let rules = store.publishers_of(&issuer).await.map_err(IdentityError::Store)?;
    if rules.is_empty() {
        return Err(IdentityError::Issuer);
    }
    let header = jsonwebtoken::decode_header(identity).map_err(|_| IdentityError::Algorithm)?;
    if header.crit.is_some() {
        return Err(IdentityError::Algorithm);
    }
    let name = ALGORITHMS.iter().find(|(known, _)| *known == header.alg).map(|(_, name)| *name);
    let name = name.ok_or(IdentityError::Algorithm)?;
    let rules: Vec<Publisher> = rules
        .into_iter()
        .filter(|rule| rule.algorithms.iter().any(|allowed| allowed == name))
        .collect();
    // Each place that a rule has keys at is asked for the rules that name it.
    let places: std::collections::BTreeSet<Option<&str>> =
        rules.iter().map(|rule| rule.keys.as_deref()).collect();
    let (issuer, header) = (&issuer, &header);
    let asked = places.into_iter().map(|place| async move {
        let key = keys.find(issuer, place, header.kid.as_deref(), header.alg).await;
        let read = key.map_err(of_keys);
        (place, read.and_then(|key| signed(identity, &key, header.alg, issuer, now)))
    });
    let (mut claims, mut vouched) = (None, Vec::new());
    let mut why = IdentityError::Algorithm;
    for (place, read) in join_all(asked).await {
        match read {
            Ok(said) => {
                claims = Some(said);
                vouched.extend(rules.iter().filter(|rule| rule.keys.as_deref() == place));
            }
            // Whoever does not answer may have the key that the others do not.
            Err(_) if matches!(why, IdentityError::Keys(_)) => {}
            Err(error) => why = error,
        }
    }
    let claims = claims.ok_or(why)?;
    sworn(identity, issuer, &claims, vouched.into_iter(), namespace)
}

/// What an identity is good for, whose signature and time are right.
fn sworn<'r>(
    identity: &str,
    issuer: &str,
    claims: &Map<String, Value>,
    rules: impl Iterator<Item = &'r Publisher>,
    namespace: Option<&str>,
) -> Result<Sworn, IdentityError> {
    let for_us: Vec<&Publisher> =
        rules.filter(|rule| claims::is_for(claims, &rule.audience)).collect();
    if for_us.is_empty() {
        return Err(IdentityError::Audience);
    }
    let mut names: Vec<String> = for_us
        .iter()
        .filter(|rule| claims::fit(claims, &rule.claims))
        .filter_map(|rule| given(&rule.namespace, namespace))
        .collect();
    names.sort();
    names.dedup();
    let namespace = match names.len() {
        0 => return Err(IdentityError::Claims),
        1 => names.remove(0),
        _ => return Err(IdentityError::Ambiguous(names)),
    };
    let end = claims.get("exp").and_then(claims::seconds).unwrap_or(0);
    Ok(Sworn {
        namespace,
        provenance: claims::provenance(claims, issuer),
        hash: hash(identity, claims, issuer),
        remembered_until: (end + LEEWAY + REMEMBERED) * 1_000,
    })
}

/// Whose names a rule gives: all that it says, or as many of them as are wanted.
fn given(ruled: &str, wanted: Option<&str>) -> Option<String> {
    let Some(wanted) = wanted else { return Some(ruled.to_owned()) };
    Scope::named(ruled).holds(&Scope::named(wanted)).then(|| wanted.to_owned())
}

fn of_keys(error: KeysError) -> IdentityError {
    match error {
        KeysError::NoKey => IdentityError::Key,
        KeysError::Unreachable(_) => IdentityError::Keys(error),
    }
}

/// The issuer an identity names, believed or not.
fn said_issuer(identity: &str) -> Option<String> {
    let mut parts = identity.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    // No rule has an issuer with such a character, and not every database takes the question.
    let issuer = claims.get("iss")?.as_str()?;
    (!issuer.contains(char::is_control)).then(|| issuer.to_owned())
}

/// What an identity says, once its signature and its time are found to be right.
fn signed(
    identity: &str,
    key: &DecodingKey,
    algorithm: Algorithm,
    issuer: &str,
    now: u64,
) -> Result<Map<String, Value>, IdentityError> {
    use jsonwebtoken::errors::ErrorKind;
    let mut wanted = Validation::new(algorithm);
    wanted.leeway = LEEWAY;
    wanted.validate_nbf = true;
    // Each rule has its own audience, which is looked at afterwards.
    wanted.validate_aud = false;
    wanted.set_issuer(&[issuer]);
    wanted.set_required_spec_claims(&["exp", "iss"]);
    let read = jsonwebtoken::decode::<Map<String, Value>>(identity, key, &wanted);
    let claims = read.map_err(|error| match error.kind() {
        ErrorKind::ExpiredSignature => IdentityError::Time("has ended"),
        ErrorKind::ImmatureSignature => IdentityError::Time("is not good yet"),
        ErrorKind::MissingRequiredClaim(_) => IdentityError::Time("says no end"),
        ErrorKind::InvalidAlgorithm => IdentityError::Algorithm,
        _ => IdentityError::Signature,
    })?;
    let claims = claims.claims;
    let moment = |name: &str| claims.get(name).and_then(claims::seconds);
    let (Some(issued), Some(end)) = (moment("iat"), moment("exp")) else {
        return Err(IdentityError::Time("does not say from when until when it is good"));
    };
    if issued > now / 1_000 + LEEWAY {
        return Err(IdentityError::Time("is from the future"));
    }
    if end.saturating_sub(issued) > LONGEST_LIFE {
        return Err(IdentityError::Time("is good for too long"));
    }
    Ok(claims)
}

/// What an identity is known by: its id, where it has one.
fn hash(identity: &str, claims: &Map<String, Value>, issuer: &str) -> String {
    let text = match claims.get("jti").and_then(Value::as_str) {
        Some(id) if !id.is_empty() => format!("id\n{issuer}\n{id}"),
        // A signature can be written in more than one way, what is signed cannot.
        _ => format!("text\n{}", identity.rsplit_once('.').map_or(identity, |(signed, _)| signed)),
    };
    Digest::of(text.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_nobody_can_listen_to_are_asked() {
        for good in ["https://issuer.example", "http://127.0.0.1:8080/x", "http://localhost:1"] {
            assert!(check_address(good).is_some(), "{good}");
        }
        for bad in ["http://issuer.example", "ftp://x", "x", "https://a:b@c", "https://x#y"] {
            assert!(check_address(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn an_identity_is_remembered_for_longer_than_it_is_taken() {
        let rule = NewPublisher {
            issuer: "https://issuer.example".into(),
            keys: None,
            audience: "registry".into(),
            claims: [("repository".to_owned(), "acme/tools".to_owned())].into(),
            algorithms: vec!["ES256".into()],
            namespace: "acme".into(),
        };
        let rule = Publisher::new("a".to_owned(), rule, 0);
        let claims =
            serde_json::json!({"aud": "registry", "repository": "acme/tools", "exp": 1_000});
        let claims = claims.as_object().unwrap();
        let sworn = sworn("a.b.c", "https://issuer.example", claims, [&rule].into_iter(), None);
        // Seconds are counted whole where it is looked at, and clocks are apart on either side.
        assert!(sworn.unwrap().remembered_until > (1_000 + 2 * LEEWAY + 1) * 1_000);
    }

    #[test]
    fn what_needs_a_shared_secret_is_no_way_to_sign() {
        let rule = |name: &str| NewPublisher {
            issuer: "https://issuer.example".into(),
            keys: None,
            audience: "registry".into(),
            claims: [("repository".to_owned(), "acme/tools".to_owned())].into(),
            algorithms: vec![name.into()],
            namespace: "acme".into(),
        };
        for name in ["HS256", "none", "None", "rs256", ""] {
            assert!(check_rule(&rule(name)).is_err(), "{name}");
        }
        assert_eq!(check_rule(&rule("EdDSA")), Ok(()));
    }
}
