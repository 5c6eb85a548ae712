//! Who guards a server, and what the authorization server says about itself.

use std::time::Duration;

use egress::http::{
    Client, HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Url, challenges,
};
use serde_json::json;

use super::address::{check_safe, resource_documents, safe, server_documents, shown};
use super::error::LoginError;
use super::metadata::{Resource, Server, split_scopes};
use super::talk::{get, send};

/// The name by which a server says where its metadata is.
const RESOURCE_METADATA: &str = "resource_metadata";

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who guards a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What tokens are asked for.
    pub resource: String,
    /// Who signs people in: the first it names.
    pub issuer: Url,
    /// The scopes it wants: those of its challenge, else those it knows.
    pub scopes: Vec<String>,
}

/// Asks a server who guards it: by its challenge, else by what lies at the known places.
pub async fn find(client: &Client, endpoint: &Url) -> Result<Found, LoginError> {
    check_safe(endpoint)?;
    let asked = ask(client, endpoint).await?;
    let resource = match asked.metadata {
        Some(url) => {
            // What a challenge names is read from the server itself, and from nobody else.
            let is_own = url.origin() == endpoint.origin();
            if !is_own {
                return Err(LoginError::Foreign { named: shown(&url) });
            }
            let body = get(client, &url, "server").await?;
            let body = body.ok_or(LoginError::NoServer)?;
            Resource::read(&body, endpoint).map_err(|error| error.at(&url))?
        }
        None => match known_places(client, endpoint).await? {
            Known::Found(resource) => resource,
            Known::Odd(error) if asked.wants_login() => return Err(error),
            Known::Nothing if asked.wants_login() => Resource::of_old(endpoint),
            nothing => return Err(not_wanted(endpoint, asked.status, nothing)),
        },
    };
    let issuer = resource.servers.into_iter().next().ok_or(LoginError::NoServer)?;
    let scopes = asked.scopes.unwrap_or(resource.scopes);
    Ok(Found { resource: resource.name, issuer, scopes })
}

/// Asks an authorization server for its metadata. The first document there is counts; one that is wrong is
/// not passed over for another.
pub async fn meet(client: &Client, issuer: &Url) -> Result<Server, LoginError> {
    check_safe(issuer)?;
    for url in server_documents(issuer) {
        if let Some(body) = get(client, &url, "authorization server").await? {
            return Server::read(&body, issuer).map_err(|error| error.at(&url));
        }
    }
    let places: Vec<_> = server_documents(issuer).iter().map(shown).collect();
    let how = format!("it has no metadata at `{}`", places.join("`, `"));
    Err(LoginError::odd("authorization server", how))
}

/// What a server said when nobody was signed in.
struct Asked {
    status: StatusCode,
    metadata: Option<Url>,
    scopes: Option<Vec<String>>,
}

impl Asked {
    fn wants_login(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }
}

/// Greets a server as anybody would.
async fn ask(client: &Client, endpoint: &Url) -> Result<Asked, LoginError> {
    const WWW_AUTHENTICATE: HeaderName = HeaderName::from_static("www-authenticate");
    let mut request = Request::new(Method::POST, endpoint.clone());
    for (name, value) in
        [("accept", "application/json, text/event-stream"), ("content-type", "application/json")]
    {
        request.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let greeting = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "haft", "version": env!("CARGO_PKG_VERSION") },
        },
    });
    request.body = Some(greeting.to_string().into_bytes());
    request.most = 256 << 10;
    request.within = PATIENCE;
    request.redirects = 0;
    let response = send(client, request, "server").await?;
    let (status, headers) = match response.status.as_u16() {
        // One of the oldest way is not told anything where it is listened to.
        404 | 405 => listen(client, endpoint).await.unwrap_or((response.status, response.headers)),
        _ => (response.status, response.headers),
    };
    let mut asked = Asked { status, metadata: None, scopes: None };
    if !asked.wants_login() {
        return Ok(asked);
    }
    let headers = headers.get_all(WWW_AUTHENTICATE);
    let mut bearers = headers
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(challenges)
        .filter(|challenge| challenge.scheme == "bearer");
    if let Some(bearer) = bearers.next() {
        let metadata = bearer.parameter(RESOURCE_METADATA);
        asked.metadata =
            metadata.map(|text| safe(text, "server", RESOURCE_METADATA)).transpose()?;
        asked.scopes = bearer.parameter("scope").map(split_scopes);
    }
    Ok(asked)
}

/// How a server answers who wants to hear its events; these themselves are not waited for.
async fn listen(client: &Client, endpoint: &Url) -> Option<(StatusCode, HeaderMap)> {
    let request = client.inner().get(endpoint.clone()).header("accept", "text/event-stream");
    let response = tokio::time::timeout(PATIENCE, request.send()).await.ok()?.ok()?;
    Some((response.status(), response.headers().clone()))
}

/// What lies where the specification puts the metadata of a server.
enum Known {
    Found(Resource),
    /// A document, and no metadata.
    Odd(LoginError),
    Nothing,
}

async fn known_places(client: &Client, endpoint: &Url) -> Result<Known, LoginError> {
    for url in resource_documents(endpoint) {
        if let Some(body) = get(client, &url, "server").await? {
            return match Resource::read(&body, endpoint).map_err(|error| error.at(&url)) {
                Ok(resource) => Ok(Known::Found(resource)),
                Err(error @ LoginError::Odd { .. }) => Ok(Known::Odd(error)),
                Err(error) => Err(error),
            };
        }
    }
    Ok(Known::Nothing)
}

/// What was looked for in vain.
fn not_wanted(endpoint: &Url, status: StatusCode, known: Known) -> LoginError {
    let greeted =
        format!("`{}` answered {status} to the greeting of MCP, and not 401", shown(endpoint));
    let found = match known {
        Known::Odd(error) => error.to_string(),
        Known::Found(_) | Known::Nothing => {
            let places: Vec<_> = resource_documents(endpoint).iter().map(shown).collect();
            format!("there is no metadata at `{}`", places.join("` or `"))
        }
    };
    LoginError::NotWanted { looked: vec![greeted, found] }
}
