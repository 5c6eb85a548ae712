//! Secrets at rest: where they are kept, how they are named, and how they stay out of sight.
//!
//! The modules form a ladder; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`secret`] | a value that is cleared and never shown |
//! | [`place`] | whose secret it is, and its name |
//! | [`mod@reference`] | what a manifest writes instead of a value |
//! | [`file`](mod@file) | our own vault: one sealed file in a folder of its own |
//! | [`outside`] | values that somebody else keeps: variables and files |
//! | [`kv`] | values that a Vault server keeps |
//! | `keyring` | values that the desktop keeps (feature `keyring`, Linux) |
//! | [`redact`] | known values taken out of whatever is shown, stored or sent |
//!
//! Nothing here prompts, prints, or reads the environment, and there is no way to keep a secret in
//! plain text. A connection is made by the caller, through [`kv::Fetch`].

pub mod file;
#[cfg(all(feature = "keyring", target_os = "linux"))]
pub mod keyring;
pub mod kv;
pub mod outside;
pub mod place;
pub mod redact;
pub mod reference;
pub mod secret;

pub use file::{Change, FileVault, VaultError};
pub use place::{Owner, Place};
pub use redact::Redactor;
pub use reference::Reference;
pub use secret::Secret;
