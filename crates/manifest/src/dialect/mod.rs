//! The dialects: formats of the outside, each a door into the one model.

pub mod agentcli;
pub mod capability;
pub mod install_manifest;
pub mod jumith;
pub mod mcpb;
pub mod mcpkg;
pub mod server_json;
pub mod skill;

pub(crate) mod lowering;
mod recognise;
pub(crate) mod rules;

pub(crate) use recognise::LOOKED_FOR;
pub use recognise::{Form, recognise, resembles};

use serde::Serialize;

use crate::json::Node;
use crate::shape::{Shape, json_schema};

/// A format of the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// install-manifest.
    InstallManifest,
    /// agentcli tools.json.
    Agentcli,
    /// mcpkg.
    Mcpkg,
    /// capability manifest.
    Capability,
    /// Jumith registry API.
    Jumith,
    /// MCPB, the manifest of an MCP bundle; read, never written.
    Mcpb,
    /// server.json of the MCP registries; read, never written.
    ServerJson,
    /// SKILL.md of agent skills; read, never written.
    Skill,
}

impl Dialect {
    /// Every dialect that is read.
    pub const ALL: [Dialect; 8] = [
        Dialect::InstallManifest,
        Dialect::Agentcli,
        Dialect::Mcpkg,
        Dialect::Capability,
        Dialect::Jumith,
        Dialect::Mcpb,
        Dialect::ServerJson,
        Dialect::Skill,
    ];

    /// Those that are written too.
    pub const TARGETS: [Dialect; 5] = [
        Dialect::InstallManifest,
        Dialect::Agentcli,
        Dialect::Mcpkg,
        Dialect::Capability,
        Dialect::Jumith,
    ];

    /// Whether it is written too.
    pub fn is_target(self) -> bool {
        Self::TARGETS.contains(&self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::InstallManifest => "install-manifest",
            Dialect::Agentcli => "agentcli",
            Dialect::Mcpkg => "mcpkg",
            Dialect::Capability => "capability",
            Dialect::Jumith => "jumith",
            Dialect::Mcpb => "mcpb",
            Dialect::ServerJson => "server-json",
            Dialect::Skill => "skill",
        }
    }

    /// The dialect of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The name its manifest has by custom.
    pub fn file_name(self) -> &'static str {
        match self {
            Dialect::Agentcli => "tools.json",
            Dialect::Jumith => "tool.json",
            Dialect::ServerJson => "server.json",
            Dialect::Skill => skill::FILE_NAME,
            Dialect::InstallManifest | Dialect::Mcpkg | Dialect::Capability | Dialect::Mcpb => {
                "manifest.json"
            }
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// A published schema.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// What `haft schema` knows it by.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The shape it is written from.
    pub shape: fn() -> &'static Shape,
}

impl Published {
    /// The JSON Schema.
    pub fn json_schema(&self) -> serde_json::Value {
        let id = format!("urn:haft:schema:{}", self.name.replace('@', ":"));
        json_schema((self.shape)(), &id, self.title)
    }
}

/// Every schema we publish.
pub const PUBLISHED: [Published; 19] = {
    use install_manifest::Version as Install;
    use mcpb::Version as Mcpb;
    use mcpkg::Version as Mcpkg;
    const fn entry(
        name: &'static str,
        title: &'static str,
        shape: fn() -> &'static Shape,
    ) -> Published {
        Published { name, title, shape }
    }
    [
        entry("install-manifest@0.1", "install-manifest 0.1", || {
            install_manifest::shape(Install::V0_1)
        }),
        entry("install-manifest@0.2", "install-manifest 0.2", || {
            install_manifest::shape(Install::V0_2)
        }),
        entry("install-manifest@0.3", "install-manifest 0.3", || {
            install_manifest::shape(Install::V0_3)
        }),
        entry("install-manifest@0.3.1", "install-manifest 0.3.1", || {
            install_manifest::shape(Install::V0_3_1)
        }),
        entry("install-manifest@0.4", "install-manifest 0.4", || {
            install_manifest::shape(Install::V0_4)
        }),
        entry(
            "install-manifest-index@1",
            "well-known index of install-manifests, version 1",
            crate::index::shape,
        ),
        entry("agentcli", "agentcli tools.json", agentcli::shape),
        entry("mcpkg@0.1", "mcpkg manifest 0.1", || mcpkg::shape(Mcpkg::V0_1)),
        entry("mcpkg@0.2", "mcpkg manifest 0.2", || mcpkg::shape(Mcpkg::V0_2)),
        entry("mcpkg-test", "mcpkg test", mcpkg::test_shape),
        entry("capability@0.1", "capability manifest 0.1", capability::shape),
        entry("capability-catalog@0.1", "capability catalog 0.1", capability::catalog_shape),
        entry("jumith", "Jumith describe document", jumith::shape),
        entry("jumith-bundle", "Jumith bundle", jumith::bundle_shape),
        entry("mcpb@0.1", "MCPB manifest 0.1", || mcpb::shape(Mcpb::V0_1)),
        entry("mcpb@0.2", "MCPB manifest 0.2", || mcpb::shape(Mcpb::V0_2)),
        entry("mcpb@0.3", "MCPB manifest 0.3", || mcpb::shape(Mcpb::V0_3)),
        entry("mcpb@0.4", "MCPB manifest 0.4", || mcpb::shape(Mcpb::V0_4)),
        entry("server-json@2025-12-11", "server.json 2025-12-11", server_json::shape),
    ]
};

/// The schema of the companion file.
pub const COMPANION: Published =
    Published { name: "haft@1", title: "haft.json companion", shape: crate::companion::shape };

/// The version a document of a dialect is written in, by name.
pub(crate) fn version_of(
    dialect: Dialect,
    form: Form,
    document: &Node<'_>,
) -> Option<&'static str> {
    match (dialect, form) {
        (Dialect::InstallManifest, Form::Index) => Some("1"),
        (Dialect::InstallManifest, _) => document
            .text_at("manifest_version")
            .and_then(install_manifest::Version::named)
            .map(install_manifest::Version::name),
        (Dialect::Mcpkg, Form::Manifest) => Some(mcpkg::Version::of(document).name()),
        (Dialect::Capability, _) => Some("0.1"),
        (Dialect::Mcpb, _) => mcpb::Version::of(document).map(mcpb::Version::name),
        (Dialect::ServerJson, _) => Some(server_json::VERSION),
        (Dialect::Agentcli | Dialect::Jumith | Dialect::Mcpkg | Dialect::Skill, _) => None,
    }
}
