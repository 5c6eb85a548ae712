//! What other worlds are told: servers, well-known entries, capabilities.

use std::ops::ControlFlow;

use registry::Yank;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Row};

use super::each::Read;
use super::yanks::yank_of;
use super::{Store, StoreError, asking, read, stored};

/// A version of a server of the MCP world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRow {
    /// Its name there.
    pub name: String,
    /// The id of its package here.
    pub id: String,
    /// The dialect of its manifest.
    pub dialect: String,
    /// The version.
    pub version: String,
    /// SHA-256 of the package file, in hexadecimal.
    pub digest: String,
    /// The server.json.
    pub server: String,
    /// When it was published, in milliseconds since 1970.
    pub published_at: u64,
    /// When it was published, reviewed, taken back or offered again.
    pub updated_at: u64,
    /// Why it was taken back, if it was.
    pub yanked: Option<Yank>,
    /// Whether it is the highest that is offered.
    pub is_latest: bool,
}

/// Which servers are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerQuery {
    /// The name and the version that come before.
    pub after: Option<(String, String)>,
    /// Those that have changed at this moment or later.
    pub updated_since: Option<u64>,
    /// Which of their versions.
    pub version: AskedVersion,
    /// Whether those that were taken back too.
    pub with_deleted: bool,
    /// The one of this name alone.
    pub name: Option<String>,
    /// Those of these names alone: not so many that they are a table of their own.
    pub names: Option<Vec<String>>,
    /// Those among the names of this namespace alone.
    pub namespace: Option<String>,
}

impl ServerQuery {
    /// Whether the database may look through all servers before it has found enough.
    fn is_scan(&self) -> bool {
        let is_narrow = self.updated_since.is_some()
            || (self.namespace.is_some() && self.names.is_none())
            || matches!(self.version, AskedVersion::Exactly(_));
        is_narrow && self.name.is_none()
    }
}

/// Which versions are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AskedVersion {
    /// All.
    #[default]
    All,
    /// The highest that is offered.
    Latest,
    /// Exactly this one.
    Exactly(String),
}

/// An entry that is ready but for an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id of its package.
    pub id: String,
    /// The version.
    pub version: String,
    /// SHA-256 of the package file, in hexadecimal.
    pub digest: String,
    /// The entry.
    pub text: String,
    /// When the version was published or changed, in milliseconds since 1970.
    pub updated_at: u64,
}

const SERVERS: &str = "look for servers";
const ENTRIES: &str = "look for entries";

impl Store {
    /// Some of the servers, by name and version.
    pub async fn servers(
        &self,
        query: &ServerQuery,
        limit: u32,
    ) -> Result<Read<ServerRow>, StoreError> {
        let mut asked = Words::new(
            "SELECT p.server_name, p.id, p.dialect, v.version, v.digest, v.server, v.published_at, \
             v.updated_at, v.yanked_at, v.yank_reason, v.yank_security, p.latest FROM ",
        );
        // `SQLite` begins with the table on the left: by name, or by when it was changed.
        let by_change = query.updated_since.is_some() && query.names.is_none();
        asked.push(if by_change {
            "versions v CROSS JOIN packages p"
        } else {
            "packages p CROSS JOIN versions v"
        });
        asked
            .push(" WHERE v.package = p.id AND p.server_name IS NOT NULL AND v.server IS NOT NULL");
        // That world knows no channels.
        asked.push(" AND v.channel = 'stable'");
        if let Some(name) = &query.name {
            asked.push(" AND p.server_name = ").push_bind(name.clone());
        }
        if let Some(names) = &query.names {
            asked.push(" AND p.server_name IN (");
            for (at, name) in names.iter().enumerate() {
                asked.push(if at > 0 { ", " } else { "" }).push_bind(name.clone());
            }
            asked.push(")");
        }
        if let Some(namespace) = &query.namespace {
            asked.push(" AND p.namespace = ").push_bind(namespace.clone());
        }
        if let Some((name, version)) = &query.after {
            // The first half lets the database go there at once.
            asked.push(" AND p.server_name >= ").push_bind(name.clone());
            asked.push(" AND (p.server_name > ").push_bind(name.clone());
            asked.push(" OR v.version > ").push_bind(version.clone()).push(")");
        }
        if let Some(since) = query.updated_since {
            asked.push(" AND v.updated_at >= ").push_bind(stored(since));
        }
        match &query.version {
            AskedVersion::All => {}
            AskedVersion::Latest => {
                asked.push(" AND v.version = p.latest");
            }
            AskedVersion::Exactly(version) => {
                asked.push(" AND v.version = ").push_bind(version.clone());
            }
        }
        if !query.with_deleted {
            asked.push(" AND v.yanked_at IS NULL");
        }
        asked.push(" ORDER BY p.server_name, v.version LIMIT ").push_bind(i64::from(limit));
        let _turn = if query.is_scan() { Some(self.scan(SERVERS).await?) } else { None };
        self.each(asked.query(), SERVERS, server_of).await
    }

