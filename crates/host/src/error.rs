//! Why a call gave no result.

use std::borrow::Cow;
use std::fmt;

use policy::{Denial, GrantKind};
use serde_json::{Value, json};
use vault::Redactor;

use crate::blocked::Blocked;
use crate::call::Unasked;
use crate::clip;

/// How many bytes of a message are told; strangers write some of them.
const LONGEST_MESSAGE: usize = 4096;

/// How many bytes are told of each text that comes along with it: what a tool said, what a server answered.
const MOST_TOLD: usize = 16 << 10;

/// How many bytes are told of an answer that is none.
const MOST_OF_AN_ANSWER: usize = 200;

/// How many values are told with all that a list of the policy lacks: each is told with the whole list, and a stranger
/// says how many there are.
const MOST_JOINED: usize = 50;

/// Why a call gave no result.
#[derive(Clone, Debug, PartialEq)]
pub struct CallError {
    /// What kind of failure it is.
    pub kind: Kind,
    /// What happened, in a lower-case phrase.
    pub message: String,
    /// What else is known, for programs: an object.
    pub details: Value,
    /// After how many seconds the same may well succeed, where the failure looks like one that passes.
    pub passes_after: Option<u32>,
    /// What a process reached for in vain before this happened.
    pub blocked: Vec<Blocked>,
    /// The key of the policy that it comes from: `budget.calls_per_day`; empty where it is none.
    pub rule: Cow<'static, str>,
}

/// What kind of failure it is. Each face maps it once: to an exit code, a status, a code of its protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The tool said no, or broke.
    Failed,
    /// The tool took too long.
    TimedOut,
    /// The tool wrote more than it may.
    TooMuchOutput,
    /// The tool's answer is not what it promised.
    BadOutput,
    /// The input is not what the action takes.
    BadInput,
    /// A secret or a variable that it needs is not there.
    MissingInput,
    /// The steps of a chain cannot be followed.
    BadChain,
    /// There is no such tool or action.
    Unknown,
    /// It may not be called, or not so.
    Denied,
    /// It is trusted too little to be called.
    Distrusted,
    /// A place may not be reached for it.
    Blocked(Box<Blocked>),
    /// The owner has to be asked first.
    NeedsApproval(Box<Unasked>),
    /// The owner has to sign in first, or to sign in for more.
    NeedsLogin,
    /// Nothing has come of it yet: the tool asks its user something before it goes on, or goes on as a task.
    Unfinished,
    /// What it needs to run is not there: a runtime, an engine, walls, the network.
    Unavailable,
    /// It was called off.
    Cancelled,
}

impl Kind {
    /// Its code, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Failed => "tool_failed",
            Self::TimedOut => "timed_out",
            Self::TooMuchOutput => "too_much_output",
            Self::BadOutput => "bad_output",
            Self::BadInput => "bad_input",
            Self::MissingInput => "missing_input",
            Self::BadChain => "bad_chain",
            Self::Unknown => "unknown_tool",
            Self::Denied | Self::Distrusted | Self::Blocked(_) => "denied",
            Self::NeedsApproval(_) => "needs_approval",
            Self::NeedsLogin => "needs_login",
            Self::Unfinished => "unfinished",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it was us who refused, and nothing was tried.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Denied
                | Self::Distrusted
                | Self::Blocked(_)
                | Self::NeedsApproval(_)
                | Self::NeedsLogin
        )
    }
}

/// A value that nobody keeps, or that is not given.
pub(crate) struct Missing<'n> {
    pub(crate) name: &'n str,
    pub(crate) is_secret: bool,
    /// Where it was looked for, where that is not in the vault under its own name: the key of a detail, and its value.
    pub(crate) sought: Option<(&'static str, String)>,
    /// Why it is not given, where it may be there.
    pub(crate) refused: Option<CallError>,
}

impl<'n> Missing<'n> {
    /// A secret that the vault would keep under its own name.
    pub(crate) fn secret(name: &'n str) -> Self {
        Self { name, is_secret: true, sought: None, refused: None }
    }

