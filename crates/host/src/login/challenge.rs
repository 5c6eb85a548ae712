//! What an answer says that wants somebody to sign in, or wants them to be allowed more.

use egress::http::{Challenge, HeaderMap, HeaderName, StatusCode, challenges};

use super::metadata::{is_scope, split_scopes};
use crate::error::{CallError, Kind};

/// What an answer says that wants to know who is asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantsLogin {
    /// The status of the answer.
    pub(crate) status: u16,
    /// Its word for what is wrong.
    pub(crate) error: Option<String>,
    /// The scopes it wants.
    pub(crate) scopes: Vec<String>,
}

/// The first challenge of an answer that wants a bearer's token.
pub(super) fn bearer(headers: &HeaderMap) -> Option<Challenge> {
    const WWW_AUTHENTICATE: HeaderName = HeaderName::from_static("www-authenticate");
    let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|one| one.to_str().ok());
    texts.flat_map(challenges).find(|one| one.scheme == "bearer")
}

impl WantsLogin {
    /// What an answer means that is no other refusal.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return None;
        }
        let bearer = bearer(headers);
        let parameter = |name: &str| bearer.as_ref().and_then(|one| one.parameter(name));
        Some(Self {
            status: status.as_u16(),
            error: parameter("error").filter(|error| is_scope(error)).map(str::to_owned),
            scopes: parameter("scope").map(split_scopes).unwrap_or_default(),
        })
    }

    /// Whether signing in would help: one that knows who is asking, and does not say what they lack, refuses them.
    pub(crate) fn is_for_login(&self) -> bool {
        self.status == 401 || self.error.as_deref() == Some("insufficient_scope")
    }

    /// Why there is no answer, where signing in would help; `who` wants it.
    pub(crate) fn to_error(&self, who: &str) -> CallError {
        let message = match self.status {
            401 => format!("the {who} wants you to sign in"),
            _ if self.is_for_login() => format!("the {who} wants you to be granted more"),
            status => {
                let message = format!("the {who} refuses this: HTTP {status}");
                return CallError::new(Kind::Failed, message).with("status", status);
            }
        };
        CallError::new(Kind::NeedsLogin, message)
            .with("status", self.status)
            .with("scopes", self.scopes.clone())
    }
}

impl std::fmt::Display for WantsLogin {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "HTTP {}", self.status)
    }
}

impl std::error::Error for WantsLogin {}
