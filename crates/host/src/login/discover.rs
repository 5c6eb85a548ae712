//! Who guards a server, and what the authorization server says about itself.

use std::time::Duration;

use egress::http::{
    Client, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Url,
};
use serde_json::{Value, json};

use super::address::{check_safe, resource_documents, safe, server_documents, shown};
use super::audience::Audience;
use super::card::{self, Endpoints, Guard};
use super::challenge::bearer;
use super::error::LoginError;
use super::metadata::{Resource, Server, split_scopes};
use super::talk::{Fetched, get, said_by, send};

/// The name by which a server says where its metadata is.
const RESOURCE_METADATA: &str = "resource_metadata";

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is spoken with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// MCP.
    Mcp,
    /// A2A: it is an agent.
    A2a,
}

impl Protocol {
    /// What speaks it.
    fn who(self) -> &'static str {
        match self {
            Self::Mcp => "server",
            Self::A2a => "agent",
        }
    }

    /// A question that anybody may ask, and that does nothing, by its name and as it is sent.
    fn greeting(self) -> (&'static str, Value) {
        let (name, method, params) = match self {
            Self::Mcp => {
                let params = json!({
                    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info(),
                });
                ("the greeting of MCP", "initialize", params)
            }
            Self::A2a => ("a question of A2A", "GetTask", json!({ "id": "none" })),
        };
        (name, json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
    }
}

/// Who guards a server, or signs people in for a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What tokens are for.
    pub audience: Audience,
    /// Who signs people in: the first it names.
    pub issuer: Url,
    /// What is known of that one without metadata.
    pub endpoints: Option<Endpoints>,
    /// The scopes it wants: those of its challenge, else those it knows.
    pub scopes: Vec<String>,
    /// What was looked for in vain before it was taken for its own authorization server.
    pub looked: Vec<String>,
}

impl Found {
    /// The one whom the owner named.
    pub fn named(issuer: Url, audience: Audience) -> Self {
        Self { audience, issuer, endpoints: None, scopes: Vec::new(), looked: Vec::new() }
    }

    /// The one whom the card of an agent names.
    fn of_card(guard: Guard, endpoint: &Url) -> Result<Self, LoginError> {
        let Guard { issuer, scopes, endpoints } = guard;
        let audience = Audience::at(endpoint, None)?;
        Ok(Self { audience, issuer, endpoints, scopes, looked: Vec::new() })
    }
}

/// Asks a server who guards it: by its challenge, else by what lies at the known places; an agent also by its card.
pub async fn find(
    client: &Client,
    endpoint: &Url,
    protocol: Protocol,
) -> Result<Found, LoginError> {
    check_safe(endpoint)?;
    let mut looked = Vec::new();
    let asked = ask(client, endpoint, protocol).await?;
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
            nothing if protocol == Protocol::A2a => {
                return by_card(client, endpoint, &asked, nothing).await;
            }
            Known::Odd(error) if asked.wants_login() => return Err(error),
            Known::Nothing(words) if asked.wants_login() => {
                looked = words;
                Resource::of_old(endpoint)
            }
            nothing => {
                return Err(not_wanted(endpoint, &asked, protocol, &nothing.words(endpoint)));
            }
        },
    };
    let issuer = resource.servers.into_iter().next().ok_or(LoginError::NoServer)?;
    let scopes = asked.scopes.unwrap_or(resource.scopes);
    let audience = Audience::server(resource.name)?;
    Ok(Found { audience, issuer, endpoints: None, scopes, looked })
}

/// Who guards an agent that has no metadata of its own.
async fn by_card(
    client: &Client,
    endpoint: &Url,
    asked: &Asked,
    nothing: Known,
) -> Result<Found, LoginError> {
    let protocol = Protocol::A2a;
    let mut place = endpoint.clone();
    place.set_query(None);
    place.set_path(card::PLACE);
    let words = match get(client, &place, protocol.who()).await? {
        Fetched::Document(body) => {
            let guard = card::guard(&said_by(&body)).map_err(|error| error.at(&place))?;
            match guard {
                Some(guard) => {
                    let mut found = Found::of_card(guard, endpoint)?;
                    found.scopes = asked.scopes.clone().unwrap_or(found.scopes);
                    return Ok(found);
                }
                None => format!("the card at `{}` does not say where to sign in", shown(&place)),
            }
        }
        Fetched::Nothing(words) => words,
    };
    match nothing {
        Known::Odd(error) if asked.wants_login() => Err(error),
        Known::Nothing(mut looked) if asked.wants_login() => {
            looked.push(words);
            Err(LoginError::NoMetadata { what: protocol.who(), looked })
        }
        nothing => {
            let words = format!("{}; {words}", nothing.words(endpoint));
            Err(not_wanted(endpoint, asked, protocol, &words))
        }
    }
}

