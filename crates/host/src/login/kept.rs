//! What is kept of a sign-in, sealed in the vault as one value: so that it changes whole or not at all.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use egress::http::{HeaderValue, Url};
use serde_json::{Value, json};
use vault::Secret;

use super::address::{check_safe, covers, rule_of, safe};
use super::audience::Audience;
use super::error::LoginError;
use super::metadata::split_scopes;
use super::register::{Known, Method};

/// How long before its end a token is no longer used.
const MARGIN: Duration = Duration::from_secs(30);

/// How long a token is used of which nobody said when it ends; the server says when that is wrong.
const UNSAID: Duration = Duration::from_hours(1);

/// The longest life that is believed.
const LONGEST: u64 = 365 * 24 * 3600;

/// What is kept of a sign-in.
#[derive(Clone, Debug)]
pub struct Kept {
    /// What the tokens are for, and who is told them.
    pub audience: Audience,
    /// Who gave them.
    pub issuer: String,
    /// Where new ones come from.
    pub token: Url,
    /// Where they are given back.
    pub revocation: Option<Url>,
    /// What we are called there.
    pub client: Known,
    /// The hosts the owner agreed to, so that new tokens can be fetched.
    pub hosts: Vec<Agreed>,
    /// What was granted.
    pub scopes: Vec<String>,
    /// The token.
    pub access: Secret,
    /// What brings a new one.
    pub refresh: Option<Secret>,
    /// When the token is no longer used, in seconds since 1970.
    pub until: u64,
}

/// A host that the owner agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The host and its port.
    pub host: String,
    /// Whether the owner typed it, so that it may be a private one.
    pub is_typed: bool,
}

impl Agreed {
    /// The rule that lets it be reached; a private place only where the owner typed it.
    pub fn rule(&self) -> Option<egress::Rule> {
        let rule = rule_of(&self.host)?;
        if self.is_typed {
            return Some(rule.reaching_private());
        }
        Some(rule).filter(|rule| !rule.names_private())
    }
}

/// A token, and the only one who may be told it.
#[derive(Clone, Debug)]
pub struct Bearer {
    audience: Audience,
    access: Secret,
    /// What else is to be taken out of what is shown.
    others: Vec<Secret>,
}

impl Bearer {
    /// The header for a request to a URL; `None` where that is not what the token is for.
    pub fn header(&self, url: &Url) -> Option<HeaderValue> {
        let Audience::Server { url: resource, .. } = &self.audience else { return None };
        check_safe(url).ok().filter(|()| covers(resource, url))?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.access.expose())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The secret of its package that the token is given as, and the token; `None` where it is not for the package.
    pub fn value(&self) -> Option<(&str, &Secret)> {
        self.audience.secret().map(|name| (name, &self.access))
    }

    /// The token itself.
    pub fn secret(&self) -> &Secret {
        &self.access
    }

    /// All that is to be taken out of what is shown.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        [&self.access].into_iter().chain(&self.others)
    }
}

/// What a token endpoint gave.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    pub(super) scopes: Option<Vec<String>>,
    pub(super) until: u64,
}

impl Granted {
    /// Reads the answer of a token endpoint.
    pub(super) fn read(said: &Value, now: u64) -> Result<Self, LoginError> {
        let odd = |how: &str| LoginError::odd("token endpoint", how);
        let access = said["access_token"].as_str().filter(|token| is_token(token));
        let access = access.ok_or_else(|| odd("it gave no token"))?;
        let kind = said["token_type"].as_str().unwrap_or("bearer");
        if !kind.eq_ignore_ascii_case("bearer") {
            return Err(odd("its token is no bearer token"));
        }
        let secret = |text: &str| Secret::new(text.to_owned()).map_err(|_| odd("it gave no token"));
        let refresh = said["refresh_token"].as_str().filter(|token| !token.is_empty());
        Ok(Self {
            access: secret(access)?,
            refresh: refresh.map(secret).transpose()?,
            scopes: said["scope"].as_str().map(split_scopes),
            until: now + life(said).unwrap_or(UNSAID).as_secs(),
        })
    }
}

