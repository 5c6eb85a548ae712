//! What is done to packages, written down in the log of the home: once before it is done, and once after it.
//!
//! What cannot be written down is not done. What was refused leaves one record.

use host::Blocked;
use host::records::now;
use install::{Card, Pinned};
use ledger::audit::{self, Audit, Begun, BlockedKind, Durability, Ending, Filter, Record};
use policy::GrantKind;

use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::{output, owner};

/// What is done to a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Install,
    Update,
    Rollback,
    Remove,
    Reset,
    Enable,
    Disable,
    Revoke,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Update => "update",
            Self::Rollback => "rollback",
            Self::Remove => "remove",
            Self::Reset => "reset",
            Self::Enable => "enable",
            Self::Disable => "disable",
            Self::Revoke => "revoke",
        }
    }
}

/// Who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The owner, at their terminal or in the console, or somebody with a token of theirs.
    Owner,
    /// The host itself, because the policy says so.
    Policy,
}

/// Says who has the gateway do something, in a process of its own. It is for the log, and allows nothing.
pub(crate) const ASKED_BY: &str = "HAFT_ASKED_BY";

/// The name of the token, where it was somebody with one.
pub(crate) const ASKED_AS: &str = "HAFT_ASKED_AS";

/// Whether this process was started to do what somebody asked a gateway for, and so has nobody before it.
pub(crate) fn is_asked_elsewhere() -> bool {
    std::env::var_os(ASKED_BY).is_some()
}

impl By {
    fn name(self) -> &'static str {
        match self {
            Self::Owner => match std::env::var(ASKED_BY).as_deref() {
                Ok("console") => "console",
                Ok("token") => "token",
                _ => "terminal",
            },
            Self::Policy => "policy",
        }
    }

    /// Which client has it done: a name as tokens have, and nothing else.
    fn client(self) -> String {
        let named = std::env::var(ASKED_AS).unwrap_or_default();
        if self.name() == "token" { named } else { String::new() }
    }
}

/// Something that is done to a package, on its way into the log.
#[derive(Debug)]
pub(crate) struct Change<'h> {
    home: &'h Home,
    audit: Audit,
    written: audit::Call,
    ending: Ending,
    begun: Option<Begun>,
    /// Whether the log could not be written, so that nobody tries again.
    is_lost: bool,
    printer: Printer,
}

impl<'h> Change<'h> {
    /// By the owner, to a package of this id.
    pub(crate) fn new(home: &'h Home, verb: Verb, id: &str, printer: Printer) -> Self {
        let audit = Audit::new(home.path().join("audit"), Durability::Process);
        let written = audit::Call {
            package: id.to_owned(),
            change: verb.name().to_owned(),
            surface: By::Owner.name().to_owned(),
            session: By::Owner.client(),
            ..audit::Call::default()
        };
        Self {
            home,
            audit,
            written,
            ending: Ending::default(),
            begun: None,
            is_lost: false,
            printer,
        }
    }

    /// An installation of what is on a card.
    pub(crate) fn of_card(home: &'h Home, card: &Card, printer: Printer) -> Self {
        let mut change = Self::new(home, Verb::Install, &card.id, printer);
        change.written.version.clone_from(&card.version);
        change.written.package_digest = format!("sha256:{}", card.package.0);
        change.written.card = format!("sha256:{}", card.digest());
        change
    }

    /// It is about this version.
    pub(crate) fn about(mut self, pinned: Option<&Pinned>) -> Self {
        if let Some(pinned) = pinned {
            self.written.version.clone_from(&pinned.version);
            self.written.package_digest = format!("sha256:{}", pinned.package.0);
            self.written.card = install::Home::at(self.home.path())
                .record_of(pinned)
                .map(|record| format!("sha256:{}", record.consent.card.0))
                .unwrap_or_default();
        }
        self
    }

    /// Somebody else than the owner does it, after a tool reached for these.
    pub(crate) fn by(mut self, by: By, blocked: &[Blocked]) -> Self {
        by.name().clone_into(&mut self.written.surface);
        self.written.session = by.client();
        let told = |one: &Blocked| audit::Blocked {
            kind: match one.kind() {
                GrantKind::Host => BlockedKind::Host,
                _ => BlockedKind::Path,
            },
            value: one.asked.clone(),
        };
        self.ending.blocked = blocked.iter().map(told).collect();
        self
    }

