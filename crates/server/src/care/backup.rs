//! All of a registry, in one file or folder.
//!
//! It is consistent while the registry is served: the rows are those of one moment, and the files they speak of
//! never change and are not removed while a row speaks of them. What is damaged is named, left out, and breaks no
//! other.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::path::Path;

use package::digest::{Digest, Hasher};

use super::place::{Head, ROWS, Sink, Tail, failed};
use super::{CareError, check_together};
use crate::blobs::{BlobError, Blobs};
use crate::service::now;
use crate::store::Store;
use crate::store::rows::KNOWN;

/// What was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Rows.
    pub rows: u64,
    /// Package files.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// What could not be kept, each with why.
    pub damaged: Vec<String>,
}

/// Makes a backup in a new file, or in a new folder where the path ends in a slash or is an empty folder.
pub async fn backup(store: &Store, blobs: &Blobs, into: &Path) -> Result<Kept, CareError> {
    check_together(store, blobs).await?;
    let mut sink = Sink::new(into)?;
    let mut kept = Kept::default();
    let beside = sink.beside().to_owned();
    let mut rows = sink.scratch()?;
    // One line for each version: several may have the same file, which is kept once.
    let mut names = sink.scratch()?;
    let mut hasher = Hasher::default();
    {
        let mut rows = BufWriter::new(&mut rows);
        let mut names = BufWriter::new(&mut names);
        let unread = store
            .dump(|row| {
                let line = format!("{row}\n");
                hasher.update(line.as_bytes());
                kept.rows += 1;
                rows.write_all(line.as_bytes()).map_err(failed(&beside))?;
                if row["table"] == "versions"
                    && let Some(digest) = row["row"]["digest"].as_str()
                {
                    writeln!(names, "{digest}").map_err(failed(&beside))?;
                }
                Ok::<_, CareError>(())
            })
            .await?;
        kept.damaged.extend(unread.iter().map(|unread| format!("{}: {}", unread.row, unread.why)));
        rows.flush().map_err(failed(&beside))?;
        names.flush().map_err(failed(&beside))?;
    }
    let head = Head {
        format: Head::FORMAT,
        tables: KNOWN,
        made_at: now(),
        rows: kept.rows,
        rows_sha256: hasher.finish().to_string(),
    };
    sink.head(&head)?;
    let size = rows.metadata().map_err(failed(&beside))?.len();
    rows.rewind().map_err(failed(&beside))?;
    sink.put(ROWS, size, &mut rows)?;
    let mut tail = Tail::default();
    names.rewind().map_err(failed(&beside))?;
    let mut seen = HashSet::new();
    for line in BufReader::new(&mut names).lines() {
        let line = line.map_err(failed(&beside))?;
        let Some(digest) = Digest::parse(&line) else {
            kept.damaged.push(format!("`{line}` is no digest of a package file"));
            continue;
        };
        // Several versions may have the same file.
        if !seen.insert(digest) {
            continue;
        }
        match blobs.get(digest).await {
            Ok(bytes) => {
                sink.blob(digest, &bytes)?;
                tail.files += 1;
                kept.bytes += bytes.len() as u64;
            }
            Err(error @ (BlobError::Missing(_) | BlobError::Damaged(_))) => {
                kept.damaged.push(error.to_string());
                tail.missing.push(line);
            }
            Err(error) => return Err(error.into()),
        }
    }
    kept.files = tail.files;
    sink.tail(&tail)?;
    sink.finish()?;
    Ok(kept)
}
