//! What a client is handed to bring back: sealed, so that nobody changes it, and bound to what it is for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use host::Resumed;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::places::unguessed;

/// How long what was handed out is taken back.
const GOOD_FOR: Duration = Duration::from_hours(24);

/// The longest that is looked at: what was answered to a server may be in it, and is as long as a request.
const LONGEST: usize = 16 << 20;

const NONCE: usize = 24;

/// What stands between the process that has something and what is sealed about it.
const AT: char = '.';

/// Seals and opens.
pub(crate) struct Seal {
    cipher: XChaCha20Poly1305,
    /// Which of the processes that share the key this is; none where nobody shares it.
    own: Option<String>,
    /// Whether it has handed out what it alone can go on with.
    has_handed_out: AtomicBool,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Seal")
    }
}

/// Whatever a request has to be the same in as the one that the state was handed out for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding([u8; 32]);

impl Binding {
    /// Of whoever asks, and of what they ask.
    pub(crate) fn of(parts: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Self(digest.finalize().into())
    }
}

/// What is sealed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum State {
    /// A call that waits here for answers.
    Waits(String),
    /// What the server itself wants back.
    Server(Option<String>),
    /// A question to the owner, and what the call that it is about brings its server.
    Ticket(String, Option<Resumed>),
    /// A task of ours.
    Task(String),
    /// A task of the server of a package, which this process has started.
    TaskOf(String, String),
    /// The same of a server on the network, which all reach.
    TaskBeyond(String, String),
}

impl State {
    /// Whether only the process that hands it out has what it is about.
    fn is_of_process(&self) -> bool {
        match self {
            Self::Waits(_) | Self::Task(_) | Self::TaskOf(..) => true,
            Self::Server(_) | Self::Ticket(..) | Self::TaskBeyond(..) => false,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    until: u64,
    state: T,
}

impl Seal {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new(&Key::from(*key)),
            own: None,
            has_handed_out: AtomicBool::new(false),
        }
    }

    /// The same for one of several processes that have its key.
    pub(crate) fn of_one(self) -> Option<Self> {
        Some(Self { own: Some(unguessed()?), ..self })
    }

    /// Which of them this is.
    pub(crate) fn own(&self) -> Option<&str> {
        self.own.as_deref()
    }

    /// Whether it has handed out what others that have its key may be asked about.
    pub(crate) fn has_handed_out(&self) -> bool {
        self.has_handed_out.load(Ordering::Relaxed)
    }

    /// Which other process has what a state is about that a client brings back. Nobody but one of them can have named it.
    pub(crate) fn elsewhere(&self, text: &str) -> Option<String> {
        let own = self.own()?;
        self.process_of(text).filter(|process| process != own)
    }

    /// Whether this process has what a state is about.
    pub(crate) fn is_here(&self, text: &str) -> bool {
        self.own().is_some() && self.process_of(text).as_deref() == self.own()
    }

    fn process_of(&self, text: &str) -> Option<String> {
        let (process, sealed) = text.split_once(AT)?;
        self.open_text(process, &at(sealed))
    }

    /// Seals a state for one request.
    pub(crate) fn close(&self, state: State, binding: &Binding) -> Option<String> {
        let own = self.own().filter(|_| state.is_of_process()).map(str::to_owned);
        let sealed = self.close_text(state, binding)?;
        let Some(own) = own else { return Some(sealed) };
        self.has_handed_out.store(true, Ordering::Relaxed);
        let own = self.close_text(own, &at(&sealed))?;
        Some(format!("{own}{AT}{sealed}"))
    }

    /// What was sealed for this request, as long as it counts.
    pub(crate) fn open(&self, text: &str, binding: &Binding) -> Option<State> {
        if text.len() > LONGEST {
            return None;
        }
        let sealed = text.split_once(AT).map_or(text, |(_, sealed)| sealed);
        self.open_text(sealed, binding)
    }

    /// Seals anything for one use.
    pub(crate) fn close_text(&self, what: impl Serialize, binding: &Binding) -> Option<String> {
        self.close_at(what, binding, now())
    }

    /// What was sealed for this use.
    pub(crate) fn open_text<T: DeserializeOwned>(
        &self,
        text: &str,
        binding: &Binding,
    ) -> Option<T> {
        self.open_at(text, binding, now())
    }

