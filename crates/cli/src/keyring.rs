//! The passphrase of a vault in the desktop's keyring, where a program that nobody watches finds it; in builds that have one.

use clap::Args;

use crate::exit::Failure;
use crate::home::Home;

pub(crate) use desktop::{Entry, find};

/// Whether this build has one.
pub(crate) const IS_KNOWN: bool = cfg!(all(feature = "keyring", target_os = "linux"));

/// Whether the passphrase is to be kept there.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Keep the new one in the desktop's keyring too, where the gateway finds it
    #[cfg_attr(
        all(feature = "keyring", target_os = "linux"),
        arg(long, conflicts_with = "remove")
    )]
    #[cfg_attr(not(all(feature = "keyring", target_os = "linux")), arg(skip))]
    keyring: bool,
}

impl Wanted {
    /// The entry that a new passphrase is kept in: where that is wanted, or where an older one is.
    pub(crate) fn entry(self, home: &Home) -> Result<Option<Entry>, Failure> {
        if self.keyring { Entry::to_keep(home).map(Some) } else { Entry::there(home) }
    }
}

#[cfg(all(feature = "keyring", target_os = "linux"))]
mod desktop {
    use std::path::Path;

    use vault::Secret;
    use vault::keyring::{Keyring, KeyringError};

    use super::{Failure, Home};
    use crate::exit::Exit;

    /// What the entries are of; each is called as the folder of its home.
    const SERVICE: &str = "haft-vault";

    /// The entry of a home.
    pub(crate) struct Entry {
        keyring: Keyring,
        account: String,
    }

    /// The passphrase of the vault of a home, where the keyring is open and has it.
    pub(crate) fn find(home: &Path) -> Option<Secret> {
        Entry::of(home).ok()?.get().ok()
    }

    impl Entry {
        fn of(home: &Path) -> Result<Self, KeyringError> {
            let whole = std::fs::canonicalize(home).or_else(|_| std::path::absolute(home));
            let account = whole.as_deref().unwrap_or(home).to_string_lossy().into_owned();
            Ok(Self { keyring: Keyring::connect()?, account })
        }

        /// One that can be written, before anything depends on that.
        pub(super) fn to_keep(home: &Home) -> Result<Self, Failure> {
            let entry = Self::of(home.path()).map_err(|error| failed(&error))?;
            match entry.get() {
                Ok(_) | Err(KeyringError::Missing) => Ok(entry),
                Err(error) => Err(failed(&error)),
            }
        }

        /// The one that is there. One that cannot be written is a failure, before anything else is another.
        pub(crate) fn there(home: &Home) -> Result<Option<Self>, Failure> {
            // Where there is no keyring, there is no entry.
            let Ok(entry) = Self::of(home.path()) else { return Ok(None) };
            match entry.get() {
                Err(error @ (KeyringError::Locked | KeyringError::Ambiguous)) => {
                    Err(failed(&error))
                }
                found => Ok(found.is_ok().then_some(entry)),
            }
        }

        fn get(&self) -> Result<Secret, KeyringError> {
            self.keyring.get(SERVICE, &self.account)
        }

        /// Keeps a passphrase, in place of the one that may be there.
        pub(crate) fn keep(&self, passphrase: &Secret) -> Result<(), Failure> {
            let kept = self.keyring.set(SERVICE, &self.account, passphrase);
            kept.map_err(|error| failed(&error))
        }

        /// Forgets it.
        pub(crate) fn forget(&self) -> Result<(), Failure> {
            let removed = self.keyring.remove(SERVICE, &self.account);
            removed.map(drop).map_err(|error| failed(&error))
        }
    }

    fn failed(error: &KeyringError) -> Failure {
        Failure::of(Exit::Unavailable, error)
    }
}

#[cfg(not(all(feature = "keyring", target_os = "linux")))]
mod desktop {
    use std::path::Path;

    use vault::Secret;

    use super::{Failure, Home};
    use crate::exit::Exit;

    /// There is none in this build.
    pub(crate) enum Entry {}

    pub(crate) fn find(_home: &Path) -> Option<Secret> {
        None
    }

    impl Entry {
        pub(super) fn to_keep(_home: &Home) -> Result<Self, Failure> {
            Err(Failure::new(Exit::Unavailable, "this build knows no keyring"))
        }

        #[expect(clippy::unnecessary_wraps, reason = "it is so where there is a keyring")]
        pub(crate) fn there(_home: &Home) -> Result<Option<Self>, Failure> {
            Ok(None)
        }

        pub(crate) fn keep(&self, _passphrase: &Secret) -> Result<(), Failure> {
            match *self {}
        }

        pub(crate) fn forget(&self) -> Result<(), Failure> {
            match *self {}
        }
    }
}
