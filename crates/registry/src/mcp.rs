//! What a registry of the MCP world says: the answers of its API in version 0.1.
//!
//! A server is told as that API has it, in the form of [`server_json`](crate::server_json); what the registry
//! knows of it stands beside it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::read::{Checked, Fault};

/// Some of the servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerList {
    /// The servers, each version of each for itself.
    pub servers: Vec<Server>,
    /// Where the list goes on.
    #[serde(default)]
    pub metadata: Metadata,
}

/// Where a list goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ServerMetadata")]
pub struct Metadata {
    /// What to ask for the next page with; absent on the last.
    #[serde(
        rename = "nextCursor",
        alias = "next_cursor",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub next_cursor: Option<String>,
    /// How many are on this page.
    #[serde(default)]
    pub count: u64,
}

/// A version of a server, and what the registry knows of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Server {
    /// The server.json.
    pub server: Value,
    /// What the registry knows.
    #[serde(rename = "_meta", default)]
    pub meta: Meta,
}

/// What a registry knows of a version of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ServerMeta")]
pub struct Meta {
    /// What every registry knows.
    #[serde(
        rename = "io.modelcontextprotocol.registry/official",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub official: Option<Official>,
    /// What others add.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

impl Meta {
    /// What stands here of ours.
    pub const OURS: &'static str = "haft.registry/package";
    /// Among that: whether the version was taken back for security.
    pub const SECURITY: &'static str = "yankSecurity";
}

/// What every registry knows of a version of a server. Moments are in the form of RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ServerStatus")]
pub struct Official {
    /// `active`, `deprecated` or `deleted`.
    pub status: String,
    /// When that became so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_changed_at: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<String>,
    /// When anything of it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Whether it is the version that is meant when none is named.
    #[serde(default)]
    pub is_latest: bool,
}

impl Official {
    /// The status of a version that is offered.
    pub const ACTIVE: &'static str = "active";
    /// The status of a version that was taken back.
    pub const DELETED: &'static str = "deleted";
    /// The longest reason, in characters.
    pub const MESSAGE: usize = 500;
}

/// An answer of that API that is no success: as its description has it, and as its first server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// What went wrong.
    pub error: String,
    /// The status in words.
    pub title: String,
    /// The status.
    pub status: u16,
    /// What went wrong.
    pub detail: String,
    /// What exactly, where a parameter is not what it should be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemDetail>,
}

/// What is wrong with a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemDetail {
    /// What is expected.
    pub message: String,
    /// Which parameter.
    pub location: String,
    /// What was given.
    pub value: String,
}

/// A page as it comes from another registry: what is wrong with one entry is no fault of the others.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Page {
    /// What is listed.
    pub servers: Vec<Value>,
    /// Where the list goes on.
    #[serde(default)]
    pub metadata: Option<Metadata>,
}

impl Checked for Page {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Checked for ServerList {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_what_others_add_and_leaves_out_what_is_not_there() {
        let text = r#"{"servers":[{"server":{"name":"a/b"},"_meta":{"io.modelcontextprotocol.registry/official":{"status":"active","isLatest":true},"x.y/z":1}}],"metadata":{"count":1}}"#;
        let list: ServerList = crate::read(text.as_bytes()).unwrap();
        assert_eq!(list.servers[0].meta.official.as_ref().unwrap().status, Official::ACTIVE);
        assert_eq!(serde_json::to_string(&list).unwrap(), text);
        let bare: ServerList = crate::read(br#"{"servers":[{"server":{}}]}"#).unwrap();
        assert_eq!(bare.metadata, Metadata::default());
        assert!(crate::read::<ServerList>(br#"{"servers":{}}"#).is_err());
    }
}
