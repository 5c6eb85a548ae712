//! The registry for people: pages that are made here, whole, and need no script.
//!
//! | module | what it is |
//! |---|---|
//! | `inert` | text from outside, escaped by every template |
//! | `link` | addresses of our pages, and of others that may be linked to |
//! | `date` | moments and numbers as people write them |
//! | `markdown` | a README as HTML that does nothing |
//! | `schema` | a JSON Schema as a table |
//! | `sample` | an input to begin with |
//! | `words` | what a tool may do, in plain words |
//! | `how` | how it is put to use, client by client |
//! | `tested` | its tests, and what is reported of them |
//! | `inside` | what is inside a version, read from its file and kept |
//! | `assets` | style, script and icon |
//! | `frame` | what all pages have around them, their headers, and errors for people |
//! | `chosen` | what somebody looks for |
//! | `find` | home, results, suggestions |
//! | `namespace` | the page of a namespace: its tools, keys and builds |
//! | `tool` | the page of a tool and of each version |

mod assets;
mod chosen;
mod date;
mod find;
mod frame;
mod how;
pub(crate) mod inert;
mod inside;
mod link;
mod markdown;
mod namespace;
mod sample;
mod schema;
mod tested;
mod tool;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

pub(super) use frame::{for_people, is_browser, is_person};

use crate::service::Registry;

/// The pages of a registry, and what they keep.
#[derive(Debug)]
struct Pages {
    registry: Arc<Registry>,
    inside: Arc<inside::Cache>,
    counted: find::Counted,
}

/// Every page.
pub(super) fn routes(registry: &Arc<Registry>) -> Router<Arc<Registry>> {
    let pages = Pages {
        registry: Arc::clone(registry),
        inside: Arc::default(),
        counted: find::Counted::default(),
    };
    Router::new()
        .route("/", get(find::home))
        .route("/search", get(find::results))
        .route("/suggest", get(find::suggest))
        .route("/tools/{*rest}", get(tool::show))
        .route("/namespaces/{name}", get(namespace::show))
        .route("/assets/{name}", get(assets::get))
        .with_state(Arc::new(pages))
}
