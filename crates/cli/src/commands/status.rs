//! `haft status`: what is known of one package.

use std::path::PathBuf;

use host::Way;
use install::{Installed, Layer, Revocation};
use manifest::dialect::Dialect;
use manifest::model::{Implementation, Package};
use serde_json::{Value, json};

use super::call;
use super::installed::{BY_PROJECT, PackageArgs, at_home, state};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::installed::{self, Named};
use crate::printer::{Printer, line};
use crate::{changes, login_words, owner, walls};

pub(crate) fn run(args: &PackageArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let status = Status::of(&args.id, home, printer)?;
    if json_wanted {
        printer.json(&status.to_value(home))?;
    } else {
        printer.result(&status.text(home))?;
    }
    Ok(Exit::Done)
}

/// What is known of a package.
struct Status {
    named: Named,
    /// What is installed of it.
    installed: Option<Installed>,
    /// What a catalog says of it that is not installed, and which does.
    declared: Option<(PathBuf, Package)>,
    revoked: Option<Revocation>,
    state: &'static str,
    /// Why it is off.
    off: Option<String>,
    /// The files that are not what they were.
    changed: Vec<String>,
    /// Why its version was taken back for security.
    taken_back: Option<String>,
    /// Its implementations, where it has several or one that may not run here, and which makes its calls.
    ways: Vec<Way>,
}

impl Status {
    fn of(id: &str, home: &Home, printer: Printer) -> Result<Self, Failure> {
        let at = installed::home(home);
        let named = installed::named_around(id, home, printer)?;
        let installed = match &named.pinned {
            Some(pinned) => Some(Installed::load(&at, pinned)?),
            None => None,
        };
        let changed = installed.as_ref().map(Installed::changed).unwrap_or_default();
        let taken_back = installed::taken_back(&named, home);
        let said = || installed::said(&named, home, printer);
        let declared = installed.is_none().then(said).transpose()?;
        let revoked = at.read()?.revoked.get(&named.id).cloned();
        let state = match (named.layer, &named.pinned) {
            (Layer::Project, None) => "declared",
            _ => state(named.enabled, revoked.as_ref()),
        };
        let off = match (state, named.layer) {
            ("disabled", Layer::Project) if at_home(&named.id, &at)? => Some(BY_PROJECT.to_owned()),
            ("disabled", _) => changes::why_off(&named.id, home),
            _ => None,
        };
        let ways = match &named.pinned {
            Some(pinned) => ways(Installed::load(&at, pinned)?, &named, home)?,
            None => Vec::new(),
        };
        Ok(Self { named, installed, declared, revoked, state, off, changed, taken_back, ways })
    }

    /// For programs.
    fn to_value(&self, home: &Home) -> Value {
        let Self { named, installed, declared, .. } = self;
        let record = installed.as_ref().map(|one| &one.record);
        let said = declared.as_ref().map(|(_, package)| package);
        let package = installed.as_ref().map(|one| &one.package);
        let time = |millis: i64| ledger::Time::from_unix_millis(millis).to_string();
        json!({
            "id": named.id,
            "enabled": named.enabled,
            "state": self.state,
            "why": self.off,
            "revoked": self.revoked.as_ref().map(|one| json!({
                "since": time(one.since), "why": one.why, "by_hand": one.by_hand,
            })),
            "layer": named.layer.name(),
            "trust": named.trust.name(),
            "version": record.map(|record| record.pinned.version.clone()).or(said.map(Package::semver)),
            "source": record.map(|record| &record.pinned.source),
            "description": package.or(said).and_then(Package::blurb),
            "catalog": declared.as_ref().map(|(path, _)| path.to_string_lossy()),
            "package": record.map(|record| &record.pinned.package),
            "card": record.map(|record| &record.consent.card),
            "installed": record.map(|record| time(record.installed)),
            "before": record.and_then(|record| record.replaced.as_ref()),
            "folder": installed.as_ref().map(|one| one.root.to_string_lossy()),
            "changed": self.changed,
            "taken_back": self.taken_back,
            "implementations": self.ways.iter().map(Way::to_value).collect::<Vec<_>>(),
            "signed_in": package.map(|package| login_words::is_signed_in(package, home)),
        })
    }

