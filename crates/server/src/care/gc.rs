//! Removes package files that no version has.
//!
//! They are left by publishes that were cut off or refused at the last moment. Files that are younger than the
//! grace are left alone; that spares the publishes of this moment work, and nothing more rests on it: what keeps a
//! file from being taken away from under a publish is written in [`crate::store::removals`].

use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use package::digest::Digest;

use super::CareError;
use crate::blobs::{Blobs, Listed};
use crate::service::now;
use crate::store::Store;
use crate::store::removals::Removal;

/// How many files are marked at once: whoever publishes one of them waits until it is gone.
const MARKED: usize = 20;

/// How long somebody may write one file, at least.
const UNFINISHED: Duration = Duration::from_mins(10);

/// Whether files are removed or only named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are removed.
    Remove,
    /// They are named.
    Name,
}

/// What is told while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One file more was looked at.
    Looked,
    /// The file of this digest, and so many bytes, goes.
    Goes(Digest, u64),
}

/// What was found and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Files that lie there.
    pub files: u64,
    /// Files that were removed, or would be.
    pub removed: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Files that no version has, but that are too young.
    pub young: u64,
    /// Files that were begun and never finished, and were removed, or would be.
    pub unfinished: u64,
}

/// Removes what is older than the grace. Each file is told as it is looked at, and each that goes.
pub async fn collect(
    store: &Store,
    blobs: &Blobs,
    grace: Duration,
    mode: Mode,
    mut tell: impl FnMut(Step),
) -> Result<Collected, CareError> {
    // Of another registry's database no version has any of these files.
    blobs.check_bound(store.id()).await?;
    let mut collected = Collected::default();
    let before = now().saturating_sub(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
    let mut listing = blobs.list();
    let mut batch: Vec<(Digest, u64)> = Vec::new();
    let mut young = Vec::new();
    loop {
        let next = listing.next().await.transpose()?;
        let is_end = next.is_none();
        if let Some(Listed::Blob { digest, size, modified }) = next {
            collected.files += 1;
            tell(Step::Looked);
            if modified <= before {
                batch.push((digest, size));
            } else {
                young.push(digest);
            }
        }
        if young.len() == MARKED || is_end {
            collected.young += store.unused(&young).await?.len() as u64;
            young.clear();
        }
        if batch.len() == MARKED || is_end {
            let digests: Vec<Digest> = batch.iter().map(|(digest, _)| *digest).collect();
            let going = match mode {
                Mode::Name => store.unused(&digests).await?,
                // Most files have a version; they are not marked, and nobody waits.
                Mode::Remove => {
                    let unused = store.unused(&digests).await?;
                    if unused.is_empty() { unused } else { store.mark(&unused, now()).await? }
                }
            };
            for (digest, size) in batch.drain(..).filter(|(digest, _)| going.contains(digest)) {
                if mode == Mode::Remove {
                    let remove = async { blobs.remove(digest).await.map_err(CareError::from) };
                    if store.remove_marked(digest, now(), remove).await? == Removal::Kept {
                        continue;
                    }
                }
                collected.removed += 1;
                collected.bytes += size;
                tell(Step::Goes(digest, size));
            }
        }
        if is_end {
            break;
        }
    }
    let old = grace.max(UNFINISHED);
    let moment = SystemTime::now().checked_sub(old).unwrap_or(SystemTime::UNIX_EPOCH);
    for path in blobs.unfinished(moment) {
        if mode == Mode::Remove {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    let path = path.display().to_string();
                    return Err(CareError::File { path, trouble: error.into() });
                }
                _ => {}
            }
        }
        collected.unfinished += 1;
    }
    if mode == Mode::Remove {
        store.forget_removals(now()).await?;
    }
    Ok(collected)
}
