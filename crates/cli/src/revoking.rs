//! Revoking a package: it is switched off first, then its kill switch is run, then what it was granted goes, and then its
//! secrets in the same change that says that it is revoked.
//!
//! Each step is on the disk before the next one begins. Whoever is killed on the way leaves a package that is switched off
//! and a revocation that is not confirmed, with all its secrets and the hosts that its kill switch may reach; doing it again
//! finishes it. What counts as revoked has neither grants nor secrets left.

use std::sync::Arc;

use host::login::Logins;
use host::records::{now, whole};
use host::secrets::Described;
use host::ticket::package_of;
use host::{Blocked, CallError, Host, Killed, Kind};
use install::journal::Draft;
use install::revoked::State;
use install::{Changing, Contents, HomeError, Installed, Pinned, Revocation};
use ledger::audit::Outcome;
use ledger::state::approvals::Answer;
use ledger::state::grants::GrantKind;
use manifest::kill_switch::{ByHand, KillSwitch};
use manifest::model::{Input, Package};
use policy::Grant;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use vault::{FileVault, Owner};

use crate::ask::Ask;
use crate::changes::{By, Change, UNCONFIRMED, Verb};
use crate::exit::{Exit, Failure};
use crate::home::{Home, VAULT};
use crate::installed::{self, Named};
use crate::printer::{Printer, line};
use crate::signing_out::sign_out;
use crate::{interrupt, owner, walls};

/// What is said of a revocation that nobody has finished.
const BEGUN: &str = "its kill switch was not run to its end";

/// What is said of a revocation that no program can do.
const BY_HAND: &str = "only its owner can revoke it";

/// How a package is revoked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Revoking<'r> {
    pub(crate) home: &'r Home,
    pub(crate) ask: Ask,
    pub(crate) printer: Printer,
    /// What becomes of its secrets.
    pub(crate) secrets: Secrets,
    /// The secret that shows who revokes, where it was named.
    pub(crate) with: Option<&'r str>,
    /// Who does it.
    pub(crate) by: By,
    /// What the tool reached for, where that is why.
    pub(crate) blocked: &'r [Blocked],
}

/// What becomes of the secrets of a package that is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// They are kept until somebody confirms that they are worth nothing any more.
    Kept,
    /// They are given up in any case.
    Forgotten,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revoked {
    pub(crate) id: String,
    pub(crate) state: State,
    pub(crate) why: Option<String>,
    pub(crate) by_hand: Option<String>,
    /// How it came to be so.
    pub(crate) way: Way,
    /// Secrets of which our copy is gone, and which still count wherever they were given out: nobody takes them back.
    pub(crate) outlive: Vec<Outliving>,
}

/// A secret that outlives what it was given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outliving {
    name: String,
    /// Where it is to be had, and perhaps to be taken back.
    page: Option<String>,
}

impl Outliving {
    /// What a package was given, where it has nothing that takes it back.
    fn of(package: &Package, id: &str, home: &Home) -> Vec<Self> {
        if kept_values(id, home) == 0 {
            return Vec::new();
        }
        let secrets = package.inputs.iter().filter(|input| input.secret);
        let described = |input: &Input| Self {
            name: input.name.clone(),
            page: Described::of(package, &input.name).obtain_url,
        };
        secrets.map(described).collect()
    }

    fn words(&self) -> String {
        match &self.page {
            Some(page) => format!("`{}` ({})", line(&self.name), line(page)),
            None => format!("`{}`", line(&self.name)),
        }
    }
}

/// How a revocation came out as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Its kill switch was run, or something kept it from being run.
    Switch,
    /// There is no kill switch, so nobody had to be told.
    NoSwitch,
    /// Only its owner can do it.
    ByHand,
    /// It was confirmed before, and nothing was asked again.
    Before,
}

impl Revoked {
    /// For programs.
    pub(crate) fn to_value(&self) -> Value {
        let mut told = json!({
            "id": self.id,
            "state": self.state.name(),
            "why": self.why,
            "by_hand": self.by_hand,
        });
        if !self.outlive.is_empty() {
            told["outlive"] = self.outlive.iter().map(|one| one.name.as_str()).collect();
        }
        told
    }

