//! Where a server is that a registry knows.

use std::time::Instant;

use egress::http::{HeaderValue, Method, Request, Url};
use serde_json::Value;

use super::remote::{Line, Way};
use crate::error::{CallError, Kind};
use crate::run::place_of;
use crate::strict::strict;

/// The longest answer of a registry.
const LONGEST: u64 = 8 << 20;

/// How many bytes all its answers may have together, until a server is found.
const LONGEST_ALL: u64 = 32 << 20;

/// How many pages of a list are read.
const MOST_PAGES: usize = 20;

/// A server, as a registry tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    url: Url,
    way: Way,
    /// Its tools, where the registry says.
    tools: Option<Vec<String>>,
}

/// Finds the server that has a tool: the one of that name, or the only one there is. A registry that is no
/// registry but a server is itself the answer.
pub(super) async fn find(
    line: &Line,
    registry: &Url,
    server: Option<&str>,
    tool: &str,
    until: Instant,
) -> Result<(Url, Way), CallError> {
    line.check(registry)?;
    let (mut entries, mut left) = (Vec::new(), LONGEST_ALL);
    if let Some(name) = server {
        let one = below(registry, &["v0.1", "servers", name, "versions", "latest"]);
        if let Some(answer) = get(line, one, &mut left, until).await? {
            entries = read(&answer);
        }
    }
    if entries.is_empty() {
        entries = list(line, registry, &mut left, until).await?;
    }
    if entries.is_empty() {
        match get(line, registry.clone(), &mut left, until).await? {
            Some(catalog) => entries = read(&catalog),
            None => return Ok((registry.clone(), Way::Either)),
        }
    }
    choose(&entries, server, tool).map(|entry| (entry.url.clone(), entry.way))
}

