//! What was acquired: files that are known by their digests.

use package::digest::Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::requirement::{Manager, folded};

/// How something is acquired, as manifests call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A Python package.
    Pip,
    /// A Node package.
    Npm,
    /// The files of a commit.
    Git,
    /// One file.
    Url,
    /// A container image.
    Container,
}

/// One file that was acquired, and where it is to be had again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artefact {
    /// How.
    pub method: Method,
    /// What it is called there.
    pub name: String,
    /// Its version; of a repository the commit, of one file nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Where it came from, without anything that is nobody else's business.
    pub url: String,
    /// What it is.
    #[serde(serialize_with = "write_digest", deserialize_with = "read_digest")]
    pub sha256: Digest,
    /// The folder of a Node package, since one can be there in several versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Artefact {
    /// As it is told.
    pub(super) fn shown(&self) -> String {
        shown(&self.name, &self.version)
    }

    /// Whether it is the package of that name.
    pub(super) fn is_called(&self, manager: Manager, name: &str) -> bool {
        let method = match manager {
            Manager::Pip => Method::Pip,
            Manager::Npm => Method::Npm,
        };
        self.method == method && folded(manager, &self.name) == folded(manager, name)
    }
}

/// A name with a version, as they are told.
pub(super) fn shown(name: &str, version: &str) -> String {
    if version.is_empty() { format!("`{name}`") } else { format!("`{name}` {version}") }
}

fn write_digest<S: Serializer>(digest: &Digest, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(digest)
}

fn read_digest<'d, D: Deserializer<'d>>(from: D) -> Result<Digest, D::Error> {
    let text = String::deserialize(from)?;
    Digest::parse(&text).ok_or_else(|| de::Error::custom("64 hexadecimal digits are expected"))
}
