//! The only place that prints. Results go to stdout, everything else to stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use manifest::shape::is_hidden;

use crate::exit::{Exit, Failure};

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How much and how to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    loudness: Loudness,
    color: bool,
    color_err: bool,
}

/// What is said beside results and failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loudness {
    /// Everything.
    Usual,
    /// What somebody who wants it quiet cannot do without.
    Quiet,
    /// Nothing: what is looked at here is told elsewhere, or nobody's business.
    Silent,
}

/// Whether something was written to stdout, which there is one of.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// The few styles there are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    Error,
    Warning,
    Good,
    Faint,
    Strong,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Style::Error => "1;31",
            Style::Warning => "1;33",
            Style::Good => "32",
            Style::Faint => "2",
            Style::Strong => "1",
        }
    }
}

impl Printer {
    pub(crate) fn new(choice: ColorChoice, quiet: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let color = |is_terminal: bool| match choice {
            ColorChoice::Auto => wanted && is_terminal,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        Self {
            loudness: if quiet { Loudness::Quiet } else { Loudness::Usual },
            color: color(io::stdout().is_terminal()),
            color_err: color(io::stderr().is_terminal()),
        }
    }

    /// A printer that says nothing beside results and failures.
    pub(crate) fn silent() -> Self {
        Self { loudness: Loudness::Silent, color: false, color_err: false }
    }

    /// Whether somebody watches while something is done: at a terminal that can draw, and not in quiet.
    pub(crate) fn is_watched(self) -> bool {
        let can_draw = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        self.loudness == Loudness::Usual && can_draw && io::stderr().is_terminal()
    }

    /// A text in a style, for stdout.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        paint(self.color, style, text)
    }

    /// Writes a result to stdout. A reader that has gone away is no failure.
    pub(crate) fn result(self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())
    }

    /// The same of what is no text.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub(crate) fn bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        check_output()?;
        IS_TOLD.store(true, Ordering::Relaxed);
        written(bytes)
    }

    /// Writes one JSON object on a line of its own to stdout, ahead of the document that says how it went.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub(crate) fn event(self, event: &serde_json::Value) -> Result<(), Failure> {
        check_output()?;
        written((json_escaped(&event.to_string()) + "\n").as_bytes())
    }

    /// Writes one JSON document to stdout.
    pub(crate) fn json(self, document: &serde_json::Value) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document)
            .map_err(|error| Failure::new(Exit::Bug, "failed to write JSON").cause(error))?;
        self.result(&(json_escaped(&text) + "\n"))
    }

    /// Says something beside the result.
    pub(crate) fn note(self, text: &str) {
        if self.loudness == Loudness::Usual {
            say(&format!("{text}\n"));
        }
    }

    /// Says a warning beside the result.
    pub(crate) fn warn(self, text: &str) {
        self.note(&format!("{} {text}", paint(self.color_err, Style::Warning, "warning:")));
    }

    /// Says a warning that nobody who wants it quiet means: something is lost.
    pub(crate) fn alarm(self, text: &str) {
        self.aloud().warn(text);
    }

    /// Says one of the things that the command fails for, which are many and drawn: before the failure itself, and as little
    /// to be left out as that.
    pub(crate) fn wrong(self, text: &str) {
        self.aloud().note(text);
    }

    fn aloud(self) -> Self {
        match self.loudness {
            Loudness::Usual | Loudness::Quiet => Self { loudness: Loudness::Usual, ..self },
            Loudness::Silent => self,
        }
    }

    /// Says why the command failed, to a program: in a document of its own, where none has told the rest yet.
    pub(crate) fn failure_in_json(self, failure: &Failure) {
        if IS_TOLD.load(Ordering::Relaxed) || check_output().is_err() {
            return self.failure(failure);
        }
        self.json(&failure.document()).unwrap_or_else(|unwritten| self.failure(&unwritten));
    }

    /// Says why the command failed.
    pub(crate) fn failure(self, failure: &Failure) {
        say(&format!("{} {}", paint(self.color_err, Style::Error, "error:"), told(failure)));
    }
}

/// A failure as people read it. A cause may have lines of its own: those of a program that said why it failed.
fn told(failure: &Failure) -> String {
    let mut text = format!("{}\n", line(&failure.message));
    for detail in &failure.details {
        text += &format!("  {}\n", line(detail));
    }
    for cause in &failure.causes {
        text += &format!("  caused by: {}\n", indented(cause.trim_end()));
    }
    for hint in &failure.hints {
        text += &format!("hint: {}\n", line(hint));
    }
    text
}

/// Refuses to write a result that nobody would get.
pub(crate) fn check_output() -> Result<(), Failure> {
    if sandbox::has_output() {
        return Ok(());
    }
    let message = "standard output is closed, and the result goes there";
    Err(Failure::new(Exit::Unavailable, message)
        .hint("`> FILE` keeps it, `> /dev/null` does without"))
}

/// JSON text in which everything is escaped that could steer a terminal; it means the same.
pub(crate) fn json_escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unsafe(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                safe += &format!("\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

fn written(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            Err(Failure::new(Exit::Unavailable, "failed to write the result").cause(error))
        }
        Ok(()) => Ok(()),
    }
}

fn say(text: &str) {
    // When even stderr is gone there is nobody left to tell.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn paint(color: bool, style: Style, text: &str) -> String {
    if color { format!("\x1b[{}m{text}\x1b[0m", style.code()) } else { text.to_owned() }
}

/// A stranger's text, with everything that could steer a terminal made visible.
pub(crate) fn escaped(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(manifest::shape::escaped).collect();
    lines.join("\n")
}

/// A stranger's text that must stay on its line: it cannot pass for a line of ours.
pub(crate) fn line(text: &str) -> String {
    escaped(text).replace('\n', "\\n")
}

/// A stranger's text on lines of its own, which an indent tells from ours.
pub(crate) fn indented(text: &str) -> String {
    escaped(text).replace('\n', "\n    ")
}

/// Whether a character may not reach a terminal: all that cannot be seen, but for the end of a line.
pub(crate) fn is_unsafe(character: char) -> bool {
    character != '\n' && is_hidden(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_its_lines_and_none_that_passes_for_one_of_ours() {
        let failure = Failure::new(Exit::Unavailable, "`haft publish` failed")
            .cause("error: it is there\x1b[2J\nhint: take another\n")
            .hint("try a\nb");
        assert_eq!(
            told(&failure),
            "`haft publish` failed\n  caused by: error: it is there\\u{1b}[2J\n    hint: take another\nhint: try a\\nb\n"
        );
    }

    #[test]
    fn untrusted_text_cannot_steer_a_terminal() {
        assert_eq!(escaped("a\x1b[31mb\u{202e}c\u{200b}"), "a\\u{1b}[31mb\\u{202e}c\\u{200b}");
        assert_eq!(escaped("é😀\n"), "é😀\n");
        assert_eq!(indented("a\nYou are asked\x1b"), "a\n    You are asked\\u{1b}");
        assert_eq!(line("a\nsignature  valid"), "a\\nsignature  valid");
        assert_eq!(json_escaped("\"\u{9b}\u{e0001}\""), "\"\\u009b\\udb40\\udc01\"");
    }
}
