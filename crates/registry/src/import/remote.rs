//! A registry of the MCP world, page by page.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use egress::Rules;
use egress::http::{
    Client, HeaderName, HeaderValue, Method, Request, Response, SendError, SetupError, Url,
};
use egress::resolve::SystemResolver;

use crate::client::{Address, Token};
use crate::link;
use crate::mcp::Page;
use crate::read::{Unreadable, read};

/// The most bytes of a page.
const PAGE_BYTES: u64 = 16 << 20;
/// The most bytes of a dump.
const DUMP_BYTES: u64 = 64 << 20;
/// How many servers are asked for at once.
const PAGE: &str = "100";
/// How long a page may take.
const WITHIN: Duration = Duration::from_mins(1);
/// How often a page is asked for before we give up.
const ATTEMPTS: u32 = 6;
/// How long is waited before it is asked for again, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));
/// The longest cursor.
const CURSOR: usize = 4 << 10;

/// Asks one place for what it holds.
#[derive(Clone, Debug)]
pub struct Asker {
    client: Client,
    place: Url,
    token: Option<HeaderValue>,
}

/// The pages of a registry.
#[derive(Debug)]
pub struct Pages {
    asker: Asker,
    address: Url,
    cursor: Option<String>,
    seen: HashSet<String>,
    is_over: bool,
    pause: Duration,
}

/// Which servers are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The last version of each alone.
    pub latest: bool,
    /// A part of their names.
    pub search: Option<String>,
    /// Those that have changed since this moment, as RFC 3339 writes it.
    pub updated_since: Option<String>,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// Why there is no page.
#[derive(Debug)]
pub enum PageError {
    /// It cannot be reached.
    Send(SendError),
    /// It answers with this status, and perhaps why.
    Status(u16, String),
    /// It answers what no registry answers.
    Unreadable(Unreadable),
    /// It leads in a circle.
    Circle,
}

impl fmt::Display for PageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageError::Send(_) => out.write_str("the registry cannot be reached"),
            PageError::Status(status, why) if why.is_empty() => {
                write!(out, "the registry answers with {status}")
            }
            PageError::Status(status, why) => {
                write!(out, "the registry answers with {status}: {why}")
            }
            PageError::Unreadable(_) => out.write_str("the registry answers what none answers"),
            PageError::Circle => out.write_str("the pages of the registry lead in a circle"),
        }
    }
}

impl std::error::Error for PageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PageError::Send(error) => Some(error),
            PageError::Unreadable(error) => Some(error),
            PageError::Status(..) | PageError::Circle => None,
        }
    }
}

impl Asker {
    /// Asks at this address, which may be a private place. A token is shown there and to nobody else, and not where
    /// others could read it on the way.
    pub fn new(address: &Address, token: Option<&Token>) -> Result<Self, SetupError> {
        let rules = Rules::from_iter(address.rule().ok());
        let client = Client::new(rules, Arc::new(SystemResolver::default()))?;
        let token = token.filter(|_| address.is_private_talk()).and_then(Token::header);
        Ok(Self { client, place: address.url().clone(), token })
    }

    fn request(&self, address: &Url, most: u64) -> Request {
        let mut request = Request::new(Method::GET, address.clone());
        (request.most, request.within) = (most, WITHIN);
        let is_there = address.origin() == self.place.origin();
        if let Some(token) = self.token.clone().filter(|_| is_there) {
            request.headers.insert(HeaderName::from_static("authorization"), token);
        }
        request
    }
}

impl Pages {
    /// The pages of the registry where somebody asks: at the host, or at its list of servers.
    pub fn new(asker: Asker, wanted: &Wanted) -> Self {
        let mut address = asker.place.clone();
        let path = address.path().trim_end_matches('/').to_owned();
        let path = match path.rsplit('/').next() {
            Some("servers") => path,
            Some("v0" | "v0.1") => format!("{path}/servers"),
            _ => format!("{path}/v0.1/servers"),
        };
        address.set_path(&path);
        {
            let mut query = address.query_pairs_mut();
            query.append_pair("limit", PAGE);
            // Whoever imports again must learn of what was taken back.
            query.append_pair("include_deleted", "true");
            if wanted.latest {
                query.append_pair("version", "latest");
            }
            if let Some(search) = &wanted.search {
                query.append_pair("search", search);
            }
            if let Some(since) = &wanted.updated_since {
                query.append_pair("updated_since", since);
            }
        }
        Self {
            asker,
            address,
            cursor: wanted.cursor.clone(),
            seen: HashSet::new(),
            is_over: false,
            pause: PAUSE.0,
        }
    }

