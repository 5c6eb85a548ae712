//! Who is told how far long work is.

use std::fmt;
use std::sync::Arc;

/// Is told of bytes as they pass. It is called often, so it must return soon.
#[derive(Clone)]
pub struct Watch(Arc<dyn Fn(u64) + Send + Sync>);

impl Watch {
    /// One that does this with each number of bytes.
    pub fn new(passed: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self(Arc::new(passed))
    }

    /// So many bytes have passed.
    pub fn passed(&self, bytes: u64) {
        (self.0)(bytes);
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
