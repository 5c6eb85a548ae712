//! From what a server answered to a result, or to why there is none.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use manifest::model::OutputFormat;
use serde_json::{Value, json};

use super::session::{AskError, WantsLogin};
use crate::call::Output;
use crate::error::{CallError, Kind};
use crate::strict::strict;

/// JSON-RPC: there is no such method.
const NO_METHOD: i32 = -32601;

/// JSON-RPC: the parameters are not what the method takes.
const BAD_PARAMETERS: i32 = -32602;

/// Reads the answer to a call.
pub(super) fn read(mut answer: Value, format: Option<OutputFormat>) -> Result<Output, CallError> {
    if answer.get("resultType").and_then(Value::as_str) == Some("input_required") {
        return Err(wants_input(&answer));
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
        return Err(failed(&contents, structured));
    }
    let text_wanted = format == Some(OutputFormat::Text);
    let output = match structured {
        Some(structured) if !text_wanted || contents.is_empty() => Output::Json(structured),
        _ => of_contents(contents, format)?,
    };
    match (format, &output) {
        (Some(OutputFormat::None), _) => Ok(Output::Nothing),
        (Some(OutputFormat::Json), Output::Text(_) | Output::Nothing) => {
            let text = if let Output::Text(text) = &output { text } else { "" };
            Err(CallError::new(Kind::BadOutput, "the answer is no JSON").with("answer", text))
        }
        _ => Ok(output),
    }
}

fn of_contents(
    mut contents: Vec<Value>,
    format: Option<OutputFormat>,
) -> Result<Output, CallError> {
    if contents.len() > 1 {
        let texts: Option<Vec<_>> = contents.iter().map(text).collect();
        return Ok(match texts {
            Some(texts) if format == Some(OutputFormat::Text) => Output::Text(texts.join("\n")),
            _ => Output::Json(Value::Array(contents)),
        });
    }
    let Some(only) = contents.pop() else { return Ok(Output::Nothing) };
    if let Some(text) = text(&only) {
        return Ok(match strict(text) {
            Some(value) if format != Some(OutputFormat::Text) => Output::Json(value),
            _ => Output::Text(text.to_owned()),
        });
    }
    match only.get("type").and_then(Value::as_str) {
        Some("image" | "audio") => {
            let data = only.get("data").and_then(Value::as_str).unwrap_or_default();
            let bytes = STANDARD.decode(data).map_err(|_| odd("its bytes are no base64"))?;
            Ok(Output::binary(bytes, only.get("mimeType").and_then(Value::as_str)))
        }
        _ => Ok(Output::Json(Value::Array(vec![only]))),
    }
}

fn text(content: &Value) -> Option<&str> {
    (content.get("type")? == "text").then(|| content.get("text")?.as_str())?
}

/// The tool said itself that it failed.
fn failed(contents: &[Value], structured: Option<Value>) -> CallError {
    let texts: Vec<_> = contents.iter().filter_map(text).map(str::trim).collect();
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
    CallError::new(Kind::Failed, message).with("inputRequests", questions)
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
        AskError::Login(login) => wants_login(&login),
        AskError::TooMuch => {
            CallError::new(Kind::TooMuchOutput, "the tool wrote more output than it may")
        }
        AskError::Odd(words) => odd(&words),
    }
}

/// The server wants to know who is asking, or wants them to be allowed more.
fn wants_login(login: &WantsLogin) -> CallError {
    let is_for_more = login.error.as_deref() == Some("insufficient_scope");
    let message = match login.status {
        401 => "the server wants you to sign in",
        _ if is_for_more => "the server wants you to be granted more",
        _ => {
            let message = format!("the server refuses this: HTTP {}", login.status);
            return CallError::new(Kind::Failed, message).with("status", login.status);
        }
    };
    CallError::new(Kind::NeedsLogin, message)
        .with("status", login.status)
        .with("scopes", login.scopes.clone())
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

    fn ok(answer: Value) -> Output {
        read(answer, None).unwrap()
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
        assert_eq!(ok(words.clone()), Output::Text("hello".into()));
        assert_eq!(ok(json!({ "content": [] })), Output::Nothing);
        assert_eq!(
            read(json!({ "content": content }), Some(OutputFormat::Text)).unwrap(),
            Output::Text("{\"a\":1}".into())
        );
        let error = read(words, Some(OutputFormat::Json)).unwrap_err();
        assert_eq!(error.kind, Kind::BadOutput);
    }

    #[test]
    fn several_contents_and_links_are_kept_and_bytes_are_bytes() {
        let several = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        assert_eq!(ok(json!({ "content": several })), Output::Json(several.clone()));
        let joined = read(json!({ "content": several }), Some(OutputFormat::Text)).unwrap();
        assert_eq!(joined, Output::Text("a\nb".into()));
        let link = json!([{ "type": "resource_link", "uri": "demo://1", "name": "one" }]);
        assert_eq!(ok(json!({ "content": link })), Output::Json(link));
        let picture = json!([{ "type": "image", "data": "aGk=", "mimeType": "image/png" }]);
        assert_eq!(
            ok(json!({ "content": picture })),
            Output::Binary { bytes: b"hi".into(), media_type: Some("image/png".into()) }
        );
        let broken = json!({ "content": [{ "type": "audio", "data": "???" }] });
        assert_eq!(read(broken, None).unwrap_err().kind, Kind::BadOutput);
    }

    #[test]
    fn a_tool_that_failed_and_one_that_asks_are_told() {
        let answer = json!({ "isError": true, "content": [{ "type": "text", "text": "no room" }] });
        let error = read(answer, None).unwrap_err();
        assert_eq!((error.kind, &*error.message), (Kind::Failed, "no room"));
        let answer = json!({
            "resultType": "input_required",
            "inputRequests": { "q": { "method": "elicitation/create", "params": { "message": "Who?" } } },
        });
        let error = read(answer, None).unwrap_err();
        assert_eq!(error.kind, Kind::Failed);
        assert!(error.message.ends_with("Who?"), "{error}");
        assert!(error.details["inputRequests"]["q"].is_object());
        assert_eq!(read(json!({ "odd": 1 }), None).unwrap_err().kind, Kind::BadOutput);
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
