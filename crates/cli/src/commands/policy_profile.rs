//! `haft policy profile`: parts of what is installed, each under a name that clients and tokens can be given.

use clap::Subcommand;
use policy::policy::{Profile, Which, check_profile};
use serde_json::{Value, json};
use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::policy_doubts::absent;
use crate::policy_file::PolicyFile;
use crate::printer::{Printer, line};
use crate::{output, owner, project};

#[derive(Subcommand, Debug)]
pub(super) enum Verb {
    /// Name a part of what is installed
    Add {
        /// What it is called: it stands in addresses, as in /mcp/NAME; `default` is what is shown where none is named
        name: String,
        /// An id, the beginning of ids with `*`, or an id and an action with `#` between
        #[arg(required = true, value_name = "TOOL")]
        tools: Vec<String>,
        /// What of it agents are shown in any case; may be repeated
        #[arg(long, value_name = "TOOL")]
        pin: Vec<String>,
    },
    /// Forget a profile
    #[command(alias = "remove")]
    Rm {
        /// What it is called
        name: String,
    },
    /// Show which there are
    List,
}

pub(super) fn run(
    verb: &Verb,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let file = owner::policy_file(home)?;
    let text = file.text.clone().unwrap_or_default();
    let policy = PolicyFile::read(home)?.policy()?;
    match verb {
        Verb::List => {
            if json_wanted {
                let all: Vec<_> =
                    policy.profiles.iter().map(|(name, one)| to_value(name, one)).collect();
                printer.json(&json!(all))?;
                return Ok(Exit::Done);
            }
            for (name, profile) in &policy.profiles {
                let tools: Vec<_> =
                    profile.tools.iter().map(|one| line(&one.to_string())).collect();
                printer.result(&format!("{} {}\n", line(name), tools.join(" ")))?;
            }
            if policy.profiles.is_empty() {
                printer
                    .note("there are no profiles; `haft policy profile add NAME TOOL…` makes one");
            }
            Ok(Exit::Done)
        }
        Verb::Add { name, tools, pin } => {
            owner::check_presence(home, ask)?;
            check_profile(name).map_err(Failure::invalid)?;
            let profile = Profile { tools: read(tools)?, pinned: read(pin)? };
            if policy.profiles.contains_key(name) {
                let message = format!("there is a profile `{}` already", line(name));
                return Err(Failure::new(Exit::Conflict, message)
                    .hint(format!("`haft policy profile rm {}` forgets it", line(name))));
            }
            write(home, &added(&text, name, &profile)?)?;
            let view = project::view(home, printer)?;
            for words in absent(profile.tools.iter().chain(&profile.pinned), &view, home) {
                printer.warn(&words);
            }
            tell(
                &json!({ "added": to_value(name, &profile) }),
                &if name == Profile::USUAL {
                    "Profile default is what /mcp and `haft mcp` show now".to_owned()
                } else {
                    let name = line(name);
                    format!("Profile {name} is at /mcp/{name}, and for `haft mcp --profile {name}`")
                },
                json_wanted,
                printer,
            )
        }
        Verb::Rm { name } => {
            let Some(profile) = policy.profiles.get(name) else {
                let message = format!("there is no profile `{}`", line(name));
                return Err(Failure::new(Exit::NotFound, message)
                    .hint("`haft policy profile list` shows which there are"));
            };
            write(home, &removed(&text, name)?)?;
            let tokens = super::serve::tokens(home).all().unwrap_or_default();
            for token in tokens.iter().filter(|one| one.profile.as_ref() == Some(name)) {
                let words =
                    format!("the token `{}` is for it, and sees no tools now", line(&token.name));
                printer.warn(&words);
            }
            tell(
                &json!({ "removed": to_value(name, profile) }),
                &if name == Profile::USUAL {
                    "Profile default is forgotten: /mcp and `haft mcp` show everything now"
                        .to_owned()
                } else {
                    let name = line(name);
                    format!(
                        "Profile {name} is forgotten; a client that was connected with `--profile {name}` sees no tools now"
                    )
                },
                json_wanted,
                printer,
            )
        }
    }
}

fn read(tools: &[String]) -> Result<Vec<Which>, Failure> {
    let one = |text: &String| {
        Which::parse(text).ok_or_else(|| {
            Failure::invalid(format!("`{}` names no tool", line(text)))
                .hint("write an id, the beginning of ids with `*`, or an id and an action with `#` between")
        })
    };
    tools.iter().map(one).collect()
}

fn to_value(name: &str, profile: &Profile) -> Value {
    let texts = |all: &[Which]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({ "name": name, "tools": texts(&profile.tools), "pinned": texts(&profile.pinned) })
}

/// The text of a policy with one profile more; the rest is as it was.
fn added(text: &str, name: &str, profile: &Profile) -> Result<String, Failure> {
    let mut document = parse(text)?;
    let array = |all: &[Which]| all.iter().map(ToString::to_string).collect::<Array>();
    let mut table = Table::new();
    table["tools"] = value(array(&profile.tools));
    if !profile.pinned.is_empty() {
        table["pinned"] = value(array(&profile.pinned));
    }
    let all = document.entry("profile").or_insert_with(|| {
        let mut all = Table::new();
        all.set_implicit(true);
        Item::Table(all)
    });
    let Some(all) = all.as_table_like_mut() else { return Err(odd()) };
    all.insert(name, Item::Table(table));
    Ok(document.to_string())
}

/// The same with one less.
fn removed(text: &str, name: &str) -> Result<String, Failure> {
    let mut document = parse(text)?;
    let all = document.get_mut("profile").and_then(Item::as_table_like_mut);
    all.and_then(|all| all.remove(name)).ok_or_else(odd)?;
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|_| odd())
}

fn odd() -> Failure {
    Failure::invalid("policy.toml is written in a way that it cannot be changed in")
        .hint("write the profile into it by hand: `haft policy show --defaults` shows how")
}

/// Replaces the file whole, as a policy that can still be read.
fn write(home: &Home, text: &str) -> Result<(), Failure> {
    policy::Policy::parse(text).map_err(|_| odd())?;
    output::make_private_folder(home.path())?;
    output::replace(&home.path().join("policy.toml"), text.as_bytes())
}

fn tell(document: &Value, words: &str, json_wanted: bool, printer: Printer) -> Outcome {
    if json_wanted {
        printer.json(document)?;
    } else {
        printer.note(words);
    }
    Ok(Exit::Done)
}
