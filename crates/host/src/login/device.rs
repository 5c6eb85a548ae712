//! A code for a browser on any machine (RFC 8628): what the owner is shown, how long it holds, how often it is asked after.

use std::time::Duration;

use egress::http::Url;
use serde_json::Value;
use vault::Secret;

use super::address::safe;
use super::error::LoginError;

/// Who gives them.
pub(super) const WHAT: &str = "device authorization endpoint";

/// The longest code that anybody is asked to type.
const LONGEST_TYPED: usize = 64;

/// The longest secret that a code is asked after with.
const LONGEST_SECRET: usize = 8 << 10;

/// The longest that a code is believed to hold.
const LONGEST_HOLD: u64 = 3600;

/// How long is waited between two questions where a server does not say.
const PAUSE: u64 = 5;

/// The longest wait between two questions that a server may ask for.
const LONGEST_PAUSE: u64 = 300;

/// How much longer is waited from then on, when a server is asked too often.
const SLOWER: Duration = Duration::from_secs(5);

/// How long is waited at most, after trouble upon trouble, unless the server wants more.
const LONGEST_BACK_OFF: Duration = Duration::from_mins(1);

/// A code for a browser on any machine.
#[derive(Debug)]
pub struct Code {
    /// What the owner types there.
    pub typed: String,
    /// The page where it is typed.
    pub page: Url,
    /// A page that knows the code already.
    pub direct: Option<Url>,
    /// How long it holds, from when it was given.
    pub holds: Duration,
    /// What we ask after it with, and nobody else sees.
    pub(super) secret: Secret,
    pub(super) pause: Duration,
}

impl Code {
    /// Reads what a server gave. Its words are shown to the owner, so they have to be such that can be.
    pub(super) fn read(said: &Value) -> Result<Self, LoginError> {
        let odd = |how: &str| LoginError::odd(WHAT, how);
        let secret = said["device_code"].as_str().filter(|one| one.len() <= LONGEST_SECRET);
        let secret = secret.and_then(|one| Secret::new(one.to_owned()).ok());
        let secret = secret.ok_or_else(|| odd("it gave no code for us"))?;
        let typed = said["user_code"].as_str().filter(|one| is_typed(one));
        let typed = typed.ok_or_else(|| odd("it gave no code that can be typed"))?.to_owned();
        // Some write the older name of it.
        let page = ["verification_uri", "verification_url"].map(|name| said[name].as_str());
        let page = page.into_iter().flatten().next().unwrap_or_default();
        let page = safe(page, WHAT, "verification_uri")?;
        let name = "verification_uri_complete";
        let direct = said[name].as_str().map(|one| safe(one, WHAT, name)).transpose()?;
        let shows = |text: &str| text.contains(secret.expose());
        let direct_shows = direct.as_ref().is_some_and(|one| shows(one.as_str()));
        if shows(&typed) || shows(page.as_str()) || direct_shows {
            return Err(odd("what is to be shown has its secret in it"));
        }
        let holds = seconds(&said["expires_in"]).filter(|seconds| *seconds > 0);
        let holds = holds.ok_or_else(|| odd("it does not say how long its code holds"))?;
        let pause = match &said["interval"] {
            Value::Null => PAUSE,
            value => seconds(value).ok_or_else(|| odd("its interval is no number of seconds"))?,
        };
        Ok(Self {
            typed,
            page,
            direct,
            holds: Duration::from_secs(holds.min(LONGEST_HOLD)),
            secret,
            pause: Duration::from_secs(pause.clamp(1, LONGEST_PAUSE)),
        })
    }

    /// The pages that the owner is sent to, one of each place.
    pub fn pages(&self) -> impl Iterator<Item = &Url> {
        let other = self.direct.as_ref().filter(|one| one.origin() != self.page.origin());
        [&self.page].into_iter().chain(other)
    }
}

/// How long is waited before each question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    pause: Duration,
    /// How often in a row nobody answered.
    troubles: u32,
}

impl Rhythm {
    pub(super) fn new(pause: Duration) -> Self {
        Self { pause, troubles: 0 }
    }

    /// How long is waited now.
    pub(super) fn pause(self) -> Duration {
        let longer = self.pause.saturating_mul(2_u32.saturating_pow(self.troubles));
        longer.min(LONGEST_BACK_OFF.max(self.pause))
    }

    /// The server answered, and nobody has typed the code yet.
    pub(super) fn went_on(&mut self) {
        self.troubles = 0;
    }

    /// The server was asked too often.
    pub(super) fn slow_down(&mut self) {
        self.troubles = 0;
        self.pause += SLOWER;
    }

    /// Nobody answered.
    pub(super) fn back_off(&mut self) {
        self.troubles = self.troubles.saturating_add(1);
    }
}

