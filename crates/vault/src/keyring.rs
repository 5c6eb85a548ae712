//! Values that the desktop keeps: GNOME Keyring, KWallet, or whatever offers the Secret Service.
//!
//! An entry is found by the attributes `service` and `username`, which other programs use too. Nobody is
//! asked to unlock a keyring: one that is locked is an error.

use std::collections::HashMap;
use std::fmt;

use dbus_secret_service::{EncryptionType, Error, Item, SecretService};

use crate::secret::{Secret, SecretError};

/// The desktop's keyring.
pub struct Keyring(SecretService);

/// Why the keyring gives or keeps no value.
#[derive(Debug)]
pub enum KeyringError {
    /// There is no keyring, or it refused.
    Service(Error),
    /// The keyring, or the entry in it, is locked.
    Locked,
    /// There is no such entry.
    Missing,
    /// Several entries have this service and account.
    Ambiguous,
    /// What is there is no secret value.
    Value(SecretError),
}

impl fmt::Display for KeyringError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyringError::Service(_) => out.write_str("failed to use the desktop's keyring"),
            KeyringError::Locked => out.write_str("the desktop's keyring is locked"),
            KeyringError::Missing => out.write_str("the desktop's keyring has no such entry"),
            KeyringError::Ambiguous => out
                .write_str("the desktop's keyring has several entries of this service and account"),
            KeyringError::Value(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for KeyringError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            KeyringError::Service(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for KeyringError {
    fn from(error: Error) -> Self {
        match error {
            Error::Locked | Error::Prompt => KeyringError::Locked,
            error => KeyringError::Service(error),
        }
    }
}

impl Keyring {
    /// Connects to the keyring of this session.
    pub fn connect() -> Result<Self, KeyringError> {
        // The bus is a local socket of this user; whoever could listen there could also ask.
        Ok(Self(SecretService::connect(EncryptionType::Plain)?))
    }

    /// The value of an entry.
    pub fn get(&self, service: &str, account: &str) -> Result<Secret, KeyringError> {
        let item = self.only(service, account)?.ok_or(KeyringError::Missing)?;
        Secret::from_bytes(item.get_secret()?).map_err(KeyringError::Value)
    }

    /// Keeps a value, in place of the one that may be there.
    pub fn set(&self, service: &str, account: &str, value: &Secret) -> Result<(), KeyringError> {
        if let Some(item) = self.only(service, account)? {
            return Ok(item.set_secret(value.expose().as_bytes(), "text/plain")?);
        }
        let collection = self.0.get_default_collection()?;
        if collection.is_locked()? {
            return Err(KeyringError::Locked);
        }
        let label = format!("{account} at {service}");
        let secret = value.expose().as_bytes();
        collection.create_item(
            &label,
            attributes(service, account),
            secret,
            false,
            "text/plain",
        )?;
        Ok(())
    }

    /// Removes an entry; says whether there was one.
    pub fn remove(&self, service: &str, account: &str) -> Result<bool, KeyringError> {
        let item = self.only(service, account)?;
        item.as_ref().map_or(Ok(()), Item::delete)?;
        Ok(item.is_some())
    }

    fn only(&self, service: &str, account: &str) -> Result<Option<Item<'_>>, KeyringError> {
        let mut found = self.0.search_items(attributes(service, account))?;
        match (found.unlocked.len(), found.locked.len()) {
            (0, 0) => Ok(None),
            (1, 0) => Ok(found.unlocked.pop()),
            (0, 1) => Err(KeyringError::Locked),
            _ => Err(KeyringError::Ambiguous),
        }
    }
}

/// Shows nothing of the connection.
impl fmt::Debug for Keyring {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Keyring(..)")
    }
}

fn attributes<'a>(service: &'a str, account: &'a str) -> HashMap<&'a str, &'a str> {
    HashMap::from([("service", service), ("username", account)])
}
