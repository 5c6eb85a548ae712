//! One try to sign in by a code that is typed at a browser on any machine (RFC 8628).

use std::time::{Duration, Instant};

use egress::http::{Client, SendError};

use super::audience::Audience;
use super::device::{self, Code, Rhythm};
use super::error::LoginError;
use super::kept::{Agreed, Granted, Kept, now};
use super::metadata::{DEVICE_CODE, Server};
use super::register::Known;
use super::talk::{code, post_form, refused, said};
use super::token::{self, to_keep};

/// How time passes. The machine's own is [`Steady`]; a test brings one in which nobody waits.
pub trait Clock: Send + Sync {
    /// The time since a moment that stays the same.
    fn now(&self) -> Duration;

    /// Lets time pass.
    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// The machine's own time.
#[derive(Clone, Copy, Debug)]
pub struct Steady(Instant);

impl Default for Steady {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Steady {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// One try to sign in by a code.
#[derive(Debug)]
pub struct Handoff<C = Steady> {
    /// Who signs us in.
    pub server: Server,
    /// What we are called there.
    pub client: Known,
    /// What the token is for.
    pub audience: Audience,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// What the owner is shown.
    pub code: Code,
    clock: C,
    /// When the code ends, by the clock.
    ends: Duration,
}

impl<C: Clock> Handoff<C> {
    /// Asks a server for a code.
    pub async fn begin(
        client: &Client,
        server: Server,
        known: Known,
        audience: Audience,
        scopes: Vec<String>,
        clock: C,
    ) -> Result<Self, LoginError> {
        let scope = scopes.join(" ");
        let mut pairs: Vec<_> = audience.pair().into_iter().collect();
        if !scope.is_empty() {
            pairs.push(("scope", &scope));
        }
        let endpoint = server.device()?;
        let asked = clock.now();
        let response = post_form(client, endpoint, &known, pairs, device::WHAT).await?;
        if !response.status.is_success() {
            return Err(refused(&response, device::WHAT));
        }
        let code = Code::read(&said(&response))?;
        let ends = asked + code.holds;
        Ok(Self { server, client: known, audience, scopes, code, clock, ends })
    }

