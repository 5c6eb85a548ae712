//! How far along a version is offered, and what a reviewer says of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::{Checked, Fault, check_reason};

/// What somebody asks for: versions that are offered so far along, or farther.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// For everybody.
    #[default]
    Stable,
    /// For those who try things first; they see what is stable too.
    Beta,
}

impl Channel {
    /// Every channel with its name.
    pub const ALL: [(Channel, &'static str); 2] =
        [(Channel::Stable, "stable"), (Channel::Beta, "beta")];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The channel of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(channel, _)| *channel)
    }
}

/// Where a version stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is offered to everybody.
    #[default]
    Stable,
    /// It is offered to those who ask for it.
    Beta,
    /// It waits for a reviewer.
    Quarantine,
    /// A reviewer refused it.
    Rejected,
}

impl State {
    /// Every state with its name.
    pub const ALL: [(State, &'static str); 4] = [
        (State::Stable, "stable"),
        (State::Beta, "beta"),
        (State::Quarantine, "quarantine"),
        (State::Rejected, "rejected"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The state of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(state, _)| *state)
    }

    /// Whether it is offered to anybody.
    pub fn is_offered(self) -> bool {
        matches!(self, State::Stable | State::Beta)
    }
}

impl From<Channel> for State {
    fn from(channel: Channel) -> Self {
        match channel {
            Channel::Stable => State::Stable,
            Channel::Beta => State::Beta,
        }
    }
}

/// What a reviewer says of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub struct Decision {
    /// The channel it is approved into; none refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Why; a refusal has a reason.
    #[serde(default)]
    pub reason: String,
}

impl Checked for Decision {
    fn check(&self) -> Result<(), Fault> {
        check_reason(&self.reason)?;
        if self.channel.is_none() && self.reason.trim().is_empty() {
            return Err(Fault::Empty("reason"));
        }
        Ok(())
    }
}

/// Everything that was said of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reviews {
    /// The id of its tool.
    pub id: String,
    /// The version.
    pub version: String,
    /// The oldest first.
    pub reviews: Vec<Reviewed>,
}

/// What was said of a version once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reviewed {
    /// Where it stood from then on.
    pub channel: State,
    /// Why.
    pub reason: String,
    /// The id of the token it was said with.
    pub reviewer: String,
    /// When.
    #[serde(with = "crate::moment")]
    #[schemars(schema_with = "crate::moment::schema")]
    pub at: u64,
}

/// A version that waits for a reviewer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// The id of its tool.
    pub id: String,
    /// The version.
    pub version: String,
    /// SHA-256 of the package file, in hexadecimal.
    pub sha256: String,
    /// Whose names it is among.
    pub namespace: String,
    /// The id of the token it was published with.
    pub publisher: String,
    /// When it was published.
    #[serde(with = "crate::moment")]
    #[schemars(schema_with = "crate::moment::schema")]
    pub published_at: u64,
}

/// The versions that wait, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingList {
    /// Some of them.
    pub waiting: Vec<Waiting>,
    /// How many there are.
    pub total: u64,
}

impl Checked for WaitingList {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_written_the_same() {
        for (state, name) in State::ALL {
            assert_eq!((state.name(), State::named(name)), (name, Some(state)));
            assert_eq!(serde_json::to_value(state).unwrap(), name);
        }
        for (channel, name) in Channel::ALL {
            assert_eq!((channel.name(), Channel::named(name)), (name, Some(channel)));
            assert_eq!(State::from(channel).name(), name);
        }
    }

    #[test]
    fn a_refusal_has_a_reason() {
        let read = |text: &str| crate::read::<Decision>(text.as_bytes());
        assert!(read(r#"{"channel":"beta"}"#).is_ok());
        assert!(read(r#"{"reason":"asks for too much"}"#).is_ok());
        for refused in ["{}", r#"{"reason":" "}"#, r#"{"channel":"gold"}"#, r#"{"chanel":"beta"}"#]
        {
            assert!(read(refused).is_err(), "{refused}");
        }
    }
}
