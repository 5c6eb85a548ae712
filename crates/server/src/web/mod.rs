//! The registry over HTTP.
//!
//! | module | what it is |
//! |---|---|
//! | [`router`](fn@router) | every route |
//! | `refused` | the answer that is no success |
//! | `text` | paths and parameters, decoded strictly |
//! | `asked` | which tool, which version, which page |
//! | `find` | search, listing, tags, providers |
//! | `tool` | describe, versions, bundle, download |
//! | `change` | publish, yank |
//! | `review` | what waits for a reviewer, and who owns a tool |
//! | `admin` | tokens, publishers, identities |
//! | `door` | who is let in, and how often |
//! | `caller`, `address` | who asks, and from where |
//! | `answer` | headers of what is sent |
//! | [`serve`](fn@serve), `guarded` | connections, and how long they are waited for |

mod address;
mod admin;
mod answer;
mod asked;
mod caller;
mod change;
mod door;
mod find;
mod guarded;
mod range;
mod refused;
mod review;
mod router;
mod serve;
mod text;
mod tool;

pub use router::router;
pub use serve::{Patience, serve, serve_with};
