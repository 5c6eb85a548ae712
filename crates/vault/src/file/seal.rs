//! Sealing: `XChaCha20-Poly1305` under a random key, and Argon2id for a passphrase.
//!
//! Crate `package` seals private keys the same way. The two share choices and no code: neither may
//! use the other, and each binds other things to what it seals.

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::error::VaultError;

/// The work a passphrase costs: 64 MiB, three passes.
pub(super) const WORK: Work = Work { memory_kib: 64 * 1024, passes: 3, lanes: 1 };
/// The most work a file may ask for, so that a stranger's file cannot stop the machine.
const MOST_WORK: Work = Work { memory_kib: 1024 * 1024, passes: 16, lanes: 4 };

/// What a passphrase costs to try.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Work {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

/// Why a passphrase makes no key.
pub(super) enum Underivable {
    TooCostly,
    Malformed,
}

/// A key; cleared when it is dropped.
#[derive(Clone)]
pub(super) struct Key(Zeroizing<[u8; 32]>);

impl Key {
    /// A new, random key.
    pub(super) fn generate() -> Result<Self, VaultError> {
        let mut key = Self(Zeroizing::new([0; 32]));
        fill(&mut *key.0)?;
        Ok(key)
    }

    /// The key that these bytes are; `None` if they are none.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut key = Self(Zeroizing::new([0; 32]));
        (bytes.len() == 32).then(|| key.0.copy_from_slice(bytes))?;
        Some(key)
    }

    /// The key a passphrase makes.
    pub(super) fn derive(passphrase: &str, salt: &[u8], work: Work) -> Result<Self, Underivable> {
        let is_sensible = work.memory_kib <= MOST_WORK.memory_kib
            && work.passes <= MOST_WORK.passes
            && work.lanes <= MOST_WORK.lanes;
        if !is_sensible {
            return Err(Underivable::TooCostly);
        }
        let mut key = Self(Zeroizing::new([0; 32]));
        Params::new(work.memory_kib, work.passes, work.lanes, Some(32))
            .and_then(|params| {
                Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into(
                    passphrase.as_bytes(),
                    salt,
                    &mut *key.0,
                )
            })
            .map_err(|_| Underivable::Malformed)?;
        Ok(key)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &*self.0
    }

    /// Seals a content under a fresh nonce, and binds it to what it stands beside.
    pub(super) fn seal(&self, content: &[u8], beside: &[u8]) -> Result<Sealed, VaultError> {
        let nonce: [u8; 24] = random()?;
        let payload = Payload { msg: content, aad: beside };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("a content far below the cipher's limit can be sealed");
        Ok(Sealed { nonce, sealed })
    }

    /// Opens what was sealed; `None` if it was sealed otherwise.
    pub(super) fn open(&self, sealed: &Sealed, beside: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let payload = Payload { msg: &sealed.sealed, aad: beside };
        self.cipher().decrypt(&XNonce::from(sealed.nonce), payload).ok().map(Zeroizing::new)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.0).into())
    }
}

/// Something sealed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sealed {
    #[serde(with = "super::base64_bytes")]
    nonce: [u8; 24],
    #[serde(with = "super::base64_bytes")]
    sealed: Vec<u8>,
}

/// Random bytes.
pub(super) fn random<const N: usize>() -> Result<[u8; N], VaultError> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

fn fill(bytes: &mut [u8]) -> Result<(), VaultError> {
    getrandom::fill(bytes).map_err(|_| VaultError::NoRandomness)
}
