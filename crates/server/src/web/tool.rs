//! One tool: describe, versions, bundle, download.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use package::archive::{Archive, Trailer};
use package::contents::Contents;
use package::digest::Digest;
use package::limits::Limits;
use registry::{Bundle, Describe, EntryPoint, ErrorCode, Yank};

use super::answer::{self, Keep};
use super::asked::{Asked, Part};
use super::caller;
use super::change;
use super::range;
use super::receive::{Answering, at_once};
use super::refused::Refused;
use super::review;
use super::text::Parameters;
use crate::blobs::{BlobError, Blobs};
use crate::catalog::View;
use crate::memory::{NoMemory, Share};
use crate::service::Registry;
use crate::store::tokens::Token;
use crate::store::versions::{FindError, Known, Which};
use trace::{Place, part};

/// Everything beneath `/v1/tools/` that is about one tool.
pub(super) fn route(registry: &Arc<Registry>, request: Request) -> Answering {
    if let Some(response) = at_hand(registry, &request) {
        return at_once(response);
    }
    let registry = Arc::clone(registry);
    Box::pin(async move { looked_up(&registry, request).await.into_response() })
}

/// What everybody is answered, where all of it is in memory: then nothing is waited for.
fn at_hand(registry: &Registry, request: &Request) -> Option<Response> {
    let (method, headers) = (request.method(), request.headers());
    if !is_reading(method) || caller::shown(request).is_some() {
        return None;
    }
    let asked = Asked::read(request.uri().path()).ok()?;
    let version = match &asked.part {
        Part::Highest => None,
        Part::Version(version) | Part::Package(version) => Some(version.as_str()),
        _ => return None,
    };
    let view = caller::view(registry, None, &Parameters::read(request.uri().query()).ok()?).ok()?;
    let known = registry.shown_before(&asked.tool, named(version), view.channel)?;
    if !matches!(asked.part, Part::Package(_)) {
        return Some(describe(headers, &known));
    }
    let file = registry.kept.file(digest_of(&known).ok()?)?;
    let download = Download::of(headers, keep(version.unwrap_or(LATEST), &known), &known);
    Some(match download {
        Ok(download) if method == Method::HEAD => download.answer(headers, Body::empty()),
        Ok(download) => match download.part_of(&file) {
            Ok(body) => download.answer(headers, body),
            Err(refused) => refused.into_response(),
        },
        Err(refused) => refused.into_response(),
    })
}

