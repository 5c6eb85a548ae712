//! Who guards a server, and what the authorization server says about itself.

use std::time::Duration;

use egress::http::{
    Client, HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Url, challenges,
};
use serde_json::json;

use super::address::{check_safe, resource_documents, safe, server_documents, shown};
use super::error::LoginError;
use super::metadata::{Resource, Server, split_scopes};
use super::talk::{Fetched, get, send};

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
    /// What was looked for in vain before it was taken for its own authorization server.
    pub looked: Vec<String>,
}

/// Asks a server who guards it: by its challenge, else by what lies at the known places.
pub async fn find(client: &Client, endpoint: &Url) -> Result<Found, LoginError> {
    check_safe(endpoint)?;
    let mut looked = Vec::new();
    let asked = ask(client, endpoint).await?;
    let resource = match asked.metadata {
        Some(url) => {
            // What a challenge names is read from the server itself, and from nobody else.
            let is_own = url.origin() == endpoint.origin();
            if !is_own {
                return Err(LoginError::Foreign { named: shown(&url) });
            }
            match get(client, &url, "server").await? {
                Fetched::Document(body) => {
                    Resource::read(&body, endpoint).map_err(|error| error.at(&url))?
                }
                Fetched::Nothing(words) => {
                    return Err(LoginError::NoMetadata { what: "server", looked: vec![words] });
                }
            }
        }
        None => match known_places(client, endpoint).await? {
            Known::Found(resource) => resource,
            Known::Odd(error) if asked.wants_login() => return Err(error),
            Known::Nothing(words) if asked.wants_login() => {
                looked = words;
                Resource::of_old(endpoint)
            }
            nothing => return Err(not_wanted(endpoint, asked.status, nothing)),
        },
    };
    let issuer = resource.servers.into_iter().next().ok_or(LoginError::NoServer)?;
    let scopes = asked.scopes.unwrap_or(resource.scopes);
    Ok(Found { resource: resource.name, issuer, scopes, looked })
}

/// Asks the authorization server that was found for its metadata. The first document there is counts; one that is
/// wrong is not passed over for another.
pub async fn meet(client: &Client, found: &Found) -> Result<Server, LoginError> {
    let issuer = &found.issuer;
    check_safe(issuer)?;
    let mut looked = found.looked.clone();
    for url in server_documents(issuer) {
        match get(client, &url, "authorization server").await? {
            Fetched::Document(body) => {
                return Server::read(&body, issuer).map_err(|error| error.at(&url));
            }
            Fetched::Nothing(words) => looked.push(words),
        }
    }
    let what = if found.looked.is_empty() { "authorization server" } else { "server" };
    Err(LoginError::NoMetadata { what, looked })
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
    /// What was looked for.
    Nothing(Vec<String>),
}

async fn known_places(client: &Client, endpoint: &Url) -> Result<Known, LoginError> {
    let mut looked = Vec::new();
    for url in resource_documents(endpoint) {
        let body = match get(client, &url, "server").await {
            Ok(Fetched::Document(body)) => body,
            Ok(Fetched::Nothing(words)) => {
                looked.push(words);
                continue;
            }
            Err(LoginError::Answered { what, status, .. }) => {
                let error = LoginError::odd(what, format!("the answer is {status}")).at(&url);
                return Ok(Known::Odd(error));
            }
            Err(error) => return Err(error),
        };
        return match Resource::read(&body, endpoint).map_err(|error| error.at(&url)) {
            Ok(resource) => Ok(Known::Found(resource)),
            Err(error @ LoginError::Odd { .. }) => Ok(Known::Odd(error)),
            Err(error) => Err(error),
        };
    }
    Ok(Known::Nothing(looked))
}

/// What was looked for in vain.
fn not_wanted(endpoint: &Url, status: StatusCode, known: Known) -> LoginError {
    let greeted =
        format!("`{}` answered {status} to the greeting of MCP, and not 401", shown(endpoint));
    let found = match known {
        Known::Odd(error) => error.to_string(),
        Known::Found(_) | Known::Nothing(_) => {
            let places: Vec<_> = resource_documents(endpoint).iter().map(shown).collect();
            format!("there is no metadata at `{}`", places.join("` or `"))
        }
    };
    LoginError::NotWanted { looked: vec![greeted, found] }
}
