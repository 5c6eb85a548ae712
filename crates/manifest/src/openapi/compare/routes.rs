//! The operations of a document by where they are reached, and which of them a call means.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::calls::{Call, inputs};
use crate::json::{Member, Node};
use crate::openapi::lookup::Document;
use crate::openapi::rules::operations;
use crate::schema::percent_decoded;

/// Where a call goes.
#[derive(Debug)]
pub(super) struct Address {
    /// Host and port; none when they are not known before the call.
    origin: Option<String>,
    segments: Vec<String>,
    query: String,
}

impl Address {
    /// Reads an address; none when it is filled in from something else than the input.
    pub(super) fn parse(url: &str) -> Option<Self> {
        let (origin, rest) = match url.split_once("://") {
            Some((scheme, rest)) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                let is_open = rest[..end].contains(['{', '$']);
                let origin = (!is_open).then(|| origin(scheme, &rest[..end]));
                (origin, &rest[end..])
            }
            None if url.starts_with("${") => {
                let (_, rest) = url.split_once('}')?;
                (None, rest)
            }
            None => return None,
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let is_known = path.split("${").skip(1).all(|name| name.starts_with("input."));
        is_known.then(|| Self { origin, segments: segments(path), query: query.to_owned() })
    }

    /// The path, as it was written.
    pub(super) fn path(&self) -> String {
        format!("/{}", self.segments.join("/"))
    }

    /// The inputs and parameters that are named in the address itself.
    pub(super) fn names(&self) -> Vec<String> {
        let braced = |segment: &String| -> Vec<String> {
            let names = segment.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
            names.map(|(name, _)| name.to_owned()).collect()
        };
        let queried = self.query.split('&').filter_map(|pair| pair.split('=').next());
        let mut names: Vec<String> = queried.filter_map(percent_decoded).collect();
        names.extend(self.segments.iter().flat_map(braced));
        names.extend(self.segments.iter().flat_map(|segment| inputs(segment)));
        names.extend(inputs(&self.query));
        names
    }
}

/// Host and port in one form; the port is left out where the scheme implies it.
fn origin(scheme: &str, authority: &str) -> String {
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let implied = if scheme.eq_ignore_ascii_case("http") { ":80" } else { ":443" };
    host.strip_suffix(implied).unwrap_or(&host).to_owned()
}

fn segments(path: &str) -> Vec<String> {
    path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

/// An operation, and where it is reached.
pub(super) struct Route<'n, 't> {
    /// The method, in lower case.
    pub(super) method: &'n str,
    /// The path, as the document writes it.
    pub(super) template: &'n str,
    pub(super) item: &'n Node<'t>,
    pub(super) operation: &'n Node<'t>,
    servers: Rc<[Server]>,
    segments: Rc<[String]>,
}

impl Route<'_, '_> {
    /// The path on its first server, as far as that is known.
    pub(super) fn path(&self) -> String {
        let steps = self.servers.first().map(|server| server.segments.as_slice());
        let server: String =
            steps.unwrap_or_default().iter().map(|step| format!("/{step}")).collect();
        format!("{server}{}", self.template)
    }

    /// How many places it is looked for at.
    pub(super) fn places(&self) -> usize {
        self.servers.len()
    }
}

struct Server {
    url: String,
    /// Host and port; none when the document leaves them open.
    origin: Option<String>,
    segments: Vec<String>,
}

/// How many places one operation is looked for at.
const MAX_SERVERS: usize = 16;

/// Every operation of a document.
pub(super) fn routes<'n, 't>(document: &Document<'n, 't>) -> Vec<Route<'n, 't>> {
    let shared = servers(document.root).unwrap_or_else(|| Rc::new([server("/")]));
    let mut routes = Vec::new();
    for path in document.root.get("paths").map(Node::members).unwrap_or_default() {
        if !path.key.starts_with('/') {
            continue;
        }
        let segments: Rc<[String]> = segments(&path.key).into();
        let referred = path.value.get("$ref").and_then(|_| document.settled(&path.value));
        for item in std::iter::once(&path.value).chain(referred) {
            let of_item = servers(item);
            for Member { key, value: operation, .. } in operations(item) {
                let own = servers(operation);
                let servers = own.as_ref().or(of_item.as_ref()).unwrap_or(&shared);
                routes.push(Route {
                    method: key,
                    template: &path.key,
                    item,
                    operation,
                    servers: Rc::clone(servers),
                    segments: Rc::clone(&segments),
                });
            }
        }
    }
    routes
}

fn servers(holder: &Node<'_>) -> Option<Rc<[Server]>> {
    let listed = holder.list_at("servers").iter().take(MAX_SERVERS);
    let listed: Vec<_> = listed.filter_map(|entry| entry.text_at("url")).map(server).collect();
    (!listed.is_empty()).then(|| listed.into())
}

fn server(url: &str) -> Server {
    let open = Server { url: url.to_owned(), origin: None, segments: Vec::new() };
    if url.contains('{') || url.contains("..") {
        return open;
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        let path = url.strip_prefix('.').unwrap_or(url);
        return Server { segments: segments(path), ..open };
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let origin = origin(scheme, authority);
    let host = origin.split(':').next().unwrap_or_default();
    // A document that was written down while its server ran at home says nothing of where it will run.
    let is_home = matches!(host, "localhost" | "127.0.0.1" | "0.0.0.0") || origin.starts_with('[');
    let origin = (!is_home).then_some(origin);
    Server { origin, segments: segments(path), ..open }
}

/// The operations that a call can mean.
pub(super) enum Match<'r, 'n, 't> {
    /// Just this one.
    One(&'r Route<'n, 't>),
    /// One of several, or one that is only possible.
    Some,
}

/// Why there is no operation that a call could mean.
pub(super) enum Miss {
    /// The path has only these methods.
    Method(BTreeSet<String>),
    /// The path is on these servers only.
    Origin(BTreeSet<String>),
    /// There is no such path.
    Path,
}

/// Finds the operation that a call means.
pub(super) fn find<'r, 'n, 't>(
    routes: &'r [Route<'n, 't>],
    call: &Call<'_, '_>,
) -> Result<Match<'r, 'n, 't>, Miss> {
    let mut best: Option<(Likeness, &Route<'_, '_>)> = None;
    let mut is_tied = false;
    let mut methods = BTreeSet::new();
    let mut elsewhere = BTreeSet::new();
    for route in routes {
        let likenesses = route.servers.iter().filter_map(|s| likeness(route, s, &call.address));
        let Some(found) =
            likenesses.filter(|likeness| likeness.is_here).max_by_key(|likeness| likeness.score)
        else {
            let others = route.servers.iter().filter(|s| is_elsewhere(route, s, &call.address));
            elsewhere.extend(others.map(|server| server.url.as_str()));
            continue;
        };
        if !route.method.eq_ignore_ascii_case(&call.method) {
            methods.insert(route.method.to_ascii_uppercase());
            continue;
        }
        match &best {
            Some((other, _)) if other.score > found.score => {}
            Some((other, _)) if other.score == found.score => is_tied = true,
            _ => {
                is_tied = false;
                best = Some((found, route));
            }
        }
    }
    let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect();
    match best {
        Some((likeness, route)) if !is_tied && likeness.is_sure => Ok(Match::One(route)),
        Some(_) => Ok(Match::Some),
        None if !methods.is_empty() => Err(Miss::Method(methods)),
        None if !elsewhere.is_empty() => Err(Miss::Origin(owned(elsewhere))),
        None => Err(Miss::Path),
    }
}

