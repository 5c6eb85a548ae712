//! Redaction of bytes that come in pieces: how they are cut changes nothing.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};

use super::Known;

/// Bytes on their way through a [`Redactor`](super::Redactor). At most as many are held back as the
/// longest form has; [`finish`](Stream::finish) hands out the rest.
#[derive(Clone)]
pub struct Stream {
    known: Arc<Known>,
    /// How far the search is.
    state: Option<StateID>,
    /// What was read and not handed out.
    held: VecDeque<u8>,
    /// How many bytes were read and handed out before those held.
    passed: usize,
    /// Where values are among the bytes held, in order and apart from each other.
    found: VecDeque<Found>,
}

/// A stretch covered by forms, each of which overlaps the next.
#[derive(Clone)]
struct Found {
    start: usize,
    end: usize,
    /// The form that begins first, and of several the longest.
    form: usize,
    is_announced: bool,
}

impl Stream {
    pub(super) fn new(known: Arc<Known>) -> Self {
        let state = known
            .forms
            .as_ref()
            .map(|forms| forms.start_state(Anchored::No).expect("the search can start anywhere"));
        Self { known, state, held: VecDeque::new(), passed: 0, found: VecDeque::new() }
    }

    /// Takes the next bytes, and hands out those of which it is certain what they are.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.search(chunk);
        self.held.extend(chunk);
        // Every form that begins before this is complete by now.
        let open = self.known.longest().saturating_sub(1);
        self.hand_out(self.held.len().saturating_sub(open))
    }

    /// Hands out the rest.
    pub fn finish(mut self) -> Vec<u8> {
        self.hand_out(self.held.len())
    }

    fn search(&mut self, chunk: &[u8]) {
        let known = Arc::clone(&self.known);
        let (Some(forms), Some(mut state)) = (&known.forms, self.state) else { return };
        let before = self.passed + self.held.len();
        for (index, byte) in chunk.iter().enumerate() {
            state = forms.next_state(Anchored::No, state, *byte);
            if forms.is_match(state) {
                let end = before + index + 1;
                for nth in 0..forms.match_len(state) {
                    let form = forms.match_pattern(state, nth);
                    self.note(end - forms.pattern_len(form), end, form.as_usize());
                }
            }
        }
        self.state = Some(state);
    }

    /// Notes a form. They come in the order of their ends, so the new one ends last.
    fn note(&mut self, start: usize, end: usize, form: usize) {
        let mut new = Found { start, end, form, is_announced: false };
        while let Some(last) = self.found.back() {
            if last.end <= new.start {
                break;
            }
            if last.start < new.start || (last.start == new.start && last.end == new.end) {
                (new.start, new.form) = (last.start, last.form);
            }
            new.is_announced |= last.is_announced;
            self.found.pop_back();
        }
        self.found.push_back(new);
    }

    /// Hands out so many bytes of those held, with values replaced.
    fn hand_out(&mut self, count: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(count);
        let until = self.passed + count;
        while let Some(found) = self.found.front_mut().filter(|found| found.start < until) {
            let clear = found.start.saturating_sub(self.passed);
            out.extend(self.held.drain(..clear));
            self.passed += clear;
            if !std::mem::replace(&mut found.is_announced, true) {
                out.extend(self.known.replacements[found.form].as_bytes());
            }
            let covered = found.end.min(until) - self.passed;
            self.held.drain(..covered);
            self.passed += covered;
            if found.end > until {
                break;
            }
            self.found.pop_front();
        }
        let rest = until - self.passed;
        out.extend(self.held.drain(..rest));
        self.passed = until;
        out
    }
}

/// Shows nothing of what is held.
impl fmt::Debug for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Stream(..)")
    }
}
