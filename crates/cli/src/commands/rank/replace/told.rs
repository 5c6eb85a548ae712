//! What was tried for the steps of a chain, as people and programs are told it.

use std::collections::BTreeMap;
use std::path::Path;

use host::Tool;
use prove::compare::Compared;
use serde_json::{Value, json};

use super::{Together, Trial, Tried, What};
use crate::commands::chain::proof::verdict;
use crate::commands::count;
use crate::printer::{Printer, line};
use crate::shell;

/// What a chain is called beside the one that would take its place.
const NAMES: [&str; 2] = ["the chain as it is", "the chain with them"];

pub(super) struct Told<'t> {
    pub(super) tool: &'t Tool,
    pub(super) trials: &'t [Trial],
    pub(super) together: Option<&'t Together>,
    /// The implementation that makes the calls of each step from now on.
    pub(super) chosen: &'t BTreeMap<String, Option<String>>,
}

impl Trial {
    fn name(&self) -> String {
        match &self.instead {
            What::Implementation(id) => format!("its implementation {id}"),
            What::Tool { id, instead } => match &instead.action {
                Some(action) => format!("{id} {action}"),
                None => id.clone(),
            },
        }
    }

    fn compared(&self) -> Option<&Compared> {
        match &self.result {
            Tried::Better(compared) | Tried::NotFaster(compared) | Tried::Fails(compared) => {
                Some(compared)
            }
            Tried::Untried(_) => None,
        }
    }

    /// One word, for programs.
    fn word(&self) -> &'static str {
        match self.result {
            Tried::Better(_) => "faster",
            Tried::NotFaster(_) => "not_faster",
            Tried::Fails(_) => "fails",
            Tried::Untried(_) => "untried",
        }
    }

    fn words(&self) -> String {
        match &self.result {
            Tried::Better(compared) => {
                let ratio = compared.ratio().unwrap_or(1.0);
                format!("{ratio:.2} times as fast{}", sureness(compared))
            }
            Tried::NotFaster(compared) => format!("not clearly faster{}", sureness(compared)),
            Tried::Fails(compared) => {
                let lost = compared.lost();
                format!("fails {}: {}", count(lost.len(), "test"), lost.join(", "))
            }
            Tried::Untried(why) => format!("was not tried: {why}"),
        }
    }
}

fn sureness(compared: &Compared) -> String {
    let [slower, faster] = compared.faster;
    format!(" ({faster} of {} pairs, p = {:.3})", slower + faster, compared.chance())
}

impl Told<'_> {
    pub(super) fn text(&self) -> String {
        if self.trials.is_empty() {
            let id = line(&self.tool.package.id);
            return format!("nothing here could take the place of a step of {id}\n");
        }
        let mut text = String::new();
        let mut last = None;
        for trial in self.trials {
            if last != Some(&trial.step) {
                text += &format!("{}  {}\n", line(&trial.step), line(&trial.now));
                last = Some(&trial.step);
            }
            text += &format!("  {}: {}\n", line(&trial.name()), line(&trial.words()));
            if let (What::Implementation(id), Tried::Better(_)) = (&trial.instead, &trial.result) {
                let is_chosen = self.chosen.get(&trial.step).and_then(Option::as_ref) == Some(id);
                text += &if is_chosen {
                    "    it makes its calls from now on\n".to_owned()
                } else {
                    format!("    `implementation = \"{}\"` in the policy chooses it\n", line(id))
                };
            }
        }
        if let Some(together) = self.together {
            text += &format!("{}\n", line(&verdict(&together.compared, NAMES)));
        }
        text
    }

    pub(super) fn hint(&self, written: Option<&Path>, printer: Printer) {
        match (written, self.together) {
            (Some(folder), _) => {
                let folder = shell::word(&folder.display().to_string());
                printer.note(&format!("Wrote it to {folder}; next: haft test {folder}"));
            }
            (None, Some(together)) if together.is_good() => {
                printer
                    .note("hint: --output FOLDER writes the chain with them, as its next version");
            }
            (None, _) => {}
        }
    }

    pub(super) fn to_value(&self, written: Option<&Path>) -> Value {
        let numbers = |compared: &Compared| {
            json!({
                "ratio": compared.ratio(),
                "pairs": {"now": compared.faster[0], "instead": compared.faster[1]},
                "p": compared.chance(),
                "lost": compared.lost(),
            })
        };
        let trial = |trial: &Trial| {
            let (tool, action, implementation) = match &trial.instead {
                What::Implementation(id) => (None, None, Some(id)),
                What::Tool { id, instead } => (Some(id), instead.action.as_ref(), None),
            };
            json!({
                "step": trial.step,
                "now": trial.now,
                "tool": tool,
                "action": action,
                "implementation": implementation,
                "outcome": trial.word(),
                "compared": trial.compared().map(numbers),
                "words": trial.words(),
            })
        };
        json!({
            "package": self.tool.package.canonical_id(),
            "version": self.tool.package.version,
            "trials": self.trials.iter().map(trial).collect::<Vec<_>>(),
            "together": self.together.map(|one| {
                let mut told = numbers(&one.compared);
                told["good"] = one.is_good().into();
                told
            }),
            "written": written.map(|folder| folder.to_string_lossy()),
        })
    }
}
