//! What runs for a call, and ends when nobody waits for the call any more.

use std::sync::{Arc, Mutex, PoisonError};

use sandbox::Killer;

/// Holds what runs for a call. Clones hold the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leash(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
enum Held {
    /// Nothing runs, yet or any more.
    #[default]
    Nothing,
    Running(Killer),
    /// Whatever is started now is ended at once.
    CalledOff,
}

impl Leash {
    /// This runs for the call now.
    pub(crate) fn hold(&self, killer: Killer) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            Held::CalledOff => killer.kill(),
            Held::Nothing | Held::Running(_) => *held = Held::Running(killer),
        }
    }

    /// It has done its part: it may go on and serve others.
    pub(crate) fn release(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*held, Held::Running(_)) {
            *held = Held::Nothing;
        }
    }

    /// Whether nobody waits any more.
    pub(crate) fn is_called_off(&self) -> bool {
        matches!(*self.0.lock().unwrap_or_else(PoisonError::into_inner), Held::CalledOff)
    }

    /// Something that ends what is held when it is dropped.
    pub(crate) fn guard(&self) -> Guard {
        Guard(self.clone())
    }
}

/// Ends what a leash holds when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard(Leash);

impl Drop for Guard {
    fn drop(&mut self) {
        let mut held = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Held::Running(killer) = std::mem::replace(&mut *held, Held::CalledOff) {
            killer.kill();
        }
    }
}