fn is_reading(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

/// The version that is named, where it is not only said that the highest is meant.
fn named(version: Option<&str>) -> Option<&str> {
    version.filter(|version| *version != LATEST)
}

/// The same with all that has to be looked up.
async fn looked_up(registry: &Arc<Registry>, request: Request) -> Result<Response, Refused> {
    let asked = Asked::read(request.uri().path())?;
    let method = request.method().clone();
    let tool = asked.tool.as_str();
    match &asked.part {
        Part::Yank(version) => return change::yank(registry, tool, version, request).await,
        Part::Review(version) => return review::review(registry, tool, version, request).await,
        Part::Owners => return review::owners(registry, tool, None, request).await,
        Part::Owner(owner) => return review::owners(registry, tool, Some(owner), request).await,
        Part::Highest
        | Part::Versions
        | Part::Version(_)
        | Part::Bundle(_)
        | Part::Package(_)
        | Part::Manifest(_) => {}
    }
    if !is_reading(&method) {
        let allowed = HeaderValue::from_static("GET,HEAD");
        return Err(Refused::wrong_method(&method).header(header::ALLOW, allowed));
    }
    let headers = request.headers();
    let token = caller::shown(&request);
    let view = caller::view(registry, token, &Parameters::read(request.uri().query())?)?;
    let version = match &asked.part {
        Part::Versions => return versions(registry, &asked, headers, token, &view).await,
        Part::Version(version)
        | Part::Bundle(version)
        | Part::Package(version)
        | Part::Manifest(version) => Some(version.as_str()),
        _ => None,
    };
    let known = match token {
        None => registry.shown(&asked.tool, named(version), view.channel).await,
        Some(token) => shown_to(registry, &asked, named(version), token, &view).await,
    };
    let known = known.map_err(|error| not_found(error, &asked))?;
    let keep = keep(version.unwrap_or(LATEST), &known);
    match &asked.part {
        Part::Bundle(_) => bundle(registry, headers, keep, &known).await,
        Part::Package(_) => download(registry, headers, keep, &known, &method).await,
        Part::Manifest(_) => manifest(registry, headers, keep, &known).await,
        _ => Ok(describe(headers, &known)),
    }
}

/// A version as somebody sees it who shows a token: of one namespace alone, or what waits there too.
async fn shown_to(
    registry: &Registry,
    asked: &Asked,
    version: Option<&str>,
    token: &Token,
    view: &View,
) -> Result<Arc<Known>, FindError> {
    let (id, namespace) = registry.store.resolve(&asked.tool).await?;
    if registry.sees_hidden(Some(token), &id, &namespace).await? {
        let which = version.map_or(Which::HighestIn(view.channel), Which::Exactly);
        return registry.store.find_hidden(&id, which).await.map(Arc::new);
    }
    if !view.scope.covers(&namespace) {
        return Err(FindError::NoPackage);
    }
    registry.shown(&asked.tool, version, view.channel).await
}

async fn versions(
    registry: &Registry,
    asked: &Asked,
    headers: &HeaderMap,
    token: Option<&Token>,
    view: &View,
) -> Result<Response, Refused> {
    let missing = |error| not_found(error, asked);
    let (id, namespace) = registry.store.resolve(&asked.tool).await.map_err(missing)?;
    let versions = if registry.sees_hidden(token, &id, &namespace).await? {
        registry.store.versions_hidden(&id).await
    } else if view.scope.covers(&namespace) {
        registry.store.versions(&id).await
    } else {
        Err(FindError::NoPackage)
    };
    let text = serde_json::to_string(&versions.map_err(missing)?).unwrap_or_default();
    let tag = format!("W/\"{}\"", Digest::of(text.as_bytes()));
    Ok(answer::kept(headers, &tag, Keep::Checked, || answer::json(StatusCode::OK, text)))
}

/// The word for the highest version.
const LATEST: &str = "latest";
/// Says by which digest a file is known.
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
/// How long somebody waits for a turn.
const TURN: Duration = Duration::from_secs(30);
/// How much of a bundle is sent at once.
const PIECE: usize = 64 << 10;

/// The files of a version never change; whether it is offered does, and so does which is the highest.
fn keep(asked: &str, known: &Known) -> Keep {
    let is_so_for_ever = known.channel.is_offered() && known.yanked.is_none() && asked != LATEST;
    if is_so_for_ever { Keep::Forever } else { Keep::Checked }
}

/// What a version is never changes either, but this is where everybody learns that it was taken back: no cache
/// between may answer without asking, and what it has is old when that changes.
fn describe(headers: &HeaderMap, known: &Known) -> Response {
    let yanked = known.yanked.as_ref().map_or_else(String::new, |yank| {
        let mark = if yank.security { Yank::SECURITY } else { "yanked" };
        format!("-{mark}-{}", Digest::of(yank.reason.as_bytes()))
    });
    let tag = format!("W/\"describe-{}{yanked}\"", known.digest);
    let text = || answer::json(StatusCode::OK, known.describe.clone());
    let mut response = answer::kept(headers, &tag, Keep::Checked, text);
    answer::mark_yanked(&mut response, known.yanked.as_ref());
    response
}

/// Nothing but its tag, where a client has it already: then nothing is read.
fn unchanged(headers: &HeaderMap, tag: &str, keep: Keep, known: &Known) -> Option<Response> {
    if !answer::has(headers, tag) {
        return None;
    }
    let mut response = answer::kept(headers, tag, keep, Response::default);
    answer::mark_yanked(&mut response, known.yanked.as_ref());
    Some(response)
}

/// Whoever asks for the head alone has it made too, since it tells how long it is.
async fn bundle(
    registry: &Registry,
    headers: &HeaderMap,
    keep: Keep,
    known: &Known,
) -> Result<Response, Refused> {
    if known.runtime != EntryPoint::NODE {
        let message = format!(
            "`{}` {} runs as `{}`, not in Node; download its package instead",
            known.id, known.version, known.runtime
        );
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Refused::new(status, ErrorCode::UnsupportedRuntime, message)
            .detail("runtime", known.runtime.as_str()));
    }
    let tag = format!("W/\"bundle-{}\"", known.digest);
    if let Some(response) = unchanged(headers, &tag, keep, known) {
        return Ok(response);
    }
    let room = Arc::clone(&registry.bundling).acquire_owned();
    let room = tokio::time::timeout(TURN, room).await.ok().and_then(Result::ok);
    let room = room.ok_or_else(busy)?;
    let making = Making {
        digest: digest_of(known)?,
        known: known.clone(),
        blobs: registry.blobs.clone(),
        limits: registry.settings.limits,
        most: registry.settings.bundle_bytes,
        share: registry.sending.share(),
    };
    // It is made to its end when whoever asked hangs up, and so the room is taken until then.
    let made = tokio::spawn(async move {
        let made = making.make().await;
        drop(room);
        made
    });
    let (text, share) = made.await.map_err(|_| unreadable())??;
    let (length, body) = (text.len(), in_pieces(text.into(), share));
    let mut response = answer::kept(headers, &tag, keep, || answer::json(StatusCode::OK, body));
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    answer::mark_yanked(&mut response, known.yanked.as_ref());
    Ok(response)
}

