//! What is installed, exactly: one entry of a lockfile.

use manifest::dialect::Dialect;
use manifest::model::Package;
use package::digest::Digest;
use serde::{Deserialize, Serialize};

use crate::acquire::Artefact;
use crate::key::{Key, NoKey};

/// A package at a version, and the digests of everything that it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinned {
    /// Its id, with its dialect.
    pub id: String,
    /// Its version.
    pub version: String,
    /// What kind of capability it is.
    pub kind: String,
    /// What can be called, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// Where it came from.
    pub source: Source,
    /// What stands for all its files.
    pub package: Sha256,
    /// The manifest, as bytes.
    pub manifest: Sha256,
    /// The file that it came in, where it came in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Sha256>,
    /// Everything that an MCP server offered when it was agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Sha256>,
    /// What was acquired for it, each file by its digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artefacts: Vec<Artefact>,
}

/// Where a package came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// A path that the owner typed.
    Path(String),
    /// A registry, by its address.
    Registry(String),
    /// An address of its own.
    Url(String),
    /// A path that a catalog of this machine lists.
    Listed(String),
    /// Settings that it was made of, at a path.
    Imported(String),
}

/// A digest, as it is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sha256(pub Digest);

impl Serialize for Sha256 {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("sha256:{}", self.0))
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        let digest = text.strip_prefix("sha256:").and_then(Digest::parse);
        digest
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("a digest is `sha256:` and 64 digits"))
    }
}

impl Pinned {
    /// The dialect, and the id without it.
    pub fn parted(&self) -> Option<(Dialect, &str)> {
        let (dialect, id) = self.id.split_once(':')?;
        Some((Dialect::named(dialect)?, id))
    }

    /// What it is called on the disk.
    pub fn key(&self) -> Result<Key, NoKey> {
        match self.parted() {
            Some((dialect, id)) => Key::new(dialect, id),
            None => Err(NoKey::without_dialect(&self.id)),
        }
    }

    /// The folder of this version, in that of the package.
    pub fn folder(&self) -> String {
        folder(&self.version, self.package.0)
    }

    /// Whether a package is called this: by its id, alone or with its namespace or dialect.
    pub fn is_called(&self, name: &str) -> bool {
        self.id == name
            || self.parted().is_some_and(|(_, id)| {
                id == name || id.split_once('/').is_some_and(|(_, bare)| bare == name)
            })
    }
}

/// The folder of a version: two that differ in a byte have two.
pub fn folder(version: &str, package: Digest) -> String {
    format!("{version}-{}", &package.to_string()[..12])
}

/// The names of what can be called.
pub fn actions(package: &Package) -> Vec<String> {
    package.actions.iter().map(|action| action.name.clone()).collect()
}
