//! The end of what a process said beside its answers, without its secrets.

use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vault::Redactor;
use vault::redact::Stream;

/// How much of it is kept.
const MOST: usize = 16 << 10;

/// The end of what a process said on standard error. Secrets are taken out before anything is cut off.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    redactor: Redactor,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug)]
struct Kept {
    /// What may still turn out to be a secret.
    open: Stream,
    end: Vec<u8>,
}

impl Said {
    /// Nothing was said yet by a process that knows these secrets.
    pub(crate) fn new(redactor: &Redactor) -> Self {
        let kept = Kept { open: redactor.stream(), end: Vec::new() };
        Self { redactor: redactor.clone(), kept: Arc::new(Mutex::new(kept)) }
    }

    /// Adds what it says now; what it said long ago goes.
    pub(crate) fn add(&self, bytes: &[u8]) {
        let mut kept = self.lock();
        let clear = kept.open.push(bytes);
        kept.add(&clear);
    }

    /// Adds a line that it said elsewhere.
    pub(crate) fn add_line(&self, line: &[u8]) {
        let mut clear = self.redactor.bytes(line);
        clear.push(b'\n');
        self.lock().add(&clear);
    }

    /// Adds all that can be read, to its end or to where it is too much.
    pub(crate) fn add_all(&self, mut from: impl Read, mut is_too_much: impl FnMut(usize) -> bool) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            self.add(&buffer[..count]);
            if is_too_much(count) {
                return;
            }
        }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let kept = self.lock();
        let mut bytes = kept.end.clone();
        bytes.extend(kept.open.clone().finish());
        bytes
    }

    /// The text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Forgets all of it: what was said to one call is not for another.
    pub(crate) fn forget(&self) {
        self.lock().end.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, clear: &[u8]) {
        self.end.extend_from_slice(clear);
        let extra = self.end.len().saturating_sub(MOST);
        self.end.drain(..extra);
    }
}

#[cfg(test)]
mod tests {
    use vault::Secret;

    use super::*;

    #[test]
    fn no_cut_leaves_a_part_of_a_secret() {
        let secret = Secret::new("s3cret-of-somebody".to_owned()).unwrap();
        let redactor = Redactor::new([("KEY", &secret)]);
        for more in MOST - 20..MOST + 2 {
            for size in [1, 7, 4096] {
                let said = Said::new(&redactor);
                let text = format!("log\n{}{}", secret.expose(), "y".repeat(more));
                text.as_bytes().chunks(size).for_each(|piece| said.add(piece));
                assert!(!said.text().contains("somebody"), "{more} {size}");
            }
        }
        let said = Said::new(&redactor);
        said.add(b"half of it: s3cret-of");
        said.add_line(b"on the wrong stream: s3cret-of-somebody");
        said.add(b"-somebody.");
        assert!(!said.text().contains("somebody"), "{}", said.text());
        assert_eq!(said.text().matches("[secret KEY]").count(), 2, "{}", said.text());
    }
}
