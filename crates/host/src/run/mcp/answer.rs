//! From what a server answered to a result, or to why there is none.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use manifest::model::OutputFormat;
use serde_json::{Value, json};

use super::session::AskError;
use crate::call::Output;
use crate::error::{CallError, Kind};
use crate::output::{by_format, envelope};
use crate::promise::{bytes_in_words, not_declared};
use crate::strict::strict;

/// JSON-RPC: there is no such method.
const NO_METHOD: i32 = -32601;

/// JSON-RPC: the parameters are not what the method takes.
const BAD_PARAMETERS: i32 = -32602;

/// How the author of a manifest says that a tool answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Declared {
    /// In this format.
    pub(crate) format: Option<OutputFormat>,
    /// Whether failures have the standard shape.
    pub(crate) standard_errors: bool,
}

/// Reads the answer to a call.
pub(super) fn read(mut answer: Value, declared: Declared) -> Result<Output, CallError> {
    if answer.get("resultType").and_then(Value::as_str) == Some("input_required") {
        return Err(wants_input(&answer));
    }
    if answer.get("resultType").and_then(Value::as_str) == Some("task") {
        let message = "the tool goes on as a task of its server";
        return Err(CallError::new(Kind::Unfinished, message));
    }
    if answer.get("taskId").is_some() && answer.get("content").is_none() {
        let message = "the server made a task of the call, which was not asked for";
        return Err(CallError::new(Kind::BadOutput, message));
    }
    let structured = answer.get_mut("structuredContent").map(Value::take);
    let structured = structured.filter(|value| !value.is_null());
    let contents = match answer.get_mut("content").map(Value::take) {
        Some(Value::Array(contents)) => contents,
        None if structured.is_some() => Vec::new(),
        Some(_) | None => return Err(odd("its answer has no content")),
    };
    if answer.get("isError") == Some(&Value::Bool(true)) {
        return Err(failed(&contents, structured, declared));
    }
    match (declared.format, structured) {
        (Some(OutputFormat::None), _) => Ok(Output::Nothing),
        (None | Some(OutputFormat::Json), Some(structured)) => Ok(Output::Json(structured)),
        (Some(OutputFormat::NdjsonStream), Some(record)) => Ok(Output::Records(vec![record])),
        // Only here there is another way to say the same, and it was asked for.
        (format @ Some(OutputFormat::Text | OutputFormat::Binary), Some(structured))
            if contents.is_empty() =>
        {
            by_format(structured.to_string().as_bytes(), format)
        }
        (None, None) => of_contents(contents),
        (Some(format), _) => in_format(contents, format),
    }
}

/// Contents in a format: texts are read as the output of a program is.
fn in_format(contents: Vec<Value>, format: OutputFormat) -> Result<Output, CallError> {
    let texts: Option<Vec<_>> = contents.iter().map(text_within).collect();
    match (format, texts.map(|texts| texts.join("\n")), contents.as_slice()) {
        (OutputFormat::Json, _, [_, _, ..]) => of_contents(contents),
        (_, Some(text), _) => by_format(text.as_bytes(), Some(format)),
        (OutputFormat::Binary, None, [only]) if only.pointer("/resource/blob").is_some() => {
            bytes(&only["resource"], "blob")
        }
        _ => match of_contents(contents)? {
            picture @ Output::Binary { .. } if format == OutputFormat::Binary => Ok(picture),
            Output::Binary { bytes, media_type } => {
                Err(not_declared(&bytes_in_words(&bytes, media_type.as_deref()), format))
            }
            _ => Err(not_declared("a list of contents", format)),
        },
    }
}

/// Contents as they are.
fn of_contents(mut contents: Vec<Value>) -> Result<Output, CallError> {
    if contents.len() > 1 {
        return Ok(Output::Json(Value::Array(contents)));
    }
    let Some(only) = contents.pop() else { return Ok(Output::Nothing) };
    if let Some(text) = text(&only) {
        let value = strict(text);
        return Ok(value.map_or_else(|| Output::Text(text.to_owned()), Output::Json));
    }
    match only.get("type").and_then(Value::as_str) {
        Some("image" | "audio") => bytes(&only, "data"),
        _ => Ok(Output::Json(Value::Array(vec![only]))),
    }
}

