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
//! | `caller` | who asks |
//! | `answer` | headers of what is sent |
//! | `watch` | every request is counted and told of |
//! | `openapi` | what all of it looks like, for programs |
//! | `serve` | connections |

mod answer;
mod asked;
mod caller;
mod change;
mod find;
mod openapi;
mod range;
mod refused;
mod router;
mod serve;
mod text;
mod tool;
mod watch;

pub use router::router;
pub use serve::{FAREWELL, serve};
pub use watch::{Told, Trace};
