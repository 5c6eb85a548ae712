//! What is counted while a gateway runs, for Prometheus, and what is told to a collector of traces.
//!
//! No label holds text from outside: methods are those of the protocol, outcomes those of a call. Spans say what the conventions
//! for generative AI have for tools, and never what was passed to one or came of it.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant, SystemTime};

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use serde_json::{Value, json};
use trace::{Finished, Span, Trace, Traces};

/// What the text is, as it is told to whoever asks.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Up to which times calls are counted, in seconds.
const TIMES: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// The methods that are counted by their names.
const METHODS: [&str; 17] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    method: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Called {
    outcome: String,
}

/// What is counted and told.
pub(crate) struct Watch {
    names: Registry,
    asked: Family<Asked, Counter>,
    called: Family<Called, Counter>,
    seconds: Histogram,
    underway: Gauge<i64, AtomicI64>,
    traces: Option<Traces>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Watch").field("traces", &self.traces).finish_non_exhaustive()
    }
}

impl Watch {
    pub(crate) fn new(traces: Option<Traces>) -> Self {
        let (asked, called, underway) = Default::default();
        let seconds = Histogram::new(TIMES);
        let mut names = Registry::with_prefix("haft");
        names.register(
            "requests",
            "Requests of clients, by method and outcome",
            Family::clone(&asked),
        );
        names.register("calls", "Calls of tools, by what became of them", Family::clone(&called));
        let words = "How long calls of tools took";
        names.register_with_unit("call", words, Unit::Seconds, seconds.clone());
        names.register(
            "calls_underway",
            "Calls of tools that are being made",
            Gauge::clone(&underway),
        );
        Self { names, asked, called, seconds, underway, traces }
    }

    /// Everything that was counted, as text; with what is there now.
    pub(crate) fn text(&self, now: &[(&str, usize)]) -> String {
        let mut out = String::new();
        // Into a text, writing cannot fail.
        let _ = text::encode(&mut out, &self.names);
        let mut written = out.trim_end().trim_end_matches("# EOF").to_owned();
        for (name, count) in now {
            written += &format!("# TYPE haft_{name} gauge\nhaft_{name} {count}\n");
        }
        written + "# EOF\n"
    }

    /// Counts a request that was answered.
    pub(crate) fn answered(&self, method: &str, is_well: bool) {
        let known = METHODS.into_iter().find(|known| *known == method);
        let outcome = if is_well { "ok" } else { "error" };
        self.asked.get_or_create(&Asked { method: known.unwrap_or("other"), outcome }).inc();
    }

    /// Begins a call, which belongs to a trace where somebody says so.
    pub(crate) fn call(self: &Arc<Self>, tool: &str, about: &Told<'_>) -> Calling {
        self.underway.inc();
        let trace = self
            .traces
            .as_ref()
            .map(|traces| traces.sampled(about.traceparent.and_then(Trace::follow)));
        let attributes = trace.as_ref().filter(|trace| trace.is_sampled).map(|_| {
            let mut all: Vec<(&'static str, Value)> = vec![
                ("gen_ai.operation.name", "execute_tool".into()),
                ("gen_ai.tool.name", tool.into()),
                ("gen_ai.tool.type", "function".into()),
                ("haft.package", about.package.into()),
                ("haft.surface", about.surface.into()),
            ];
            if let Some(revision) = about.revision {
                all.push(("mcp.method.name", "tools/call".into()));
                all.push(("mcp.protocol.version", revision.into()));
                all.push(("mcp.session.id", about.session.into()));
            }
            all
        });
        Calling {
            watch: Arc::clone(self),
            name: format!("execute_tool {tool}"),
            began: Instant::now(),
            at: SystemTime::now(),
            trace,
            attributes,
            outcome: None,
        }
    }
}

/// What is told of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'t> {
    pub(crate) package: &'t str,
    pub(crate) surface: &'t str,
    pub(crate) session: &'t str,
    /// The revision of MCP that it came by.
    pub(crate) revision: Option<&'t str>,
    /// The trace that whoever asks is in.
    pub(crate) traceparent: Option<&'t str>,
}

/// A call that is being made. It is counted when this is dropped.
pub(crate) struct Calling {
    watch: Arc<Watch>,
    name: String,
    began: Instant,
    at: SystemTime,
    trace: Option<Trace>,
    attributes: Option<Vec<(&'static str, Value)>>,
    outcome: Option<&'static str>,
}

impl Calling {
    /// Where what is done for it belongs: what a tool is told, so that it can go on with the trace.
    pub(crate) fn traceparent(&self) -> Option<String> {
        let trace = self.trace.as_ref()?;
        let flags = if trace.is_sampled { "01" } else { "00" };
        Some(format!("00-{}-{}-{flags}", trace.id, trace.span))
    }

    /// Says what became of it: nothing where it went well, else the code of the failure.
    pub(crate) fn ended(&mut self, failure: Option<&'static str>) {
        self.outcome = Some(failure.unwrap_or("ok"));
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        let took: Duration = self.began.elapsed();
        let outcome = self.outcome.unwrap_or("cancelled");
        self.watch.underway.dec();
        self.watch.called.get_or_create(&Called { outcome: outcome.to_owned() }).inc();
        self.watch.seconds.observe(took.as_secs_f64());
        let (Some(traces), Some(trace)) = (&self.watch.traces, self.trace.take()) else { return };
        let Some(mut attributes) = self.attributes.take() else { return };
        let failed = (outcome != "ok").then(|| outcome.to_owned());
        if failed.is_some() {
            attributes.push(("error.type", json!(outcome)));
        }
        let name = std::mem::take(&mut self.name);
        let span = Span { trace, name, began: self.at, took, attributes, failed };
        traces.send(Finished { span, parts: Vec::new() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_requests_are_counted_without_words_from_outside() {
        let watch = Arc::new(Watch::new(None));
        let about =
            Told { package: "p", surface: "mcp", session: "s", revision: None, traceparent: None };
        watch.call("a", &about).ended(None);
        watch.call("\n# evil", &about).ended(Some("timed_out"));
        drop(watch.call("gone", &about));
        watch.answered("tools/call", true);
        watch.answered("evil\n", false);
        let text = watch.text(&[("packages", 3)]);
        for line in [
            "haft_calls_total{outcome=\"ok\"} 1",
            "haft_calls_total{outcome=\"timed_out\"} 1",
            "haft_calls_total{outcome=\"cancelled\"} 1",
            "haft_requests_total{method=\"tools/call\",outcome=\"ok\"} 1",
            "haft_requests_total{method=\"other\",outcome=\"error\"} 1",
            "haft_call_seconds_count 3",
            "haft_calls_underway 0",
            "haft_packages 3",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n") && !text.contains("evil"));
    }
}