impl Kept {
    /// Whether the token has ended, or is about to.
    pub fn is_over(&self, now: u64) -> bool {
        self.until <= now
    }

    /// The token, for whom it is for.
    pub fn bearer(&self) -> Bearer {
        let others = self.refresh.iter().chain(&self.client.secret).cloned().collect();
        Bearer { audience: self.audience.clone(), access: self.access.clone(), others }
    }

    /// The same sign-in with newer tokens. Where nothing new is said, the old holds.
    pub(super) fn renewed(mut self, granted: Granted) -> Self {
        self.access = granted.access;
        self.refresh = granted.refresh.or(self.refresh);
        self.scopes = granted.scopes.unwrap_or(self.scopes);
        self.until = granted.until;
        self
    }

    /// The one value that is sealed.
    pub(super) fn to_secret(&self) -> Result<Secret, LoginError> {
        let host = |one: &Agreed| json!({ "host": one.host, "typed": one.is_typed });
        let text = json!({
            "version": 1,
            "resource": self.audience.resource(),
            "secret": self.audience.secret(),
            "issuer": self.issuer,
            "token": self.token.as_str(),
            "revocation": self.revocation.as_ref().map(Url::as_str),
            "client": {
                "id": self.client.id,
                "secret": self.client.secret.as_ref().map(Secret::expose),
                "method": self.client.method.name(),
            },
            "hosts": self.hosts.iter().map(host).collect::<Vec<_>>(),
            "scopes": self.scopes,
            "access": self.access.expose(),
            "refresh": self.refresh.as_ref().map(Secret::expose),
            "until": self.until,
        });
        Secret::new(text.to_string()).map_err(|_| LoginError::Unkept("the tokens are too long"))
    }

    /// Reads what was sealed.
    pub(super) fn of_secret(secret: &Secret) -> Result<Self, LoginError> {
        const WHAT: LoginError = LoginError::Unkept("what the vault holds is none");
        let document: Value = serde_json::from_str(secret.expose()).map_err(|_| WHAT)?;
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(WHAT);
        let hidden = |value: &Value| -> Option<Secret> {
            value.as_str().and_then(|text| Secret::new(text.to_owned()).ok())
        };
        let resource = || safe(&text(&document["resource"])?, "vault", "resource");
        let audience = match document["secret"].as_str() {
            None => Audience::Server { url: resource()?, name: text(&document["resource"])? },
            Some(secret) => Audience::Package {
                secret: secret.to_owned(),
                resource: document["resource"].as_str().map(str::to_owned),
            },
        };
        let client = &document["client"];
        let hosts = document["hosts"].as_array().into_iter().flatten();
        let agreed = |one: &Value| {
            let is_typed = one["typed"] == Value::Bool(true);
            Some(Agreed { host: one["host"].as_str()?.to_owned(), is_typed })
        };
        Ok(Self {
            audience,
            issuer: text(&document["issuer"])?,
            token: safe(&text(&document["token"])?, "vault", "token")?,
            revocation: document["revocation"]
                .as_str()
                .map(|text| safe(text, "vault", "revocation"))
                .transpose()?,
            client: Known {
                id: text(&client["id"])?,
                secret: hidden(&client["secret"]),
                method: client["method"].as_str().and_then(Method::named).ok_or(WHAT)?,
            },
            hosts: hosts.filter_map(agreed).collect(),
            scopes: document["scopes"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
            access: hidden(&document["access"]).ok_or(WHAT)?,
            refresh: hidden(&document["refresh"]),
            until: document["until"].as_u64().ok_or(WHAT)?,
        })
    }
}

/// How long a token is used, as its endpoint says.
pub(crate) fn life(said: &Value) -> Option<Duration> {
    let seconds = match &said["expires_in"] {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    seconds.map(|seconds: u64| {
        let life = Duration::from_secs(seconds.min(LONGEST));
        // One that lives shorter than the margin is used for half of its life.
        life.saturating_sub(MARGIN).max(life / 2)
    })
}

/// Whether a token can be told in a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// This moment, in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Kept {
        Kept {
            audience: Audience::server("https://a.test/mcp".to_owned()).unwrap(),
            issuer: "https://as.test".to_owned(),
            token: Url::parse("https://as.test/token").unwrap(),
            revocation: None,
            client: Known {
                id: "me".to_owned(),
                secret: Secret::new("s3cret".to_owned()).ok(),
                method: Method::Basic,
            },
            hosts: vec![Agreed { host: "as.test:443".to_owned(), is_typed: false }],
            scopes: vec!["a".to_owned()],
            access: Secret::new("t0ken".to_owned()).unwrap(),
            refresh: Secret::new("l0ng".to_owned()).ok(),
            until: 7,
        }
    }

