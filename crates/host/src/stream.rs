//! Records of a tool, told as they come.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use manifest::model::Action;
use vault::Redactor;

use crate::call::Progress;
use crate::input::check_output;
use crate::output::strict;

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
}

#[derive(Default)]
struct State {
    /// A line that has not ended yet.
    line: Vec<u8>,
    is_broken: bool,
    is_told: bool,
}

impl Stream {
    pub(crate) fn new(told: Arc<dyn Progress>, action: &Action, redactor: Redactor) -> Self {
        let schema = action.output.as_ref().map(|schema| schema.text().into());
        Self { state: Arc::default(), told, redactor, schema }
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

    /// Whether anybody was told anything.
    pub(crate) fn is_told(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_told
    }

    fn tell(&self, state: &mut State) {
        let line = std::mem::take(&mut state.line);
        if state.is_broken || line.trim_ascii().is_empty() {
            return;
        }
        let record = std::str::from_utf8(&line).ok().and_then(strict);
        let record = record.filter(|record| {
            self.schema.as_ref().is_none_or(|schema| check_output(record, schema).is_ok())
        });
        match record {
            Some(mut record) => {
                self.redactor.json(&mut record);
                state.is_told = true;
                self.told.recorded(&record);
            }
            None => state.is_broken = true,
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stream").finish_non_exhaustive()
    }
}
