//! The owner's console: pages that are made here, whole, and need no script.
//!
//! | module | what it is |
//! |---|---|
//! | `inert` | text from outside, escaped by every template |
//! | `assets` | style, script and icon |
//! | `fields` | what a browser sends along |
//! | `frame` | what all pages have around them, their headers, and refusals |
//! | `visit` | somebody who looks at a page, or sends a form; who is let in |
//! | `signing` | signing in and out |
//! | `link` | addresses of our pages, and words as they are typed |
//! | `moment` | moments, times and numbers as people write them |
//! | `log`, `timeline` | the audit log of this home, or of all replicas; as it is shown |
//! | `question` | a call that waits for its owner, as it is shown |
//! | `plot` | calls and latencies over time, drawn |
//! | `graph` | the steps of a chain, drawn |
//! | `card` | the consent card, as it is shown |
//! | `today`, `tools`, `tool`, `approvals`, `calls`, `installing`, `revoking`, `secrets`, `rules`, `machine` | the pages |
//! | `events` | tells pages that something is new |

mod approvals;
mod assets;
mod calls;
mod card;
mod events;
mod fields;
mod frame;
mod graph;
pub(crate) mod inert;
mod installing;
mod link;
mod log;
mod machine;
mod moment;
mod plot;
mod question;
mod revoking;
mod rules;
mod secrets;
mod signing;
mod timeline;
mod today;
mod tool;
mod tools;
mod visit;

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use host::CancellationToken;
use host::records::now;
use ledger::state::approvals::Ticket;
use serde_json::Value;
use tokio::sync::Semaphore;

use self::log::Log;
use crate::gateway::Gateway;
use crate::steward::{By, Deed, Trouble};

/// How many pages are told at a time that something is new.
const MOST_STREAMS: usize = 64;

/// The console of a gateway.
#[derive(Debug)]
pub(crate) struct Console {
    gateway: Arc<Gateway>,
    streams: Arc<Semaphore>,
    closed: CancellationToken,
}

impl Console {
    pub(super) fn new(gateway: Arc<Gateway>) -> Arc<Self> {
        let streams = Arc::new(Semaphore::new(MOST_STREAMS));
        Arc::new(Self { gateway, streams, closed: CancellationToken::new() })
    }

    /// Ends what would stay open.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// The calls that wait for their owner; none where that cannot be read.
    async fn waiting(&self) -> Vec<Ticket> {
        let stock = self.gateway.stock().await;
        stock.host.records().state.waiting(now()).await.unwrap_or_default()
    }

    /// The audit log.
    async fn log(&self) -> Log {
        let stock = self.gateway.stock().await;
        if stock.host.records().state.is_shared() {
            Log::Shared(stock.host.clone())
        } else {
            Log::Home(stock.home.join("audit"))
        }
    }

    /// Has something done, beside everything else.
    async fn deed(&self, deed: Deed) -> Result<Value, Trouble> {
        let steward = Arc::clone(self.gateway.shelf.steward());
        let doing = tokio::task::spawn_blocking(move || steward.deed(&By::Console, &deed));
        doing.await.unwrap_or_else(|error| {
            Err(Trouble { message: format!("it broke off: {error}"), ..Trouble::default() })
        })
    }
}

/// What is told where there is no page.
pub(super) fn missing() -> Response {
    frame::missing("No page of the console is called that.")
}

/// Every page.
pub(super) fn routes<S: Clone + Send + Sync + 'static>(console: &Arc<Console>) -> Router<S> {
    Router::new()
        .route("/", get(today::show))
        .route("/tools", get(tools::show))
        .route("/tools/{id}", get(tool::show))
        .route("/tools/{id}/do", post(tool::change))
        .route("/tools/{id}/update", get(installing::newer).post(installing::update))
        .route("/tools/{id}/surface", get(installing::offered).post(installing::approve))
        .route("/tools/{id}/revoke", get(revoking::ask_one).post(revoking::one))
        .route("/revoke", get(revoking::ask_all).post(revoking::all))
        .route("/approvals", get(approvals::show))
        .route("/approvals/{ticket}", post(approvals::answer))
        .route("/wishes", post(approvals::decline))
        .route("/calls", get(calls::show))
        .route("/install", get(installing::find).post(installing::install))
        .route("/install/card", get(installing::look))
        .route("/secrets", get(secrets::show).post(secrets::change))
        .route("/policy", get(rules::show))
        .route("/machine", get(machine::show))
        .route("/console/events", get(events::listen))
        .route("/console/assets/{name}", get(assets::get))
        .route("/sign-in/{code}", get(signing::look))
        .route("/sign-in", post(signing::enter))
        .route("/sign-out", post(signing::leave))
        .with_state(Arc::clone(console))
}
