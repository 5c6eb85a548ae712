//! A registry: its stores and what can be found in them, as one thing.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use package::digest::Digest;
use package::limits::Limits;
use registry::{Channel, Outcome, Published, State, TestReport};
use tokio::sync::{Notify, OnceCell, Semaphore};

use crate::blobs::{BlobError, Blobs};
use crate::catalog::Catalog;
use crate::hub::{FormError, HubForm, next_version};
use crate::identity::keys::{Asking, Keys};
use crate::kept::{Kept, LARGEST};
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::rate::Rates;
use crate::ready::{Readiness, Unready};
use crate::settings::{Counting, Quarantine, Reading};
use crate::store::listen::Ear;
use crate::store::tokens::Token;
use crate::store::versions::{FindError, Known, NewVersion, PublishError, Which};
use crate::store::yanks::Yanked;
use crate::store::{Store, StoreError};
use crate::token::{Action, Role, Scope};
use crate::traces::{Place, Traces, part};
use crate::upload::{Upload, UploadError};

/// How often a replica looks for what others have changed, whatever it hears of.
const POLL: Duration = Duration::from_millis(500);

/// How often it is looked whether the index is worth saving.
const SAVED_EVERY: Duration = Duration::from_mins(1);

/// How often the file of a publish may be removed meanwhile before whoever publishes is asked to come again.
const REMOVED_BETWEEN: usize = 10;

/// How long the place of the package files may take to say whose they are before it is taken to be away.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// What is done with a package that was sent.
const LOOK: &str = "look at the package";

/// How many bundles are made side by side.
const BUNDLES: usize = 2;
/// How many of the largest bundles there is memory for, in the making and while they are sent.
const SENDING: usize = 8;

/// Where it is written what became of each request.
pub type Log = Arc<dyn Fn(&crate::web::Told) + Send + Sync>;

/// How often a version is looked for that nobody else has taken meanwhile.
const ATTEMPTS: usize = 8;

/// What the operator may set.
#[derive(Clone)]
pub struct Settings {
    /// The most bytes of a body.
    pub upload_bytes: usize,
    /// How many uploads are looked at side by side; the others wait.
    pub uploads: usize,
    /// How long a body may take to arrive.
    pub patience: Duration,
    /// What a package may hold.
    pub limits: Limits,
    /// The most bytes of all files together of which a bundle is made.
    pub bundle_bytes: u64,
    /// Who may read.
    pub reading: Reading,
    /// Whose versions wait for a reviewer.
    pub quarantine: Quarantine,
    /// How often somebody may ask.
    pub rates: crate::settings::Limits,
    /// Who says truly for whom it asks.
    pub proxies: Vec<ipnet::IpNet>,
    /// How the issuers of identities are asked for their keys.
    pub asking: Asking,
    /// The address that others know the registry by; none when it is the one they ask.
    pub public_url: Option<String>,
    /// Where it is written what became of each request.
    pub log: Option<Log>,
    /// Where it is told what the time of each request goes into.
    pub traces: Option<Traces>,
    /// Where it is told what is counted.
    pub counting: Counting,
    /// The file that the index is kept in between two starts; it is made anew where there is none.
    pub index: Option<PathBuf>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Settings")
            .field("upload_bytes", &self.upload_bytes)
            .field("uploads", &self.uploads)
            .field("patience", &self.patience)
            .field("limits", &self.limits)
            .field("bundle_bytes", &self.bundle_bytes)
            .field("reading", &self.reading)
            .field("quarantine", &self.quarantine)
            .field("rates", &self.rates)
            .field("proxies", &self.proxies)
            .field("asking", &self.asking)
            .field("traces", &self.traces)
            .field("counting", &self.counting)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            upload_bytes: 64 << 20,
            uploads: 4,
            patience: Duration::from_mins(5),
            limits: Limits::DEFAULT,
            // Written as text it still is one that clients take.
            bundle_bytes: 64 << 20,
            reading: Reading::default(),
            quarantine: Quarantine::default(),
            rates: crate::settings::Limits::default(),
            proxies: Vec::new(),
            asking: Asking::default(),
            log: None,
            traces: None,
            public_url: None,
            counting: Counting::default(),
            index: None,
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
    /// What is counted.
    pub metrics: Metrics,
    /// Whether it is closing: it still answers, but asks for nothing more.
    pub(crate) closing: AtomicBool,
    /// One for each upload that may be looked at.
    pub(crate) uploading: Arc<Semaphore>,
    /// What uploads may take while they arrive and are looked at.
    pub(crate) arriving: Memory,
    /// One for each bundle that may be in the making.
    pub(crate) bundling: Arc<Semaphore>,
    /// What bundles may take until they are sent.
    pub(crate) sending: Memory,
    /// The keys of issuers of identities.
    pub(crate) keys: Keys,
    /// Who has asked how often.
    pub(crate) rates: Rates,
    /// What was answered before.
    pub(crate) kept: Kept,
    /// Whether its stores answered a moment ago.
    readiness: Readiness,
    /// Set when the package files were seen to be its own.
    bound: OnceCell<()>,
    /// The number of the last change that the file of the index had at the start.
    saved: i64,
}

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

