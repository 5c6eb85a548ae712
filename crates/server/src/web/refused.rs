//! The answer that is no success.

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use registry::{ErrorBody, ErrorCode};
use serde_json::Value;

use super::{answer, watch};
use crate::blobs::BlobError;
use crate::hub::FormError;
use crate::service::ChangeError;
use crate::store::StoreError;
use crate::store::versions::PublishError;
use crate::token::Action;
use crate::trouble::Trouble;
use crate::upload::UploadError;

/// How much of a text from outside is told again.
const TOLD: usize = 200;
/// What is said to whoever publishes what is being removed at this moment.
const BUSY: &str = "the tool is being changed by others at this moment; come again";

/// An answer that is no success, in the error model.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    body: Box<ErrorBody>,
    header: Option<Box<(header::HeaderName, HeaderValue)>>,
}

impl Refused {
    pub(super) fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status, body: Box::new(ErrorBody::new(code, message)), header: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidRequest, message)
    }

    pub(super) fn unknown_path(path: &str) -> Self {
        let message = format!("there is nothing at `{}`", clip(path));
        Self::new(StatusCode::NOT_FOUND, ErrorCode::InvalidRequest, message)
    }

    pub(super) fn wrong_method(method: &Method) -> Self {
        let message = format!("`{}` cannot be done here", clip(method.as_str()));
        Self::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::InvalidRequest, message)
    }

    pub(super) fn no_tool(asked: &str) -> Self {
        let message = format!("Tool `{}` not found", clip(asked));
        Self::new(StatusCode::NOT_FOUND, ErrorCode::ToolNotFound, message)
    }

    pub(super) fn no_version(asked: &str, version: Option<&str>) -> Self {
        let message = match version {
            Some(version) => format!("Version `{}` of `{}` not found", clip(version), clip(asked)),
            None => format!("No version of `{}` is offered", clip(asked)),
        };
        Self::new(StatusCode::NOT_FOUND, ErrorCode::VersionNotFound, message)
    }

    pub(super) fn too_large(what: &str, most: usize) -> Self {
        let message = format!("the {what} has more than {most} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::InvalidRequest, message)
            .detail("limit", most)
    }

    pub(super) fn no_token(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized, message)
            .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorCode::Forbidden, message)
    }

    /// The token is not for that.
    pub(super) fn role(action: Action) -> Self {
        let what = match action {
            Action::Read => "reading",
            Action::Publish => "publishing",
            Action::Review => "reviewing",
            Action::Administer => "saying who may do what",
        };
        Self::forbidden(format!("the token is not for {what}"))
    }

    /// The token is not for these names.
    pub(super) fn namespace(namespace: String) -> Self {
        let message = format!("the token is not for the namespace `{}`", clip(&namespace));
        Self::forbidden(message).detail("namespace", namespace)
    }

    pub(super) fn too_often(wait: std::time::Duration) -> Self {
        let seconds = wait.as_secs() + 1;
        let ending = if seconds == 1 { "" } else { "s" };
        let message = format!("too many requests; wait {seconds} second{ending}");
        Self::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::TooManyRequests, message)
            .detail("retryAfter", seconds)
            .header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// Why a tool is not found.
    pub(super) fn found(error: crate::store::versions::FindError, asked: &str) -> Self {
        use crate::store::versions::FindError;
        match error {
            FindError::NoPackage => Self::no_tool(asked),
            FindError::NoVersion => Self::no_version(asked, None),
            FindError::Store(error) => error.into(),
        }
    }

    /// Whether it is that whoever asks is not let in.
    pub(super) fn is_unauthorized(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }

    pub(super) fn unavailable(message: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Unavailable, message)
            .header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// Waiting does not help, so nobody is asked to come again.
    fn no_room() -> Self {
        let message = "the registry has no room left; tell whoever runs it";
        Self::new(StatusCode::INSUFFICIENT_STORAGE, ErrorCode::Unavailable, message)
    }

    /// What it is about is for the operator, who finds it by `haft registry check`; strangers learn nothing.
    pub(super) fn internal(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::InternalError, message)
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn message(&self) -> &str {
        &self.body.error.message
    }

    pub(super) fn header(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// What is said beside the body.
    pub(super) fn with_header(&self) -> Option<&(header::HeaderName, HeaderValue)> {
        self.header.as_deref()
    }

    pub(super) fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.body.error.details.insert(name.to_owned(), value.into());
        self
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let text = serde_json::to_string(&self.body).unwrap_or_default();
        let mut response = answer::json(self.status, text);
        // For people it is told in other words.
        response.extensions_mut().insert(*self.body);
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(header) = self.header {
            headers.insert(header.0, header.1);
        }
        response
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        watch::note_cause(&error);
        if error.is_full() {
            return Refused::no_room();
        }
        if let StoreError::Query { trouble: Trouble::Row, .. } = error {
            return Refused::internal("what is kept of it is damaged");
        }
        Refused::unavailable("the database does not answer")
    }
}

