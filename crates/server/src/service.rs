//! A registry: its stores and what can be found in them, as one thing.
//!
//! | module | what it is |
//! |---|---|
//! | `settings` | all that the operator may set |
//! | `error` | why something is refused |
//! | `publish` | from what was sent to a version that is offered |
//! | `rehearsal` | what several packages would come to, one after the other |

mod error;
mod publish;
mod rehearsal;
mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use package::digest::Digest;
use registry::{Channel, Yank};
use tokio::sync::{Notify, OnceCell, Semaphore};

pub use error::{ChangeError, MakeTokenError, OpenError};
pub use publish::Sent;
pub use rehearsal::Rehearsal;
pub use settings::{Log, Settings};

use crate::blobs::{BlobError, Blobs};
use crate::catalog::Catalog;
use crate::identity::keys::Keys;
use crate::kept::{Kept, LARGEST};
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::rate::Rates;
use crate::ready::{Readiness, Unready};
use crate::store::Store;
use crate::store::listen::Ear;
use crate::store::tokens::Token;
use crate::store::versions::{FindError, Known, Which};
use crate::store::yanks::Yanked;
use crate::token::{Action, Role, Scope};

/// How often a replica looks for what others have changed, whatever it hears of.
const POLL: Duration = Duration::from_millis(500);

/// How long a store may take to say that it is there. Whoever asks has little patience, and for a connection is waited
/// longer.
const READY: Duration = Duration::from_millis(1_500);

/// How often it is looked whether the index is worth saving.
const SAVED_EVERY: Duration = Duration::from_mins(1);

/// How long the place of the package files may take to say whose they are before it is taken to be away.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// How many bundles are made side by side.
const BUNDLES: usize = 2;
/// How many of the largest bundles there is memory for, in the making and while they are sent.
const SENDING: usize = 8;

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

impl Registry {
    /// A registry on these stores, loaded and ready. They must belong together.
    pub async fn open(store: Store, blobs: Blobs, settings: Settings) -> Result<Self, OpenError> {
        let bound = match tokio::time::timeout(FIRST_LOOK, blobs.bind(store.id())).await {
            Ok(Ok(())) => OnceCell::new_with(Some(())),
            // One that is away may come back: then it is looked at before anything is put there.
            Err(_) | Ok(Err(BlobError::Store { .. })) => OnceCell::new(),
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
            let asked = tokio::time::timeout(READY, self.store.check_alive()).await;
            asked.ok().and_then(Result::ok).ok_or(Unready::Database)?;
            let blobs = async {
                self.check_bound().await?;
                self.blobs.check_alive().await
            };
            let asked = tokio::time::timeout(READY, blobs).await;
            asked.ok().and_then(Result::ok).ok_or(Unready::Blobs)
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
        let key = key_of(asked, version, channel);
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

    /// The same, where it was found before and nothing has changed since.
    pub(crate) fn shown_before(
        &self,
        asked: &str,
        version: Option<&str>,
        channel: Channel,
    ) -> Option<Arc<Known>> {
        self.kept.version(self.catalog.turn(), &key_of(asked, version, channel))
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

    /// Takes back a version, or offers it again: then there is no yank.
    pub async fn yank(
        &self,
        token: &Token,
        asked: &str,
        version: &str,
        yank: Option<&Yank>,
    ) -> Result<(), ChangeError> {
        let found = |error| match error {
            FindError::Store(error) => ChangeError::Store(error),
            other => ChangeError::NotFound(other),
        };
        let (id, namespace) = self.store.resolve(asked).await.map_err(found)?;
        self.check(token, Action::Publish, &id, [namespace.as_str()]).await?;
        let done = self.store.yank(&id, version, yank, token, now()).await.map_err(found)?;
        if let Yanked::Held(by) = done {
            return Err(ChangeError::Held(by));
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

/// What a version is kept by in memory: what was asked for, and whether a version was named.
fn key_of(asked: &str, version: Option<&str>, channel: Channel) -> String {
    match version {
        Some(version) => format!("={version}\0{asked}"),
        None => format!("{}\0{asked}", channel.name()),
    }
}
