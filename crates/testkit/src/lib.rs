//! Fixtures and generators for the tests of the other crates.
//!
//! | module | what it is |
//! |---|---|
//! | [`files`] | the repository's fixtures and examples, and a folder on the disk |
//! | [`docs`] | tables in `docs/` that are written from the code |
//! | [`draws`] | numbers that decide what is made, and how often |
//! | [`words`] | texts that are easily read wrongly |
//! | [`documents`] | documents made from a shape |
//! | [`mutations`] | the ways a document goes wrong |
//! | [`schemas`] | JSON Schemas, patterns, and values to hold against them |
//! | [`bytes`] | JSON as text, and text that is damaged |
//! | [`archives`] | zip archives, clean and hostile, and a writer that writes any field wrongly |
//! | [`postgres`], [`bucket`], [`issuer`], [`collector`] | servers of their own for a test, where they are installed |
//! | [`desktop`] | a desktop session of its own for a test |
//! | [`gate`] | a way to a server that can be closed |
//! | [`fuzz`] | what must hold for any bytes at all |
//!
//! Only tests use this crate.

pub mod archives;
#[cfg(unix)]
pub mod bucket;
pub mod bytes;
#[cfg(unix)]
pub mod collector;
#[cfg(unix)]
pub mod desktop;
pub mod docs;
pub mod documents;
pub mod draws;
pub mod files;
pub mod fuzz;
pub mod gate;
pub mod hosts;
#[cfg(unix)]
pub mod issuer;
pub mod mutations;
#[cfg(unix)]
mod peer;
pub mod ports;
#[cfg(unix)]
pub mod postgres;
pub mod schemas;
pub mod words;

pub use files::{Fixture, examples, fixtures, repo};
