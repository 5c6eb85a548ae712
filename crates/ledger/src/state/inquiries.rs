//! What one replica is asked and only another can answer: it is left here for that one, which leaves its answer here.
//!
//! Nothing of it is kept: whoever left it takes it away once it is answered, or nobody waits for it any more, and what is
//! left of a replica that went goes soon. When somebody last waited is told by the clock of the database, which is the same
//! for all. What is written in it is for the replicas to seal.

use super::query::query;
use super::shared::Shared;
use super::{StateError, read};

/// What a replica is asked for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inquiry {
    /// Its name, which is that of no other.
    pub id: String,
    /// What is asked.
    pub request: String,
}

/// What has come of an inquiry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// How often the other has said that it works on it; zero before it knows of it.
    pub beats: u64,
    /// What it answered, once it has.
    pub answer: Option<String>,
}

impl Shared<'_> {
    /// Leaves something for a replica.
    pub async fn leave_inquiry(self, replica: &str, inquiry: &Inquiry) -> Result<(), StateError> {
        query(
            "INSERT INTO inquiries VALUES \
             ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT, 0)",
        )
        .bind(&inquiry.id)
        .bind(replica)
        .bind(&inquiry.request)
        .execute(&mut self.0.connection().await?)
        .await
        .map_err(|error| self.0.failed("ask another replica", error))
        .map(drop)
    }

    /// Says that somebody still waits for an inquiry.
    pub async fn await_inquiry(self, inquiry: &str) -> Result<(), StateError> {
        query(
            "UPDATE inquiries SET awaited = (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT \
             WHERE id = $1",
        )
        .bind(inquiry)
        .execute(&mut self.0.connection().await?)
        .await
        .map_err(|error| self.0.failed("wait for another replica", error))
        .map(drop)
    }

    /// What was left for a replica by somebody who waits for it, and is its to answer from now on: each is had once.
    pub async fn take_inquiries(self, replica: &str) -> Result<Vec<Inquiry>, StateError> {
        let taken: Vec<(String, String)> = query(
            "UPDATE inquiries SET beats = 1 WHERE replica = $1 AND beats = 0 \
             AND awaited > extract(epoch FROM clock_timestamp()) * 1000 - 15000 \
             RETURNING id, request",
        )
        .bind(replica)
        .fetch_all(&mut self.0.connection().await?)
        .await
        .map_err(|error| self.0.failed("look what other replicas ask", error))?;
        Ok(taken.into_iter().map(|(id, request)| Inquiry { id, request }).collect())
    }

    /// Says that an inquiry is being worked on; whether anybody still waits for it, or did a minute ago.
    pub async fn beat(self, inquiry: &str) -> Result<bool, StateError> {
        query(
            "UPDATE inquiries SET beats = beats + 1 WHERE id = $1 \
             AND awaited > extract(epoch FROM clock_timestamp()) * 1000 - 60000",
        )
        .bind(inquiry)
        .execute(&mut self.0.connection().await?)
        .await
        .map_err(|error| self.0.failed("work for another replica", error))
        .map(|count| count > 0)
    }

    /// Answers an inquiry, where anybody still waits for it.
    pub async fn answer_inquiry(self, inquiry: &str, answer: &str) -> Result<(), StateError> {
        query("UPDATE inquiries SET answer = $2 WHERE id = $1")
            .bind(inquiry)
            .bind(answer)
            .execute(&mut self.0.connection().await?)
            .await
            .map_err(|error| self.0.failed("answer another replica", error))
            .map(drop)
    }

    /// What has come of an inquiry; nothing of one that is not there.
    pub async fn hear(self, inquiry: &str) -> Result<Heard, StateError> {
        let known: Vec<(i64, Option<String>)> =
            query("SELECT beats, answer FROM inquiries WHERE id = $1")
                .bind(inquiry)
                .fetch_all(&mut self.0.connection().await?)
                .await
                .map_err(|error| self.0.failed("hear another replica", error))?;
        let heard = known.into_iter().next();
        Ok(heard
            .map_or_else(Heard::default, |(beats, answer)| Heard { beats: read(beats), answer }))
    }

    /// Takes an inquiry away.
    pub async fn forget_inquiry(self, inquiry: &str) -> Result<(), StateError> {
        query("DELETE FROM inquiries WHERE id = $1")
            .bind(inquiry)
            .execute(&mut self.0.connection().await?)
            .await
            .map_err(|error| self.0.failed("forget what another replica was asked", error))
            .map(drop)
    }

    /// Takes away what nobody has waited for since two minutes.
    pub async fn tidy_inquiries(self) -> Result<(), StateError> {
        query(
            "DELETE FROM inquiries \
             WHERE awaited < extract(epoch FROM clock_timestamp()) * 1000 - 120000",
        )
        .execute(&mut self.0.connection().await?)
        .await
        .map_err(|error| self.0.failed("forget what other replicas were asked", error))
        .map(drop)
    }
}
