//! One try to sign in: what is asked, and what may come back.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use egress::http::Url;
use sha2::{Digest, Sha256};
use vault::Secret;

use super::audience::Audience;
use super::error::LoginError;
use super::metadata::Server;
use super::register::Known;

/// The longest redirect that is read.
const LONGEST: usize = 16 << 10;

/// One try to sign in.
#[derive(Debug)]
pub struct Attempt {
    /// Who signs us in.
    pub server: Server,
    /// What we are called there.
    pub client: Known,
    /// What the token is for.
    pub audience: Audience,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// Where the browser brings its answer to.
    pub redirect: Url,
    /// Where the browser is sent, before anything is said there.
    place: Url,
    /// What nobody else can know: it makes the code ours.
    pub(super) verifier: Secret,
    state: String,
}

/// What came back, and belongs to the attempt.
#[derive(Debug)]
pub struct Redirected {
    pub(super) code: Secret,
}

impl Attempt {
    /// A new try, with secrets of its own. The server must have a page for it.
    pub fn new(
        server: Server,
        client: Known,
        audience: Audience,
        scopes: Vec<String>,
        redirect: Url,
    ) -> Result<Self, LoginError> {
        let place = server.page()?.clone();
        let verifier = Secret::new(random()?)
            .map_err(|_| LoginError::Unkept("this machine gives no random numbers"))?;
        Ok(Self { server, client, audience, scopes, redirect, place, verifier, state: random()? })
    }

    /// What comes back has to carry it.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// The page for the owner's browser.
    pub fn page(&self) -> Url {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose()));
        let mut url = self.place.clone();
        let scope = self.scopes.join(" ");
        {
            let mut pairs = url.query_pairs_mut();
            for (name, value) in [
                ("response_type", "code"),
                ("client_id", &self.client.id),
                ("redirect_uri", self.redirect.as_str()),
                ("state", &self.state),
                ("code_challenge", &challenge),
                ("code_challenge_method", "S256"),
            ]
            .into_iter()
            .chain(self.audience.pair())
            {
                pairs.append_pair(name, value);
            }
            if !scope.is_empty() {
                pairs.append_pair("scope", &scope);
            }
        }
        url
    }

    /// Reads what a browser was sent back with: the path and the query, or the whole URL. The state is
    /// looked at first, then who sent it, and only then what it says.
    pub fn read(&self, redirected: &str) -> Result<Redirected, LoginError> {
        let odd = |how: &str| LoginError::odd("browser", how);
        if redirected.len() > LONGEST {
            return Err(odd("its URL is too long"));
        }
        let url =
            self.redirect.join(redirected.trim()).map_err(|_| odd("what it gave is no URL"))?;
        if url.origin() != self.redirect.origin() || url.path() != self.redirect.path() {
            return Err(odd("its URL is not the one it was to be sent to"));
        }
        let only = |name: &str| -> Result<Option<String>, LoginError> {
            let mut found = url.query_pairs().filter(|(known, _)| known == name);
            match (found.next(), found.next()) {
                (one, None) => Ok(one.map(|(_, value)| value.into_owned())),
                _ => Err(odd("something is in its URL twice")),
            }
        };
        if !only("state")?.is_some_and(|state| is_same(&state, &self.state)) {
            return Err(LoginError::State);
        }
        match only("iss")? {
            Some(issuer) if issuer != self.server.issuer => return Err(LoginError::MixedUp),
            None if self.server.names_itself => return Err(LoginError::MixedUp),
            _ => {}
        }
        if let Some(code) = only("error")? {
            let is_code = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
            let code = code.chars().filter(|letter| is_code(*letter)).take(64).collect();
            return Err(LoginError::Denied { code });
        }
        let code = only("code")?.ok_or_else(|| odd("it brought no code"))?;
        let code = Secret::new(code).map_err(|_| odd("it brought no code"))?;
        Ok(Redirected { code })
    }
}

