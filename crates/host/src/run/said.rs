//! What a process says beside its answers, without its secrets, and to whom it is said.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox::{Output, Sign};
use vault::Redactor;
use vault::redact::Stream;

use crate::error::CallError;

/// How much of it is kept.
const MOST: usize = 16 << 10;

/// How many times it is read in one go: more than any pipe holds.
const MOST_AT_ONCE: usize = 512;

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
    /// How many bytes were ever kept.
    length: usize,
    source: Option<Source>,
    /// How many calls it was asked, and how many of them it may still be at work on.
    begun: u64,
    unfinished: usize,
}

/// Where it is read.
struct Source {
    output: Output,
    is_too_much: Box<dyn FnMut(usize) -> bool + Send>,
}

/// What is said to one call.
#[derive(Clone, Debug)]
pub(crate) struct Hearing {
    said: Said,
    /// Which of its calls this is.
    number: u64,
    /// What was said before it, or `None` where another call had not ended yet.
    since: Option<usize>,
}

impl Said {
    /// Nothing was said yet by a process that knows these secrets.
    pub(crate) fn new(redactor: &Redactor) -> Self {
        let kept = Kept {
            open: redactor.stream(),
            end: Vec::new(),
            length: 0,
            source: None,
            begun: 0,
            unfinished: 0,
        };
        Self { redactor: redactor.clone(), kept: Arc::new(Mutex::new(kept)) }
    }

    /// Hears what is said there from now on, to its end or to where it is too much.
    pub(crate) fn listen(
        &self,
        output: Output,
        is_too_much: impl FnMut(usize) -> bool + Send + 'static,
    ) -> io::Result<()> {
        let (watch, said) = (output.watch()?, self.clone());
        self.lock().source = Some(Source { output, is_too_much: Box::new(is_too_much) });
        let listening = move || {
            while let Ok(sign) = watch.wait() {
                said.lock().catch_up();
                if sign == Sign::Last || said.lock().source.is_none() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("errors".into()).spawn(listening).map(drop)
    }

    /// Adds a line that it said elsewhere.
    pub(crate) fn add_line(&self, line: &[u8]) {
        let mut clear = self.redactor.bytes(line);
        clear.push(b'\n');
        self.lock().add_clear(&clear);
    }

    /// A call begins. What is said from now on is said to it, as long as it is the only one.
    pub(crate) fn begin(&self) -> Hearing {
        let mut kept = self.lock();
        kept.catch_up();
        kept.begun += 1;
        kept.unfinished += 1;
        // What is held back was said before, whatever it turns out to be.
        let length = kept.length + kept.open.clone().finish().len();
        let since = (kept.unfinished == 1).then_some(length);
        Hearing { said: self.clone(), number: kept.begun, since }
    }

    /// What is said before any call: to whoever starts it.
    pub(crate) fn beginning(&self) -> Hearing {
        Hearing { said: self.clone(), number: 0, since: Some(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hearing {
    /// The call was answered. One that is given up before may go on, and what is said after it is nobody's.
    pub(crate) fn end(&self) {
        self.said.lock().unfinished -= 1;
    }

    /// What was said to this call: nothing, where nobody can tell to which of several.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut kept = self.said.lock();
        kept.catch_up();
        let Some(since) = self.since.filter(|_| kept.begun == self.number) else {
            return Vec::new();
        };
        let mut bytes = kept.end.clone();
        bytes.extend(kept.open.clone().finish());
        let gone = kept.length - kept.end.len();
        bytes.drain(..since.saturating_sub(gone).min(bytes.len()));
        bytes
    }

    /// The same error, with what was said.
    pub(crate) fn told_with(&self, error: CallError) -> CallError {
        match String::from_utf8_lossy(&self.bytes()) {
            said if said.trim().is_empty() => error,
            said => error.with("stderr", said),
        }
    }
}

impl Kept {
    /// Reads what has been said until now. Who hears an answer has all that was said before it by this.
    fn catch_up(&mut self) {
        let Some(mut source) = self.source.take() else { return };
        let mut buffer = [0; 4096];
        // One that says more all the time is not listened to for ever.
        for _ in 0..MOST_AT_ONCE {
            match source.output.read_present(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    self.add(&buffer[..count]);
                    if (source.is_too_much)(count) {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
        self.source = Some(source);
    }

    /// Adds what it says now; what it said long ago goes.
    fn add(&mut self, bytes: &[u8]) {
        let clear = self.open.push(bytes);
        self.add_clear(&clear);
    }

    fn add_clear(&mut self, clear: &[u8]) {
        self.end.extend_from_slice(clear);
        self.length += clear.len();
        let extra = self.end.len().saturating_sub(MOST);
        self.end.drain(..extra);
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Source").field("output", &self.output).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use vault::Secret;

    use super::*;

    fn text(hearing: &Hearing) -> String {
        String::from_utf8(hearing.bytes()).unwrap()
    }

    fn key() -> (Secret, Redactor) {
        let secret = Secret::new("s3cret-of-somebody".to_owned()).unwrap();
        let redactor = Redactor::new([("KEY", &secret)]);
        (secret, redactor)
    }

    #[test]
    fn no_cut_leaves_a_part_of_a_secret() {
        let (secret, redactor) = key();
        for more in MOST - 20..MOST + 2 {
            for size in [1, 7, 4096] {
                let said = Said::new(&redactor);
                let all = format!("log\n{}{}", secret.expose(), "y".repeat(more));
                all.as_bytes().chunks(size).for_each(|piece| said.lock().add(piece));
                assert!(!text(&said.beginning()).contains("somebody"), "{more} {size}");
            }
        }
        let said = Said::new(&redactor);
        said.lock().add(b"half of it: s3cret-of");
        said.add_line(b"on the wrong stream: s3cret-of-somebody");
        said.lock().add(b"-somebody.");
        let told = text(&said.beginning());
        assert!(!told.contains("somebody"), "{told}");
        assert_eq!(told.matches("[secret KEY]").count(), 2, "{told}");
    }

    #[test]
    fn what_is_said_to_one_call_is_not_for_another() {
        let said = Said::new(&key().1);
        let whole = said.beginning();
        said.lock().add(b"starting\n");
        assert_eq!(text(&whole), "starting\n");
        let first = said.begin();
        said.lock().add(b"to the first\n");
        assert_eq!((&*text(&whole), &*text(&first)), ("", "to the first\n"));
        first.end();
        said.lock().add(b"to nobody\n");
        let second = said.begin();
        said.lock().add(&vec![b'x'; 2 * MOST]);
        assert_eq!(text(&first), "");
        assert!(text(&second).bytes().all(|byte| byte == b'x'), "{}", text(&second));
        let third = said.begin();
        said.lock().add(b"to the second or the third");
        assert_eq!((&*text(&second), &*text(&third)), ("", ""));
        third.end();
        second.end();
        let fourth = said.begin();
        said.lock().add(b"to the fourth");
        assert_eq!(text(&fourth), "to the fourth");
        // It was given up, and nobody knows whether the process knows.
        let fifth = said.begin();
        said.lock().add(b"to the fourth or the fifth");
        assert_eq!(text(&fifth), "");
    }

    #[test]
    fn half_of_a_secret_that_was_said_before_a_call_leaves_the_other_half_hidden() {
        let said = Said::new(&key().1);
        said.lock().add(b"it is s3cret-of");
        let call = said.begin();
        said.lock().add(b"-somebody, and more");
        assert!(text(&call).ends_with(", and more") && !text(&call).contains("some"));
    }
}
