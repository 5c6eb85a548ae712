//! From what a process wrote to a result, or to why there is none.

use std::time::Instant;

use manifest::dialect::Dialect;
use manifest::model::{Action, OutputFormat};
use sandbox::{Exit, Finished};
use serde_json::{Value, json};

use crate::call::Output;
use crate::error::{CallError, Kind};
use crate::limit::{Limit, TIMED_OUT_OF_AGENTCLI, too_late};
use crate::promise::check_heard;
use crate::stream::Stream;
use crate::strict::{self, strict};

/// With this code programs say that the same may well succeed later (`EX_TEMPFAIL` of `sysexits.h`).
const TRY_AGAIN: i32 = 75;

/// Reads what a process wrote as its action promises, whose time ends at `until`.
pub(crate) fn read(
    finished: &Finished,
    action: &Action,
    dialect: Dialect,
    until: Instant,
    stream: Option<&Stream>,
) -> Result<Output, CallError> {
    let Finished { stdout, stderr, ended } = finished;
    match ended.exit {
        Exit::Code(0) => {}
        Exit::Code(code) => {
            let error = failed(code, stdout, stderr, action, dialect);
            return Err(if code == TRY_AGAIN { error.passing() } else { error });
        }
        exit => return Err(ended_by(exit, stderr, dialect)),
    }
    if dialect == Dialect::Agentcli {
        return Ok(agentcli(stdout));
    }
    let output = by_format(stdout, action.output_format)?;
    check_heard(output, action, until, stream)
}

/// One JSON value on a line; nothing is an empty object; anything else is passed on as text.
fn agentcli(stdout: &[u8]) -> Output {
    let text = String::from_utf8_lossy(stdout);
    match text.trim() {
        "" => Output::Json(json!({})),
        text => match strict(text) {
            Some(value) => Output::Json(value),
            None => Output::Text(text.to_owned()),
        },
    }
}

/// Reads bytes as an action says they are to be read.
pub(crate) fn by_format(stdout: &[u8], format: Option<OutputFormat>) -> Result<Output, CallError> {
    let text = || {
        let bad = |_| CallError::new(Kind::BadOutput, "the answer is no UTF-8 text");
        std::str::from_utf8(stdout).map_err(bad)
    };
    match format {
        Some(OutputFormat::Json) => {
            let read = strict::tree(text()?).map_err(|fault| fault.in_answer("the answer"))?;
            Ok(Output::Json(read.to_value()))
        }
        Some(OutputFormat::Text) => Ok(Output::Text(text()?.to_owned())),
        Some(OutputFormat::Binary) => {
            let media_type = media_type(stdout).map(str::to_owned);
            Ok(Output::Binary { bytes: stdout.to_vec(), media_type })
        }
        Some(OutputFormat::NdjsonStream) => {
            let lines = (0..).zip(text()?.lines()).filter(|(_, line)| !line.trim().is_empty());
            let record = |(lines_before, line)| match strict::tree(line) {
                Ok(node) => Ok(node.to_value()),
                Err(fault) => {
                    Err(fault.after_lines(lines_before).in_answer("a line of the answer"))
                }
            };
            lines.map(record).collect::<Result<_, _>>().map(Output::Records)
        }
        Some(OutputFormat::None) => Ok(Output::Nothing),
        None => {
            let text = String::from_utf8_lossy(stdout);
            Ok(match strict(text.trim()) {
                Some(value) => Output::Json(value),
                None if text.is_empty() => Output::Nothing,
                None => Output::Text(text.into_owned()),
            })
        }
    }
}

/// A process that said itself that it failed.
fn failed(code: i32, stdout: &[u8], stderr: &[u8], action: &Action, dialect: Dialect) -> CallError {
    let said = String::from_utf8_lossy(stderr);
    let said = said.trim();
    let as_json = strict(said);
    if dialect == Dialect::Agentcli {
        let told = as_json.as_ref().and_then(|value| value.get("error"));
        let message = match told {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None if said.is_empty() => format!("exit status {code}"),
            None => said.to_owned(),
        };
        let error = CallError::new(Kind::Failed, message).with("exit", code);
        // The message is cut at its end, where the most is said of a failure.
        return if said.contains('\n') { error.with("stderr", said) } else { error };
    }
    if action.standard_errors {
        let on_stdout = strict(String::from_utf8_lossy(stdout).trim());
        let found = on_stdout.as_ref().and_then(envelope);
        if let Some(error) = found.or_else(|| as_json.as_ref().and_then(envelope)) {
            return error.with("exit", code);
        }
    }
    // Some say it where their answer would be.
    let answer = String::from_utf8_lossy(stdout);
    let told = strict(answer.trim()).and_then(|value| error_in(&value));
    let message = match (last_line(said), &told) {
        (Some(line), _) => format!("the tool ended with code {code}: {line}"),
        (None, Some(told)) => format!("the tool ended with code {code}: {told}"),
        (None, None) => format!("the tool ended with code {code}"),
    };
    let error = CallError::new(Kind::Failed, message)
        .with("exit", code)
        .with("stderr", String::from_utf8_lossy(stderr));
    if said.is_empty() && !answer.trim().is_empty() { error.with("stdout", answer) } else { error }
}

