//! Results of a search, the listing, tags and providers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::describe::Describe;
use crate::read::{Checked, Fault};

/// One tool that was found: its highest version, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The id, unique in the registry.
    pub id: String,
    /// The name people type.
    pub name: String,
    /// The highest version.
    pub version: String,
    /// One line on what it does.
    pub summary: String,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Who provides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Whether each call needs the owner's word; absent when the author does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<bool>,
    /// Names of the secrets it needs.
    #[serde(default)]
    pub required_secrets: Vec<String>,
    /// Whether it spends money; absent when the author does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_payment: Option<bool>,
}

impl From<&Describe> for Found {
    fn from(describe: &Describe) -> Self {
        Self {
            id: describe.id.clone(),
            name: describe.name.clone(),
            version: describe.version.clone(),
            summary: describe.summary.clone(),
            tags: describe.tags.clone(),
            provider: describe.provider.clone(),
            requires_approval: describe.requires_approval,
            required_secrets: describe.required_secrets.clone(),
            uses_payment: describe.uses_payment,
        }
    }
}

/// Some of the tools that were found, or of all there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Page {
    /// The tools, best first; in the listing by id.
    pub results: Vec<Found>,
    /// How many there are on all pages.
    pub total: u64,
}

impl Checked for Page {
    fn check(&self) -> Result<(), Fault> {
        for found in &self.results {
            for (field, text) in [("id", &found.id), ("name", &found.name)] {
                if text.trim().is_empty() {
                    return Err(Fault::Empty(field));
                }
            }
            if semver::Version::parse(&found.version).is_err() {
                return Err(Fault::Version(found.version.clone()));
            }
        }
        Ok(())
    }
}

/// A word, and how many tools have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// The word.
    pub name: String,
    /// How many tools.
    pub count: u64,
}

/// All tags of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tags {
    /// Most frequent first, then by name.
    pub tags: Vec<Counted>,
}

/// Everybody who provides tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Providers {
    /// Most frequent first, then by name.
    pub providers: Vec<Counted>,
}

impl Checked for Tags {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Checked for Providers {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}
