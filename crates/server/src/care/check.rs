//! Is everything there, and what it should be.
//!
//! Every row is read and every file is read through, one after the other, so that a registry of any size is
//! checked in little memory and while it is served. What is wrong is told as it is found.

use futures_util::StreamExt;

use super::{CareError, check_together};
use crate::blobs::{BlobError, Blobs, Listed};
use crate::store::Store;
use crate::store::each::Read;
use crate::store::inspect::Named;
use crate::store::removals::BATCH;

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing it is.
    pub kind: Kind,
    /// Which row or which file.
    pub what: String,
    /// What is to be said of it.
    pub message: String,
}

/// What kind of thing is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The database says itself that it is damaged.
    Database,
    /// A row cannot be read, or contradicts itself or others.
    Row,
    /// The file of a version is not there.
    MissingFile,
    /// The file of a version is something else.
    DamagedFile,
    /// A file that no version has: of a publish that runs now or was cut off. That is no damage.
    UnusedFile,
    /// Something that nobody of us put there. That is no damage.
    ForeignFile,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Database => "database",
            Kind::Row => "row",
            Kind::MissingFile => "missing-file",
            Kind::DamagedFile => "damaged-file",
            Kind::UnusedFile => "unused-file",
            Kind::ForeignFile => "foreign-file",
        }
    }

    /// Whether something is lost or wrong.
    pub fn is_damage(self) -> bool {
        !matches!(self, Kind::UnusedFile | Kind::ForeignFile)
    }
}

/// How much was looked at, and how much of it is damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Versions.
    pub versions: u64,
    /// Files that lie there.
    pub files: u64,
    /// Bytes of files that were read through.
    pub bytes: u64,
    /// Findings that are damage.
    pub damaged: u64,
    /// Findings that are not.
    pub noted: u64,
}

/// Looks at everything.
pub async fn check(
    store: &Store,
    blobs: &Blobs,
    mut tell: impl FnMut(Finding),
) -> Result<Checked, CareError> {
    check_together(store, blobs).await?;
    let mut checked = Checked::default();
    let mut found = |checked: &mut Checked, kind: Kind, what: String, message: String| {
        if kind.is_damage() {
            checked.damaged += 1;
        } else {
            checked.noted += 1;
        }
        tell(Finding { kind, what, message });
    };
    for message in store.look_at_file().await? {
        found(&mut checked, Kind::Database, "database".to_owned(), message);
    }
    for (id, why) in store.look_at_packages().await? {
        found(&mut checked, Kind::Row, id, why);
    }
    for token in store.unreadable_tokens().await? {
        found(&mut checked, Kind::Row, format!("token {token}"), "it cannot be read".to_owned());
    }
    for rule in store.unreadable_publishers().await? {
        found(&mut checked, Kind::Row, format!("publisher {rule}"), "it cannot be read".to_owned());
    }
    let mut last: Named = (String::new(), String::new());
    let mut package = String::new();
    loop {
        let Read { rows: names, unread } = store.named_after(&last).await?;
        for _ in 0..unread {
            let message = "its names cannot be read".to_owned();
            found(&mut checked, Kind::Row, "a version".to_owned(), message);
        }
        let Some(end) = names.last().cloned() else { break };
        for named in names {
            if named.0 != package {
                named.0.clone_into(&mut package);
                for why in store.look_at_highest(&package).await? {
                    found(&mut checked, Kind::Row, package.clone(), why);
                }
            }
            checked.versions += 1;
            let what = format!("{}@{}", named.0, named.1);
            let looked = store.look_at(&named).await?;
            for fault in looked.faults {
                found(&mut checked, Kind::Row, what.clone(), fault);
            }
            let Some((digest, size)) = looked.file else { continue };
            match blobs.verify(digest).await {
                Ok(read) if read == size => checked.bytes += read,
                Ok(read) => {
                    let message = format!("its file has {read} bytes, the row says {size}");
                    found(&mut checked, Kind::Row, what, message);
                }
                Err(error @ BlobError::Missing(_)) => {
                    found(&mut checked, Kind::MissingFile, what, error.to_string());
                }
                Err(error @ BlobError::Damaged(_)) => {
                    found(&mut checked, Kind::DamagedFile, what, error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        last = end;
    }
    let mut listing = blobs.list();
    let mut batch = Vec::new();
    loop {
        let next = listing.next().await.transpose()?;
        let is_end = next.is_none();
        match next {
            Some(Listed::Blob { digest, .. }) => {
                checked.files += 1;
                batch.push(digest);
            }
            Some(Listed::Foreign(path)) => {
                let message = "nobody of us put it there".to_owned();
                found(&mut checked, Kind::ForeignFile, path, message);
            }
            None => {}
        }
        if batch.len() == BATCH || is_end {
            for digest in store.unused(&batch).await? {
                let message = "no version has it".to_owned();
                found(&mut checked, Kind::UnusedFile, format!("sha256:{digest}"), message);
            }
            batch.clear();
        }
        if is_end {
            return Ok(checked);
        }
    }
}