/// A process that something else ended.
pub(crate) fn ended_by(exit: Exit, stderr: &[u8], dialect: Dialect) -> CallError {
    let kind = match exit {
        Exit::Deadline => Kind::TimedOut,
        Exit::Output => Kind::TooMuchOutput,
        Exit::Cancelled => Kind::Cancelled,
        _ => Kind::Failed,
    };
    let error = match (&kind, dialect) {
        (Kind::TimedOut, Dialect::Agentcli) => CallError::new(kind, TIMED_OUT_OF_AGENTCLI),
        (Kind::TimedOut, _) => too_late("the tool had not ended"),
        _ => CallError::new(kind, format!("the tool {exit}")),
    };
    let error = error.with("stderr", String::from_utf8_lossy(stderr));
    match exit {
        Exit::Memory => error.with("limit", Limit::Memory.name()),
        Exit::Processes => error.with("limit", Limit::Processes.name()),
        _ => error,
    }
}

/// The error that an answer tells in a usual way.
fn error_in(value: &Value) -> Option<String> {
    let error = value.get("error")?;
    error.as_str().or_else(|| error.get("message")?.as_str()).map(str::to_owned)
}

/// The standard shape of an error.
pub(crate) fn envelope(value: &Value) -> Option<CallError> {
    let error = value.get("error")?;
    let (code, message) = (error.get("code")?.as_str()?, error.get("message")?.as_str()?);
    let failure = CallError::new(Kind::Failed, message).with("code", code);
    Some(match error.get("details") {
        Some(details) => failure.with("details", details.clone()),
        None => failure,
    })
}

fn last_line(text: &str) -> Option<&str> {
    text.lines().rev().find(|line| !line.trim().is_empty())
}