/// Whether a code can be typed from a screen: letters that can be seen, and blanks between them.
fn is_typed(text: &str) -> bool {
    (1..=LONGEST_TYPED).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && text.trim() == text
}

fn seconds(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(change: &Value) -> Result<Code, LoginError> {
        let mut said = json!({
            "device_code": "s3cret", "user_code": "WDJB-MJHT", "expires_in": 900,
            "verification_uri": "https://as.test/device",
        });
        for (name, value) in change.as_object().unwrap() {
            said[name] = value.clone();
        }
        Code::read(&said)
    }

    fn pause(change: &Value) -> u64 {
        read(change).unwrap().pause.as_secs()
    }

    #[test]
    fn what_is_shown_is_read_and_what_is_secret_is_not_shown() {
        let code = read(&json!({
            "verification_uri_complete": "https://as.test/device?user_code=WDJB-MJHT",
        }))
        .unwrap();
        assert_eq!((code.typed.as_str(), code.holds.as_secs()), ("WDJB-MJHT", 900));
        assert_eq!(code.page.as_str(), "https://as.test/device");
        assert_eq!(code.direct.as_ref().unwrap().query(), Some("user_code=WDJB-MJHT"));
        assert_eq!(code.pages().count(), 1);
        assert!(!format!("{code:?}").contains("s3cret"), "{code:?}");
        let elsewhere = json!({ "verification_uri_complete": "https://short.test/x" });
        assert_eq!(read(&elsewhere).unwrap().pages().count(), 2);
        let older = json!({ "verification_uri": null, "verification_url": "https://as.test/d" });
        assert_eq!(read(&older).unwrap().page.as_str(), "https://as.test/d");
    }

    #[test]
    fn what_cannot_be_shown_or_believed_is_refused() {
        for (name, value) in [
            ("device_code", json!(null)),
            ("device_code", json!("")),
            ("device_code", json!("x".repeat(LONGEST_SECRET + 1))),
            ("user_code", json!(null)),
            ("user_code", json!("")),
            ("user_code", json!("A\u{1b}[31mB")),
            ("user_code", json!("A\nB")),
            ("user_code", json!(" AB")),
            ("user_code", json!("A\u{202e}B")),
            ("user_code", json!("A".repeat(LONGEST_TYPED + 1))),
            ("user_code", json!("s3cret")),
            ("verification_uri", json!(null)),
            ("verification_uri", json!(7)),
            ("verification_uri_complete", json!("https://as.test/device?code=s3cret")),
            ("expires_in", json!(null)),
            ("expires_in", json!(0)),
            ("expires_in", json!(-1)),
            ("interval", json!("often")),
            ("interval", json!(-5)),
        ] {
            let read = read(&json!({ (name): value }));
            assert!(matches!(read, Err(LoginError::Odd { .. })), "{name} {value}: {read:?}");
        }
        for name in ["verification_uri", "verification_uri_complete"] {
            for value in ["http://as.test/device", "javascript:alert(1)", "https://me@as.test/"] {
                let read = read(&json!({ (name): value }));
                assert!(matches!(read, Err(LoginError::Insecure(_))), "{name} {value}: {read:?}");
            }
        }
    }

    #[test]
    fn times_are_kept_within_bounds() {
        assert_eq!(pause(&json!({})), 5);
        assert_eq!(pause(&json!({ "interval": 0 })), 1);
        assert_eq!(pause(&json!({ "interval": "7" })), 7);
        assert_eq!(pause(&json!({ "interval": u64::MAX })), LONGEST_PAUSE);
        let holds = read(&json!({ "expires_in": u64::MAX })).unwrap().holds;
        assert_eq!(holds.as_secs(), LONGEST_HOLD);
    }

    #[test]
    fn the_rhythm_slows_for_good_when_asked_and_for_a_while_after_trouble() {
        let mut rhythm = Rhythm::new(Duration::from_secs(5));
        let mut heard = Vec::new();
        for step in [Rhythm::went_on, Rhythm::slow_down, Rhythm::back_off, Rhythm::back_off] {
            step(&mut rhythm);
            heard.push(rhythm.pause().as_secs());
        }
        for _ in 0..99 {
            rhythm.back_off();
        }
        heard.push(rhythm.pause().as_secs());
        rhythm.went_on();
        heard.push(rhythm.pause().as_secs());
        assert_eq!(heard, [5, 10, 20, 40, 60, 10]);
        let mut slow = Rhythm::new(Duration::from_secs(LONGEST_PAUSE));
        slow.back_off();
        assert_eq!(slow.pause().as_secs(), LONGEST_PAUSE);
    }
}
