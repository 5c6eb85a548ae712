//! Requests that a tape hears, or answers in place of a server.

use std::sync::{Arc, Mutex};

use host::tape::{Answer, Asked, Tape, Turn};
use host::{Host, Kind, Made, Tool, Warmth};
use serde_json::{Value, json};

use super::kit::{call_of, set_grants};
use super::site::{Site, auth};

/// Keeps what it hears, and gives it back.
#[derive(Debug, Default)]
struct Kept {
    heard: Mutex<Vec<(Asked, Answer)>>,
    is_offline: bool,
}

impl Kept {
    /// One that answers with what another has heard.
    fn replaying(other: &Self) -> Arc<Self> {
        let heard = Mutex::new(other.heard.lock().unwrap().clone());
        Arc::new(Self { heard, is_offline: true })
    }

    fn text(&self) -> String {
        let heard = self.heard.lock().unwrap();
        let told = |(asked, answer): &(Asked, Answer)| {
            format!("{asked} {:?} {}\n", answer.headers, String::from_utf8_lossy(&answer.body))
        };
        heard.iter().map(told).collect()
    }
}

impl Tape for Kept {
    fn answer(&self, asked: &Asked) -> Turn {
        if !self.is_offline {
            return Turn::Server;
        }
        let heard = self.heard.lock().unwrap();
        let known = heard.iter().find(|(known, _)| known == asked);
        known.map_or(Turn::Nobody, |(_, answer)| Turn::Kept(answer.clone()))
    }

    fn heard(&self, asked: Asked, answer: Answer) {
        assert!(!self.is_offline, "nobody is asked");
        self.heard.lock().unwrap().push((asked, answer));
    }

    fn is_offline(&self) -> bool {
        self.is_offline
    }
}

fn make(site: &Site, host: &Host, tool: &Tool, input: &Value) -> Made {
    site.runtime.block_on(async {
        set_grants(&site.records, &tool.package.canonical_id(), &site.grants).await;
        host.call(tool, &call_of(tool, input), Warmth::Cold).await
    })
}

#[test]
fn tokens_and_keys_are_not_heard_and_not_needed_again() {
    let site = Site::open();
    let tape = Arc::new(Kept::default());
    let host = site.another_host().taped(Arc::<Kept>::clone(&tape));
    let names = ["ME_TOKEN_URL", "ME_CLIENT_ID", "ME_CLIENT_SECRET"];
    let private = site.mcpkg("GET", "/private", auth("oauth2", &names));
    let echo = site.mcpkg("GET", "/echo", auth("bearer", &["DEMO_KEY"]));
    let said = make(&site, &host, &private, &json!({})).reply.unwrap().into_value();
    make(&site, &host, &echo, &json!({"a": "b"})).reply.unwrap();
    let heard = tape.text();
    assert_eq!(heard.lines().count(), 2, "the token endpoint is not a part of it: {heard}");
    let secrets = site.settings.environment.iter();
    let secrets = secrets.filter(|(name, _)| name.contains("SECRET") || name.contains("KEY"));
    for (name, value) in secrets.filter(|(_, value)| value.len() >= 4) {
        assert!(!heard.contains(value.as_str()), "{name}: {heard}");
    }
    assert!(heard.contains("[secret token]") && heard.contains("[secret DEMO_KEY]"), "{heard}");

    let tokens = site.count("tokens");
    let offline = site.another_host().taped(Kept::replaying(&tape));
    let again = make(&site, &offline, &private, &json!({}));
    assert_eq!((again.reply.unwrap().into_value(), again.attempts), (said, 1));
    assert_eq!(site.count("tokens"), tokens, "nobody was asked for one");
    // Nor is the secret itself needed.
    let unset = site.mcpkg("GET", "/echo", auth("bearer", &["UNSET"]));
    make(&site, &offline, &unset, &json!({"a": "b"})).reply.unwrap();
}

#[test]
fn what_was_not_heard_is_not_answered_and_what_is_too_large_neither() {
    let site = Site::open();
    let tape = Arc::new(Kept::default());
    let host = site.another_host().taped(Arc::<Kept>::clone(&tape));
    let echo = site.mcpkg("POST", "/echo", json!({}));
    make(&site, &host, &echo, &json!({"a": 1})).reply.unwrap();
    let offline = site.another_host().taped(Kept::replaying(&tape));
    make(&site, &offline, &echo, &json!({"a": 1})).reply.unwrap();
    let other = make(&site, &offline, &echo, &json!({"a": 2})).reply.unwrap_err();
    assert_eq!((&other.kind, &other.details["unrecorded"]), (&Kind::Unavailable, &json!(true)));
    assert!(other.message.starts_with("no answer to `POST "), "{other}");
    tape.heard.lock().unwrap()[0].1.body = vec![b'x'; 17 << 20];
    let offline = site.another_host().taped(Kept::replaying(&tape));
    let large = make(&site, &offline, &echo, &json!({"a": 1})).reply.unwrap_err();
    assert_eq!(large.kind, Kind::TooMuchOutput);
    tape.heard.lock().unwrap()[0].1 = Answer { status: 1, headers: Vec::new(), body: Vec::new() };
    let offline = site.another_host().taped(Kept::replaying(&tape));
    let broken = make(&site, &offline, &echo, &json!({"a": 1})).reply.unwrap_err();
    assert!(broken.message.contains("no answer of a server"), "{broken}");
}