    /// For people.
    pub(crate) fn words(&self) -> String {
        let id = line(&self.id);
        match (self.state, self.way) {
            (State::Revoked, Way::Before) => format!("{id} is revoked already: confirmed"),
            (State::Revoked, Way::NoSwitch) if self.outlive.is_empty() => {
                format!("Revoked {id}: confirmed, since it has no kill switch that could fail")
            }
            (State::Revoked, Way::NoSwitch) => {
                let secrets: Vec<_> = self.outlive.iter().map(Outliving::words).collect();
                format!(
                    "Revoked {id}: it is switched off, and what was kept for it is gone. It has no kill switch: take back {} where you got it",
                    secrets.join(", ")
                )
            }
            (State::Revoked, Way::Switch | Way::ByHand) => format!("Revoked {id}: confirmed"),
            (State::Unconfirmed, _) => {
                let why = self.why.as_deref().map(|why| format!(": {}", line(why)));
                format!(
                    "{id} is switched off, and its revocation is unconfirmed{}",
                    why.unwrap_or_default()
                )
            }
        }
    }
}

impl Revoking<'_> {
    /// Revokes a package.
    pub(crate) fn revoke(&self, named: &Named) -> Result<Revoked, Failure> {
        let at = installed::home(self.home);
        let known = at.read()?.revoked.get(&named.id).cloned();
        if let Some(known) = &known
            && known.state == State::Revoked
        {
            let (id, state) = (named.id.clone(), known.state);
            let outlive = Vec::new();
            return Ok(Revoked { id, state, why: None, by_hand: None, way: Way::Before, outlive });
        }
        let mut change = Change::new(self.home, Verb::Revoke, &named.id, self.printer)
            .about(named.pinned.as_ref())
            .by(self.by, self.blocked);
        let done = change.begin().and_then(|()| self.revoke_noted(named, known, &at));
        match &done {
            Ok(revoked) if revoked.state == State::Unconfirmed => {
                change.ended(Outcome::Error(UNCONFIRMED.to_owned()));
            }
            done => change.end(done),
        }
        done
    }

    fn revoke_noted(
        &self,
        named: &Named,
        known: Option<Revocation>,
        at: &install::Home,
    ) -> Result<Revoked, Failure> {
        let is_begun = known.is_some() && !named.enabled;
        let mut before = known.unwrap_or_else(|| Revocation {
            id: named.id.clone(),
            state: State::Unconfirmed,
            since: host::records::now().unix_millis(),
            why: Some(BEGUN.to_owned()),
            by_hand: None,
            hosts: Vec::new(),
            forgotten: false,
        });
        let runtime = owner::runtime()?;
        // Its grants go, and the kill switch may be tried again. Where nobody can say what they are, it is switched off all
        // the same, and that is all.
        let hosts = granted_hosts(&before, self.home, &runtime);
        let is_known = hosts.as_ref().is_ok_and(|hosts| *hosts == before.hosts);
        if let Ok(hosts) = &hosts {
            before.hosts.clone_from(hosts);
        }
        if !is_begun || !is_known {
            at.lock()?.revoke(at.draft()?, &named.id_in_catalog, before.clone())?;
        }
        hosts?;
        let killed = match &named.pinned {
            Some(pinned) => self.kill(named, pinned, &before, at, &runtime)?,
            None => Killed::NothingToDo,
        };
        let way = match &killed {
            Killed::NothingToDo => Way::NoSwitch,
            Killed::Unconfirmed { why, .. } if why == BY_HAND => Way::ByHand,
            Killed::Confirmed | Killed::Unconfirmed { .. } => Way::Switch,
        };
        let (state, why, by_hand) = match killed {
            Killed::Confirmed | Killed::NothingToDo => (State::Revoked, None, None),
            Killed::Unconfirmed { why, by_hand } => {
                let by_hand = by_hand.map(|by_hand| match by_hand {
                    ByHand::Url(text) | ByHand::Instructions(text) => text,
                });
                (State::Unconfirmed, Some(why), by_hand)
            }
        };
        let outlive = match (way, &named.pinned) {
            (Way::NoSwitch, Some(pinned)) => Installed::load(at, pinned)
                .map(|installed| Outliving::of(&installed.package, &named.id, self.home))?,
            _ => Vec::new(),
        };
        let is_forgotten = before.forgotten || self.secrets == Secrets::Forgotten;
        let after = match state {
            State::Revoked => Revocation {
                state,
                why: None,
                by_hand: None,
                hosts: Vec::new(),
                forgotten: false,
                ..before
            },
            State::Unconfirmed => Revocation {
                why: why.clone(),
                by_hand: by_hand.clone(),
                forgotten: is_forgotten,
                ..before
            },
        };
        take_grants(&named.id, self.home, &runtime)?;
        if after.keeps_secrets() {
            at.lock()?.revoke(at.draft()?, &named.id_in_catalog, after)?;
        } else {
            without_secrets(&[&named.id], self.home, self.ask, self.printer, |changing, draft| {
                changing.revoke(draft, &named.id_in_catalog, after)
            })?;
        }
        Ok(Revoked { id: named.id.clone(), state, why, by_hand, way, outlive })
    }

    /// Runs the kill switch of an installed package. What keeps it from being run leaves the revocation unconfirmed.
    fn kill(
        &self,
        named: &Named,
        pinned: &Pinned,
        before: &Revocation,
        at: &install::Home,
        runtime: &Runtime,
    ) -> Result<Killed, Failure> {
        let installed = match Installed::load(at, pinned) {
            Ok(installed) => installed,
            Err(error) => return Ok(Killed::Unconfirmed { why: whole(&error), by_hand: None }),
        };
        match KillSwitch::of(&installed.package) {
            // Nothing is run for these, so nothing has to be there to run it.
            None | Some(KillSwitch::None) => return Ok(Killed::NothingToDo),
            Some(KillSwitch::Manual(by_hand)) => {
                let why = BY_HAND.to_owned();
                return Ok(Killed::Unconfirmed { why, by_hand: Some(by_hand) });
            }
            Some(KillSwitch::Url(_) | KillSwitch::Shell(_)) => {}
        }
        match self.run_switch(installed, named, before, runtime) {
            Err(failure) if matches!(failure.exit, Exit::Of(_)) => Err(failure),
            Err(failure) => {
                let why = std::iter::once(failure.message).chain(failure.causes);
                let why = why.collect::<Vec<_>>().join(": ");
                Ok(Killed::Unconfirmed { why, by_hand: None })
            }
            killed => killed,
        }
    }

    fn run_switch(
        &self,
        installed: Installed,
        named: &Named,
        before: &Revocation,
        runtime: &Runtime,
    ) -> Result<Killed, Failure> {
        let beside = installed.record.beside.clone();
        let mut tool = installed::tool(installed, named)?;
        tool.given.hosts = beside.kill_switch;
        let granted = |host: &String| Grant { kind: policy::GrantKind::Host, value: host.clone() };
        tool.given.grants = before.hosts.iter().map(granted).collect();
        let records = owner::records(self.home, runtime)?;
        let vault = owner::vault(self.home, self.ask)?;
        let host = Host::new(owner::settings(self.home)?, walls::launcher()?, vault, records);
        let called_off = interrupt::calling_off();
        let kill = |secret: Option<&str>| runtime.block_on(host.kill(&tool, secret, &called_off));
        let with = self.with.or(beside.secret.as_deref());
        let killed = match kill(with) {
            Err(error) if error.kind == Kind::BadInput => match self.which(&error)? {
                Some(secret) => kill(Some(&secret)),
                None => Err(error),
            },
            killed => killed,
        };
        runtime.block_on(host.settle());
        let _ = runtime.block_on(host.records().settle());
        interrupt::nothing_runs();
        match killed {
            Err(error) if error.kind == Kind::Cancelled => {
                let message = "cancelled: it is switched off, and its revocation is unconfirmed";
                Err(Failure::new(Exit::Of(interrupt::CODE), message))
            }
            // Nobody could be asked which.
            Err(error) if error.details.get("secrets").is_some() => {
                let why = format!("{}; `--with SECRET` names it", error.message);
                Ok(Killed::Unconfirmed { why, by_hand: None })
            }
            Err(error) => Ok(Killed::Unconfirmed { why: error.message, by_hand: None }),
            Ok(killed) => Ok(killed),
        }
    }

    /// Asks which of several secrets shows who revokes.
    fn which(&self, error: &CallError) -> Result<Option<String>, Failure> {
        let known = error.details.get("secrets").and_then(Value::as_array);
        let known = known.into_iter().flatten().filter_map(Value::as_str);
        let known: Vec<_> = known.collect();
        if known.len() < 2 || !self.ask.is_possible() {
            return Ok(None);
        }
        self.ask.one_of("Which of its secrets revokes it?", &known)
    }
}

