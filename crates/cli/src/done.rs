//! What a command has done: words for people, a document for programs.

use serde_json::{Value, json};

use crate::exit::{Exit, Outcome};
use crate::printer::Printer;

/// What was done, and what may not be meant by it. A warning stops nothing.
#[derive(Default)]
pub(crate) struct Done {
    words: Vec<String>,
    warnings: Vec<String>,
}

impl Done {
    pub(crate) fn note(&mut self, words: impl Into<String>) {
        self.words.push(words.into());
    }

    /// Warns of what there is to warn of, if anything.
    pub(crate) fn doubt(&mut self, words: impl IntoIterator<Item = String>) {
        self.warnings.extend(words);
    }

    /// Tells it; the document is an object, with the names that listings use.
    pub(crate) fn tell(self, mut document: Value, json_wanted: bool, printer: Printer) -> Outcome {
        if json_wanted {
            document["warnings"] = json!(self.warnings);
            printer.json(&document)?;
            return Ok(Exit::Done);
        }
        self.words.iter().for_each(|words| printer.note(words));
        self.warnings.iter().for_each(|words| printer.warn(words));
        Ok(Exit::Done)
    }
}
