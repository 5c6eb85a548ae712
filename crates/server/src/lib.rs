//! The face for publishers: the registry's API, publishing, and the stores behind it.
//!
//! It takes uploads from strangers and has no way to run them.
//!
//! | module | what it is |
//! |---|---|
//! | [`trouble`] | what is wrong with a place that something is kept in |
//! | [`token`] | what somebody shows to be let in |
//! | [`blobs`] | the files of packages, by their digest |
//! | `stored` | the manifest of a version, read as it is kept |
//! | [`store`] | what is known: packages, versions, tokens |
//! | [`doors`] | what other worlds are told of a version |
//! | [`hub`] | a tool as the hub of the Jumith world takes it |
//! | [`upload`] | from bytes to a version that can be published |
//! | [`catalog`] | what can be found, in memory |
//! | [`settings`] | what the operator sets |
//! | [`rate`] | how often somebody has asked |
//! | [`identity`] | identities that an issuer has sworn |
//! | `memory` | memory that is given out by the piece |
//! | `kept` | what was answered before, in memory |
//! | `ready` | whether the stores answer, asked seldom |
//! | [`service`] | a registry as one thing |
//! | [`access`] | tokens, owners, reviews and publishers of a registry |
//! | [`metrics`] | what is counted while it runs |
//! | [`care`] | check, backup, restore, and what no version has |
//! | [`web`] | the same over HTTP |

pub mod access;
pub mod blobs;
pub mod care;
pub mod catalog;
pub mod doors;
pub mod hub;
pub mod identity;
mod kept;
mod memory;
pub mod metrics;
pub mod rate;
mod ready;
pub mod service;
pub mod settings;
pub mod store;
mod stored;
pub mod token;
pub mod trouble;
pub mod upload;
pub mod web;

pub use blobs::Blobs;
pub use service::{Registry, Settings};
pub use store::{Store, StoreError};
pub use trouble::Trouble;
