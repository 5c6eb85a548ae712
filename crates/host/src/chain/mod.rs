//! Chains of tools, as far as nothing of them runs: what their steps call, and in what order.
//!
//! | module | what it is |
//! |---|---|
//! | [`link`](mod@link) | the tools behind the steps, found and bounded before anything runs |
//! | `cache` | answers of pure steps, kept by what they were made of |
//! | `order` | which step may begin when |
//! | `trace` | what links the records of one chain |

pub(crate) mod cache;
pub mod link;
pub(crate) mod order;
pub(crate) mod trace;

pub use link::{Linked, Target, link};
