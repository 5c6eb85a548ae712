//! Requests and their parts as OTLP, in its JSON form: bytes are hexadecimal, large numbers are texts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::context::{Trace, drawn};
use super::part::{Part, Place};

/// What we are to whom, in the numbers of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is a matter of our own.
    Internal = 1,
    /// Somebody asked us.
    Server = 2,
    /// We ask somebody.
    Client = 3,
}

/// The status of what failed.
const ERROR: u8 = 2;

/// A request that is over, and its parts.
#[derive(Debug)]
pub struct Finished {
    /// The request.
    pub span: Span,
    /// What it spent its time with.
    pub parts: Vec<Part>,
}

/// A request that is over.
#[derive(Debug)]
pub struct Span {
    /// Where it belongs.
    pub trace: Trace,
    /// What it is called.
    pub name: String,
    /// Whose matter it is.
    pub kind: Kind,
    /// When it began.
    pub began: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// What else is known of it.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, where we did.
    pub failed: Option<String>,
}

impl Finished {
    /// How many spans it is told as.
    pub(crate) fn len(&self) -> usize {
        1 + self.parts.len()
    }
}

/// What is sent of some requests.
pub(crate) fn body(resource: &[(String, String)], finished: &[Finished]) -> Vec<u8> {
    let resource: Vec<Value> =
        resource.iter().map(|(key, value)| attribute(key, &value.as_str().into())).collect();
    let spans: Vec<Value> = finished.iter().flat_map(spans).collect();
    let scope = json!({"name": "haft", "version": env!("CARGO_PKG_VERSION")});
    let told = json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    told.to_string().into_bytes()
}

fn spans(finished: &Finished) -> impl Iterator<Item = Value> {
    let Finished { span, parts } = finished;
    std::iter::once(request(span)).chain(parts.iter().map(|told| part(span, told)))
}

fn request(span: &Span) -> Value {
    let attributes: Vec<Value> =
        span.attributes.iter().map(|(key, value)| attribute(key, value)).collect();
    let mut told = json!({
        "traceId": span.trace.id,
        "spanId": span.trace.span,
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanoseconds(span.began),
        "endTimeUnixNano": nanoseconds(span.began + span.took),
        "attributes": attributes,
    });
    if let Some(parent) = &span.trace.parent {
        told["parentSpanId"] = parent.as_str().into();
    }
    if let Some(why) = &span.failed {
        told["status"] = json!({"code": ERROR, "message": why});
    }
    told
}

fn part(span: &Span, part: &Part) -> Value {
    let (place, kind) = match part.place {
        Place::Database => ("database: ", Kind::Client),
        Place::Files => ("files: ", Kind::Client),
        Place::Here => ("", Kind::Internal),
    };
    let began = span.began + part.after;
    json!({
        "traceId": span.trace.id,
        "spanId": drawn(),
        "parentSpanId": span.trace.span,
        "name": format!("{place}{}", part.name),
        "kind": kind as u8,
        "startTimeUnixNano": nanoseconds(began),
        "endTimeUnixNano": nanoseconds(began + part.took),
    })
}

fn attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(value) => json!({"intValue": value.to_string()}),
        Value::String(value) => json!({"stringValue": value}),
        other => json!({"stringValue": other.to_string()}),
    };
    json!({"key": key, "value": value})
}

fn nanoseconds(moment: SystemTime) -> String {
    moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}
