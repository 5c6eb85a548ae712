//! Publishing: first the file, then all that is known of it.

use std::sync::Arc;

use bytes::Bytes;
use package::limits::Limits;
use registry::{Channel, Outcome, Published, State, TestReport};

use super::{ChangeError, POLL, Registry, now};
use crate::hub::{HubForm, next_version};
use crate::store::tokens::Token;
use crate::store::versions::{FindError, NewVersion, PublishError, signed};
use crate::token::Action;
use crate::upload::{Upload, UploadError};
use trace::{Place, part};

/// How often the file of a publish may be removed meanwhile before whoever publishes is asked to come again.
const REMOVED_BETWEEN: usize = 10;

/// How often a version is looked for that nobody else has taken meanwhile.
const ATTEMPTS: usize = 8;

/// What is done with a package that was sent.
const LOOK: &str = "look at the package";

/// A package as it is sent to be published.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its file, or a bundle.
    pub bytes: Bytes,
    /// The id of a manifest that has none of its own.
    pub id: Option<String>,
    /// What its publisher reports of its tests.
    pub report: Option<TestReport>,
}

impl Sent {
    fn read(self, limits: &Limits) -> Result<Upload, UploadError> {
        let mut upload = Upload::read(Vec::from(self.bytes), self.id.as_deref(), limits)?;
        if let Some(report) = self.report {
            upload.report(report)?;
        }
        Ok(upload)
    }
}

impl Registry {
    /// Publishes a package: first its file is made durable, then all that is known of it appears in one step.
    pub async fn publish(
        &self,
        token: &Token,
        sent: Sent,
        channel: Channel,
        room: impl Send + 'static,
    ) -> Result<Published, ChangeError> {
        let (upload, _room) = self.look_at(sent, room).await?;
        self.publish_read(token, upload, channel).await
    }

    /// What publishing a package would come to: the same judges say it, and nothing is changed.
    pub async fn foresee(
        &self,
        token: &Token,
        sent: Sent,
        channel: Channel,
        room: impl Send + 'static,
    ) -> Result<Published, ChangeError> {
        let (mut upload, _room) = self.look_at(sent, room).await?;
        let new = self.admit(token, &mut upload, channel).await?;
        let foreseen = self.store.foresee(&new).await.map_err(ChangeError::conflict)?;
        Ok(told(new, foreseen, upload))
    }

