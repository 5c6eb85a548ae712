//! One package, from its card to its place in the home.

use host::surface::Surface;
use install::journal::Draft;
use install::key::Key;
use install::record::{Agreed, How};
use install::{
    Beside, Card, Contents, Piece, Pinned, Put, PutError, Ready, Sha256, StageError, Wanted, stage,
};
use manifest::model::Package;
use policy::Policy;
use vault::{Change, Secret};

use super::acquired::Acquisition;
use super::agreed::Cards;
use super::allowed::{check_allowed, check_locked};
use super::lent::{self, Lent};
use super::shown::{card, trust};
use super::similar::{self, Similar};
use super::values::{differ, places};
use super::{collision, estimate, inputs, onboarding, tried};
use crate::ask::Ask;
use crate::card::drawn;
use crate::changes::{self, Verb};
use crate::commands::surface::changes as surface_changes;
use crate::exit::{Exit, Failure};
use crate::fetch::Fetched;
use crate::home::{Home, VAULT};
use crate::installed;
use crate::printer::{Printer, line};
use crate::{owner, revoking, shell};

/// How packages are installed.
pub(crate) struct Installing<'i> {
    pub(crate) policy: &'i Policy,
    pub(crate) home: &'i Home,
    pub(crate) ask: Ask,
    pub(crate) json_wanted: bool,
    pub(crate) printer: Printer,
    /// Whether their cards are accepted already.
    pub(crate) agreed: Agreement,
    /// Whether what servers offer now is approved, where it is not what was approved before.
    pub(crate) surfaces: Agreement,
    /// Cards that were shown before, and are the only ones to be accepted.
    pub(crate) cards: Option<&'i Cards>,
    /// Values that they ask for and that are no secrets.
    pub(crate) settings: &'i [(String, String)],
    /// Secrets that are known already.
    pub(crate) secrets: &'i [(String, Secret)],
    /// What is granted together with the card.
    pub(crate) lent: &'i [Lent],
    /// Whether their ids may be taken for those of others.
    pub(crate) similar: Similar,
    /// Of several secrets, the one that a kill switch is told.
    pub(crate) revoke_with: Option<&'i str>,
    /// What becomes of one whose smoke test fails.
    pub(crate) on_smoke_fail: OnSmokeFail,
    /// Who is asked which versions of its parts there are.
    pub(crate) reach: install::acquire::Reach,
}

/// Whether a card is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// Its owner is asked.
    Asked,
    /// Its owner said yes beforehand, as far as their policy lets them.
    Beforehand,
    /// Its owner has just looked at it on a page of ours, and said yes there.
    Elsewhere,
    /// Its owner agreed to all of it before, in this way.
    Before(How),
}

/// What becomes of a package whose smoke test fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnSmokeFail {
    /// It is not installed
    #[default]
    Refuse,
    /// It is installed and stays disabled, to find out why
    KeepDisabled,
}

/// A package that is ready to be put in its place.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) card: Card,
    pub(super) package: Package,
    /// Nothing where it is there already.
    ready: Option<Ready>,
    pub(super) values: inputs::Values,
    /// The version that was there when it was looked at.
    before: Option<String>,
    /// Whether it counted as revoked then.
    was_revoked: bool,
    /// How many actions it has, where that is known better than its card says.
    actions: Option<usize>,
    kept_disabled: Option<Failure>,
}

impl Prepared {
    /// Refuses where somebody revoked or removed it while it was made ready: nobody who did that wants it back.
    fn check_unchanged(&self, now: &Contents) -> Result<(), Failure> {
        let id = &self.card.id;
        let what = if !self.was_revoked && now.revoked.get(id).is_some() {
            "revoked"
        } else if self.before.is_some() && now.lock.get(id).is_none() {
            "removed"
        } else {
            return Ok(());
        };
        let message = format!("`{}` was {what} in the meantime, and is left so", line(id));
        Err(Failure::new(Exit::Conflict, message)
            .hint(format!("`haft install` brings it back, once it is {what}")))
    }