    /// What programs are told of them. Where a list of the policy would have to name several, it is told with all.
    pub(crate) fn to_values(all: &[Self]) -> Vec<Value> {
        let mut told: Vec<_> = all.iter().map(Self::to_value).collect();
        if told.len() > MOST_JOINED {
            return told;
        }
        for at in 0..told.len() {
            let one = &told[at];
            let of_list = |other: &&Value| {
                ["table", "list"].iter().all(|key| one.get(key).is_some() && other[key] == one[key])
            };
            let names = told.iter().filter(of_list).filter_map(|other| other["names"].as_array());
            let mut joined: Vec<Value> = Vec::new();
            for name in names.flatten() {
                if !joined.contains(name) {
                    joined.push(name.clone());
                }
            }
            if !joined.is_empty() {
                told[at]["names"] = joined.into();
            }
        }
        told
    }

    fn to_value(&self) -> Value {
        let mut told = match &self.refused {
            Some(error) => {
                error.clone().with("code", error.kind.code()).with("why", &*error.message)
            }
            None => CallError::new(Kind::MissingInput, ""),
        };
        if let Some((key, place)) = &self.sought {
            told = told.with(key, place.as_str());
        }
        told.with("name", self.name).with("secret", self.is_secret).details
    }
}

impl CallError {
    /// The same, of a call whose time somebody else set than it looks like.
    #[must_use]
    pub fn timed_by(mut self, who: &str) -> Self {
        let said = self.details["limit"]["set_by"].as_str().map(str::to_owned);
        if let (Kind::TimedOut, Some(said)) = (&self.kind, said) {
            let words = format!("(set by {who})");
            self.message = self.message.replace(&format!("(set by {said})"), &words);
            self.details["limit"]["set_by"] = who.into();
        }
        self
    }