    /// Reads what was sent. That goes on when whoever sent it hangs up, and so the room is taken until it is done.
    async fn look_at<R: Send + 'static>(
        &self,
        sent: Sent,
        room: R,
    ) -> Result<(Upload, R), ChangeError> {
        let limits = self.settings.limits;
        let work = move || (sent.read(&limits), room);
        let _looking = part(Place::Here, LOOK);
        let (read, room) =
            tokio::task::spawn_blocking(work).await.map_err(|_| ChangeError::BrokenOff)?;
        Ok((read.map_err(ChangeError::Upload)?, room))
    }

    /// Publishes the next version of a tool from the form of a hub. Two at once get a version each.
    pub async fn publish_form(
        &self,
        token: &Token,
        form: Arc<HubForm>,
        channel: Channel,
        mut room: impl Send + 'static,
    ) -> Result<Published, ChangeError> {
        let id = form.id().map_err(ChangeError::Form)?;
        for _ in 0..ATTEMPTS {
            // Also those that wait, or were refused, have their numbers.
            let known = match self.store.versions_hidden(&id).await {
                Ok(known) => known.versions,
                Err(FindError::Store(error)) => return Err(ChangeError::Store(error)),
                Err(_) => Vec::new(),
            };
            let version = next_version(known.iter().map(|known| known.version.as_str()));
            let (limits, form) = (self.settings.limits, Arc::clone(&form));
            let work = move || (form.upload(&version, &limits), room);
            let looking = part(Place::Here, LOOK);
            let read;
            (read, room) =
                tokio::task::spawn_blocking(work).await.map_err(|_| ChangeError::BrokenOff)?;
            drop(looking);
            match self.publish_read(token, read.map_err(ChangeError::Form)?, channel).await {
                Err(ChangeError::Conflict(PublishError::OtherBytes(_))) => {}
                Ok(Published { outcome: Outcome::Unchanged, .. }) => {}
                done => return done,
            }
        }
        Err(ChangeError::Busy)
    }

    /// Publishes what was looked at.
    async fn publish_read(
        &self,
        token: &Token,
        mut upload: Upload,
        channel: Channel,
    ) -> Result<Published, ChangeError> {
        let new = self.admit(token, &mut upload, channel).await?;
        let bytes = Bytes::from(std::mem::take(&mut upload.bytes));
        let size = bytes.len() as u64;
        let became = self.put_and_publish(&upload, &new, bytes).await?;
        self.metrics.published(became.0, size);
        if became.0 == Outcome::Published {
            // It is found here at once. If that fails, it is found at the next tick.
            self.take_in().await;
        }
        Ok(told(new, became, upload))
    }

    /// The version that would be published, where the token is for that.
    async fn admit(
        &self,
        token: &Token,
        upload: &mut Upload,
        channel: Channel,
    ) -> Result<NewVersion, ChangeError> {
        let names = upload.namespaces.iter().map(String::as_str);
        self.check(token, Action::Publish, &upload.describe.id, names).await?;
        upload.describe.provenance.clone_from(&token.provenance);
        let is_held = self.settings.quarantine.holds(&upload.namespaces[0]);
        let state = if is_held { State::Quarantine } else { channel.into() };
        Ok(new_version(upload, token, state))
    }

    /// Both steps; again, when somebody removed the file between them because no version had it yet.
    async fn put_and_publish(
        &self,
        upload: &Upload,
        new: &NewVersion,
        bytes: Bytes,
    ) -> Result<(Outcome, State), ChangeError> {
        self.check_bound().await.map_err(ChangeError::Blob)?;
        // What will be refused leaves no file behind, unless somebody else publishes at the same moment.
        self.store.foresee(new).await.map_err(ChangeError::conflict)?;
        for _ in 0..REMOVED_BETWEEN {
            self.blobs.put(upload.digest, bytes.clone()).await.map_err(ChangeError::Blob)?;
            return match self.store.publish(new).await {
                Ok(done) => Ok(done),
                Err(PublishError::FileGone) => continue,
                Err(PublishError::FileUnderway) => {
                    tokio::time::sleep(POLL).await;
                    continue;
                }
                Err(error) => Err(ChangeError::conflict(error)),
            };
        }
        Err(ChangeError::Busy)
    }
}

fn told(new: NewVersion, (outcome, channel): (Outcome, State), upload: Upload) -> Published {
    Published {
        id: new.id,
        name: new.name,
        version: new.version,
        sha256: new.digest,
        outcome,
        channel,
        warnings: upload.warnings,
    }
}

pub(super) fn new_version(upload: &Upload, token: &Token, channel: State) -> NewVersion {
    let describe = &upload.describe;
    let (signature, signers) = signed(describe);
    let json = "a wire type has texts as keys alone";
    NewVersion {
        id: describe.id.clone(),
        name: describe.name.clone(),
        namespace: upload.namespaces[0].clone(),
        dialect: upload.dialect.name().to_owned(),
        version: describe.version.clone(),
        digest: upload.digest.to_string(),
        size: describe.size.unwrap_or(0),
        manifest_path: upload.manifest_path.clone(),
        manifest: upload.manifest.clone(),
        describe: serde_json::to_string(describe).expect(json),
        found: serde_json::to_string(&upload.found).expect(json),
        entry: postcard::to_stdvec(&upload.entry).expect("an entry has no part without a length"),
        runtime: describe.entry.runtime.clone(),
        signature,
        signers,
        publisher: token.id.clone(),
        published_at: now(),
        channel,
        provenance: token.provenance.as_ref().and_then(|told| serde_json::to_string(told).ok()),
        doors: upload.doors.clone(),
    }
}
