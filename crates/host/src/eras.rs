//! The eras of MCP servers, remembered from one run to the next.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use ledger::state::pins::PinKind;
use sha2::{Digest, Sha256};

use crate::records::{Records, now};
use crate::run::mcp::era::{Era, Eras};

/// Eras that a home remembers from one run to the next. What cannot be read is asked for again, and what
/// cannot be written costs no call.
#[derive(Debug)]
pub struct InHome(Arc<Records>);

impl InHome {
    /// The eras of a home.
    pub fn new(records: Arc<Records>) -> Self {
        Self(records)
    }
}

impl Eras for InHome {
    fn known<'e>(&'e self, server: &'e str) -> BoxFuture<'e, Option<Era>> {
        async move {
            let pin = self.0.state.pinned(PinKind::Era, &subject(server)).await;
            pin.ok().flatten().and_then(|pin| Era::named(&pin.value))
        }
        .boxed()
    }

    fn remember<'e>(&'e self, server: &'e str, era: Option<Era>) -> BoxFuture<'e, ()> {
        async move {
            let (state, subject) = (&self.0.state, subject(server));
            match era {
                Some(_) if self.known(server).await == era => {}
                Some(era) => {
                    let _ = state.pin(PinKind::Era, &subject, era.name(), now()).await;
                }
                None => {
                    let _ = state.unpin(PinKind::Era, &subject).await;
                }
            }
        }
        .boxed()
    }
}

/// What a server is pinned under: names of servers are long, and a digest has one length.
fn subject(server: &str) -> String {
    Sha256::digest(server.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
