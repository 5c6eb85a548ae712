//! An issuer of identities for a test, with keys of its own, in a process of its own.

use serde_json::Value;

use crate::bucket;
use crate::peer::Peer;

/// An issuer that runs until this is dropped.
#[derive(Debug)]
pub struct Issuer(Peer);

impl Issuer {
    /// Starts an issuer; none where the library it signs with is not installed.
    pub fn start() -> Option<Self> {
        Peer::start(bucket::python, "joserfc", include_str!("issuer.py")).map(Self)
    }

    /// The issuer of this name; those of other names than `good` lie in the way that they are called.
    pub fn named(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.0.port)
    }

    /// An identity, signed, as is wished: `how`, `claims` (`null` leaves one out, moments are from now), `header`,
    /// `issuer`, `kid`, `changed`.
    pub fn identity(&self, wish: &Value) -> String {
        let said = self.0.ask("POST", "/sign", &wish.to_string());
        said["identity"].as_str().expect("the issuer signs").to_owned()
    }

    /// Takes other keys from now on.
    pub fn rotate(&self) {
        self.0.ask("POST", "/rotate", "{}");
    }

    /// How often it was asked for its keys.
    pub fn asked(&self) -> u64 {
        self.0.ask("GET", "/asked", "")["asked"].as_u64().expect("the issuer counts")
    }
}
