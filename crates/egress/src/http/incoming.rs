//! A response whose body is taken piece by piece, so that nobody has to hold all of it.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::time::{Instant, timeout_at};

use super::error::SendError;
use crate::attempt::{Outcome, Record};

/// A response of which the head is here, and the body still comes.
pub struct Incoming {
    /// How it went.
    pub status: StatusCode,
    /// What is said about it.
    pub headers: HeaderMap,
    response: reqwest::Response,
    /// Until its end is told; an answer that nobody reads to its end was stopped.
    record: Option<Record>,
    until: Instant,
    silence: Duration,
    most: u64,
    came: u64,
}

impl Incoming {
    pub(super) fn new(
        response: reqwest::Response,
        record: Record,
        until: Instant,
        silence: Duration,
        most: u64,
    ) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, response, record: Some(record), until, silence, most, came: 0 }
    }

    /// How long the body is said to be.
    pub fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next piece; none at the end. More than it may have, too long a silence and a response that takes too long are
    /// failures, after which nothing comes any more.
    pub async fn piece(
        &mut self,
    ) -> Result<Option<impl AsRef<[u8]> + Send + 'static + use<>>, SendError> {
        let until = self.until.min(Instant::now() + self.silence);
        let came = match timeout_at(until, self.response.chunk()).await {
            Ok(came) => came.map_err(SendError::within),
            Err(_) => Err(SendError::TimedOut),
        };
        let piece = match came {
            Ok(Some(piece)) => {
                self.came += piece.len() as u64;
                if let Some(record) = &self.record {
                    record.count_down(piece.len());
                }
                if self.came > self.most {
                    Err(SendError::TooLarge { most: self.most })
                } else {
                    return Ok(Some(piece));
                }
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        if let Some(record) = self.record.take() {
            record.end(match &piece {
                Ok(_) => Outcome::Completed,
                Err(error) => error.outcome(),
            });
        }
        piece
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Incoming").field("status", &self.status).finish_non_exhaustive()
    }
}