    /// What its server offers, where it was asked.
    pub(crate) fn surface(&self) -> Option<&serde_json::Value> {
        self.ready.as_ref()?.record.surface.as_ref()
    }
}

/// What became of a package.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) card: Card,
    pub(crate) put: Put,
    /// Why it stays disabled, where it does.
    pub(crate) kept_disabled: Option<Failure>,
}

impl Installing<'_> {
    /// Makes a package ready that was fetched: agreed to, with all it needs, and tried. Where a lock says what it is, exactly
    /// that or nothing.
    pub(crate) fn prepare(
        &self,
        fetched: &Fetched,
        piece: &Piece,
        locked: Option<&Pinned>,
        draft: &mut Draft,
    ) -> Result<Prepared, Failure> {
        let (acquisition, card) = self.card(fetched, &piece.package)?;
        let change = changes::Change::of_card(self.home, &card, self.printer);
        let made = self.make_ready(fetched, piece, (acquisition, card), locked, draft);
        let prepared = made.and_then(|prepared| {
            let at = installed::home(self.home);
            match (&prepared.ready, locked, before(&at, &piece.package)?) {
                (Some(ready), Some(locked), _) => {
                    check_locked(ready, locked, &piece.package)?;
                }
                (Some(ready), None, Some(before)) => self.agree_to_surface(ready, &before, &at)?,
                (Some(ready), None, None) => self.agree_to_offer(ready, &piece.package)?,
                (None, ..) => {}
            }
            Ok(prepared)
        });
        if prepared.is_err() {
            // What was refused is written down too.
            change.end(&prepared);
        }
        prepared
    }

    /// Makes a package ready only to look at it.
    pub(crate) fn look(
        &self,
        fetched: &Fetched,
        piece: &Piece,
        draft: &mut Draft,
    ) -> Result<Prepared, Failure> {
        let shown = self.card(fetched, &piece.package)?;
        self.make_ready(fetched, piece, shown, None, draft)
    }

    /// What a package needs beside its files, and its card.
    fn card<'p>(
        &self,
        fetched: &Fetched,
        package: &'p Package,
    ) -> Result<(Option<Acquisition<'p>>, Card), Failure> {
        let at = installed::home(self.home);
        let acquisition = Acquisition::of(package, self.policy, self.reach, &at)?;
        let card = card(fetched, package, acquisition.as_ref(), self.policy)?;
        Ok((acquisition, card))
    }

    fn make_ready(
        &self,
        fetched: &Fetched,
        piece: &Piece,
        (acquisition, mut card): (Option<Acquisition<'_>>, Card),
        locked: Option<&Pinned>,
        draft: &mut Draft,
    ) -> Result<Prepared, Failure> {
        let Self { policy, home, ask, printer, .. } = *self;
        let package = &piece.package;
        Key::of(package).map_err(|error| Failure::invalid(line(&error.to_string())))?;
        let at = installed::home(home);
        let trust = trust(fetched, package);
        let accepted = self.cards.map(|cards| cards.check(&card)).transpose()?.flatten();
        let agreed = accepted.unwrap_or(self.agreed);
        check_allowed(package, trust, agreed, policy)?;
        let gives =
            !self.lent.is_empty() || !matches!(agreed, Agreement::Before(_)) && asks_for(&card);
        if gives {
            owner::check_presence(home, ask)?;
        }
        let contents = at.read()?;
        collision::check(package, &contents, &at)?;
        revoking::check_secrets_free(&card.id, &contents, home)?;
        let known =
            similar::Known { contents: &contents, policy, registry: fetched.registry.as_ref() };
        similar::check(package, &known, (self.similar, agreed), ask)?;
        let how = self.consent(&mut card, agreed)?;
        let (vault, values) = self.values(package)?;
        let secret = inputs::revoking(package, self.revoke_with, ask, printer)?;
        let wanted = Wanted {
            parcel: &fetched.parcel,
            piece,
            source: fetched.source.clone(),
            archive: fetched.archive,
            trust,
            consent: Agreed { card: Sha256(card.digest()), how },
            beside: Beside { secret, ..Beside::of(package) },
            now: host::records::now().unix_millis(),
            memory: policy.sandbox.memory,
        };
        let mut prepared = Prepared {
            card,
            package: package.clone(),
            ready: None,
            values,
            before: None,
            was_revoked: contents.revoked.get(&package.canonical_id()).is_some(),
            actions: None,
            kept_disabled: None,
        };
        let before = before(&at, package)?;
        prepared.before = before.as_ref().map(|before| before.version.clone());
        if let Some(before) = &before
            && before.version == package.semver()
            && before.package.0 == fetched.parcel.digest()
            && at.holds_whole(before)
            && contents.revoked.get(&before.id).is_none()
            // What is off may have been kept although it failed, and with other values it may fail now: it is tried again.
            && !is_off(&before.id, home)?
            && !differ(&prepared, vault.as_deref())?
        {
            prepared.actions = Some(before.actions.len());
            return Ok(prepared);
        }
        let mut ready = stage(draft, &wanted).map_err(|error| unstaged(&error))?;
        if let Some(acquisition) = &acquisition {
            acquisition.acquire(&mut ready, locked, home, self.json_wanted, printer)?;
        }
        let values = &prepared.values;
        let grants = self.lent.iter().map(Lent::given).collect();
        let tried = tried::Trying { package, trust, values, grants, policy, home, ask, printer };
        match tried.check(&mut ready) {
            // A version that works is not given up for one that does not.
            Err(tried::Untried::Smoke(failure))
                if self.on_smoke_fail == OnSmokeFail::KeepDisabled
                    && before.is_some()
                    && !is_off(&package.canonical_id(), home)? =>
            {
                let id = shell::word(&package.canonical_id());
                return Err(failure.hint(format!(
                    "the version before it stays; a broken one is kept where none works: `haft disable {id}` first"
                )));
            }
            Err(tried::Untried::Smoke(failure))
                if self.on_smoke_fail == OnSmokeFail::KeepDisabled =>
            {
                ready.entry["enabled"] = false.into();
                prepared.kept_disabled = Some(failure);
            }
            checked => checked.map_err(tried::Untried::into_failure)?,
        }
        prepared.actions = Some(ready.record.pinned.actions.len());
        prepared.ready = Some(ready);
        Ok(prepared)
    }

    /// Puts packages that are ready in their places, all or none, and lets others go.
    pub(crate) fn put(
        &self,
        draft: Draft,
        prepared: Vec<Prepared>,
        going: &[Pinned],
    ) -> Result<Vec<Installed>, Failure> {
        let (mut there, mut staged, mut log) = (Vec::new(), Vec::new(), Vec::new());
        for one in prepared {
            match one.ready {
                Some(_) => {
                    log.push(changes::Change::of_card(self.home, &one.card, self.printer));
                    staged.push(one);
                }
                None => there.push(one),
            }
        }
        for pinned in going {
            let change = changes::Change::new(self.home, Verb::Remove, &pinned.id, self.printer);
            log.push(change.about(Some(pinned)));
        }
        let put = self.commit(draft, &mut staged, going, &mut log);
        let put = match put {
            Err(failure) => {
                let failed = Err::<(), _>(failure);
                for change in log {
                    change.end(&failed);
                }
                return failed.map(|()| Vec::new());
            }
            Ok(put) => put,
        };
        for (at, mut change) in log.into_iter().enumerate() {
            if put.get(at) == Some(&Put::Replaced) {
                change.turned_out(Verb::Update);
            }
            change.ended(ledger::audit::Outcome::Ok);
        }
        // Who is there already may have been given other values, and another secret to revoke with.
        let is_there = |put: &Put| *put == Put::There;
        self.keep(
            there.iter().chain(
                staged.iter().zip(&put).filter(|(_, put)| is_there(put)).map(|(one, _)| one),
            ),
        )?;
        for one in staged.iter().chain(&there) {
            lent::grant(&one.card.id, self.lent, self.home)?;
        }
        let put = put.into_iter().chain(std::iter::repeat(Put::There));
        let mut done = Vec::new();
        for (one, put) in staged.into_iter().chain(there).zip(put) {
            self.tell(&one.card, (put, one.before.as_deref()), one.actions);
            if put == Put::There && is_off(&one.card.id, self.home)? {
                let id = line(&one.card.id);
                self.printer.note(&format!("It is disabled: `haft enable {id}` lets it be called"));
            }
            for words in onboarding::next(&one.package, &one.values, self.home, self.ask)? {
                self.printer.note(&words);
            }
            done.push(Installed { card: one.card, put, kept_disabled: one.kept_disabled });
        }
        Ok(done)
    }

    /// Makes the change of the home, once it is written down that it begins.
    fn commit(
        &self,
        mut draft: Draft,
        staged: &mut [Prepared],
        going: &[Pinned],
        log: &mut [changes::Change<'_>],
    ) -> Result<Vec<Put>, Failure> {
        if staged.is_empty() && going.is_empty() {
            return Ok(Vec::new());
        }
        let given = places(&*staged)?;
        let vault = if given.is_empty() { None } else { Some(owner::vault(self.home, self.ask)?) };
        for change in log {
            change.begin()?;
        }
        let at = installed::home(self.home);
        let mut changing = at.lock()?;
        for one in &*staged {
            one.check_unchanged(changing.contents())?;
            // Somebody else may have installed the other one, or revoked this one, in the meantime.
            collision::check(&one.package, changing.contents(), &at)?;
            revoking::check_secrets_free(&one.card.id, changing.contents(), self.home)?;
        }
        for pinned in going {
            revoking::check_secrets_free(&pinned.id, changing.contents(), self.home)?;
        }
        // The values are kept together with what they are for, or neither is.
        let values = vault.as_ref().map(|vault| vault.change(&given)).transpose();
        let values = values.map_err(|error| owner::vault_failure(&error))?;
        if let Some(values) = &values {
            draft.private_file(&format!("{VAULT}/{}", Change::FILE), values.bytes())?;
        }
        let ready = staged.iter_mut().filter_map(|one| one.ready.take()).collect();
        changing.put(draft, ready, going).map_err(|error| match error {
            PutError::OtherBytes(id) => other_bytes(&id),
            PutError::Home(error) => installed::failure(&error),
        })
    }

    /// A server of which another surface was approved before: what is new is shown, and the owner asked.
    fn agree_to_surface(
        &self,
        ready: &Ready,
        before: &Pinned,
        at: &install::Home,
    ) -> Result<(), Failure> {
        let (Some(known), Some(now)) = (before.surface, &ready.record.surface) else {
            return Ok(());
        };
        if ready.record.pinned.surface == Some(known) {
            return Ok(());
        }
        let key = before.key().map_err(|error| Failure::invalid(error.to_string()))?;
        let record = at.record(&key, &before.folder())?;
        let read = |value: &serde_json::Value| Surface::from_value(value).ok();
        let was = record.surface.as_ref().and_then(read);
        let changes = read(now).map(|now| surface_changes(was.as_ref(), &now));
        self.printer.note(&changes.unwrap_or_default().join("\n"));
        owner::check_presence(self.home, self.ask)?;
        let message = "not installed: you did not approve what its server offers now";
        self.approved(self.surfaces, message)
    }

    /// A server that is new here and whose tools were on no card: they are shown, and whoever was asked about the card is
    /// asked about them.
    fn agree_to_offer(&self, ready: &Ready, package: &Package) -> Result<(), Failure> {
        let Some(offered) = ready.record.surface.as_ref().filter(|_| package.actions.is_empty())
        else {
            return Ok(());
        };
        if let Ok(offered) = Surface::from_value(offered) {
            self.printer.note(&surface_changes(None, &offered).join("\n"));
        }
        match self.agreed {
            Agreement::Asked => self
                .approved(self.agreed, "not installed: you did not approve what its server offers"),
            Agreement::Beforehand | Agreement::Elsewhere | Agreement::Before(_) => Ok(()),
        }
    }

    fn approved(&self, agreed: Agreement, message: &str) -> Result<(), Failure> {
        if matches!(agreed, Agreement::Beforehand | Agreement::Elsewhere) {
            return Ok(());
        }
        let refused = || Failure::new(Exit::Denied, message);
        if !self.ask.is_possible() {
            return Err(refused().hint("--yes approves it beforehand"));
        }
        if self.ask.yes_or_no("Approve it?")? { Ok(()) } else { Err(refused()) }
    }

    fn tell(&self, card: &Card, (put, before): (Put, Option<&str>), actions: Option<usize>) {
        let words = match put {
            Put::Installed => "Installed",
            Put::Replaced if is_older(&card.version, before) => "Went back to",
            Put::Replaced => "Updated to",
            Put::There => "Installed already:",
        };
        self.printer.note(&format!(
            "{words} {} {}  ({})",
            line(&card.id),
            line(&card.version),
            facts(card, actions)
        ));
    }

    /// Shows the card and asks, unless that was agreed to beforehand.
    fn consent(&self, card: &mut Card, agreed: Agreement) -> Result<How, Failure> {
        if let Agreement::Before(how) = agreed {
            return Ok(how);
        }
        estimate::ask(card, self.policy, self.reach)?;
        self.printer.note(&drawn(card));
        match agreed {
            Agreement::Beforehand => return Ok(How::Beforehand),
            Agreement::Elsewhere => return Ok(How::Asked),
            Agreement::Asked | Agreement::Before(_) => {}
        }
        if !self.ask.is_possible() {
            let message = "its card has to be accepted, and nobody can be asked";
            return Err(Failure::new(Exit::Denied, message)
                .hint("--yes accepts it beforehand, as far as your policy lets it"));
        }
        if self.ask.yes_or_no("Install it?")? {
            Ok(How::Asked)
        } else {
            Err(Failure::new(Exit::Denied, "not installed: you did not accept its card"))
        }
    }
}

/// Whether a card asks for anything that an owner would have to grant otherwise.
fn asks_for(card: &Card) -> bool {
    let folders = &card.folders;
    let asked = [&card.hosts, &folders.read, &folders.write, &folders.devices];
    asked.iter().any(|asked| !asked.is_empty()) || card.inputs.iter().any(|input| input.secret)
}

/// The version of a package that is installed.
fn before(at: &install::Home, package: &Package) -> Result<Option<Pinned>, Failure> {
    Ok(at.read()?.lock.get(&package.canonical_id()).cloned())
}

/// Whether a version is older than the one before it.
fn is_older(version: &str, before: Option<&str>) -> bool {
    let parsed = |text: &str| semver::Version::parse(text).ok();
    let (now, before) = (parsed(version), before.and_then(parsed));
    now.zip(before).is_some_and(|(now, before)| now.cmp_precedence(&before).is_lt())
}

/// Whether a package is switched off.
fn is_off(id: &str, home: &Home) -> Result<bool, Failure> {
    let contents = installed::home(home).read()?;
    Ok(contents.listed().iter().any(|one| one.id == id && !one.enabled))
}

fn other_bytes(id: &str) -> Failure {
    let message = format!(
        "this version of `{}` is installed with other bytes, and a version never changes",
        line(id)
    );
    Failure::new(Exit::Conflict, message).hint("give it another version, or `haft remove` it first")
}

/// The facts that matter, in a few words.
fn facts(card: &Card, actions: Option<usize>) -> String {
    let mut facts = Vec::new();
    if !card.scopes.is_empty() {
        facts.push(crate::commands::count(card.scopes.len(), "scope"));
    }
    facts.push(crate::commands::count(actions.unwrap_or(card.actions.len()), "action"));
    facts.push(match card.hosts.as_slice() {
        [] => "no network".to_owned(),
        hosts => format!("network: {}", line(&hosts.join(", "))),
    });
    facts.push(format!("trust: {}", card.trust));
    facts.join(", ")
}

fn unstaged(error: &StageError) -> Failure {
    match error {
        StageError::Home(error) => installed::failure(error),
        StageError::Extract(error) => Failure::of(Exit::Unavailable, error),
    }
}
