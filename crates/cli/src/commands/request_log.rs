//! What became of each request, a line each on stderr.

use std::io::Write;
use std::sync::Arc;

use serde_json::json;
use server::service::{Log, now};
use server::web::Told;

use crate::printer::line;
use crate::time;

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// An object of JSON on each line
    Json,
    /// For people
    Text,
    /// Not at all
    Off,
}

/// The longest path that is written.
const PATH: usize = 512;

impl Form {
    /// What writes a line for each request.
    pub(super) fn log(self) -> Option<Log> {
        match self {
            Form::Off => None,
            Form::Json => Some(Arc::new(|told| write(&json_line(told)))),
            Form::Text => Some(Arc::new(|told| write(&text_line(told)))),
        }
    }
}

fn json_line(told: &Told) -> String {
    let milliseconds = told.took.as_secs_f64() * 1000.0;
    let mut written = json!({
        "time": moment(),
        "id": told.id,
        "method": told.method,
        "route": told.route,
        "path": clipped(&told.path),
        "status": told.status,
        "ms": (milliseconds * 1000.0).round() / 1000.0,
        "bytes": told.bytes,
    });
    if !told.whole {
        written["cutOff"] = true.into();
    }
    if let Some(caller) = &told.caller {
        written["token"] = caller.as_str().into();
    }
    if let Some(cause) = &told.cause {
        written["cause"] = cause.as_str().into();
    }
    if let Some(trace) = &told.trace {
        written["traceId"] = trace.id.as_str().into();
        written["spanId"] = trace.span.as_str().into();
        if let Some(parent) = &trace.parent {
            written["parentId"] = parent.as_str().into();
        }
    }
    crate::printer::json_escaped(&written.to_string())
}

fn text_line(told: &Told) -> String {
    let caller = told.caller.as_deref().unwrap_or("-");
    let end = if told.whole { "" } else { " cut off" };
    let cause = told.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
    line(&format!(
        "{} {} {} {} {} {:.1}ms {}B {caller}{end}{cause}",
        moment(),
        told.id,
        told.method,
        clipped(&told.path),
        told.status,
        told.took.as_secs_f64() * 1000.0,
        told.bytes,
    ))
}

fn clipped(path: &str) -> String {
    path.chars().take(PATH).collect()
}

fn moment() -> String {
    time::utc(i64::try_from(now() / 1000).unwrap_or(i64::MAX))
}

fn write(text: &str) {
    // In one piece, so that lines of several threads stay apart. When nobody reads there is nobody to tell.
    let _ = std::io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_line_is_one_line_whatever_was_asked() {
        let told = Told {
            id: "a1".to_owned(),
            method: "GET".to_owned(),
            route: "unknown".to_owned(),
            path: "/a\n\u{1b}[31m\u{202e}b".to_owned(),
            status: 404,
            took: Duration::from_micros(1_500),
            bytes: 7,
            whole: true,
            caller: Some("abc".to_owned()),
            cause: None,
            trace: None,
        };
        let (json, text) = (json_line(&told), text_line(&told));
        for written in [&json, &text] {
            assert!(!written.contains(['\n', '\u{1b}', '\u{202e}']), "{written}");
        }
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["path"], told.path.as_str());
        assert_eq!(
            (&read["status"], &read["ms"], &read["token"]),
            (&404.into(), &1.5.into(), &"abc".into())
        );
    }
}
