//! The answer that is no success, and its codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::read::{Checked, Fault};

/// What every answer holds that is no success.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetail {
    /// Its code; another registry may have codes of its own.
    pub code: String,
    /// What a person is told.
    pub message: String,
    /// What a program may want to know.
    #[serde(default)]
    pub details: Map<String, Value>,
}

impl ErrorBody {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let error = ErrorDetail {
            code: code.name().to_owned(),
            message: message.into(),
            details: Map::new(),
        };
        Self { error }
    }
}

/// A finding in a line: where in its document, unless that is the whole of it, and what is wrong.
pub fn found(pointer: &str, message: &str) -> String {
    if pointer.is_empty() { message.to_owned() } else { format!("{pointer}: {message}") }
}

impl ErrorBody {
    /// The longest message that is told, in bytes.
    const LONGEST: usize = 4 << 10;
}

impl Checked for ErrorBody {
    fn check(&self) -> Result<(), Fault> {
        match self.error.message.len() + self.error.code.len() {
            0..=Self::LONGEST => Ok(()),
            _ => Err(Fault::Long("message")),
        }
    }
}

/// The codes a registry of ours answers with. The first five are those of the API, the others our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// The request cannot be understood, or asks for what is not there to be asked for.
    InvalidRequest,
    /// There is no such tool.
    ToolNotFound,
    /// There is no such version.
    VersionNotFound,
    /// The registry failed.
    InternalError,
    /// The tool is none that runs in Node.
    UnsupportedRuntime,
    /// There is no token, or none that is known.
    Unauthorized,
    /// The token is not for that.
    Forbidden,
    /// Something else is there already.
    Conflict,
    /// Later it may work.
    Unavailable,
    /// Somebody asks too often.
    TooManyRequests,
}

impl ErrorCode {
    /// Every code with its name.
    pub const ALL: [(ErrorCode, &'static str); 10] = [
        (ErrorCode::InvalidRequest, "INVALID_REQUEST"),
        (ErrorCode::ToolNotFound, "TOOL_NOT_FOUND"),
        (ErrorCode::VersionNotFound, "VERSION_NOT_FOUND"),
        (ErrorCode::InternalError, "INTERNAL_ERROR"),
        (ErrorCode::UnsupportedRuntime, "UNSUPPORTED_RUNTIME"),
        (ErrorCode::Unauthorized, "UNAUTHORIZED"),
        (ErrorCode::Forbidden, "FORBIDDEN"),
        (ErrorCode::Conflict, "CONFLICT"),
        (ErrorCode::Unavailable, "UNAVAILABLE"),
        (ErrorCode::TooManyRequests, "TOO_MANY_REQUESTS"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The code of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(code, _)| *code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_name() {
        for (code, name) in ErrorCode::ALL {
            assert_eq!((code.name(), ErrorCode::named(name)), (name, Some(code)));
        }
        assert_eq!(ErrorCode::named("tool_not_found"), None);
    }

    #[test]
    fn an_error_without_details_has_an_empty_object() {
        let body = ErrorBody::new(ErrorCode::ToolNotFound, "Tool `tool:a.b` not found");
        let text = serde_json::to_string(&body).unwrap();
        let expected = r#"{"error":{"code":"TOOL_NOT_FOUND","message":"Tool `tool:a.b` not found","details":{}}}"#;
        assert_eq!(text, expected);
        let bare = r#"{"error":{"code":"X","message":"y"}}"#;
        assert!(serde_json::from_str::<ErrorBody>(bare).unwrap().error.details.is_empty());
    }
}
