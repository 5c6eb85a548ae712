//! The keys of issuers, fetched and kept for a while.
//!
//! Keys change: one that is not known is asked for again, but not sooner than after a while, whoever
//! sends identities with keys that nobody has. What an issuer answers is bounded in size and time, and it leads
//! nowhere but to its own address, unless the rule names another place.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use egress::http::{Method, Request, StatusCode, Url};
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

use super::check_address;
use trace::reach;

/// How issuers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    /// How long keys are good without being asked for again.
    pub fresh: Duration,
    /// How long is waited between two questions to one issuer.
    pub rest: Duration,
    /// How long an issuer may take to answer.
    pub within: Duration,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            fresh: Duration::from_mins(10),
            rest: Duration::from_secs(10),
            within: Duration::from_secs(5),
        }
    }
}

/// The most bytes of an answer.
const MOST: u64 = 256 << 10;
/// The most keys of one issuer.
const MOST_KEYS: usize = 100;
/// The most issuers whose keys are kept.
const MOST_ISSUERS: usize = 200;

/// Why a key is not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeysError {
    /// The issuer has no such key.
    NoKey,
    /// The issuer does not answer, or with something else.
    Unreachable(String),
}

impl fmt::Display for KeysError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeysError::NoKey => out.write_str("the issuer has no such key"),
            KeysError::Unreachable(why) => {
                write!(out, "the keys of the issuer are not to be had: {why}")
            }
        }
    }
}

impl std::error::Error for KeysError {}

/// The keys of issuers.
#[derive(Debug, Default)]
pub struct Keys {
    asking: Asking,
    known: Mutex<HashMap<Place, Arc<tokio::sync::Mutex<Known>>>>,
}

/// An issuer, and where its keys are when it does not say so itself.
type Place = (String, Option<String>);

#[derive(Debug, Default)]
struct Known {
    keys: Vec<Jwk>,
    fetched: Option<Instant>,
    asked: Option<Instant>,
    failed: Option<String>,
}

impl Keys {
    /// No keys yet.
    pub fn new(asking: Asking) -> Self {
        Self { asking, known: Mutex::default() }
    }

    /// The key of an issuer that an identity names, for this way to sign.
    pub(super) async fn find(
        &self,
        issuer: &str,
        place: Option<&str>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, KeysError> {
        let known = self.of((issuer.to_owned(), place.map(str::to_owned)));
        // Who comes meanwhile waits for the one question that is under way.
        let mut known = known.lock().await;
        let now = Instant::now();
        let is_within = |moment: Option<Instant>, time| {
            moment.is_some_and(|moment| now.duration_since(moment) < time)
        };
        if is_within(known.fetched, self.asking.fresh) && !keys_of(&known.keys, id).is_empty() {
            return first_usable(&known.keys, id, algorithm);
        }
        if is_within(known.asked, self.asking.rest) {
            return Err(match &known.failed {
                Some(why) => KeysError::Unreachable(why.clone()),
                None => KeysError::NoKey,
            });
        }
        known.asked = Some(now);
        match fetch(issuer, place, self.asking.within).await {
            Ok(keys) => {
                *known =
                    Known { keys, fetched: Some(now), asked: Some(Instant::now()), failed: None };
                first_usable(&known.keys, id, algorithm)
            }
            Err(why) => {
                known.asked = Some(Instant::now());
                known.failed = Some(why.clone());
                Err(KeysError::Unreachable(why))
            }
        }
    }

    fn of(&self, place: Place) -> Arc<tokio::sync::Mutex<Known>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_ISSUERS && !known.contains_key(&place) {
            known.clear();
        }
        Arc::clone(known.entry(place).or_default())
    }
}

/// The keys of this id, which several kinds may have; without one, the only key there is.
fn keys_of<'k>(keys: &'k [Jwk], id: Option<&str>) -> Vec<&'k Jwk> {
    match id {
        Some(_) => keys.iter().filter(|key| key.common.key_id.as_deref() == id).collect(),
        None => keys.first().filter(|_| keys.len() == 1).into_iter().collect(),
    }
}

/// The first key of this id that such signatures are checked with.
fn first_usable(
    keys: &[Jwk],
    id: Option<&str>,
    algorithm: Algorithm,
) -> Result<DecodingKey, KeysError> {
    let mut usable = keys_of(keys, id).into_iter().filter_map(|key| usable(key, algorithm).ok());
    usable.next().ok_or(KeysError::NoKey)
}