/// Why something is not published or taken back.
#[derive(Debug)]
pub enum ChangeError {
    /// The bytes are no package that may be published.
    Upload(UploadError),
    /// The token is not for that.
    Role(Action),
    /// Whoever published a version does not approve it.
    OwnVersion,
    /// Whoever only publishes does not change what somebody who may do more took back.
    Held,
    /// The token is not for this namespace.
    Namespace(String),
    /// The package has as many owners as it may.
    TooManyOwners,
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

impl Registry {
    /// A registry on these stores, loaded and ready. They must belong together.
    pub async fn open(store: Store, blobs: Blobs, settings: Settings) -> Result<Self, OpenError> {
        let bound = match tokio::time::timeout(FIRST_LOOK, blobs.bind(store.id())).await {
            Ok(Ok(())) => OnceCell::new_with(Some(())),
            // One that is away may come back: then it is looked at before anything is put there.
            Err(_) | Ok(Err(BlobError::Store(_))) => OnceCell::new(),
            Ok(Err(error)) => return Err(OpenError::Blob(error)),
        };
        let uploading = Arc::new(Semaphore::new(settings.uploads));
        let arriving = Memory::new(settings.uploads.saturating_mul(settings.upload_bytes));
        let bundling = Arc::new(Semaphore::new(BUNDLES));
        let bundle = usize::try_from(settings.bundle_bytes).unwrap_or(usize::MAX / SENDING);
        let sending = Memory::new(bundle.saturating_mul(SENDING));
        let catalog = match &settings.index {
            Some(file) => Catalog::saved(file, &store).await.unwrap_or_default(),
            None => Catalog::default(),
        };
        let saved = catalog.last().await;
        catalog.refresh(&store).await.map_err(OpenError::Store)?;
        let rates = Rates::new(&settings.rates);
        let keys = Keys::new(settings.asking);
        let (metrics, closing) = (Metrics::default(), AtomicBool::new(false));
        let kept = Kept::default();
        Ok(Self {
            store,
            blobs,
            catalog,
            settings,
            metrics,
            closing,
            uploading,
            arriving,
            bundling,
            sending,
            keys,
            rates,
            kept,
            readiness: Readiness::default(),
            bound,
            saved,
        })
    }

    /// Whether it can do its work: its stores answer, or did a moment ago.
    pub(crate) async fn check_ready(&self) -> Result<(), Unready> {
        let look = async || {
            self.store.check_alive().await.map_err(|_| Unready::Database)?;
            self.check_bound().await.map_err(|_| Unready::Blobs)?;
            self.blobs.check_alive().await.map_err(|_| Unready::Blobs)
        };
        self.readiness.fresh(look).await
    }

    /// Whether the package files are this registry's own; looked at until it was seen once.
    async fn check_bound(&self) -> Result<(), BlobError> {
        self.bound.get_or_try_init(|| self.blobs.bind(self.store.id())).await.map(drop)
    }