    fn close_at(&self, state: impl Serialize, binding: &Binding, now: u64) -> Option<String> {
        let sealed = Sealed { until: now + GOOD_FOR.as_secs(), state };
        let text = serde_json::to_vec(&sealed).ok()?;
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload { msg: &text, aad: &binding.0 };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload).ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    fn open_at<T: DeserializeOwned>(&self, text: &str, binding: &Binding, now: u64) -> Option<T> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE)?;
        let nonce: [u8; NONCE] = nonce.try_into().ok()?;
        let payload = Payload { msg: sealed, aad: &binding.0 };
        let opened = self.cipher.decrypt(&XNonce::from(nonce), payload).ok()?;
        let Sealed { until, state } = serde_json::from_slice(&opened).ok()?;
        (now <= until).then_some(state)
    }
}

/// What the name of the process is bound to that has what is sealed so.
fn at(sealed: &str) -> Binding {
    Binding::of(&["at", sealed])
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_for_the_request_that_it_is_for_and_for_no_other() {
        let seal = Seal::new(&[7; 32]);
        let binding = Binding::of(&["me", "tools/call", "echo", "{}"]);
        let state = State::Server(Some("theirs".to_owned()));
        let sealed = seal.close(state.clone(), &binding).unwrap();
        assert_eq!(seal.open(&sealed, &binding), Some(state));
        for other in [
            Binding::of(&["you", "tools/call", "echo", "{}"]),
            Binding::of(&["me", "tools/call", "echo", "{} "]),
            Binding::of(&["me", "tools/call", "ech", "o{}"]),
        ] {
            assert_eq!(seal.open(&sealed, &other), None);
        }
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last letter holds bits that stand for nothing.
            if changed != sealed && at + 1 < sealed.len() {
                assert_eq!(seal.open(&changed, &binding), None, "{at}");
            }
        }
        assert_eq!(Seal::new(&[8; 32]).open(&sealed, &binding), None);
        assert_eq!(seal.open("", &binding), None);
        assert_eq!(seal.open(&"A".repeat(LONGEST + 1), &binding), None);
    }

    #[test]
    fn what_one_process_alone_has_says_which_one_it_is() {
        let [one, other] = [(); 2].map(|()| Seal::new(&[7; 32]).of_one().unwrap());
        let binding = Binding::of(&["me"]);
        let task = State::Task("a".to_owned());
        let sealed = one.close(task.clone(), &binding).unwrap();
        assert_eq!(one.elsewhere(&sealed), None);
        assert_eq!(other.elsewhere(&sealed).as_deref(), one.own());
        assert!(one.is_here(&sealed) && !other.is_here(&sealed));
        for seal in [&one, &other] {
            assert_eq!(seal.open(&sealed, &binding), Some(task.clone()));
        }
        // What any of them can go on with names none, and nobody else can name one.
        let anywhere = one.close(State::Server(None), &binding).unwrap();
        let another = one.close(task, &binding).unwrap();
        let (name, _) = sealed.split_once(AT).unwrap();
        let (_, rest) = another.split_once(AT).unwrap();
        let of_both = format!("{name}{AT}{rest}");
        let named = format!("{}{AT}{rest}", one.own().unwrap());
        for text in [&*anywhere, "..", "x.y", &of_both, &named, &format!("x{sealed}")] {
            assert_eq!(other.elsewhere(text), None, "{text}");
            assert!(!one.is_here(text), "{text}");
        }
        assert_eq!(Seal::new(&[7; 32]).elsewhere(&sealed), None);
    }

    #[test]
    fn a_state_comes_back_for_a_day() {
        let (seal, binding) = (Seal::new(&[7; 32]), Binding::of(&["me"]));
        let (state, day) = (State::Server(None), GOOD_FOR.as_secs());
        let sealed = seal.close_at(state.clone(), &binding, 1_000).unwrap();
        assert_eq!(seal.open_at(&sealed, &binding, 1_000), Some(state.clone()));
        assert_eq!(seal.open_at(&sealed, &binding, 1_000 + day), Some(state));
        assert_eq!(seal.open_at::<State>(&sealed, &binding, 1_001 + day), None);
        assert_eq!(seal.open(&sealed, &binding), None, "by the clock, too");
    }
}
