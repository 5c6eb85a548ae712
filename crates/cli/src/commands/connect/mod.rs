//! `haft connect`: one entry in the settings of a client, which starts us and so finds what is installed.

mod kept;
mod place;
mod undo;

use clap::Args;
use import::edit::{Ours, Serves, added, replaced, serves};
use import::{Entry, Found};
use manifest::shape::suggest;
use serde_json::json;

use crate::clients::{self, Client, Readers, Settings, User};
use crate::done::Done;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::{owner, shell};
use kept::{Before, Kept};
use place::Placed;

/// The longest name of an entry.
const LONGEST: usize = 64;

#[derive(Args, Debug)]
#[command(
    override_usage = "haft connect [OPTIONS] <CLIENT>",
    after_help = "Examples:\n  haft connect claude-code\n  haft connect cursor --project --dry-run\n  haft connect codex --profile work --name work\n  haft connect codex --name work --undo"
)]
pub(crate) struct ConnectArgs {
    /// Which: claude-desktop, claude-code, cursor, vscode, codex or gemini
    #[arg(value_name = "CLIENT", value_parser = client)]
    client: Option<Client>,
    /// Offer what this profile has instead of all that is installed
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    profile: Option<String>,
    /// What the entry is called
    #[arg(long, value_name = "NAME", default_value = "haft", value_parser = plain_name)]
    name: String,
    /// Write the file of the project in this folder instead of your own
    #[arg(long)]
    project: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take the entry out again
    #[arg(long)]
    undo: bool,
}

/// What is to be done, where, and how it is told.
struct Connecting<'c> {
    args: &'c ConnectArgs,
    client: Client,
    placed: Placed,
    settings: Settings,
    kept: Kept,
    ours: Ours,
    is_thrown_away: bool,
    json_wanted: bool,
    printer: Printer,
}

pub(crate) fn run(args: &ConnectArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let client = args.client.ok_or_else(|| {
        let hint = format!("it is one of {}", Client::names().join(", "));
        Failure::invalid("no client is named").hint(hint)
    })?;
    owner::check_home(home)?;
    check_profile(args.profile.as_deref(), home)?;
    let user = User::of_process()?;
    let place = if args.project {
        client.of_project(&clients::project()?).ok_or_else(|| no_project(client))?
    } else {
        client.of_user(&user)
    };
    let placed = place::find(client, place, &user, args.undo)?;
    let serves = Serves::Installed { profile: args.profile.clone() };
    let ours = clients::ours(&args.name, &clients::program()?, serves, home);
    let is_thrown_away = home.is_thrown_away();
    let settings = placed.read()?;
    let kept = Kept::of(client, &placed, &args.name, home);
    let connecting = Connecting {
        args,
        client,
        placed,
        settings,
        kept,
        ours,
        is_thrown_away,
        json_wanted,
        printer,
    };
    if args.undo { connecting.undo() } else { connecting.connect() }
}

impl Connecting<'_> {
    fn connect(&self) -> Outcome {
        let settings = &self.settings;
        let form = &self.placed.form;
        let (after, state) = match self.found()? {
            None => (added(settings.text(), form, &self.ours), State::Connected),
            Some(entry) if self.ours.is_started_by(&entry) => {
                return self.tell(State::There, None, doubts(&entry, self));
            }
            Some(_) => {
                let ours = std::slice::from_ref(&self.ours);
                (replaced(settings.text(), form, ours), State::Updated)
            }
        };
        let after = after.map_err(|why| settings.broken(&why))?;
        settings.check(&after, std::slice::from_ref(&self.ours))?;
        if self.args.dry_run {
            return self.tell(state, Some(&after), self.shared());
        }
        let now = match state {
            State::Updated => Before::Older,
            _ if self.placed.is_there => Before::File,
            _ => Before::Nothing { folder: self.placed.folder.is_some() },
        };
        self.kept.keep(&self.placed, (settings.text(), &after), now)?;
        let written = if self.placed.is_there { settings.write(&after) } else { self.make(&after) };
        written.inspect_err(|_| {
            if state == State::Connected {
                // Nothing was done that could be undone.
                let _ = self.kept.forget();
            }
        })?;
        self.tell(state, None, self.shared())
    }

    /// The entry of that name, where it is there and ours.
    fn found(&self) -> Result<Option<Entry>, Failure> {
        if self.settings.is_blank() {
            return Ok(None);
        }
        let config = self.settings.entries()?;
        let is_meant = |found: &Found| found.name == self.args.name;
        let Some(found) = config.entries.into_iter().find(is_meant) else { return Ok(None) };
        match found.entry {
            Ok(entry) if matches!(serves(&entry), Some(Serves::Installed { .. })) => {
                Ok(Some(entry))
            }
            _ => Err(self.foreign()),
        }
    }

    fn foreign(&self) -> Failure {
        let (name, file) = (line(&self.args.name), self.placed.shown());
        let message = format!("`{name}` in `{file}` starts something else, and is left as it is");
        Failure::new(Exit::Conflict, message).hint("--name gives the entry of haft another name")
    }

    /// Makes the file that is not there, and the folder of a project's.
    fn make(&self, text: &str) -> Result<(), Failure> {
        let folder = self.placed.folder.as_deref();
        if let Some(folder) = folder {
            std::fs::create_dir(folder).map_err(|error| {
                Failure::new(Exit::Unavailable, format!("failed to make `{}`", folder.display()))
                    .cause(error)
            })?;
        }
        // A user's own may get secrets of theirs later.
        let readers = if self.args.project { Readers::Usual } else { Readers::Owner };
        self.settings.make(text, readers).inspect_err(|_| {
            if let Some(folder) = folder {
                // It goes only where it is empty.
                let _ = std::fs::remove_dir(folder);
            }
        })
    }

    /// What those should know who share the project.
    fn shared(&self) -> Vec<String> {
        let words = format!(
            "`{}` belongs to the project, and names haft by its path on this machine",
            self.placed.shown()
        );
        self.args.project.then_some(words).into_iter().collect()
    }

    /// Tells what was done, or would be where there is a text that would be written.
    fn tell(&self, state: State, after: Option<&str>, doubts: Vec<String>) -> Outcome {
        let difference = after.map(|after| self.settings.difference(after));
        let mut done = Done::default();
        match &difference {
            Some(_) if self.json_wanted => {}
            Some(difference) => self.printer.result(difference)?,
            None => state.words(self).into_iter().for_each(|words| done.note(words)),
        }
        done.doubt(doubts);
        if self.is_thrown_away && !self.args.undo {
            let words =
                "this home is gone when `haft up` ends; `unset HAFT_HOME` leads to your own";
            done.doubt([words.to_owned()]);
        }
        let entry = json!({"command": self.ours.program, "args": self.ours.args()});
        let document = json!({
            "client": self.client.name(),
            "file": self.placed.path.to_string_lossy(),
            "name": self.args.name,
            "state": state.name(),
            "dry_run": self.args.dry_run,
            "entry": (!self.args.undo).then_some(entry),
            "backup": self.kept.backup().map(|path| path.to_string_lossy().into_owned()),
            "difference": difference,
        });
        done.tell(document, self.json_wanted, self.printer)
    }
}