    /// A failure without details.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let (message, details) = (message.into(), json!({}));
        let (blocked, rule) = (Vec::new(), Cow::Borrowed(""));
        Self { kind, message, details, passes_after: None, blocked, rule }
    }

    /// A call that may not go ahead.
    pub(crate) fn denied(denial: &Denial) -> Self {
        let kind = match denial {
            Denial::Login | Denial::Scopes(_) => Kind::NeedsLogin,
            Denial::Trust(_) => Kind::Distrusted,
            _ => Kind::Denied,
        };
        let error = Self::new(kind, denial.to_string());
        // What would have to change, so that a face can say how.
        match denial {
            Denial::Package => error.with("refused", "package"),
            Denial::Action(_) => error.with("refused", "action"),
            Denial::NoLogin => error.with("login", "impossible"),
            Denial::Scopes(scopes) => error.with("scopes", scopes.clone()),
            Denial::Environment { name, allowed } => {
                error.unlisted(("environment", "allow"), allowed, name)
            }
            _ => error,
        }
    }

    /// The same; where somebody has to sign in, it says for which package.
    #[must_use]
    pub(crate) fn of_package(self, package: &str) -> Self {
        match self.kind {
            Kind::NeedsLogin => self.with("package", package),
            _ => self,
        }
    }

    /// A place that may not be reached.
    pub(crate) fn blocked(message: impl Into<String>, place: Blocked) -> Self {
        let (host, why) = (place.asked.clone(), place.why.to_string());
        let rule = if place.kind() == GrantKind::Host { "network" } else { "folders" };
        let error = Self::new(Kind::Blocked(Box::new(place)), message);
        error.with("host", host).with("why", why).by(rule)
    }

    /// A place of the network that may not be reached.
    pub(crate) fn refused(place: &str, refusal: egress::Refusal) -> Self {
        let message = format!("`{place}` is refused: {refusal}");
        Self::blocked(message, Blocked::host(place, refusal))
    }

    /// The same, of what a list of the policy would have to name, beside those that it names.
    #[must_use]
    pub(crate) fn unlisted(self, list: (&str, &str), known: &[String], name: &str) -> Self {
        let names: Vec<_> = known.iter().map(String::as_str).chain([name]).collect();
        let by = format!("{}.{}", list.0, list.1);
        let told = self.with("table", list.0).with("list", list.1).with("value", name);
        told.with("names", names).by(by)
    }

    /// Values that nobody keeps, or that are not given: all in one error, which is their own where there is but one.
    pub(crate) fn missing(all: &[Missing<'_>]) -> Self {
        if let [Missing { refused: Some(error), .. }] = all {
            return error.clone();
        }
        let refused = || all.iter().filter_map(|one| one.refused.as_ref());
        let of = |is_secret: bool, what: &str| {
            let is_kept = |one: &&Missing<'_>| one.refused.is_none() && one.is_secret == is_secret;
            let named: Vec<_> = all.iter().filter(is_kept).map(|one| one.name).collect();
            (!named.is_empty()).then(|| format!("{what}: {}", named.join(", ")))
        };
        let words = [of(true, "Missing required secret"), of(false, "missing variable")];
        let words = words.into_iter().flatten().chain(refused().map(|error| error.message.clone()));
        let words: Vec<_> = words.collect();
        // Whoever is refused something has to be told that first.
        let kinds = [Kind::Denied, Kind::Unavailable, Kind::BadInput];
        let kind = kinds.into_iter().find(|kind| refused().any(|error| error.kind == *kind));
        let rule = refused().map(|error| error.rule.clone()).find(|rule| !rule.is_empty());
        Self::new(kind.unwrap_or(Kind::MissingInput), words.join("; "))
            .with("missing", Missing::to_values(all))
            .by(rule.unwrap_or_default())
    }

    /// The same, after a process had reached for this in vain.
    #[must_use]
    pub(crate) fn after(mut self, blocked: Vec<Blocked>) -> Self {
        self.blocked.extend(blocked);
        self
    }

    /// The same, of which it is known that it may be gone the next time.
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.passes_after = Some(0);
        self
    }

    /// Nobody waits for it any more.
    pub(crate) fn called_off() -> Self {
        Self::new(Kind::Cancelled, "the call was called off")
    }

    /// The same, with one more detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details[name] = value.into();
        self
    }

    /// The same, by this key of the policy.
    #[must_use]
    pub(crate) fn by(mut self, rule: impl Into<Cow<'static, str>>) -> Self {
        self.rule = rule.into();
        self
    }

    /// Takes secrets out of it.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        self.message = redactor.text(&self.message);
        redactor.json(&mut self.details);
        if let Kind::Blocked(place) = &mut self.kind {
            place.asked = redactor.text(&place.asked);
        }
        for one in &mut self.blocked {
            one.asked = redactor.text(&one.asked);
        }
    }

    /// Shortens its texts to what somebody may want to read, once the secrets are out of them. Nobody else
    /// cuts what is told in an error.
    pub(crate) fn shorten(&mut self) {
        self.message = clip::start(&self.message, LONGEST_MESSAGE);
        if let Some(Value::String(answer)) = self.details.get_mut("answer") {
            *answer = clip::start(answer, MOST_OF_AN_ANSWER);
            self.message = match answer.as_str() {
                "" => format!("{}: it is empty", self.message),
                answer => format!("{}; it begins with {answer:?}", self.message),
            };
        }
        for detail in self.details.as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
            if let Value::String(text) = detail {
                *text = clip::end(text, MOST_TOLD);
            }
        }
    }

    /// The error as one JSON value.
    pub fn to_value(&self) -> Value {
        json!({ "code": self.kind.code(), "message": self.message, "details": self.details })
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_told_with_all_that_it_lacks_unless_a_stranger_makes_that_too_much() {
        let lists = |count: usize| {
            let names: Vec<_> = (0..count).map(|number| format!("N{number}")).collect();
            let refused = |name: &String| {
                let error = CallError::new(Kind::Denied, "no");
                error.unlisted(("secrets", "environment"), &["KNOWN".to_owned()], name)
            };
            let all: Vec<_> = names
                .iter()
                .map(|name| Missing { refused: Some(refused(name)), ..Missing::secret(name) })
                .collect();
            let error = CallError::missing(&all);
            assert_eq!(error.kind, Kind::Denied);
            let told = error.details["missing"].as_array().unwrap().clone();
            told.into_iter().map(|one| one["names"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(lists(2), vec![json!(["KNOWN", "N0", "N1"]); 2]);
        let many = lists(MOST_JOINED + 1);
        assert_eq!(many[1], json!(["KNOWN", "N1"]));
    }
}
