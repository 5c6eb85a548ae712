//! What an import would come to, as far as the things that are imported stand in each other's way.

use package::limits::Limits;
use registry::Outcome;
use server::service;
use server::store::versions::PublishError;
use server::upload::Upload;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::exit::{Exit, Failure};
use crate::owner;

/// A registry for nobody, gone when this is dropped.
pub(super) struct Rehearsal {
    registry: service::Rehearsal,
    /// Its connections live no longer than this.
    runtime: Runtime,
    _folder: TempDir,
}

impl Rehearsal {
    pub(super) fn begin() -> Result<Self, Failure> {
        let cannot = |error| {
            Failure::new(Exit::Unavailable, "failed to make a folder to try it in").cause(error)
        };
        let folder = tempfile::tempdir().map_err(cannot)?;
        let (runtime, file) = (owner::runtime()?, folder.path().join("registry.db"));
        let registry = runtime
            .block_on(service::Rehearsal::begin(&file))
            .map_err(|error| Failure::of(Exit::Unavailable, &error))?;
        Ok(Self { registry, runtime, _folder: folder })
    }

    /// Publishes what the registry that is meant would take; or why it is refused.
    pub(super) fn publish(
        &self,
        bytes: Vec<u8>,
        id: Option<&str>,
    ) -> Result<Result<Outcome, String>, Failure> {
        let upload = match Upload::read(bytes, id, &Limits::DEFAULT) {
            Ok(upload) => upload,
            Err(error) => return Ok(Err(error.to_string())),
        };
        match self.runtime.block_on(self.registry.publish(&upload)) {
            Ok(outcome) => Ok(Ok(outcome)),
            Err(PublishError::Store(error)) => Err(Failure::of(Exit::Unavailable, &error)),
            Err(conflict) => Ok(Err(conflict.to_string())),
        }
    }
}
