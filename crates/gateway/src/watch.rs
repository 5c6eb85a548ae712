//! What is counted while a gateway runs, for Prometheus, and what is told to a collector of traces.
//!
//! No label holds text from outside: methods are those of the protocol, outcomes those of a call. Spans say what the conventions
//! for generative AI have for tools, and never what was passed to one or came of it.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant, SystemTime};

use axum::http::HeaderMap;
use host::{CallError, TraceContext};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;
use trace::{Finished, Kind, Span, Trace, Traces};

/// What the text is, as it is told to whoever asks.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Up to which times calls are counted, in seconds.
const TIMES: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// The methods that are counted by their names.
const METHODS: [&str; 18] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    CALL,
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
    "tasks/cancel",
];

/// A tool is called, as MCP has it.
const CALL: &str = "tools/call";

/// The same, as the conventions for generative AI have it.
const EXECUTE: &str = "execute_tool";

/// What went wrong where a result says that something has.
const TOOL_ERROR: &str = "tool_error";

/// What became of a call that nobody waited for.
const CANCELLED: &str = "cancelled";

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
    pub(crate) fn call(self: &Arc<Self>, tool: &str, about: Told<'_>) -> Calling {
        self.underway.inc();
        let followed = about.context.as_ref().and_then(|context| Trace::follow(&context.parent));
        let trace = self.traces.as_ref().map(|traces| traces.sampled(followed));
        let sampled = trace.as_ref().filter(|trace| trace.is_sampled);
        let span = sampled.map(|trace| about.span(tool, trace.clone()));
        let Told { request, context, .. } = about;
        let context = match trace {
            // What others keep with a trace is nothing to one that begins here.
            Some(trace) => {
                let (parent, state) = (trace.to_parent(), context.and_then(|one| one.state));
                Some(TraceContext { parent, state })
            }
            None => context,
        };
        let is_asked_by_mcp = request.is_some();
        let (watch, began, outcome) = (Arc::clone(self), Instant::now(), None);
        Calling { watch, began, context, span, is_asked_by_mcp, outcome, failed: None }
    }
}

/// The longest that is passed on of what tracing systems keep with a trace.
const LONGEST_STATE: usize = 512;

/// Where a request says that it belongs; nothing where that cannot be read, as the W3C has it.
pub(crate) fn context(parent: Option<&str>, state: Option<&str>) -> Option<TraceContext> {
    let parent = parent.filter(|parent| Trace::follow(parent).is_some())?.to_owned();
    // What others keep with it is printable, and no longer than they may rely on.
    let is_plain = |state: &&str| {
        state.len() <= LONGEST_STATE && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
    };
    Some(TraceContext { parent, state: state.filter(is_plain).map(str::to_owned) })
}

/// The same of the head of a request.
pub(crate) fn context_of_head(head: &HeaderMap) -> Option<TraceContext> {
    let mut parents = head.get_all(TraceContext::PARENT).iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    let states = head.get_all(TraceContext::STATE).iter();
    let states: Vec<_> = states.filter_map(|state| state.to_str().ok()).collect();
    let state = Some(states.join(",")).filter(|state| !state.is_empty());
    context(parent.to_str().ok(), state.as_deref())
}

/// What is told of a call.
#[derive(Clone, Debug)]
pub(crate) struct Told<'t> {
    pub(crate) package: &'t str,
    pub(crate) surface: &'t str,
    /// The request of MCP that it is made for.
    pub(crate) request: Option<Spoken<'t>>,
    /// Where whoever asks belongs.
    pub(crate) context: Option<TraceContext>,
}

/// A request of MCP that a call is made for.
#[derive(Clone, Debug)]
pub(crate) struct Spoken<'t> {
    pub(crate) revision: &'t str,
    /// The session that it is a part of, where there are any.
    pub(crate) session: Option<&'t str>,
    /// What it is called, as JSON.
    pub(crate) id: &'t str,
}

impl Told<'_> {
    /// The call as the conventions have it: of MCP a request to a server, else a tool that is executed.
    fn span(&self, tool: &str, trace: Trace) -> Span {
        let mut attributes: Vec<(&'static str, Value)> = vec![
            ("gen_ai.operation.name", EXECUTE.into()),
            ("gen_ai.tool.name", tool.into()),
            ("gen_ai.tool.type", "function".into()),
            ("haft.package", self.package.into()),
            ("haft.surface", self.surface.into()),
        ];
        if let Some(Spoken { revision, session, id }) = &self.request {
            attributes.push(("mcp.method.name", CALL.into()));
            attributes.push(("mcp.protocol.version", (*revision).into()));
            let id = serde_json::from_str(id).unwrap_or_else(|_| (*id).to_owned());
            attributes.push(("jsonrpc.request.id", id.into()));
            attributes.extend(session.map(|session| ("mcp.session.id", session.into())));
        }
        let (operation, kind) = match self.request {
            Some(_) => (CALL, Kind::Server),
            None => (EXECUTE, Kind::Internal),
        };
        let name = format!("{operation} {tool}");
        let (began, took) = (SystemTime::now(), Duration::ZERO);
        Span { trace, name, kind, began, took, attributes, failed: None }
    }
}

