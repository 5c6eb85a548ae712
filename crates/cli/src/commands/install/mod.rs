//! `haft install`, `haft show`: a package that came from somewhere, its card, and its place in the home.

mod collision;
mod inputs;
mod similar;
mod tried;

use clap::Args;
use install::card::{Card, Circumstances};
use install::record::{Agreed, How};
use install::{Beside, Piece, Put, PutError, Sha256, StageError, Wanted, stage};
use manifest::model::{Acquire, Package, Trust};
use policy::Policy;
use serde_json::json;
use vault::FileVault;

use crate::ask::Ask;
use crate::card::drawn;
use crate::changes::{Change, Verb};
use crate::exit::{Exit, Failure, Outcome};
use crate::fetch::{Fetched, Fetching};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::remote::{Offline, Which};
use crate::{installed, owner, revoking};

// A package, and where it is looked for. A doc comment here would stand in the help of every verb that has these.
#[derive(Args, Debug)]
pub(crate) struct What {
    /// What: a folder, an archive, a manifest, or the id of a tool in a registry, alone or as ID@VERSION
    #[arg(value_name = "WHAT")]
    package: String,
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
        let Self { package, id, which, offline } = self;
        let id = id.as_deref();
        Fetching { home, ask, which, offline, id, json_wanted, printer }.fetch(package)
    }
}

#[derive(Args, Debug)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    what: What,
    /// Accept its card without being asked; what your policy refuses stays refused
    #[arg(long, short)]
    yes: bool,
    /// Of a catalog: the entry to install [default: all of it]
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// A value that it asks for and that is no secret: NAME=VALUE; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = inputs::setting)]
    env: Vec<(String, String)>,
    /// Install it although its id may be taken for that of another
    #[arg(long)]
    allow_similar: bool,
    /// Of several secrets: the one that its kill switch is told when it is revoked
    #[arg(long, value_name = "SECRET")]
    revoke_with: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    what: What,
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
    let chosen = chosen(&fetched, args.only.as_deref())?;
    let mut done = Vec::new();
    for piece in chosen {
        let card = card(&fetched, &piece.package, &policy);
        let mut change = Change::of_card(home, &card, printer);
        let put = install(&fetched, piece, &card, args, &policy, home, ask, &mut change, printer);
        change.end(&put);
        done.push((card, put?));
    }
    if json_wanted {
        let done: Vec<_> = done
            .iter()
            .map(|(card, put)| json!({"id": card.id, "version": card.version, "state": put_name(*put)}))
            .collect();
        printer.json(&json!({"packages": done}))?;
    }
    Ok(Exit::Done)
}

fn put_name(put: Put) -> &'static str {
    match put {
        Put::Installed => "installed",
        Put::Replaced => "updated",
        Put::There => "there",
    }
}

/// The packages that are meant: all of them, or the one of an id.
fn chosen<'f>(fetched: &'f Fetched, only: Option<&str>) -> Result<Vec<&'f Piece>, Failure> {
    let pieces = &fetched.parcel.pieces;
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

/// The card of a package that was fetched.
fn card(fetched: &Fetched, package: &Package, policy: &Policy) -> Card {
    let around = Circumstances {
        source: fetched.source.clone(),
        package: fetched.parcel.digest(),
        archive: fetched.archive,
        signature: fetched.signature.clone(),
        trust: trust(fetched, package),
        trust_because: fetched.because.clone(),
        endpoints: host::endpoints(package),
        commands: Vec::new(),
        sandbox: format!("a process inside the walls, level {} or better", policy.sandbox.level),
    };
    Card::new(package, around)
}

/// How far a package is trusted: what it claims can only lower what is known.
fn trust(fetched: &Fetched, package: &Package) -> Trust {
    match package.dialect {
        manifest::dialect::Dialect::Capability => package.trust.min(fetched.trust),
        _ => fetched.trust,
    }
}

#[expect(clippy::too_many_arguments, reason = "each is a part of one installation")]
fn install(
    fetched: &Fetched,
    piece: &Piece,
    card: &Card,
    args: &InstallArgs,
    policy: &Policy,
    home: &Home,
    ask: Ask,
    change: &mut Change<'_>,
    printer: Printer,
) -> Result<Put, Failure> {
    let package = &piece.package;
    let trust = trust(fetched, package);
    check_allowed(package, trust, args.yes, policy)?;
    check_acquired(package)?;
    let at = installed::home(home);
    let contents = at.read()?;
    collision::check(package, &contents, &at)?;
    revoking::check_secrets_free(&card.id, &contents)?;
    similar::check(package, &contents, policy, args, ask)?;
    let how = consent(card, args.yes, ask, printer)?;
    revoking::finish_revoked(&card.id, &contents, home, ask)?;
    let asks = !package.inputs.is_empty() || !args.env.is_empty();
    let vault = if asks { Some(owner::vault(home, ask)?) } else { None };
    let values = match &vault {
        Some(vault) => inputs::collect(package, &args.env, vault, ask, printer)?,
        None => Vec::new(),
    };
    let secret = inputs::revoking(package, args.revoke_with.as_deref(), ask)?;
    let consent = Agreed { card: Sha256(card.digest()), how };
    let wanted = Wanted {
        parcel: &fetched.parcel,
        piece,
        source: fetched.source.clone(),
        archive: fetched.archive,
        trust,
        consent,
        beside: Beside { secret, ..Beside::of(package) },
        now: host::records::now().unix_millis(),
        memory: policy.sandbox.memory,
    };
    let ready = stage(&at, &wanted).map_err(|error| unstaged(&error))?;
    tried::check(&ready, package, (trust, &values), home, ask, printer)?;
    change.begin()?;
    let mut changing = at.lock()?;
    // Somebody else may have installed the other one, or revoked this one, in the meantime.
    collision::check(package, changing.contents(), &at)?;
    revoking::check_secrets_free(&card.id, changing.contents())?;
    let put = changing.put(ready).map_err(|error| match error {
        PutError::OtherBytes => {
            let message = format!(
                "`{}` {} is installed with other bytes, and a version never changes",
                line(&card.id),
                line(&card.version)
            );
            Failure::new(Exit::Conflict, message)
                .hint("give it another version, or `haft remove` it first")
        }
        PutError::Home(error) => installed::failure(&error),
    })?;
    if let Some(vault) = vault {
        keep(&values, package, &vault)?;
    }
    if put == Put::Replaced {
        change.turned_out(Verb::Update);
    }
    let words = match put {
        Put::Installed => "Installed",
        Put::Replaced => "Updated to",
        Put::There => "Installed already:",
    };
    printer.note(&format!("{words} {} {}  ({})", line(&card.id), line(&card.version), facts(card)));
    Ok(put)
}

