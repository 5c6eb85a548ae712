//! Errors of the protocol, as a client is told them.

use host::CallError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Code {
    NoJson,
    BadRequest,
    NoMethod,
    BadParameters,
    Internal,
    /// The headers say something else than the message.
    Headers,
    /// The client does not have what the request takes.
    Capability,
    /// Another revision is asked for than is spoken here.
    Revision,
    /// The older era's code for a resource that is not there.
    NoResource,
    /// The older era's code for a page that somebody has to visit first.
    Visit,
    /// As a server said it.
    Said(i32),
}

impl Code {
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::NoJson => -32700,
            Self::BadRequest => -32600,
            Self::NoMethod => -32601,
            Self::BadParameters => -32602,
            Self::Internal => -32603,
            Self::NoResource => -32002,
            Self::Visit => -32042,
            Self::Headers => -32020,
            Self::Capability => -32021,
            Self::Revision => -32022,
            Self::Said(number) => number,
        }
    }

    /// The one of a number, as a server said it.
    pub(crate) fn said(number: i32) -> Self {
        match number {
            -32002 => Self::NoResource,
            -32021 => Self::Capability,
            -32042 => Self::Visit,
            number => Self::Said(number),
        }
    }

    /// The status of an HTTP answer in the newer era.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::NoMethod => 404,
            Self::NoJson | Self::BadRequest | Self::Headers | Self::Capability | Self::Revision => {
                400
            }
            Self::BadParameters
            | Self::Internal
            | Self::NoResource
            | Self::Visit
            | Self::Said(_) => 200,
        }
    }
}

/// An error of the protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Error {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
    /// Whether the request itself was no good, whatever the code is.
    pub(crate) is_malformed: bool,
}

impl Error {
    /// What a server refused in the words of the protocol, where that is why a call came to nothing.
    pub(crate) fn of_server(error: &CallError) -> Option<Self> {
        let code = error.details["code"].as_i64().and_then(|code| i32::try_from(code).ok())?;
        let told = Self::new(Code::said(code), error.message.clone());
        Some(match error.details.get("data") {
            Some(data) => told.with(data.clone()),
            None => told,
        })
    }

    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, is_malformed: false }
    }

    /// The same, of a request that lacks what every request has.
    pub(crate) fn malformed(mut self) -> Self {
        self.is_malformed = true;
        self
    }

    pub(crate) fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The same as the newer era says it, which gave up codes of the older.
    pub(crate) fn of_newer_era(mut self) -> Self {
        self.code = match self.code {
            Code::NoResource => Code::BadParameters,
            Code::Visit => Code::Internal,
            code => code,
        };
        self
    }

    pub(crate) fn no_method(method: &str) -> Self {
        Self::new(Code::NoMethod, format!("there is no method `{method}` here"))
    }

    pub(crate) fn status(&self) -> u16 {
        if self.is_malformed { 400 } else { self.code.status() }
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut told = json!({ "code": self.code.number(), "message": self.message });
        if let Some(data) = &self.data {
            told["data"] = data.clone();
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_era_hears_no_code_that_it_gave_up() {
        for (said, told) in [(-32002, -32602), (-32042, -32603), (-32021, -32021), (-32000, -32000)]
        {
            let error = Error::new(Code::said(said), "words").with(json!({ "url": "u" }));
            assert_eq!(error.code.number(), said);
            let newer = error.clone().of_newer_era();
            assert_eq!((newer.code.number(), newer.data), (told, error.data));
        }
    }
}
