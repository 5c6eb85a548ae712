//! Who may do what.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Store, StoreError, read, stored};
use crate::token::{Role, Scope, Secret};

/// A token as it is kept: not the token itself, only what it hashes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is called.
    pub id: String,
    /// Whose names it is for.
    pub scope: Scope,
    /// What it is for.
    pub role: Role,
    /// When it was made, in milliseconds since 1970.
    pub created_at: u64,
    /// When it ends.
    pub expires_at: Option<u64>,
    /// When it was revoked.
    pub revoked_at: Option<u64>,
}

impl Token {
    /// Whether it is good at this moment.
    pub fn is_good(&self, now: u64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

const KEEP: &str = "keep a token";
const FIND: &str = "look for a token";
const REVOKE: &str = "revoke a token";
const COLUMNS: &str = "SELECT id, namespace, role, created_at, expires_at, revoked_at FROM tokens";

impl Store {
    /// Keeps a token. What it hashes to is all that is known of it afterwards.
    pub async fn keep_token(&self, secret: &Secret, token: &Token) -> Result<(), StoreError> {
        let mut change = self.change(KEEP).await?;
        sqlx::query(
            "INSERT INTO tokens (id, hash, namespace, role, created_at, expires_at, revoked_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(&token.id)
        .bind(secret.hash())
        .bind(token.scope.name())
        .bind(token.role.name())
        .bind(stored(token.created_at))
        .bind(token.expires_at.map(stored))
        .bind(token.revoked_at.map(stored))
        .execute(&mut *change.transaction)
        .await
        .map_err(StoreError::query(KEEP))?;
        change.transaction.commit().await.map_err(StoreError::query(KEEP))
    }

    /// The token that somebody shows, good or not.
    pub async fn token(&self, secret: &Secret) -> Result<Option<Token>, StoreError> {
        let asked = sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE hash = $1"));
        let row = sqlx::query(asked)
            .bind(secret.hash())
            .fetch_optional(&self.pool)
            .await
            .map_err(StoreError::query(FIND))?;
        row.as_ref().map(token_of).transpose().map_err(StoreError::query(FIND))
    }

    /// All tokens, the newest first.
    pub async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let asked = sqlx::AssertSqlSafe(format!("{COLUMNS} ORDER BY created_at DESC, id"));
        let rows =
            sqlx::query(asked).fetch_all(&self.pool).await.map_err(StoreError::query(FIND))?;
        rows.iter().map(|row| token_of(row).map_err(StoreError::query(FIND))).collect()
    }

    /// The ids of tokens that cannot be read.
    pub async fn unreadable_tokens(&self) -> Result<Vec<String>, StoreError> {
        let asked = sqlx::AssertSqlSafe(format!("{COLUMNS} ORDER BY id"));
        let rows =
            sqlx::query(asked).fetch_all(&self.pool).await.map_err(StoreError::query(FIND))?;
        let damaged = rows.iter().filter(|row| token_of(row).is_err());
        Ok(damaged.map(|row| row.try_get(0).unwrap_or_else(|_| "?".to_owned())).collect())
    }

    /// Revokes the token of this id; says whether there is one. When it was revoked before, that stays so.
    pub async fn revoke_token(&self, id: &str, now: u64) -> Result<bool, StoreError> {
        let mut change = self.change(REVOKE).await?;
        let done =
            sqlx::query("UPDATE tokens SET revoked_at = COALESCE(revoked_at, $1) WHERE id = $2")
                .bind(stored(now))
                .bind(id)
                .execute(&mut *change.transaction)
                .await
                .map_err(StoreError::query(REVOKE))?;
        change.transaction.commit().await.map_err(StoreError::query(REVOKE))?;
        Ok(done.rows_affected() > 0)
    }
}

fn token_of(row: &AnyRow) -> Result<Token, sqlx::Error> {
    let (namespace, role): (String, String) = (row.try_get(1)?, row.try_get(2)?);
    let number = |column: usize| row.try_get::<Option<i64>, _>(column).map(|found| found.map(read));
    let unknown = || sqlx::Error::Decode(format!("there is no role `{role}`").into());
    Ok(Token {
        id: row.try_get(0)?,
        scope: Scope::named(&namespace),
        role: Role::named(&role).ok_or_else(unknown)?,
        created_at: read(row.try_get(3)?),
        expires_at: number(4)?,
        revoked_at: number(5)?,
    })
}
