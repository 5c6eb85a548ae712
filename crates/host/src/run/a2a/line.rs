//! Requests to one agent: JSON-RPC over HTTP, one request for each message.

use std::time::Duration;

use egress::http::{
    Client, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, SendError, Url,
};
use serde_json::{Value, json};

use super::version::Version;
use crate::error::{CallError, Kind};
use crate::login::challenge::WantsLogin;
use crate::run::http::not_sent;
use crate::strict::strict;

/// JSON-RPC: there is no such method.
const NO_METHOD: i64 = -32601;

/// JSON-RPC: the parameters are not what the method takes.
const BAD_PARAMETERS: i64 = -32602;

/// A2A: the agent does not take this kind of content.
const BAD_CONTENT: i64 = -32005;

/// A2A: the agent itself was given nonsense.
const BAD_ANSWER: i64 = -32006;

/// A2A: the agent wants an extension that was not offered.
const NEEDS_EXTENSION: i64 = -32008;

/// A2A: the agent does not speak this version.
const NO_VERSION: i64 = -32009;

/// What requests to one agent share.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) client: Client,
    pub(super) endpoint: Url,
    /// What says who is asking; secrets among it are marked as such.
    pub(super) headers: HeaderMap,
    /// Whether that is a key, which no sign-in takes the place of.
    pub(super) has_key: bool,
    /// Bytes of one answer.
    pub(super) most: u64,
}

/// Why a question has no answer.
#[derive(Debug)]
pub(super) enum AskError {
    /// There was no response.
    NotSent(Box<(SendError, Url)>),
    /// The agent wants to know who is asking, or wants them to be allowed more.
    Login(WantsLogin),
    /// The response is none of the protocol.
    Status(Box<Response>),
    /// The agent said no.
    Refused { code: i64, message: String, data: Option<Value> },
    /// The agent answers only as a stream.
    Stream,
    /// The agent broke the protocol.
    Odd(&'static str),
    /// This machine has no randomness to make an id of.
    NoRandomness,
}

impl Line {
    /// Asks the agent something.
    pub(super) async fn ask(
        &self,
        version: Version,
        method: &str,
        params: Value,
        within: Duration,
    ) -> Result<Value, AskError> {
        let id = fresh_id()?;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut request = Request::new(Method::POST, self.endpoint.clone());
        request.headers.extend(self.headers.clone());
        let json = HeaderValue::from_static("application/json");
        request.headers.insert(HeaderName::from_static("content-type"), json.clone());
        request.headers.insert(HeaderName::from_static("accept"), json);
        if let Some(version) = version.header() {
            let name = HeaderName::from_static("a2a-version");
            request.headers.insert(name, HeaderValue::from_static(version));
        }
        request.body = Some(body.to_string().into_bytes());
        request.most = self.most;
        request.within = within;
        // What a message led to stays with whom it was sent to.
        request.redirects = 0;
        let response = self
            .client
            .send(request)
            .await
            .map_err(|error| AskError::NotSent(Box::new((error, self.endpoint.clone()))))?;
        let login = WantsLogin::of(response.status, &response.headers);
        match login.filter(|login| login.is_for_login() && !self.has_key) {
            Some(login) => Err(AskError::Login(login)),
            None => read(response, &id),
        }
    }
}

/// An id that nobody has used or can guess.
pub(super) fn fresh_id() -> Result<String, AskError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| AskError::NoRandomness)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read(response: Response, id: &str) -> Result<Value, AskError> {
    let header = |name: &'static str| response.header(&HeaderName::from_static(name));
    if header("content-type").is_some_and(|kind| kind.trim().starts_with("text/event-stream")) {
        return Err(AskError::Stream);
    }
    if header("content-encoding").is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
        return Err(AskError::Odd("its answer is packed, which was not asked for"));
    }
    let answer = std::str::from_utf8(&response.body).ok().and_then(strict);
    let answer = answer.filter(|answer| answer.get("jsonrpc") == Some(&json!("2.0")));
    let Some(mut answer) = answer else {
        return Err(if response.status.is_success() {
            AskError::Odd("its answer is no JSON-RPC")
        } else {
            AskError::Status(Box::new(response))
        });
    };
    let mut member = |name: &str| answer.get_mut(name).map(Value::take);
    let (told_id, result, error) = (member("id"), member("result"), member("error"));
    let is_ours = told_id == Some(id.into());
    match (result, error.filter(|error| !error.is_null())) {
        // Who could not read the question cannot know its id.
        (None | Some(Value::Null), Some(error)) if is_ours || told_id == Some(Value::Null) => {
            refused(&error)
        }
        (Some(_), None) if is_ours && !response.status.is_success() => {
            Err(AskError::Status(Box::new(response)))
        }
        (Some(result), None) if is_ours => Ok(result),
        (Some(_), None) | (None | Some(Value::Null), Some(_)) => {
            Err(AskError::Odd("it answers what it was not asked"))
        }
        (Some(_), Some(_)) | (None, None) => {
            Err(AskError::Odd("its answer must have either a result or an error"))
        }
    }
}

