//! Why a registry is not opened, not changed, or has no token for somebody.

use std::fmt;

use crate::blobs::BlobError;
use crate::hub::FormError;
use crate::store::StoreError;
use crate::store::versions::{FindError, PublishError};
use crate::store::yanks::Standing;
use crate::token::Action;
use crate::upload::UploadError;

/// Why a registry is not opened.
#[derive(Debug)]
pub enum OpenError {
    /// The database refuses.
    Store(StoreError),
    /// The store of files refuses, or is that of another registry.
    Blob(BlobError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Store(error) => error.fmt(out),
            OpenError::Blob(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Store(error) => error.source(),
            OpenError::Blob(error) => error.source(),
        }
    }
}

/// Why something is not published or taken back.
#[derive(Debug)]
pub enum ChangeError {
    /// The bytes are no package that may be published.
    Upload(UploadError),
    /// The token is not for that.
    Role(Action),
    /// Whoever published a version does not approve it.
    OwnVersion,
    /// Somebody who may do more took it back.
    Held(Standing),
    /// The token is not for this namespace.
    Namespace(String),
    /// The package has as many owners as it may.
    TooManyOwners,
    /// The package's own namespace is no owner beside it, and cannot be taken away.
    OwnNamespace(String),
    /// Something else is there already.
    Conflict(PublishError),
    /// There is no such package or version.
    NotFound(FindError),
    /// The database refuses.
    Store(StoreError),
    /// The store of files refuses.
    Blob(BlobError),
    /// The form is no tool.
    Form(FormError),
    /// The work was broken off.
    BrokenOff,
    /// Too many publish the same tool at once, or its file is being removed at this moment.
    Busy,
}

impl ChangeError {
    pub(super) fn conflict(error: PublishError) -> Self {
        match error {
            PublishError::Store(error) => ChangeError::Store(error),
            conflict => ChangeError::Conflict(conflict),
        }
    }
}

/// Why there is no token.
#[derive(Debug)]
pub enum MakeTokenError {
    /// The system gives no randomness.
    Randomness(crate::token::NoRandomness),
    /// The database refuses.
    Store(StoreError),
}