    /// For people.
    fn text(&self, home: &Home) -> String {
        let named = &self.named;
        let (layer, trust) = (named.layer.name(), named.trust.name());
        let mut text =
            format!("{}  {}, {layer} layer, trust: {trust}\n", line(&named.id), self.state);
        let mut row = |name: &str, value: &str| text += &format!("  {name:<14} {}\n", line(value));
        let revoked =
            self.revoked.iter().flat_map(|one| [("why", &one.why), ("by hand", &one.by_hand)]);
        for (name, told) in std::iter::once(("why", &self.off)).chain(revoked) {
            if let Some(told) = told {
                row(name, told);
            }
        }
        if let Some(installed) = &self.installed {
            self.tell_installed(installed, home, &mut row);
        }
        if let Some((path, package)) = &self.declared {
            tell_package(&package.semver(), package, &mut row);
            row("declared by", &path.to_string_lossy());
            tell_actions(package, &mut row);
            if named.layer == Layer::Project {
                row(
                    "not called",
                    "nobody has agreed to it: what a project's lockfile names is called once it is installed",
                );
            }
        }
        text
    }

    fn tell_installed(&self, installed: &Installed, home: &Home, row: &mut dyn FnMut(&str, &str)) {
        let Installed { record, root, package } = installed;
        tell_package(&record.pinned.version, package, row);
        row("from", &crate::card::from(&record.pinned.source));
        row("digest", &format!("sha256:{}", record.pinned.package.0));
        row("installed", &ledger::Time::from_unix_millis(record.installed).to_string());
        row("agreed to", &format!("the card sha256:{}", record.consent.card.0));
        if let Some(before) = &record.replaced {
            row("before it", before);
        }
        row("folder", &root.to_string_lossy());
        if let Some(reason) = &self.taken_back {
            row("taken back", &format!("for security: {reason}"));
        }
        if login_words::is_signed_in(package, home) {
            row("sign-in", "you are signed in");
        } else if let Some(words) = login_words::next(package, home) {
            row("sign-in", &words);
        }
        tell_actions(package, row);
        for way in &self.ways {
            row("implementation", &format!("{}  {}", way.implementation, way.words()));
        }
        if !self.changed.is_empty() {
            row("changed", &self.changed.join(", "));
        }
    }
}

/// Which of its implementations make the calls of a package, and why the others do not; nothing where that is no question.
fn ways(installed: Installed, named: &Named, home: &Home) -> Result<Vec<Way>, Failure> {
    let package = &installed.package;
    let says_more = |one: &Implementation| one.runtime.is_some() || one.requirements.is_some();
    let is_question = match package.implementations.as_slice() {
        [one] => package.dialect == Dialect::Mcpkg && says_more(one),
        all => all.len() > 1 && !matches!(package.dialect, Dialect::Agentcli | Dialect::Skill),
    };
    if !is_question {
        return Ok(Vec::new());
    }
    let (settings, launcher) = (owner::settings(home)?, walls::launcher()?);
    let runtime = owner::runtime()?;
    let records = owner::records_to_look(home, &runtime)?;
    let tool = installed::unasked(installed, named)?;
    let looked = runtime.block_on(host::ways(&settings, &launcher, &records, &tool));
    looked.map_err(|error| call::failure(&error, &error.blocked, &tool))
}

fn tell_package(version: &str, package: &Package, row: &mut dyn FnMut(&str, &str)) {
    row("version", version);
    if let Some(blurb) = package.blurb() {
        row("says it does", blurb);
    }
}

fn tell_actions(package: &Package, row: &mut dyn FnMut(&str, &str)) {
    for action in &package.actions {
        row("action", &action.name);
    }
}
