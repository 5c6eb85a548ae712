//! What an installed tool reached for by itself although it was not given it, and what the owner wants done about that.
//!
//! Who calls may name a host or a path that the tool was not given; then it is the caller who reaches for it, and the
//! tool is not held to account. What a caller has not named is the tool's own doing.

use std::path::Path;

use policy::{Consent, OnViolation, Policy};
use serde_json::Value;

use crate::blocked::{Blocked, Why};
use crate::call::{Call, Tool};

/// What a tool reached for by itself, and what is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What it reached for.
    pub blocked: Vec<Blocked>,
    /// What the owner wants done.
    pub then: Then,
}

/// What is done about a tool that fights its walls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is switched off.
    Disable,
    /// It is revoked.
    Revoke,
}

impl Violation {
    /// What is to be done about what a call reached for in vain, if anything. Only what is installed can be switched off.
    pub(crate) fn of<'b>(
        blocked: impl Iterator<Item = &'b Blocked>,
        call: &Call,
        tool: &Tool,
        policy: &Policy,
    ) -> Option<Self> {
        let Consent::ByCard { .. } = tool.consent else { return None };
        let then = match policy.on_violation(&tool.package.canonical_id(), &tool.package.id) {
            OnViolation::Nothing => return None,
            OnViolation::Disable => Then::Disable,
            OnViolation::Revoke => Then::Revoke,
        };
        let named = texts(&call.input);
        let blocked: Vec<_> =
            blocked.filter(|one| !named.iter().any(|text| names(text, one))).cloned().collect();
        (!blocked.is_empty()).then_some(Self { blocked, then })
    }
}

/// Whether a text of the input names what was reached for.
fn names(text: &str, one: &Blocked) -> bool {
    match one.why {
        Why::Network(_) => {
            let host = one.asked.rsplit_once(':').map_or(one.asked.as_str(), |(host, _)| host);
            text.to_ascii_lowercase().contains(&host.to_ascii_lowercase())
        }
        Why::Hidden | Why::HiddenToWriting | Why::HiddenPerhapsToWriting | Why::ReadOnly => {
            let asked = Path::new(&one.asked);
            let typed = text.strip_prefix("~/").or(text.strip_prefix("./")).unwrap_or(text);
            // A folder that was named stands for what is in it.
            text.contains(&one.asked) || asked.starts_with(text) || asked.ends_with(typed)
        }
    }
}

/// Every text of an input, names of members too.
fn texts(input: &str) -> Vec<String> {
    fn add(value: Value, into: &mut Vec<String>) {
        match value {
            Value::String(text) => into.push(text),
            Value::Array(items) => items.into_iter().for_each(|item| add(item, into)),
            Value::Object(members) => members.into_iter().for_each(|(name, member)| {
                into.push(name);
                add(member, into);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut all = Vec::new();
    add(serde_json::from_str(input).unwrap_or_default(), &mut all);
    all.retain(|text| !text.trim().is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(asked: &str) -> Blocked {
        Blocked::host(asked, egress::Refusal::Host)
    }

    fn path(asked: &str) -> Blocked {
        Blocked { asked: asked.into(), why: Why::Hidden }
    }

    fn is_named(input: &str, one: &Blocked) -> bool {
        texts(input).iter().any(|text| names(text, one))
    }

    #[test]
    fn what_the_caller_named_is_not_the_doing_of_the_tool() {
        for (input, one) in [
            (r#"{"url":"https://Api.example.com/x"}"#, host("api.example.com:443")),
            (r#"{"deep":[{"host":"api.example.com"}]}"#, host("api.example.com")),
            (r#"{"path":"\/srv\/data\/a.txt"}"#, path("/srv/data/a.txt")),
            (r#"{"folder":"/srv/data"}"#, path("/srv/data/a.txt")),
            (r#"{"path":"~/notes/a.txt"}"#, path("/home/jane/notes/a.txt")),
            (r#"{"path":"./a.txt"}"#, path("/home/jane/a.txt")),
            (r#"{"command":"cat /srv/data/a.txt"}"#, path("/srv/data/a.txt")),
        ] {
            assert!(is_named(input, &one), "{input}: {one:?}");
        }
    }

    #[test]
    fn what_nobody_named_is() {
        for (input, one) in [
            (r"{}", host("evil.example:443")),
            (r#"{"message":"","n":[1,true,null]}"#, path("/etc/shadow")),
            (r#"{"path":"/srv/data"}"#, path("/srv/database")),
            (r#"{"url":"https://api.example.com"}"#, host("evil.example")),
            ("no json", host("evil.example")),
        ] {
            assert!(!is_named(input, &one), "{input}: {one:?}");
        }
    }
}
