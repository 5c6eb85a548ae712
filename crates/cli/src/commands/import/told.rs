//! What became of each thing that was imported, for people and programs.

use import::Draft;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::printer::{Printer, line};

/// What became of all of them.
#[derive(Default)]
pub(super) struct Report {
    pub(super) entries: Vec<Told>,
    /// The names of all that is there, whether it is meant or not.
    pub(super) names: Vec<String>,
    /// How many of them are OpenAPI documents.
    pub(super) documents: usize,
}

/// What became of one.
pub(super) struct Told {
    /// What it is called where it comes from.
    pub(super) name: String,
    /// The file, as it is told.
    pub(super) from: String,
    /// Which of the sources it is of.
    pub(super) source: usize,
    pub(super) id: Option<String>,
    pub(super) version: Option<String>,
    pub(super) state: State,
    pub(super) warnings: Vec<String>,
    /// How many tools it offers, where it was asked.
    pub(super) tools: Option<usize>,
}

/// How far it came.
pub(super) enum State {
    /// It can be imported.
    Ready(Box<Draft>),
    /// It is a package already.
    Package(Vec<String>),
    /// It is left alone, and nothing is wrong.
    Left(&'static str),
    /// It cannot be imported.
    Refused(Vec<String>),
    /// It is installed.
    Installed(&'static str),
    /// It is installed, and did not start.
    Unstarted(Vec<String>),
    /// The client starts us instead.
    Replaced,
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::Ready(_) | Self::Package(_) => "importable",
            Self::Left(_) => "left",
            Self::Refused(_) => "refused",
            Self::Installed(how) => how,
            Self::Unstarted(_) => "unstarted",
            Self::Replaced => "replaced",
        }
    }

    fn why(&self) -> Vec<String> {
        match self {
            Self::Left(why) => vec![(*why).to_owned()],
            Self::Refused(why) | Self::Unstarted(why) => why.clone(),
            Self::Ready(_) | Self::Package(_) | Self::Installed(_) | Self::Replaced => Vec::new(),
        }
    }
}

impl Told {
    /// Whether it asks for a value of that name.
    pub(super) fn asks_for(&self, name: &str) -> bool {
        match &self.state {
            State::Ready(draft) => draft.package.inputs.iter().any(|input| input.name == name),
            State::Package(asked) => asked.iter().any(|input| input == name),
            _ => false,
        }
    }

    /// Its line.
    fn line(&self) -> String {
        let mut text = format!("{:<10}  {}", self.state.name(), line(&self.name));
        if let Some(id) = &self.id {
            text += &format!("  {}", line(id));
        }
        if let Some(version) = &self.version {
            text += &format!(" {}", line(version));
        }
        if let Some(tools) = self.tools {
            text += &format!("  ({})", crate::commands::count(tools, "tool"));
        }
        for why in self.state.why() {
            text += &format!("\n            {}", line(&why));
        }
        for warning in &self.warnings {
            text += &format!("\n            note: {}", line(warning));
        }
        text
    }

    fn to_value(&self) -> Value {
        json!({
            "name": self.name, "from": self.from, "id": self.id, "version": self.version,
            "state": self.state.name(), "why": self.state.why(), "warnings": self.warnings,
            "tools": self.tools,
        })
    }
}

impl Report {
    /// Tells it.
    pub(super) fn tell(&self, json_wanted: bool, printer: Printer) -> Result<(), Failure> {
        if json_wanted {
            let entries: Vec<_> = self.entries.iter().map(Told::to_value).collect();
            return printer.json(&json!({"entries": entries}));
        }
        let lines: Vec<_> = self.entries.iter().map(Told::line).collect();
        if lines.is_empty() {
            printer.note("Nothing is there to import");
            return Ok(());
        }
        printer.result(&(lines.join("\n") + "\n"))
    }

    /// How the program ends: what one of them lacks does not stop the others, and is not forgotten.
    pub(super) fn exit(&self) -> Exit {
        let has_failed =
            |entry: &Told| matches!(entry.state, State::Refused(_) | State::Unstarted(_));
        if self.entries.iter().any(has_failed) { Exit::Failed } else { Exit::Done }
    }
}
