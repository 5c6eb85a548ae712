//! The owner at the terminal, who is asked about a call while it waits.

use std::sync::{Mutex, PoisonError};

use host::{Approver, AskedStep, CallError, Kind, Matter, Said};

use crate::ask::{Ask, Offer};
use crate::exit::Failure;
use crate::home::Home;
use crate::owner;
use crate::printer::{indented, line};
use crate::steps;

/// The owner of a home.
#[derive(Debug)]
pub(crate) struct Owner {
    home: Home,
    ask: Ask,
    /// What they said before anybody asked.
    given: Option<Said>,
    failed: Mutex<Option<Failure>>,
    /// Held while they are asked: several calls may want to know at a time, and one question is on the screen.
    turn: Mutex<()>,
}

impl Owner {
    pub(crate) fn new(home: &Home, ask: Ask, given: Option<Said>) -> Self {
        Self { home: home.clone(), ask, given, failed: Mutex::default(), turn: Mutex::default() }
    }

    /// Why their yes did not count, if it did not.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Approver for Owner {
    fn ask(&self, matter: &Matter) -> Result<Option<Said>, CallError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let offer = match (matter.question.is_first, matter.can_be_remembered) {
            (true, _) => Offer::FromNowOn,
            (false, true) => Offer::Always,
            (false, false) => Offer::Once,
        };
        let Some(said) = self.given.or_else(|| self.ask.choose(&words(matter), offer)) else {
            return Ok(None);
        };
        if said != Said::No {
            owner::check_presence(&self.home, self.ask).map_err(|failure| {
                let error = CallError::new(Kind::Denied, failure.message.clone());
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                error
            })?;
        }
        Ok(Some(said))
    }

    fn is_there(&self) -> bool {
        self.given.is_some() || self.ask.is_possible()
    }
}

/// Our own words with all that the tool gets; the tool's own are quoted beneath.
fn words(matter: &Matter) -> String {
    let quoted = matter.message.as_deref();
    let quoted = quoted.map(|text| format!("The tool itself says: \"{}\"\n", indented(text)));
    format!(
        "`{}` of {} is about to be called with\n  {}\n{}{}You are asked because {}. Allow it?",
        line(&matter.action),
        line(&matter.package),
        line(&matter.input),
        quoted.unwrap_or_default(),
        shown(&matter.steps),
        line(&matter.question.why.words()),
    )
}

/// The steps of a chain that the same answer is for.
fn shown(asked: &[AskedStep]) -> String {
    if asked.is_empty() {
        return String::new();
    }
    let told = asked.iter().map(|one| format!("  {}\n", steps::words(&one.to_value())));
    format!("A yes is for these steps of it too:\n{}", told.collect::<String>())
}
