//! `haft install`, `haft show`: a package that came from somewhere, its card, and its place in the home.

mod acquired;
mod agreed;
mod allowed;
mod collision;
mod estimate;
pub(super) mod inputs;
mod lent;
mod onboarding;
mod place;
mod shown;
mod similar;
mod tried;
mod values;

use clap::Args;
use install::acquire::Reach;
use install::{Piece, Put};
use manifest::dialect::Dialect;
use manifest::model::Package;
use serde_json::json;

pub(crate) use self::allowed::check_allowed;
pub(crate) use self::estimate::words as estimate_words;
pub(crate) use self::lent::Lent;
pub(crate) use self::place::{Agreement, Installed, Installing, OnSmokeFail};
pub(crate) use self::shown::{ShowArgs, show};
pub(crate) use self::similar::Similar;
pub(crate) use self::tried::has_server;
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::fetch::{Fetched, Fetching};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::remote::{Offline, Which};
use crate::{fetch, installed, owner};

// A package, and where it is looked for. A doc comment here would stand in the help of every verb that has these.
#[derive(Args, Debug)]
pub(crate) struct What {
    /// What: a folder, an archive, a manifest, an address of one, or the id of a tool in a registry, alone or as ID@VERSION
    #[arg(value_name = "WHAT")]
    package: String,
    /// Of a catalog or of the index of a site: the entry that is meant [default: all of a catalog]
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// The id of a tools.json [default: its folder's name]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    offline: Offline,
}

impl What {
    fn fetch(
        &self,
        home: &Home,
        ask: Ask,
        json_wanted: bool,
        printer: Printer,
    ) -> Result<Fetched, Failure> {
        let Self { package, only, id, which, offline } = self;
        let (id, only) = (id.as_deref(), only.as_deref());
        Fetching { home, ask, which, offline, id, only, json_wanted, printer }.fetch(package)
    }

    /// The name that was typed, where nothing says where it is to be looked for.
    fn name(&self) -> Option<&str> {
        let is_alone = self.only.is_none() && self.id.is_none() && self.which.is_any();
        Some(self.package.as_str()).filter(|text| is_alone && fetch::is_id(text))
    }

    /// Who is asked which versions of its parts there are.
    fn reach(&self) -> Reach {
        if self.offline.offline { Reach::Offline } else { Reach::Kept }
    }
}

#[derive(Args, Debug)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    what: What,
    /// Accept its card without being asked; what your policy refuses stays refused
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    cards: agreed::Cards,
    /// A value that it asks for and that is no secret: NAME=VALUE; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = inputs::setting)]
    env: Vec<(String, String)>,
    /// Read values that it asks for from standard input, secrets too: a line NAME=VALUE each
    #[arg(long)]
    env_stdin: bool,
    /// Install it although its id may be taken for that of another
    #[arg(long)]
    allow_similar: bool,
    /// Of several secrets: the one that its kill switch is told when it is revoked
    #[arg(long, value_name = "SECRET")]
    revoke_with: Option<String>,
    /// What becomes of it when its smoke test fails
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    on_smoke_fail: OnSmokeFail,
}

pub(crate) fn run(
    args: &InstallArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let policy = owner::policy(home)?;
    let fetched = args.what.fetch(home, ask, json_wanted, printer)?;
    let chosen = chosen(&fetched, args.what.id.as_deref(), args.what.only.as_deref())?;
    let secrets = if args.env_stdin { inputs::from_stdin()? } else { Vec::new() };
    inputs::check_asked(&secrets, &chosen)?;
    let installing = Installing {
        policy: &policy,
        home,
        ask,
        json_wanted,
        printer,
        agreed: if args.yes { Agreement::Beforehand } else { Agreement::Asked },
        surfaces: if args.yes { Agreement::Beforehand } else { Agreement::Asked },
        cards: Some(&args.cards),
        settings: &args.env,
        secrets: &secrets,
        lent: &[],
        similar: if args.allow_similar { Similar::Allowed } else { Similar::Asked },
        revoke_with: args.revoke_with.as_deref(),
        on_smoke_fail: args.on_smoke_fail,
        reach: args.what.reach(),
    };
    let mut draft = installed::home(home).draft()?;
    let mut prepared = Vec::new();
    for piece in chosen {
        prepared.push(installing.prepare(&fetched, piece, None, &mut draft)?);
    }
    tell(installing.put(draft, prepared, &[])?, json_wanted, printer)
}

/// Tells what was done. One that stays disabled because it failed is told last.
pub(crate) fn tell(done: Vec<Installed>, json_wanted: bool, printer: Printer) -> Outcome {
    if json_wanted {
        let row = |one: &Installed| {
            let state = match &one.kept_disabled {
                Some(_) => "disabled",
                None => put_name(one.put),
            };
            json!({"id": one.card.id, "version": one.card.version, "state": state})
        };
        printer.json(&json!({"packages": done.iter().map(row).collect::<Vec<_>>()}))?;
    }
    match done.into_iter().find_map(|one| Some((one.card.id, one.kept_disabled?))) {
        None => Ok(Exit::Done),
        Some((id, mut failure)) => {
            failure.exit = Exit::Failed;
            failure.message = failure.message.replace("not installed", "installed and disabled");
            let id = line(&id);
            Err(failure.hint(format!(
                "`haft enable {id}` switches it on, `haft remove {id}` takes it away"
            )))
        }
    }
}

/// What became of a package, for programs.
pub(crate) fn put_name(put: Put) -> &'static str {
    match put {
        Put::Installed => "installed",
        Put::Replaced => "updated",
        Put::There => "there",
    }
}

/// The packages that are meant: all of them, or the one of an id.
fn chosen<'f>(
    fetched: &'f Fetched,
    id: Option<&str>,
    only: Option<&str>,
) -> Result<Vec<&'f Piece>, Failure> {
    let pieces = &fetched.parcel.pieces;
    let has_own = |piece: &Piece| piece.package.dialect != Dialect::Agentcli;
    if let (Some(id), Some(first), true) = (id, pieces.first(), pieces.iter().all(has_own)) {
        let own = line(&first.package.canonical_id());
        let hint = format!("leave out `--id {}`: what is there is called {own}", line(id));
        return Err(Failure::invalid("--id names a tools.json, and this is none").hint(hint));
    }
    let Some(only) = only else { return Ok(pieces.iter().collect()) };
    let is_meant = |package: &Package| package.id == only || package.canonical_id() == only;
    let found: Vec<_> = pieces.iter().filter(|piece| is_meant(&piece.package)).collect();
    if found.is_empty() {
        let known: Vec<_> = pieces.iter().map(|piece| line(&piece.package.id)).collect();
        let message = format!("there is no entry `{}`", line(only));
        return Err(
            Failure::new(Exit::NotFound, message).hint(format!("there is {}", known.join(", ")))
        );
    }
    Ok(found)
}
