//! What publishing several packages would come to, where each may stand in the way of those after it.

use std::path::Path;

use registry::{Outcome, State};

use super::publish::new_version;
use crate::store::tokens::Token;
use crate::store::versions::PublishError;
use crate::store::{Store, StoreError};
use crate::token::{Role, Scope};
use crate::upload::Upload;

/// A registry that nobody asks and that is thrown away: what is published in it is judged as anywhere.
#[derive(Debug)]
pub struct Rehearsal {
    store: Store,
    token: Token,
}

impl Rehearsal {
    /// Begins with nothing, in a new file.
    pub async fn begin(file: &Path) -> Result<Self, StoreError> {
        let token = Token {
            id: "rehearsal".to_owned(),
            scope: Scope::All,
            role: Role::Publish,
            created_at: 0,
            expires_at: None,
            revoked_at: None,
            provenance: None,
        };
        Ok(Self { store: Store::file(file).await?, token })
    }

    /// Publishes a package, as far as what is known of it goes.
    pub async fn publish(&self, upload: &Upload) -> Result<Outcome, PublishError> {
        let new = new_version(upload, &self.token, State::Stable);
        self.store.publish(&new).await.map(|(outcome, _)| outcome)
    }
}
