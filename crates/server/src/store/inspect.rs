//! Row by row, for a check: a row that cannot be read is named and breaks no other.

use manifest::look::look;
use registry::{Describe, Found, Provenance, State};
use serde_json::{Map, Value};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::each::Read;
use super::versions::{highest, signed};
use super::{Engine, Store, StoreError, read};
use crate::stored::read_manifest;

/// How many names are read at once.
const PAGE: i64 = 500;

const LOOK: &str = "look at every row";

/// The names of a version: its package and itself.
pub type Named = (String, String);

/// What the row of a version comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Its file and the bytes it should have, where the row says so.
    pub file: Option<(package::digest::Digest, u64)>,
    /// What is wrong with the row.
    pub faults: Vec<String>,
}

impl Store {
    /// The bytes of the package files of all versions together, as the rows have them.
    pub async fn file_bytes(&self) -> Result<u64, StoreError> {
        let asked = "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM versions";
        let sum: i64 = sqlx::query_scalar(asked)
            .fetch_one(&self.pool)
            .await
            .map_err(StoreError::query(LOOK))?;
        Ok(read(sum))
    }

    /// How many package files the versions have.
    pub async fn file_count(&self) -> Result<u64, StoreError> {
        let asked = "SELECT CAST(COUNT(DISTINCT digest) AS BIGINT) FROM versions";
        let count: i64 = sqlx::query_scalar(asked)
            .fetch_one(&self.pool)
            .await
            .map_err(StoreError::query(LOOK))?;
        Ok(read(count))
    }

    /// The names of some versions, in order, after the one of these names.
    pub async fn named_after(&self, last: &Named) -> Result<Read<Named>, StoreError> {
        let asked = sqlx::query(
            "SELECT package, version FROM versions WHERE package > $1 OR (package = $2 AND version > $3) \
             ORDER BY package, version LIMIT $4",
        )
        .bind(&last.0)
        .bind(&last.0)
        .bind(&last.1)
        .bind(PAGE);
        self.each(asked, LOOK, |row| Ok((row.try_get(0)?, row.try_get(1)?))).await
    }

    /// Looks at the row of one version. A database that does not answer is no fault of the row.
    pub async fn look_at(&self, (package, version): &Named) -> Result<Looked, StoreError> {
        let asked = sqlx::query(
            "SELECT digest, size, describe, found, entry, manifest, channel, provenance, server, listed, \
             capability, runtime, signature, signers, (SELECT name FROM packages WHERE id = versions.package), \
             (SELECT look_of_name FROM packages WHERE id = versions.package) \
             FROM versions WHERE package = $1 AND version = $2",
        )
        .bind(package)
        .bind(version)
        .fetch_one(&self.pool)
        .await;
        let row = match asked {
            Ok(row) => row,
            Err(error) => {
                self.check_alive().await?;
                return Ok(Looked { file: None, faults: vec![unreadable(&error)] });
            }
        };
        let mut faults = Vec::new();
        let digest = noted(&mut faults, row.try_get::<String, _>(0)).and_then(|text| {
            let digest = package::digest::Digest::parse(&text);
            if digest.is_none() {
                faults.push("its digest is none".to_owned());
            }
            digest
        });
        let size = noted(&mut faults, row.try_get::<i64, _>(1)).map(read);
        if let Some(text) = noted(&mut faults, row.try_get::<String, _>(2)) {
            match registry::read::<Describe>(text.as_bytes()) {
                Ok(describe) => {
                    let told = digest.map(|digest| digest.to_string());
                    if (&describe.id, &describe.version) != (package, version)
                        || describe.sha256 != told
                        || describe.size != size
                    {
                        faults.push("it describes another version".to_owned());
                    }
                    contradictions(&row, &describe, &mut faults);
                }
                Err(error) => faults.push(format!("what describes it cannot be read: {error}")),
            }
        }
        if let Some(text) = noted(&mut faults, row.try_get::<String, _>(3)) {
            match serde_json::from_str::<Found>(&text) {
                Ok(found) if (&found.id, &found.version) == (package, version) => {}
                Ok(_) => faults.push("what is found is another version".to_owned()),
                Err(error) => faults.push(format!("what is found of it cannot be read: {error}")),
            }
        }
        if let Some(bytes) = noted(&mut faults, row.try_get::<Vec<u8>, _>(4)) {
            match postcard::from_bytes::<search::Entry>(&bytes) {
                Ok(entry) if entry.key() == package => {}
                Ok(_) => faults.push("its entry in the index is of another".to_owned()),
                Err(error) => {
                    faults.push(format!("its entry in the index cannot be read: {error}"));
                }
            }
        }
        if let Some(bytes) = noted(&mut faults, row.try_get::<Vec<u8>, _>(5))
            && read_manifest(&bytes, package).is_none()
        {
            faults.push("its manifest cannot be read".to_owned());
        }
        if let Some(name) = noted(&mut faults, row.try_get::<String, _>(6))
            && State::named(&name).is_none()
        {
            faults.push("its channel is none".to_owned());
        }
        for (place, what) in [
            (7, "where it was built"),
            (8, "its server.json"),
            (9, "its entry"),
            (10, "its capability"),
        ] {
            let text = noted(&mut faults, row.try_get::<Option<String>, _>(place)).flatten();
            let is_read = |text: &String| match place {
                7 => serde_json::from_str::<Provenance>(text).is_ok(),
                _ => serde_json::from_str::<Map<String, Value>>(text).is_ok(),
            };
            if text.is_some_and(|text| !is_read(&text)) {
                faults.push(format!("{what} cannot be read"));
            }
        }
        Ok(Looked { file: digest.zip(size), faults })
    }

