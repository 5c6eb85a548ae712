//! Publishing, and what is known of a version.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use manifest::look::look;
use registry::{Channel, Describe, Outcome, State, Version, Versions, Yank, identity};
use sqlx::{AnyConnection, Row};

use super::removals::{self, Note};
use super::yanks::yank_of;
use super::{Changing, Store, StoreError, asking, read, stored};
use crate::doors::Doors;
use crate::trouble::Trouble;

/// A version that is to be published; its blob is durable already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVersion {
    /// The id of its package in the registry.
    pub id: String,
    /// The name of its package in the registry.
    pub name: String,
    /// Whose names it is among.
    pub namespace: String,
    /// The dialect of its manifest.
    pub dialect: String,
    /// The version.
    pub version: String,
    /// SHA-256 of the package file, in hexadecimal.
    pub digest: String,
    /// Bytes of the package file.
    pub size: u64,
    /// Where in the package its manifest is.
    pub manifest_path: String,
    /// The manifest, as it was written.
    pub manifest: Vec<u8>,
    /// What describing it answers.
    pub describe: String,
    /// What finding it answers.
    pub found: String,
    /// What the index is made from.
    pub entry: Vec<u8>,
    /// What runs it.
    pub runtime: String,
    /// What its signatures come to.
    pub signature: String,
    /// The keys that have signed every file, with spaces between them.
    pub signers: String,
    /// The id of the token it is published with.
    pub publisher: String,
    /// When, in milliseconds since 1970.
    pub published_at: u64,
    /// Where it stands from the beginning.
    pub channel: State,
    /// Where it was built, as JSON, when that was proved.
    pub provenance: Option<String>,
    /// What other worlds are told of it.
    pub doors: Doors,
}

/// Why a version was not published.
#[derive(Debug)]
pub enum PublishError {
    /// The version is there with other bytes, of this digest.
    OtherBytes(String),
    /// The package is of this other dialect.
    OtherDialect(String),
    /// Another package, of this id, has the name, or a name or an id that looks the same.
    Taken(String),
    /// The package has this other name.
    OtherName(String),
    /// Its file was removed meanwhile: put it there again.
    FileGone,
    /// Its file is being removed: come again.
    FileUnderway,
    /// The database refuses.
    Store(StoreError),
}

impl fmt::Display for PublishError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PublishError::OtherBytes(_) => out
                .write_str("the version is published with other bytes; changes need a new version"),
            PublishError::OtherDialect(dialect) => {
                write!(
                    out,
                    "the tool is published in the dialect `{dialect}`, and an id has one: give it another id"
                )
            }
            PublishError::Taken(id) => {
                write!(out, "the id or the name looks like that of `{id}`")
            }
            PublishError::OtherName(name) => {
                write!(out, "the tool is published under the name `{name}`, and keeps it")
            }
            PublishError::FileGone | PublishError::FileUnderway => {
                out.write_str("its file is being removed; come again")
            }
            PublishError::Store(error) => error.fmt(out),
        }
    }
}

impl From<StoreError> for PublishError {
    fn from(error: StoreError) -> Self {
        PublishError::Store(error)
    }
}

/// What is known of a version that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The id of its package.
    pub id: String,
    /// The version.
    pub version: String,
    /// SHA-256 of the package file, in hexadecimal.
    pub digest: String,
    /// Bytes of the package file.
    pub size: u64,
    /// What describing it answers.
    pub describe: Bytes,
    /// What runs it.
    pub runtime: String,
    /// Why it was taken back, if it was.
    pub yanked: Option<Yank>,
    /// Where it stands.
    pub channel: State,
    /// The id of the token it was published with.
    pub publisher: String,
}

/// What the signatures of a version come to, and the keys that made them.
pub(crate) fn signed(describe: &Describe) -> (String, String) {
    let signature = describe.signature.as_ref();
    signature.map_or_else(Default::default, |found| (found.state.clone(), found.keys.join(" ")))
}

/// Whether what is said of a version is about it: it goes out as it is kept.
fn is_about(describe: &str, id: &str, version: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Named<'d> {
        #[serde(borrow)]
        id: Cow<'d, str>,
        #[serde(borrow)]
        version: Cow<'d, str>,
    }
    serde_json::from_str::<Named<'_>>(describe)
        .is_ok_and(|named| named.id == id && named.version == version)
}

/// Why a version is not found.
#[derive(Debug)]
pub enum FindError {
    /// There is no such package.
    NoPackage,
    /// There is no such version, or all were taken back where the highest is asked for.
    NoVersion,
    /// The database refuses.
    Store(StoreError),
}

impl From<StoreError> for FindError {
    fn from(error: StoreError) -> Self {
        FindError::Store(error)
    }
}

