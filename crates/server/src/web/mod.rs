//! The registry over HTTP.
//!
//! | module | what it is |
//! |---|---|
//! | `router` | every route |
//! | `refused` | the answer that is no success |
//! | `text` | paths and parameters, decoded strictly |
//! | `asked` | which tool, which version, which page |
//! | `find` | search, listing, tags, providers |
//! | `tool` | describe, versions, bundle, download |
//! | `change` | publish, yank |
//! | `pages` | the same for people |
//! | `caller` | who asks |
//! | `answer` | headers of what is sent |
//! | `serve` | connections |

mod answer;
mod asked;
mod caller;
mod change;
mod find;
mod pages;
mod range;
mod refused;
mod router;
mod serve;
mod text;
mod tool;

pub use router::router;
pub use serve::serve;
