//! What others' settings and documents say of tools, made into packages of ours.
//!
//! Bytes go in, drafts come out: a package that our own reader finds valid, the secrets that stood in the bytes and do
//! not stand in the package, and what is not carried. Nothing is read from the disk, and nothing is fetched or run.
//! The same files are edited so that everything else in them stays as it was.
//!
//! The modules form a ladder; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`jsonc`] | JSON with comments, made into JSON of the same length |
//! | [`variable`] | the `${…}` of clients' settings |
//! | [`config`] | the settings of a client |
//! | [`secret`] | whether a value of them is a secret |
//! | [`draft`] | a package made of them |
//! | [`openapi`] | a package made of the operations of a document |
//! | [`recognise`](mod@recognise) | what a file is, by its content |
//! | [`edit`] | entries of a client's file replaced and restored, added and taken out |

pub mod config;
pub mod draft;
pub mod edit;
pub mod jsonc;
pub mod openapi;
pub mod recognise;
pub mod secret;
pub mod variable;

pub use config::{Config, Entry, Found, Launch, Unreadable};
pub use draft::{Around, Draft, Files, Kind, Machine, of_entry, plain_name};
pub use recognise::{Recognised, recognise};
