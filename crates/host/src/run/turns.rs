//! Whose turn it is: of one tool only so much runs at a time. Whoever waits holds no thread, so that a tool
//! that hangs keeps nobody else from running.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;

use crate::error::CallError;
use crate::limit::too_late;

/// From so many tools on, those of which nothing runs are forgotten.
const MANY: usize = 256;

/// What runs of each tool.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<(String, usize), Arc<Semaphore>>>);

impl Turns {
    /// Waits for the turn of a call, where so many of one tool are made at a time. The next comes when it is dropped.
    pub(crate) async fn wait(
        &self,
        tool: &str,
        most: usize,
        until: Instant,
    ) -> Result<OwnedSemaphorePermit, CallError> {
        let turns = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MANY {
                all.retain(|_, turns| Arc::strong_count(turns) > 1);
            }
            let turns = all.entry((tool.to_owned(), most));
            Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(most))))
        };
        match timeout_at(until.into(), turns.acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(too_late("it waited for its turn")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::Kind;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[tokio::test]
    async fn of_one_tool_only_so_much_runs_and_the_others_are_not_kept_from_it() {
        let turns = Turns::default();
        let first = turns.wait("one", 2, soon()).await.unwrap();
        let _second = turns.wait("one", 2, soon()).await.unwrap();
        assert_eq!(turns.wait("one", 2, soon()).await.unwrap_err().kind, Kind::TimedOut);
        assert!(turns.wait("other", 2, soon()).await.is_ok());
        drop(first);
        assert!(turns.wait("one", 2, soon()).await.is_ok());
    }

    #[tokio::test]
    async fn tools_that_do_nothing_are_forgotten_and_those_that_run_are_not() {
        let turns = Turns::default();
        let _held = turns.wait("one", 2, soon()).await.unwrap();
        for number in 0..2 * MANY {
            drop(turns.wait(&number.to_string(), 2, soon()).await.unwrap());
        }
        let all = turns.0.lock().unwrap();
        assert!(all.len() <= MANY && all.contains_key(&("one".into(), 2)), "{}", all.len());
    }
}