impl From<BlobError> for Refused {
    fn from(error: BlobError) -> Self {
        watch::note_cause(&error);
        match error {
            BlobError::Missing(_) | BlobError::Damaged(_) => Refused::internal(&error.to_string()),
            BlobError::OtherRegistry | BlobError::NoRegistry => {
                Refused::unavailable(&error.to_string())
            }
            BlobError::Store { trouble: Trouble::NoRoom, .. } => Refused::no_room(),
            BlobError::Address(_) | BlobError::Store { .. } => {
                Refused::unavailable("the place of the packages does not answer")
            }
        }
    }
}

impl From<UploadError> for Refused {
    fn from(error: UploadError) -> Self {
        let refused = Refused::invalid(error.to_string());
        match error {
            UploadError::Invalid(told) => {
                refused.detail("findings", serde_json::to_value(told).unwrap_or_default())
            }
            UploadError::Refused(cause) => match cause.code() {
                Some(code) => refused.detail("refusal", code.name()),
                None => refused,
            },
            UploadError::ReportOfOther(digest) => refused.detail("sha256", digest),
            UploadError::Unknown
            | UploadError::ReportOfNoTest(_)
            | UploadError::NotOne(_)
            | UploadError::Broken(_)
            | UploadError::NoId
            | UploadError::Name(..)
            | UploadError::Entry(_)
            | UploadError::Pack(_) => refused,
        }
    }
}

impl From<FormError> for Refused {
    fn from(error: FormError) -> Self {
        match error {
            FormError::Upload(error) => error.into(),
            FormError::Missing(fields) => {
                Refused::invalid(FormError::Missing(fields.clone()).to_string())
                    .detail("fields", fields)
            }
            FormError::Name
            | FormError::Letter(_)
            | FormError::Long(_)
            | FormError::FileName(_)
            | FormError::Kind => Refused::invalid(error.to_string()),
        }
    }
}

impl Refused {
    /// What is answered when something is not published or taken back.
    pub(super) fn change(error: ChangeError, asked: &str, version: Option<&str>) -> Self {
        use crate::store::versions::FindError;
        use crate::store::yanks::Standing;
        match error {
            ChangeError::Upload(error) => error.into(),
            ChangeError::Role(action) => Self::role(action),
            ChangeError::OwnVersion => {
                Self::forbidden("whoever published a version does not approve it")
            }
            ChangeError::Held(by) => Self::forbidden(match by {
                Standing::Operator => {
                    "an operator of the registry took this version back; only one of them, with an admin token for all namespaces, offers it again"
                }
                Standing::Administrator | Standing::Publisher => {
                    "an administrator took this version back; only an administrator offers it again"
                }
            }),
            ChangeError::Namespace(namespace) => Self::namespace(namespace),
            ChangeError::TooManyOwners => Self::new(
                StatusCode::CONFLICT,
                ErrorCode::Conflict,
                format!("a tool has at most {} owners", crate::store::owners::MOST),
            ),
            ChangeError::OwnNamespace(namespace) => {
                let name = clip(&namespace);
                let message = format!("`{name}` is the tool's own namespace, which owns it always");
                Self::new(StatusCode::CONFLICT, ErrorCode::Conflict, message)
            }
            ChangeError::Conflict(conflict) => conflict.into(),
            ChangeError::NotFound(FindError::NoPackage) => Self::no_tool(asked),
            ChangeError::NotFound(FindError::NoVersion) => Self::no_version(asked, version),
            ChangeError::NotFound(FindError::Store(error)) | ChangeError::Store(error) => {
                error.into()
            }
            ChangeError::Form(error) => error.into(),
            ChangeError::Blob(error) => error.into(),
            ChangeError::BrokenOff => Self::internal("the registry failed"),
            ChangeError::Busy => Self::unavailable(BUSY),
        }
    }
}

impl From<PublishError> for Refused {
    fn from(error: PublishError) -> Self {
        let conflict = Self::new(StatusCode::CONFLICT, ErrorCode::Conflict, error.to_string());
        match error {
            PublishError::OtherBytes(digest) => conflict.detail("sha256", digest),
            PublishError::OtherDialect(dialect) => conflict.detail("dialect", dialect),
            PublishError::OtherName(name) => conflict.detail("name", name),
            PublishError::Taken(id) => conflict.detail("id", id),
            PublishError::FileGone | PublishError::FileUnderway => Self::unavailable(BUSY),
            PublishError::Store(error) => error.into(),
        }
    }
}

/// The beginning of a text from outside, without what would steer a terminal.
pub(super) fn clip(text: &str) -> String {
    let shown: String =
        text.chars().take(TOLD).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if shown.len() < text.len() && text.chars().count() > TOLD { shown + "…" } else { shown }
}
