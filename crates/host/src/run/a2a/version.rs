//! The versions of the protocol, and what a request is called and looks like in each.

use serde_json::{Map, Value, json};

use super::part::Part;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// 1.0.
    One,
    /// 0.3, which came before it and which many agents still speak.
    ZeroThree,
}

impl Version {
    /// The version that a card means by a text such as `1.0` or `0.3.0`.
    pub(super) fn named(text: &str) -> Option<Self> {
        match text.split('.').collect::<Vec<_>>().as_slice() {
            ["1", ..] => Some(Self::One),
            ["0", "2" | "3", ..] => Some(Self::ZeroThree),
            _ => None,
        }
    }

    /// The one that is tried when this one is not understood.
    pub(super) fn other(self) -> Self {
        match self {
            Self::One => Self::ZeroThree,
            Self::ZeroThree => Self::One,
        }
    }

    /// What the header `A2A-Version` says; whoever does not send it speaks 0.3.
    pub(super) fn header(self) -> Option<&'static str> {
        match self {
            Self::One => Some("1.0"),
            Self::ZeroThree => None,
        }
    }

    /// The method that sends a message.
    pub(super) fn send(self) -> &'static str {
        match self {
            Self::One => "SendMessage",
            Self::ZeroThree => "message/send",
        }
    }

    /// The method that asks how a task is.
    pub(super) fn get(self) -> &'static str {
        match self {
            Self::One => "GetTask",
            Self::ZeroThree => "tasks/get",
        }
    }

    /// The method that calls a task off.
    pub(super) fn cancel(self) -> &'static str {
        match self {
            Self::One => "CancelTask",
            Self::ZeroThree => "tasks/cancel",
        }
    }

    /// A message of the user. The agent is asked to answer at once, because only who knows the task can
    /// call it off.
    pub(super) fn message(self, id: &str, part: &Part, tenant: Option<&str>) -> Value {
        let (mut message, mut configuration) = (Map::new(), Map::new());
        message.insert("messageId".to_owned(), id.into());
        configuration.insert("historyLength".to_owned(), 0.into());
        match self {
            Self::One => {
                message.insert("role".to_owned(), "ROLE_USER".into());
                configuration.insert("returnImmediately".to_owned(), true.into());
            }
            Self::ZeroThree => {
                message.insert("kind".to_owned(), "message".into());
                message.insert("role".to_owned(), "user".into());
                configuration.insert("blocking".to_owned(), false.into());
            }
        }
        message.insert("parts".to_owned(), json!([self.part(part)]));
        with_tenant(json!({ "message": message, "configuration": configuration }), tenant)
    }

    fn part(self, part: &Part) -> Value {
        let mut value = part.to_value();
        if self == Self::ZeroThree {
            value["kind"] = if value.get("text").is_some() { "text".into() } else { "data".into() };
        }
        value
    }
}

/// What a task is named by, to be looked at or called off: in both versions alike.
pub(super) fn of_task(task: &str, tenant: Option<&str>) -> Value {
    with_tenant(json!({ "id": task }), tenant)
}

fn with_tenant(mut params: Value, tenant: Option<&str>) -> Value {
    if let Some(tenant) = tenant {
        params["tenant"] = tenant.into();
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_own_words_for_the_same_message() {
        let part = Part::Data(json!({ "n": 1 }));
        assert_eq!(
            Version::One.message("m", &part, Some("t")),
            json!({
                "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "data": { "n": 1 } }] },
                "configuration": { "historyLength": 0, "returnImmediately": true },
                "tenant": "t",
            })
        );
        let old = Version::ZeroThree.message("m", &Part::Text("hi".into()), None);
        assert_eq!(old["message"]["parts"], json!([{ "text": "hi", "kind": "text" }]));
        assert_eq!(old["configuration"]["blocking"], false);
    }

    #[test]
    fn versions_are_known_by_their_beginning() {
        assert_eq!(Version::named("1.0"), Some(Version::One));
        assert_eq!(Version::named("0.3.0"), Some(Version::ZeroThree));
        assert_eq!(Version::named("2.0"), None);
        assert_eq!(Version::named(""), None);
    }
}