fn refused(error: &Value) -> Result<Value, AskError> {
    let code = error.get("code").and_then(Value::as_i64);
    let message = error.get("message").and_then(Value::as_str);
    let (Some(code), Some(message)) = (code, message) else {
        return Err(AskError::Odd("its error has no code or no message"));
    };
    let data = error.get("data").filter(|data| !data.is_null()).cloned();
    Err(AskError::Refused { code, message: message.to_owned(), data })
}

impl AskError {
    /// Whether the agent understood nothing of it, so that it may be asked in other words.
    pub(super) fn is_about_version(&self) -> bool {
        matches!(self, Self::Refused { code: NO_METHOD | NO_VERSION, .. })
    }

    /// Whether the same question may well be answered next time.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::NotSent(sent) => sent.0.is_transient(),
            Self::Status(response) => matches!(response.status.as_u16(), 429 | 502 | 503 | 504),
            Self::Login(_)
            | Self::Refused { .. }
            | Self::Stream
            | Self::Odd(_)
            | Self::NoRandomness => false,
        }
    }
}

impl From<AskError> for CallError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::NotSent(sent) => not_sent(&sent.0, &sent.1),
            AskError::Login(login) => login.to_error("agent"),
            AskError::Status(response) => {
                let message = format!("the agent answered {}", response.status);
                Self::new(Kind::Failed, message)
                    .with("status", response.status.as_u16())
                    .with("body", String::from_utf8_lossy(&response.body))
            }
            AskError::Refused { code, message, data } => {
                let kind = match code {
                    NO_METHOD | NO_VERSION | NEEDS_EXTENSION => Kind::Unavailable,
                    BAD_PARAMETERS | BAD_CONTENT => Kind::BadInput,
                    BAD_ANSWER => Kind::BadOutput,
                    _ => Kind::Failed,
                };
                let error = Self::new(kind, message).with("code", code);
                match data {
                    Some(data) => error.with("data", data),
                    None => error,
                }
            }
            AskError::Stream => {
                let message = "the agent answers only as a stream, which is not understood here";
                Self::new(Kind::Unavailable, message)
            }
            AskError::Odd(how) => odd(how),
            AskError::NoRandomness => {
                Self::new(Kind::Unavailable, "this machine has no randomness to give")
            }
        }
    }
}

pub(super) fn odd(how: &str) -> CallError {
    CallError::new(Kind::BadOutput, format!("the agent broke the protocol: {how}"))
}

#[cfg(test)]
mod tests {
    use egress::http::StatusCode;

    use super::*;

    fn answered(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Response {
        Response {
            status: StatusCode::from_u16(status).unwrap(),
            headers: headers
                .iter()
                .map(|(name, value)| {
                    (HeaderName::from_static(name), HeaderValue::from_static(value))
                })
                .collect(),
            body: body.into(),
            url: Url::parse("https://a.test/").unwrap(),
            redirects: 0,
        }
    }

    fn kind(status: u16, body: &str) -> Kind {
        CallError::from(read(answered(status, &[], body), "7").unwrap_err()).kind
    }

    #[test]
    fn only_the_answer_to_this_question_is_one() {
        let ok = read(answered(200, &[], r#"{"jsonrpc":"2.0","id":"7","result":{"a":1}}"#), "7");
        assert_eq!(ok.unwrap(), json!({ "a": 1 }));
        for odd in [
            "",
            "hello",
            "[]",
            r#"{"id":"7","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"8","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7"}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":{},"error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":"7","id":"7","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"8","error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":"7","error":"no"}"#,
        ] {
            assert_eq!(kind(200, odd), Kind::BadOutput, "{odd}");
        }
    }

    #[test]
    fn refusals_have_kinds() {
        let refused = |id: &str, code: i64| {
            let error = json!({ "code": code, "message": "m", "data": [1] });
            kind(400, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
        };
        assert_eq!(refused("\"7\"", -32603), Kind::Failed);
        assert_eq!(refused("null", -32700), Kind::Failed);
        assert_eq!(refused("\"7\"", -32602), Kind::BadInput);
        assert_eq!(refused("\"7\"", -32601), Kind::Unavailable);
        assert_eq!(kind(401, "who are you"), Kind::Failed);
        assert_eq!(kind(500, r#"{"jsonrpc":"2.0","id":"7","result":{}}"#), Kind::Failed);
    }

    #[test]
    fn streams_and_packed_answers_are_refused() {
        let stream = answered(200, &[("content-type", "text/event-stream; charset=utf-8")], "");
        assert!(matches!(read(stream, "7"), Err(AskError::Stream)));
        let packed = answered(200, &[("content-encoding", "gzip")], "");
        assert!(matches!(read(packed, "7"), Err(AskError::Odd(_))));
    }
}