/// Refuses what has to be acquired: nothing counts as installed that could not run.
fn check_acquired(package: &Package) -> Result<(), Failure> {
    let how = match &package.acquire {
        Acquire::Pip { .. } => "pip",
        Acquire::Npm { .. } => "npm",
        Acquire::Git { .. } => "git",
        Acquire::Container { .. } => "a container image",
        Acquire::Url { .. } => "a download",
        Acquire::Preinstalled { .. }
        | Acquire::Bundle
        | Acquire::LocalPath { .. }
        | Acquire::Nothing => return Ok(()),
    };
    let id = line(&package.canonical_id());
    let message =
        format!("`{id}` is run by {how}, and only what comes with its files is installed so far");
    Err(Failure::new(Exit::Unavailable, message))
}

/// Keeps the values that were given, now that there is a package that they are for.
fn keep(values: &inputs::Values, package: &Package, vault: &FileVault) -> Result<(), Failure> {
    for (name, value) in values {
        let place = host::secrets::place(package, name);
        let place = place.map_err(|error| Failure::invalid(error.to_string()))?;
        vault.set(&place, value).map_err(|error| owner::vault_failure(&error))?;
    }
    Ok(())
}

/// The facts that matter, in a few words.
fn facts(card: &Card) -> String {
    let mut facts = Vec::new();
    if !card.scopes.is_empty() {
        facts.push(crate::commands::count(card.scopes.len(), "scope"));
    }
    facts.push(crate::commands::count(card.actions.len(), "action"));
    facts.push(match card.hosts.as_slice() {
        [] => "no network".to_owned(),
        hosts => format!("network: {}", line(&hosts.join(", "))),
    });
    facts.push(format!("trust: {}", card.trust));
    facts.join(", ")
}

/// Refuses what the policy does not let in, whoever agrees to it.
fn check_allowed(
    package: &Package,
    trust: Trust,
    is_beforehand: bool,
    policy: &Policy,
) -> Result<(), Failure> {
    let id = package.canonical_id();
    let rules = policy.of(&id, &package.id);
    match rules.and_then(|rules| rules.allow) {
        Some(true) => return Ok(()),
        Some(false) => {
            let message = format!("your policy refuses `{}`", line(&id));
            return Err(Failure::new(Exit::Denied, message));
        }
        None => {}
    }
    if policy.trust.allow.contains(&trust) || (trust == Trust::Community && !is_beforehand) {
        return Ok(());
    }
    let failure =
        Failure::new(Exit::Denied, format!("trust_level not allowed by policy: {}", trust.name()));
    Err(match trust {
        Trust::Community => failure
            .hint("without --yes you are shown its card, and may accept it")
            .hint("`allow = [\"local\", \"verified\", \"community\"]` below `[trust]` in policy.toml lets such packages in"),
        _ => failure.hint(format!(
            "`allow = true` below `[package.\"{}\"]` in policy.toml lets this one in",
            line(&id)
        )),
    })
}

/// Shows the card and asks, unless that was agreed to beforehand.
fn consent(card: &Card, is_beforehand: bool, ask: Ask, printer: Printer) -> Result<How, Failure> {
    printer.note(&drawn(card));
    if is_beforehand {
        return Ok(How::Beforehand);
    }
    if !ask.is_possible() {
        let message = "its card has to be accepted, and nobody can be asked";
        return Err(Failure::new(Exit::Denied, message)
            .hint("--yes accepts it beforehand, as far as your policy lets it"));
    }
    if ask.yes_or_no("Install it?")? {
        Ok(How::Asked)
    } else {
        Err(Failure::new(Exit::Denied, "not installed: you did not accept its card"))
    }
}

fn unstaged(error: &StageError) -> Failure {
    match error {
        StageError::Home(error) => installed::failure(error),
        StageError::Extract(error) => Failure::of(Exit::Unavailable, error),
    }
}

pub(crate) fn show(
    args: &ShowArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let policy = owner::policy(home)?;
    let fetched = args.what.fetch(home, ask, json_wanted, printer)?;
    let cards: Vec<_> =
        fetched.parcel.pieces.iter().map(|piece| card(&fetched, &piece.package, &policy)).collect();
    if json_wanted {
        let with_digest = |card: &Card| {
            let mut value = serde_json::to_value(card).unwrap_or_default();
            value["card"] = format!("sha256:{}", card.digest()).into();
            value
        };
        printer.json(&json!({"cards": cards.iter().map(with_digest).collect::<Vec<_>>()}))?;
        return Ok(Exit::Done);
    }
    let drawn: Vec<_> = cards.iter().map(drawn).collect();
    printer.result(&drawn.join("\n"))?;
    Ok(Exit::Done)
}
