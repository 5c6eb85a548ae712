//! The revisions of the protocol that are spoken here, and what a request of the newer era says of its client.

use serde_json::{Map, Value, json};

use super::error::{Code, Error};

/// A revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    /// Every request stands for itself.
    V2026_07_28,
}

impl Revision {
    const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether every request stands for itself.
    pub(crate) fn is_stateless(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// Whether several messages may be one.
    pub(crate) fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// The newest that begins with a handshake.
    pub(crate) const NEWEST_WITH_HANDSHAKE: Self = Self::V2025_11_25;

    /// What is agreed on with a client that greets with a revision: that one, or the newest of its era.
    pub(crate) fn agreed(asked: &str) -> Self {
        Self::named(asked).filter(|one| !one.is_stateless()).unwrap_or(Self::NEWEST_WITH_HANDSHAKE)
    }

    /// Those that a client without a greeting is told of.
    pub(crate) fn names() -> Vec<&'static str> {
        Self::ALL.into_iter().map(Self::name).collect()
    }
}

/// What a request carries in `_meta`, by its keys there.
pub(crate) mod key {
    pub(crate) const REVISION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub(crate) const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
    pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub(crate) const SERVER: &str = "io.modelcontextprotocol/serverInfo";
    pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
    pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";
}

/// What a request says of itself beside what it asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meta {
    pub(crate) revision: Option<String>,
    pub(crate) capabilities: Option<Map<String, Value>>,
    pub(crate) client: Option<Value>,
    pub(crate) progress: Option<Value>,
    /// What is passed on to whoever answers it.
    pub(crate) passed: Map<String, Value>,
}

impl Meta {
    /// Reads the `_meta` of a request.
    pub(crate) fn of(params: &Value) -> Self {
        let mut meta = Self::default();
        let Some(Value::Object(said)) = params.get("_meta") else { return meta };
        for (name, value) in said {
            match (name.as_str(), value) {
                (key::REVISION, Value::String(name)) => meta.revision = Some(name.clone()),
                (key::CAPABILITIES, Value::Object(all)) => meta.capabilities = Some(all.clone()),
                (key::CLIENT, Value::Object(_)) => meta.client = Some(value.clone()),
                ("progressToken", Value::String(_) | Value::Number(_)) => {
                    meta.progress = Some(value.clone());
                }
                (key::LOG_LEVEL | "traceparent" | "tracestate" | "baggage", Value::String(_)) => {
                    meta.passed.insert(name.clone(), value.clone());
                }
                _ => {}
            }
        }
        meta
    }

    /// Refuses a request that does not stand for itself.
    pub(crate) fn check(&self) -> Result<(Revision, &Map<String, Value>), Error> {
        let missing = |name: &str| {
            let words = format!(
                "`params._meta[\"{name}\"]` is missing, or is not what it should be; a client of an older revision sends `initialize` first"
            );
            Error::new(Code::BadParameters, words).malformed()
        };
        let asked = self.revision.as_deref().ok_or_else(|| missing(key::REVISION))?;
        let revision = Revision::named(asked).ok_or_else(|| unsupported(asked))?;
        let capabilities = self.capabilities.as_ref().ok_or_else(|| missing(key::CAPABILITIES))?;
        Ok((revision, capabilities))
    }
}

/// A revision that nobody speaks here.
pub(crate) fn unsupported(asked: &str) -> Error {
    let words = format!("the revision `{asked}` is not spoken here");
    Error::new(Code::Revision, words)
        .with(json!({ "supported": Revision::names(), "requested": asked }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_leads_to_a_revision_with_a_greeting() {
        for (asked, agreed) in [
            ("2025-03-26", "2025-03-26"),
            ("2024-11-05", "2024-11-05"),
            ("2026-07-28", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
        ] {
            assert_eq!(Revision::agreed(asked).name(), agreed);
        }
    }

    #[test]
    fn a_request_of_the_newer_era_says_its_revision_and_what_its_client_can() {
        let whole = json!({ "_meta": { key::REVISION: "2026-07-28", key::CAPABILITIES: {}, "traceparent": "00-1", "progressToken": 7 } });
        let meta = Meta::of(&whole);
        assert!(meta.check().unwrap().0.is_stateless());
        assert_eq!(
            (meta.progress, meta.passed["traceparent"].as_str()),
            (Some(json!(7)), Some("00-1"))
        );
        for (meta, code) in [
            (json!({}), Code::BadParameters),
            (json!({ key::REVISION: "2026-07-28" }), Code::BadParameters),
            (json!({ key::REVISION: 7, key::CAPABILITIES: {} }), Code::BadParameters),
            (json!({ key::REVISION: "2030-01-01", key::CAPABILITIES: {} }), Code::Revision),
        ] {
            assert_eq!(Meta::of(&json!({ "_meta": meta })).check().unwrap_err().code, code);
        }
    }
}
