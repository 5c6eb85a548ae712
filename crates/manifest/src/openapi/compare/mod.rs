//! Where a document contradicts the manifest beside it.
//!
//! Only what is certain is told: an operation that is not there, a type that no value has on both
//! sides, a property that one side demands and the other does not have. Where either side leaves
//! room, nothing is said.

mod calls;
mod routes;
mod schemas;
mod view;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use super::Version;
use super::lookup::Document;
use crate::dialect::Dialect;
use crate::finding::{Code, Finding};
use crate::json::{Node, Pointer, Span};
use crate::shape::{clip, suggest};

use calls::{Call, calls};
use routes::{Match, Route, routes};

/// How many pairs of a call and a place are looked at.
const MAX_PAIRS: usize = 1_000_000;

/// How many contradictions are told.
const MAX_TOLD: usize = 200;

/// How many paths are looked at for one that was meant.
const MAX_NEAR: usize = 50;

/// Where in the manifest something stands.
#[derive(Clone, Debug)]
struct Place {
    pointer: Pointer,
    span: Span,
}

/// Finds where a document without errors contradicts a manifest; the findings are the manifest's.
pub(crate) fn contradictions(
    manifest: &Node<'_>,
    dialect: Dialect,
    root: &Node<'_>,
) -> Vec<Finding> {
    let Some(version) = Version::of(root) else { return Vec::new() };
    let document = Document::new(root, version);
    let routes = routes(&document);
    if routes.is_empty() {
        // A document that has no operations speaks of none.
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut compared = HashSet::new();
    let work = schemas::Work::default();
    let places: usize = routes.iter().map(Route::places).sum();
    for call in calls(manifest, dialect).into_iter().take(MAX_PAIRS / places) {
        if findings.len() >= MAX_TOLD {
            break;
        }
        match routes::find(&routes, &call) {
            Ok(Match::One(route)) => {
                let input = call.input.as_ref().map(|schema| std::ptr::from_ref(schema.node));
                if compared.insert((std::ptr::from_ref(route.operation), input)) {
                    findings.extend(schemas::check(&document, route, &call, &work));
                }
            }
            Ok(Match::Some) => {}
            Err(miss) => findings.push(not_there(&routes, &call, miss)),
        }
    }
    findings.truncate(MAX_TOLD);
    findings.dedup();
    findings
}

/// Says that the operation a manifest calls is not in the document.
fn not_there(routes: &[Route<'_, '_>], call: &Call<'_, '_>, miss: routes::Miss) -> Finding {
    let finding = |place: &Place, message: String| {
        Finding::new(Code::OpenapiEndpoint, place.pointer.clone(), place.span, message)
    };
    match miss {
        routes::Miss::Method(others) => {
            let message = format!(
                "openapi.json has no `{}` of `{}`",
                clip(&call.method),
                clip(&call.address.path())
            );
            let others: Vec<_> = others.iter().map(|other| format!("`{other}`")).collect();
            finding(&call.method_at, message).help(format!("it has {}", others.join(", ")))
        }
        routes::Miss::Origin(servers) => {
            let message = format!(
                "openapi.json does not have `{}` on this server",
                clip(&call.address.path())
            );
            let servers: Vec<_> =
                servers.iter().map(|server| format!("`{}`", clip(server))).collect();
            finding(&call.url_at, message).help(format!("the path is on {}", servers.join(", ")))
        }
        routes::Miss::Path => {
            let path = call.address.path();
            let message = format!("openapi.json has no path `{}`", clip(&path));
            let found = finding(&call.url_at, message);
            let known: Vec<_> = routes.iter().take(MAX_NEAR).map(Route::path).collect();
            match suggest(&path, known.iter().map(String::as_str)) {
                Some(near) => found.help(format!("did you mean `{near}`?")),
                None => found,
            }
        }
    }
}
