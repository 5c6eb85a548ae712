//! The JSON Schemas inside a manifest, and the values they judge.
//!
//! They are strangers' data: nothing they refer to is fetched, their size is
//! capped, and no value is held against one that could keep us busy for ever.

mod check;
mod cost;
mod instance;
mod keywords;
mod pattern;
mod quick;
mod refs;

pub use check::check;
pub(crate) use check::{Fault, Surroundings, check_part};
pub use instance::{Effort, Mismatch, TooCostly, Unknowns, effort, judge};
pub(crate) use keywords::{Kind, Words};
pub use pattern::{Budget, EcmaRegex, RegexError, Runaway, check_regex, matches_once};
pub use refs::follow;
pub(crate) use refs::{Home, percent_decoded};

/// The largest schema that is looked at, in bytes.
pub const MAX_BYTES: usize = 256 * 1024;

/// The most subschemas one schema may have.
pub const MAX_SUBSCHEMAS: usize = 2_000;
