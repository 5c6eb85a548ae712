//! The key of a home: it signs the end of the chain, and nothing else.
//!
//! A signature takes longer than everything else that is done for a record. So while records come one upon the other, the end is
//! sealed instead, with a code that only the key makes and checks, and it is signed as soon as there is a pause.

use std::fs::File;

use aws_lc_rs::hmac::{self, HMAC_SHA512};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use zeroize::Zeroizing;

use super::error::AuditError;
use super::folder::Folder;

const PRIVATE: &str = "key";
pub(super) const PUBLIC: &str = "key.pub";
const PREFIX: &str = "ed25519:";
/// What the code that seals is made of, beside the seed: a signature is never taken for one, nor one for a signature.
const SEALS: &[u8] = b"haft audit seal";

/// The key that signs. Every record is signed for, so the quicker of our two libraries does it.
pub(super) struct Key {
    seed: Zeroizing<[u8; 32]>,
    pair: Ed25519KeyPair,
    sealing: hmac::Key,
}

/// The key that checks; written `ed25519:` and base64.
pub(super) struct PublicKey(VerifyingKey);

impl Key {
    /// The key of a home, if it has one. Whoever calls has the lock.
    pub(super) fn find(folder: &Folder) -> Result<Option<Self>, AuditError> {
        let Some(text) = folder.read_small(PRIVATE)?.map(Zeroizing::new) else { return Ok(None) };
        let key =
            Self::parse(&text).ok_or_else(|| AuditError::BadKey { path: folder.file(PRIVATE) })?;
        key.publish(folder)?;
        Ok(Some(key))
    }

    /// The same for somebody who only looks. One that cannot be read is none.
    pub(super) fn look(folder: &Folder) -> Option<Self> {
        let text = folder.read_small(PRIVATE).ok().flatten().map(Zeroizing::new)?;
        Self::parse(&text)
    }

    /// A new key, which nobody keeps yet.
    pub(super) fn new() -> Result<Self, AuditError> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed).map_err(|_| AuditError::NoRandomness)?;
        Self::of(seed).ok_or(AuditError::NoRandomness)
    }

    fn of(seed: Zeroizing<[u8; 32]>) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&*seed).ok()?;
        let derived = hmac::sign(&hmac::Key::new(HMAC_SHA512, &*seed), SEALS);
        let sealing = hmac::Key::new(HMAC_SHA512, derived.as_ref());
        Some(Self { seed, pair, sealing })
    }

    /// Makes it the key of a home. Whoever calls has the lock.
    pub(super) fn keep(&self, folder: &Folder) -> Result<(), AuditError> {
        let text = Zeroizing::new(STANDARD.encode(*self.seed) + "\n");
        folder.replace(PRIVATE, text.as_bytes(), File::sync_all)?;
        self.publish(folder)
    }

    fn publish(&self, folder: &Folder) -> Result<(), AuditError> {
        let text = format!("{PREFIX}{}\n", STANDARD.encode(self.pair.public_key()));
        if folder.read_small(PUBLIC)?.as_deref() != Some(text.as_bytes()) {
            folder.replace(PUBLIC, text.as_bytes(), File::sync_all)?;
        }
        Ok(())
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let seed = Zeroizing::new(STANDARD.decode(text.trim_ascii()).ok()?);
        let seed = Zeroizing::new(<[u8; 32]>::try_from(seed.as_slice()).ok()?);
        Self::of(seed)
    }

    /// Whether a public key is the one of this key.
    pub(super) fn is_of(&self, public: &PublicKey) -> bool {
        self.pair.public_key().as_ref() == public.0.as_bytes()
    }

    /// Signs a message; gives base64.
    pub(super) fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.pair.sign(message))
    }

    /// Seals a message for whoever has this key; gives base64, as long as that of a signature.
    pub(super) fn seal(&self, message: &[u8]) -> String {
        STANDARD.encode(hmac::sign(&self.sealing, message))
    }
}

/// Whether a home has a key, or had one.
pub(super) fn is_there(folder: &Folder) -> bool {
    [PRIVATE, PUBLIC].iter().any(|name| folder.file(name).exists())
}

impl PublicKey {
    /// The public key of a home, if it has one that can be read.
    pub(super) fn read(folder: &Folder) -> Result<Option<Self>, AuditError> {
        Ok(folder.read_small(PUBLIC)?.and_then(|text| Self::parse(&text)))
    }

    /// Reads what was written.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let encoded = text.trim_ascii().strip_prefix(PREFIX.as_bytes())?;
        let bytes: [u8; 32] = STANDARD.decode(encoded).ok()?.try_into().ok()?;
        let key = VerifyingKey::from_bytes(&bytes).ok()?;
        (!key.is_weak()).then_some(Self(key))
    }

    /// Whether a signature in base64 is this key's for a message.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let bytes = STANDARD.decode(signature).ok();
        let bytes = bytes.and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
        bytes.is_some_and(|bytes| {
            self.0.verify_strict(message, &Signature::from_bytes(&bytes)).is_ok()
        })
    }
}
