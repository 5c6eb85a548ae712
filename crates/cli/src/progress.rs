//! How far a call is, on the terminal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use host::{Advance, Progress};

use crate::printer::{Printer, line};

/// A tool may say how far it is a thousand times a second; a person reads slower.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest message of a tool that is shown.
const LONGEST: usize = 200;

/// Prints a line now and then.
#[derive(Debug)]
struct OnTerminal {
    printer: Printer,
    last: Mutex<Option<Instant>>,
}

/// Somebody who prints a line now and then.
pub(crate) fn on_terminal(printer: Printer) -> Arc<dyn Progress> {
    Arc::new(OnTerminal { printer, last: Mutex::new(None) })
}

impl Progress for OnTerminal {
    fn advanced(&self, advance: &Advance) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = advance.total.is_some_and(|total| advance.done >= total);
        if !is_last && last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        *last = Some(Instant::now());
        self.printer.note(&words(advance));
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
