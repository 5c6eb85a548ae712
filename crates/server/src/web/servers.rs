//! The read side of the MCP registry API, version 0.1.

use std::ops::Bound;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use manifest::dialect::Dialect;
use package::digest::Digest;
use registry::mcp::{Meta, Metadata, Official, Server, ServerList};
use registry::{Yank, moment, server_json};
use serde_json::{Map, Value, json};

use super::answer::{self, Keep};
use super::base;
use super::caller;
use super::problem::Wrong;
use super::refused::Refused;
use super::text::{Parameters, decode};
use crate::service::Registry;
use crate::store::StoreError;
use crate::store::doors::{AskedVersion, ServerQuery, ServerRow};
use crate::store::each::Read;

/// How many servers are on a page: unless said otherwise, and at most.
const PAGE: (u32, u32) = (30, 100);
/// The most versions of one server that are listed.
const VERSIONS: u32 = 1_000;
/// The longest text to look for.
const SEARCH: usize = 200;
/// The most names that the database is asked for at once.
const NAMES: usize = 1_000;
/// What stands between the name and the version in a cursor; neither holds it.
const BETWEEN: char = '\n';
/// The word for the highest version.
const LATEST: &str = "latest";

pub(super) async fn list(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Wrong> {
    let headers = request.headers();
    let parameters = Parameters::read(request.uri().query())?;
    let (mut query, search, limit) = asked(&parameters)?;
    query.namespace = caller::namespace(&registry, &request, None)?;
    let base = base::of(&registry, &request)?;
    // One more than is told shows whether there are more.
    let read = match &search {
        None => registry.store.servers(&query, limit + 1).await,
        Some(part) => named(&registry, query, part, limit + 1).await,
    };
    let Read { mut rows, unread } = read.map_err(unavailable)?;
    let has_more = rows.len() + unread > limit as usize;
    rows.truncate(limit as usize);
    let next = rows.last().filter(|_| has_more).map(cursor);
    Ok(told(headers, &rows, &base, next))
}

/// The servers whose names hold these small letters. The names are found in memory, and the database is asked for those
/// alone, for more at a time where few of them have what else is asked for.
async fn named(
    registry: &Registry,
    mut query: ServerQuery,
    part: &str,
    limit: u32,
) -> Result<Read<ServerRow>, StoreError> {
    let mut found = Read { rows: Vec::new(), unread: 0 };
    let mut from = match &query.after {
        None => Bound::Unbounded,
        Some((name, _)) => Bound::Included(name.clone()),
    };
    let mut most = limit as usize;
    loop {
        let after = from.as_ref().map(String::as_str);
        let namespace = query.namespace.as_deref();
        let names = registry.catalog.servers_holding(part, after, namespace, most);
        let Some(last) = names.last().cloned() else { return Ok(found) };
        query.names = Some(names);
        let missing = limit.saturating_sub(u32::try_from(found.rows.len()).unwrap_or(limit));
        let read = registry.store.servers(&query, missing).await?;
        found.rows.extend(read.rows);
        found.unread += read.unread;
        if found.rows.len() + found.unread >= limit as usize {
            return Ok(found);
        }
        from = Bound::Excluded(last);
        most = (most * 4).min(NAMES);
    }
}

/// What is beneath `/v0.1/servers/`: the versions of a server, or one of them.
pub(super) async fn one(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Wrong> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return Ok(no_changes(request.method()));
    }
    let path = request.uri().path();
    let rest = path.split_once("/servers/").map_or("", |(_, rest)| rest);
    let segments: Vec<&str> = rest.split('/').collect();
    let (name, version) = match segments.as_slice() {
        [name @ .., "versions"] if !name.is_empty() => (name.join("/"), None),
        [name @ .., "versions", version] if !name.is_empty() => {
            (name.join("/"), Some(decode(version)?))
        }
        _ => return Err(Wrong::new(StatusCode::NOT_FOUND, "Endpoint not found")),
    };
    let parameters = Parameters::read(request.uri().query())?;
    let mut query = ServerQuery {
        name: Some(decode(&name)?),
        with_deleted: flag(&parameters, "include_deleted")?,
        namespace: caller::namespace(&registry, &request, None)?,
        ..ServerQuery::default()
    };
    let headers = request.headers();
    let base = base::of(&registry, &request)?;
    let Some(version) = version else {
        let mut rows = registry.store.servers(&query, VERSIONS).await.map_err(unavailable)?.rows;
        if rows.is_empty() {
            return Err(Wrong::not_found());
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.published_at));
        return Ok(told(headers, &rows, &base, None));
    };
    query.version =
        if version == LATEST { AskedVersion::Latest } else { AskedVersion::Exactly(version) };
    let rows = registry.store.servers(&query, 1).await.map_err(unavailable)?.rows;
    let server = rows.first().and_then(|row| server(row, &base)).ok_or_else(Wrong::not_found)?;
    Ok(kept(headers, serde_json::to_string(&server).unwrap_or_default()))
}

/// Changes are made through `/v1`.
pub(super) async fn not_here(request: Request) -> Response {
    no_changes(request.method())
}

fn no_changes(method: &Method) -> Response {
    if [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method) {
        let what = "Publishing through this API is not supported by this registry";
        return Wrong::new(StatusCode::NOT_IMPLEMENTED, what).into_response();
    }
    let mut response = Wrong::from(Refused::wrong_method(method)).into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,HEAD"));
    response
}

/// Beneath the API, but nothing of it.
pub(super) async fn unknown() -> Wrong {
    Wrong::new(StatusCode::NOT_FOUND, "Endpoint not found")
}

