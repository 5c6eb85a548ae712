//! Taking back a version, and offering it again.

use registry::Yank;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::versions::{FindError, commit, next, settle};
use super::{Store, StoreError, asking, stored};
use crate::store::tokens::Token;
use crate::token::{Role, Scope};

const YANK: &str = "take back a version";
const LOOK: &str = "look whether a tool was taken back";

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yanked {
    /// It is so.
    Done,
    /// Somebody who may do more took it back, and only such as they change that.
    Held(Standing),
}

/// As what somebody takes back a version, from those who may do least to those who may do most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Who publishes it.
    Publisher,
    /// Who administers its namespace.
    Administrator,
    /// Who administers the registry.
    Operator,
}

impl Standing {
    const ALL: [(Standing, &'static str); 3] = [
        (Standing::Publisher, "publish"),
        (Standing::Administrator, "admin"),
        (Standing::Operator, "operator"),
    ];

    /// Who administers a namespace that owns a package beside its own is a publisher of it, no more.
    fn of(token: &Token, namespace: &str) -> Self {
        match (token.role, &token.scope) {
            (Role::Admin, Scope::All) => Standing::Operator,
            (Role::Admin, Scope::Namespace(own)) if own == namespace => Standing::Administrator,
            (Role::Read | Role::Publish | Role::Review | Role::Admin, _) => Standing::Publisher,
        }
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The standing of that name. What nobody knows is the highest, so that damage lets nobody in.
    fn named(name: &str) -> Self {
        let known = Self::ALL.iter().find(|(_, known)| *known == name);
        known.map_or(Standing::Operator, |(standing, _)| *standing)
    }
}

impl Store {
    /// Takes back a version, or offers it again: then there is no yank. Who did so is kept, and what was taken
    /// back by somebody who may do more is not changed.
    pub async fn yank(
        &self,
        id: &str,
        version: &str,
        yank: Option<&Yank>,
        by: &Token,
        now: u64,
    ) -> Result<Yanked, FindError> {
        let mut change = self.change(YANK).await?;
        let connection = &mut *change.transaction;
        let number = next(connection, YANK).await?;
        let found: Option<(Option<String>, String)> = sqlx::query_as(
            "SELECT v.yanked_as, p.namespace FROM versions v JOIN packages p ON p.id = v.package \
             WHERE v.package = $1 AND v.version = $2",
        )
        .bind(id)
        .bind(version)
        .fetch_optional(&mut *connection)
        .await
        .map_err(StoreError::query(YANK))?;
        let (held, namespace) = found.ok_or(FindError::NoVersion)?;
        let (held, standing) = (held.as_deref().map(Standing::named), Standing::of(by, &namespace));
        // From `next` on nobody else changes anything, so it is still so below.
        if let Some(held) = held.filter(|held| *held > standing) {
            return Ok(Yanked::Held(held));
        }
        sqlx::query(
            "UPDATE versions SET yanked_at = $1, yank_reason = $2, yanked_by = $3, yanked_as = $4, \
             yank_security = $5, updated_at = $6 WHERE package = $7 AND version = $8",
        )
        .bind(yank.map(|_| stored(now)))
        .bind(yank.map(|yank| yank.reason.as_str()))
        .bind(yank.map(|_| by.id.as_str()))
        .bind(yank.map(|_| standing.name()))
        .bind(yank.map(|yank| i64::from(yank.security)))
        .bind(stored(now))
        .bind(id)
        .bind(version)
        .execute(&mut *connection)
        .await
        .map_err(StoreError::query(YANK))?;
        settle(connection, id, number, YANK).await?;
        commit(change, YANK).await?;
        Ok(Yanked::Done)
    }

    /// Why nobody is given the package of this id any more, where that is for security: no version of it is offered, and
    /// one was taken back for that.
    pub async fn gone_for_security(&self, id: &str) -> Result<Option<Yank>, StoreError> {
        let _asking = asking(LOOK);
        let row = sqlx::query(
            "SELECT v.yanked_at, v.yank_reason, v.yank_security FROM packages p \
             JOIN versions v ON v.package = p.id WHERE p.id = $1 AND p.latest IS NULL \
             AND v.yanked_at IS NOT NULL AND v.yank_security <> 0 \
             AND v.channel IN ('stable', 'beta') ORDER BY v.yanked_at DESC LIMIT 1",
        )
        .bind(id)
        .fetch_optional(&self.pool)
        .await
        .map_err(StoreError::query(LOOK))?;
        row.map_or(Ok(None), |row| yank_of(&row, 0).map_err(StoreError::query(LOOK)))
    }
}

/// Why a version was taken back, if it was: from the columns `yanked_at`, `yank_reason` and `yank_security`, which stand
/// there in this order.
pub(super) fn yank_of(row: &AnyRow, first: usize) -> Result<Option<Yank>, sqlx::Error> {
    let at: Option<i64> = row.try_get(first)?;
    let reason: Option<String> = row.try_get(first + 1)?;
    let security: Option<i64> = row.try_get(first + 2)?;
    // What is neither yes nor no is a yes, so that damage hides no danger.
    let security = security.is_some_and(|mark| mark != 0);
    Ok(at.map(|_| Yank { reason: reason.unwrap_or_default(), security }))
}
