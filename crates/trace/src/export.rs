//! The queue of what is over, and whoever sends it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use egress::http::{Client, HeaderValue, Method, Request, SendError};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::otlp::{self, Finished};
use crate::reach::{self, ReachError};
use crate::{Collector, Trace};

/// How many requests wait to be sent; more are lost.
const QUEUE: usize = 2_048;
/// How many spans are sent at once.
const BATCH: usize = 512;
/// How long is waited for more before they are sent.
const PAUSE: Duration = Duration::from_secs(1);
/// How long is waited before it is tried again what may succeed later.
const AGAIN: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// The most bytes of an answer.
const MOST: u64 = 1 << 20;

/// Tells the operator that the collector is away, and that it is back.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Sends what is over to a collector. Clones share one queue.
#[derive(Clone)]
pub struct Traces(Arc<Shared>);

struct Shared {
    collector: Collector,
    queue: mpsc::Sender<Finished>,
    lost: Arc<AtomicU64>,
    closing: Arc<Notify>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

/// Without what is said to the collector.
impl fmt::Debug for Traces {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Traces")
            .field("url", &self.0.collector.url.as_str())
            .finish_non_exhaustive()
    }
}

impl Traces {
    /// How long [`close`](Self::close) takes at most.
    pub const FAREWELL: Duration = Duration::from_secs(5);

    /// Sends to this collector from now on, within a runtime. What is worth knowing is told: once when it cannot be
    /// reached, and once when it is back.
    pub fn begin(
        collector: Collector,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, ReachError> {
        let client = reach::client(&collector.url)?;
        let (queue, waiting) = mpsc::channel(QUEUE);
        let (lost, closing) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
        let sender = Sender {
            collector: collector.clone(),
            client,
            waiting,
            lost: Arc::clone(&lost),
            closing: Arc::clone(&closing),
            is_closing: false,
            is_away: false,
            tell: Box::new(tell),
        };
        let worker = Mutex::new(Some(tokio::spawn(sender.run())));
        Ok(Self(Arc::new(Shared { collector, queue, lost, closing, worker })))
    }

    /// The trace of a request: the one it follows, or one of its own.
    pub fn sampled(&self, followed: Option<Trace>) -> Trace {
        let trace = followed.unwrap_or_else(Trace::begin);
        let is_sampled = self.0.collector.sampler.takes(&trace);
        Trace { is_sampled, ..trace }
    }

    /// Puts a request into the queue; where there is no room it is lost.
    pub fn send(&self, finished: Finished) {
        if self.0.queue.try_send(finished).is_err() {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many requests no collector has taken.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Sends what is in the queue and then nothing more, but does not wait long for it.
    pub async fn close(&self) {
        self.0.closing.notify_one();
        let worker = self.0.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut worker) = worker else { return };
        if tokio::time::timeout(Self::FAREWELL, &mut worker).await.is_err() {
            worker.abort();
        }
    }
}

/// Whoever empties the queue.
struct Sender {
    collector: Collector,
    client: Client,
    waiting: mpsc::Receiver<Finished>,
    lost: Arc<AtomicU64>,
    closing: Arc<Notify>,
    is_closing: bool,
    /// Whether the operator was told that it cannot be reached.
    is_away: bool,
    tell: Tell,
}

/// Why a collector has not taken something.
enum Refusal {
    /// It may do so later.
    ForNow(String),
    /// It will not.
    ForGood(String),
}

impl Sender {
    async fn run(mut self) {
        loop {
            let batch = self.gather().await;
            if batch.is_empty() {
                return;
            }
            self.deliver(&batch).await;
        }
    }

    /// Some requests, as soon as they are many or old; none when it is over.
    async fn gather(&mut self) -> Vec<Finished> {
        let (mut batch, mut spans, mut until) = (Vec::new(), 0, Instant::now());
        while spans < BATCH {
            tokio::select! {
                next = self.waiting.recv() => {
                    let Some(finished) = next else { break };
                    if batch.is_empty() {
                        until = Instant::now() + PAUSE;
                    }
                    spans += finished.len();
                    batch.push(finished);
                }
                () = tokio::time::sleep_until(until), if !batch.is_empty() => break,
                () = self.closing.notified(), if !self.is_closing => self.close(),
            }
        }
        batch
    }

    /// Takes nothing more into the queue.
    fn close(&mut self) {
        self.is_closing = true;
        self.waiting.close();
    }

    async fn deliver(&mut self, batch: &[Finished]) {
        let body = otlp::body(&self.collector.resource, batch);
        let mut again = AGAIN.iter();
        let why = loop {
            match (self.post(body.clone()).await, again.next()) {
                (Ok(()), _) => return self.note_taken(),
                (Err(Refusal::ForNow(why)), Some(wait)) if !self.is_closing => {
                    self.note_away(&why);
                    tokio::select! {
                        () = tokio::time::sleep(*wait) => {}
                        () = self.closing.notified() => self.close(),
                    }
                }
                (Err(Refusal::ForNow(why) | Refusal::ForGood(why)), _) => break why,
            }
        };
        self.note_away(&why);
        self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
    }

    async fn post(&self, body: Vec<u8>) -> Result<(), Refusal> {
        let mut request = Request::new(Method::POST, self.collector.url.clone());
        request.headers.extend(self.collector.headers.clone());
        request.headers.insert("content-type", HeaderValue::from_static("application/json"));
        request.body = Some(body);
        request.within = self.collector.within;
        request.most = MOST;
        request.redirects = 0;
        let answer = self.client.send(request).await.map_err(|error| match error {
            SendError::Refused { .. } | SendError::Header(_) => Refusal::ForGood(words(&error)),
            _ => Refusal::ForNow(words(&error)),
        })?;
        let status = answer.status.as_u16();
        let why = format!("the answer is {status}");
        match status {
            200..=299 => Ok(()),
            429 | 502..=504 => Err(Refusal::ForNow(why)),
            _ => Err(Refusal::ForGood(why)),
        }
    }

    fn note_taken(&mut self) {
        if std::mem::take(&mut self.is_away) {
            (self.tell)("the collector takes traces again");
        }
    }

    fn note_away(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_away, true) {
            (self.tell)(&format!("the collector takes no traces, which are lost meanwhile: {why}"));
        }
    }
}

fn words(error: &SendError) -> String {
    let mut source = std::error::Error::source(error);
    // Each cause repeats the ones beneath it, or says less.
    let mut last = None;
    while let Some(cause) = source {
        last = Some(cause.to_string());
        source = cause.source();
    }
    last.map_or_else(|| error.to_string(), |last| format!("{error}: {last}"))
}