    #[test]
    fn what_is_sealed_is_read_again_and_shown_by_nobody() {
        let mut package = kept();
        package.audience = Audience::package("TOKEN", None);
        let read = Kept::of_secret(&package.to_secret().unwrap()).unwrap();
        assert_eq!(read.audience, package.audience);
        let kept = kept();
        let again = Kept::of_secret(&kept.to_secret().unwrap()).unwrap();
        assert_eq!(again.to_secret().unwrap().expose(), kept.to_secret().unwrap().expose());
        let shown = format!("{again:?} {:?}", again.bearer());
        for secret in ["s3cret", "t0ken", "l0ng"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        for text in ["{}", "nonsense", r#"{"resource":"http://a.test"}"#] {
            assert!(Kept::of_secret(&Secret::new(text.to_owned()).unwrap()).is_err());
        }
    }

    #[test]
    fn a_token_is_told_to_its_resource_alone() {
        let bearer = kept().bearer();
        let told = |text: &str| bearer.header(&Url::parse(text).unwrap()).is_some();
        assert!(told("https://a.test/mcp") && told("https://a.test/mcp/x"));
        for other in
            ["http://a.test/mcp", "https://a.test/", "https://a.test:8/mcp", "https://b.test/mcp"]
        {
            assert!(!told(other), "{other}");
        }
        assert!(bearer.header(&Url::parse("https://a.test/mcp").unwrap()).unwrap().is_sensitive());
        assert!(bearer.value().is_none());
    }

    #[test]
    fn a_token_for_a_package_is_its_secret_and_goes_into_no_request_of_ours() {
        let url = Url::parse("https://a.test/mcp").unwrap();
        let mut kept = kept();
        kept.audience = Audience::package("TOKEN", Some(&url));
        let bearer = kept.bearer();
        assert!(bearer.header(&url).is_none());
        let (name, token) = bearer.value().unwrap();
        assert_eq!((name, token.expose()), ("TOKEN", "t0ken"));
    }

    #[test]
    fn a_private_host_is_reached_only_where_the_owner_typed_it() {
        let rule = |host: &str, is_typed| Agreed { host: host.to_owned(), is_typed }.rule();
        assert!(rule("127.0.0.1:80", false).is_none());
        assert!(rule("127.0.0.1:80", true).is_some());
        assert_eq!(rule("as.test:443", false).unwrap().reach(), egress::Reach::Public);
    }

    #[test]
    fn answers_are_read_strictly_and_missing_parts_keep_the_old() {
        let read = |said: Value| Granted::read(&said, 100);
        let granted = read(json!({ "access_token": "n", "expires_in": "3600" })).unwrap();
        assert_eq!(granted.until, 100 + 3570);
        let renewed = kept().renewed(granted);
        assert_eq!(renewed.access.expose(), "n");
        assert_eq!(renewed.refresh.unwrap().expose(), "l0ng");
        assert_eq!(renewed.scopes, ["a"]);
        for said in [
            json!({}),
            json!({ "access_token": "" }),
            json!({ "access_token": "a b" }),
            json!({ "access_token": "a\r\nb" }),
            json!({ "access_token": "a", "token_type": "mac" }),
        ] {
            assert!(read(said.clone()).is_err(), "{said}");
        }
    }
}