    /// Says that it is closing: whoever asks whether it is ready is told so.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Whether it is closing.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Takes in what other replicas change, until it is dropped: at once where the database tells of it, and by
    /// looking now and then. A database that does not answer is asked again.
    pub async fn follow(self: Arc<Self>) {
        let heard = Notify::new();
        let listening = async {
            let mut ear = Ear::default();
            loop {
                ear.hear(&self.store).await;
                self.metrics.listens(ear.listens());
                heard.notify_one();
            }
        };
        let following = async {
            let mut tick = tokio::time::interval(POLL);
            tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = tick.tick() => {}
                    () = heard.notified() => {}
                }
                // What fails now succeeds at one of the next ticks; `/readyz` tells of it meanwhile.
                if self.take_in().await {
                    self.metrics.is_current(now());
                }
            }
        };
        tokio::join!(listening, following, self.saving());
    }

    /// Keeps the index in its file, as far as that is worth it.
    async fn saving(&self) {
        let Some(file) = &self.settings.index else { return };
        let mut saved = self.saved;
        loop {
            saved = self.catalog.save(file, &self.store, saved).await.unwrap_or(saved);
            tokio::time::sleep(SAVED_EVERY).await;
        }
    }

    /// Takes in what has changed; says whether that worked. Where it did not, nothing that was looked up before is good
    /// any more, and it is tried again at the next tick.
    pub(crate) async fn take_in(&self) -> bool {
        let is_taken = self.catalog.refresh(&self.store).await.is_ok();
        if !is_taken {
            self.catalog.outdate();
        }
        is_taken
    }

    /// A version as everybody sees it: this one, or the highest of a channel.
    pub(crate) async fn shown(
        &self,
        asked: &str,
        version: Option<&str>,
        channel: Channel,
    ) -> Result<Arc<Known>, FindError> {
        // Taken first: what is looked up after it may be newer, never older.
        let turn = self.catalog.turn();
        let named = version.map_or_else(|| channel.name().to_owned(), |name| format!("={name}"));
        let key = format!("{named}\0{asked}");
        if let Some(known) = self.kept.version(turn, &key) {
            return Ok(known);
        }
        let (id, _) = self.store.resolve(asked).await?;
        let which = version.map_or(Which::HighestIn(channel), Which::Exactly);
        let found = match self.store.find(&id, which).await {
            // A tool of which nothing is offered is not there.
            Err(FindError::NoVersion) => {
                self.store.versions(&id).await?;
                return Err(FindError::NoVersion);
            }
            found => found?,
        };
        let known = Arc::new(found);
        self.kept.keep_version(turn, &key, Arc::clone(&known));
        Ok(known)
    }

    /// A package file, whole and checked, where it is small enough to be held.
    pub(crate) async fn small_file(
        &self,
        digest: Digest,
        size: u64,
    ) -> Result<Option<Bytes>, BlobError> {
        if size > LARGEST {
            return Ok(None);
        }
        if let Some(bytes) = self.kept.file(digest) {
            return Ok(Some(bytes));
        }
        let bytes = self.blobs.get(digest).await?;
        self.kept.keep_file(digest, bytes.clone());
        Ok(Some(bytes))
    }

    /// Publishes a package: first its file is made durable, then all that is known of it appears in one step.
    pub async fn publish(
        &self,
        token: &Token,
        sent: Sent,
        channel: Channel,
        room: impl Send + 'static,
    ) -> Result<Published, ChangeError> {
        let limits = self.settings.limits;
        // Work goes on when whoever sent it hangs up, and so the room is taken until it is done.
        let work = move || (sent.read(&limits), room);
        let looking = part(Place::Here, LOOK);
        let (read, _room) =
            tokio::task::spawn_blocking(work).await.map_err(|_| ChangeError::BrokenOff)?;
        drop(looking);
        self.publish_read(token, read.map_err(ChangeError::Upload)?, channel).await
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
        let names = upload.namespaces.iter().map(String::as_str);
        self.check(token, Action::Publish, &upload.describe.id, names).await?;
        upload.describe.provenance.clone_from(&token.provenance);
        let bytes = Bytes::from(std::mem::take(&mut upload.bytes));
        let is_held = self.settings.quarantine.holds(&upload.namespaces[0]);
        let state = if is_held { State::Quarantine } else { channel.into() };
        let new = new_version(&upload, token, state);
        let size = bytes.len() as u64;
        let (outcome, channel) = self.put_and_publish(&upload, &new, bytes).await?;
        self.metrics.published(outcome, size);
        if outcome == Outcome::Published {
            // It is found here at once. If that fails, it is found at the next tick.
            self.take_in().await;
        }
        Ok(Published {
            id: new.id,
            name: new.name,
            version: new.version,
            sha256: new.digest,
            outcome,
            channel,
            warnings: upload.warnings,
        })
    }

    /// Both steps; again, when somebody removed the file between them because no version had it yet.
    async fn put_and_publish(
        &self,
        upload: &Upload,
        new: &NewVersion,
        bytes: Bytes,
    ) -> Result<(Outcome, State), ChangeError> {
        self.check_bound().await.map_err(ChangeError::Blob)?;
        for _ in 0..REMOVED_BETWEEN {
            self.blobs.put(upload.digest, bytes.clone()).await.map_err(ChangeError::Blob)?;
            return match self.store.publish(new).await {
                Ok(done) => Ok(done),
                Err(PublishError::FileGone) => continue,
                Err(PublishError::FileUnderway) => {
                    tokio::time::sleep(POLL).await;
                    continue;
                }
                Err(PublishError::Store(error)) => Err(ChangeError::Store(error)),
                Err(conflict) => Err(ChangeError::Conflict(conflict)),
            };
        }
        Err(ChangeError::Busy)
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
        self.check(token, Action::Publish, &id, [namespace.as_str()]).await?;
        let done = self.store.yank(&id, version, reason, token, now()).await.map_err(found)?;
        if done == Yanked::Held {
            return Err(ChangeError::Held);
        }
        self.take_in().await;
        Ok(())
    }

    /// Whether a token is for doing this with a package: those of its namespace are, and of those that own it.
    pub(crate) async fn check<'n>(
        &self,
        token: &Token,
        action: Action,
        id: &str,
        namespaces: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), ChangeError> {
        if !token.role.allows(action) {
            return Err(ChangeError::Role(action));
        }
        let foreign = namespaces.into_iter().find(|namespace| !token.scope.covers(namespace));
        let Some(foreign) = foreign.map(str::to_owned) else { return Ok(()) };
        if action == Action::Publish
            && self.store.is_owner(id, token.scope.name()).await.map_err(ChangeError::Store)?
        {
            return Ok(());
        }
        Err(ChangeError::Namespace(foreign))
    }
}

fn new_version(upload: &Upload, token: &Token, channel: State) -> NewVersion {
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
        signers: describe.signature.as_ref().map_or_else(String::new, |found| found.keys.join(" ")),
        publisher: token.id.clone(),
        published_at: now(),
        channel,
        provenance: token.provenance.as_ref().and_then(|told| serde_json::to_string(told).ok()),
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
        provenance: None,
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