/// The key, if it is one to check such signatures with.
fn usable(key: &Jwk, algorithm: Algorithm) -> Result<DecodingKey, KeysError> {
    let common = &key.common;
    let is_for_signatures =
        common.public_key_use.as_ref().is_none_or(|told| *told == PublicKeyUse::Signature);
    let is_for_checking = common
        .key_operations
        .as_ref()
        .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    let is_for_this =
        common.key_algorithm.is_none_or(|told| format!("{told:?}") == format!("{algorithm:?}"));
    let is_secret = matches!(key.algorithm, AlgorithmParameters::OctetKey(_));
    if !is_for_signatures || !is_for_checking || !is_for_this || is_secret {
        return Err(KeysError::NoKey);
    }
    DecodingKey::from_jwk(key).map_err(|_| KeysError::NoKey)
}

/// Asks an issuer for its keys.
async fn fetch(issuer: &str, place: Option<&str>, within: Duration) -> Result<Vec<Jwk>, String> {
    let address = match place {
        Some(place) => check_address(place),
        None => Some(said_place(issuer, within).await?),
    };
    let address = address.ok_or("their address is none that may be asked")?;
    let answer = ask(&address, within).await?;
    let keys =
        answer.get("keys").and_then(Value::as_array).ok_or("there are none in the answer")?;
    if keys.len() > MOST_KEYS {
        return Err(format!("there are more than {MOST_KEYS}"));
    }
    // A key that is not understood is no reason to refuse the others.
    Ok(keys.iter().filter_map(|key| serde_json::from_value(key.clone()).ok()).collect())
}

/// Where an issuer says that its keys are: at its own address.
async fn said_place(issuer: &str, within: Duration) -> Result<Url, String> {
    let own = check_address(issuer).ok_or("the issuer has no address that may be asked")?;
    let text = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let address = check_address(&text).ok_or("the issuer has no address that may be asked")?;
    let answer = ask(&address, within).await?;
    if answer.get("issuer").and_then(Value::as_str) != Some(issuer) {
        return Err("its configuration is that of another issuer".to_owned());
    }
    let told = answer.get("jwks_uri").and_then(Value::as_str).unwrap_or_default();
    let told = check_address(told).ok_or("its configuration names no address of keys")?;
    if told.origin() != own.origin() {
        return Err("its keys are elsewhere, and the rule does not say where".to_owned());
    }
    Ok(told)
}

/// Asks one address, and no other.
async fn ask(address: &Url, within: Duration) -> Result<Value, String> {
    let client = reach::client(address).map_err(|error| error.to_string())?;
    let mut request = Request::new(Method::GET, address.clone());
    request.within = within;
    request.most = MOST;
    request.redirects = 0;
    let answer = client.send(request).await.map_err(|error| error.to_string())?;
    if answer.status != StatusCode::OK {
        return Err(format!("the answer is {}", answer.status.as_u16()));
    }
    serde_json::from_slice(&answer.body).map_err(|_| "the answer is no JSON".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(more: &Value) -> Jwk {
        let mut key = json!({"kty": "EC", "crv": "P-256", "kid": "a",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"});
        for (name, value) in more.as_object().unwrap() {
            key[name] = value.clone();
        }
        serde_json::from_value(key).unwrap()
    }

    #[test]
    fn a_key_is_used_for_what_it_is_for() {
        let is_usable = |more: Value| usable(&key(&more), Algorithm::ES256).is_ok();
        assert!(is_usable(json!({})));
        assert!(is_usable(json!({"use": "sig", "alg": "ES256"})));
        assert!(is_usable(json!({"key_ops": ["verify"]})));
        for other in [
            json!({"use": "enc"}),
            json!({"alg": "ES384"}),
            json!({"alg": "HS256"}),
            json!({"key_ops": ["encrypt"]}),
        ] {
            assert!(!is_usable(other.clone()), "{other}");
        }
        let secret: Jwk = serde_json::from_value(json!({"kty": "oct", "k": "AAAA"})).unwrap();
        assert!(usable(&secret, Algorithm::HS256).is_err());
    }

    #[test]
    fn a_key_is_found_by_its_id_or_when_it_is_alone() {
        let keys = [key(&json!({})), key(&json!({"kid": "b"}))];
        assert_eq!(keys_of(&keys, Some("b")).len(), 1);
        assert!(keys_of(&keys, Some("c")).is_empty());
        assert!(keys_of(&keys, None).is_empty());
        assert_eq!(keys_of(&keys[..1], None).len(), 1);
        let same = [key(&json!({"use": "enc"})), key(&json!({}))];
        assert!(first_usable(&same, Some("a"), Algorithm::ES256).is_ok());
        assert_eq!(
            first_usable(&same[..1], Some("a"), Algorithm::ES256).err(),
            Some(KeysError::NoKey)
        );
    }
}
