//! Answers that are remembered: what need not be asked again.
//!
//! What an action or a pattern of arguments means is for the caller to say; here they are text.

use super::query::{Turn, query};
use super::{State, StateError};
use crate::Time;

/// An approval that is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The package.
    pub package: String,
    /// The action, or a pattern of actions.
    pub action: String,
    /// A pattern of arguments.
    pub arguments: String,
    /// How long it counts.
    pub lasts: Lasts,
    /// Who said so.
    pub by: String,
}

/// How long an approval counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// For one call.
    Once,
    /// For a session, by its name.
    Session(String),
    /// Until it is taken back.
    Always,
    /// Until it is taken back, for calls from one surface, by its name: the answer to a question that is asked
    /// the first time only. It is about every call of the action, whatever the arguments.
    First(String),
}

/// A remembered approval, with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Its number.
    pub id: i64,
    /// What was said.
    pub rule: Rule,
    /// When.
    pub created: Time,
}

impl State {
    /// Remembers an approval; gives its number. What is remembered already is not remembered twice, but for what is
    /// used up by one call.
    pub async fn remember(&self, rule: &Rule, now: Time) -> Result<i64, StateError> {
        let (lasts, session) = match &rule.lasts {
            Lasts::Once => ("once", ""),
            Lasts::Session(name) => ("session", name.as_str()),
            Lasts::Always => ("always", ""),
            Lasts::First(surface) => ("first", surface.as_str()),
        };
        let failed = |error| self.failed("remember an approval", error);
        let mut connection = self.connection().await?;
        // Two who say the same at once make one rule.
        let mut alone = connection.alone(Turn::Rules).await.map_err(failed)?;
        let new: Option<(i64,)> = query(
            "INSERT INTO rules (package, action, arguments, lasts, session, author, created) \
             SELECT $1, $2, $3, $4, $5, $6, $7 WHERE $4 = 'once' OR NOT EXISTS (SELECT 1 FROM rules \
             WHERE package = $1 AND action = $2 AND arguments = $3 AND lasts = $4 AND session = $5) \
             RETURNING id",
        )
        .bind(&rule.package)
        .bind(&rule.action)
        .bind(&rule.arguments)
        .bind(lasts)
        .bind(session)
        .bind(&rule.by)
        .bind(now.unix_millis())
        .fetch_optional(&mut alone)
        .await
        .map_err(failed)?;
        if let Some((id,)) = new {
            alone.commit().await.map_err(failed)?;
            return Ok(id);
        }
        let (id,) = query(
            "SELECT min(id) FROM rules WHERE package = $1 AND action = $2 AND arguments = $3 \
             AND lasts = $4 AND session = $5",
        )
        .bind(&rule.package)
        .bind(&rule.action)
        .bind(&rule.arguments)
        .bind(lasts)
        .bind(session)
        .fetch_one(&mut alone)
        .await
        .map_err(failed)?;
        Ok(id)
    }

    /// What is remembered, of one package or of all.
    pub async fn remembered(&self, package: Option<&str>) -> Result<Vec<Remembered>, StateError> {
        type Row = (i64, String, String, String, String, String, String, i64);
        let rows: Vec<Row> = query(
            "SELECT id, package, action, arguments, lasts, session, author, created FROM rules \
             WHERE $1 IS NULL OR package = $1 ORDER BY id",
        )
        .bind(package)
        .fetch_all(&mut self.connection_to_read().await?)
        .await
        .map_err(|error| self.failed("list approvals", error))?;
        let rule = |(id, package, action, arguments, lasts, session, by, created): Row| {
            let lasts = match lasts.as_str() {
                "always" => Lasts::Always,
                "session" => Lasts::Session(session),
                "first" => Lasts::First(session),
                // What is not known counts for as little as can be.
                _ => Lasts::Once,
            };
            let rule = Rule { package, action, arguments, lasts, by };
            Remembered { id, rule, created: Time::from_unix_millis(created) }
        };
        Ok(rows.into_iter().map(rule).collect())
    }

    /// Forgets an approval; whether it was there. Of all processes that use up an approval
    /// for one call this way, one is told that it was.
    pub async fn forget_rule(&self, id: i64) -> Result<bool, StateError> {
        let gone = query("DELETE FROM rules WHERE id = $1")
            .bind(id)
            .execute(&mut self.connection().await?)
            .await;
        let gone = gone.map_err(|error| self.failed("forget an approval", error))?;
        Ok(gone == 1)
    }

    /// Forgets what was said for a session.
    pub async fn end_session(&self, session: &str) -> Result<(), StateError> {
        let gone = query("DELETE FROM rules WHERE lasts = 'session' AND session = $1")
            .bind(session)
            .execute(&mut self.connection().await?)
            .await;
        gone.map(drop).map_err(|error| self.failed("end a session", error))
    }
}
