//! What links the records of one chain: its own, and those of its steps, however deep.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::call::Tool;
use crate::error::{CallError, Kind};

/// How many calls one chain makes at most, all chains in it included.
pub(crate) const MOST_CALLS: usize = 4_096;

/// Which chain a call belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// The same for all of them.
    pub(crate) id: String,
    /// The step that this call is, after those of the chains around it; empty for the chain itself.
    pub(crate) step: String,
    /// How many calls were made.
    made: Arc<AtomicUsize>,
}

impl Trace {
    /// The one that a call belongs to: that of the chain around it, or a new one for a chain.
    pub(crate) fn of_call(tool: &Tool, around: Option<&Self>) -> Result<Option<Self>, CallError> {
        match around {
            Some(around) => Ok(Some(around.clone())),
            None if tool.package.chain.is_some() => Self::begin().map(Some),
            None => Ok(None),
        }
    }

    /// A new one.
    fn begin() -> Result<Self, CallError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            CallError::new(Kind::Unavailable, format!("there is no randomness: {error}"))
        })?;
        let id = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { id, step: String::new(), made: Arc::default() })
    }

    /// The same, of a step of it.
    pub(crate) fn of(&self, step: &str) -> Self {
        Self { step: joined(&self.step, step), ..self.clone() }
    }

    /// Counts one more call; refuses what would be too many.
    pub(crate) fn count(&self) -> Result<(), CallError> {
        if self.made.fetch_add(1, Ordering::Relaxed) < MOST_CALLS {
            return Ok(());
        }
        let message = format!("a chain makes at most {MOST_CALLS} calls");
        Err(CallError::new(Kind::BadChain, message))
    }
}

/// A step, after those of the chains around it.
pub(crate) fn joined(around: &str, step: &str) -> String {
    if around.is_empty() { step.to_owned() } else { format!("{around}/{step}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_steps_of_a_chain_are_counted_together() {
        let trace = Trace::begin().unwrap();
        let inner = trace.of("outer").of("inner");
        assert_eq!((&inner.id, &*inner.step), (&trace.id, "outer/inner"));
        for _ in 0..MOST_CALLS {
            inner.count().unwrap();
        }
        assert_eq!(trace.count().unwrap_err().kind, Kind::BadChain);
        assert_ne!(Trace::begin().unwrap().id, trace.id);
    }
}
