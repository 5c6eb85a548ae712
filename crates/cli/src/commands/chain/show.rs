//! `haft chain show`: the steps of a chain, as text, as a drawing and for programs.

use std::path::PathBuf;

use clap::Args;
use host::Tool;
use serde_json::json;

use super::look::{Look, Seen};
use super::{drawn, subject};
use crate::exit::{Exit, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::{output, shell, steps};

#[derive(Args, Debug)]
pub(super) struct ShowArgs {
    /// The id of an installed chain, one of its versions that are still here, or a folder, archive or manifest
    #[arg(value_name = "ID[@VERSION]|PATH")]
    what: String,
    /// Tools that its steps may call without being installed, at this path; may be repeated
    #[arg(long, value_name = "PATH")]
    with: Vec<PathBuf>,
    /// Draw it into a new file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(super) fn run(args: &ShowArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let with = steps::with(&args.with, home, printer)?;
    let found = subject::find(&args.what, &with, home, printer)?;
    let beside: Vec<Tool> = with.iter().flat_map(|one| one.tools.clone()).collect();
    let look = Look::at(&found.tools[0], &beside, home, Printer::silent())?;
    if let Some(path) = &args.svg {
        output::keep(path, drawn::draw(&look).as_bytes())?;
    }
    if json_wanted {
        let mut document = look.to_value();
        if let Some(path) = &args.svg {
            document["svg"] = json!(path.to_string_lossy());
        }
        printer.json(&document)?;
        return Ok(Exit::Done);
    }
    printer.result(&text(&look))?;
    if let Some(path) = &args.svg {
        printer.note(&format!("Wrote {}", line(&path.display().to_string())));
    }
    Ok(Exit::Done)
}

fn text(look: &Look) -> String {
    let mut text =
        format!("{} {}\n{}\n\n", line(&look.id), line(&look.version), line(&look.description));
    let wide = look.steps.iter().map(|one| one.step.name.chars().count()).max().unwrap_or(0);
    for one in &look.steps {
        text += &step(one, look, wide);
    }
    let missing = look.missing();
    if !missing.is_empty() {
        let words: Vec<_> = missing.iter().map(|id| shell::word(id)).collect();
        text += &format!("\nmissing: {}\n", line(&words.join(", ")));
    }
    if let Some(problem) = &look.problem {
        text += &format!("\nit cannot be called as it is: {}\n", line(problem));
    }
    text
}

/// A step and what is known of it: the number of its round first, because steps of one round may run side by side.
fn step(one: &Seen, look: &Look, wide: usize) -> String {
    let version = match &one.tool {
        Some(tool) => tool.package.version.clone().unwrap_or_default(),
        None => "(missing)".to_owned(),
    };
    let action =
        one.step.action.as_ref().map(|action| format!("`{action}` of ")).unwrap_or_default();
    let effects = one.action().and_then(|action| action.side_effects);
    let effects = effects.map(|effects| format!(", side effects {}", effects.name()));
    let head = format!(
        "{:>3}  {:<wide$}  {action}{} {version}{}",
        one.round + 1,
        one.step.name,
        one.step.tool,
        effects.unwrap_or_default()
    );
    let mut text = line(&head) + "\n";
    let indent = " ".repeat(5 + wide + 2);
    let mut tell = |words: String| text += &format!("{indent}{}\n", line(&words));
    if !one.after.is_empty() {
        let names: Vec<_> = one.after.iter().map(|at| look.steps[*at].step.name.as_str()).collect();
        tell(format!("after {}", names.join(", ")));
    }
    for (to, from) in one.step.sources() {
        tell(format!("{to} ← {from}"));
    }
    one.manner().into_iter().for_each(&mut tell);
    match (&one.step.key, one.is_result) {
        (Some(key), true) => tell(format!("→ $.{key}, the result")),
        (Some(key), false) => tell(format!("→ $.{key}")),
        (None, true) => tell("→ the result".to_owned()),
        (None, false) => {}
    }
    text
}
