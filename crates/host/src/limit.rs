//! Limits that a call ran into: the number that applied, and who set it.

use manifest::dialect::Dialect;
use policy::{Allowance, SetBy};
use serde_json::{Value, json};

use crate::error::{CallError, Kind};

/// A limit of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// How long it may take.
    Timeout,
    /// How much it may write.
    Output,
    /// How much memory it may use.
    Memory,
    /// How many processes it may have.
    Processes,
    /// How much it may keep in its scratch folder.
    Scratch,
}

/// What programs say who ran into a limit that ends nobody.
const COMPLAINTS: [(&str, Limit); 5] = [
    ("No space left on device", Limit::Scratch),
    ("ENOSPC", Limit::Scratch),
    ("Resource temporarily unavailable", Limit::Processes),
    ("can't start new thread", Limit::Processes),
    ("Cannot fork", Limit::Processes),
];

impl Limit {
    const ALL: [Self; 5] =
        [Self::Timeout, Self::Output, Self::Memory, Self::Processes, Self::Scratch];

    /// Its name, which is its key in the policy too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Output => "output",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Scratch => "scratch",
        }
    }

    /// The limit that an error is about.
    fn of(error: &CallError) -> Option<Self> {
        match error.kind {
            // Others have a clock of their own, and say so.
            Kind::TimedOut => {
                let is_of_call =
                    error.message.starts_with(TOO_LATE) || error.message == TIMED_OUT_OF_AGENTCLI;
                is_of_call.then_some(Self::Timeout)
            }
            Kind::TooMuchOutput => Some(Self::Output),
            Kind::Failed => {
                let marked = error.details.get("limit").and_then(Value::as_str);
                let marked = Self::ALL.into_iter().find(|one| Some(one.name()) == marked);
                let said = error.details.get("stderr").and_then(Value::as_str).unwrap_or_default();
                let mut complaints = COMPLAINTS.iter();
                let complaint =
                    || complaints.find(|(words, _)| said.contains(words)).map(|(_, limit)| *limit);
                marked.or_else(complaint)
            }
            _ => None,
        }
    }

    /// The number that applies.
    fn allowed(self, allowance: &Allowance) -> u64 {
        match self {
            Self::Timeout => allowance.timeout_ms,
            Self::Output => allowance.output,
            Self::Memory => allowance.memory,
            Self::Processes => allowance.processes.into(),
            Self::Scratch => allowance.scratch,
        }
    }

    /// The number in words.
    fn words(self, allowed: u64) -> String {
        match self {
            Self::Timeout if allowed.is_multiple_of(1000) => format!("{} s", allowed / 1000),
            Self::Timeout => format!("{allowed} ms"),
            Self::Processes => allowed.to_string(),
            Self::Output | Self::Memory | Self::Scratch => bytes(allowed),
        }
    }

    /// Who set it, and by which key it is changed.
    pub(crate) fn set_by(self, allowance: &Allowance, dialect: Dialect) -> String {
        let name = self.name();
        match self.by(allowance) {
            SetBy::Caller => "the caller".to_owned(),
            SetBy::Manifest => match self.key(dialect) {
                Some(key) => format!("`{key}` in the manifest"),
                None => "the manifest".to_owned(),
            },
            SetBy::Package => format!("`{name}` of this package in policy.toml"),
            SetBy::Policy => format!("`{name}` of `[sandbox]` in policy.toml"),
            SetBy::Most => format!("`max_{name}` of `[sandbox]` in policy.toml"),
        }
    }

    /// The key of the policy that sets it; empty where somebody else does.
    fn rule(self, allowance: &Allowance) -> String {
        match self.by(allowance) {
            SetBy::Caller | SetBy::Manifest => String::new(),
            SetBy::Package => format!("package.{}", self.name()),
            SetBy::Policy => format!("sandbox.{}", self.name()),
            SetBy::Most => format!("sandbox.max_{}", self.name()),
        }
    }

    fn by(self, allowance: &Allowance) -> SetBy {
        match self {
            Self::Timeout => allowance.timeout_by,
            Self::Memory => allowance.memory_by,
            Self::Output | Self::Processes | Self::Scratch => SetBy::Policy,
        }
    }

    /// The key of a manifest that sets it.
    fn key(self, dialect: Dialect) -> Option<&'static str> {
        match (self, dialect) {
            (Self::Timeout, Dialect::Agentcli) => Some("timeoutSec"),
            (Self::Timeout, Dialect::Mcpkg) => Some("timeoutMs"),
            (Self::Timeout, Dialect::Capability) => Some("timeout_seconds"),
            (Self::Memory, Dialect::Capability) => Some("memory"),
            _ => None,
        }
    }
}