/// A bundle in the making.
struct Making {
    known: Known,
    digest: Digest,
    blobs: Blobs,
    limits: Limits,
    /// The most bytes of its files together.
    most: u64,
    share: Share,
}

impl Making {
    async fn make(mut self) -> Result<(String, Share), Refused> {
        let bytes = self.blobs.get(self.digest).await?;
        let archive = Archive::from_bytes(Vec::from(bytes), Trailer::Refused, &self.limits);
        let archive = archive.map_err(|_| unreadable())?;
        let size = archive.paths().iter().filter_map(|path| archive.size(path)).sum::<u64>();
        let (known, most) = (self.known, self.most);
        if size > most {
            let message = format!(
                "`{}` {} unpacks to {size} bytes and a bundle holds at most {most}; download its package instead",
                known.id, known.version
            );
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return Err(Refused::new(status, ErrorCode::InvalidRequest, message)
                .detail("limit", most)
                .detail("size", size));
        }
        // Each file once as it is and once as JSON, where six letters may stand for one.
        let taken = usize::try_from(size).unwrap_or(usize::MAX).saturating_mul(7);
        self.share.hold(taken).await.map_err(|NoMemory| busy())?;
        let _making = part(Place::Here, "make a bundle");
        let made = tokio::task::spawn_blocking(move || {
            let describe: Describe = serde_json::from_slice(&known.describe).ok()?;
            let bundle = Bundle::new(describe, &archive).ok()?;
            serde_json::to_string(&bundle).ok()
        });
        Ok((made.await.ok().flatten().ok_or_else(unreadable)?, self.share))
    }
}

fn unreadable() -> Refused {
    Refused::internal("the package cannot be read any more")
}

fn busy() -> Refused {
    Refused::unavailable("too many bundles are being made")
}

/// A body whose memory is held until its last piece is sent.
fn in_pieces(text: Bytes, share: Share) -> Body {
    let pieces = futures_util::stream::unfold((text, share), |(mut text, share)| async move {
        let piece = text.split_to(PIECE.min(text.len()));
        (!piece.is_empty()).then(|| (Ok::<_, std::convert::Infallible>(piece), (text, share)))
    });
    // Whoever compresses it asks once more after the end.
    Body::from_stream(pieces.fuse())
}

/// The manifest of a version, as its author wrote it.
async fn manifest(
    registry: &Registry,
    headers: &HeaderMap,
    keep: Keep,
    known: &Known,
) -> Result<Response, Refused> {
    let found = registry.store.manifest(&known.id, &known.version).await?;
    let bytes = found.ok_or_else(|| Refused::no_version(&known.id, Some(&known.version)))?;
    let tag = format!("\"manifest-{}\"", Digest::of(&bytes));
    let mut response = answer::kept(headers, &tag, keep, || answer::json(StatusCode::OK, bytes));
    answer::mark_yanked(&mut response, known.yanked.as_ref());
    Ok(response)
}