    /// The install-manifests, those that were published first before others, after the one of this id; of a namespace
    /// where one is named.
    pub async fn listed(
        &self,
        namespace: Option<&str>,
        after: &str,
        limit: u32,
    ) -> Result<Read<Entry>, StoreError> {
        // Of several that have one id in different namespaces, the one that was there first comes first.
        let mut asked = Words::new(
            "SELECT id, version, digest, listed, updated_at FROM (\
             SELECT p.id, v.version, v.digest, v.listed, v.updated_at, \
             (SELECT MIN(w.published_at) FROM versions w WHERE w.package = p.id) AS first \
             FROM packages p JOIN versions v ON v.package = p.id AND v.version = p.latest \
             WHERE p.dialect = 'install-manifest' AND v.listed IS NOT NULL",
        );
        if let Some(namespace) = namespace {
            asked.push(" AND p.namespace = ").push_bind(namespace.to_owned());
        }
        asked.push(") AS told WHERE ");
        asked.push_bind(after.to_owned()).push(" = '' OR first > ");
        let first = "(SELECT MIN(w.published_at) FROM versions w WHERE w.package = ";
        asked.push(first).push_bind(after.to_owned()).push(") OR (first = ");
        asked.push(first).push_bind(after.to_owned()).push(") AND id > ");
        asked.push_bind(after.to_owned()).push(") ORDER BY first, id LIMIT ");
        asked.push_bind(i64::from(limit));
        let _turn = self.scan(ENTRIES).await?;
        self.each(asked.query(), ENTRIES, entry_of).await
    }

    /// Capabilities by id, after this one, until there are so many or they have so many bytes; and whether there
    /// are more.
    pub async fn capabilities(
        &self,
        namespace: Option<&str>,
        after: &str,
        most: usize,
        bytes: usize,
    ) -> Result<(Vec<Entry>, bool), StoreError> {
        let mut asked = Words::new(
            "SELECT p.id, v.version, v.digest, v.capability, v.updated_at \
             FROM versions v CROSS JOIN packages p \
             WHERE p.id = v.package AND v.version = p.latest AND v.capability IS NOT NULL \
             AND v.package > ",
        );
        asked.push_bind(after.to_owned());
        if let Some(namespace) = namespace {
            asked.push(" AND p.namespace = ").push_bind(namespace.to_owned());
        }
        let limit = i64::try_from(most.saturating_add(1)).unwrap_or(i64::MAX);
        asked.push(" ORDER BY v.package LIMIT ").push_bind(limit);
        let _turn = self.scan(ENTRIES).await?;
        let (mut entries, mut length, mut is_full) = (Vec::new(), 0, false);
        let keep = |entry: Entry| {
            length += entry.text.len();
            if entries.len() >= most || (length > bytes && !entries.is_empty()) {
                is_full = true;
                return ControlFlow::Break(());
            }
            entries.push(entry);
            ControlFlow::Continue(())
        };
        let unread = self.each_while(asked.query(), ENTRIES, entry_of, keep).await?;
        let has_more = is_full || entries.len() + unread > most;
        Ok((entries, has_more))
    }

    /// The number of the last change.
    pub async fn last_change(&self) -> Result<i64, StoreError> {
        let number = sqlx::query_scalar("SELECT number FROM feed").fetch_one(&self.pool).await;
        number.map_err(StoreError::query(ENTRIES))
    }

    /// The manifest of a version, as it was written.
    pub async fn manifest(&self, id: &str, version: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let _asking = asking(ENTRIES);
        let found =
            sqlx::query_scalar("SELECT manifest FROM versions WHERE package = $1 AND version = $2")
                .bind(id)
                .bind(version)
                .fetch_optional(&self.pool)
                .await;
        found.map_err(StoreError::query(ENTRIES))
    }
}

/// A question that is put together. What comes from outside is bound, never written into it; both databases
/// know places by their numbers alone.
struct Words {
    text: String,
    values: Vec<Bound>,
}

enum Bound {
    Text(String),
    Number(i64),
}

impl From<String> for Bound {
    fn from(text: String) -> Self {
        Bound::Text(text)
    }
}

impl From<i64> for Bound {
    fn from(number: i64) -> Self {
        Bound::Number(number)
    }
}

impl Words {
    fn new(text: &'static str) -> Self {
        Self { text: text.to_owned(), values: Vec::new() }
    }

    fn push(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    fn push_bind(&mut self, value: impl Into<Bound>) -> &mut Self {
        self.values.push(value.into());
        self.text.push_str(&format!("${}", self.values.len()));
        self
    }

    fn query(self) -> Query<'static, Any, AnyArguments> {
        let query = sqlx::query(AssertSqlSafe(self.text));
        self.values.into_iter().fold(query, |query, value| match value {
            Bound::Text(text) => query.bind(text),
            Bound::Number(number) => query.bind(number),
        })
    }
}

fn server_of(row: &AnyRow) -> Result<ServerRow, sqlx::Error> {
    let (version, latest): (String, Option<String>) = (row.try_get(3)?, row.try_get(11)?);
    Ok(ServerRow {
        name: row.try_get(0)?,
        id: row.try_get(1)?,
        dialect: row.try_get(2)?,
        digest: row.try_get(4)?,
        server: row.try_get(5)?,
        published_at: read(row.try_get(6)?),
        updated_at: read(row.try_get(7)?),
        yanked: yank_of(row, 8)?,
        is_latest: latest.as_deref() == Some(version.as_str()),
        version,
    })
}

fn entry_of(row: &AnyRow) -> Result<Entry, sqlx::Error> {
    Ok(Entry {
        id: row.try_get(0)?,
        version: row.try_get(1)?,
        digest: row.try_get(2)?,
        text: row.try_get(3)?,
        updated_at: read(row.try_get(4)?),
    })
}