/// Which servers are asked for, which part of their names, and how many.
fn asked(parameters: &Parameters) -> Result<(ServerQuery, Option<String>, u32), Wrong> {
    let filled = |name: &str| parameters.get(name).filter(|value| !value.is_empty());
    let mut query = ServerQuery::default();
    let (default, most) = PAGE;
    let limit = match filled("limit") {
        None => default,
        Some(text) => match text.parse::<i64>() {
            Ok(number) if number < 1 => {
                return Err(Wrong::parameter("limit", text, "expected number >= 1"));
            }
            Ok(number) if number > i64::from(most) => {
                return Err(Wrong::parameter("limit", text, "expected number <= 100"));
            }
            Ok(number) => u32::try_from(number).unwrap_or(most),
            Err(_) => return Err(Wrong::parameter("limit", text, "invalid integer")),
        },
    };
    if let Some(text) = filled("cursor") {
        let after = read_cursor(text);
        query.after = Some(after.ok_or_else(|| bad_request("Invalid cursor parameter"))?);
    }
    if let Some(text) = filled("updated_since") {
        let told = chrono::DateTime::parse_from_rfc3339(text);
        let moment = told.map_err(|_| {
            bad_request("Invalid updated_since format: expected RFC3339 timestamp (e.g., 2025-08-07T13:15:04.280Z)")
        })?;
        query.updated_since = Some(u64::try_from(moment.timestamp_millis()).unwrap_or(0));
    }
    let search = filled("search");
    if let Some(text) = search.filter(|text| text.len() > SEARCH) {
        return Err(Wrong::parameter("search", text, "expected length <= 200"));
    }
    query.version = match filled("version") {
        None => AskedVersion::All,
        Some(LATEST) => AskedVersion::Latest,
        Some(version) => AskedVersion::Exactly(version.to_owned()),
    };
    // Whoever follows the changes must learn of what was taken back.
    query.with_deleted = flag(parameters, "include_deleted")? || query.updated_since.is_some();
    Ok((query, search.map(str::to_ascii_lowercase), limit))
}

fn flag(parameters: &Parameters, name: &str) -> Result<bool, Wrong> {
    match parameters.get(name) {
        None | Some("" | "false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        Some(other) => Err(Wrong::parameter(name, other, "invalid boolean")),
    }
}

fn bad_request(what: &str) -> Wrong {
    Wrong::new(StatusCode::BAD_REQUEST, what)
}

fn unavailable(error: StoreError) -> Wrong {
    Refused::from(error).into()
}

fn cursor(row: &ServerRow) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}{BETWEEN}{}", row.name, row.version))
}

fn read_cursor(text: &str) -> Option<(String, String)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let (name, version) = text.split_once(BETWEEN)?;
    (!text.contains('\0')).then(|| (name.to_owned(), version.to_owned()))
}

fn told(headers: &HeaderMap, rows: &[ServerRow], base: &str, next: Option<String>) -> Response {
    // One that cannot be read breaks no other.
    let servers: Vec<Server> = rows.iter().filter_map(|row| server(row, base)).collect();
    let metadata = Metadata { next_cursor: next, count: servers.len() as u64 };
    let list = ServerList { servers, metadata };
    kept(headers, serde_json::to_string(&list).unwrap_or_default())
}

fn kept(headers: &HeaderMap, text: String) -> Response {
    let tag = format!("W/\"{}\"", Digest::of(text.as_bytes()));
    answer::kept(headers, &tag, Keep::Checked, || answer::json(StatusCode::OK, text))
}

fn server(row: &ServerRow, base: &str) -> Option<Server> {
    let mut server: Value = serde_json::from_str(&row.server).ok()?;
    let package = base::of_version(base, &row.id, &row.version, "package");
    if row.dialect == Dialect::Mcpb.name() {
        server_json::offer_bundle(&mut server, &package, &row.digest);
    }
    let official = Official {
        status: if row.yanked.is_some() { Official::DELETED } else { Official::ACTIVE }.to_owned(),
        status_changed_at: Some(moment::text(row.updated_at)),
        status_message: row.yanked.as_ref().and_then(message),
        published_at: Some(moment::text(row.published_at)),
        updated_at: Some(moment::text(row.updated_at)),
        is_latest: row.is_latest,
    };
    let mut ours = json!({
        "id": row.id, "dialect": row.dialect, "package": package, "sha256": row.digest,
    });
    if row.yanked.as_ref().is_some_and(|yank| yank.security) {
        ours[Meta::SECURITY] = true.into();
    }
    let others = Map::from_iter([(Meta::OURS.to_owned(), ours)]);
    Some(Server { server, meta: Meta { official: Some(official), others } })
}

/// Why a version was taken back, for those who know nothing of marks.
fn message(yank: &Yank) -> Option<String> {
    let text = match (yank.security, yank.reason.as_str()) {
        (false, "") => return None,
        (false, reason) => reason.to_owned(),
        (true, "") => Yank::SECURITY.to_owned(),
        (true, reason) => format!("{}: {reason}", Yank::SECURITY),
    };
    Some(text.chars().take(Official::MESSAGE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_junk_is_not() {
        let text = URL_SAFE_NO_PAD.encode("a/b\n1.0.0");
        assert_eq!(read_cursor(&text), Some(("a/b".to_owned(), "1.0.0".to_owned())));
        for junk in ["", "%%%", "YQ", "gA"] {
            assert_eq!(read_cursor(junk), None, "{junk}");
        }
    }
}