/// Asks the authorization server that was found for its metadata. The first document there is counts; one that is
/// wrong is not passed over for another. Where a card names endpoints, metadata counts that is about them.
pub async fn meet(client: &Client, found: &Found) -> Result<Server, LoginError> {
    let issuer = &found.issuer;
    check_safe(issuer)?;
    let mut looked = found.looked.clone();
    for url in server_documents(issuer) {
        match get(client, &url, "authorization server").await? {
            Fetched::Document(body) => {
                let read = Server::read(&body, issuer).map_err(|error| error.at(&url));
                return match (read, &found.endpoints) {
                    (Ok(server), Some(named)) if server.token == named.token => Ok(server),
                    (_, Some(named)) => Ok(Server::of_card(named)),
                    (read, None) => read,
                };
            }
            Fetched::Nothing(words) => looked.push(words),
        }
    }
    if let Some(named) = &found.endpoints {
        return Ok(Server::of_card(named));
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
    /// What an answer says, by its status and its headers.
    fn of(status: StatusCode, headers: &HeaderMap) -> Result<Self, LoginError> {
        let mut asked = Self { status, metadata: None, scopes: None };
        if !asked.wants_login() {
            return Ok(asked);
        }
        if let Some(bearer) = bearer(headers) {
            let metadata = bearer.parameter(RESOURCE_METADATA);
            asked.metadata =
                metadata.map(|text| safe(text, "server", RESOURCE_METADATA)).transpose()?;
            asked.scopes = bearer.parameter("scope").map(split_scopes);
        }
        Ok(asked)
    }

    fn wants_login(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }
}

/// Greets a server as anybody would. One of MCP may greet everybody, and want to know only who asks for its tools.
async fn ask(client: &Client, endpoint: &Url, protocol: Protocol) -> Result<Asked, LoginError> {
    let (_, greeting) = protocol.greeting();
    let greeted = say(client, endpoint, protocol, HeaderMap::new(), &greeting).await?;
    let asked = Asked::of(greeted.status, &greeted.headers)?;
    if asked.wants_login() || protocol == Protocol::A2a {
        return Ok(asked);
    }
    let (headers, question) = tools_question(&greeted);
    if let Ok(listed) = say(client, endpoint, protocol, headers, &question).await {
        let listed = Asked::of(listed.status, &listed.headers)?;
        if listed.wants_login() {
            return Ok(listed);
        }
    }
    match greeted.status.as_u16() {
        // One of the oldest way is not told anything where it is listened to.
        404 | 405 => match listen(client, endpoint).await {
            Some((status, headers)) => Asked::of(status, &headers),
            None => Ok(asked),
        },
        _ => Ok(asked),
    }
}

/// Sends a server one message.
async fn say(
    client: &Client,
    endpoint: &Url,
    protocol: Protocol,
    headers: HeaderMap,
    message: &Value,
) -> Result<Response, LoginError> {
    let mut request = Request::new(Method::POST, endpoint.clone());
    request.headers = headers;
    for (name, value) in
        [("accept", "application/json, text/event-stream"), ("content-type", "application/json")]
    {
        request.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    request.body = Some(message.to_string().into_bytes());
    request.most = 256 << 10;
    request.within = PATIENCE;
    request.redirects = 0;
    send(client, request, protocol.who()).await
}

/// The question for the tools of a server, in the words of its era: one that was greeted is of the older.
fn tools_question(greeted: &Response) -> (HeaderMap, Value) {
    const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
    const NEWER: &str = "2026-07-28";
    let mut headers = HeaderMap::new();
    let params = if greeted.status.is_success() {
        headers.extend(greeted.headers.get(SESSION).cloned().map(|value| (SESSION, value)));
        json!({})
    } else {
        for (name, value) in [("mcp-protocol-version", NEWER), ("mcp-method", "tools/list")] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        json!({ "_meta": {
            "io.modelcontextprotocol/protocolVersion": NEWER,
            "io.modelcontextprotocol/clientInfo": client_info(),
            "io.modelcontextprotocol/clientCapabilities": {},
        } })
    };
    (headers, json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": params }))
}

/// Who we say that we are.
fn client_info() -> Value {
    json!({ "name": "haft", "version": env!("CARGO_PKG_VERSION") })
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

impl Known {
    /// What was looked for in vain.
    fn words(&self, endpoint: &Url) -> String {
        match self {
            Self::Odd(error) => error.to_string(),
            Self::Found(_) | Self::Nothing(_) => {
                let places: Vec<_> = resource_documents(endpoint).iter().map(shown).collect();
                format!("there is no metadata at `{}`", places.join("` or `"))
            }
        }
    }
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

/// What was asked and looked for in vain.
fn not_wanted(endpoint: &Url, asked: &Asked, protocol: Protocol, found: &str) -> LoginError {
    let (greeting, _) = protocol.greeting();
    let (place, status) = (shown(endpoint), asked.status);
    let greeted = format!("`{place}` answered {status} to {greeting}, and not 401");
    LoginError::NotWanted { who: protocol.who(), looked: vec![greeted, found.to_owned()] }
}
