//! `haft update`: what is newer than what is installed, what is different about it, and taking it.

mod files;

use clap::Args;
use host::surface::Surface;
use install::acquire::Reach;
use install::{Installed as There, Piece, Pinned, Source};
use manifest::dialect::Dialect;
use manifest::diff::{Change, diff, is_upgrade_safe};
use manifest::model::Trust;
use registry::Yank;
use semver::Version;
use serde_json::{Value, json};

use self::files::Files;
use super::diff::told as told_changes;
use super::install::{Agreement, Installed, Installing, OnSmokeFail, Similar, has_server};
use super::surface::changes as surface_changes;
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::fetch::{Fetched, Fetching};
use crate::home::Home;
use crate::installed::{self, named};
use crate::owner;
use crate::printer::{Printer, line};
use crate::remote::{Offline, Which};
use crate::revoking::check_not_revoked;
use crate::shell;

#[derive(Args, Debug)]
pub(crate) struct UpdateArgs {
    /// Which packages, by their ids [default: all]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Only show what is newer, and what is different about it
    #[arg(long)]
    check: bool,
    /// Accept cards that ask for more without being asked; what your policy refuses stays refused
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    offline: Offline,
    /// Take a version only if it is the one that `--check --json` told with this digest
    #[arg(long, value_name = "sha256:HEX", hide = true)]
    expect: Option<String>,
}

impl UpdateArgs {
    /// How cards that ask for more are accepted.
    fn agreed(&self) -> Agreement {
        match (self.yes, &self.expect) {
            // Whoever names the version has been shown it.
            (true, Some(_)) => Agreement::Elsewhere,
            (true, None) => Agreement::Beforehand,
            (false, _) => Agreement::Asked,
        }
    }
}

/// A version that is newer than the one that is installed.
struct Newer {
    pinned: Pinned,
    there: There,
    fetched: Fetched,
    /// Which of all that was fetched.
    piece: usize,
    changes: Vec<Change>,
    /// How far it was trusted, where that is further than now.
    was_trusted: Option<Trust>,
}

impl Newer {
    fn piece(&self) -> &Piece {
        &self.fetched.parcel.pieces[self.piece]
    }

    fn files(&self) -> Files {
        Files::between(&self.there.record.files, &self.fetched.parcel.listing)
    }

    /// Whether it may do more than its owner agreed to.
    fn asks(&self) -> bool {
        !is_upgrade_safe(&self.changes) || self.was_trusted.is_some()
    }
}

pub(crate) fn run(
    args: &UpdateArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let at = installed::home(home);
    let policy = owner::policy(home)?;
    let reach = if args.offline.offline { Reach::Offline } else { Reach::Fresh };
    let installing = |agreed| Installing {
        policy: &policy,
        home,
        ask,
        json_wanted,
        printer,
        agreed,
        surfaces: if args.yes { Agreement::Beforehand } else { Agreement::Asked },
        cards: None,
        settings: &[],
        secrets: &[],
        lent: &[],
        similar: Similar::Asked,
        revoke_with: None,
        on_smoke_fail: OnSmokeFail::Refuse,
        reach,
    };
    let which = Which::named(String::new());
    let fetching = Fetching {
        home,
        ask,
        which: &which,
        offline: &args.offline,
        id: None,
        only: None,
        json_wanted,
        printer,
    };
    let (mut rows, mut failed, mut back) = (Vec::new(), Vec::new(), Vec::new());
    let (mut any, mut passed_over) = (false, 0_usize);
    let contents = at.read()?;
    for pinned in meant(&args.ids, &at)? {
        // What was revoked comes back only by being installed again.
        if let Err(failure) = check_not_revoked(&pinned.id, &contents) {
            if !args.ids.is_empty() {
                failed.push((pinned.id, failure));
            }
            continue;
        }
        if let (Source::Imported(_), true) = (&pinned.source, args.ids.is_empty()) {
            passed_over += 1;
            continue;
        }
        if let Some(yank) = fetching.taken_back(&pinned) {
            tell_taken_back(&pinned, &yank, printer);
            back.push(json!({"id": pinned.id, "version": pinned.version, "reason": yank.reason, "security": yank.security}));
        }
        let newer = match look(&pinned, &fetching, &at) {
            Ok(Some(newer)) => newer,
            Ok(None) => continue,
            Err(failure) => {
                failed.push((pinned.id, failure));
                continue;
            }
        };
        any = true;
        let agreed_before = Agreement::Before(newer.there.record.consent.how);
        let surface = match (args.check && has_server(&newer.piece().package), newer.asks()) {
            (false, _) => Vec::new(),
            (true, false) => offered(&newer, &installing(agreed_before), &at),
            // It is not started before its owner was asked.
            (true, true) => {
                vec!["What its server offers was not read, since it asks for more".to_owned()]
            }
        };
        if !json_wanted {
            show(&newer, &surface, args.check, printer)?;
        }
        let mut row = row(&newer, &surface);
        if !args.check {
            let agreed = if newer.asks() { args.agreed() } else { agreed_before };
            let taken = check_expected(&newer, args.expect.as_deref());
            match taken.and_then(|()| take(&newer, &installing(agreed), &at)) {
                Ok(_) => row["state"] = "updated".into(),
                Err(failure) => {
                    row["state"] = "failed".into();
                    failed.push((newer.pinned.id.clone(), failure));
                }
            }
        }
        rows.push(row);
    }
    let nothing_newer = match contents.lock.packages() {
        [] => "nothing is installed",
        _ if args.offline.offline => "nothing newer is known here; nobody was asked (--offline)",
        _ => "everything is as new as where it came from",
    };
    let nothing_newer = match passed_over {
        0 => nothing_newer.to_owned(),
        number => format!(
            "{nothing_newer}; {} passed over, since imported ones are in no place that they could be fetched from",
            super::count(number, "package")
        ),
    };
    finish(any || !back.is_empty(), (&rows, failed, &back), &nothing_newer, json_wanted, printer)
}

