//! One package, from its card to its place in the home.

use host::surface::Surface;
use install::card::{Card, Circumstances};
use install::journal::Draft;
use install::record::{Agreed, How};
use install::{Piece, Pinned, Put, PutError, Ready, Sha256, StageError, Wanted, stage};
use manifest::model::{Package, Trust};
use policy::Policy;
use vault::Change;

use super::acquired::Acquisition;
use super::{estimate, inputs, onboarding, tried};
use crate::ask::Ask;
use crate::card::drawn;
use crate::commands::surface::changes as surface_changes;
use crate::exit::{Exit, Failure};
use crate::fetch::Fetched;
use crate::home::{Home, VAULT};
use crate::installed;
use crate::owner;
use crate::printer::{Printer, line};

/// How packages are installed.
pub(crate) struct Installing<'i> {
    pub(crate) policy: &'i Policy,
    pub(crate) home: &'i Home,
    pub(crate) ask: Ask,
    pub(crate) json_wanted: bool,
    pub(crate) printer: Printer,
    /// Whether their cards are accepted already.
    pub(crate) agreed: Agreement,
    /// Values that they ask for and that are no secrets.
    pub(crate) settings: &'i [(String, String)],
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
    package: Package,
    /// Nothing where it is there already.
    ready: Option<Ready>,
    values: inputs::Values,
    kept_disabled: Option<Failure>,
}

