//! Who is told how far an installation is.

use std::fmt;

/// Is told what is done, while it is done. Each face brings its own: bars on a terminal, notifications to an agent.
pub trait Reporter: fmt::Debug + Send + Sync {
    /// Something begins, in a few words: ``fetching `six` ``.
    fn begins(&self, what: &str);

    /// So many bytes of it are done, of so many where that is known.
    fn passed(&self, done: u64, total: Option<u64>);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Reporter for Silent {
    fn begins(&self, _what: &str) {}

    fn passed(&self, _done: u64, _total: Option<u64>) {}
}
