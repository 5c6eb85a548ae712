//! The versions of a tool; what publishing and yanking say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Provenance;
use crate::channel::State;
use crate::read::{Checked, Fault, check_reason};

/// The versions of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Versions {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The version that is described; absent when all are yanked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<String>,
    /// Highest first.
    pub versions: Vec<Version>,
}

/// One version in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The version.
    pub version: String,
    /// SHA-256 of the package file, in hexadecimal.
    pub sha256: String,
    /// Bytes of the package file.
    pub size: u64,
    /// When it was published.
    #[serde(with = "crate::moment")]
    #[schemars(schema_with = "crate::moment::schema")]
    pub published_at: u64,
    /// Whether it was taken back.
    #[serde(default)]
    pub yanked: bool,
    /// Why it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yank_reason: Option<String>,
    /// When it was.
    #[serde(default, with = "crate::moment::maybe", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::moment::maybe::schema")]
    pub yanked_at: Option<u64>,
    /// The id of the token it was taken back with; those are told who may publish or review it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked_by: Option<String>,
    /// Whether it endangers those who have it.
    #[serde(default, skip_serializing_if = "is_not")]
    pub yank_security: bool,
    /// What its signatures came to when it was published.
    pub signature: String,
    /// Where it stands; others than ours do not say.
    #[serde(default)]
    pub channel: State,
    /// What the reviewer said of it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_reason: Option<String>,
    /// Where it was built, when that was proved to the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

impl Checked for Versions {
    fn check(&self) -> Result<(), Fault> {
        for version in &self.versions {
            if semver::Version::parse(&version.version).is_err() {
                return Err(Fault::Version(version.version.clone()));
            }
            if package::digest::Digest::parse(&version.sha256).is_none() {
                return Err(Fault::Digest("sha256"));
            }
        }
        Ok(())
    }
}

/// What publishing answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// SHA-256 of the package file, in hexadecimal.
    pub sha256: String,
    /// Whether it is new.
    pub outcome: Outcome,
    /// Where it stands: `quarantine` until a reviewer has looked at it.
    #[serde(default)]
    pub channel: State,
    /// What is worth mending, though it is no reason to refuse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Checked for Published {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// What became of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The version is new.
    Published,
    /// The same bytes were there already.
    Unchanged,
}

/// Why a version is taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Yank {
    /// The reason, which everybody is shown.
    #[serde(default)]
    pub reason: String,
    /// Whether it endangers those who have it: then they should not wait before they leave it.
    #[serde(default, skip_serializing_if = "is_not")]
    pub security: bool,
}

impl Yank {
    /// What stands in the header for a reason that nobody gave.
    pub const NO_REASON: &str = "yes";
    /// What stands in the other header where it is for security.
    pub const SECURITY: &str = "security";

    /// A reason that is none of security.
    pub fn because(reason: &str) -> Self {
        Self { reason: reason.to_owned(), security: false }
    }
}

impl Checked for Yank {
    fn check(&self) -> Result<(), Fault> {
        check_reason(&self.reason)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_not(mark: &bool) -> bool {
    !mark
}
