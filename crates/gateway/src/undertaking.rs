//! What is brought to its end, whoever waits for it: the log says how a call, or a request to a server that is none, ended also
//! where its client has left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use host::{CancellationToken, Made, Tool, Warmth};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::gateway::Gateway;
use crate::offer::Offer;
use crate::shelf::Stock;
use crate::steward::Steward;
use crate::watch::Calling;

/// What is told of one that did not come to its end.
const BROKEN: &str = "the call broke off";

/// A call, or something else, that is made by whoever waits for it. Where they leave, it is called off where it can be, and comes to
/// its end without them.
pub(crate) struct Undertaking<T: Send + 'static = Made> {
    work: Option<Work<T>>,
    /// Whether anything of it was done.
    has_begun: bool,
    /// Calls it off; nothing where nobody's leaving does.
    off: Option<CancellationToken>,
}

enum Work<T> {
    Here(Pin<Box<dyn Future<Output = T> + Send>>),
    Beside(JoinHandle<T>),
}

impl Undertaking {
    /// A call of what is offered, which is counted when it ends.
    pub(crate) fn new(
        gateway: &Gateway,
        stock: &Arc<Stock>,
        offer: &Arc<Offer>,
        mut order: host::Call,
        mut calling: Calling,
    ) -> Self {
        order.context = calling.context();
        let (stock, offer, off) = (Arc::clone(stock), Arc::clone(offer), order.called_off.clone());
        let steward = Arc::clone(gateway.shelf.steward());
        let call = async move {
            let mut made = stock.host.call(&offer.tool, &order, Warmth::Warm).await;
            calling.ended(made.reply.as_ref().err());
            report(&steward, &offer.tool, &mut made);
            made
        };
        Self::of(call, off)
    }
}

impl<T: Send + 'static> Undertaking<T> {
    /// Anything that comes to its end once it is called off so.
    pub(crate) fn of(
        work: impl Future<Output = T> + Send + 'static,
        off: CancellationToken,
    ) -> Self {
        let mut undertaking = Self::to_its_end(work);
        undertaking.off = Some(off);
        undertaking
    }

    /// Anything that is called off by nobody's leaving.
    pub(crate) fn to_its_end(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Some(Work::Here(Box::pin(work))), has_begun: false, off: None }
    }

    /// Has it go on while nobody waits for it.
    pub(crate) fn go_on_beside(&mut self) {
        self.work = match self.work.take() {
            Some(Work::Here(work)) => Some(Work::Beside(tokio::spawn(work))),
            other => other,
        };
    }
}

/// Has done what the policy wants done about tools that reached for what they were not given, beside the answer. It is part of the
/// call, so that no tool escapes it for whom nobody waits.
fn report(steward: &Arc<dyn Steward>, tool: &Arc<Tool>, made: &mut Made) {
    let own = made.violation.take().map(|violation| (Arc::clone(tool), violation));
    for (tool, violation) in own.into_iter().chain(made.step_violations.drain(..)) {
        let steward = Arc::clone(steward);
        tokio::task::spawn_blocking(move || steward.violated(&tool, &violation));
    }
}

/// What comes of it, or that it broke off.
impl<T: Send + 'static> Future for Undertaking<T> {
    type Output = Result<T, &'static str>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.has_begun = true;
        let done = match self.work.as_mut().expect("nobody waits for what is over") {
            Work::Here(work) => {
                let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
                let Ok(polled) = polled else {
                    self.work = None;
                    return Poll::Ready(Err(BROKEN));
                };
                Ok(ready!(polled))
            }
            Work::Beside(work) => ready!(Pin::new(work).poll(context)).map_err(|_| BROKEN),
        };
        self.work = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for Undertaking<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if let Some(off) = &self.off {
            off.cancel();
        }
        // What nobody's leaving calls off is done although it was not begun.
        let goes_on = self.has_begun || self.off.is_none();
        if let (Work::Here(work), true, Ok(runtime)) = (work, goes_on, Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

impl<T: Send + 'static> std::fmt::Debug for Undertaking<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Undertaking").field("has_begun", &self.has_begun).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_was_not_begun_is_done_where_nobodys_leaving_calls_it_off() {
        let work = || {
            let (done, is_done) = oneshot::channel();
            (async move { done.send(()).is_ok() }, is_done)
        };
        let (left, is_done) = work();
        drop(Undertaking::to_its_end(left));
        is_done.await.unwrap();
        let (left, is_done) = work();
        let off = CancellationToken::new();
        drop(Undertaking::of(left, off.clone()));
        assert!(off.is_cancelled() && is_done.await.is_err());
    }
}