/// What became of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was written.
    Connected,
    /// It started something else of ours before.
    Updated,
    /// It was there already.
    There,
    /// The file is again what it was before.
    Restored,
    /// The file was made for it, and is gone.
    Removed,
    /// It is gone from a file that others have changed since.
    TakenOut,
    /// It is not there.
    Absent,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Updated => "updated",
            Self::There => "there",
            Self::Restored => "restored",
            Self::Removed => "removed",
            Self::TakenOut => "taken_out",
            Self::Absent => "absent",
        }
    }

    /// The same for people.
    fn words(self, of: &Connecting<'_>) -> Vec<String> {
        let client = of.client.name();
        let (name, file) = (line(&of.args.name), line(&of.placed.shown()));
        let command: Vec<_> =
            std::iter::once(of.ours.program.as_str()).chain(of.ours.args()).collect();
        let command: Vec<_> = command.into_iter().map(shell::word).collect();
        let starts = format!("`{name}` in {file} starts `{}`", command.join(" "));
        let reload = format!("hint: {client} sees it when it is started anew");
        match self {
            Self::Connected => vec![format!("Connected {client}: {starts}"), reload],
            Self::Updated => vec![format!("Updated {client}: {starts} now"), reload],
            Self::There => vec![format!("{client} is connected already: {starts}")],
            Self::Restored => vec![format!("Disconnected {client}: {file} is what it was before")],
            Self::Removed => {
                vec![format!("Disconnected {client}: {file} was made for it, and is gone")]
            }
            Self::TakenOut => vec![format!(
                "Disconnected {client}: `{name}` is gone from {file}, the rest is as it was"
            )],
            Self::Absent => vec![format!("Nothing to undo: no `{name}` in {file} starts haft")],
        }
    }
}

/// What may not be meant about an entry that is there.
fn doubts(entry: &Entry, of: &Connecting<'_>) -> Vec<String> {
    let off = format!("`{}` is switched off in `{}`", of.args.name, of.placed.shown());
    (!entry.enabled).then_some(off).into_iter().collect()
}

/// Refuses a profile that nobody could be served.
fn check_profile(name: Option<&str>, home: &Home) -> Result<(), Failure> {
    let policy = owner::policy(home)?;
    let Some(name) = name.filter(|name| !policy.profiles.contains_key(*name)) else {
        return Ok(());
    };
    policy::policy::check_profile(name).map_err(Failure::invalid)?;
    let failure = Failure::new(Exit::NotFound, format!("your policy has no profile `{name}`"));
    Err(match suggest(name, policy.profiles.keys().map(String::as_str)) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint(format!("`haft policy profile add {name} TOOL…` makes it")),
    })
}

fn no_project(client: Client) -> Failure {
    let message = format!("{} keeps no settings in projects", client.name());
    Failure::invalid(message).hint("leave --project out")
}

/// Reads the name of a client.
fn client(text: &str) -> Result<Client, String> {
    let known = Client::names();
    let is_known = known.contains(&text);
    let named = Client::named(text).first().copied().filter(|_| is_known);
    named.ok_or_else(|| super::no_such("client", text, &known))
}

/// Reads a name that every client takes.
fn plain_name(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if begins && text.len() <= LONGEST && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "a name has 1 to {LONGEST} letters of ASCII, digits, `-` and `_`, and begins with a letter or digit"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_as_it_is_called() {
        assert_eq!(client("cursor"), Ok(Client::Cursor));
        assert!(client("cursr").unwrap_err().contains("did you mean `cursor`?"));
        assert!(client("all").is_err() && client("").is_err());
    }

    #[test]
    fn a_name_is_one_that_every_client_takes() {
        for name in ["haft", "my-tools_2", "7"] {
            assert_eq!(plain_name(name).as_deref(), Ok(name));
        }
        for name in ["", "-x", "a b", "a.b", "ä", "a\n", &"x".repeat(65)] {
            assert!(plain_name(name).is_err(), "{name}");
        }
    }
}
