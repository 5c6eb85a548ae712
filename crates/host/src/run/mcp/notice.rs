//! What servers say to nobody in particular: that what they offer has changed, that a resource has.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// Something that a server said to nobody in particular.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// In the words of the protocol.
    pub method: &'static str,
    /// What it is about.
    pub params: Value,
}

/// Is told what servers say to nobody in particular, and which package each is of.
type Listener = Arc<dyn Fn(&str, Notice) + Send + Sync>;

/// Who is told of the notices of one server.
#[derive(Clone, Default)]
pub(crate) struct Notices {
    package: String,
    listener: Option<Listener>,
}

impl Notices {
    /// Whether anybody listens.
    pub(super) fn is_heard(&self) -> bool {
        self.listener.is_some()
    }

    /// Tells whoever listens.
    pub(super) fn tell(&self, notice: Notice) {
        if let Some(listener) = &self.listener {
            listener(&self.package, notice);
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Notices").field("package", &self.package).finish_non_exhaustive()
    }
}

/// Who is told of the notices of all servers.
#[derive(Default)]
pub(crate) struct Board(Mutex<Option<Listener>>);

impl Board {
    /// Tells somebody from now on, who must return soon; servers that run already go on telling whoever was told before.
    pub(crate) fn listen(&self, listener: impl Fn(&str, Notice) + Send + Sync + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listener));
    }

    /// The notices of a server of a package.
    pub(super) fn of(&self, package: &str) -> Notices {
        let listener = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Notices { package: package.to_owned(), listener }
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Board")
    }
}
