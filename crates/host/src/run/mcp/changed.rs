//! Servers that offered something else than was approved when they were last asked, for their owner to look at.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::error::CallError;
use crate::surface::{Surface, in_short};

/// By package: the digest of what was approved, and what is different about it, in words that were approved.
#[derive(Debug, Default)]
pub(crate) struct Changed(Mutex<HashMap<String, (String, String)>>);

impl Changed {
    /// Remembers how a server was found. One that could not be asked is as it was.
    pub(super) fn note(&self, package: &str, approved: &Surface, checked: &Result<(), CallError>) {
        let words = checked.as_ref().err().map(in_short);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match words {
            None => drop(all.remove(package)),
            Some(None) => {}
            Some(Some(words)) => {
                all.insert(package.to_owned(), (approved.digest().to_owned(), words));
            }
        }
    }

    /// What is different about what the server of a package offers from what is approved of it now.
    pub(crate) fn of(&self, package: &str, approved: &Surface) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (digest, words) = all.get(package)?;
        (digest == approved.digest()).then(|| words.clone())
    }
}
