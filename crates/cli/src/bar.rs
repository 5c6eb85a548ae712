//! How far long work is, on the terminal of whoever waits for it.
//!
//! It is drawn on stderr and taken away at the end, and never drawn where that is no terminal, or where somebody wants
//! JSON or quiet.

use std::time::Duration;

use egress::{Passed, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::printer::Printer;

/// How often what turns is drawn.
const TURN: Duration = Duration::from_millis(150);

/// Work of which so many bytes are known.
const MEASURED: &str = "{msg} [{bar:30}] {bytes} of {total_bytes}";
/// Work of which nobody knows how many bytes it is.
const TURNING: &str = "{spinner} {msg} ({elapsed})";
/// Work on things of which nobody knows how many there are.
const COUNTED: &str = "{spinner} {msg}: {human_pos} ({elapsed})";
/// The same where it is known.
const COUNTED_OF: &str = "{spinner} {msg}: {human_pos} of {human_len} ({elapsed})";

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
        let bytes = bytes.filter(|bytes| *bytes > 0);
        let template = if bytes.is_some() { MEASURED } else { TURNING };
        Self::drawn(doing, bytes, template, json_wanted, printer)
    }

    /// Begins to show with how many things something was done.
    pub(crate) fn count(doing: &str, json_wanted: bool, printer: Printer) -> Self {
        Self::drawn(doing, None, COUNTED, json_wanted, printer)
    }

    fn drawn(
        doing: &str,
        length: Option<u64>,
        template: &str,
        json_wanted: bool,
        printer: Printer,
    ) -> Self {
        let is_shown = printer.is_watched() && !json_wanted;
        let target =
            if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(length, target).with_message(doing.to_owned());
        draw_as(&bar, template);
        if is_shown {
            bar.tick();
            bar.enable_steady_tick(TURN);
        }
        Self(bar)
    }

    /// Goes on with each byte that passes.
    pub(crate) fn watch(&self) -> Watch {
        let bar = self.0.clone();
        Watch::new(move |passed| match passed {
            // What a package is wrapped in on its way is not counted.
            Passed::Bytes(bytes) => {
                let most = bar.length().unwrap_or(u64::MAX);
                bar.set_position((bar.position() + bytes).min(most));
            }
            Passed::Again => bar.reset(),
        })
    }

    /// So many bytes are done, of so many where that is known.
    pub(crate) fn at(&self, done: u64, total: Option<u64>) {
        if let Some(total) = total.filter(|total| *total > 0) {
            self.0.set_length(total);
            draw_as(&self.0, MEASURED);
        }
        self.0.set_position(done);
    }

    /// So many things there are.
    pub(crate) fn of(&self, total: u64) {
        self.0.set_length(total);
        draw_as(&self.0, COUNTED_OF);
    }

    /// One thing more is done, which may be one more than was known.
    pub(crate) fn done_one(&self) {
        self.0.inc(1);
        let done = self.0.position();
        if self.0.length().is_some_and(|known| known < done) {
            self.0.set_length(done);
        }
    }

    /// How many things are done.
    pub(crate) fn done(&self) -> u64 {
        self.0.position()
    }

    /// Says something beside it: it steps aside meanwhile.
    pub(crate) fn aside<T>(&self, say: impl FnOnce() -> T) -> T {
        self.0.suspend(say)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        // Whatever came since the last turn is shown too.
        self.0.disable_steady_tick();
        self.0.tick();
        self.0.finish_and_clear();
    }
}

fn draw_as(bar: &ProgressBar, template: &str) {
    // One that cannot be read would be drawn in the library's own way.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> ").tick_chars("|/-\\ "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_draw_can_be_read() {
        for template in [MEASURED, TURNING, COUNTED, COUNTED_OF] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
