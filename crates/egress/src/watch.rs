//! Who is told how far long work is.

use std::fmt;
use std::sync::Arc;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// So many bytes more have passed.
    Bytes(u64),
    /// It failed and begins anew.
    Again,
}

/// Is told of bytes as they pass. It is called often, so it must return soon.
#[derive(Clone)]
pub struct Watch(Arc<dyn Fn(Passed) + Send + Sync>);

impl Watch {
    /// One that does this each time.
    pub fn new(tell: impl Fn(Passed) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// So many bytes have passed.
    pub fn passed(&self, bytes: u64) {
        (self.0)(Passed::Bytes(bytes));
    }

    /// It begins anew.
    pub fn again(&self) {
        (self.0)(Passed::Again);
    }
}

/// One that tells nobody.
impl Default for Watch {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Watch")
    }
}