/// Refuses what cannot be done with a package that was revoked.
pub(crate) fn check_not_revoked(id: &str, contents: &Contents) -> Result<(), Failure> {
    let Some(known) = contents.revoked.get(id) else { return Ok(()) };
    let id = line(id);
    let message = match known.state {
        State::Revoked => format!("`{id}` was revoked"),
        State::Unconfirmed => format!("`{id}` was revoked, and nobody has confirmed that so far"),
    };
    let failure = Failure::new(Exit::Conflict, message);
    Err(if known.keeps_secrets() {
        settling(failure, &known.id, contents)
    } else {
        failure.hint("install it again to use it again")
    })
}

/// Refuses to do something to a package while its secrets are kept for its kill switch alone.
pub(crate) fn check_secrets_free(
    id: &str,
    contents: &Contents,
    home: &Home,
) -> Result<(), Failure> {
    let is_open = contents.revoked.get(id).is_some_and(Revocation::keeps_secrets);
    if !is_open || kept_values(id, home) == 0 {
        return Ok(());
    }
    let message = format!(
        "the revocation of `{}` is not confirmed, and its secrets are kept for that alone",
        line(id)
    );
    Err(settling(Failure::new(Exit::Conflict, message), id, contents))
}

/// How many values the vault keeps for a package. One that cannot be looked into may keep some.
pub(crate) fn kept_values(id: &str, home: &Home) -> usize {
    let place = home.path().join(VAULT);
    if !place.exists() {
        return 0;
    }
    let listed = FileVault::open(place, || None).and_then(|vault| vault.list());
    let owner = Owner::Package(id.to_owned());
    listed.map_or(1, |all| all.iter().filter(|one| *one.place.owner() == owner).count())
}