async fn download(
    registry: &Registry,
    headers: &HeaderMap,
    keep: Keep,
    known: &Known,
    method: &Method,
) -> Result<Response, Refused> {
    let download = Download::of(headers, keep, known)?;
    let body = if method == Method::HEAD || download.is_known {
        Body::empty()
    } else if let Some(file) = registry.small_file(download.digest, known.size).await? {
        download.part_of(&file)?
    } else {
        Body::from_stream(registry.blobs.stream(download.digest, download.part.clone()).await?)
    };
    Ok(download.answer(headers, body))
}

/// A package file that is asked for, or a part of it.
struct Download<'k> {
    known: &'k Known,
    keep: Keep,
    digest: Digest,
    tag: String,
    /// Whether whoever asks has it already.
    is_known: bool,
    part: Range<u64>,
    status: StatusCode,
}

impl<'k> Download<'k> {
    fn of(headers: &HeaderMap, keep: Keep, known: &'k Known) -> Result<Self, Refused> {
        let (digest, tag) = (digest_of(known)?, format!("\"{}\"", known.digest));
        let is_known = answer::has(headers, &tag);
        let asked =
            if is_known { range::Asked::Whole } else { range::read(headers, known.size, &tag) };
        let (part, status) = match asked {
            range::Asked::Whole => (0..known.size, StatusCode::OK),
            range::Asked::Part(part) => (part, StatusCode::PARTIAL_CONTENT),
            range::Asked::Beyond => {
                let refused = Refused::new(
                    StatusCode::RANGE_NOT_SATISFIABLE,
                    ErrorCode::InvalidRequest,
                    format!("the package has {} bytes", known.size),
                );
                let has = HeaderValue::try_from(format!("bytes */{}", known.size));
                return Err(match has {
                    Ok(has) => refused.header(header::CONTENT_RANGE, has),
                    Err(_) => refused,
                });
            }
        };
        Ok(Self { known, keep, digest, tag, is_known, part, status })
    }

    /// What is asked for of a file that is in memory: it is small, so its places are too.
    fn part_of(&self, file: &Bytes) -> Result<Body, Refused> {
        if file.len() as u64 != self.known.size {
            return Err(BlobError::Damaged(self.digest).into());
        }
        let at = |place: u64| usize::try_from(place).unwrap_or(file.len());
        Ok(Body::from(file.slice(at(self.part.start)..at(self.part.end))))
    }

    fn answer(self, headers: &HeaderMap, body: Body) -> Response {
        let Self { known, keep, digest, tag, is_known, part, status } = self;
        let mut response =
            answer::kept(headers, &tag, keep, move || (status, body).into_response());
        answer::mark_yanked(&mut response, known.yanked.as_ref());
        if is_known {
            return response;
        }
        let into = response.headers_mut();
        into.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer::PACKAGE));
        into.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        into.insert(header::CONTENT_LENGTH, HeaderValue::from(part.end - part.start));
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-+".contains(c) { c } else { '_' };
        let id = known.id.trim_start_matches("tool:").chars().map(plain);
        let version = known.version.chars().map(plain);
        let name: String = id.chain(['-']).chain(version).collect();
        let file = format!("attachment; filename=\"{name}.mcpkg\"");
        let is_part = status == StatusCode::PARTIAL_CONTENT;
        let range =
            is_part.then(|| format!("bytes {}-{}/{}", part.start, part.end - 1, known.size));
        let repr_digest = format!("sha-256=:{}:", STANDARD.encode(digest.bytes()));
        for (name, value) in [
            (header::CONTENT_DISPOSITION, Some(file)),
            (REPR_DIGEST, Some(repr_digest)),
            (header::CONTENT_RANGE, range),
        ] {
            if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
                into.insert(name, value);
            }
        }
        response
    }
}

fn digest_of(known: &Known) -> Result<Digest, Refused> {
    Digest::parse(&known.digest)
        .ok_or_else(|| Refused::internal("the digest of the version is damaged"))
}

fn not_found(error: FindError, asked: &Asked) -> Refused {
    match error {
        FindError::NoPackage => Refused::no_tool(&asked.tool),
        FindError::NoVersion => {
            let version = match &asked.part {
                Part::Version(version)
                | Part::Bundle(version)
                | Part::Package(version)
                | Part::Manifest(version) => named(Some(version.as_str())),
                _ => None,
            };
            Refused::no_version(&asked.tool, version)
        }
        FindError::Store(error) => error.into(),
    }
}
