//! Sign-ins that wait here for what a browser brings back: each for who began it, once, and not for long.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::mcp::client::lock;
use crate::steward::SigningIn;

/// How long one waits.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// How many wait at a time: each is a process.
const MOST: usize = 16;

/// Sign-ins that wait, by the digests of their states.
#[derive(Debug, Default)]
pub(crate) struct SignIns(Mutex<HashMap<[u8; 32], Waiting>>);

#[derive(Debug)]
struct Waiting {
    begun: Box<dyn SigningIn>,
    /// Who began it.
    by: String,
    until: Instant,
}

impl SignIns {
    /// Keeps one for whoever began it; gives it back where too many wait.
    pub(crate) fn keep(
        &self,
        begun: Box<dyn SigningIn>,
        state: &str,
        by: String,
        now: Instant,
    ) -> Result<(), Box<dyn SigningIn>> {
        self.tidy(now);
        let mut waiting = lock(&self.0);
        if waiting.len() >= MOST {
            return Err(begun);
        }
        waiting.insert(digest(state), Waiting { begun, by, until: now + PATIENCE });
        Ok(())
    }

    /// The one of a state, which waits no more; nothing for anybody but who began it.
    pub(crate) fn take(&self, state: &str, by: &str, now: Instant) -> Option<Box<dyn SigningIn>> {
        let mut waiting = lock(&self.0);
        let name = digest(state);
        waiting.get(&name).filter(|one| one.by == by && now < one.until)?;
        waiting.remove(&name).map(|one| one.begun)
    }

    /// Ends those that wait too long.
    pub(crate) fn tidy(&self, now: Instant) {
        lock(&self.0).retain(|_, one| now < one.until);
    }

    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use vault::Secret;

    use super::*;
    use crate::steward::Trouble;

    #[derive(Debug)]
    struct Begun;

    impl SigningIn for Begun {
        fn told(&self) -> &Value {
            &Value::Null
        }

        fn finish(self: Box<Self>, _: &Secret) -> Result<Value, Trouble> {
            Ok(Value::Null)
        }
    }

    fn keep(all: &SignIns, state: &str, now: Instant) -> bool {
        all.keep(Box::new(Begun), state, "me".to_owned(), now).is_ok()
    }

    #[test]
    fn one_counts_once_for_who_began_it_and_not_for_long() {
        let (all, now) = (SignIns::default(), Instant::now());
        assert!(keep(&all, "a", now));
        assert!(all.take("b", "me", now).is_none());
        assert!(all.take("a", "other", now).is_none());
        assert!(all.take("a", "me", now + PATIENCE).is_none());
        assert!(all.take("a", "me", now).is_some());
        assert!(all.take("a", "me", now).is_none());
    }

    #[test]
    fn too_many_do_not_wait_and_the_late_make_room() {
        let (all, now) = (SignIns::default(), Instant::now());
        for number in 0..MOST {
            assert!(keep(&all, &number.to_string(), now));
        }
        assert!(!keep(&all, "more", now));
        assert!(keep(&all, "more", now + PATIENCE));
        assert!(all.take("0", "me", now).is_none());
    }
}
