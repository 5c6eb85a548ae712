//! `haft sync`: what a lockfile says, in this home.

use std::path::PathBuf;

use clap::Args;
use install::acquire::Reach;
use install::home::read_lockfile;
use install::{HomeError, Pinned};
use serde_json::json;

use super::install::{Agreement, Installed, Installing, OnSmokeFail, Similar};
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::fetch::{Fetched, Fetching};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::remote::{Offline, Which};
use crate::revoking::check_not_revoked;
use crate::{installed, owner};

#[derive(Args, Debug)]
pub(crate) struct SyncArgs {
    /// The lockfile [default: haft.lock of the home]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Exactly what it says, or nothing: all of it in one step, and whatever else is installed is removed
    #[arg(long)]
    locked: bool,
    /// Accept the cards without being asked; what your policy refuses stays refused
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    offline: Offline,
}

pub(crate) fn run(
    args: &SyncArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let at = installed::home(home);
    let contents = at.read()?;
    let lock = match &args.file {
        Some(path) => read_lockfile(path).map_err(|error| match error {
            HomeError::Broken { why, .. } => {
                Failure::invalid(format!("`{}` is no lockfile", path.display())).cause(why)
            }
            HomeError::Failed { cause, .. } => Failure::unread(path.display(), cause),
        })?,
        None => contents.lock.clone(),
    };
    let policy = owner::policy(home)?;
    let syncing = Syncing {
        args,
        fetching: Fetching {
            home,
            ask,
            which: &Which::named(String::new()),
            offline: &args.offline,
            id: None,
            only: None,
            json_wanted,
            printer,
        },
        installing: Installing {
            policy: &policy,
            home,
            ask,
            json_wanted,
            printer,
            agreed: if args.yes { Agreement::Beforehand } else { Agreement::Asked },
            surfaces: if args.yes { Agreement::Beforehand } else { Agreement::Asked },
            cards: None,
            settings: &[],
            secrets: &[],
            lent: &[],
            // A lockfile says exactly which is meant.
            similar: Similar::Allowed,
            revoke_with: None,
            on_smoke_fail: OnSmokeFail::Refuse,
            reach: if args.offline.offline { Reach::Offline } else { Reach::Kept },
        },
        at: &at,
        contents: &contents,
    };
    if args.locked {
        for pinned in lock.packages() {
            check_not_revoked(&pinned.id, &contents)?;
        }
    }
    let missing: Vec<_> = lock
        .packages()
        .iter()
        .filter(|pinned| contents.lock.get(&pinned.id) != Some(pinned) || !at.holds_whole(pinned))
        .collect();
    let going: Vec<_> = contents
        .lock
        .packages()
        .iter()
        .filter(|known| args.locked && lock.get(&known.id).is_none())
        .cloned()
        .collect();
    let done = if args.locked {
        syncing.check_going(&going)?;
        syncing.all(&missing, &going)?
    } else {
        syncing.each(&missing)?
    };
    let number = lock.packages().len();
    if json_wanted {
        let brought: Vec<_> = done.iter().map(|one| &one.card.id).collect();
        let removed: Vec<_> = going.iter().map(|pinned| &pinned.id).collect();
        printer.json(&json!({"packages": number, "brought": brought, "removed": removed}))?;
    } else {
        let words = match (done.len(), going.len()) {
            (0, 0) => "nothing to do".to_owned(),
            (brought, 0) => format!("{brought} brought"),
            (brought, removed) => format!("{brought} brought, {removed} removed"),
        };
        printer.note(&format!("In step with {}: {words}", super::count(number, "package")));
    }
    Ok(Exit::Done)
}

/// One run, and with what.
struct Syncing<'s> {
    args: &'s SyncArgs,
    fetching: Fetching<'s>,
    installing: Installing<'s>,
    at: &'s install::Home,
    contents: &'s install::Contents,
}

impl Syncing<'_> {
    /// All of it in one step, or nothing.
    fn all(&self, missing: &[&Pinned], going: &[Pinned]) -> Result<Vec<Installed>, Failure> {
        let mut draft = self.at.draft()?;
        let mut prepared = Vec::new();
        // Before anything is tried, all of it is there.
        let fetched: Result<Vec<_>, _> = missing.iter().map(|pinned| self.fetch(pinned)).collect();
        let fetched = fetched?;
        let pieces = missing.iter().zip(&fetched).map(|(pinned, fetched)| piece(fetched, pinned));
        let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
        self.installing.check_values(pieces.iter().map(|piece| &piece.package))?;
        for ((pinned, fetched), piece) in missing.iter().zip(&fetched).zip(pieces) {
            prepared.push(self.installing.prepare(fetched, piece, Some(pinned), &mut draft)?);
        }
        self.installing.put(draft, prepared, going)
    }

    /// One after the other; what cannot be had is told at the end.
    fn each(&self, missing: &[&Pinned]) -> Result<Vec<Installed>, Failure> {
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for pinned in missing {
            match self.all(&[pinned], &[]) {
                Ok(one) => done.extend(one),
                Err(failure) => {
                    let causes = failure.causes.iter().map(|cause| format!(": {cause}"));
                    let causes: String = causes.collect();
                    failed.push(format!("`{}`: {}{causes}", line(&pinned.id), failure.message));
                }
            }
        }
        if failed.is_empty() {
            return Ok(done);
        }
        let message = format!("{} could not be brought", super::count(failed.len(), "package"));
        Err(Failure::new(Exit::Failed, message).details(failed))
    }

    /// What is pinned, and nothing else.
    fn fetch(&self, pinned: &Pinned) -> Result<Fetched, Failure> {
        // What was revoked comes back only by being installed again.
        check_not_revoked(&pinned.id, self.contents)?;
        let fetched = self.fetching.locked(pinned)?;
        let found = fetched.parcel.digest();
        if found == pinned.package.0 {
            return Ok(fetched);
        }
        let message = format!(
            "`{}` {} is not what the lock says: sha256:{} was locked, sha256:{found} is there",
            line(&pinned.id),
            line(&pinned.version),
            pinned.package.0
        );
        Err(Failure::invalid(message))
    }

    /// Asks before anything is removed.
    fn check_going(&self, going: &[Pinned]) -> Result<(), Failure> {
        if going.is_empty() || self.args.yes {
            return Ok(());
        }
        let ids: Vec<_> = going.iter().map(|pinned| line(&pinned.id)).collect();
        let question = format!("Remove {}, which the lock does not have?", ids.join(", "));
        if !self.fetching.ask.is_possible() {
            let message = format!("{} would be removed, and nobody can be asked", ids.join(", "));
            return Err(Failure::new(Exit::Denied, message).hint("--yes says so beforehand"));
        }
        if self.fetching.ask.yes_or_no(&question)? {
            return Ok(());
        }
        Err(Failure::new(Exit::Denied, "nothing was changed"))
    }
}

/// The package that is pinned, of all that came with it.
fn piece<'f>(fetched: &'f Fetched, pinned: &Pinned) -> Result<&'f install::Piece, Failure> {
    let is_it = |piece: &&install::Piece| piece.package.canonical_id() == pinned.id;
    fetched.parcel.pieces.iter().find(is_it).ok_or_else(|| {
        let message = format!("what was fetched for `{}` is another package", line(&pinned.id));
        Failure::invalid(message)
    })
}
