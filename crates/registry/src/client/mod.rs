//! The client: registries asked from somewhere else, and trusted as little as possible.
//!
//! | module | what it is |
//! |---|---|
//! | [`limits`] | how much is taken from a registry |
//! | [`address`] | where a registry is, as the owner typed it |
//! | [`list`] | the registries that the owner has named, kept in a file |
//! | [`token`] | what is shown to one registry and to no other |
//! | [`pace`] | when something is tried again |
//! | [`error`] | why there is no answer |
//! | [`cache`] | what was fetched before, on the disk |
//! | [`fetch`] | one answer: asked for, asked again, kept, or taken from what is kept |
//! | `bounds` | whether an answer is about what was asked |
//! | [`remote`] | one registry |
//! | [`office`] | what reviewers, owners and administrators ask of it |
//! | `download` | a package file, in as many parts as it takes |
//! | `form` | a package and the report of its tests, as one body |
//! | [`many`] | several registries as one |
//!
//! Every connection goes through the gate of `egress`: nobody is dialled but whom the owner named. No redirect is
//! followed. What arrives is bounded, read strictly, and held against what was asked.

pub mod address;
mod bounds;
pub mod cache;
mod download;
pub mod error;
pub mod fetch;
mod form;
pub mod limits;
pub mod list;
pub mod many;
pub mod office;
pub mod pace;
pub mod remote;
pub mod token;

pub use address::Address;
pub use bounds::is_bounded;
pub use cache::Cache;
pub use error::{FetchError, Kind};
pub use fetch::{Fetcher, Reach, Settings};
pub use limits::Limits;
pub use list::{Listed, Registries};
pub use many::{Client, FindError, FoundIn, Results, Source};
pub use office::{By, Errand};
pub use remote::{Described, Fetched, Question, Remote};
pub use token::Token;
