//! The files of packages, by their digest.
//!
//! A blob is written once: the store itself refuses to write it again, and what is there is looked at before
//! it counts. Only what is damaged is written over, by bytes that have its digest. When [`Blobs::put`] has
//! returned, the bytes outlive the end of any process and a power cut.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use egress::Watch;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{
    BackoffConfig, ClientConfigKey, Error as Failure, GetOptions, GetRange, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig,
};
use package::digest::{Digest, Hasher};

use crate::trouble::{Trouble, is_no_bucket};
use trace::Place;

/// How long a bucket that does not answer is asked again: whoever waits for us is told before long.
const PERSISTENCE: Duration = Duration::from_secs(10);

/// How often a blob may be removed between finding it and looking at it.
const REMOVED_BETWEEN: usize = 10;

/// How many folders a file is in: `sha256/ab` in that of the store.
const SHELVES: usize = 3;

/// What most do with a package file.
const READ: &str = "read a package file";

/// Where the files of packages are: a folder, or a bucket.
#[derive(Clone, Debug)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    /// What it is called.
    place: String,
    /// The folder, where it is one.
    folder: Option<PathBuf>,
    /// Is told of what is read and written.
    watch: Watch,
}

/// Something that lies where the files of packages are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// A file that is named like one of ours.
    Blob {
        /// The digest it is named by.
        digest: Digest,
        /// Its bytes.
        size: u64,
        /// When it was written, in milliseconds since 1970.
        modified: u64,
    },
    /// Something that nobody of us put there.
    Foreign(String),
}

/// Why a blob is not to be had.
#[derive(Debug)]
pub enum BlobError {
    /// The address is none of a store we know.
    Address(String),
    /// It is not there.
    Missing(Digest),
    /// What is there is something else.
    Damaged(Digest),
    /// The files belong to another registry.
    OtherRegistry,
    /// No registry has said yet that the files are its own.
    NoRegistry,
    /// The store refuses.
    Store {
        /// Which: a folder, or a bucket with where it is.
        place: String,
        /// Why.
        trouble: Trouble,
    },
}

impl fmt::Display for BlobError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlobError::Address(address) => {
                write!(out, "`{address}` is no place for packages; give a folder or `s3://bucket`")
            }
            BlobError::Missing(digest) => {
                write!(out, "the package file sha256:{digest} is missing")
            }
            BlobError::Damaged(digest) => {
                write!(out, "the package file sha256:{digest} is damaged")
            }
            BlobError::OtherRegistry => {
                out.write_str("the package files belong to another registry than the database")
            }
            BlobError::NoRegistry => {
                out.write_str("no registry was ever served from these package files")
            }
            BlobError::Store { place, .. } => {
                write!(out, "failed to reach the package files in {place}")
            }
        }
    }
}

impl std::error::Error for BlobError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BlobError::Store { trouble, .. } => Some(trouble),
            BlobError::Address(_)
            | BlobError::Missing(_)
            | BlobError::Damaged(_)
            | BlobError::OtherRegistry
            | BlobError::NoRegistry => None,
        }
    }
}

impl Blobs {
    /// Opens a store by its address: a folder, or `s3://bucket/prefix` with settings (`aws_region`,
    /// `aws_endpoint`, …) that the caller brings.
    pub fn open(address: &str, settings: &[(String, String)]) -> Result<Self, BlobError> {
        match address.split_once("://") {
            Some(("s3", place)) if !place.is_empty() && !place.starts_with('/') => {
                Self::bucket(place, settings)
            }
            Some(_) => Err(BlobError::Address(address.to_owned())),
            None => Self::folder(Path::new(address)),
        }
    }

