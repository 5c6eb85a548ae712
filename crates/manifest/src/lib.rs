//! What a tool says about itself.
//!
//! Five dialects, the manifests of MCP bundles and registries, and agent skills are read into one model. The modules form a ladder; each uses
//! only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`json`] | text → a tree that knows its places |
//! | [`finding`] | what is wrong, where, and what would mend it |
//! | [`concept`] | what a field is about, whatever dialect writes it |
//! | [`shape`] | what a document may look like, as data: checker, schema and documentation |
//! | [`path`] | what a file in a package may be called |
//! | [`inert`] | text from outside that is nothing but text in a page |
//! | [`look`] | what a name looks like, and which names are taken for one another |
//! | [`schema`] | the JSON Schemas inside documents, and the values they judge |
//! | [`model`] | the one model |
//! | [`dialect`] | the doors into it |
//! | [`smoke`], [`kill_switch`] | how a package is tried, and how it is revoked |
//! | [`companion`], [`index`], [`meta`] | `haft.json`, the well-known index, who made a package |
//! | [`openapi`] | the `openapi.json` of a package, and where it contradicts the manifest |
//! | [`document`] | bytes → findings, or packages |
//! | [`convert`] | one dialect into another, with its losses |
//! | [`diff`] | two versions of a package → what changed, and how much it matters |
//! | [`folder`], [`skill`] | a manifest with the files around it, and those of a skill that can be called |
//! | [`export`] | packages → tool definitions for other systems |
//! | [`starter`] | new packages, ready to be written down |
//! | [`words`] | what a package may do, in plain words |
//!
//! Nothing here touches the disk, the network, the clock or the environment.

pub mod chain;
pub mod companion;
pub mod concept;
pub mod convert;
pub mod dialect;
pub mod diff;
pub mod document;
pub mod export;
pub mod finding;
pub mod folder;
pub mod image_name;
pub mod index;
pub mod inert;
pub mod json;
pub mod kill_switch;
pub mod look;
pub mod meta;
pub mod model;
pub mod openapi;
pub mod path;
pub mod schema;
pub mod shape;
pub mod skill;
pub mod smoke;
pub mod starter;
pub mod words;
