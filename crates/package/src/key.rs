//! Keys that sign packages: ed25519, the private half sealed with a passphrase.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// What the text of a public key begins with.
const PREFIX: &str = "ed25519:";
/// What a file with a private key says it is.
const FORMAT: &str = "haft-secret-key-1";
/// The largest file with a key.
pub const MAX_KEY_FILE: u64 = 16 * 1024;

/// The work a passphrase costs: 64 MiB, three passes.
const WORK: Work = Work { memory_kib: 64 * 1024, passes: 3, lanes: 1 };
/// The most work a file may ask for, so that a stranger's file cannot stop the machine.
const MOST_WORK: Work = Work { memory_kib: 1024 * 1024, passes: 16, lanes: 4 };

/// A public key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// A private key; its memory is cleared when it is dropped.
pub struct PrivateKey(SigningKey);

/// Why a key cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The text is no public key.
    NotAKey,
    /// The key is one under which a forged signature would pass.
    Weak,
    /// The file holds no private key of ours.
    NotAKeyFile,
    /// The file asks for more work than is sensible.
    TooCostly,
    /// The private half is sealed, and no passphrase was given.
    Sealed,
    /// The passphrase does not open it, or the file was changed.
    WrongPassphrase,
    /// The two halves do not belong together.
    Mismatch,
    /// The system gives no randomness.
    NoRandomness,
}

impl fmt::Display for KeyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            KeyError::NotAKey => "this is no public key; one reads `ed25519:` and 44 letters",
            KeyError::Weak => "this key is weak: anybody could sign for it",
            KeyError::NotAKeyFile => "the file holds no private key of Haft",
            KeyError::TooCostly => "the file asks for more work than is sensible",
            KeyError::Sealed => "the key is sealed with a passphrase",
            KeyError::WrongPassphrase => "the passphrase does not open the key",
            KeyError::Mismatch => "the private and the public half do not belong together",
            KeyError::NoRandomness => "the system gives no randomness",
        })
    }
}

impl std::error::Error for KeyError {}

impl PublicKey {
    /// Reads `ed25519:` and the key in base64; a name may follow after a blank.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let word = text.split_whitespace().next().ok_or(KeyError::NotAKey)?;
        let encoded = word.strip_prefix(PREFIX).ok_or(KeyError::NotAKey)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| KeyError::NotAKey)?;
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| KeyError::NotAKey)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| KeyError::NotAKey)?;
        if key.is_weak() { Err(KeyError::Weak) } else { Ok(Self(key)) }
    }

    /// Whether a signature by this key fits a message; only the one canonical form passes.
    pub fn has_signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{PREFIX}{}", STANDARD.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Shows nothing of the key.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PrivateKey of {}", self.public())
    }
}

impl PrivateKey {
    /// A new key.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        fill(&mut *seed)?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    /// The text of a key file, sealed with a passphrase when there is one.
    pub fn to_file(&self, passphrase: Option<&str>) -> Result<Zeroizing<String>, KeyError> {
        let public = self.public().to_string();
        let seed = Zeroizing::new(self.0.to_bytes());
        let secret = match passphrase {
            None => Secret::Plain { seed: Zeroizing::new(STANDARD.encode(*seed)) },
            Some(passphrase) => {
                let (mut salt, mut nonce) = ([0; 16], [0; 24]);
                fill(&mut salt)?;
                fill(&mut nonce)?;
                let cipher = cipher(passphrase, &salt, WORK)?;
                let payload = Payload { msg: &*seed, aad: public.as_bytes() };
                let sealed = cipher
                    .encrypt(&XNonce::from(nonce), payload)
                    .map_err(|_| KeyError::WrongPassphrase)?;
                Secret::Sealed {
                    work: WORK,
                    salt: STANDARD.encode(salt),
                    nonce: STANDARD.encode(nonce),
                    sealed: STANDARD.encode(sealed),
                }
            }
        };
        let file = KeyFile { format: FORMAT.to_owned(), public, secret };
        let text = serde_json::to_string_pretty(&file).expect("a key file is plain data");
        Ok(Zeroizing::new(text + "\n"))
    }

    /// Opens a key file.
    pub fn from_file(text: &str, passphrase: Option<&str>) -> Result<Self, KeyError> {
        let file: KeyFile = serde_json::from_str(text).map_err(|_| KeyError::NotAKeyFile)?;
        if file.format != FORMAT {
            return Err(KeyError::NotAKeyFile);
        }
        let seed = match &file.secret {
            Secret::Plain { seed } => Zeroizing::new(decode(seed)?),
            Secret::Sealed { work, salt, nonce, sealed } => {
                let passphrase = passphrase.ok_or(KeyError::Sealed)?;
                let nonce: [u8; 24] =
                    decode(nonce)?.try_into().map_err(|_| KeyError::NotAKeyFile)?;
                let cipher = cipher(passphrase, &decode(salt)?, *work)?;
                let payload = Payload { msg: &decode(sealed)?, aad: file.public.as_bytes() };
                let seed = cipher.decrypt(&XNonce::from(nonce), payload);
                Zeroizing::new(seed.map_err(|_| KeyError::WrongPassphrase)?)
            }
        };
        let seed: Zeroizing<[u8; 32]> =
            Zeroizing::new(seed.as_slice().try_into().map_err(|_| KeyError::NotAKeyFile)?);
        let key = Self(SigningKey::from_bytes(&seed));
        if key.public() == PublicKey::parse(&file.public)? {
            Ok(key)
        } else {
            Err(KeyError::Mismatch)
        }
    }

