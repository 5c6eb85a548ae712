//! A registry: its stores and what can be found in them, as one thing.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use package::limits::Limits;
use registry::{Outcome, Published};
use tokio::sync::Semaphore;

use crate::blobs::{BlobError, Blobs};
use crate::catalog::Catalog;
use crate::hub::{FormError, HubForm, next_version};
use crate::store::tokens::Token;
use crate::store::versions::{FindError, NewVersion, PublishError};
use crate::store::{Store, StoreError};
use crate::token::{Role, Scope};
use crate::upload::{Upload, UploadError};

/// How often a replica looks for what others have changed.
const POLL: Duration = Duration::from_millis(500);

/// How often a version is looked for that nobody else has taken meanwhile.
const ATTEMPTS: usize = 8;

/// What the operator may set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The most bytes of a body.
    pub upload_bytes: usize,
    /// How many uploads are looked at side by side; the others wait.
    pub uploads: usize,
    /// How long a body may take to arrive.
    pub patience: Duration,
    /// What a package may hold.
    pub limits: Limits,
    /// The address that others know the registry by; none when it is the one they ask.
    pub public_url: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            upload_bytes: 64 << 20,
            uploads: 4,
            patience: Duration::from_mins(5),
            limits: Limits::DEFAULT,
            public_url: None,
        }
    }
}

/// A registry.
#[derive(Debug)]
pub struct Registry {
    /// What is known.
    pub store: Store,
    /// The files of packages.
    pub blobs: Blobs,
    /// What can be found.
    pub catalog: Catalog,
    /// What the operator has set.
    pub settings: Settings,
    /// One for each upload that may be in memory.
    pub(crate) uploading: Semaphore,
}

/// Why something is not published or taken back.
#[derive(Debug)]
pub enum ChangeError {
    /// The bytes are no package that may be published.
    Upload(UploadError),
    /// The token is for reading alone.
    Role,
    /// The token is not for this namespace.
    Namespace(String),
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
    /// Too many publish the same tool at once.
    Busy,
    /// The work was broken off.
    BrokenOff,
}

impl Registry {
    /// A registry on these stores, loaded and ready.
    pub async fn open(store: Store, blobs: Blobs, settings: Settings) -> Result<Self, StoreError> {
        let uploading = Semaphore::new(settings.uploads);
        let catalog = Catalog::default();
        catalog.refresh(&store).await?;
        Ok(Self { store, blobs, catalog, settings, uploading })
    }

    /// Takes in what other replicas change, until it is dropped. A database that does not answer is asked again.
    pub async fn follow(self: Arc<Self>) {
        let mut tick = tokio::time::interval(POLL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            // What fails now succeeds at one of the next ticks; `/readyz` tells of it meanwhile.
            let _asked_again_later = self.catalog.refresh(&self.store).await;
        }
    }

    /// Publishes a package: first its file is made durable, then all that is known of it appears in one step.
    pub async fn publish(
        &self,
        token: &Token,
        bytes: Bytes,
        id: Option<String>,
    ) -> Result<Published, ChangeError> {
        let limits = self.settings.limits;
        let work = move || Upload::read(Vec::from(bytes), id.as_deref(), &limits);
        let read = tokio::task::spawn_blocking(work).await.map_err(|_| ChangeError::BrokenOff)?;
        self.publish_read(token, read.map_err(ChangeError::Upload)?).await
    }

    /// Publishes the next version of a tool from the form of a hub. Two at once get a version each.
    pub async fn publish_form(
        &self,
        token: &Token,
        form: Arc<HubForm>,
    ) -> Result<Published, ChangeError> {
        let id = form.id().map_err(ChangeError::Form)?;
        for _ in 0..ATTEMPTS {
            let known = match self.store.versions(&id).await {
                Ok(known) => known.versions,
                Err(FindError::Store(error)) => return Err(ChangeError::Store(error)),
                Err(_) => Vec::new(),
            };
            let version = next_version(known.iter().map(|known| known.version.as_str()));
            let (limits, form) = (self.settings.limits, Arc::clone(&form));
            let work = move || form.upload(&version, &limits);
            let read =
                tokio::task::spawn_blocking(work).await.map_err(|_| ChangeError::BrokenOff)?;
            match self.publish_read(token, read.map_err(ChangeError::Form)?).await {
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
    ) -> Result<Published, ChangeError> {
        check_token(token, upload.namespaces.iter().map(String::as_str))?;
        let bytes = Bytes::from(std::mem::take(&mut upload.bytes));
        self.blobs.put(upload.digest, bytes).await.map_err(ChangeError::Blob)?;
        let new = new_version(&upload, token);
        let outcome = self.store.publish(&new).await.map_err(|error| match error {
            PublishError::Store(error) => ChangeError::Store(error),
            conflict => ChangeError::Conflict(conflict),
        })?;
        if outcome == Outcome::Published {
            // It is found here at once. If that fails, it is found at the next tick.
            let _found_later = self.catalog.refresh(&self.store).await;
        }
        Ok(Published {
            id: new.id,
            name: new.name,
            version: new.version,
            sha256: new.digest,
            outcome,
            warnings: upload.warnings,
        })
    }

    /// Takes back a version, or offers it again: then there is no reason.
    pub async fn yank(
        &self,
        token: &Token,
        asked: &str,
        version: &str,
        reason: Option<&str>,
    ) -> Result<(), ChangeError> {
        let found = |error| match error {
            FindError::Store(error) => ChangeError::Store(error),
            other => ChangeError::NotFound(other),
        };
        let (id, namespace) = self.store.resolve(asked).await.map_err(found)?;
        check_token(token, [namespace.as_str()])?;
        self.store.yank(&id, version, reason, now()).await.map_err(found)?;
        let _found_later = self.catalog.refresh(&self.store).await;
        Ok(())
    }
}

fn check_token<'n>(
    token: &Token,
    namespaces: impl IntoIterator<Item = &'n str>,
) -> Result<(), ChangeError> {
    if token.role != Role::Publish {
        return Err(ChangeError::Role);
    }
    match namespaces.into_iter().find(|namespace| !token.scope.covers(namespace)) {
        Some(foreign) => Err(ChangeError::Namespace(foreign.to_owned())),
        None => Ok(()),
    }
}

fn new_version(upload: &Upload, token: &Token) -> NewVersion {
    let describe = &upload.describe;
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
        signature: describe
            .signature
            .as_ref()
            .map_or_else(String::new, |found| found.state.clone()),
        publisher: token.id.clone(),
        published_at: now(),
        doors: upload.doors.clone(),
    }
}

/// The moment, in milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A token that was made, and what is kept of it.
pub async fn make_token(
    store: &Store,
    scope: Scope,
    role: Role,
    lifetime: Option<Duration>,
) -> Result<(crate::token::Secret, Token), MakeTokenError> {
    let secret = crate::token::Secret::generate().map_err(MakeTokenError::Randomness)?;
    let created_at = now();
    let end = |time: Duration| created_at + u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 2);
    let token = Token {
        id: secret.id(),
        scope,
        role,
        created_at,
        expires_at: lifetime.map(end),
        revoked_at: None,
    };
    store.keep_token(&secret, &token).await.map_err(MakeTokenError::Store)?;
    Ok((secret, token))
}

/// Why there is no token.
#[derive(Debug)]
pub enum MakeTokenError {
    /// The system gives no randomness.
    Randomness(crate::token::NoRandomness),
    /// The database refuses.
    Store(StoreError),
}