/// Which version is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which<'w> {
    /// The highest that is offered in this channel and was not taken back.
    HighestIn(Channel),
    /// This one, taken back or not.
    Exactly(&'w str),
}

const PUBLISH: &str = "publish a version";
const FORESEE: &str = "look whether a version may be published";
const FIND: &str = "look for a version";

impl Store {
    /// Publishes a version, in one step. The same bytes again change nothing; whoever comes second with
    /// other bytes is refused, whatever the timing.
    pub async fn publish(&self, new: &NewVersion) -> Result<(Outcome, State), PublishError> {
        let mut change = self.change(PUBLISH).await?;
        let connection = &mut *change.transaction;
        let number = next(connection, PUBLISH).await?;
        let foreseen = judge(connection, new).await?;
        if foreseen.0 == Outcome::Unchanged {
            return Ok(foreseen);
        }
        match removals::look(connection, &new.digest, new.published_at, PUBLISH).await? {
            Note::None => {}
            Note::Underway => return Err(PublishError::FileUnderway),
            Note::Gone => {
                commit(change, PUBLISH).await?;
                return Err(PublishError::FileGone);
            }
        }
        sqlx::query(
            "INSERT INTO packages (id, name, look, look_of_name, namespace, dialect, changed, \
             server_name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO UPDATE \
             SET server_name = COALESCE(packages.server_name, excluded.server_name)",
        )
        .bind(&new.id)
        .bind(&new.name)
        .bind(look(&new.id))
        .bind(look(&new.name))
        .bind(&new.namespace)
        .bind(&new.dialect)
        .bind(number)
        .bind(new.doors.server_name.as_deref())
        .execute(&mut *connection)
        .await
        .map_err(StoreError::query(PUBLISH))?;
        sqlx::query(
            "INSERT INTO versions (package, version, digest, size, manifest_path, manifest, describe, \
             found, entry, runtime, signature, publisher, published_at, channel, provenance, \
             updated_at, server, listed, capability, signers) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, \
             $19, $20)",
        )
        .bind(&new.id)
        .bind(&new.version)
        .bind(&new.digest)
        .bind(stored(new.size))
        .bind(&new.manifest_path)
        .bind(new.manifest.as_slice())
        .bind(&new.describe)
        .bind(&new.found)
        .bind(new.entry.as_slice())
        .bind(&new.runtime)
        .bind(&new.signature)
        .bind(&new.publisher)
        .bind(stored(new.published_at))
        .bind(new.channel.name())
        .bind(new.provenance.as_deref())
        .bind(stored(new.published_at))
        .bind(new.doors.server.as_deref())
        .bind(new.doors.listed.as_deref())
        .bind(new.doors.capability.as_deref())
        .bind(&new.signers)
        .execute(&mut *connection)
        .await
        .map_err(StoreError::query(PUBLISH))?;
        settle(connection, &new.id, number, PUBLISH).await?;
        commit(change, PUBLISH).await?;
        Ok(foreseen)
    }

    /// What would become of a version if it were published now. Nothing is changed.
    pub async fn foresee(&self, new: &NewVersion) -> Result<(Outcome, State), PublishError> {
        let _asking = asking(FORESEE);
        let connection = self.pool.acquire().await;
        judge(&mut *connection.map_err(StoreError::query(FORESEE))?, new).await
    }

    /// The id and the namespace of the package that is meant by an id, with or without the prefix, or by a name.
    pub async fn resolve(&self, asked: &str) -> Result<(String, String), FindError> {
        let _asking = asking(FIND);
        // An id comes before a name, so nobody takes an id away by giving its name to another tool.
        let row = sqlx::query(
            "SELECT id, namespace, 1 AS place FROM packages WHERE id = $1 \
             UNION ALL SELECT id, namespace, 2 AS place FROM packages WHERE name = $2 \
             ORDER BY place LIMIT 1",
        )
        .bind(identity::with_prefix(asked))
        .bind(asked)
        .fetch_optional(&self.pool)
        .await
        .map_err(StoreError::query(FIND))?
        .ok_or(FindError::NoPackage)?;
        let text = |column: usize| row.try_get(column).map_err(StoreError::query(FIND));
        Ok((text(0)?, text(1)?))
    }

    /// A version of the package of this id; one that waits for a reviewer, or was refused, is not found.
    pub async fn find(&self, id: &str, which: Which<'_>) -> Result<Known, FindError> {
        let known = self.find_hidden(id, which).await?;
        if known.channel.is_offered() { Ok(known) } else { Err(FindError::NoVersion) }
    }

