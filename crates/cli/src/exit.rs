//! How the program ends. The codes are part of the contract with scripts.

use serde_json::{Value, json};

use crate::trouble;

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

    /// What kind of failure it is, for programs.
    fn name(self) -> &'static str {
        match self {
            Self::Done | Self::Failed => "failed",
            Self::Invalid => "bad_input",
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::Conflict => "conflict",
            Self::Unavailable => "unavailable",
            Self::Bug => "bug",
            // The only failure with a number of its own.
            Self::Of(_) => "cancelled",
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
    /// A kind of its own, for programs, where its exit code says too little.
    kind: Option<&'static str>,
    /// What is wrong with a document, by the name of the list and the list, for programs; people are shown it otherwise.
    listed: Option<Box<(&'static str, Value)>>,
    /// What was done before it failed, for programs: what stands beside the error.
    before: Option<Box<Value>>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            details: Vec::new(),
            causes: Vec::new(),
            hints: Vec::new(),
            kind: None,
            listed: None,
            before: None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Exit::Invalid, message)
    }

    /// A file that could not be read: it is not there, it is a folder, or the disk refuses.
    pub(crate) fn unread(path: impl std::fmt::Display, error: std::io::Error) -> Self {
        use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
        let exit = match error.kind() {
            NotFound | NotADirectory => Exit::NotFound,
            IsADirectory => Exit::Invalid,
            _ => Exit::Unavailable,
        };
        Self::new(exit, format!("failed to read `{path}`")).cause(error)
    }

    /// A failure of a kind that programs may want to tell from others with the same exit code.
    pub(crate) fn kind(mut self, kind: &'static str) -> Self {
        self.kind = Some(kind);
        self
    }

    /// All that is wrong with a manifest.
    pub(crate) fn findings(self, findings: Value) -> Self {
        self.listed("findings", findings).kind("invalid_manifest")
    }

    /// All that is wrong with a document, under this name, with what programs want to know of each.
    pub(crate) fn listed(mut self, name: &'static str, all: Value) -> Self {
        self.listed = Some(Box::new((name, all)));
        self
    }

    /// The failure after all that this document tells, which programs are told with it.
    pub(crate) fn after(mut self, document: Value) -> Self {
        self.before = Some(Box::new(document));
        self
    }

    /// Whether it is of a kind of its own, and of this one.
    pub(crate) fn is_kind(&self, kind: &str) -> bool {
        self.kind == Some(kind)
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

    /// An error, all it was caused by, and what would help.
    pub(crate) fn of(exit: Exit, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut failure = Self::new(exit, error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            failure = failure.cause(cause);
            if let Some(hint) = cause.downcast_ref().and_then(trouble::hint) {
                failure = failure.hint(hint);
            }
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

    /// The document that programs are told it with.
    pub(crate) fn document(&self) -> Value {
        let mut document = self.before.as_deref().cloned().unwrap_or_else(|| json!({}));
        document["ok"] = false.into();
        document["error"] = self.to_value();
        document
    }

    /// The error that programs are told.
    pub(crate) fn to_value(&self) -> Value {
        let mut details = json!({});
        for (name, lines) in [("problems", &self.details), ("causes", &self.causes)] {
            if !lines.is_empty() {
                details[name] = json!(lines);
            }
        }
        if let Some((name, all)) = self.listed.as_deref() {
            details[*name] = all.clone();
        }
        let code = self.kind.unwrap_or(self.exit.name());
        json!({ "code": code, "message": self.message, "details": details, "hints": self.hints })
    }
}

/// What a command comes to: an exit code, or the reason for a failure.
pub(crate) type Outcome = Result<Exit, Failure>;