    /// Waits for so long before a page is asked for again, at first; each time is twice as long as the one before.
    pub fn pausing(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// What the next page is asked for with: whoever was broken off goes on here.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// The next page; nothing after the last.
    pub async fn next(&mut self) -> Result<Option<Page>, PageError> {
        if self.is_over {
            return Ok(None);
        }
        let mut address = self.address.clone();
        if let Some(cursor) = &self.cursor {
            address.query_pairs_mut().append_pair("cursor", cursor);
        }
        let response = ask(&self.asker, &address, PAGE_BYTES, self.pause).await?;
        let page: Page = read(&response.body).map_err(PageError::Unreadable)?;
        let next = page.metadata.as_ref().and_then(|metadata| metadata.next_cursor.clone());
        match next.filter(|next| !next.is_empty()) {
            Some(next) => {
                if next.len() > CURSOR || !self.seen.insert(next.clone()) {
                    return Err(PageError::Circle);
                }
                self.cursor = Some(next);
            }
            None => {
                self.is_over = true;
                self.cursor = None;
            }
        }
        Ok(Some(page))
    }
}

/// The dump of a registry, or a page of a catalog, from an address of its own; and where it goes on.
pub async fn dump(asker: &Asker, address: &Url) -> Result<(Vec<u8>, Option<Url>), PageError> {
    let answer = ask(asker, address, DUMP_BYTES, PAUSE.0).await?;
    let next = link::next(&answer.headers, &answer.url);
    Ok((answer.body, next))
}

/// Asks until there is an answer that will not be another one later.
async fn ask(
    asker: &Asker,
    address: &Url,
    most: u64,
    mut pause: Duration,
) -> Result<Response, PageError> {
    let mut attempt = 1;
    loop {
        let is_last = attempt >= ATTEMPTS;
        let mut wait = pause;
        match asker.client.send(asker.request(address, most)).await {
            Ok(response) if response.status.is_success() => return Ok(response),
            Ok(response) => {
                let status = response.status.as_u16();
                if is_last || !(status == 429 || status >= 500) {
                    return Err(PageError::Status(status, told(&response.body)));
                }
                let after = response.headers.get("retry-after");
                let seconds = after.and_then(|after| after.to_str().ok()?.parse().ok());
                wait = seconds.map_or(pause, Duration::from_secs).min(PAUSE.1);
            }
            Err(error) if is_last || matches!(error, SendError::Refused { .. }) => {
                return Err(PageError::Send(error));
            }
            Err(_) => {}
        }
        tokio::time::sleep(wait).await;
        pause = (pause * 2).min(PAUSE.1);
        attempt += 1;
    }
}

/// What a registry says of a refusal, in a line.
fn told(body: &[u8]) -> String {
    let said: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let texts = [&said["detail"], &said["error"]["message"], &said["error"]];
    let text = texts.into_iter().find_map(serde_json::Value::as_str).unwrap_or_default();
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_registry_may_be_written_in_several_ways() {
        for (typed, path) in [
            ("http://127.0.0.1:1", "/v0.1/servers"),
            ("http://127.0.0.1:1/", "/v0.1/servers"),
            ("http://127.0.0.1:1/api/", "/api/v0.1/servers"),
            ("http://127.0.0.1:1/v0", "/v0/servers"),
            ("http://127.0.0.1:1/v0.1/servers", "/v0.1/servers"),
        ] {
            let address = Address::parse(typed).expect("an address");
            let asker = Asker::new(&address, None).expect("a client");
            let pages = Pages::new(asker, &Wanted::default());
            assert_eq!(pages.address.path(), path, "{typed}");
        }
    }
    #[test]
    fn a_token_is_shown_where_it_is_for() {
        let token = Token::parse("haft_x").expect("a token");
        let shown = |place: &str, asked: &str| {
            let address = Address::parse(place).expect("an address");
            let asker = Asker::new(&address, Some(&token)).expect("a client");
            let request = asker.request(&Url::parse(asked).expect("an address"), 1);
            request.headers.contains_key("authorization")
        };
        assert!(shown("https://a.example", "https://a.example/v0.1/servers"));
        for other in ["https://b.example/", "https://a.example:8443/", "http://a.example/"] {
            assert!(!shown("https://a.example", other), "{other}");
        }
        assert!(!shown("http://a.example", "http://a.example/"), "everybody could read it");
    }
}