    /// It turned out to be this.
    pub(crate) fn turned_out(&mut self, verb: Verb) {
        verb.name().clone_into(&mut self.written.change);
    }

    /// Writes down that it is about to be done.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        output::make_private_folder(self.home.path())?;
        owner::check_home(self.home)?;
        let begun = self.audit.begin(&self.written, now());
        self.is_lost = begun.is_err();
        let begun = begun.map_err(|error| {
            let mut failure = Failure::of(Exit::Unavailable, &error);
            let message = "it cannot be written down in the log, so it is not done".to_owned();
            failure.causes.insert(0, std::mem::replace(&mut failure.message, message));
            failure
        })?;
        self.begun = Some(begun);
        Ok(())
    }

    /// Writes down what came of it. What was refused before it began leaves a record too; what neither began nor was
    /// refused leaves none.
    pub(crate) fn end<T>(self, done: &Result<T, Failure>) {
        match done {
            Ok(_) => self.ended(audit::Outcome::Ok),
            Err(failure) => self.refused(failure),
        }
    }

    /// Writes down that it was done, and how it came out.
    pub(crate) fn ended(mut self, outcome: audit::Outcome) {
        let Some(begun) = self.begun.take() else { return };
        self.ending.outcome = outcome;
        let written = self.audit.end(begun, &self.written, &self.ending, now());
        self.tell(written.err());
    }

    fn refused(mut self, failure: &Failure) {
        let outcome = audit::Outcome::Error(code(failure.exit).to_owned());
        if self.begun.is_some() {
            return self.ended(outcome);
        }
        if self.is_lost {
            return;
        }
        self.written.decision = audit::Decision::Denied(failure.message.clone());
        self.ending.outcome = outcome;
        let made = output::make_private_folder(self.home.path());
        if made.and_then(|()| owner::check_home(self.home)).is_err() {
            return;
        }
        let written = self.audit.record(&self.written, &self.ending, now());
        self.tell(written.err());
    }

    fn tell(&self, error: Option<ledger::AuditError>) {
        if let Some(error) = error {
            let why = line(&host::records::whole(&error));
            self.printer.alarm(&format!("it could not be written down: {why}"));
        }
    }
}

/// Does something to a package, and writes it down before and after.
pub(crate) fn noted<T>(
    mut change: Change<'_>,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let done = change.begin().and_then(|()| work());
    change.end(&done);
    done
}

/// How many records of a package are looked at for why it is off.
const MOST_RECORDS: usize = 1_000;

/// Why a package is switched off, as the log of the home tells it.
pub(crate) fn why_off(id: &str, home: &Home) -> Option<String> {
    let filter = Filter { package: Some(id.to_owned()), ..Filter::default() };
    let page = audit::page(&home.path().join("audit"), &filter, None, MOST_RECORDS).ok()?;
    let is_done = |one: &&Record| one.is_change() && one.outcome.as_deref() == Some("ok");
    let last = page.records.iter().find(is_done)?;
    let when = last.ts;
    if last.change != Verb::Disable.name() {
        let why = match last.change.as_str() {
            "install" | "update" => {
                "its smoke test failed when it was installed, or it is so by itself"
            }
            _ => "it has been so before",
        };
        return Some(format!("{why}, {when}"));
    }
    if last.surface != By::Policy.name() {
        return Some(format!("you switched it off, {when}"));
    }
    let reached: Vec<_> = last.blocked.iter().map(|one| one.value.as_str()).collect();
    Some(format!("your policy switched it off, {when}, when it reached for {}", reached.join(", ")))
}

/// An exit code, as the log tells it.
fn code(exit: Exit) -> &'static str {
    match exit {
        Exit::Done => "ok",
        Exit::Failed => "tool_failed",
        Exit::Invalid => "bad_input",
        Exit::NotFound => "not_found",
        Exit::Denied => "denied",
        Exit::Conflict => "conflict",
        Exit::Unavailable => "unavailable",
        Exit::Bug => "bug",
        Exit::Of(_) => "cancelled",
    }
}

/// How a revocation that nobody confirmed is told in the log.
pub(crate) const UNCONFIRMED: &str = "unconfirmed";