    /// A version of the package of this id, offered or not: for those who may publish or review it.
    pub async fn find_hidden(&self, id: &str, which: Which<'_>) -> Result<Known, FindError> {
        let _asking = asking(FIND);
        let row = match which {
            Which::Exactly(version) => sqlx::query(
                "SELECT package, version, digest, size, describe, runtime, yanked_at, yank_reason, \
                     yank_security, channel, publisher FROM versions WHERE package = $1 AND version = $2",
            )
            .bind(id)
            .bind(version)
            .fetch_optional(&self.pool)
            .await,
            Which::HighestIn(channel) => {
                sqlx::query(match channel {
                    Channel::Beta => {
                        "SELECT v.package, v.version, v.digest, v.size, v.describe, v.runtime, \
                         v.yanked_at, v.yank_reason, v.yank_security, v.channel, v.publisher \
                         FROM packages p \
                         JOIN versions v ON v.package = p.id AND v.version = p.latest_beta \
                         WHERE p.id = $1"
                    }
                    Channel::Stable => {
                        "SELECT v.package, v.version, v.digest, v.size, v.describe, v.runtime, \
                         v.yanked_at, v.yank_reason, v.yank_security, v.channel, v.publisher \
                         FROM packages p \
                         JOIN versions v ON v.package = p.id AND v.version = p.latest \
                         WHERE p.id = $1"
                    }
                })
                .bind(id)
                .fetch_optional(&self.pool)
                .await
            }
        };
        let row = row.map_err(StoreError::query(FIND))?.ok_or(FindError::NoVersion)?;
        let text = |column: usize| row.try_get(column).map_err(StoreError::query(FIND));
        let number = |column: usize| row.try_get(column).map_err(StoreError::query(FIND));
        let (id, version, describe): (String, String, String) = (text(0)?, text(1)?, text(4)?);
        if !is_about(&describe, &id, &version) {
            return Err(StoreError::Query { doing: FIND, trouble: Trouble::Row }.into());
        }
        Ok(Known {
            id,
            version,
            digest: text(2)?,
            size: read(number(3)?),
            describe: Bytes::from(describe),
            runtime: text(5)?,
            yanked: yank_of(&row, 6).map_err(StoreError::query(FIND))?,
            channel: state(&row, 9).map_err(StoreError::query(FIND))?,
            publisher: text(10)?,
        })
    }

    /// All versions of the package of this id that are offered, highest first.
    pub async fn versions(&self, id: &str) -> Result<Versions, FindError> {
        let mut all = self.versions_hidden(id).await?;
        all.versions.retain(|version| version.channel.is_offered());
        for version in &mut all.versions {
            version.yanked_by = None;
        }
        // What nobody may see is not there.
        if all.versions.is_empty() { Err(FindError::NoPackage) } else { Ok(all) }
    }

    /// All versions of the package of this id, offered or not: for those who may publish or review it.
    pub async fn versions_hidden(&self, id: &str) -> Result<Versions, FindError> {
        let package = sqlx::query("SELECT name, latest FROM packages WHERE id = $1")
            .bind(id)
            .fetch_optional(&self.pool)
            .await
            .map_err(StoreError::query(FIND))?
            .ok_or(FindError::NoPackage)?;
        let asked = sqlx::query(
            "SELECT version, digest, size, published_at, yanked_at, yank_reason, yank_security, \
             signature, channel, review_reason, provenance, yanked_by FROM versions WHERE package = $1 \
             ORDER BY published_at DESC, version DESC",
        )
        .bind(id);
        let mut versions = self.each(asked, FIND, version_of).await?.rows;
        versions.sort_by_key(|version| std::cmp::Reverse(order(&version.version)));
        Ok(Versions {
            id: id.to_owned(),
            name: package.try_get(0).map_err(StoreError::query(FIND))?,
            latest: package.try_get(1).map_err(StoreError::query(FIND))?,
            versions,
        })
    }
}

fn version_of(row: &sqlx::any::AnyRow) -> Result<Version, sqlx::Error> {
    let yanked_at: Option<i64> = row.try_get(4)?;
    let yank = yank_of(row, 4)?;
    let provenance: Option<String> = row.try_get(10)?;
    Ok(Version {
        version: row.try_get(0)?,
        sha256: row.try_get(1)?,
        size: read(row.try_get(2)?),
        published_at: read(row.try_get(3)?),
        yanked: yank.is_some(),
        yanked_at: yanked_at.map(read),
        yanked_by: row.try_get(11)?,
        yank_security: yank.as_ref().is_some_and(|yank| yank.security),
        yank_reason: yank.map(|yank| yank.reason),
        signature: row.try_get(7)?,
        channel: state(row, 8)?,
        review_reason: row.try_get(9)?,
        provenance: provenance.and_then(|text| serde_json::from_str(&text).ok()),
    })
}

fn state(row: &sqlx::any::AnyRow, column: usize) -> Result<State, sqlx::Error> {
    let name: String = row.try_get(column)?;
    // What cannot be understood is shown to nobody.
    Ok(State::named(&name).unwrap_or(State::Rejected))
}