/// Tells that a version which is installed was taken back.
fn tell_taken_back(pinned: &Pinned, yank: &Yank, printer: Printer) {
    let (id, version) = (line(&pinned.id), line(&pinned.version));
    let why =
        if yank.reason.is_empty() { String::new() } else { format!(": {}", line(&yank.reason)) };
    if yank.security {
        printer.alarm(&format!("{id} {version} was taken back for security{why}"));
        let word = shell::word(&pinned.id);
        printer.note(&format!("hint: where nothing newer is offered, `haft disable {word}` or `haft revoke {word}` keeps it from being called"));
    } else {
        printer.warn(&format!("{id} {version} was taken back{why}"));
    }
}

/// What was found and what failed. One failure is told as itself, several by their names.
fn finish(
    any: bool,
    (rows, mut failed, back): (&[Value], Vec<(String, Failure)>, &[Value]),
    nothing_newer: &str,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let why = |(id, failure): &(String, Failure)| {
        let causes: String = failure.causes.iter().map(|cause| format!(": {cause}")).collect();
        (id.clone(), format!("{}{causes}", failure.message))
    };
    if json_wanted {
        let failed = failed.iter().map(why).map(|(id, why)| json!({"id": id, "why": why}));
        let mut document = json!({"packages": rows, "failed": failed.collect::<Vec<_>>()});
        if !back.is_empty() {
            document["taken_back"] = back.into();
        }
        printer.json(&document)?;
    } else if !any && failed.is_empty() {
        printer.note(nothing_newer);
    }
    match failed.len() {
        0 => Ok(Exit::Done),
        1 => {
            let (id, mut failure) = failed.remove(0);
            failure.message = format!("`{}`: {}", line(&id), failure.message);
            Err(failure)
        }
        number => {
            let exit = failed[0].1.exit;
            let message = format!("{} stay as they were", super::count(number, "package"));
            let told = failed.iter().map(why).map(|(id, why)| format!("`{}`: {why}", line(&id)));
            Err(Failure::new(exit, message).details(told))
        }
    }
}

/// Refuses another version than the one that was looked at.
fn check_expected(newer: &Newer, expected: Option<&str>) -> Result<(), Failure> {
    match expected {
        Some(expected) if expected != digest(newer) => {
            let message = "what is newer is not what was shown";
            Err(Failure::new(Exit::Denied, message).cause(format!("now it is {}", digest(newer))))
        }
        _ => Ok(()),
    }
}

/// What stands for all files of what is newer.
fn digest(newer: &Newer) -> String {
    format!("sha256:{}", newer.fetched.parcel.digest())
}

/// The packages that are meant.
fn meant(ids: &[String], at: &install::Home) -> Result<Vec<Pinned>, Failure> {
    if ids.is_empty() {
        return Ok(at.read()?.lock.packages().to_vec());
    }
    let one = |id: &String| {
        let named = named(id, at)?;
        named.pinned.ok_or_else(|| {
            let message = format!("`{}` is declared in a catalog, and not installed", line(id));
            Failure::invalid(message)
        })
    };
    ids.iter().map(one).collect()
}

