//! What a resource and an authorization server say about themselves, checked.

use egress::http::Url;
use serde_json::Value;

use super::address::{canonical, covers, origin, safe};
use super::card::Endpoints;
use super::error::LoginError;
use crate::strict::strict;

/// What tokens are asked for with, for a code that was typed at a browser on any machine.
pub const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Who wrote it.
const WHAT: &str = "authorization server";

/// How many things of one kind are read from a document.
const MOST: usize = 64;

/// The longest scope, and the longest of other words.
const LONGEST_WORD: usize = 256;

/// What a resource says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its name, as tokens are asked for it.
    pub name: String,
    /// Who signs people in for it; never empty.
    pub servers: Vec<Url>,
    /// The scopes it knows.
    pub scopes: Vec<String>,
}

/// What an authorization server says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name, letter by letter as it writes it.
    pub issuer: String,
    /// Where the owner's browser is sent, where it has such a place; [`Server::page`] says whether that can be gone to.
    pub authorization: Option<Url>,
    /// Where codes for a browser on any machine come from; [`Server::device`] says whether they are given.
    pub device: Option<Url>,
    /// Where codes become tokens.
    pub token: Url,
    /// Where it registers whoever asks.
    pub registration: Option<Url>,
    /// Where tokens are given back.
    pub revocation: Option<Url>,
    /// The scopes it knows.
    pub scopes: Vec<String>,
    /// How it wants to hear who asks for a token; empty where it does not say.
    pub methods: Vec<String>,
    /// What it gives tokens for; empty where it does not say.
    pub grants: Vec<String>,
    /// What its page gives; empty where it does not say.
    pub responses: Vec<String>,
    /// How it protects codes that others see.
    pub challenges: Vec<String>,
    /// Whether a name may be the URL of a document about us.
    pub reads_documents: bool,
    /// Whether it promises to name itself in what comes back.
    pub names_itself: bool,
}

impl Resource {
    /// Reads the metadata of the resource that an endpoint is a part of.
    pub fn read(body: &[u8], endpoint: &Url) -> Result<Self, LoginError> {
        const WHAT: &str = "server";
        let document = document(body, WHAT)?;
        let named = document["resource"].as_str().unwrap_or_default();
        let resource = safe(named, WHAT, "resource")?;
        if !covers(&resource, endpoint) {
            return Err(LoginError::Foreign { named: clipped(named) });
        }
        let name = "authorization_servers";
        let servers = list(&document, name);
        let servers = servers.iter().map(|text| safe(text, WHAT, name));
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        if servers.is_empty() {
            return Err(LoginError::NoServer);
        }
        Ok(Self { name: named.to_owned(), servers, scopes: scopes(&document) })
    }

    /// What is assumed of a server that knows only the oldest revision: it signs people in itself.
    pub fn of_old(endpoint: &Url) -> Self {
        Self { name: canonical(endpoint), servers: vec![origin(endpoint)], scopes: Vec::new() }
    }
}

impl Server {
    /// Reads the metadata of an authorization server. It must say that it is the one that was asked, and
    /// every URL of it must be safe.
    pub fn read(body: &[u8], asked: &Url) -> Result<Self, LoginError> {
        let document = document(body, WHAT)?;
        let issuer = document["issuer"].as_str().unwrap_or_default();
        let is_asked = |said: &Url| {
            said.origin() == asked.origin()
                && said.path().trim_end_matches('/') == asked.path().trim_end_matches('/')
                && said.query() == asked.query()
        };
        if !safe(issuer, WHAT, "issuer").is_ok_and(|said| is_asked(&said)) {
            let (asked, said) = (asked.to_string(), clipped(issuer));
            return Err(LoginError::Issuer { asked, said });
        }
        let given = |name: &str| safe(document[name].as_str().unwrap_or_default(), WHAT, name);
        let url = |name: &str| document[name].as_str().map(|_| given(name)).transpose();
        let is_true = |name: &str| document[name] == Value::Bool(true);
        Ok(Self {
            issuer: issuer.to_owned(),
            authorization: url("authorization_endpoint")?,
            device: url("device_authorization_endpoint")?,
            token: given("token_endpoint")?,
            registration: url("registration_endpoint")?,
            revocation: url("revocation_endpoint")?,
            scopes: scopes(&document),
            methods: list(&document, "token_endpoint_auth_methods_supported"),
            grants: list(&document, "grant_types_supported"),
            responses: list(&document, "response_types_supported"),
            challenges: list(&document, "code_challenge_methods_supported"),
            reads_documents: is_true("client_id_metadata_document_supported"),
            names_itself: is_true("authorization_response_iss_parameter_supported"),
        })
    }