fn bytes(content: &Value, key: &str) -> Result<Output, CallError> {
    let data = content.get(key).and_then(Value::as_str).unwrap_or_default();
    let bytes = STANDARD.decode(data).map_err(|_| odd("its bytes are no base64"))?;
    Ok(Output::binary(bytes, content.get("mimeType").and_then(Value::as_str)))
}

fn text(content: &Value) -> Option<&str> {
    (content.get("type")? == "text").then(|| content.get("text")?.as_str())?
}

/// The text of a content, or of the resource that it holds.
fn text_within(content: &Value) -> Option<&str> {
    text(content).or_else(|| content.pointer("/resource/text")?.as_str())
}

/// The tool said itself that it failed.
fn failed(contents: &[Value], structured: Option<Value>, declared: Declared) -> CallError {
    let texts: Vec<_> = contents.iter().filter_map(text).map(str::trim).collect();
    if declared.standard_errors {
        let said = texts.iter().filter_map(|text| strict(text));
        if let Some(error) = structured.iter().cloned().chain(said).find_map(|one| envelope(&one)) {
            return error;
        }
    }
    let message = match texts.join("\n") {
        said if said.is_empty() => "the tool failed, and did not say why".to_owned(),
        said => said,
    };
    let error = CallError::new(Kind::Failed, message);
    let error = match structured {
        Some(structured) => error.with("structuredContent", structured),
        None => error,
    };
    if texts.len() == contents.len() { error } else { error.with("content", contents) }
}

fn wants_input(answer: &Value) -> CallError {
    let questions = answer.get("inputRequests").cloned().unwrap_or(json!({}));
    let asked = questions.as_object().into_iter().flat_map(|all| all.values());
    let words: Vec<_> = asked.filter_map(|one| one.pointer("/params/message")?.as_str()).collect();
    let message = match words.as_slice() {
        [] => "the tool wants to ask its user something before it goes on".to_owned(),
        words => format!("the tool asks before it goes on: {}", words.join("; ")),
    };
    CallError::new(Kind::Unfinished, message).with("inputRequests", questions)
}

/// The server gave no answer to a call. It has a place where it is on the network.
pub(super) fn not_answered(error: AskError, tool: &str, place: Option<&str>) -> CallError {
    let server = place.map_or_else(|| "the server".to_owned(), |place| format!("`{place}`"));
    match error {
        AskError::Refused { code, message, data } => {
            let is_unknown =
                code == NO_METHOD || (code == BAD_PARAMETERS && is_about_no_such_tool(&message));
            let kind = match code {
                _ if is_unknown => Kind::Unknown,
                BAD_PARAMETERS => Kind::BadInput,
                _ => Kind::Failed,
            };
            let error = CallError::new(kind, message).with("code", code).with("tool", tool);
            match data {
                Some(data) => error.with("data", data),
                None => error,
            }
        }
        AskError::Closed => {
            CallError::new(Kind::Unavailable, format!("{server} is gone")).passing()
        }
        AskError::Wire(words) => {
            CallError::new(Kind::Unavailable, format!("{server} did not answer: {words}")).passing()
        }
        AskError::Told(error) => *error,
        AskError::Login(login) => login.to_error("server"),
        AskError::TooMuch => {
            CallError::new(Kind::TooMuchOutput, "the tool wrote more output than it may")
        }
        AskError::Odd(words) => odd(&words),
    }
}

/// Servers say in words what the code leaves open.
fn is_about_no_such_tool(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("tool")
        && ["unknown", "not found", "no such", "does not exist"]
            .iter()
            .any(|words| message.contains(words))
}

