//! What is listed for other worlds: the well-known index of install-manifests, the catalog of capabilities.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use manifest::index::MAX_ENTRIES;
use package::digest::Digest;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use registry::identity;
use serde_json::{Value, json};

use super::answer::{self, Keep};
use super::base;
use super::caller;
use super::refused::Refused;
use super::text::Parameters;
use crate::service::Registry;
use crate::store::each::Read;

/// The most entries of a page of the catalog.
const ENTRIES: usize = 1_000;
/// The most bytes of its entries; a reader takes 16 MiB in all.
const BYTES: usize = 12 << 20;

/// The install-manifests that a host stands by, of all or of one namespace. An index has a largest size; what does not
/// fit is in the next one, which a header names.
pub(super) async fn index(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let headers = request.headers();
    let parameters = Parameters::read(request.uri().query())?;
    let namespace = caller::namespace(&registry, &request, named(&parameters)?)?;
    let namespace = namespace.as_deref();
    let base = base::of(&registry, &request)?;
    let after = after(&parameters)?;
    let most = parameters.number("limit", MAX_ENTRIES, 1, MAX_ENTRIES);
    // One more than is told shows whether there are more.
    let limit = u32::try_from(most).unwrap_or(u32::MAX).saturating_add(1);
    let Read { mut rows, unread } = registry.store.listed(namespace, after, limit).await?;
    let has_more = rows.len() + unread > most;
    rows.truncate(most);
    let generated_at = rows.iter().map(|row| row.updated_at).max().unwrap_or(0);
    let mut seen = HashSet::new();
    let mut manifests = Vec::with_capacity(rows.len());
    for row in &rows {
        let Ok(mut entry) = serde_json::from_str::<Value>(&row.text) else { continue };
        // An index names each id once; two namespaces may have the same.
        if entry["id"].as_str().is_some_and(|id| seen.insert(id.to_owned())) {
            entry["manifest_url"] =
                base::of_version(&base, &row.id, &row.version, "manifest").into();
            manifests.push(entry);
        }
    }
    let host = base.split_once("://").map_or(base.as_str(), |(_, rest)| rest);
    let host: String = host.split('/').next().unwrap_or(host).chars().take(80).collect();
    let document = json!({
        "version": "1",
        "publisher": {"kind": "https", "id": host, "display_name": host},
        "generated_at": registry::moment::text(generated_at),
        "manifests": manifests,
    });
    let text = document.to_string();
    let tag = format!("W/\"{}\"", Digest::of(text.as_bytes()));
    let mut response =
        answer::kept(headers, &tag, Keep::Checked, || answer::json(StatusCode::OK, text));
    if let Some(last) = rows.last().filter(|_| has_more) {
        let page = format!("{base}/.well-known/install-manifests.json");
        put_next(&mut response, &page, &last.id, most, namespace);
    }
    Ok(response)
}

/// Everything that can be told as a capability. What does not fit on a page is on the next one, which a header names.
pub(super) async fn catalog(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let headers = request.headers();
    let parameters = Parameters::read(request.uri().query())?;
    let namespace = caller::namespace(&registry, &request, named(&parameters)?)?;
    let namespace = namespace.as_deref();
    let after = after(&parameters)?;
    let limit = parameters.number("limit", ENTRIES, 1, ENTRIES);
    let base = base::of(&registry, &request)?;
    // Read before the entries are: what is told may be newer than its tag, never older.
    let change = registry.store.last_change().await?;
    let asked = format!("{change} {limit} {base} {} {after}", namespace.unwrap_or_default());
    let tag = format!("W/\"catalog-{}\"", Digest::of(asked.as_bytes()));
    if answer::has(headers, &tag) {
        return Ok(answer::kept(headers, &tag, Keep::Checked, Response::default));
    }
    let (rows, has_more) = registry.store.capabilities(namespace, after, limit, BYTES).await?;
    let mut text = String::from("{\"version\":\"0.1\",\"capabilities\":[");
    let mut count = 0;
    for row in &rows {
        let Ok(mut entry) = serde_json::from_str::<Value>(&row.text) else { continue };
        entry["origin"] = json!({
            "source": "url",
            "url": base::of_version(&base, &row.id, &row.version, "package"),
            "digest": row.digest,
        });
        if count > 0 {
            text.push(',');
        }
        text.push_str(&entry.to_string());
        count += 1;
    }
    text.push_str("]}");
    let mut response =
        answer::kept(headers, &tag, Keep::Checked, || answer::json(StatusCode::OK, text));
    if let Some(last) = rows.last().filter(|_| has_more) {
        let page = format!("{base}/v1/catalog.json");
        put_next(&mut response, &page, &last.id, limit, namespace);
    }
    Ok(response)
}

/// The id after which a page begins.
fn after(parameters: &Parameters) -> Result<&str, Refused> {
    let after = parameters.get("after").unwrap_or_default();
    if after.len() > identity::LONGEST {
        return Err(Refused::invalid("what `after` names is no id"));
    }
    Ok(after)
}

/// Names the page that begins after this id.
fn put_next(
    response: &mut Response,
    page: &str,
    after: &str,
    limit: usize,
    namespace: Option<&str>,
) {
    let plain = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut next = format!("{page}?after={}&limit={limit}", plain(after));
    if let Some(namespace) = namespace {
        next += &format!("&namespace={}", plain(namespace));
    }
    if let Ok(link) = HeaderValue::from_str(&format!("<{next}>; rel=\"next\"")) {
        response.headers_mut().insert(header::LINK, link);
    }
}

fn named(parameters: &Parameters) -> Result<Option<&str>, Refused> {
    let namespace = parameters.get("namespace").filter(|name| !name.is_empty());
    match namespace {
        Some(name) if name.len() > identity::LONGEST => {
            Err(Refused::invalid("the namespace is too long"))
        }
        found => Ok(found),
    }
}
