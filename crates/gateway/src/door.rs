//! Who may see the console: whoever has a code that counts once and for a short while, and then a session for half a day.
//!
//! Only digests of both are kept, and nothing of it outlives the process. The caller reads the clock.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::mcp::client::lock;

/// How long a code counts.
const CODE: Duration = Duration::from_mins(10);

/// How long a session does.
const SESSION: Duration = Duration::from_hours(12);

/// How many of each there are at a time; the oldest goes first.
const MOST: usize = 32;

/// Who may see the console.
#[derive(Debug, Default)]
pub(crate) struct Door {
    codes: Mutex<Vec<Kept>>,
    sessions: Mutex<Vec<Inside>>,
    /// When somebody last came in, or was to.
    used_at: Mutex<Option<Instant>>,
}

/// What somebody has to show.
#[derive(Clone, Copy, Debug)]
struct Kept {
    digest: [u8; 32],
    until: Instant,
}

impl Kept {
    fn is(&self, secret: &str, now: Instant) -> bool {
        self.digest == digest(secret) && now < self.until
    }
}

/// Somebody who was let in.
#[derive(Debug)]
struct Inside {
    kept: Kept,
    session: Session,
    /// What the next page tells them.
    notes: Vec<Note>,
}

/// A session, as pages know it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// What every form of this session carries, and no page of anybody else knows.
    pub(crate) form: String,
    /// The digest of what the browser shows.
    name: [u8; 32],
}

/// What came of something that the owner did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Whether it was done.
    pub(crate) is_done: bool,
    pub(crate) words: String,
    /// More about it, a line each.
    pub(crate) more: Vec<String>,
}

impl Door {
    /// A new code; none where there is no randomness.
    pub(crate) fn code(&self, now: Instant) -> Option<String> {
        let code = secret()?;
        *lock(&self.used_at) = Some(now);
        let mut codes = lock(&self.codes);
        codes.retain(|one| now < one.until);
        if codes.len() >= MOST {
            codes.remove(0);
        }
        codes.push(Kept { digest: digest(&code), until: now + CODE });
        Some(code)
    }

    /// Whether a code would be taken.
    pub(crate) fn knows(&self, code: &str, now: Instant) -> bool {
        lock(&self.codes).iter().any(|one| one.is(code, now))
    }

    /// Uses a code up, for what the browser shows from then on.
    pub(crate) fn enter(&self, code: &str, now: Instant) -> Option<String> {
        {
            let mut codes = lock(&self.codes);
            let at = codes.iter().position(|one| one.is(code, now))?;
            codes.remove(at);
        }
        let (shown, form) = (secret()?, secret()?);
        let kept = Kept { digest: digest(&shown), until: now + SESSION };
        let mut sessions = lock(&self.sessions);
        sessions.retain(|one| now < one.kept.until);
        if sessions.len() >= MOST {
            sessions.remove(0);
        }
        let session = Session { form, name: kept.digest };
        sessions.push(Inside { kept, session, notes: Vec::new() });
        Some(shown)
    }

    /// The session of what a browser shows.
    pub(crate) fn session(&self, shown: &str, now: Instant) -> Option<Session> {
        let sessions = lock(&self.sessions);
        let found = sessions.iter().find(|one| one.kept.is(shown, now))?;
        *lock(&self.used_at) = Some(now);
        Some(found.session.clone())
    }

    /// When somebody last came in, or was to.
    pub(crate) fn used_at(&self) -> Option<Instant> {
        *lock(&self.used_at)
    }

    /// Whether a session still counts.
    pub(crate) fn is_open(&self, session: &Session, now: Instant) -> bool {
        let sessions = lock(&self.sessions);
        sessions.iter().any(|one| one.session.name == session.name && now < one.kept.until)
    }

    /// Ends a session.
    pub(crate) fn leave(&self, session: &Session) {
        lock(&self.sessions).retain(|one| one.session.name != session.name);
    }

    /// Leaves a note for the next page.
    pub(crate) fn note(&self, session: &Session, note: Note) {
        let mut sessions = lock(&self.sessions);
        if let Some(inside) = sessions.iter_mut().find(|one| one.session.name == session.name) {
            inside.notes.push(note);
        }
    }

    /// Takes the notes that were left.
    pub(crate) fn notes(&self, session: &Session) -> Vec<Note> {
        let mut sessions = lock(&self.sessions);
        let inside = sessions.iter_mut().find(|one| one.session.name == session.name);
        inside.map(|one| std::mem::take(&mut one.notes)).unwrap_or_default()
    }
}

impl Session {
    /// Whether a form is one of this session. Digests are compared, so the time tells nothing of the text.
    pub(crate) fn owns(&self, form: &str) -> bool {
        digest(form) == digest(&self.form)
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn secret() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_counts_once_and_for_a_short_while() {
        let (door, now) = (Door::default(), Instant::now());
        let code = door.code(now).unwrap();
        assert!(door.knows(&code, now) && !door.knows("another", now));
        assert_eq!(door.enter("another", now), None);
        let shown = door.enter(&code, now).unwrap();
        assert_eq!(door.enter(&code, now), None, "a code was taken twice");
        assert!(door.session(&shown, now).is_some());
        let late = door.code(now).unwrap();
        assert!(!door.knows(&late, now + CODE));
        assert_eq!(door.enter(&late, now + CODE), None, "a code was taken too late");
    }

    #[test]
    fn a_session_ends_by_itself_and_by_its_owner() {
        let (door, now) = (Door::default(), Instant::now());
        let shown = door.enter(&door.code(now).unwrap(), now).unwrap();
        let other = door.enter(&door.code(now).unwrap(), now).unwrap();
        assert!(door.session("", now).is_none());
        assert!(door.session(&shown, now + SESSION).is_none());
        let session = door.session(&shown, now).unwrap();
        assert!(door.is_open(&session, now) && !door.is_open(&session, now + SESSION));
        door.leave(&session);
        assert!(door.session(&shown, now).is_none() && !door.is_open(&session, now));
        assert!(door.session(&other, now).is_some());
    }

    #[test]
    fn a_form_of_one_session_is_none_of_another() {
        let (door, now) = (Door::default(), Instant::now());
        let enter = || {
            let shown = door.enter(&door.code(now).unwrap(), now).unwrap();
            door.session(&shown, now).unwrap()
        };
        let (one, other) = (enter(), enter());
        assert!(one.owns(&one.form) && !one.owns(&other.form) && !one.owns(""));
    }

    #[test]
    fn nobody_can_fill_the_memory_with_codes() {
        let (door, now) = (Door::default(), Instant::now());
        let first = door.code(now).unwrap();
        for _ in 0..MOST {
            door.code(now).unwrap();
        }
        assert!(!door.knows(&first, now));
        assert_eq!(lock(&door.codes).len(), MOST);
    }

    #[test]
    fn a_note_is_told_once() {
        let (door, now) = (Door::default(), Instant::now());
        let shown = door.enter(&door.code(now).unwrap(), now).unwrap();
        let session = door.session(&shown, now).unwrap();
        let note = Note { is_done: true, words: "done".to_owned(), more: Vec::new() };
        door.note(&session, note.clone());
        assert_eq!(door.notes(&session), [note]);
        assert_eq!(door.notes(&session), []);
    }
}
