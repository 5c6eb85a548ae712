//! `haft schema`: the JSON Schemas we publish.

use clap::Args;
use manifest::dialect::{COMPANION, PUBLISHED, Published};
use manifest::shape::suggest;
use serde_json::json;

use crate::exit::{Exit, Failure, Outcome};
use crate::printer::Printer;

#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// Which schema: a dialect, or dialect@version; without one, their names are listed
    #[arg(value_name = "DIALECT[@VERSION]")]
    name: Option<String>,
}

pub(crate) fn run(args: &SchemaArgs, json_wanted: bool, printer: Printer) -> Outcome {
    let all = || PUBLISHED.iter().chain([&COMPANION]);
    let Some(name) = &args.name else {
        let names: Vec<_> = all().map(|published| published.name).collect();
        if json_wanted {
            printer.json(&json!({"schemas": names}))?;
        } else {
            let lines: String = all()
                .map(|published| format!("{:<26} {}\n", published.name, published.title))
                .collect();
            printer.result(&lines)?;
        }
        return Ok(Exit::Done);
    };
    // A dialect without a version is its newest; the list is in order of age.
    let newest = |published: &&Published| base(published) == name;
    let found = all().find(|published| published.name == name).or_else(|| all().rfind(newest));
    match found {
        Some(published) => {
            printer.json(&published.json_schema())?;
            Ok(Exit::Done)
        }
        None => {
            let near = suggest(name, all().flat_map(|published| [published.name, base(published)]));
            let hint = near.map_or_else(
                || "`haft schema` lists them".to_owned(),
                |near| format!("did you mean `{near}`? `haft schema` lists them all"),
            );
            Err(Failure::new(Exit::NotFound, format!("there is no schema `{name}`")).hint(hint))
        }
    }
}

/// The name without its version.
fn base(published: &Published) -> &'static str {
    published.name.split('@').next().unwrap_or_default()
}