/// What bytes are, by how they begin.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    const SIGNS: [(&[u8], &str); 9] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"OggS", "audio/ogg"),
        (b"ID3", "audio/mpeg"),
        (b"\x7fELF", "application/x-elf"),
    ];
    SIGNS.iter().find(|(sign, _)| bytes.starts_with(sign)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use sandbox::{Ended, Usage};

    use super::*;

    fn action(changes: impl FnOnce(&mut Action)) -> Action {
        let text = r#"{"tools":[{"name":"t","command":["./tools/bin/t"]}]}"#;
        let options = manifest::document::Options {
            fallback_id: Some("demo"),
            ..manifest::document::Options::default()
        };
        let (_, mut packages) =
            manifest::document::read(text.as_bytes(), &options).expect("a valid manifest");
        let mut action = packages.remove(0).actions.remove(0);
        changes(&mut action);
        action
    }

    fn finished(exit: Exit, stdout: &str, stderr: &str) -> Finished {
        let ended = Ended { exit, usage: Usage::default() };
        Finished { stdout: stdout.into(), stderr: stderr.into(), ended }
    }

    fn ask(
        format: Option<OutputFormat>,
        exit: Exit,
        stdout: &str,
        stderr: &str,
    ) -> Result<Output, CallError> {
        let action = action(|action| action.output_format = format);
        read_now(&finished(exit, stdout, stderr), &action, Dialect::InstallManifest)
    }

    fn read_now(
        finished: &Finished,
        action: &Action,
        dialect: Dialect,
    ) -> Result<Output, CallError> {
        read(finished, action, dialect, Instant::now(), None)
    }

    fn agentcli_says(exit: Exit, stdout: &str, stderr: &str) -> Result<Output, CallError> {
        read_now(&finished(exit, stdout, stderr), &action(|_| {}), Dialect::Agentcli)
    }

    #[test]
    fn agentcli_has_its_own_words() {
        let ok = |text| agentcli_says(Exit::Code(0), text, "").unwrap();
        assert_eq!(ok(""), Output::Json(json!({})));
        assert_eq!(ok("{\"a\": \"b  c\"}\n"), Output::Json(json!({"a": "b  c"})));
        assert_eq!(ok("plain words\n"), Output::Text("plain words".into()));
        let error = |exit, stderr| agentcli_says(exit, "", stderr).unwrap_err().message;
        assert_eq!(error(Exit::Code(3), ""), "exit status 3");
        assert_eq!(error(Exit::Code(1), "it broke\n"), "it broke");
        assert_eq!(error(Exit::Code(1), "{\"error\":\"no such zone\"}\n"), "no such zone");
        assert_eq!(error(Exit::Deadline, "x"), "tool timed out");
    }

    #[test]
    fn every_format_is_read_and_what_is_none_is_refused() {
        use OutputFormat::{Binary, Json, NdjsonStream, None as Nothing, Text};
        let ok = |format, text| ask(format, Exit::Code(0), text, "").unwrap();
        let bad = |format, text| ask(format, Exit::Code(0), text, "").unwrap_err().kind;
        assert_eq!(ok(Some(Json), " {\"a\":1}\n"), Output::Json(json!({"a": 1})));
        assert_eq!(bad(Some(Json), "{\"a\":1} {\"a\":2}"), Kind::BadOutput);
        assert_eq!(bad(Some(Json), "{\"a\":1,\"a\":2}"), Kind::BadOutput);
        assert_eq!(bad(Some(Json), ""), Kind::BadOutput);
        assert_eq!(ok(Some(Text), "x\n"), Output::Text("x\n".into()));
        let records = ok(Some(NdjsonStream), "{\"a\":1}\n\n{\"a\":2}\n");
        assert_eq!(records, Output::Records(vec![json!({"a": 1}), json!({"a": 2})]));
        assert_eq!(bad(Some(NdjsonStream), "{\"a\":1}\n{"), Kind::BadOutput);
        assert_eq!(ok(Some(Nothing), "noise"), Output::Nothing);
        assert_eq!(ok(None, "7"), Output::Json(json!(7)));
        assert_eq!(ok(None, "seven"), Output::Text("seven".into()));
        let Output::Binary { bytes, media_type } = ok(Some(Binary), "%PDF-1.7") else { panic!() };
        assert_eq!((&*bytes, media_type.as_deref()), (&b"%PDF-1.7"[..], Some("application/pdf")));
    }

    #[test]
    fn what_is_wrong_with_json_is_told_with_its_place() {
        use OutputFormat::{Json, NdjsonStream};
        let bad = |format, text| ask(Some(format), Exit::Code(0), text, "").unwrap_err();
        let twin = bad(Json, "{\"a\":1,\n \"a\":2}");
        let words =
            "the answer cannot be used: the key `a` appears twice in one object (line 2, column 2)";
        assert_eq!(twin.message, words);
        assert_eq!(twin.details, json!({ "line": 2, "column": 2 }));
        let broken = bad(Json, "{\"a\":");
        assert!(broken.message.starts_with("the answer is no JSON: "), "{broken}");
        assert_eq!(broken.details, json!({ "line": 1, "column": 6, "answer": "{\"a\":" }));
        // Empty lines are counted too.
        let record = bad(NdjsonStream, "{\"a\":1}\n\n[1e400]\n");
        let words = "a line of the answer cannot be used: ";
        assert!(record.message.starts_with(words), "{record}");
        assert!(record.message.ends_with(" (line 3, column 2)"), "{record}");
    }

    #[test]
    fn an_answer_must_keep_its_promise() {
        let schema = r#"{"tools":[{"name":"t","command":["./tools/bin/t"],"schema":{"type":"object","required":["a"]}}]}"#;
        let (_, packages) = manifest::document::read(
            schema.as_bytes(),
            &manifest::document::Options {
                fallback_id: Some("demo"),
                ..manifest::document::Options::default()
            },
        )
        .unwrap();
        let promise = packages[0].actions[0].input.clone();
        let action = action(|action| {
            action.output_format = Some(OutputFormat::Json);
            action.output = promise;
        });
        let read = |text| read_now(&finished(Exit::Code(0), text, ""), &action, Dialect::Mcpkg);
        assert!(read("{\"a\":1}").is_ok());
        let error = read("{\"b\":1}").unwrap_err();
        assert_eq!(error.kind, Kind::BadOutput);
        assert!(error.message.contains('a'), "{error}");
    }

    #[test]
    fn the_standard_envelope_is_understood_wherever_it_is() {
        let action = action(|action| action.standard_errors = true);
        let said = r#"{"error":{"code":"NO_ROOM","message":"no room left","details":{"n":1}}}"#;
        for (exit, stdout, stderr) in
            [(Exit::Code(1), said, ""), (Exit::Code(1), "", said), (Exit::Code(0), said, "")]
        {
            let finished = finished(exit, stdout, stderr);
            let error = read_now(&finished, &action, Dialect::InstallManifest);
            let error = error.unwrap_err();
            assert_eq!(error.message, "no room left");
            assert_eq!(error.details["code"], "NO_ROOM");
            assert_eq!(error.details["details"]["n"], 1);
        }
    }

    #[test]
    fn how_it_ended_is_told() {
        let error = |exit| ask(Some(OutputFormat::Json), exit, "", "a\nlast words\n").unwrap_err();
        assert_eq!(error(Exit::Code(2)).message, "the tool ended with code 2: last words");
        assert_eq!(error(Exit::Deadline).kind, Kind::TimedOut);
        assert_eq!(error(Exit::Output).kind, Kind::TooMuchOutput);
        assert_eq!(error(Exit::Memory).message, "the tool used more memory than it may");
    }
}
