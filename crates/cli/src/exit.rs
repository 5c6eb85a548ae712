//! How the program ends. The codes are part of the contract with scripts.

/// What an exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// It was done.
    Done,
    /// The tool failed or ran past a limit.
    Failed,
    /// The input, manifest, digest or secret is wrong.
    Invalid,
    /// Something named is not there.
    NotFound,
    /// Policy, trust, consent or approval said no.
    Denied,
    /// It would overwrite or contradict what is there.
    Conflict,
    /// Network, a runtime or the walls are missing.
    Unavailable,
    /// A fault of our own.
    Bug,
    /// The code of a program that was run, passed on.
    Of(u8),
}

impl Exit {
    /// The number a script sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Invalid => 2,
            Self::NotFound => 3,
            Self::Denied => 4,
            Self::Conflict => 5,
            Self::Unavailable => 6,
            Self::Bug => 70,
            Self::Of(code) => code,
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) details: Vec<String>,
    pub(crate) causes: Vec<String>,
    pub(crate) hints: Vec<String>,
    /// What is wrong with a manifest, a list for programs; people have seen it drawn.
    pub(crate) findings: Option<Box<serde_json::Value>>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            details: Vec::new(),
            causes: Vec::new(),
            hints: Vec::new(),
            findings: None,
        }
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

    /// An error and all it was caused by.
    pub(crate) fn of(exit: Exit, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut failure = Self::new(exit, error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            failure = failure.cause(cause);
            source = cause.source();
        }
        failure
    }

    pub(crate) fn cause(mut self, cause: impl std::fmt::Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// What a command comes to: an exit code, or the reason for a failure.
pub(crate) type Outcome = Result<Exit, Failure>;
