//! The right tool among many.
//!
//! An [`Index`] holds documents ([`Entry`]: a key, texts by [`Field`], values by [`Facet`], a rank) and answers
//! a [`Query`] with a [`Page`] of hits, best first: by BM25F over the fields, filtered before they are ranked,
//! with words that are misspelt or not finished. It is searched while it changes, and what was put is
//! found at once. The same query on the same documents always gives the same order and the same total,
//! whatever happened to the index before.
//!
//! - [`entry`], [`package`](mod@package): a document; which part of a package is which part of it
//! - [`field`], [`facet`]: where its words stand and what they count; what it is filtered by
//! - [`count`](mod@count): how many of what is found have each value of a facet
//! - [`query`]: questions and answers; [`explain`](mod@explain): why a hit has its score
//! - [`index`], [`snapshot`]: what changes, and what stays as it is
//! - [`bytes`]: the index as bytes; [`memory`]: how much it takes; [`limits`]: how much is taken
//!
//! Nothing here touches the disk, the network, the clock or the environment, and there are no threads.

mod best;
mod bits;
mod builder;
pub mod bytes;
mod contenders;
pub mod count;
mod dictionary;
mod documents;
pub mod entry;
pub mod explain;
pub mod facet;
pub mod field;
mod find;
mod hits;
pub mod index;
mod labels;
pub mod limits;
pub mod memory;
mod merge;
pub mod package;
mod part;
mod plan;
mod postings;
pub mod query;
mod ranking;
mod rows;
mod scratch;
mod segment;
pub mod snapshot;
mod spelling;
mod stem;
mod texts;
mod words;

pub use bytes::ReadError;
pub use count::FacetCount;
pub use entry::{Entry, EntryError};
pub use explain::{ExplainedField, ExplainedWord, Explanation};
pub use facet::Facet;
pub use field::Field;
pub use index::{Change, Full, Index};
pub use memory::Memory;
pub use plan::Match;
pub use query::{Hit, LastWord, Page, Query, QueryError, Spelling};
pub use snapshot::Snapshot;
