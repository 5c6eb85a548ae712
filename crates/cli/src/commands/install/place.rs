//! One package, from its card to its place in the home.

use install::card::{Card, Circumstances};
use install::record::{Agreed, How};
use install::{Piece, Pinned, Put, PutError, Ready, Sha256, StageError, Wanted, stage};
use manifest::model::{Package, Trust};
use policy::Policy;
use vault::FileVault;

use super::acquired::Acquisition;
use super::{inputs, tried};
use crate::ask::Ask;
use crate::card::drawn;
use crate::exit::{Exit, Failure};
use crate::fetch::Fetched;
use crate::home::Home;
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
    /// Installs a package that was fetched; where a lock says what it is, exactly that or nothing.
    pub(crate) fn install(
        &self,
        fetched: &Fetched,
        piece: &Piece,
        locked: Option<&Pinned>,
    ) -> Result<Installed, Failure> {
        let Self { policy, home, ask, printer, .. } = *self;
        let package = &piece.package;
        let at = installed::home(home);
        let acquisition = Acquisition::of(package, policy, self.reach, &at)?;
        let commands = acquisition.as_ref().map(Acquisition::commands).transpose()?;
        let card = card(fetched, package, commands.unwrap_or_default(), policy);
        let trust = trust(fetched, package);
        check_allowed(package, trust, self.agreed, policy)?;
        let how = self.consent(&card)?;
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
        if is_there(&at, &wanted)? {
            self.tell(&card, Put::There);
            return Ok(Installed { card, put: Put::There, kept_disabled: None });
        }
        let mut ready = stage(&at, &wanted).map_err(|error| unstaged(&error))?;
        if let Some(acquisition) = &acquisition {
            acquisition.acquire(&mut ready, locked, home, self.json_wanted, printer)?;
        }
        let tried = tried::Trying { package, trust, values: &values, home, ask, printer };
        let kept_disabled = match tried.check(&mut ready) {
            Err(tried::Untried::Smoke(failure))
                if self.on_smoke_fail == OnSmokeFail::KeepDisabled =>
            {
                ready.entry["enabled"] = false.into();
                Some(failure)
            }
            checked => {
                checked.map_err(tried::Untried::into_failure)?;
                None
            }
        };
        if let Some(locked) = locked {
            check_locked(&ready, locked)?;
        }
        let mut changing = at.lock()?;
        let put = changing.put(ready).map_err(|error| match error {
            PutError::OtherBytes => other_bytes(&card),
            PutError::Home(error) => installed::failure(&error),
        })?;
        drop(changing);
        if let Some(vault) = vault {
            keep(&values, package, &vault)?;
        }
        self.tell(&card, put);
        Ok(Installed { card, put, kept_disabled })
    }

    fn tell(&self, card: &Card, put: Put) {
        let words = match put {
            Put::Installed => "Installed",
            Put::Replaced => "Updated to",
            Put::There => "Installed already:",
        };
        self.printer.note(&format!(
            "{words} {} {}  ({})",
            line(&card.id),
            line(&card.version),
            facts(card)
        ));
    }

    /// Shows the card and asks, unless that was agreed to beforehand.
    fn consent(&self, card: &Card) -> Result<How, Failure> {
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

/// Whether exactly these files are installed and active already: then nothing is fetched or tried again.
fn is_there(at: &install::Home, wanted: &Wanted<'_>) -> Result<bool, Failure> {
    let contents = at.read()?;
    let package = &wanted.piece.package;
    let known = contents.lock.get(&package.canonical_id());
    Ok(known.is_some_and(|known| {
        known.version == package.semver() && known.package.0 == wanted.parcel.digest()
    }))
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

fn other_bytes(card: &Card) -> Failure {
    let message = format!(
        "`{}` {} is installed with other bytes, and a version never changes",
        line(&card.id),
        line(&card.version)
    );
    Failure::new(Exit::Conflict, message).hint("give it another version, or `haft remove` it first")
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
    let is_asked = agreed == Agreement::Asked;
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