    /// Opens a folder, which is made when there is none.
    pub fn folder(path: &Path) -> Result<Self, BlobError> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        // What is in there may not be for everybody on this machine.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let place = format!("`{}`", path.display());
        builder.create(path).map_err(|error| refused(&place, error))?;
        let store = LocalFileSystem::new_with_prefix(path);
        let store = store.map_err(|error| refused(&place, error))?;
        Ok(Self {
            store: Arc::new(store.with_fsync(true)),
            prefix: Key::default(),
            place,
            folder: Some(path.to_owned()),
            watch: Watch::default(),
        })
    }

    fn bucket(place: &str, settings: &[(String, String)]) -> Result<Self, BlobError> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let mut builder = AmazonS3Builder::new();
        let mut place = format!("the bucket `{bucket}`");
        let plain = AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp);
        let (mut in_plain, mut may_be_plain) = (false, false);
        for (name, value) in settings {
            if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
                if key == AmazonS3ConfigKey::Endpoint {
                    place = format!("{place} at `{value}`");
                    in_plain = value.to_ascii_lowercase().starts_with("http://");
                }
                may_be_plain |= key == plain && value.eq_ignore_ascii_case("true");
                builder = builder.with_config(key, value);
            }
        }
        if in_plain && !may_be_plain {
            let why = "AWS_ENDPOINT begins with http://, which needs AWS_ALLOW_HTTP=true";
            return Err(BlobError::Store { place, trouble: Trouble::Address(why.to_owned()) });
        }
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(1),
            base: 2.0,
        };
        let store = builder
            .with_retry(RetryConfig { backoff, max_retries: 5, retry_timeout: PERSISTENCE })
            .with_bucket_name(bucket)
            .build()
            .map_err(|error| refused(&place, error))?;
        let (prefix, watch) = (Key::from(prefix), Watch::default());
        Ok(Self { store: Arc::new(store), prefix, place, folder: None, watch })
    }

    /// The same, which tells of the bytes that are read whole, looked through and written.
    pub fn watched(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }

    /// Binds the files to the registry of this id, or sees that they are bound to it.
    pub async fn bind(&self, registry: &str) -> Result<(), BlobError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let marker = Bytes::from(registry.to_owned());
        match self.store.put_opts(&self.marker(), marker.into(), options).await {
            Ok(_) => Ok(()),
            Err(Failure::AlreadyExists { .. }) => self.check_bound(registry).await,
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Binds the files to the registry of this id, whosever they were. The other is refused from then on.
    pub async fn take_over(&self, registry: &str) -> Result<(), BlobError> {
        let marker = Bytes::from(registry.to_owned());
        let put = self.store.put(&self.marker(), marker.into()).await;
        put.map(drop).map_err(|error| self.refused(error))
    }

    /// Whether the files are bound to the registry of this id.
    pub async fn check_bound(&self, registry: &str) -> Result<(), BlobError> {
        let failed = |error| match error {
            Failure::NotFound { .. } if !is_no_bucket(&error) => BlobError::NoRegistry,
            other => self.refused(other),
        };
        let marker = self.store.get(&self.marker()).await.map_err(failed)?;
        let marker = marker.bytes().await.map_err(failed)?;
        if marker == registry { Ok(()) } else { Err(BlobError::OtherRegistry) }
    }

    /// Keeps bytes, durably, under their digest.
    pub async fn put(&self, digest: Digest, bytes: Bytes) -> Result<(), BlobError> {
        let _writing = trace::part(Place::Files, "write a package file");
        for _ in 0..REMOVED_BETWEEN {
            match self.write(digest, &bytes, PutMode::Create).await {
                Ok(()) => {
                    self.watch.passed(bytes.len() as u64);
                    return Ok(());
                }
                Err(Failure::AlreadyExists { .. }) => {}
                Err(error) => return Err(self.refused(error)),
            }
            // Somebody was here before: a publish that was cut off, or one that runs now. Where somebody else has
            // removed that meanwhile, it is put there again.
            match self.verify(digest).await {
                Err(BlobError::Missing(_)) => {}
                Err(BlobError::Damaged(_)) if Digest::of(&bytes) == digest => {
                    let mended = self.write(digest, &bytes, PutMode::Overwrite).await;
                    return mended.map_err(|error| self.refused(error));
                }
                looked => {
                    looked?;
                    return self.make_durable(digest).await;
                }
            }
        }
        Err(BlobError::Missing(digest))
    }

    async fn write(&self, digest: Digest, bytes: &Bytes, mode: PutMode) -> Result<(), Failure> {
        let options = PutOptions { mode, ..PutOptions::default() };
        self.store.put_opts(&self.key(digest), bytes.clone().into(), options).await.map(drop)
    }

    /// Whoever put a file there may have been killed before its name was on the disk; it is when this has returned.
    async fn make_durable(&self, digest: Digest) -> Result<(), BlobError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let file = folder.join(self.key(digest).as_ref());
        let sync = move || {
            let names = file.ancestors().skip(1).take(SHELVES);
            names.into_iter().try_for_each(|folder| std::fs::File::open(folder)?.sync_all())
        };
        let synced = tokio::task::spawn_blocking(sync).await.map_err(std::io::Error::from);
        synced.flatten().map_err(|error| self.refused(error))
    }

    /// Reads a blob whole; what is not of its digest is refused.
    pub async fn get(&self, digest: Digest) -> Result<Bytes, BlobError> {
        let _reading = trace::part(Place::Files, READ);
        let found = self.store.get(&self.key(digest)).await;
        let read = found.map_err(|error| self.failed(digest, error))?.bytes().await;
        let bytes = read.map_err(|error| self.failed(digest, error))?;
        self.watch.passed(bytes.len() as u64);
        if Digest::of(&bytes) == digest { Ok(bytes) } else { Err(BlobError::Damaged(digest)) }
    }

    /// A part of a blob, as it comes; whoever reads it checks the digest.
    pub async fn stream(
        &self,
        digest: Digest,
        part: std::ops::Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, BlobError>>, BlobError> {
        let _reading = trace::part(Place::Files, READ);
        let options =
            GetOptions { range: Some(GetRange::Bounded(part.clone())), ..GetOptions::default() };
        let found = self.store.get_opts(&self.key(digest), options).await;
        let found = found.map_err(|error| self.failed(digest, error))?;
        if found.range != part {
            return Err(BlobError::Damaged(digest));
        }
        let blobs = self.clone();
        let failed = move |error| blobs.failed(digest, error);
        Ok(found.into_stream().map_err(failed).boxed())
    }

    /// How many bytes a blob has; whether they are the right ones is not looked at.
    pub async fn size(&self, digest: Digest) -> Result<u64, BlobError> {
        let found = self.store.head(&self.key(digest)).await;
        found.map(|found| found.size).map_err(|error| self.failed(digest, error))
    }

    /// Reads a blob through, piece by piece; how many bytes it has. What is not of its digest is refused.
    pub async fn verify(&self, digest: Digest) -> Result<u64, BlobError> {
        let found = self.store.get(&self.key(digest)).await;
        let mut pieces = found.map_err(|error| self.failed(digest, error))?.into_stream();
        let (mut hasher, mut size) = (Hasher::default(), 0);
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| self.failed(digest, error))?;
            hasher.update(&piece);
            size += piece.len() as u64;
            self.watch.passed(piece.len() as u64);
        }
        if hasher.finish() == digest { Ok(size) } else { Err(BlobError::Damaged(digest)) }
    }

    /// Everything that lies there, as it is found.
    pub fn list(&self) -> BoxStream<'static, Result<Listed, BlobError>> {
        let blobs = self.clone();
        let (found, marker) = (self.store.list(Some(&self.prefix)), self.marker());
        found
            .try_filter(move |found| std::future::ready(found.location != marker))
            .map(move |found| match found {
                Ok(found) => Ok(listed(&blobs.prefix, &found)),
                Err(error) => Err(blobs.refused(error)),
            })
            .boxed()
    }

    /// Removes a blob; one that is not there is removed already.
    pub async fn remove(&self, digest: Digest) -> Result<(), BlobError> {
        match self.store.delete(&self.key(digest)).await {
            Ok(()) | Err(Failure::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Files in the folder that were begun and never finished, by somebody who was killed. A bucket has none.
    pub fn unfinished(&self, written_before: std::time::SystemTime) -> Vec<PathBuf> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let inside = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries.filter_map(Result::ok).map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let shelves = inside(&folder.join("sha256"));
        let files = shelves.iter().flat_map(|shelf| inside(shelf));
        let is_unfinished = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            let ours = name.and_then(|name| name.split_once('#'));
            ours.is_some_and(|(digest, number)| {
                Digest::parse(digest).is_some() && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        let is_old = |path: &PathBuf| {
            let modified = path.metadata().and_then(|found| found.modified());
            modified.is_ok_and(|modified| modified < written_before)
        };
        files.filter(is_unfinished).filter(is_old).collect()
    }

    /// Whether the store answers.
    pub async fn check_alive(&self) -> Result<(), BlobError> {
        // Asked for without its bytes, nothing would be said of why it is not there.
        match self.store.get(&self.marker()).await {
            Ok(_) => Ok(()),
            Err(error @ Failure::NotFound { .. }) if !is_no_bucket(&error) => Ok(()),
            Err(error) => Err(self.refused(error)),
        }
    }

    fn refused(&self, error: impl Into<Trouble>) -> BlobError {
        refused(&self.place, error)
    }

    fn failed(&self, digest: Digest, error: Failure) -> BlobError {
        match error {
            Failure::NotFound { .. } if !is_no_bucket(&error) => BlobError::Missing(digest),
            other => self.refused(other),
        }
    }

    /// Where it is written whose the files are.
    fn marker(&self) -> Key {
        self.prefix.clone().join("haft-registry")
    }

    /// Where a blob is; no folder holds them all.
    fn key(&self, digest: Digest) -> Key {
        let digits = digest.to_string();
        self.prefix.clone().join("sha256").join(&digits[..2]).join(digits.as_str())
    }
}

fn listed(prefix: &Key, found: &ObjectMeta) -> Listed {
    let foreign = || Listed::Foreign(found.location.to_string());
    let Some(parts) = found.location.prefix_match(prefix) else { return foreign() };
    let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
    let [kind, shelf, name] = parts.as_slice() else { return foreign() };
    match Digest::parse(name) {
        Some(digest)
            if kind == "sha256" && name.starts_with(shelf.as_str()) && shelf.len() == 2 =>
        {
            let modified = found.last_modified.timestamp_millis();
            Listed::Blob {
                digest,
                size: found.size,
                modified: u64::try_from(modified).unwrap_or(0),
            }
        }
        _ => foreign(),
    }
}

fn refused(place: &str, error: impl Into<Trouble>) -> BlobError {
    BlobError::Store { place: place.to_owned(), trouble: error.into() }
}
