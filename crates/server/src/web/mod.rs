//! The registry over HTTP.
//!
//! | module | what it is |
//! |---|---|
//! | [`router`](fn@router), [`watching`] | every route; those of the operator, at an address of its own |
//! | `refused` | the answer that is no success |
//! | `text` | paths and parameters, decoded strictly |
//! | `asked` | which tool, which version, which page |
//! | `find` | search, listing, tags, providers |
//! | `tool` | describe, versions, bundle, download |
//! | `servers`, `problem` | the MCP registry API, and its refusals |
//! | `listings` | the well-known index, the catalog of capabilities |
//! | `base` | the address of the registry itself |
//! | `change` | publish, yank |
//! | `review` | what waits for a reviewer, and who owns a tool |
//! | `admin` | tokens, publishers, identities |
//! | `receive` | what every request goes through |
//! | `door` | who is let in, and how often |
//! | `caller`, `address` | who asks, and from where |
//! | `pages` | the same for people |
//! | `answer` | headers of what is sent |
//! | `watch` | every request is counted and told of |
//! | `openapi` | what all of it looks like, for programs |
//! | [`serve`](fn@serve), `guarded`, `progress` | connections, and how long they are waited for |

mod address;
mod admin;
mod answer;
mod asked;
mod base;
mod caller;
mod change;
mod door;
mod find;
mod guarded;
mod listings;
mod openapi;
mod pages;
mod problem;
mod progress;
mod range;
mod receive;
mod refused;
mod review;
mod router;
mod serve;
mod servers;
mod text;
mod tool;
mod watch;

pub use router::{router, watching};
pub use serve::{FAREWELL, Patience, serve, serve_with};
pub use watch::Told;
