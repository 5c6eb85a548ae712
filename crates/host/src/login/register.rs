//! What we are called at an authorization server.

use egress::http::{Client, Url};
use serde_json::{Value, json};
use vault::Secret;

use super::error::LoginError;
use super::metadata::{DEVICE_CODE, Server};
use super::talk::{post, refused, said};

/// What we are called, and how we say so.
#[derive(Clone, Debug)]
pub struct Known {
    /// Our name there.
    pub id: String,
    /// What proves it, where something has to.
    pub secret: Option<Secret>,
    /// Where it is put.
    pub method: Method,
}

/// Where a secret is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// There is none.
    None,
    /// Into a header.
    Basic,
    /// Into the form.
    Post,
}

impl Method {
    /// Its name, as servers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// The method of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post].into_iter().find(|one| one.name() == name)
    }

    /// The first of these that a server takes; one that does not say takes the first.
    fn taken_by(server: &Server, wanted: &[Self]) -> Option<Self> {
        let takes = |one: &&Self| {
            server.methods.is_empty() || server.methods.iter().any(|name| name == one.name())
        };
        wanted.iter().find(takes).copied()
    }
}

/// How the owner wants us to be known.
#[derive(Clone, Debug)]
pub enum Identity {
    /// As the owner registered us.
    Given {
        /// The name.
        id: String,
        /// What proves it.
        secret: Option<Secret>,
    },
    /// By the URL of a document about us, where the server reads such; else as a stranger.
    Document(Url),
    /// As a stranger who registers.
    Stranger,
}

/// How somebody is to sign in, which whoever registers has to say.
#[derive(Clone, Copy, Debug)]
pub enum Way<'w> {
    /// By a browser, which is sent back to this URL.
    Browser(&'w Url),
    /// By a code that is typed at a browser on any machine.
    Device,
}

impl Way<'_> {
    /// What tokens are asked for with.
    fn grants(self) -> [&'static str; 2] {
        let first = match self {
            Self::Browser(_) => "authorization_code",
            Self::Device => DEVICE_CODE,
        };
        [first, "refresh_token"]
    }
}

/// Finds out what we are called at a server, and registers where that is needed.
pub async fn identify(
    client: &Client,
    server: &Server,
    identity: Identity,
    way: Way<'_>,
    scopes: &[String],
) -> Result<Known, LoginError> {
    match identity {
        Identity::Given { id, secret } => {
            let wanted: &[_] = match secret {
                Some(_) => &[Method::Basic, Method::Post],
                None => &[Method::None],
            };
            // A server that lists less than it takes is no reason to give up.
            let method = Method::taken_by(server, wanted).unwrap_or(wanted[0]);
            Ok(Known { id, secret, method })
        }
        Identity::Document(url) if server.reads_documents => {
            Ok(Known { id: url.to_string(), secret: None, method: Method::None })
        }
        Identity::Document(_) | Identity::Stranger => register(client, server, way, scopes).await,
    }
}

async fn register(
    client: &Client,
    server: &Server,
    way: Way<'_>,
    scopes: &[String],
) -> Result<Known, LoginError> {
    const WHAT: &str = "registration endpoint";
    let endpoint = server.registration.as_ref().ok_or(LoginError::NoClient)?;
    let method = Method::taken_by(server, &[Method::None, Method::Post, Method::Basic]);
    let method = method.unwrap_or(Method::None);
    let mut about = json!({
        "client_name": "Haft",
        "grant_types": way.grants(),
        // Nothing comes back where no browser is sent back to us.
        "response_types": [],
        "token_endpoint_auth_method": method.name(),
        "application_type": "native",
    });
    if let Way::Browser(redirect) = way {
        about["redirect_uris"] = json!([redirect.as_str()]);
        if redirect.scheme() == "https" {
            about["application_type"] = "web".into();
        }
        about["response_types"] = json!(["code"]);
    }
    if !scopes.is_empty() {
        about["scope"] = scopes.join(" ").into();
    }
    let body = about.to_string().into_bytes();
    let response = post(client, endpoint, body, "application/json", None, WHAT).await?;
    if !matches!(response.status.as_u16(), 200 | 201) {
        return Err(refused(&response, WHAT));
    }
    let said = said(&response);
    let odd = |how: &str| LoginError::odd(WHAT, how);
    // A server may register less than it was asked for. One that has a page says so there.
    let is_listed = |grants: &Vec<Value>| grants.iter().any(|one| one == DEVICE_CODE);
    let listed = said["grant_types"].as_array();
    if matches!(way, Way::Device) && listed.is_some_and(|grants| !is_listed(grants)) {
        return Err(odd("it does not let us sign in by device code"));
    }
    let id = said["client_id"].as_str().filter(|id| is_plain(id));
    let id = id.ok_or_else(|| odd("it gave no client id"))?.to_owned();
    let secret = said["client_secret"].as_str().filter(|secret| !secret.is_empty());
    let secret = secret.map(|secret| Secret::new(secret.to_owned()));
    let secret = secret.transpose().map_err(|_| odd("its client secret is too long"))?;
    let method = match (said["token_endpoint_auth_method"].as_str(), &secret) {
        (_, None) => Method::None,
        (Some(name), Some(_)) => {
            Method::named(name).ok_or_else(|| odd("it wants a proof that we do not have"))?
        }
        (None, Some(_)) if method == Method::Post => Method::Post,
        (None, Some(_)) => Method::Basic,
    };
    Ok(Known { id, secret, method })
}

fn is_plain(id: &str) -> bool {
    (1..=1024).contains(&id.len()) && !id.contains(char::is_control)
}