/// Compares without telling by the time it takes where two texts differ.
fn is_same(one: &str, other: &str) -> bool {
    let differing = one.bytes().zip(other.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    one.len() == other.len() && differing == 0
}

/// 32 random bytes as text.
fn random() -> Result<String, LoginError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|_| LoginError::Unkept("this machine gives no random numbers"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::register::Method;
    use super::*;

    fn attempt(names_itself: bool) -> Attempt {
        let url = |text: &str| Url::parse(text).unwrap();
        let server = Server {
            issuer: "https://as.test".to_owned(),
            authorization: Some(url("https://as.test/authorize?tenant=1")),
            device: None,
            token: url("https://as.test/token"),
            registration: None,
            revocation: None,
            scopes: Vec::new(),
            methods: Vec::new(),
            grants: Vec::new(),
            responses: Vec::new(),
            challenges: vec!["S256".to_owned()],
            reads_documents: false,
            names_itself,
        };
        let client = Known { id: "me & you".to_owned(), secret: None, method: Method::None };
        let redirect = url("http://127.0.0.1:4711/callback");
        let scopes = vec!["a".to_owned(), "b".to_owned()];
        let audience = Audience::server("https://a.test/mcp".to_owned()).unwrap();
        Attempt::new(server, client, audience, scopes, redirect).unwrap()
    }

    fn error(attempt: &Attempt, query: &str) -> LoginError {
        let query = query.replace("STATE", &attempt.state);
        attempt.read(&format!("/callback?{query}")).unwrap_err()
    }

    #[test]
    fn the_page_says_what_is_asked_for_and_keeps_the_verifier() {
        let attempt = attempt(false);
        let page = attempt.page();
        let said: HashMap<_, _> = page.query_pairs().into_owned().collect();
        for (name, value) in [
            ("tenant", "1"),
            ("response_type", "code"),
            ("client_id", "me & you"),
            ("redirect_uri", "http://127.0.0.1:4711/callback"),
            ("resource", "https://a.test/mcp"),
            ("scope", "a b"),
            ("code_challenge_method", "S256"),
        ] {
            assert_eq!(said[name], value);
        }
        assert_eq!(said["code_challenge"].len(), 43);
        assert!(!page.as_str().contains(attempt.verifier.expose()));
        assert!(!format!("{attempt:?}").contains(attempt.verifier.expose()));
    }

    #[test]
    fn an_answer_counts_only_with_the_state_of_the_attempt() {
        let attempt = attempt(false);
        let good = format!("/callback?code=x&state={}", attempt.state);
        assert_eq!(attempt.read(&good).unwrap().code.expose(), "x");
        assert!(attempt.read(&format!("http://127.0.0.1:4711{good}\n")).is_ok());
        for query in ["code=x", "code=x&state=", "code=x&state=other", "error=access_denied"] {
            assert!(matches!(error(&attempt, query), LoginError::State), "{query}");
        }
        for query in ["state=STATE&state=STATE&code=x", "state=STATE", "state=STATE&code=a&code=b"]
        {
            assert!(matches!(error(&attempt, query), LoginError::Odd { .. }), "{query}");
        }
        for place in ["https://evil.test/callback", "/other", "http://127.0.0.1:1/callback"] {
            let text = format!("{place}?code=x&state={}", attempt.state);
            assert!(matches!(attempt.read(&text), Err(LoginError::Odd { .. })), "{place}");
        }
    }

    #[test]
    fn an_answer_of_another_server_is_refused_also_when_it_is_an_error() {
        let silent = attempt(false);
        for query in [
            "state=STATE&code=x&iss=https://evil.test",
            "state=STATE&error=access_denied&iss=https://evil.test",
            "state=STATE&code=x&iss=https://as.test/",
        ] {
            assert!(matches!(error(&silent, query), LoginError::MixedUp), "{query}");
        }
        let named = attempt(true);
        assert!(matches!(error(&named, "state=STATE&code=x"), LoginError::MixedUp));
        let good = format!("/callback?state={}&code=x&iss=https://as.test", named.state);
        assert!(named.read(&good).is_ok());
    }

    #[test]
    fn a_refusal_is_told_without_the_words_of_a_stranger() {
        let attempt = attempt(false);
        let query = "state=STATE&error=access_denied%1b[31m&error_description=evil";
        let LoginError::Denied { code } = error(&attempt, query) else { panic!() };
        assert_eq!(code, "access_denied31m");
    }
}
