//! Why the vault refuses.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::place::Place;
use crate::secret::SecretError;

/// Why something could not be done with the vault. The vault is as it was before; only after a failure to
/// *sync* it may already be as it was to be, without the disk's word for it.
#[derive(Debug)]
pub enum VaultError {
    /// A file or folder cannot be read, written or locked.
    Disk {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// A file or folder is not ours alone, and is therefore not used.
    Unsafe {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        fault: Unsafe,
    },
    /// The file is no vault of ours.
    Malformed(PathBuf),
    /// A later version of Haft wrote the file.
    Later(PathBuf),
    /// The file asks for more work than is sensible to try a passphrase.
    TooCostly(PathBuf),
    /// There are sealed secrets, but the file with the key that opens them is not there.
    KeyMissing {
        /// Where the key would be.
        key: PathBuf,
        /// What it would open.
        sealed: PathBuf,
    },
    /// There are sealed secrets, and the file holds another key than the one that opens them.
    OtherKey(PathBuf),
    /// The passphrase is needed and was not given.
    NoPassphrase,
    /// The passphrase does not open the vault.
    WrongPassphrase,
    /// The vault has no passphrase that could be verified.
    NotSealed,
    /// The entry was damaged or exchanged: the key does not open it.
    Damaged(Place),
    /// What was sealed is no secret value.
    Value(SecretError),
    /// The vault would become larger than it may be.
    Full,
    /// The system gives no randomness.
    NoRandomness,
}

/// What makes a file or folder unsafe to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsafe {
    /// It is a link, a device, or something else that is not what was expected.
    Kind,
    /// It has other names beside this one.
    Linked,
    /// It belongs to somebody else.
    Owner,
    /// Others may read or write it: its mode.
    Mode(u32),
    /// It is larger than it may be.
    Size,
}

impl fmt::Display for Unsafe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsafe::Kind => out.write_str("it is a link, or no plain file or folder"),
            Unsafe::Linked => out.write_str("it has more than one name"),
            Unsafe::Owner => out.write_str("it belongs to another user"),
            Unsafe::Mode(mode) => write!(out, "others may read or write it (mode {mode:04o})"),
            Unsafe::Size => out.write_str("it is larger than it may be"),
        }
    }
}

impl fmt::Display for VaultError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VaultError::Disk { doing, path, .. } => {
                write!(out, "failed to {doing} `{}`", path.display())
            }
            VaultError::Unsafe { path, fault } => {
                write!(out, "`{}` is not used: {fault}", path.display())
            }
            VaultError::Malformed(path) => {
                write!(out, "`{}` is no vault of Haft, or is damaged", path.display())
            }
            VaultError::Later(path) => {
                write!(out, "`{}` was written by a later version of Haft", path.display())
            }
            VaultError::TooCostly(path) => {
                write!(out, "`{}` asks for more work than is sensible", path.display())
            }
            VaultError::KeyMissing { key, .. } => {
                write!(out, "`{}`, the key of the vault, is missing", key.display())
            }
            VaultError::OtherKey(path) => {
                write!(out, "`{}` does not hold the key of the vault", path.display())
            }
            VaultError::NoPassphrase => out.write_str("the vault is sealed with a passphrase"),
            VaultError::WrongPassphrase => out.write_str("the passphrase does not open the vault"),
            VaultError::NotSealed => out.write_str("the vault has no passphrase"),
            VaultError::Damaged(place) => {
                write!(out, "the secret {place} was damaged or exchanged")
            }
            VaultError::Value(error) => error.fmt(out),
            VaultError::Full => out.write_str("the vault is full"),
            VaultError::NoRandomness => out.write_str("the system gives no randomness"),
        }
    }
}

impl std::error::Error for VaultError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            VaultError::Disk { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