/// Says in an error which limit it is about: the number, and what changes it.
pub(crate) fn tell(error: &mut CallError, allowance: &Allowance, dialect: Dialect) {
    if error.rule == "sandbox.level" {
        error.rule = allowance.level_by.into();
    }
    let Some(limit) = Limit::of(error) else { return };
    let allowed = limit.allowed(allowance);
    let (words, set_by) = (limit.words(allowed), limit.set_by(allowance, dialect));
    let number = format!("{words} (set by {set_by})");
    let is_ended = error.kind != Kind::Failed || error.details.get("limit").is_some();
    if is_ended {
        error.rule = limit.rule(allowance).into();
    }
    error.message = match limit {
        // These words are a part of its contract.
        Limit::Timeout if error.message == TIMED_OUT_OF_AGENTCLI => error.message.clone(),
        Limit::Timeout => {
            let during = error.message.strip_prefix(TOO_LATE).unwrap_or_default();
            format!("the call took longer than {number}{during}")
        }
        Limit::Output => format!("the tool wrote more than {number}"),
        Limit::Memory => format!("the tool used more memory than {number}"),
        Limit::Processes if is_ended => format!("the tool started more processes than {number}"),
        // It only complains, and may complain of something else.
        Limit::Processes | Limit::Scratch => error.message.clone(),
    };
    error.details["limit"] = json!({
        "name": limit.name(),
        "allowed": allowed,
        "words": words,
        "set_by": set_by,
    });
}

/// What a tools.json tool that took too long is said to have done.
pub(crate) const TIMED_OUT_OF_AGENTCLI: &str = "tool timed out";

/// How the message of a call begins that took too long, until it is known how long it may take.
const TOO_LATE: &str = "the call took too long";

/// A call whose time was over while it waited for something.
pub(crate) fn too_late(during: &str) -> CallError {
    CallError::new(Kind::TimedOut, format!("{TOO_LATE}: {during}"))
}

/// A number of bytes as people say it.
fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.iter().find(|(size, _)| count >= *size && count.is_multiple_of(*size));
    match unit {
        Some((size, name)) => format!("{} {name}", count / size),
        None => format!("{count} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_as_people_say_them() {
        assert_eq!(Limit::Timeout.words(30_000), "30 s");
        assert_eq!(Limit::Timeout.words(1_500), "1500 ms");
        assert_eq!(Limit::Output.words(16 << 20), "16 MiB");
        assert_eq!(Limit::Memory.words(3 << 29), "1536 MiB");
        assert_eq!(Limit::Scratch.words(1001), "1001 bytes");
        assert_eq!(Limit::Processes.words(512), "512");
    }

    #[test]
    fn who_complains_of_a_limit_is_understood() {
        let said = |words: &str| CallError::new(Kind::Failed, "no").with("stderr", words);
        let of = |words: &str| Limit::of(&said(words));
        assert_eq!(of("cp: error writing 'x': No space left on device"), Some(Limit::Scratch));
        assert_eq!(of("sh: 1: Cannot fork"), Some(Limit::Processes));
        assert_eq!(of("no such file"), None);
        assert_eq!(Limit::of(&said("").with("limit", "memory")), Some(Limit::Memory));
        assert_eq!(Limit::of(&too_late("it waited")), Some(Limit::Timeout));
    }
}