    /// Asks after the code until somebody has signed in with it, for as long as it holds and, where the owner says how
    /// long, no longer than that. Whoever drops this while it waits has asked for nothing that is kept.
    pub async fn wait(
        self,
        client: &Client,
        hosts: Vec<Agreed>,
        within: Option<Duration>,
    ) -> Result<Kept, LoginError> {
        let own = within.map(|within| self.clock.now().saturating_add(within));
        let (until, over) = match own {
            Some(own) if own < self.ends => (own, LoginError::TimedOut),
            _ => (self.ends, LoginError::Expired),
        };
        let mut rhythm = Rhythm::new(self.code.pause);
        let mut trouble = None;
        loop {
            let left = until.saturating_sub(self.clock.now());
            self.clock.pause(rhythm.pause().min(left)).await;
            if self.clock.now() >= until {
                // Who was not reached at the end may have been told that somebody signed in.
                return Err(trouble.unwrap_or(over));
            }
            match self.ask(client).await {
                Ok(Answer::Granted(granted)) => {
                    let Self { server, client, audience, scopes, .. } = self;
                    return Ok(to_keep(granted, server, client, audience, scopes, hosts));
                }
                Ok(Answer::Pending) => {
                    rhythm.went_on();
                    trouble = None;
                }
                Ok(Answer::SlowDown) => {
                    rhythm.slow_down();
                    trouble = None;
                }
                Err(error) if is_passing(&error) => {
                    rhythm.back_off();
                    trouble = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Asks once. Servers do not agree on the status that goes with a code of an error, so the code counts.
    async fn ask(&self, client: &Client) -> Result<Answer, LoginError> {
        let mut pairs =
            vec![("grant_type", DEVICE_CODE), ("device_code", self.code.secret.expose())];
        pairs.extend(self.audience.pair());
        let endpoint = &self.server.token;
        let response = post_form(client, endpoint, &self.client, pairs, token::WHAT).await?;
        let said = said(&response);
        match code(&said).as_deref() {
            Some("authorization_pending") => Ok(Answer::Pending),
            Some("slow_down") => Ok(Answer::SlowDown),
            Some(code @ "access_denied") => Err(LoginError::Denied { code: code.to_owned() }),
            Some("expired_token") => Err(LoginError::Expired),
            None if response.status.is_success() => {
                Granted::read(&said, now()).map(Answer::Granted)
            }
            _ => Err(refused(&response, token::WHAT)),
        }
    }
}

/// What a token endpoint says of a code.
#[derive(Debug)]
enum Answer {
    Granted(Granted),
    Pending,
    SlowDown,
}

/// Whether the next question may well be answered: nobody was reached, or the server had trouble of its own.
fn is_passing(error: &LoginError) -> bool {
    match error {
        LoginError::NotReached { source, .. } => matches!(
            source,
            SendError::Unresolved(_)
                | SendError::NotConnected(_)
                | SendError::Lost(_)
                | SendError::Interrupted(_)
                | SendError::TimedOut
        ),
        LoginError::Answered { status, .. } => matches!(status, 429 | 500..600),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};

    use egress::Rules;
    use egress::http::Url;
    use serde_json::{Value, json};

    use super::super::logins;
    use super::super::register::Method;
    use super::*;

    /// A time in which nobody waits: it passes as soon as somebody would.
    #[derive(Clone, Debug, Default)]
    struct Jumping(Arc<Mutex<(Duration, Vec<u64>)>>);

    impl Clock for Jumping {
        fn now(&self) -> Duration {
            self.0.lock().unwrap().0
        }

        async fn pause(&self, time: Duration) {
            let mut state = self.0.lock().unwrap();
            state.0 += time;
            state.1.push(time.as_secs());
        }
    }

    impl Jumping {
        /// How long was waited, each time.
        fn pauses(&self) -> Vec<u64> {
            self.0.lock().unwrap().1.clone()
        }
    }

    /// A server that gives one answer after the other, and the last one from then on; a status of 0 is a connection that ends.
    struct Answers {
        host: String,
        asked: Arc<Mutex<Vec<String>>>,
    }

    impl Answers {
        fn new(answers: Vec<(u16, Value)>) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let host = listener.local_addr().unwrap().to_string();
            let asked: Arc<Mutex<Vec<String>>> = Arc::default();
            let heard = Arc::clone(&asked);
            std::thread::spawn(move || {
                let mut answers = answers.into_iter();
                let mut last = None;
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    heard.lock().unwrap().push(body(&mut stream));
                    last = answers.next().or(last);
                    let Some((status @ 1.., said)) = &last else { continue };
                    let said = said.to_string();
                    let answer = format!(
                        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{said}",
                        said.len()
                    );
                    stream.write_all(answer.as_bytes()).unwrap();
                }
            });
            Self { host, asked }
        }

        fn server(&self) -> Server {
            let url = |path: &str| Url::parse(&format!("http://{}{path}", self.host)).unwrap();
            Server {
                issuer: format!("http://{}", self.host),
                authorization: None,
                device: Some(url("/device_authorization")),
                token: url("/token"),
                registration: None,
                revocation: None,
                scopes: Vec::new(),
                methods: Vec::new(),
                grants: Vec::new(),
                responses: Vec::new(),
                challenges: Vec::new(),
                reads_documents: false,
                names_itself: false,
            }
        }

        /// Signs in, and says how long was waited each time.
        async fn sign_in(&self, within: Option<u64>) -> (Result<Kept, LoginError>, Vec<u64>) {
            let clock = Jumping::default();
            let hosts = vec![Agreed { host: self.host.clone(), is_typed: true }];
            let client = logins::client(&Rules::from_iter([]), &hosts).unwrap();
            let known = Known { id: "me".to_owned(), secret: None, method: Method::None };
            let scopes = vec!["a".to_owned(), "b".to_owned()];
            let audience = Audience::server("https://a.test/mcp".to_owned()).unwrap();
            let begun =
                Handoff::begin(&client, self.server(), known, audience, scopes, clock.clone());
            let kept = match begun.await {
                Ok(begun) => begun.wait(&client, hosts, within.map(Duration::from_secs)).await,
                Err(error) => Err(error),
            };
            (kept, clock.pauses())
        }
    }

    /// The body of a request.
    fn body(stream: &mut std::net::TcpStream) -> String {
        let mut text = String::new();
        let mut piece = [0; 4096];
        loop {
            let count = stream.read(&mut piece).unwrap();
            assert!(count > 0, "it ended early: {text}");
            text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return body.to_owned();
            }
        }
    }

    fn offer() -> (u16, Value) {
        let offer = json!({
            "device_code": "s3cret", "user_code": "WDJB-MJHT", "expires_in": 100, "interval": 3,
            "verification_uri": "https://as.test/device",
        });
        (200, offer)
    }

    fn says(status: u16, code: &str) -> (u16, Value) {
        (status, json!({ "error": code, "error_description": "s3cret \u{1b}[31m" }))
    }

    fn tokens() -> (u16, Value) {
        let tokens = json!({
            "access_token": "t0ken", "token_type": "Bearer", "refresh_token": "l0ng",
            "expires_in": 3600,
        });
        (200, tokens)
    }

    #[tokio::test]
    async fn a_code_is_asked_after_until_somebody_has_signed_in_with_it() {
        let answers = Answers::new(vec![
            offer(),
            says(400, "authorization_pending"),
            says(400, "slow_down"),
            // Some say it so.
            says(200, "authorization_pending"),
            says(428, "authorization_pending"),
            tokens(),
        ]);
        let (kept, pauses) = answers.sign_in(None).await;
        let kept = kept.unwrap();
        assert_eq!(
            (kept.access.expose(), kept.audience.resource()),
            ("t0ken", Some("https://a.test/mcp"))
        );
        assert_eq!(kept.refresh.as_ref().unwrap().expose(), "l0ng");
        // Nothing was said of scopes, so they are what was asked for.
        assert_eq!(kept.scopes, ["a", "b"]);
        assert_eq!(kept.hosts[0].host, answers.host);
        assert_eq!(pauses, [3, 3, 8, 8, 8]);
        let asked = answers.asked.lock().unwrap();
        let resource = "resource=https%3A%2F%2Fa.test%2Fmcp";
        assert_eq!(asked[0], format!("{resource}&scope=a+b&client_id=me"));
        let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code";
        assert_eq!(asked[1], format!("{grant}&device_code=s3cret&{resource}&client_id=me"));
        assert_eq!((asked.len(), &asked[5]), (6, &asked[1]));
    }

    #[tokio::test]
    async fn trouble_on_the_way_is_waited_out_longer_and_longer() {
        let answers = Answers::new(vec![
            offer(),
            (0, json!(null)),
            (503, json!(null)),
            says(429, "overloaded"),
            says(400, "authorization_pending"),
            tokens(),
        ]);
        let (kept, pauses) = answers.sign_in(None).await;
        assert_eq!(kept.unwrap().access.expose(), "t0ken");
        assert_eq!(pauses, [3, 6, 12, 24, 3]);
    }

    #[tokio::test]
    async fn trouble_that_does_not_pass_is_told_when_the_code_ends() {
        let (kept, pauses) = Answers::new(vec![offer(), (0, json!(null))]).sign_in(None).await;
        assert!(matches!(kept, Err(LoginError::NotReached { .. })), "{kept:?}");
        assert_eq!(pauses.iter().sum::<u64>(), 100, "{pauses:?}");
    }

    #[tokio::test]
    async fn whoever_says_no_or_is_too_late_ends_it() {
        for (answer, words) in [
            (says(400, "access_denied"), "signing in was refused: access_denied"),
            (says(400, "expired_token"), "the code ended before"),
            (says(400, "invalid_grant"), "answered 400: invalid_grant"),
            (says(200, "strange"), "answered 200: strange"),
            ((200, json!({})), "it gave no token"),
            ((302, json!({})), "answered 302"),
        ] {
            let answers =
                Answers::new(vec![offer(), says(400, "authorization_pending"), answer.clone()]);
            let (kept, pauses) = answers.sign_in(None).await;
            let error = kept.unwrap_err();
            assert!(error.to_string().contains(words), "{answer:?}: {error:?}");
            assert_eq!(pauses, [3, 3], "{answer:?}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        }
    }

    #[tokio::test]
    async fn nobody_is_waited_for_longer_than_the_code_holds_or_the_owner_says() {
        let waiting = || Answers::new(vec![offer(), says(400, "authorization_pending")]);
        let (kept, pauses) = waiting().sign_in(None).await;
        assert!(matches!(kept, Err(LoginError::Expired)), "{kept:?}");
        assert_eq!((pauses.len(), pauses.iter().sum::<u64>()), (34, 100));
        let (kept, pauses) = waiting().sign_in(Some(10)).await;
        assert!(matches!(kept, Err(LoginError::TimedOut)), "{kept:?}");
        assert_eq!(pauses, [3, 3, 3, 1]);
        let (kept, _) = waiting().sign_in(Some(u64::MAX)).await;
        assert!(matches!(kept, Err(LoginError::Expired)), "{kept:?}");
    }

    #[tokio::test]
    async fn a_server_that_gives_no_code_is_not_asked_after_one() {
        for (answer, words) in [
            (says(400, "unauthorized_client"), "400: unauthorized_client"),
            ((200, json!({ "device_code": "s3cret" })), "no code that can be typed"),
            ((200, json!([])), "no code for us"),
        ] {
            let answers = Answers::new(vec![answer]);
            let (kept, pauses) = answers.sign_in(None).await;
            let error = kept.unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("s3cret"), "{error}");
            assert_eq!((pauses, answers.asked.lock().unwrap().len()), (Vec::new(), 1));
        }
    }
}
