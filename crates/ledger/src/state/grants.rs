//! What the owner allowed, and what was reached for in vain.

use super::query::{Turn, query};
use super::{State, StateError, read};
use crate::Time;

/// How many attempts are remembered of a package; the oldest go first.
const MAX_BLOCKED: i64 = 256;
/// The longest value that is remembered of an attempt: a tool chooses it.
const MAX_VALUE: usize = 1_024;

/// What a grant is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GrantKind {
    /// A host of the network.
    Host,
    /// A file or folder, to read.
    Read,
    /// A file or folder, to write.
    Write,
    /// A device.
    Device,
    /// A variable of the environment.
    Env,
    /// A place that it may be called from: a folder, or an archive.
    From,
}

/// Something that a package may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The package.
    pub package: String,
    /// What it is about.
    pub kind: GrantKind,
    /// Which one.
    pub value: String,
    /// Who said so.
    pub by: String,
    /// When.
    pub created: Time,
}

/// Something that a package reached for in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The package.
    pub package: String,
    /// What it is about.
    pub kind: GrantKind,
    /// Which one.
    pub value: String,
    /// How often.
    pub count: u64,
    /// When last.
    pub last_seen: Time,
}

impl GrantKind {
    /// Every kind.
    pub const ALL: [GrantKind; 6] =
        [Self::Host, Self::Read, Self::Write, Self::Device, Self::Env, Self::From];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            GrantKind::Host => "host",
            GrantKind::Read => "read",
            GrantKind::Write => "write",
            GrantKind::Device => "device",
            GrantKind::Env => "env",
            GrantKind::From => "from",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl State {
    /// Allows something; whether it was not allowed before.
    pub async fn grant(&self, grant: &Grant) -> Result<bool, StateError> {
        let done = query(
            "INSERT INTO grants (package, kind, value, author, created) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (package, kind, value) DO NOTHING",
        )
        .bind(&grant.package)
        .bind(grant.kind.name())
        .bind(&grant.value)
        .bind(&grant.by)
        .bind(grant.created.unix_millis())
        .execute(&mut self.connection().await?)
        .await;
        Ok(done.map_err(|error| self.failed("grant", error))? == 1)
    }

    /// Takes a grant back; whether there was one.
    pub async fn revoke(
        &self,
        package: &str,
        kind: GrantKind,
        value: &str,
    ) -> Result<bool, StateError> {
        let gone = query("DELETE FROM grants WHERE package = $1 AND kind = $2 AND value = $3")
            .bind(package)
            .bind(kind.name())
            .bind(value)
            .execute(&mut self.connection().await?)
            .await;
        Ok(gone.map_err(|error| self.failed("revoke", error))? == 1)
    }

    /// Takes back everything that was allowed to a package, with every answer that is remembered for it and what it
    /// reached for in vain; how many grants there were.
    pub async fn revoke_all(&self, package: &str) -> Result<u64, StateError> {
        let failed = |error| self.failed("revoke", error);
        let mut connection = self.connection().await?;
        let mut alone = connection.alone(Turn::Grants).await.map_err(failed)?;
        let mut count = 0;
        for statement in [
            "DELETE FROM rules WHERE package = $1",
            "DELETE FROM blocked WHERE package = $1",
            "DELETE FROM grants WHERE package = $1",
        ] {
            let gone = query(statement).bind(package).execute(&mut alone).await;
            // The last one counts.
            count = gone.map_err(failed)?;
        }
        alone.commit().await.map_err(failed)?;
        Ok(count)
    }

    /// What is allowed, to one package or to all.
    pub async fn grants(&self, package: Option<&str>) -> Result<Vec<Grant>, StateError> {
        let rows: Vec<(String, String, String, String, i64)> = query(
            "SELECT package, kind, value, author, created FROM grants \
             WHERE $1 IS NULL OR package = $1 ORDER BY package, kind, value",
        )
        .bind(package)
        .fetch_all(&mut self.connection_to_read().await?)
        .await
        .map_err(|error| self.failed("list grants", error))?;
        let grant = |(package, kind, value, by, created): (String, String, _, _, _)| {
            let created = Time::from_unix_millis(created);
            // A kind that is not known here allows nothing here.
            Some(Grant { package, kind: GrantKind::parse(&kind)?, value, by, created })
        };
        Ok(rows.into_iter().filter_map(grant).collect())
    }

    /// Notes that a package reached for something in vain.
    pub async fn note_blocked(
        &self,
        package: &str,
        kind: GrantKind,
        value: &str,
        now: Time,
    ) -> Result<(), StateError> {
        let failed = |error| self.failed("note an attempt", error);
        let mut connection = self.connection().await?;
        query(
            "INSERT INTO blocked (package, kind, value, count, last_seen) VALUES ($1, $2, $3, 1, $4) \
             ON CONFLICT (package, kind, value) DO UPDATE \
             SET count = blocked.count + 1, last_seen = excluded.last_seen",
        )
        .bind(package)
        .bind(kind.name())
        .bind(&value[..value.floor_char_boundary(MAX_VALUE)])
        .bind(now.unix_millis())
        .execute(&mut connection)
        .await
        .map_err(failed)?;
        query(
            "DELETE FROM blocked WHERE package = $1 AND (kind, value) NOT IN \
             (SELECT kind, value FROM blocked WHERE package = $1 \
             ORDER BY last_seen DESC, count DESC, kind, value LIMIT $2)",
        )
        .bind(package)
        .bind(MAX_BLOCKED)
        .execute(&mut connection)
        .await
        .map(drop)
        .map_err(failed)
    }

    /// What a package reached for in vain, the last attempt first.
    pub async fn blocked(&self, package: &str) -> Result<Vec<Attempt>, StateError> {
        let rows: Vec<(String, String, i64, i64)> = query(
            "SELECT kind, value, count, last_seen FROM blocked WHERE package = $1 \
             ORDER BY last_seen DESC, kind, value",
        )
        .bind(package)
        .fetch_all(&mut self.connection().await?)
        .await
        .map_err(|error| self.failed("list attempts", error))?;
        let attempt = |(kind, value, count, last_seen): (String, _, _, _)| {
            Some(Attempt {
                package: package.to_owned(),
                kind: GrantKind::parse(&kind)?,
                value,
                count: read(count),
                last_seen: Time::from_unix_millis(last_seen),
            })
        };
        Ok(rows.into_iter().filter_map(attempt).collect())
    }

    /// Forgets what a package reached for.
    pub async fn forget_blocked(&self, package: &str) -> Result<(), StateError> {
        let gone = query("DELETE FROM blocked WHERE package = $1")
            .bind(package)
            .execute(&mut self.connection().await?)
            .await;
        gone.map(drop).map_err(|error| self.failed("forget attempts", error))
    }
}