/// What becomes of a version, whoever asks: it is new, or there with the same bytes and stands where it stands.
async fn judge(
    connection: &mut AnyConnection,
    new: &NewVersion,
) -> Result<(Outcome, State), PublishError> {
    check_package(connection, new).await?;
    let there =
        sqlx::query("SELECT digest, channel FROM versions WHERE package = $1 AND version = $2")
            .bind(&new.id)
            .bind(&new.version)
            .fetch_optional(connection)
            .await
            .map_err(StoreError::query(PUBLISH))?;
    let Some(row) = there else { return Ok((Outcome::Published, new.channel)) };
    let digest: String = row.try_get(0).map_err(StoreError::query(PUBLISH))?;
    if digest != new.digest {
        return Err(PublishError::OtherBytes(digest));
    }
    Ok((Outcome::Unchanged, state(&row, 1).map_err(StoreError::query(PUBLISH))?))
}

/// Whether the package may have this version: its dialect and its name are what they were, and nobody
/// else's.
async fn check_package(
    connection: &mut AnyConnection,
    new: &NewVersion,
) -> Result<(), PublishError> {
    let rows = sqlx::query(
        "SELECT id, name, dialect FROM packages \
         WHERE id = $1 OR name = $2 OR look = $3 OR look_of_name = $4 OR server_name = $5",
    )
    .bind(&new.id)
    .bind(&new.name)
    .bind(look(&new.id))
    .bind(look(&new.name))
    .bind(new.doors.server_name.as_deref())
    .fetch_all(connection)
    .await
    .map_err(StoreError::query(PUBLISH))?;
    for row in rows {
        let text = |column: usize| -> Result<String, StoreError> {
            row.try_get(column).map_err(StoreError::query(PUBLISH))
        };
        let (id, name, dialect) = (text(0)?, text(1)?, text(2)?);
        if id != new.id {
            return Err(PublishError::Taken(id));
        }
        if dialect != new.dialect {
            return Err(PublishError::OtherDialect(dialect));
        }
        if name != new.name {
            return Err(PublishError::OtherName(name));
        }
    }
    Ok(())
}

/// The number of this change. From here to the end nobody else changes anything.
pub(super) async fn next(
    connection: &mut AnyConnection,
    doing: &'static str,
) -> Result<i64, StoreError> {
    sqlx::query_scalar("UPDATE feed SET number = number + 1 RETURNING number")
        .fetch_one(connection)
        .await
        .map_err(StoreError::query(doing))
}

/// Notes which version is the highest now, and that the package has changed.
pub(super) async fn settle(
    connection: &mut AnyConnection,
    id: &str,
    number: i64,
    doing: &'static str,
) -> Result<(), StoreError> {
    let rows = sqlx::query(
        "SELECT version, channel FROM versions WHERE package = $1 AND yanked_at IS NULL \
         AND channel IN ('stable', 'beta') ORDER BY published_at, version",
    )
    .bind(id)
    .fetch_all(&mut *connection)
    .await
    .map_err(StoreError::query(doing))?;
    let mut offered: Vec<(String, String)> = Vec::with_capacity(rows.len());
    for row in rows {
        let text = |column: usize| row.try_get(column).map_err(StoreError::query(doing));
        offered.push((text(0)?, text(1)?));
    }
    let (latest, latest_beta) = highest(&offered);
    sqlx::query("UPDATE packages SET latest = $1, latest_beta = $2, changed = $3 WHERE id = $4")
        .bind(latest)
        .bind(latest_beta)
        .bind(number)
        .bind(id)
        .execute(connection)
        .await
        .map_err(StoreError::query(doing))?;
    Ok(())
}

/// The highest of the versions that are offered, each with its channel, in the order they were published in: of those
/// that are stable, and of all. Of equals the last one counts.
pub(super) fn highest(offered: &[(String, String)]) -> (Option<String>, Option<String>) {
    let highest = |is_meant: &dyn Fn(&str) -> bool| {
        let versions = offered.iter().filter(|(_, channel)| is_meant(channel));
        versions.map(|(version, _)| version).max_by_key(|version| order(version)).cloned()
    };
    (highest(&|channel| channel == State::Stable.name()), highest(&|_| true))
}

pub(super) async fn commit(change: Changing<'_>, doing: &'static str) -> Result<(), StoreError> {
    change.transaction.commit().await.map_err(StoreError::query(doing))
}

/// What versions are ordered by: precedence. What is no version comes before all that are. Builds are equals: that of a
/// tools.json is made of its bytes, and says nothing of which is newer.
fn order(version: &str) -> Option<semver::Version> {
    let version = semver::Version::parse(version).ok()?;
    Some(semver::Version { build: semver::BuildMetadata::EMPTY, ..version })
}