    /// The public half that a key file names; it needs no passphrase.
    pub fn public_of(text: &str) -> Result<PublicKey, KeyError> {
        let file: KeyFile = serde_json::from_str(text).map_err(|_| KeyError::NotAKeyFile)?;
        PublicKey::parse(&file.public)
    }

    /// Whether a key file is sealed.
    pub fn is_sealed(text: &str) -> Result<bool, KeyError> {
        let file: KeyFile = serde_json::from_str(text).map_err(|_| KeyError::NotAKeyFile)?;
        Ok(matches!(file.secret, Secret::Sealed { .. }))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    format: String,
    public: String,
    secret: Secret,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Secret {
    /// Anybody who reads the file has the key.
    Plain { seed: Zeroizing<String> },
    /// Argon2id makes a key of the passphrase; XChaCha20-Poly1305 seals, bound to the public half.
    Sealed { work: Work, salt: String, nonce: String, sealed: String },
}

/// What a passphrase costs to try.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Work {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

fn cipher(passphrase: &str, salt: &[u8], work: Work) -> Result<XChaCha20Poly1305, KeyError> {
    let is_sensible = work.memory_kib <= MOST_WORK.memory_kib
        && work.passes <= MOST_WORK.passes
        && work.lanes <= MOST_WORK.lanes;
    if !is_sensible {
        return Err(KeyError::TooCostly);
    }
    let params = Params::new(work.memory_kib, work.passes, work.lanes, Some(32))
        .map_err(|_| KeyError::NotAKeyFile)?;
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), salt, &mut *key)
        .map_err(|_| KeyError::NotAKeyFile)?;
    XChaCha20Poly1305::new_from_slice(&*key).map_err(|_| KeyError::NotAKeyFile)
}

fn decode(text: &str) -> Result<Vec<u8>, KeyError> {
    STANDARD.decode(text).map_err(|_| KeyError::NotAKeyFile)
}

fn fill(bytes: &mut [u8]) -> Result<(), KeyError> {
    getrandom::fill(bytes).map_err(|_| KeyError::NoRandomness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_from_its_file() {
        let key = PrivateKey::generate().unwrap();
        for passphrase in [None, Some("correct horse")] {
            let file = key.to_file(passphrase).unwrap();
            let read = PrivateKey::from_file(&file, passphrase).unwrap();
            assert_eq!(read.public(), key.public());
            assert_eq!(PrivateKey::is_sealed(&file), Ok(passphrase.is_some()));
        }
        assert_eq!(PublicKey::parse(&format!("{} alice\n", key.public())), Ok(key.public()));
    }

    #[test]
    fn a_sealed_key_opens_only_with_its_passphrase() {
        let key = PrivateKey::generate().unwrap();
        let file = key.to_file(Some("one")).unwrap();
        let open = |text: &str, passphrase| PrivateKey::from_file(text, passphrase).err();
        assert_eq!(open(&file, Some("two")), Some(KeyError::WrongPassphrase));
        assert_eq!(open(&file, None), Some(KeyError::Sealed));
        let other = PrivateKey::generate().unwrap().public().to_string();
        let swapped = file.replace(&key.public().to_string(), &other);
        assert_eq!(open(&swapped, Some("one")), Some(KeyError::WrongPassphrase));
        let greedy = file.replace("\"memory_kib\": 65536", "\"memory_kib\": 99999999");
        assert_eq!(open(&greedy, Some("one")), Some(KeyError::TooCostly));
    }

    #[test]
    fn halves_that_do_not_belong_together_are_no_key() {
        let (a, b) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let file = a.to_file(None).unwrap();
        let swapped = file.replace(&a.public().to_string(), &b.public().to_string());
        assert_eq!(PrivateKey::from_file(&swapped, None).err(), Some(KeyError::Mismatch));
        assert_eq!(PrivateKey::from_file("{}", None).err(), Some(KeyError::NotAKeyFile));
    }

    #[test]
    fn a_signature_fits_one_key_and_one_message() {
        let (a, b) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let signature = a.sign(b"message");
        assert!(a.public().has_signed(b"message", &signature));
        assert!(!a.public().has_signed(b"massage", &signature));
        assert!(!b.public().has_signed(b"message", &signature));
    }

    #[test]
    fn weak_and_mangled_keys_are_refused() {
        // The neutral element: every message has a signature under it.
        let neutral = STANDARD.encode([
            1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0,
        ]);
        assert_eq!(PublicKey::parse(&format!("ed25519:{neutral}")), Err(KeyError::Weak));
        for text in ["", "ed25519:", "ed25519:AAAA", "rsa:AAAA", "alice"] {
            assert_eq!(PublicKey::parse(text), Err(KeyError::NotAKey), "{text}");
        }
    }
}
