//! What was typed: a command line, or what is wrong with it.

use std::ffi::OsStr;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::Haft;
use crate::exit::{Exit, Failure};

/// Reads the command line. Help, and what is wrong with it, is shown to people here and now, and ends the program;
/// a program that wants JSON is told by the failure.
pub(crate) fn read() -> Result<Haft, Failure> {
    Haft::try_parse().map_err(|error| {
        if error.kind() == ErrorKind::UnknownArgument && is_about_a_secret() {
            return value_typed();
        }
        if !error.use_stderr() || !wants_json() {
            error.exit();
        }
        let lines = error.render().to_string();
        failure(error.kind(), &lines)
    })
}

/// Whether a secret is named, on a command line that cannot be read: then what nobody knows may be its value.
fn is_about_a_secret() -> bool {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let verbs = words.iter().skip_while(|word| *word != "secret").skip(1);
    verbs.clone().any(|word| word == "set" || word == "rm")
}

/// What to say of a value among the arguments, without saying it again.
fn value_typed() -> Failure {
    Failure::invalid("there is more than the package and the name of a secret")
        .kind("bad_usage")
        .hint("the value is no argument: it is asked for, or read from standard input")
}

/// Whether JSON is asked for, on a command line that cannot be read.
pub(crate) fn wants_json() -> bool {
    let mut ours = std::env::args_os().skip(1).take_while(|word| word != OsStr::new("--"));
    ours.any(|word| word == OsStr::new("--json"))
}

/// What is wrong, of the paragraphs that people are shown: the error, what may have been meant, and the usage.
fn failure(kind: ErrorKind, shown: &str) -> Failure {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let paragraphs: Vec<String> = shown.split("\n\n").map(one_line).collect();
    let usage = paragraphs.iter().find(|text| text.starts_with("Usage: "));
    let failure = |message: &str| Failure::new(Exit::Invalid, message).kind("bad_usage");
    // Then all of the help is shown, and no error.
    if kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return usage.into_iter().fold(failure("a verb is missing"), Failure::hint);
    }
    let mut paragraphs = paragraphs.iter();
    let message = paragraphs.next().map(String::as_str).unwrap_or_default();
    let hints = paragraphs.filter(|text| !text.is_empty() && !text.starts_with("For more"));
    hints.fold(failure(message.strip_prefix("error: ").unwrap_or(message)), |failure, hint| {
        failure.hint(hint.strip_prefix("tip: ").unwrap_or(hint))
    })
}