/// How well a path fits an address.
struct Likeness {
    score: usize,
    /// Whether it fits because of what it says, not because it says so little.
    is_sure: bool,
    /// Whether it is on the same server, as far as that is known.
    is_here: bool,
}

fn likeness(route: &Route<'_, '_>, server: &Server, address: &Address) -> Option<Likeness> {
    let theirs: Vec<&String> = server.segments.iter().chain(route.segments.iter()).collect();
    let ours: Vec<&String> = address.segments.iter().collect();
    let is_whole = theirs.len() == ours.len();
    let is_here = match (&address.origin, &server.origin) {
        (Some(ours), Some(theirs)) => ours == theirs && is_whole,
        _ => true,
    };
    // Where one side does not say all, the end of the path must do.
    let length = match &address.origin {
        Some(_) if theirs.len() > ours.len() => return None,
        _ => theirs.len().min(ours.len()),
    };
    let (theirs, ours) = (&theirs[theirs.len() - length..], &ours[ours.len() - length..]);
    let Fit { score, said } = fit(theirs, ours)?;
    Some(Likeness { score, is_sure: is_whole || said > 0, is_here })
}

/// Whether the path would fit on another server. The path without the server's part of it is what
/// authors write by mistake.
fn is_elsewhere(route: &Route<'_, '_>, server: &Server, address: &Address) -> bool {
    let theirs: Vec<&String> = route.segments.iter().collect();
    let ours: Vec<&String> = address.segments.iter().collect();
    let is_alone = theirs.len() == ours.len() && fit(&theirs, &ours).is_some_and(|f| f.said > 0);
    is_alone || likeness(route, server, address).is_some_and(|likeness| likeness.is_sure)
}

/// How well as many segments fit one another.
struct Fit {
    score: usize,
    /// How many of them are the same on both sides.
    said: usize,
}

fn fit(theirs: &[&String], ours: &[&String]) -> Option<Fit> {
    let mut fit = Fit { score: 0, said: 0 };
    for (theirs, ours) in theirs.iter().zip(ours) {
        match (theirs.contains('{'), ours.contains('{')) {
            (false, false) if is_same(theirs, ours) => fit.said += 1,
            (false, false) => return None,
            (true, false) if !becomes(theirs, ours) => return None,
            (true, true) => fit.score += 2,
            (true, false) => fit.score += 1,
            (false, true) => {}
        }
    }
    fit.score += 2 * fit.said;
    Some(fit)
}

fn is_same(theirs: &str, ours: &str) -> bool {
    theirs == ours || percent_decoded(theirs) == percent_decoded(ours)
}

/// Whether a segment with names in braces can become that one.
fn becomes(template: &str, segment: &str) -> bool {
    let before = template.split('{').next().unwrap_or_default();
    let after = template.rsplit('}').next().unwrap_or_default();
    segment.len() > before.len() + after.len()
        && segment.starts_with(before)
        && segment.ends_with(after)
}
