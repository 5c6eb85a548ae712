//! How far long work is, on the terminal of whoever waits for it.
//!
//! It is drawn on stderr and taken away at the end, and never drawn where that is no terminal, or where somebody wants
//! JSON or quiet.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use registry::Watch;

use crate::printer::Printer;

/// How often what turns is drawn.
const TURN: Duration = Duration::from_millis(150);

/// Work of which so many bytes are known.
const MEASURED: &str = "{msg} [{bar:30}] {bytes} of {total_bytes}";
/// Work of which nobody knows how much it is.
const TURNING: &str = "{spinner} {msg} ({elapsed})";

/// How far something is. It is gone when this is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Begins to show how far something is: of so many bytes, where that is known.
    pub(crate) fn begin(
        doing: &str,
        bytes: Option<u64>,
        json_wanted: bool,
        printer: Printer,
    ) -> Self {
        let is_shown = printer.is_watched() && !json_wanted;
        let target =
            if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bytes = bytes.filter(|bytes| *bytes > 0);
        let bar = ProgressBar::with_draw_target(bytes, target).with_message(doing.to_owned());
        let template = if bytes.is_some() { MEASURED } else { TURNING };
        // One that cannot be read would be drawn in the library's own way.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> ").tick_chars("|/-\\ "));
        }
        if is_shown {
            bar.tick();
            bar.enable_steady_tick(TURN);
        }
        Self(bar)
    }

    /// Goes on with each byte that passes.
    pub(crate) fn watch(&self) -> Watch {
        let bar = self.0.clone();
        Watch::new(move |bytes| bar.inc(bytes))
    }

    /// Says something beside it: it steps aside meanwhile.
    pub(crate) fn aside<T>(&self, say: impl FnOnce() -> T) -> T {
        self.0.suspend(say)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_draw_can_be_read() {
        for template in [MEASURED, TURNING] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
