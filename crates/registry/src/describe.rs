//! What is said of one version of a tool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::Provenance;
use crate::read::{Checked, Fault};
use crate::tested::Tests;

/// What is said of one version. It never changes once it is published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Describe {
    /// The id, unique in the registry.
    pub id: String,
    /// The name people type.
    pub name: String,
    /// The semantic version.
    pub version: String,
    /// One line on what it does.
    pub summary: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Who provides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What runs it, and where that is in the bundle.
    pub entry: EntryPoint,
    /// What goes in and comes out, where one thing can be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schemas>,
    /// Whether each call needs the owner's word; absent when the author does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<bool>,
    /// Names of the secrets it needs.
    #[serde(default)]
    pub required_secrets: Vec<String>,
    /// Whether it spends money; absent when the author does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_payment: Option<bool>,
    /// SHA-256 of the package file, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// SHA-256 of the list of its files, in hexadecimal: the same whatever they travel in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_sha256: Option<String>,
    /// Bytes of the package file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The dialect its manifest is written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// What kind of capability it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// Its licence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// What its signatures came to when it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// Where it was built, when that was proved to the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// How its tests went, and who says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<Tests>,
}

/// What runs a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryPoint {
    /// What runs it; `node` for tools in the manner of Jumith.
    pub runtime: String,
    /// The path of its module in the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// The name of the export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
}

impl EntryPoint {
    /// The one runtime that Jumith clients know.
    pub const NODE: &'static str = "node";

    /// Whether a Jumith client can run it.
    pub fn is_node(&self) -> bool {
        self.runtime == Self::NODE && self.main.is_some()
    }
}

/// What goes in and comes out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schemas {
    /// JSON Schema of its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// JSON Schema of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// What the signatures of a package come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// `valid`, `partial` or `unsigned`.
    pub state: String,
    /// The keys that have signed every file.
    #[serde(default)]
    pub keys: Vec<String>,
}

impl Checked for Describe {
    fn check(&self) -> Result<(), Fault> {
        for (field, text) in [("id", &self.id), ("name", &self.name), ("summary", &self.summary)] {
            if text.trim().is_empty() {
                return Err(Fault::Empty(field));
            }
        }
        if semver::Version::parse(&self.version).is_err() {
            return Err(Fault::Version(self.version.clone()));
        }
        for (field, digest) in [("sha256", &self.sha256), ("filesSha256", &self.files_sha256)] {
            if digest.as_deref().is_some_and(|text| package::digest::Digest::parse(text).is_none())
            {
                return Err(Fault::Digest(field));
            }
        }
        Ok(())
    }
}
