//! A call that is brought to its end, whoever waits for it: the log says how it ended also where its client has left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use host::{CancellationToken, Made, Warmth};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::offer::Offer;
use crate::shelf::Stock;
use crate::watch::Calling;

/// What is told of a call that did not come to its end.
const BROKEN: &str = "the call broke off";

/// A call that is made by whoever waits for it. Where they leave, it is called off, and comes to its end without them.
pub(crate) struct Undertaking {
    call: Option<Work>,
    /// Whether anything of it was done.
    has_begun: bool,
    off: CancellationToken,
}

enum Work {
    Here(Pin<Box<dyn Future<Output = Made> + Send>>),
    Beside(JoinHandle<Made>),
}

impl Undertaking {
    /// A call of what is offered, which somebody watches to its end.
    pub(crate) fn new(
        stock: &Arc<Stock>,
        offer: &Arc<Offer>,
        order: host::Call,
        mut calling: Option<Calling>,
    ) -> Self {
        let (stock, offer, off) = (Arc::clone(stock), Arc::clone(offer), order.called_off.clone());
        let call = Box::pin(async move {
            let made = stock.host.call(&offer.tool, &order, Warmth::Warm).await;
            if let Some(calling) = &mut calling {
                calling.ended(made.failure());
            }
            made
        });
        Self { call: Some(Work::Here(call)), has_begun: false, off }
    }

    /// Has it go on while nobody waits for it.
    pub(crate) fn go_on_beside(&mut self) {
        self.call = match self.call.take() {
            Some(Work::Here(call)) => Some(Work::Beside(tokio::spawn(call))),
            other => other,
        };
    }
}

/// What comes of it, or that it broke off.
impl Future for Undertaking {
    type Output = Result<Made, &'static str>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.has_begun = true;
        let made = match self.call.as_mut().expect("nobody waits for what is over") {
            Work::Here(call) => {
                let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)));
                let Ok(polled) = polled else {
                    self.call = None;
                    return Poll::Ready(Err(BROKEN));
                };
                Ok(ready!(polled))
            }
            Work::Beside(call) => ready!(Pin::new(call).poll(context)).map_err(|_| BROKEN),
        };
        self.call = None;
        Poll::Ready(made)
    }
}

impl Drop for Undertaking {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        self.off.cancel();
        if let (Work::Here(call), true, Ok(runtime)) = (call, self.has_begun, Handle::try_current())
        {
            runtime.spawn(call);
        }
    }
}

impl std::fmt::Debug for Undertaking {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Undertaking").field("has_begun", &self.has_begun).finish_non_exhaustive()
    }
}
