//! Back from a backup, into stores of either kind.
//!
//! Package files come first, each looked at; then all rows appear in one step. Whoever is killed before that step
//! leaves an empty registry and can begin again.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Seek};
use std::ops::ControlFlow;
use std::path::Path;

use bytes::Bytes;
use package::digest::Digest;

use super::CareError;
use super::place::{Head, Part, Source, Tail, failed};
use crate::blobs::{BlobError, Blobs};
use crate::store::Store;
use crate::store::rows::KNOWN;

/// What was restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Rows.
    pub rows: u64,
    /// Package files.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Package files that a row speaks of and that the backup does not hold.
    pub missing: Vec<String>,
}

/// What becomes of package files that belong to another registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Nothing: they are refused.
    Refuse,
    /// They belong to this one from now on, and the other is refused.
    TakeOver,
}

/// Whether this is a backup that can be brought back, as far as that is seen before its first package file: its head,
/// its rows and, without files, its end. It is looked at before a registry is made for it.
pub async fn check_begins(from: &Path) -> Result<(), CareError> {
    let source = Source::open(from)?;
    let (mut head, mut has_rows, mut is_whole) = (None::<Head>, false, false);
    let read = source.read(None, async |part| {
        match (part, &head) {
            (Part::Head(found), None) => {
                found.check()?;
                head = Some(found);
            }
            (Part::Rows(_, digest), Some(head)) => {
                head.check_rows(digest)?;
                has_rows = true;
            }
            (Part::Blob(..) | Part::Tail(_), Some(_)) if has_rows => {
                is_whole = true;
                return Ok(ControlFlow::Break(()));
            }
            _ => return Err(other_order()),
        }
        Ok(ControlFlow::Continue(()))
    });
    read.await?;
    if is_whole { Ok(()) } else { Err(cut()) }
}

impl Head {
    /// Whether this version of ours knows what is in the backup.
    fn check(&self) -> Result<(), CareError> {
        if self.format != Head::FORMAT {
            return Err(CareError::Newer { found: self.format.into(), known: Head::FORMAT.into() });
        }
        if self.tables > KNOWN {
            return Err(CareError::Newer { found: self.tables, known: KNOWN });
        }
        Ok(())
    }

    fn check_rows(&self, digest: Digest) -> Result<(), CareError> {
        if digest.to_string() == self.rows_sha256 {
            return Ok(());
        }
        Err(CareError::Damaged("its rows are not what they were".to_owned()))
    }
}

fn other_order() -> CareError {
    CareError::NoBackup("its parts are in another order".to_owned())
}

fn cut() -> CareError {
    CareError::Damaged("it ends too early".to_owned())
}

/// Restores a backup into a registry in which nothing is. Its rows are in the folder `room` for a while, without a name.
pub async fn restore(
    store: &Store,
    blobs: &Blobs,
    from: &Path,
    others: Others,
    room: &Path,
) -> Result<Restored, CareError> {
    if let Some(table) = store.first_with_rows().await? {
        return Err(CareError::NotEmpty(table));
    }
    let source = Source::open(from)?;
    match others {
        Others::Refuse => blobs.bind(store.id()).await?,
        Others::TakeOver => blobs.take_over(store.id()).await?,
    }
    let mut restored = Restored::default();
    let mut head: Option<Head> = None;
    let mut rows = None;
    let mut tail: Option<Tail> = None;
    let read = source.read(Some(room), async |part| {
        match (part, &head) {
            (Part::Head(found), None) => {
                found.check()?;
                head = Some(found);
            }
            (Part::Rows(file, digest), Some(head)) if rows.is_none() => {
                head.check_rows(digest)?;
                rows = file;
            }
            (Part::Tail(found), Some(_)) if rows.is_some() => tail = Some(found),
            (Part::Blob(digest, bytes), Some(_)) if rows.is_some() && tail.is_none() => {
                if Digest::of(&bytes) != digest {
                    return Err(CareError::Damaged(format!("sha256:{digest} is something else")));
                }
                restored.files += 1;
                restored.bytes += bytes.len() as u64;
                blobs.put(digest, Bytes::from(bytes)).await?;
            }
            _ => return Err(other_order()),
        }
        Ok(ControlFlow::Continue(()))
    });
    read.await?;
    let (Some(head), Some(mut rows)) = (head, rows) else {
        return Err(CareError::NoBackup("it has no head or no rows".to_owned()));
    };
    let tail = tail.filter(|tail| tail.files == restored.files);
    let tail = tail.ok_or_else(cut)?;
    rows.rewind().map_err(failed(room))?;
    let missing: HashSet<&str> = tail.missing.iter().map(String::as_str).collect();
    let mut seen = HashSet::new();
    for line in BufReader::new(&rows).lines() {
        let line = line.map_err(failed(room))?;
        // Several versions may have the same file.
        let Some(digest) = digest_of(&line).filter(|digest| seen.insert(*digest)) else { continue };
        match blobs.size(digest).await {
            Ok(_) => {}
            Err(BlobError::Missing(_)) if missing.contains(digest.to_string().as_str()) => {
                restored.missing.push(digest.to_string());
            }
            Err(BlobError::Missing(_)) => {
                return Err(CareError::Damaged(format!("sha256:{digest} is not in it")));
            }
            Err(error) => return Err(error.into()),
        }
    }
    rows.rewind().map_err(failed(room))?;
    restored.rows = store.load(BufReader::new(rows).lines()).await?;
    if restored.rows != head.rows {
        return Err(CareError::Damaged("rows are missing".to_owned()));
    }
    Ok(restored)
}

/// The digest of the package file that a row speaks of.
fn digest_of(line: &str) -> Option<Digest> {
    let row: serde_json::Value = serde_json::from_str(line).ok()?;
    if row["table"] != "versions" {
        return None;
    }
    row["row"]["digest"].as_str().and_then(Digest::parse)
}
