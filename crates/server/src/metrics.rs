//! What is counted while a registry runs, for Prometheus.
//!
//! No label holds text from outside: routes are written as the router has them, methods and statuses are those of
//! HTTP. So however strange the requests are, what is kept of them stays small.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry as Names, Unit};
use registry::Outcome;

use crate::service::{Registry, now};
use trace::Traces;

/// What the text is, as it is told to whoever asks.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Up to which times answers are counted, in seconds.
const TIMES: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: Cow<'static, str>,
    method: &'static str,
    status: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: Cow<'static, str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Became {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Direction {
    direction: &'static str,
}

/// What is counted.
pub struct Metrics {
    names: Names,
    answered: Family<Answered, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    underway: Gauge,
    published: Family<Became, Counter>,
    bytes: Family<Direction, Counter>,
    tools: Gauge,
    damaged: Gauge,
    feed: Gauge,
    behind: Gauge<f64, AtomicU64>,
    listening: Gauge,
    connections: Gauge,
    idle: Gauge,
    lost: Counter,
    memory: Gauge,
    uptime: Gauge<f64, AtomicU64>,
    started: Instant,
    /// When the catalog was last known to have everything, in milliseconds since 1970.
    current_at: AtomicU64,
    listens: AtomicI64,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Metrics")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(TIMES);
        let mut made = Self {
            names: Names::default(),
            answered: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            underway: Gauge::default(),
            published: Family::default(),
            bytes: Family::default(),
            tools: Gauge::default(),
            damaged: Gauge::default(),
            feed: Gauge::default(),
            behind: Gauge::default(),
            listening: Gauge::default(),
            connections: Gauge::default(),
            idle: Gauge::default(),
            lost: Counter::default(),
            memory: Gauge::default(),
            uptime: Gauge::default(),
            started: Instant::now(),
            current_at: AtomicU64::new(now()),
            listens: AtomicI64::new(0),
        };
        made.name();
        made
    }
}

impl Metrics {
    fn name(&mut self) {
        let names = &mut self.names;
        names.register("haft_requests", "Requests that were answered", self.answered.clone());
        names.register_with_unit(
            "haft_request_duration",
            "Time until the head of an answer was ready",
            Unit::Seconds,
            self.seconds.clone(),
        );
        names.register(
            "haft_requests_underway",
            "Requests that are being answered",
            self.underway.clone(),
        );
        names.register(
            "haft_publishes",
            "Publishes by what became of them",
            self.published.clone(),
        );
        names.register_with_unit(
            "haft_blob",
            "Bytes of package files that were kept and sent",
            Unit::Bytes,
            self.bytes.clone(),
        );
        names.register("haft_catalog_tools", "Tools that can be found", self.tools.clone());
        names.register(
            "haft_catalog_damaged",
            "Rows that could not be read since the start",
            self.damaged.clone(),
        );
        names.register("haft_feed_number", "The last change taken in", self.feed.clone());
        names.register_with_unit(
            "haft_feed_lag",
            "Time since the catalog was last known to have every change",
            Unit::Seconds,
            self.behind.clone(),
        );
        names.register(
            "haft_feed_listening",
            "Whether the database tells of changes",
            self.listening.clone(),
        );
        names.register(
            "haft_database_connections",
            "Connections to the database",
            self.connections.clone(),
        );
        names.register(
            "haft_database_connections_idle",
            "Connections to the database that do nothing",
            self.idle.clone(),
        );
        names.register("haft_traces_lost", "Traces that no collector has taken", self.lost.clone());
        names.register_with_unit(
            "process_resident_memory",
            "Memory that the process holds",
            Unit::Bytes,
            self.memory.clone(),
        );
        names.register_with_unit(
            "haft_uptime",
            "Time since the start",
            Unit::Seconds,
            self.uptime.clone(),
        );
    }

    /// A request begins.
    pub(crate) fn begins(&self) {
        self.underway.inc();
    }

    /// A request has its answer; `route` is as the router has it.
    pub(crate) fn answered(
        &self,
        route: Cow<'static, str>,
        method: &str,
        status: u16,
        took: Duration,
    ) {
        self.underway.dec();
        let method = known_method(method).unwrap_or("other");
        let labels = Answered { route, method, status: status.into() };
        self.answered.get_or_create(&labels).inc();
        let route = Route { route: labels.route };
        self.seconds.get_or_create(&route).observe(took.as_secs_f64());
    }

    /// A request was given up before it had an answer.
    pub(crate) fn given_up(&self) {
        self.underway.dec();
    }

    /// A package was published, or was there.
    pub(crate) fn published(&self, outcome: Outcome, size: u64) {
        let outcome = match outcome {
            Outcome::Published => {
                self.bytes.get_or_create(&Direction { direction: "in" }).inc_by(size);
                "published"
            }
            Outcome::Unchanged => "unchanged",
        };
        self.published.get_or_create(&Became { outcome }).inc();
    }

    /// A publish was refused: whether it was at fault itself, is in the way of another, or the registry failed.
    pub(crate) fn refused(&self, status: u16) {
        let outcome = match status {
            409 => "conflict",
            401 | 403 => "forbidden",
            500.. => "failed",
            _ => "invalid",
        };
        self.published.get_or_create(&Became { outcome }).inc();
    }

    /// Bytes of a package file were sent.
    pub(crate) fn sent(&self, bytes: u64) {
        self.bytes.get_or_create(&Direction { direction: "out" }).inc_by(bytes);
    }

    /// The catalog has every change there was at this moment.
    pub(crate) fn is_current(&self, at: u64) {
        self.current_at.store(at, Ordering::Relaxed);
    }

    /// Whether the database tells of changes.
    pub(crate) fn listens(&self, listens: bool) {
        self.listens.store(listens.into(), Ordering::Relaxed);
    }

    /// Everything, as Prometheus reads it.
    pub(crate) async fn text(&self, registry: &Registry) -> String {
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.tools.set(count(registry.catalog.len() as u64));
        self.damaged.set(count(registry.catalog.damaged() + registry.store.unread()));
        self.feed.set(registry.catalog.last().await);
        let behind = now().saturating_sub(self.current_at.load(Ordering::Relaxed));
        self.behind.set(Duration::from_millis(behind).as_secs_f64());
        self.listening.set(self.listens.load(Ordering::Relaxed));
        let connections = registry.store.connections();
        self.connections.set(connections.open.into());
        self.idle.set(count(connections.idle as u64));
        let traces = registry.settings.traces.as_ref();
        self.lost.inner().store(traces.map_or(0, Traces::lost), Ordering::Relaxed);
        if let Some(memory) = resident_memory() {
            self.memory.set(count(memory));
        }
        self.uptime.set(self.started.elapsed().as_secs_f64());
        let mut told = String::new();
        // Writing to a text fails never.
        let _ = text::encode(&mut told, &self.names);
        told
    }
}

/// A method of HTTP; anybody can send any other.
pub(crate) fn known_method(method: &str) -> Option<&'static str> {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
    KNOWN.iter().find(|known| **known == method).copied()
}

/// The memory that the process holds, in bytes, where the system says so.
fn resident_memory() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
