//! Who may do what.

use registry::Provenance;
use sqlx::AnyConnection;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Store, StoreError, asking, read, stored};
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
    /// The identity it was given for, when it was given for one.
    pub provenance: Option<Provenance>,
}

impl Token {
    /// Whether it is good at this moment.
    pub fn is_good(&self, now: u64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// An identity that is exchanged for a token.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'i> {
    /// What it is known by.
    pub hash: &'i str,
    /// Until when it must be remembered, in milliseconds since 1970.
    pub remembered_until: u64,
}

/// How long after its end a token that was given for an identity is still listed, in milliseconds.
const REMEMBERED: u64 = 30 * 24 * 3_600 * 1_000;
const KEEP: &str = "keep a token";
const FIND: &str = "look for a token";
const REVOKE: &str = "revoke a token";
const COLUMNS: &str = "SELECT id, namespace, role, created_at, expires_at, revoked_at, provenance \
                       FROM tokens";

impl Store {
    /// Keeps a token. What it hashes to is all that is known of it afterwards.
    pub async fn keep_token(&self, secret: &Secret, token: &Token) -> Result<(), StoreError> {
        let mut change = self.change(KEEP).await?;
        insert(&mut change.transaction, secret, token).await?;
        change.transaction.commit().await.map_err(StoreError::query(KEEP))
    }

    /// Keeps a token that is given for an identity, once: says whether it was not given before. What has
    /// ended is forgotten.
    pub async fn keep_token_for(
        &self,
        secret: &Secret,
        token: &Token,
        identity: &Identity<'_>,
    ) -> Result<bool, StoreError> {
        let mut change = self.change(KEEP).await?;
        let connection = &mut *change.transaction;
        sqlx::query("DELETE FROM identities WHERE expires_at < $1")
            .bind(stored(token.created_at))
            .execute(&mut *connection)
            .await
            .map_err(StoreError::query(KEEP))?;
        // Tokens of a quarter of an hour are made with each build; nobody looks for one after a month.
        sqlx::query("DELETE FROM tokens WHERE provenance IS NOT NULL AND expires_at < $1")
            .bind(stored(token.created_at.saturating_sub(REMEMBERED)))
            .execute(&mut *connection)
            .await
            .map_err(StoreError::query(KEEP))?;
        let done = sqlx::query(
            "INSERT INTO identities (hash, expires_at) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING",
        )
        .bind(identity.hash)
        .bind(stored(identity.remembered_until))
        .execute(&mut *connection)
        .await
        .map_err(StoreError::query(KEEP))?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        insert(connection, secret, token).await?;
        change.transaction.commit().await.map_err(StoreError::query(KEEP))?;
        Ok(true)
    }

    /// The token that somebody shows, good or not.
    pub async fn token(&self, secret: &Secret) -> Result<Option<Token>, StoreError> {
        let _asking = asking(FIND);
        let asked = sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE hash = $1"));
        let row = sqlx::query(asked)
            .bind(secret.hash())
            .fetch_optional(&self.pool)
            .await
            .map_err(StoreError::query(FIND))?;
        row.as_ref().map(token_of).transpose().map_err(StoreError::query(FIND))
    }

    /// All tokens that can be read, the newest first.
    pub async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let asked = sqlx::AssertSqlSafe(format!("{COLUMNS} ORDER BY created_at DESC, id"));
        Ok(self.each(sqlx::query(asked), FIND, token_of).await?.rows)
    }

    /// The token of this id, good or not.
    pub async fn token_called(&self, id: &str) -> Result<Option<Token>, StoreError> {
        let asked = sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE id = $1"));
        let row = sqlx::query(asked)
            .bind(id)
            .fetch_optional(&self.pool)
            .await
            .map_err(StoreError::query(FIND))?;
        row.as_ref().map(token_of).transpose().map_err(StoreError::query(FIND))
    }

    /// The ids of tokens that cannot be read.
    pub async fn unreadable_tokens(&self) -> Result<Vec<String>, StoreError> {
        let readable = self.tokens().await?.into_iter().map(|token| token.id).collect();
        self.ids_unread(sqlx::query("SELECT id FROM tokens ORDER BY id"), FIND, readable).await
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
        // A token that was given for an identity may do less than another: it is none where that cannot be read.
        provenance: {
            let text: Option<String> = row.try_get(6)?;
            let read = text.map(|text| serde_json::from_str(&text)).transpose();
            read.map_err(|error| sqlx::Error::Decode(error.into()))?
        },
    })
}

async fn insert(
    connection: &mut AnyConnection,
    secret: &Secret,
    token: &Token,
) -> Result<(), StoreError> {
    let provenance = token.provenance.as_ref().and_then(|told| serde_json::to_string(told).ok());
    sqlx::query(
        "INSERT INTO tokens (id, hash, namespace, role, created_at, expires_at, revoked_at, provenance) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(&token.id)
    .bind(secret.hash())
    .bind(token.scope.name())
    .bind(token.role.name())
    .bind(stored(token.created_at))
    .bind(token.expires_at.map(stored))
    .bind(token.revoked_at.map(stored))
    .bind(provenance)
    .execute(connection)
    .await
    .map_err(StoreError::query(KEEP))?;
    Ok(())
}
