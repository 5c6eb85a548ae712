//! How the program ends. The codes are part of the contract with scripts.

/// What an exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It was done.
    Done = 0,
    /// The input, manifest, digest or secret is wrong.
    Invalid = 2,
    /// Something named is not there.
    NotFound = 3,
    /// Policy, trust, consent or approval said no.
    Denied = 4,
    /// It would overwrite or contradict what is there.
    Conflict = 5,
    /// Network, a runtime or the walls are missing.
    Unavailable = 6,
    /// A fault of our own.
    Bug = 70,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) details: Vec<String>,
    pub(crate) causes: Vec<String>,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), details: Vec::new(), causes: Vec::new(), hint: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Exit::Invalid, message)
    }

    /// One of several things that are wrong.
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// Several things that are wrong.
    pub(crate) fn details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }

    pub(crate) fn cause(mut self, cause: impl std::fmt::Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// What a command comes to: an exit code, or the reason for a failure.
pub(crate) type Outcome = Result<Exit, Failure>;