    /// One without metadata, of which is known what the card of an agent says. It is called by where its tokens come from.
    pub fn of_card(endpoints: &Endpoints) -> Self {
        let Endpoints { authorization, device, token, has_pkce } = endpoints.clone();
        Self {
            issuer: canonical(&origin(&token)),
            authorization,
            device,
            token,
            registration: None,
            revocation: None,
            scopes: Vec::new(),
            methods: Vec::new(),
            grants: Vec::new(),
            responses: Vec::new(),
            challenges: has_pkce.then(|| "S256".to_owned()).into_iter().collect(),
            reads_documents: false,
            names_itself: false,
        }
    }

    /// The page for a browser on this machine. It must give codes, and protect them.
    pub fn page(&self) -> Result<&Url, LoginError> {
        if !self.challenges.iter().any(|one| one == "S256") {
            return Err(LoginError::NoPkce);
        }
        if !self.responses.is_empty() && !self.responses.iter().any(|one| one == "code") {
            return Err(LoginError::odd(WHAT, "it gives no codes"));
        }
        let missing = || LoginError::odd(WHAT, "`authorization_endpoint` is missing");
        self.authorization.as_ref().ok_or_else(missing)
    }

    /// Where codes for a browser on any machine come from, where it gives tokens for such.
    pub fn device(&self) -> Result<&Url, LoginError> {
        let takes = self.grants.is_empty() || self.grants.iter().any(|one| one == DEVICE_CODE);
        self.device.as_ref().filter(|_| takes).ok_or(LoginError::NoDevice)
    }

    /// Whether a page is where it is itself. One that is elsewhere may be that of another server, and what is said there
    /// would be given to this one.
    pub fn is_own(&self, page: &Url) -> bool {
        let own = Url::parse(&self.issuer).map(|issuer| issuer.origin());
        own.is_ok_and(|own| own == page.origin())
    }