/// What ends a revocation that is not confirmed.
fn settling(failure: Failure, id: &str, contents: &Contents) -> Failure {
    let word = crate::shell::word(id);
    let forget = format!("`haft revoke {word} --forget` gives its secrets up");
    // What was taken away has no kill switch any more.
    match contents.lock.get(id) {
        Some(_) => failure.hint(format!("`haft revoke {word}` tries it again")).hint(forget),
        None => failure.hint(forget),
    }
}

/// Hosts that a package was granted, now or before it was first revoked.
fn granted_hosts(
    before: &Revocation,
    home: &Home,
    runtime: &Runtime,
) -> Result<Vec<String>, Failure> {
    let mut hosts = before.hosts.clone();
    if let Some(records) = owner::records_there(home, runtime)? {
        let granted = runtime.block_on(records.state.grants(Some(&before.id)));
        let granted = granted.map_err(|error| owner::of_state(&error))?;
        let granted = granted.into_iter().filter(|one| one.kind == GrantKind::Host);
        hosts.extend(granted.map(|one| one.value));
    }
    hosts.sort();
    hosts.dedup();
    Ok(hosts)
}

/// Takes what a package was granted, and every answer that is remembered for it; calls of it that wait are refused.
pub(crate) fn take_grants(id: &str, home: &Home, runtime: &Runtime) -> Result<(), Failure> {
    let Some(records) = owner::records_there(home, runtime)? else { return Ok(()) };
    let taken = runtime.block_on(async {
        records.state.revoke_all(id).await?;
        // Nobody is asked about what is not called any more.
        for ticket in records.state.waiting(now()).await? {
            if package_of(&ticket) == id {
                records.state.answer(&ticket.id, Answer::Refused, now()).await?;
            }
        }
        Ok(())
    });
    taken.map_err(|error: ledger::StateError| owner::of_state(&error))
}

/// Makes a change in which all secrets of packages go, their sign-ins among them. Those that they share with others stay.
pub(crate) fn without_secrets(
    ids: &[&str],
    home: &Home,
    ask: Ask,
    printer: Printer,
    make: impl FnOnce(&mut Changing, Draft) -> Result<(), HomeError>,
) -> Result<(), Failure> {
    let at = installed::home(home);
    let is_there = home.path().join(VAULT).exists();
    let vault = if is_there { Some(owner::vault(home, ask)?) } else { None };
    if let Some(vault) = &vault {
        let logins = Logins::new(Arc::clone(vault), home.path());
        for id in ids.iter().filter(|id| logins.is_signed_in(id)) {
            // Tokens that nobody takes back stay good for whoever has them.
            let signed_out = sign_out(id, &logins, home, &owner::runtime()?, printer);
            signed_out.map_err(|error| Failure::of(Exit::Unavailable, &error))?;
        }
    }
    // What cannot be read any more can still be taken away.
    let mut changing = at.lock_broken()?;
    let mut draft = at.draft()?;
    let packages: Vec<_> = ids.iter().map(|id| Owner::Package((*id).to_owned())).collect();
    let kept = vault.map(|vault| vault.change_without(&packages)).transpose();
    let kept = kept.map_err(|error| owner::vault_failure(&error))?.flatten();
    if let Some(kept) = &kept {
        draft.private_file(&format!("{VAULT}/{}", vault::Change::FILE), kept.bytes())?;
    }
    Ok(make(&mut changing, draft)?)
}