pub(super) fn odd(how: &str) -> CallError {
    CallError::new(Kind::BadOutput, format!("the server broke the protocol: {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_any(answer: Value) -> Result<Output, CallError> {
        read(answer, Declared::default())
    }

    fn read_as(answer: &Value, format: OutputFormat) -> Result<Output, CallError> {
        read(answer.clone(), Declared { format: Some(format), standard_errors: false })
    }

    fn ok(answer: Value) -> Output {
        read_any(answer).unwrap()
    }

    #[test]
    fn what_is_structured_comes_first_and_text_that_is_json_is_json() {
        let content = json!([{ "type": "text", "text": "{\"a\":1}" }]);
        assert_eq!(
            ok(json!({ "content": content, "structuredContent": { "a": 2 } })),
            Output::Json(json!({ "a": 2 }))
        );
        assert_eq!(ok(json!({ "content": content })), Output::Json(json!({ "a": 1 })));
        let words = json!({ "content": [{ "type": "text", "text": "hello" }] });
        assert_eq!(ok(words), Output::Text("hello".into()));
        assert_eq!(ok(json!({ "content": [] })), Output::Nothing);
    }

    #[test]
    fn several_contents_and_links_are_kept_and_bytes_are_bytes() {
        let several = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        assert_eq!(ok(json!({ "content": several })), Output::Json(several.clone()));
        let link = json!([{ "type": "resource_link", "uri": "demo://1", "name": "one" }]);
        assert_eq!(ok(json!({ "content": link })), Output::Json(link));
        let picture = json!([{ "type": "image", "data": "aGk=", "mimeType": "image/png" }]);
        assert_eq!(
            ok(json!({ "content": picture })),
            Output::Binary { bytes: b"hi".into(), media_type: Some("image/png".into()) }
        );
        let broken = json!({ "content": [{ "type": "audio", "data": "???" }] });
        assert_eq!(read_any(broken).unwrap_err().kind, Kind::BadOutput);
    }

    #[test]
    fn a_declared_format_is_what_comes_or_a_refusal_that_says_what_came() {
        use OutputFormat::{Binary, Json, NdjsonStream, None as Nothing, Text};
        let answer = |contents: Value| json!({ "content": contents });
        let text = |text: &str| json!({ "type": "text", "text": text });
        let (one, two) = (text("{\"a\":1}"), text("{\"a\":2}"));
        let picture = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
        let said = json!({ "type": "resource", "resource": { "uri": "a:b", "text": "hi" } });
        let kept = json!({ "type": "resource", "resource": { "uri": "a:b", "blob": "aGk=" } });
        let records = vec![json!({ "a": 1 }), json!({ "a": 2 })];
        let hi = |media_type: Option<&str>| Output::binary(b"hi".into(), media_type);
        for (contents, format, output) in [
            (json!([one]), Json, Output::Json(json!({ "a": 1 }))),
            (json!([one, two]), Json, Output::Json(json!([one, two]))),
            (json!([one]), Text, Output::Text("{\"a\":1}".into())),
            (json!([text("a"), text("b")]), Text, Output::Text("a\nb".into())),
            (json!([said]), Text, Output::Text("hi".into())),
            (json!([]), Text, Output::Text(String::new())),
            (json!([one, two]), NdjsonStream, Output::Records(records.clone())),
            (json!([text("{\"a\":1}\n{\"a\":2}\n")]), NdjsonStream, Output::Records(records)),
            (json!([picture]), Binary, hi(Some("image/png"))),
            (json!([kept]), Binary, hi(None)),
            (json!([text("hi")]), Binary, hi(None)),
            (json!([picture]), Nothing, Output::Nothing),
        ] {
            assert_eq!(read_as(&answer(contents), format).unwrap(), output);
        }
        let words = json!([text("words")]);
        for (contents, format, told) in [
            (json!([picture]), Json, "the answer is 2 bytes of image/png, and `json` is declared"),
            (json!([picture]), Text, "the answer is 2 bytes of image/png, and `text` is declared"),
            (
                json!([one, picture]),
                Text,
                "the answer is a list of contents, and `text` is declared",
            ),
            (
                json!([one, picture]),
                Binary,
                "the answer is a list of contents, and `binary` is declared",
            ),
            (
                words.clone(),
                Json,
                "the answer is no JSON: expected a value, found `w` (line 1, column 1)",
            ),
            (json!([]), Json, "the answer is no JSON"),
            (
                words,
                NdjsonStream,
                "a line of the answer is no JSON: expected a value, found `w` (line 1, column 1)",
            ),
            (
                json!([text("{\"a\":1,\"a\":2}")]),
                Json,
                "the answer cannot be used: the key `a` appears twice in one object (line 1, column 8)",
            ),
        ] {
            let error = read_as(&answer(contents), format).unwrap_err();
            assert_eq!((error.kind, &*error.message), (Kind::BadOutput, told));
        }
    }

    #[test]
    fn what_is_structured_is_given_in_the_declared_format() {
        use OutputFormat::{Binary, Json, NdjsonStream, Text};
        let value = json!({ "a": 1 });
        let alone = json!({ "structuredContent": value });
        assert_eq!(read_as(&alone, Json).unwrap(), Output::Json(value.clone()));
        assert_eq!(read_as(&alone, NdjsonStream).unwrap(), Output::Records(vec![value.clone()]));
        assert_eq!(read_as(&alone, Text).unwrap(), Output::Text("{\"a\":1}".into()));
        let bytes = Output::Binary { bytes: b"{\"a\":1}".into(), media_type: None };
        assert_eq!(read_as(&alone, Binary).unwrap(), bytes);
        let words = json!([{ "type": "text", "text": "words" }]);
        let both = json!({ "structuredContent": value, "content": words });
        assert_eq!(read_as(&both, Text).unwrap(), Output::Text("words".into()));
    }

    #[test]
    fn the_standard_shape_of_a_failure_is_understood_where_it_is_declared() {
        let said =
            json!({ "error": { "code": "QUOTA", "message": "used up", "details": { "left": 0 } } });
        let text = json!([{ "type": "text", "text": said.to_string() }]);
        let standard = Declared { format: None, standard_errors: true };
        for answer in [
            json!({ "isError": true, "content": text }),
            json!({ "isError": true, "content": [], "structuredContent": said }),
        ] {
            let error = read(answer, standard).unwrap_err();
            assert_eq!((error.kind, &*error.message), (Kind::Failed, "used up"));
            assert_eq!(error.details, json!({ "code": "QUOTA", "details": { "left": 0 } }));
        }
        let raw = read_any(json!({ "isError": true, "content": text })).unwrap_err();
        assert_eq!(raw.message, said.to_string());
        let plain = json!({ "isError": true, "content": [{ "type": "text", "text": "no room" }] });
        assert_eq!(read(plain, standard).unwrap_err().message, "no room");
    }

    #[test]
    fn a_tool_that_failed_and_one_that_asks_are_told() {
        let answer = json!({ "isError": true, "content": [{ "type": "text", "text": "no room" }] });
        let error = read_any(answer).unwrap_err();
        assert_eq!((error.kind, &*error.message), (Kind::Failed, "no room"));
        let answer = json!({
            "resultType": "input_required",
            "inputRequests": { "q": { "method": "elicitation/create", "params": { "message": "Who?" } } },
        });
        let error = read_any(answer).unwrap_err();
        assert_eq!(error.kind, Kind::Unfinished);
        assert!(error.message.ends_with("Who?"), "{error}");
        assert!(error.details["inputRequests"]["q"].is_object());
        assert_eq!(read_any(json!({ "odd": 1 })).unwrap_err().kind, Kind::BadOutput);
    }

    #[test]
    fn refusals_of_the_protocol_are_told_apart() {
        let kind = |code, message: &str| {
            let message = message.to_owned();
            not_answered(AskError::Refused { code, message, data: None }, "t", None).kind
        };
        assert_eq!(kind(-32602, "Tool nope not found"), Kind::Unknown);
        assert_eq!(kind(-32602, "Unknown tool: nope"), Kind::Unknown);
        assert_eq!(kind(-32602, "Invalid arguments for tool add"), Kind::BadInput);
        assert_eq!(kind(-32603, "it broke"), Kind::Failed);
    }
}