    /// The URLs of it that we ask ourselves, however somebody signs in; pages for a browser are none of them.
    pub fn endpoints(&self) -> Vec<&Url> {
        [Some(&self.token), self.registration.as_ref(), self.revocation.as_ref()]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// The scopes of a text, as headers and answers have them.
pub fn split_scopes(text: &str) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in text.split(' ').filter(|scope| is_scope(scope)) {
        if scopes.len() < MOST && !scopes.iter().any(|known| known == scope) {
            scopes.push(scope.to_owned());
        }
    }
    scopes
}

/// Whether a text can be one scope: letters that can be seen, but for `"` and `\`.
pub fn is_scope(text: &str) -> bool {
    (1..=LONGEST_WORD).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

fn scopes(document: &Value) -> Vec<String> {
    list(document, "scopes_supported").into_iter().filter(|scope| is_scope(scope)).collect()
}

fn document(body: &[u8], what: &'static str) -> Result<Value, LoginError> {
    let read = std::str::from_utf8(body).ok().and_then(strict).filter(Value::is_object);
    read.ok_or_else(|| LoginError::odd(what, "it is no JSON object"))
}

fn list(document: &Value, name: &str) -> Vec<String> {
    let items = document[name].as_array().into_iter().flatten();
    items.filter_map(Value::as_str).take(MOST).map(str::to_owned).collect()
}

fn clipped(text: &str) -> String {
    text.chars().take(LONGEST_WORD).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn resource(document: &Value) -> Result<Resource, LoginError> {
        Resource::read(document.to_string().as_bytes(), &url("https://a.test/mcp"))
    }

    fn server(change: &Value) -> Result<Server, LoginError> {
        let mut document = json!({
            "issuer": "https://as.test",
            "authorization_endpoint": "https://as.test/authorize",
            "token_endpoint": "https://as.test/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["plain", "S256"],
        });
        for (name, value) in change.as_object().unwrap() {
            document[name] = value.clone();
        }
        Server::read(document.to_string().as_bytes(), &url("https://as.test/"))
    }

    #[test]
    fn metadata_of_another_resource_is_refused() {
        let of = |named: &str| {
            resource(&json!({ "resource": named, "authorization_servers": ["https://as.test"] }))
        };
        for named in ["https://a.test/mcp", "https://a.test", "https://a.test/mcp/"] {
            assert_eq!(of(named).unwrap().name, named);
        }
        for named in ["https://b.test/mcp", "https://a.test/other", "https://a.test:8/mcp"] {
            assert!(matches!(of(named), Err(LoginError::Foreign { .. })), "{named}");
        }
        assert!(matches!(of("http://a.test/mcp"), Err(LoginError::Insecure(_))));
        let nobody = json!({ "resource": "https://a.test" });
        assert!(matches!(resource(&nobody), Err(LoginError::NoServer)));
        let plain = json!({
            "resource": "https://a.test", "authorization_servers": ["http://as.test"]
        });
        assert!(matches!(resource(&plain), Err(LoginError::Insecure(_))));
        assert!(Resource::read(b"[]", &url("https://a.test")).is_err());
        let twice = br#"{"resource":"https://a.test","resource":"https://a.test"}"#;
        assert!(Resource::read(twice, &url("https://a.test")).is_err());
    }

    #[test]
    fn an_authorization_server_is_the_one_that_was_asked_and_protects_codes() {
        assert_eq!(server(&json!({})).unwrap().issuer, "https://as.test");
        for issuer in ["https://other.test", "https://as.test/tenant", "http://as.test", ""] {
            let read = server(&json!({ "issuer": issuer }));
            assert!(matches!(read, Err(LoginError::Issuer { .. })), "{issuer}");
        }
        for methods in [json!(["plain"]), json!([]), json!(null), json!("S256")] {
            let read = server(&json!({ "code_challenge_methods_supported": methods })).unwrap();
            assert!(matches!(read.page(), Err(LoginError::NoPkce)), "{methods}");
        }
        for name in [
            "authorization_endpoint",
            "device_authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
            "revocation_endpoint",
        ] {
            for bad in ["http://as.test/x", "javascript:alert(1)", "https://me:pw@as.test/"] {
                let read = server(&json!({ (name): bad }));
                assert!(matches!(read, Err(LoginError::Insecure(_))), "{name} {bad}");
            }
        }
        assert!(server(&json!({ "token_endpoint": null })).is_err());
        for change in [
            json!({ "response_types_supported": ["token"] }),
            json!({ "authorization_endpoint": null }),
        ] {
            let read = server(&change).unwrap();
            assert!(matches!(read.page(), Err(LoginError::Odd { .. })), "{change}");
        }
    }

    #[test]
    fn codes_for_any_browser_are_given_where_a_server_says_so_and_need_no_page() {
        let place = "https://as.test/device_authorization";
        let offers = json!({
            "device_authorization_endpoint": place, "authorization_endpoint": null,
            "code_challenge_methods_supported": null,
        });
        assert_eq!(server(&offers).unwrap().device().unwrap().as_str(), place);
        let listed = |grants: &Value| {
            server(
                &json!({ "device_authorization_endpoint": place, "grant_types_supported": grants }),
            )
        };
        assert!(listed(&json!(["refresh_token", DEVICE_CODE])).unwrap().device().is_ok());
        let refused = listed(&json!(["authorization_code"])).unwrap();
        for server in [server(&json!({})).unwrap(), refused] {
            assert!(matches!(server.device(), Err(LoginError::NoDevice)), "{server:?}");
        }
    }

    #[test]
    fn scopes_are_words_that_can_be_seen() {
        assert_eq!(split_scopes("a b  a c:d"), ["a", "b", "c:d"]);
        assert_eq!(split_scopes("a\u{7} \"b\" \\ ü"), Vec::<String>::new());
        assert_eq!(split_scopes(&"x ".repeat(5)), ["x"]);
        assert!(
            split_scopes(&(0..999).map(|n| format!("s{n} ")).collect::<String>()).len() <= MOST
        );
    }
}