/// The servers of a registry, page by page.
async fn list(
    line: &Line,
    registry: &Url,
    left: &mut u64,
    until: Instant,
) -> Result<Vec<Entry>, CallError> {
    let mut entries = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let mut page = below(registry, &["v0.1", "servers"]);
        page.query_pairs_mut().append_pair("limit", "100").append_pair("version", "latest");
        if let Some(cursor) = &cursor {
            page.query_pairs_mut().append_pair("cursor", cursor);
        }
        let Some(answer) = get(line, page, left, until).await? else { break };
        entries.extend(read(&answer));
        cursor = answer.pointer("/metadata/nextCursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    Ok(entries)
}

/// A path below that of a registry, whose own query and last slash do not matter.
fn below(registry: &Url, segments: &[&str]) -> Url {
    let mut url = registry.clone();
    url.set_query(None);
    url.set_fragment(None);
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

/// A JSON document, where there is one. One that cannot be had now is no sign that there is none.
async fn get(
    line: &Line,
    url: Url,
    left: &mut u64,
    until: Instant,
) -> Result<Option<Value>, CallError> {
    let place = place_of(&url);
    let mut request = Request::new(Method::GET, url);
    request.headers.insert("accept", HeaderValue::from_static("application/json"));
    request.most = LONGEST.min(*left);
    request.within = until.saturating_duration_since(Instant::now());
    let response = line.client.send(request).await.map_err(|error| {
        let message = format!("the registry at `{place}` was not reached: {error}");
        CallError::new(Kind::Unavailable, message)
    })?;
    *left = left.saturating_sub(response.body.len() as u64);
    match response.status.as_u16() {
        200..300 => Ok(std::str::from_utf8(&response.body).ok().and_then(strict)),
        // A server that is no registry says so in many ways.
        400..=428 | 430..=499 => Ok(None),
        status => {
            let message = format!("the registry answered {}", response.status);
            let error = CallError::new(Kind::Unavailable, message).with("status", status);
            Err(if matches!(status, 429 | 502..=504) { error.passing() } else { error })
        }
    }
}

/// The servers of a document, in any of the forms that are in use.
fn read(document: &Value) -> Vec<Entry> {
    if let Some(Value::Object(servers)) = document.get("mcpServers") {
        return servers.iter().filter_map(|(name, one)| entry(one, Some(name))).collect();
    }
    if let Some(Value::Array(servers)) = document.get("servers") {
        return servers.iter().filter_map(|one| entry(one, None)).collect();
    }
    match document {
        Value::Array(servers) => servers.iter().filter_map(|one| entry(one, None)).collect(),
        one => entry(one, None).into_iter().collect(),
    }
}

fn entry(document: &Value, name: Option<&str>) -> Option<Entry> {
    let server = document.get("server").unwrap_or(document);
    let text = |key: &str| server.get(key).and_then(Value::as_str);
    let name = name.or_else(|| text("name")).or_else(|| text("id"))?.to_owned();
    let remotes = server.get("remotes").and_then(Value::as_array);
    let mut ways = remotes.into_iter().flatten().chain([server]).filter_map(remote);
    let (url, way) = ways.next()?;
    let tools = server.get("tools").and_then(Value::as_array).map(|tools| {
        let name =
            |tool: &Value| tool.as_str().or_else(|| tool.get("name")?.as_str()).map(str::to_owned);
        tools.iter().filter_map(name).collect()
    });
    Some(Entry { name, url, way, tools })
}

/// Where a server is reached. An address with a blank to be filled in is none.
fn remote(document: &Value) -> Option<(Url, Way)> {
    let text = |key: &str| document.get(key).and_then(Value::as_str);
    let way = match text("type").or_else(|| text("transport")) {
        Some("streamable-http" | "http") => Way::Streamable,
        Some("sse") => Way::Events,
        None => Way::Either,
        Some(_) => return None,
    };
    let url = text("url").filter(|url| !url.contains(['{', '$']))?;
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    Some((url, way))
}

fn choose<'e>(
    entries: &'e [Entry],
    server: Option<&str>,
    tool: &str,
) -> Result<&'e Entry, CallError> {
    let unknown = |message: String| {
        let names: Vec<_> = entries.iter().take(20).map(|entry| entry.name.clone()).collect();
        CallError::new(Kind::Unknown, message).with("servers", names)
    };
    if let Some(name) = server {
        let found = entries.iter().find(|entry| entry.name == name);
        return found.ok_or_else(|| {
            unknown(format!("the registry knows no server `{name}` that can be reached"))
        });
    }
    let lists = |entry: &&Entry| {
        entry.tools.as_ref().is_some_and(|tools| tools.iter().any(|one| one == tool))
    };
    let listing: Vec<_> = entries.iter().filter(lists).collect();
    match (listing.as_slice(), entries) {
        ([only], _) => Ok(only),
        ([], [only]) => Ok(only),
        ([], []) => Err(unknown("the registry knows no server that can be reached".to_owned())),
        _ => Err(unknown(format!(
            "the registry knows more than one server that may have `{tool}`; the package must name one by `server_id`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(document: &Value, server: Option<&str>, tool: &str) -> Option<(String, Way)> {
        let entries = read(document);
        choose(&entries, server, tool).ok().map(|entry| (entry.url.to_string(), entry.way))
    }

    #[test]
    fn every_form_of_catalog_is_read() {
        let official = json!({ "servers": [
            { "server": { "name": "a/one", "remotes": [
                { "type": "stdio-ish", "url": "https://a.example/no" },
                { "type": "streamable-http", "url": "https://a.example/{tenant}" },
                { "type": "sse", "url": "https://a.example/sse" },
            ] }, "_meta": {} },
            { "server": { "name": "a/two", "packages": [] } },
        ], "metadata": { "count": 2 } });
        let sse = Some(("https://a.example/sse".to_owned(), Way::Events));
        assert_eq!(found(&official, Some("a/one"), "t"), sse);
        assert_eq!(found(&official, None, "t"), sse);
        assert_eq!(found(&official, Some("a/two"), "t"), None);
        let clients = json!({ "mcpServers": {
            "x": { "type": "http", "url": "https://x.example/mcp" },
            "local": { "command": "node" },
        } });
        let streamable = Some(("https://x.example/mcp".to_owned(), Way::Streamable));
        assert_eq!(found(&clients, None, "t"), streamable);
        let plain = json!([
            { "id": "p", "url": "https://p.example/", "tools": ["other"] },
            { "id": "q", "url": "https://q.example/", "tools": [{ "name": "t" }] },
        ]);
        assert_eq!(found(&plain, None, "t"), Some(("https://q.example/".to_owned(), Way::Either)));
        assert_eq!(found(&plain, None, "unlisted"), None);
        let one = json!({ "server": { "name": "n", "remotes": [{ "type": "http", "url": "file:///etc" }] } });
        assert_eq!(found(&one, Some("n"), "t"), None);
    }

    #[test]
    fn names_stay_one_segment() {
        let registry = Url::parse("https://r.example/base/?x=1#y").unwrap();
        let url = below(&registry, &["v0.1", "servers", "io.github/../x", "versions", "latest"]);
        assert_eq!(
            url.as_str(),
            "https://r.example/base/v0.1/servers/io.github%2F..%2Fx/versions/latest"
        );
    }
}