/// What is newer than a package, where it came from.
fn look(
    pinned: &Pinned,
    fetching: &Fetching<'_>,
    at: &install::Home,
) -> Result<Option<Newer>, Failure> {
    let fetched = fetching.newest(pinned)?;
    let is_it = |piece: &Piece| piece.package.canonical_id() == pinned.id;
    let piece = fetched
        .parcel
        .pieces
        .iter()
        .position(is_it)
        .ok_or_else(|| Failure::invalid("there is another package now where it came from"))?;
    let package = &fetched.parcel.pieces[piece].package;
    if fetched.parcel.digest() == pinned.package.0 || !is_newer(&package.semver(), pinned)? {
        return Ok(None);
    }
    let there = There::load(at, pinned)?;
    let changes = diff(&there.package, package);
    let was = Trust::named(&there.record.trust).unwrap_or(Trust::Untrusted);
    let was_trusted = (fetched.trust < was).then_some(was);
    Ok(Some(Newer { pinned: pinned.clone(), there, piece, changes, was_trusted, fetched }))
}

/// Whether a version is newer. Other bytes under the same version are none.
fn is_newer(version: &str, pinned: &Pinned) -> Result<bool, Failure> {
    // A tools.json has no version of its own, and a skill need not have one: then it is made of what is in it.
    let has_none = |dialect: Dialect| match dialect {
        Dialect::Agentcli => true,
        Dialect::Skill => version.starts_with("0.0.0+") && pinned.version.starts_with("0.0.0+"),
        _ => false,
    };
    if pinned.parted().is_some_and(|(dialect, _)| has_none(dialect)) {
        return Ok(version != pinned.version);
    }
    let parsed = |text: &str| Version::parse(text).ok();
    match (parsed(version), parsed(&pinned.version)) {
        (Some(found), Some(known)) if found.cmp_precedence(&known).is_gt() => Ok(true),
        (Some(found), Some(known)) if found.cmp_precedence(&known).is_eq() => {
            let message = format!("it was changed, and is still called {}", line(version));
            Err(Failure::new(Exit::Conflict, message)
                .hint("a version never changes: whoever changes it gives it a new one"))
        }
        _ => Ok(false),
    }
}

/// What the server of a newer version offers that was not approved, in words. It may do no more than the one that is
/// there, so it is started as that one is.
fn offered(newer: &Newer, installing: &Installing<'_>, at: &install::Home) -> Vec<String> {
    let read = || -> Result<Option<(Option<Surface>, Surface)>, Failure> {
        let mut draft = at.draft()?;
        let prepared = installing.look(&newer.fetched, newer.piece(), &mut draft)?;
        let surface = |value: &Value| Surface::from_value(value).ok();
        let was = newer.there.record.surface.as_ref().and_then(surface);
        Ok(prepared.surface().and_then(surface).map(|now| (was, now)))
    };
    match read() {
        Ok(Some((Some(was), now))) if was.digest() == now.digest() => Vec::new(),
        Ok(Some((was, now))) => surface_changes(was.as_ref(), &now),
        Ok(None) => Vec::new(),
        Err(failure) => vec![format!("What its server offers was not read: {}", failure.message)],
    }
}

fn show(
    newer: &Newer,
    surface: &[String],
    is_result: bool,
    printer: Printer,
) -> Result<(), Failure> {
    let Newer { pinned, changes, was_trusted, fetched, .. } = newer;
    let version = newer.piece().package.semver();
    let mut text =
        format!("{}  {} -> {}\n", line(&pinned.id), line(&pinned.version), line(&version));
    if let Some(was) = was_trusted {
        text += &format!("trust: {}, and it was {}\n", fetched.trust.name(), was.name());
    }
    text += &told_changes(changes, printer);
    text += &newer.files().words();
    for row in surface {
        text += row;
        text.push('\n');
    }
    if is_result {
        printer.result(&text)?;
    } else {
        printer.note(text.trim_end());
    }
    Ok(())
}

fn row(newer: &Newer, surface: &[String]) -> Value {
    json!({
        "id": newer.pinned.id,
        "version": newer.pinned.version,
        "newer": newer.piece().package.semver(),
        "digest": digest(newer),
        "asks": newer.asks(),
        "changes": newer.changes,
        "files": newer.files(),
        "surface": surface,
        "state": "newer",
    })
}

fn take(
    newer: &Newer,
    installing: &Installing<'_>,
    at: &install::Home,
) -> Result<Vec<Installed>, Failure> {
    let mut draft = at.draft()?;
    let prepared = installing.prepare(&newer.fetched, newer.piece(), None, &mut draft)?;
    installing.put(draft, vec![prepared], &[])
}