    /// What is wrong with the highest versions that a package says it has.
    pub async fn look_at_highest(&self, package: &str) -> Result<Vec<String>, StoreError> {
        // In one statement, so that it is of one moment.
        let asked = sqlx::query(
            "SELECT p.latest, p.latest_beta, v.version, v.channel FROM packages p \
             LEFT JOIN versions v ON v.package = p.id AND v.yanked_at IS NULL \
             AND v.channel IN ('stable', 'beta') WHERE p.id = $1 ORDER BY v.published_at, v.version",
        )
        .bind(package)
        .fetch_all(&self.pool)
        .await;
        let mut told: (Option<String>, Option<String>) = (None, None);
        let mut offered = Vec::new();
        let read = asked.and_then(|rows| {
            for row in rows {
                told = (row.try_get(0)?, row.try_get(1)?);
                let version: (Option<String>, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
                offered.extend(version.0.zip(version.1));
            }
            Ok(())
        });
        if let Err(error) = read {
            self.check_alive().await?;
            return Ok(vec![unreadable(&error)]);
        }
        let (stable, all) = highest(&offered);
        let wrong = [("version", stable != told.0), ("beta version", all != told.1)];
        let wrong = wrong.into_iter().filter(|(_, is_wrong)| *is_wrong);
        Ok(wrong
            .map(|(what, _)| format!("its highest {what} is not the one that it says"))
            .collect())
    }

    /// Packages that contradict their versions, each with what is wrong.
    pub async fn look_at_packages(&self) -> Result<Vec<(String, String)>, StoreError> {
        let lone = "SELECT id FROM packages WHERE NOT EXISTS \
             (SELECT 1 FROM versions WHERE versions.package = packages.id) ORDER BY id";
        let unowned = "SELECT DISTINCT package FROM owners WHERE NOT EXISTS \
             (SELECT 1 FROM packages WHERE packages.id = owners.package) ORDER BY package";
        let unreviewed = "SELECT DISTINCT package FROM reviews WHERE NOT EXISTS \
             (SELECT 1 FROM versions WHERE versions.package = reviews.package \
             AND versions.version = reviews.version) ORDER BY package";
        let lost = "SELECT DISTINCT package FROM versions WHERE NOT EXISTS \
             (SELECT 1 FROM packages WHERE packages.id = versions.package) ORDER BY package";
        let mut found = Vec::new();
        for (asked, why) in [
            (lone, "it has no version"),
            (lost, "its versions belong to no package"),
            (unowned, "its owners belong to no package"),
            (unreviewed, "what was said of it is of no version"),
        ] {
            let ids =
                self.each(sqlx::query(asked), LOOK, |row| row.try_get::<String, _>(0)).await?;
            found.extend(ids.rows.into_iter().map(|id| (id, why.to_owned())));
        }
        Ok(found)
    }

    /// What the database says of its own file. `PostgreSQL` looks at its pages when they are read.
    pub async fn look_at_file(&self) -> Result<Vec<String>, StoreError> {
        if self.engine != Engine::Sqlite {
            return Ok(Vec::new());
        }
        let told: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check(100)")
            .fetch_all(&self.pool)
            .await
            .map_err(StoreError::query(LOOK))?;
        Ok(told.into_iter().filter(|line| line != "ok").collect())
    }
}

/// What the row, or that of its package, says otherwise than what describes it.
fn contradictions(row: &AnyRow, describe: &Describe, faults: &mut Vec<String>) {
    let (state, keys) = signed(describe);
    for (place, expected, what) in [
        (11, describe.entry.runtime.as_str(), "its runtime"),
        (12, &state, "the state of its signature"),
        (13, &keys, "the list of keys that signed it"),
        (14, &describe.name, "the name of its package"),
        (15, &look(&describe.name), "what the name of its package looks like"),
    ] {
        if noted(faults, row.try_get::<String, _>(place)).is_some_and(|found| found != expected) {
            faults.push(format!("{what} is not the one that describes it"));
        }
    }
}

fn unreadable(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::ColumnDecode { index, .. } => {
            format!("the row cannot be read: something else stands in column {index}")
        }
        sqlx::Error::RowNotFound => "the row is gone".to_owned(),
        _ => "the row cannot be read".to_owned(),
    }
}

fn noted<T>(faults: &mut Vec<String>, read: Result<T, sqlx::Error>) -> Option<T> {
    read.map_err(|error| faults.push(unreadable(&error))).ok()
}