impl Prepared {
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

/// The card of a package that was fetched.
pub(crate) fn card(
    fetched: &Fetched,
    package: &Package,
    commands: Vec<String>,
    policy: &Policy,
) -> Card {
    let around = Circumstances {
        source: fetched.source.clone(),
        package: fetched.parcel.digest(),
        archive: fetched.archive,
        signature: fetched.signature.clone(),
        trust: trust(fetched, package),
        trust_because: fetched.because.clone(),
        endpoints: host::endpoints(package),
        commands,
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
        let prepared = self.make_ready(fetched, piece, locked, draft)?;
        let at = installed::home(self.home);
        match (&prepared.ready, locked, before(&at, &piece.package)?) {
            (Some(ready), Some(locked), _) => check_locked(ready, locked)?,
            (Some(ready), None, Some(before)) => self.agree_to_surface(ready, &before, &at)?,
            (Some(_), None, None) | (None, ..) => {}
        }
        Ok(prepared)
    }

    /// Makes a package ready only to look at it.
    pub(crate) fn look(
        &self,
        fetched: &Fetched,
        piece: &Piece,
        draft: &mut Draft,
    ) -> Result<Prepared, Failure> {
        self.make_ready(fetched, piece, None, draft)
    }

    fn make_ready(
        &self,
        fetched: &Fetched,
        piece: &Piece,
        locked: Option<&Pinned>,
        draft: &mut Draft,
    ) -> Result<Prepared, Failure> {
        let Self { policy, home, ask, printer, .. } = *self;
        let package = &piece.package;
        let at = installed::home(home);
        let acquisition = Acquisition::of(package, policy, self.reach, &at)?;
        let commands = acquisition.as_ref().map(Acquisition::commands).transpose()?;
        let mut card = card(fetched, package, commands.unwrap_or_default(), policy);
        let trust = trust(fetched, package);
        check_allowed(package, trust, self.agreed, policy)?;
        let how = self.consent(&mut card)?;
        let asks = !package.inputs.is_empty() || !self.settings.is_empty();
        let vault = if asks { Some(owner::vault(home, ask)?) } else { None };
        let values = match &vault {
            Some(vault) => inputs::collect(package, self.settings, vault, ask, printer)?,
            None => Vec::new(),
        };
        let wanted = Wanted {
            parcel: &fetched.parcel,
            piece,
            source: fetched.source.clone(),
            archive: fetched.archive,
            trust,
            consent: Agreed { card: Sha256(card.digest()), how },
            now: host::records::now().unix_millis(),
            memory: policy.sandbox.memory,
        };
        let mut prepared =
            Prepared { card, package: package.clone(), ready: None, values, kept_disabled: None };
        let before = before(&at, package)?;
        if let Some(before) = &before
            && before.version == package.semver()
            && before.package.0 == fetched.parcel.digest()
            && at.holds(before)
        {
            return Ok(prepared);
        }
        let mut ready = stage(draft, &wanted).map_err(|error| unstaged(&error))?;
        if let Some(acquisition) = &acquisition {
            acquisition.acquire(&mut ready, locked, home, self.json_wanted, printer)?;
        }
        let values = &prepared.values;
        let tried = tried::Trying { package, trust, values, home, ask, printer };
        match tried.check(&mut ready) {
            Err(tried::Untried::Smoke(failure))
                if self.on_smoke_fail == OnSmokeFail::KeepDisabled =>
            {
                ready.entry["enabled"] = false.into();
                prepared.kept_disabled = Some(failure);
            }
            checked => checked.map_err(tried::Untried::into_failure)?,
        }
        prepared.ready = Some(ready);
        Ok(prepared)
    }

    /// Puts packages that are ready in their places, all or none, and lets others go.
    pub(crate) fn put(
        &self,
        mut draft: Draft,
        prepared: Vec<Prepared>,
        going: &[Pinned],
    ) -> Result<Vec<Installed>, Failure> {
        let at = installed::home(self.home);
        let (mut done, mut ready, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for one in prepared {
            let Prepared { card, package, ready: staged, values: given, kept_disabled } = one;
            let actions = staged.as_ref().map(|ready| ready.record.pinned.actions.len());
            done.push((Installed { card, put: Put::There, kept_disabled }, actions));
            ready.push(staged);
            values.push((package, given));
        }
        let is_staged: Vec<_> = ready.iter().map(Option::is_some).collect();
        let given = self.places(&values)?;
        let vault = if given.is_empty() { None } else { Some(owner::vault(self.home, self.ask)?) };
        let mut put = if going.is_empty() && !is_staged.contains(&true) {
            Vec::new()
        } else {
            let mut changing = at.lock()?;
            // The values are kept together with what they are for, or neither is.
            let change = vault.as_ref().map(|vault| vault.change(&given)).transpose();
            let change = change.map_err(|error| owner::vault_failure(&error))?;
            if let Some(change) = &change {
                draft.private_file(&format!("{VAULT}/{}", Change::FILE), change.bytes())?;
            }
            let ready = ready.into_iter().flatten().collect();
            changing.put(draft, ready, going).map_err(|error| match error {
                PutError::OtherBytes(id) => other_bytes(&id),
                PutError::Home(error) => installed::failure(&error),
            })?
        }
        .into_iter();
        if put.len() == 0
            && let Some(vault) = &vault
        {
            for (place, value) in &given {
                vault.set(place, value).map_err(|error| owner::vault_failure(&error))?;
            }
        }
        for ((one, _), is_staged) in done.iter_mut().zip(is_staged) {
            if is_staged {
                one.put = put.next().unwrap_or(Put::There);
            }
        }
        for ((one, actions), (package, _)) in done.iter().zip(&values) {
            self.tell(&one.card, one.put, *actions);
            if let Some(words) = onboarding::next(package, self.home, self.ask)? {
                self.printer.note(&words);
            }
        }
        Ok(done.into_iter().map(|(one, _)| one).collect())
    }

    /// Where the values are kept that were given.
    fn places(
        &self,
        values: &[(Package, inputs::Values)],
    ) -> Result<Vec<(vault::Place, vault::Secret)>, Failure> {
        let mut all = Vec::new();
        for (package, given) in values {
            for (name, value) in given {
                let place = host::secrets::place(package, name);
                let place = place.map_err(|error| Failure::invalid(error.to_string()))?;
                all.push((place, value.clone()));
            }
        }
        Ok(all)
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
        if self.agreed == Agreement::Beforehand {
            return Ok(());
        }
        let message = "not installed: you did not approve what its server offers now";
        let refused = || Failure::new(Exit::Denied, message);
        if !self.ask.is_possible() {
            return Err(refused().hint("--yes approves it beforehand"));
        }
        if self.ask.yes_or_no("Approve it?")? { Ok(()) } else { Err(refused()) }
    }

    fn tell(&self, card: &Card, put: Put, actions: Option<usize>) {
        let words = match put {
            Put::Installed => "Installed",
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
    fn consent(&self, card: &mut Card) -> Result<How, Failure> {
        if let Agreement::Before(how) = self.agreed {
            return Ok(how);
        }
        estimate::ask(card, self.policy, self.reach)?;
        self.printer.note(&drawn(card));
        if self.agreed == Agreement::Beforehand {
            return Ok(How::Beforehand);
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

/// The version of a package that is installed.
fn before(at: &install::Home, package: &Package) -> Result<Option<Pinned>, Failure> {
    Ok(at.read()?.lock.get(&package.canonical_id()).cloned())
}

/// Refuses what is not what a lock says.
fn check_locked(ready: &Ready, locked: &Pinned) -> Result<(), Failure> {
    let found = &ready.record.pinned;
    let differs = if found.package != locked.package {
        Some(("its files", found.package, locked.package))
    } else if found.manifest != locked.manifest {
        Some(("its manifest", found.manifest, locked.manifest))
    } else {
        match (found.surface, locked.surface) {
            (Some(found), Some(locked)) if found != locked => {
                Some(("what its server offers", found, locked))
            }
            _ => None,
        }
    };
    let Some((what, found, wanted)) = differs else { return Ok(()) };
    let message = format!(
        "{what} of `{}` {} differ from the lock: sha256:{} was locked, sha256:{} is there",
        line(&locked.id),
        line(&locked.version),
        wanted.0,
        found.0
    );
    Err(Failure::invalid(message))
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

/// Refuses what the policy does not let in, whoever agrees to it.
fn check_allowed(
    package: &Package,
    trust: Trust,
    agreed: Agreement,
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
    let is_asked = matches!(agreed, Agreement::Asked | Agreement::Before(How::Asked));
    if policy.trust.allow.contains(&trust) || (trust == Trust::Community && is_asked) {
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

fn unstaged(error: &StageError) -> Failure {
    match error {
        StageError::Home(error) => installed::failure(error),
        StageError::Extract(error) => Failure::of(Exit::Unavailable, error),
    }
}
