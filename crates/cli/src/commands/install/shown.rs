//! Cards: of what was fetched, and of what is installed.

use clap::Args;
use host::endpoints;
use install::card::{Card, Circumstances, Origin};
use install::{Installed, Layer, Listed, Pinned, Source};
use manifest::dialect::Dialect;
use manifest::model::{Package, Trust};
use package::digest::Digest;
use policy::Policy;
use serde_json::json;

use super::acquired::Acquisition;
use super::{What, chosen, estimate};
use crate::ask::Ask;
use crate::card::drawn;
use crate::exit::{Exit, Failure, Outcome};
use crate::fetch::Fetched;
use crate::home::Home;
use crate::printer::Printer;
use crate::{disk, installed, owner, project};

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    what: What,
}

pub(crate) fn show(
    args: &ShowArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let policy = owner::policy(home)?;
    let mut cards = match of_known(&args.what, home, &policy, printer)? {
        Some((card, words)) => {
            printer.note(words);
            vec![card]
        }
        None => {
            let fetched = args.what.fetch(home, ask, json_wanted, printer)?;
            let at = installed::home(home);
            let pieces = chosen(&fetched, args.what.id.as_deref(), args.what.only.as_deref())?;
            let of_piece = |package: &Package| {
                let acquisition = Acquisition::of(package, &policy, args.what.reach(), &at)?;
                card(&fetched, package, acquisition.as_ref(), &policy)
            };
            pieces.iter().map(|piece| of_piece(&piece.package)).collect::<Result<Vec<_>, _>>()?
        }
    };
    for card in &mut cards {
        estimate::ask(card, &policy, args.what.reach())?;
    }
    if json_wanted {
        let with_digest = |card: &Card| {
            let mut value = serde_json::to_value(card).unwrap_or_default();
            value["card"] = format!("sha256:{}", card.digest()).into();
            value["declared"] = card.declared.into();
            value
        };
        printer.json(&json!({"cards": cards.iter().map(with_digest).collect::<Vec<_>>()}))?;
        return Ok(Exit::Done);
    }
    let with_digest =
        |card: &Card| format!("{}  card          sha256:{}\n", drawn(card), card.digest());
    let drawn: Vec<_> = cards.iter().map(with_digest).collect();
    printer.result(&drawn.join("\n"))?;
    Ok(Exit::Done)
}

/// The card of a package that was fetched.
pub(super) fn card(
    fetched: &Fetched,
    package: &Package,
    acquisition: Option<&Acquisition<'_>>,
    policy: &Policy,
) -> Result<Card, Failure> {
    let origin = Origin {
        source: fetched.source.clone(),
        package: fetched.parcel.digest(),
        archive: fetched.archive,
        signature: fetched.signature.clone(),
        trust: trust(fetched, package),
        trust_because: fetched.because.clone(),
    };
    of(origin, package, acquisition, policy)
}

/// The card of a package that is installed or declared by a catalog, where a name and nothing else was typed that stands
/// for one, and which of the two it is.
fn of_known(
    what: &What,
    home: &Home,
    policy: &Policy,
    printer: Printer,
) -> Result<Option<(Card, &'static str)>, Failure> {
    let at = installed::home(home);
    let Some(name) = what.name() else { return Ok(None) };
    let view = project::view(home, printer)?;
    match view.called(name).as_slice() {
        [Listed { pinned: Some(pinned), layer, .. }]
            if *layer != Layer::Project || view.agreed(pinned).is_some() =>
        {
            let card = of_installed(what, pinned, &at, policy)?;
            Ok(Some((card, "It is installed; `haft update --check` shows what is newer.")))
        }
        [Listed { pinned: None, .. }] => {
            let named = installed::named_around(name, home, Printer::silent())?;
            let (path, package) = installed::said(&named, home, Printer::silent())?;
            let origin = Origin {
                source: Source::Listed(path.display().to_string()),
                package: Digest::of(&disk::read(&path)?),
                archive: None,
                signature: "unsigned".to_owned(),
                trust: named.trust,
                trust_because: "so its catalogs say".to_owned(),
            };
            let card = of(origin, &package, None, policy)?;
            Ok(Some((card, "A catalog declares it; the digest is that of the catalog.")))
        }
        _ => Ok(None),
    }
}

/// The card of a package that is installed.
fn of_installed(
    what: &What,
    pinned: &Pinned,
    at: &install::Home,
    policy: &Policy,
) -> Result<Card, Failure> {
    let Installed { package, record, .. } = Installed::load(at, pinned)?;
    let acquisition = Acquisition::of(&package, policy, what.reach(), at)?;
    let origin = Origin {
        source: pinned.source.clone(),
        package: pinned.package.0,
        archive: pinned.archive.map(|archive| archive.0),
        signature: "looked at when it was installed".to_owned(),
        trust: Trust::named(&record.trust).unwrap_or(Trust::Untrusted),
        trust_because: "so it was when you agreed to it".to_owned(),
    };
    of(origin, &package, acquisition.as_ref(), policy)
}

fn of(
    origin: Origin,
    package: &Package,
    acquisition: Option<&Acquisition<'_>>,
    policy: &Policy,
) -> Result<Card, Failure> {
    let commands = acquisition.map(Acquisition::commands).transpose()?;
    let around = Circumstances {
        origin,
        endpoints: endpoints(package),
        commands: commands.unwrap_or_default(),
        acquired_from: acquisition.map(Acquisition::from).unwrap_or_default(),
        level: policy.sandbox.level.to_string(),
    };
    Ok(Card::new(package, around))
}

/// How far a package is trusted: what it claims can only lower what is known.
pub(super) fn trust(fetched: &Fetched, package: &Package) -> Trust {
    match package.dialect {
        Dialect::Capability => package.trust.min(fetched.trust),
        _ => fetched.trust,
    }
}
