//! Records of a tool, told as they come.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use manifest::model::Action;
use serde_json::Value;
use vault::Redactor;

use crate::call::Progress;
use crate::error::{CallError, Kind};
use crate::input::check_output;
use crate::strict::strict;

/// Cuts what a tool writes into records and tells each to whoever waits for them, without secrets. The first
/// that is none, or breaks the tool's promise, is the last: the call fails with it in the end. Clones are
/// the same stream.
#[derive(Clone)]
pub(crate) struct Stream {
    state: Arc<Mutex<State>>,
    told: Arc<dyn Progress>,
    redactor: Redactor,
    /// What every record must be like.
    schema: Option<Arc<str>>,
    /// When the time of the call is over.
    until: Instant,
}

#[derive(Default)]
struct State {
    /// A line that has not ended yet.
    line: Vec<u8>,
    /// Why nothing more is told.
    broken: Option<CallError>,
    is_told: bool,
}

impl Stream {
    pub(crate) fn new(
        told: Arc<dyn Progress>,
        action: &Action,
        redactor: Redactor,
        until: Instant,
    ) -> Self {
        let schema = action.output.as_ref().map(|schema| schema.text().into());
        Self { state: Arc::default(), told, redactor, schema, until }
    }

    /// Hears what comes next.
    pub(crate) fn hear(&self, mut bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            state.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.tell(&mut state);
        }
        state.line.extend_from_slice(bytes);
    }

    /// Nothing comes any more: a last line needs no end where all went well.
    pub(crate) fn finish(&self, is_well: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if is_well {
            self.tell(&mut state);
        }
    }

    /// Whether all records were as promised, when no more come. Nobody has to look at them again.
    pub(crate) fn verdict(&self) -> Result<(), CallError> {
        self.finish(true);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.broken.clone().map_or(Ok(()), Err)
    }

    /// Whether anybody was told anything.
    pub(crate) fn is_told(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_told
    }

    fn tell(&self, state: &mut State) {
        let line = std::mem::take(&mut state.line);
        if state.broken.is_some() || line.trim_ascii().is_empty() {
            return;
        }
        match self.check(&line) {
            Ok(mut record) => {
                self.redactor.json(&mut record);
                state.is_told = true;
                self.told.recorded(&record);
            }
            Err(error) => state.broken = Some(error),
        }
    }

    fn check(&self, line: &[u8]) -> Result<Value, CallError> {
        let record = std::str::from_utf8(line).ok().and_then(strict);
        let record = record.ok_or_else(|| {
            CallError::new(Kind::BadOutput, "a line of the answer is no JSON")
                .with("answer", String::from_utf8_lossy(line))
        })?;
        match &self.schema {
            Some(schema) => {
                check_output("the answer", &record, schema, self.until).map(|()| record)
            }
            None => Ok(record),
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stream").finish_non_exhaustive()
    }
}
