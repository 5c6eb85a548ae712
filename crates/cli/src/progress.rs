//! How far a call is, on the terminal, and its records as they come.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use host::{Advance, CancellationToken, Progress};
use serde_json::Value;

use crate::printer::{Printer, json_escaped, line};

/// A tool may say how far it is a thousand times a second; a person reads slower.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest message of a tool that is shown.
const LONGEST: usize = 200;

/// Shows a call while it runs.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// Says how far it is, now and then, where somebody reads it.
    notes: Option<Printer>,
    last: Mutex<Option<Instant>>,
    /// Where records go.
    records: Records,
    is_shown: AtomicBool,
    /// Whoever no longer reads does not want the rest.
    called_off: CancellationToken,
}

/// Where records go as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Records {
    /// To standard output, each on a line.
    Output,
    /// The same, where that is a terminal, which nothing of it may steer.
    Terminal,
    /// Nowhere: they are shown with the result.
    Nowhere,
}

impl Watcher {
    pub(crate) fn new(
        notes: Option<Printer>,
        records: Records,
        called_off: CancellationToken,
    ) -> Arc<Self> {
        let (last, is_shown) = (Mutex::new(None), AtomicBool::new(false));
        Arc::new(Self { notes, last, records, is_shown, called_off })
    }

    /// Whether the records of the call were shown already.
    pub(crate) fn has_shown(&self) -> bool {
        self.is_shown.load(Ordering::Relaxed)
    }
}

impl Progress for Watcher {
    fn advanced(&self, advance: &Advance) {
        let Some(printer) = self.notes else { return };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = advance.total.is_some_and(|total| advance.done >= total);
        if !is_last && last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        *last = Some(Instant::now());
        printer.note(&words(advance));
    }

    fn recorded(&self, record: &Value) {
        let text = match self.records {
            Records::Output => format!("{record}\n"),
            Records::Terminal => json_escaped(&record.to_string()) + "\n",
            Records::Nowhere => return,
        };
        self.is_shown.store(true, Ordering::Relaxed);
        let mut out = std::io::stdout().lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            self.called_off.cancel();
        }
    }
}

fn words(advance: &Advance) -> String {
    let far = match advance.total {
        Some(total) => format!("{} of {total}", advance.done),
        None => advance.done.to_string(),
    };
    match &advance.message {
        Some(message) => {
            let message: String = message.chars().take(LONGEST).collect();
            format!("{far}: {}", line(&message))
        }
        None => far,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_says_of_itself_stays_on_its_line() {
        let advance = Advance { done: 1.0, total: Some(3.0), message: Some("a\n\x1b[2J".into()) };
        assert_eq!(words(&advance), "1 of 3: a\\n\\u{1b}[2J");
        assert_eq!(words(&Advance { done: 0.5, total: None, message: None }), "0.5");
    }
}
