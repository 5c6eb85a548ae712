//! Progress without secrets.

use std::sync::Arc;

use serde_json::Value;
use vault::Redactor;

use crate::call::{Advance, Progress};
use crate::clip;

/// How many bytes of what a server says it is doing are told.
const LONGEST: usize = 1024;

/// Tells somebody how far a call is, without its secrets.
#[derive(Debug)]
pub(super) struct Quiet {
    pub(super) told: Arc<dyn Progress>,
    pub(super) redactors: [Redactor; 2],
}

impl Progress for Quiet {
    fn advanced(&self, advance: &Advance) {
        let message = advance.message.as_deref().map(|message| {
            let [one, other] = &self.redactors;
            clip::start(&other.text(&one.text(message)), LONGEST)
        });
        self.told.advanced(&Advance { message, ..advance.clone() });
    }

    fn recorded(&self, record: &Value) {
        let mut record = record.clone();
        self.redactors.iter().for_each(|redactor| redactor.json(&mut record));
        self.told.recorded(&record);
    }
}