/// A call that is being made. It is counted when this is dropped.
pub(crate) struct Calling {
    watch: Arc<Watch>,
    began: Instant,
    context: Option<TraceContext>,
    /// What a collector is told of it.
    span: Option<Span>,
    is_asked_by_mcp: bool,
    outcome: Option<&'static str>,
    /// What went wrong, as the conventions name it.
    failed: Option<String>,
}

impl Calling {
    /// Where what is done for it belongs: what a tool is told, so that it can go on with the trace.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.context.clone()
    }

    /// Says what became of it: nothing where it went well, else why not.
    pub(crate) fn ended(&mut self, failure: Option<&CallError>) {
        self.outcome = Some(failure.map_or("ok", |error| error.kind.code()));
        self.failed = failure.and_then(|error| self.failure(error));
    }

    fn failure(&self, error: &CallError) -> Option<String> {
        match (&error.kind, error.details["code"].as_i64()) {
            // Nothing has gone wrong where somebody is asked something first, or a task is made of it.
            (host::Kind::Unfinished | host::Kind::NeedsApproval(_), _) => None,
            (kind, _) if !self.is_asked_by_mcp => Some(kind.code().to_owned()),
            // What a server refuses in the words of the protocol has a number there.
            (_, Some(code)) => Some(code.to_string()),
            (_, None) => Some(TOOL_ERROR.to_owned()),
        }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        let took: Duration = self.began.elapsed();
        let outcome = self.outcome.unwrap_or(CANCELLED);
        self.watch.underway.dec();
        self.watch.called.get_or_create(&Called { outcome: outcome.to_owned() }).inc();
        self.watch.seconds.observe(took.as_secs_f64());
        let (Some(traces), Some(mut span)) = (&self.watch.traces, self.span.take()) else { return };
        let failed = match self.outcome {
            Some(_) => self.failed.take(),
            None => Some(CANCELLED.to_owned()),
        };
        span.attributes.push(("haft.outcome", outcome.into()));
        if let Some(failed) = failed {
            span.attributes.push(("error.type", failed.into()));
            span.failed = Some(outcome.to_owned());
        }
        span.took = took;
        traces.send(Finished { span, parts: Vec::new() });
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn calls_and_requests_are_counted_without_words_from_outside() {
        let watch = Arc::new(Watch::new(None));
        let about = || Told { package: "p", surface: "http", request: None, context: None };
        let late = CallError::new(host::Kind::TimedOut, "evil");
        watch.call("a", about()).ended(None);
        watch.call("\n# evil", about()).ended(Some(&late));
        drop(watch.call("gone", about()));
        watch.answered("tools/call", true);
        watch.answered("tasks/cancel", true);
        watch.answered("evil\n", false);
        let text = watch.text(&[("packages", 3)]);
        for line in [
            "haft_calls_total{outcome=\"ok\"} 1",
            "haft_calls_total{outcome=\"timed_out\"} 1",
            "haft_calls_total{outcome=\"cancelled\"} 1",
            "haft_requests_total{method=\"tools/call\",outcome=\"ok\"} 1",
            "haft_requests_total{method=\"tasks/cancel\",outcome=\"ok\"} 1",
            "haft_requests_total{method=\"other\",outcome=\"error\"} 1",
            "haft_call_seconds_count 3",
            "haft_calls_underway 0",
            "haft_packages 3",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n") && !text.contains("evil"));
    }

    #[test]
    fn a_context_is_read_as_it_is_said_or_not_at_all() {
        const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let head = |said: &[(&'static str, &'static str)]| {
            let mut head = HeaderMap::new();
            for (name, value) in said {
                head.append(*name, HeaderValue::from_static(value));
            }
            context_of_head(&head)
        };
        let parent = ("traceparent", PARENT);
        let read = head(&[parent, ("tracestate", "a=1"), ("tracestate", "b=2")]).unwrap();
        assert_eq!((&*read.parent, read.state.as_deref()), (PARENT, Some("a=1,b=2")));
        assert_eq!(head(&[parent]).unwrap().state, None);
        assert_eq!(head(&[("tracestate", "a=1")]), None);
        assert_eq!(head(&[("traceparent", "00-1"), ("tracestate", "a=1")]), None);
        assert_eq!(head(&[parent, parent]), None);
    }

    #[test]
    fn what_went_wrong_is_named_as_the_conventions_have_it() {
        let watch = Arc::new(Watch::new(None));
        let named = |request: Option<Spoken<'_>>, error: &CallError| {
            let about = Told { package: "p", surface: "mcp", request, context: None };
            let mut calling = watch.call("a", about);
            calling.ended(Some(error));
            calling.failed.take()
        };
        let spoken = || Some(Spoken { revision: "2026-07-28", session: None, id: "1" });
        let error = |kind| CallError::new(kind, "words");
        let refused = error(host::Kind::Failed).with("code", -32602);
        assert_eq!(named(spoken(), &error(host::Kind::Denied)).as_deref(), Some("tool_error"));
        assert_eq!(named(spoken(), &refused).as_deref(), Some("-32602"));
        assert_eq!(named(None, &error(host::Kind::Denied)).as_deref(), Some("denied"));
        for request in [None, spoken()] {
            assert_eq!(named(request, &error(host::Kind::Unfinished)), None);
        }
    }
}
