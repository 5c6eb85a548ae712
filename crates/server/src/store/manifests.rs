//! The manifest of a version, as it was written.

use super::versions::FindError;
use super::{Store, StoreError};

const READ: &str = "read a manifest";

impl Store {
    /// The manifest of a version of the package of this id. Whether it may be shown, [`Store::find`] says.
    pub async fn manifest(&self, id: &str, version: &str) -> Result<Vec<u8>, FindError> {
        let found: Option<Vec<u8>> =
            sqlx::query_scalar("SELECT manifest FROM versions WHERE package = $1 AND version = $2")
                .bind(id)
                .bind(version)
                .fetch_optional(&self.pool)
                .await
                .map_err(StoreError::query(READ))?;
        found.ok_or(FindError::NoVersion)
    }
}
