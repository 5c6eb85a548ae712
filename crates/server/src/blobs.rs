//! The files of packages, by their digest.
//!
//! A blob is written once: the store itself refuses to write it again, and what is there is looked at before
//! it counts. When [`Blobs::put`] has returned, the bytes outlive the end of any process and a power cut.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{
    Error as Failure, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
};
use package::digest::Digest;

/// Where the files of packages are: a folder, or a bucket.
#[derive(Clone, Debug)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
}

/// Why a blob is not to be had.
#[derive(Debug)]
pub enum BlobError {
    /// The address is none of a store we know.
    Address(String),
    /// The store cannot be opened.
    Open(Box<dyn std::error::Error + Send + Sync>),
    /// It is not there.
    Missing(Digest),
    /// What is there is something else.
    Damaged(Digest),
    /// The store refuses.
    Store(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for BlobError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlobError::Address(address) => {
                write!(out, "`{address}` is no place for packages; give a folder or `s3://bucket`")
            }
            BlobError::Open(_) => out.write_str("failed to open the place of the packages"),
            BlobError::Missing(digest) => {
                write!(out, "the package file sha256:{digest} is missing")
            }
            BlobError::Damaged(digest) => {
                write!(out, "the package file sha256:{digest} is damaged")
            }
            BlobError::Store(_) => out.write_str("failed to reach the package files"),
        }
    }
}

impl std::error::Error for BlobError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BlobError::Open(source) | BlobError::Store(source) => Some(&**source),
            BlobError::Address(_) | BlobError::Missing(_) | BlobError::Damaged(_) => None,
        }
    }
}

impl Blobs {
    /// Opens a store by its address: a folder, or `s3://bucket/prefix` with settings (`aws_region`,
    /// `aws_endpoint`, …) that the caller brings.
    pub fn open(address: &str, settings: &[(String, String)]) -> Result<Self, BlobError> {
        match address.split_once("://") {
            Some(("s3", place)) => Self::bucket(place, settings),
            Some(_) => Err(BlobError::Address(address.to_owned())),
            None => Self::folder(Path::new(address)),
        }
    }

    /// Opens a folder, which is made when there is none.
    pub fn folder(path: &Path) -> Result<Self, BlobError> {
        std::fs::create_dir_all(path).map_err(|error| BlobError::Open(error.into()))?;
        let store = LocalFileSystem::new_with_prefix(path)
            .map_err(|error| BlobError::Open(error.into()))?;
        Ok(Self { store: Arc::new(store.with_fsync(true)), prefix: Key::default() })
    }

    fn bucket(place: &str, settings: &[(String, String)]) -> Result<Self, BlobError> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let mut builder = AmazonS3Builder::new();
        for (name, value) in settings {
            if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
                builder = builder.with_config(key, value);
            }
        }
        let store = builder
            .with_bucket_name(bucket)
            .build()
            .map_err(|error| BlobError::Open(error.into()))?;
        Ok(Self { store: Arc::new(store), prefix: Key::from(prefix) })
    }

    /// Keeps bytes, durably, under their digest.
    pub async fn put(&self, digest: Digest, bytes: Bytes) -> Result<(), BlobError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(&self.key(digest), bytes.into(), options).await {
            Ok(_) => Ok(()),
            // Somebody was here before: a publish that was cut off, or one that runs now.
            Err(Failure::AlreadyExists { .. }) => self.get(digest).await.map(drop),
            Err(error) => Err(BlobError::Store(error.into())),
        }
    }

    /// Reads a blob whole; what is not of its digest is refused.
    pub async fn get(&self, digest: Digest) -> Result<Bytes, BlobError> {
        let found = self.store.get(&self.key(digest)).await;
        let read = found.map_err(|error| failed(digest, error))?.bytes().await;
        let bytes = read.map_err(|error| failed(digest, error))?;
        if Digest::of(&bytes) == digest { Ok(bytes) } else { Err(BlobError::Damaged(digest)) }
    }

    /// A part of a blob, as it comes; whoever reads it checks the digest.
    pub async fn stream(
        &self,
        digest: Digest,
        part: std::ops::Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, BlobError>>, BlobError> {
        let options =
            GetOptions { range: Some(GetRange::Bounded(part.clone())), ..GetOptions::default() };
        let found = self.store.get_opts(&self.key(digest), options).await;
        let found = found.map_err(|error| failed(digest, error))?;
        if found.range != part {
            return Err(BlobError::Damaged(digest));
        }
        Ok(found.into_stream().map(move |read| read.map_err(|error| failed(digest, error))).boxed())
    }

    /// Whether the store answers.
    pub async fn check_alive(&self) -> Result<(), BlobError> {
        match self.store.head(&self.prefix.clone().join("alive")).await {
            Ok(_) | Err(Failure::NotFound { .. }) => Ok(()),
            Err(error) => Err(BlobError::Store(error.into())),
        }
    }

    /// Where a blob is; no folder holds them all.
    fn key(&self, digest: Digest) -> Key {
        let digits = digest.to_string();
        self.prefix.clone().join("sha256").join(&digits[..2]).join(digits.as_str())
    }
}

fn failed(digest: Digest, error: Failure) -> BlobError {
    match error {
        Failure::NotFound { .. } => BlobError::Missing(digest),
        other => BlobError::Store(other.into()),
    }
}
