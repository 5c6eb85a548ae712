//! The door before every route: who asks, whether they may, and how often.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Uri, Version, header};
use axum::response::Response;
use futures_util::FutureExt;

use super::address::{self, Peer};
use super::caller::{self, Caller, Showing};
use super::receive::{Answering, Inside, at_once};
use super::refused::Refused;
use super::{pages, problem};
use crate::rate::Who;
use crate::service::Registry;
use crate::settings::Reading;
use crate::store::tokens::Token;
use crate::token::Scope;

/// Where an identity is exchanged for a token.
pub(super) const EXCHANGE: &str = "/v1/tokens/exchange";
/// What is answered to everybody, always.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];
/// What the pages that say so are dressed with: the same in every registry.
const ASSETS: &str = "/assets/";
/// What a browser is told, so that it asks for a password.
const PASSWORD: &str = "Basic realm=\"Haft registry\", charset=\"UTF-8\"";
/// What shows a caller the names of one namespace alone, when that is all the token is for.
const SCOPED: [&str; 13] = [
    "/v1/tools",
    "/v1/foresee",
    "/v1/token",
    "/v1/tags",
    "/v1/providers",
    "/v1/tokens",
    "/v1/publishers",
    "/v1/reviews",
    "/v1/openapi.json",
    "/v1/catalog.json",
    "/.well-known/install-manifests.json",
    "/v0.1/servers",
    "/v0/servers",
];

/// Lets in whoever may come in, and marks what is answered to them alone.
pub(super) fn keep(
    registry: &Arc<Registry>,
    mut request: Request,
    inside: &mut (impl Inside + Clone),
) -> Answering {
    let asked = request.uri().path();
    if OPEN.contains(&asked) || asked.starts_with(ASSETS) {
        return Box::pin(inside.answer(request));
    }
    let marks = Marks::of(registry, &request);
    if let Err(refused) = check_host(&request) {
        return marks.answer(Err(refused), request, inside);
    }
    if !must_show(registry, request.uri()) && !caller::shows_token(request.headers()) {
        let admitted = let_in(registry, &mut request, None);
        return marks.answer(admitted, request, inside);
    }
    let (registry, mut inside) = (Arc::clone(registry), inside.clone());
    let from = from(&registry, &request).map(Who::at);
    // Its body can be looked at by one thread at a time, so it is left aside for as long as others are waited for.
    let (parts, body) = request.into_parts();
    Box::pin(async move {
        let token = token(&registry, &parts, from).await;
        let mut request = Request::from_parts(parts, body);
        let admitted = token.and_then(|token| let_in(&registry, &mut request, Some(token)));
        marks.answer(admitted, request, &mut inside).await
    })
}

/// What is said in the head of an answer because of how it was asked for.
struct Marks {
    is_private: bool,
    is_last: bool,
    asks_for_password: bool,
}

impl Marks {
    fn of(registry: &Registry, request: &Request) -> Self {
        let is_private = registry.settings.reading == Reading::Tokens;
        let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        Self {
            is_private: is_private || caller::shows_token(request.headers()),
            // Where a body ends is a matter on which a proxy before us may have another opinion, so nothing follows it.
            is_last: is_chunked && request.version() == Version::HTTP_11,
            asks_for_password: is_private && pages::is_browser(request),
        }
    }

    /// What is answered to whoever was let in, or was not.
    fn answer(
        self,
        admitted: Result<(), Refused>,
        request: Request,
        inside: &mut impl Inside,
    ) -> Answering {
        match admitted {
            Ok(()) => {
                let answered = inside.answer(request);
                Box::pin(answered.map(move |response| self.put(response)))
            }
            Err(refused) if refused.is_unauthorized() && self.asks_for_password => {
                let password = HeaderValue::from_static(PASSWORD);
                let refused = refused.header(header::WWW_AUTHENTICATE, password);
                at_once(self.put(problem::refuse_at(request.uri().path(), refused)))
            }
            Err(refused) => at_once(self.put(problem::refuse_at(request.uri().path(), refused))),
        }
    }

    fn put(&self, mut response: Response) -> Response {
        if self.is_private {
            mark_private(&mut response);
        }
        if self.is_last {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Whether nothing is answered without a token.
fn must_show(registry: &Registry, asked: &Uri) -> bool {
    registry.settings.reading == Reading::Tokens && asked.path() != EXCHANGE
}

fn is_reading(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// The token that somebody shows.
async fn token(registry: &Registry, request: &Parts, from: Option<Who>) -> Result<Token, Refused> {
    let now = Instant::now();
    let may_be_password = must_show(registry, &request.uri) && is_reading(&request.method);
    let showing = if may_be_password { Showing::BearerOrPassword } else { Showing::Bearer };
    let is_guess = request.headers.contains_key(header::AUTHORIZATION);
    // Each look-up costs the database a question. Whoever has guessed too often pays for them as for reads.
    if let Some(who) = from.as_ref().filter(|_| is_guess)
        && registry.rates.failures.check(who, now).is_err()
    {
        registry.rates.reads.take(who, now).map_err(Refused::too_often)?;
    }
    let token = caller::token(registry, &request.headers, showing).await;
    // Whoever shows a token that is good is let in, though others have guessed at the same address.
    if let (Err(refused), Some(who)) = (&token, from)
        && refused.is_unauthorized()
        && is_guess
    {
        registry.rates.failures.take(&who, now).map_err(Refused::too_often)?;
    }
    token
}

/// Lets in whoever shows this token, or none where none is needed.
fn let_in(registry: &Registry, request: &mut Request, token: Option<Token>) -> Result<(), Refused> {
    // Whoever is on this machine is not counted.
    if let Some(address) = from(registry, request) {
        let who = token.as_ref().map_or_else(|| Who::at(address), |one| Who::Token(one.id.clone()));
        let rates = &registry.rates;
        let limiter = if is_reading(request.method()) { &rates.reads } else { &rates.changes };
        limiter.take(&who, Instant::now()).map_err(Refused::too_often)?;
    }
    check_scope(registry, token.as_ref().map(|token| &token.scope), request.uri().path())?;
    request.extensions_mut().insert(Caller(token));
    Ok(())
}

/// A token for one namespace sees what is about that namespace; what shows everybody's names is not for it.
fn check_scope(registry: &Registry, scope: Option<&Scope>, path: &str) -> Result<(), Refused> {
    let is_narrow = matches!(scope, Some(Scope::Namespace(_)));
    let is_scoped = || {
        SCOPED.iter().any(|known| {
            path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    if registry.settings.reading == Reading::Tokens && is_narrow && !is_scoped() {
        return Err(Refused::forbidden(
            "this shows the names of all; the token is for one namespace",
        ));
    }
    Ok(())
}

/// A request of HTTP/1.1 names one host, as the standard demands: otherwise a proxy may have meant another.
fn check_host(request: &Request) -> Result<(), Refused> {
    if request.version() != Version::HTTP_11 || request.uri().authority().is_some() {
        return Ok(());
    }
    match request.headers().get_all(header::HOST).iter().count() {
        // In process nobody names one.
        0 if request.extensions().get::<Peer>().is_none() => Ok(()),
        1 => Ok(()),
        _ => Err(Refused::invalid("a request names one host")),
    }
}

/// From where somebody asks; none who is on this machine.
pub(super) fn from(registry: &Registry, request: &Request) -> Option<std::net::IpAddr> {
    let peer = request.extensions().get::<Peer>()?.0;
    // Who asks for others is not this machine, and nor is what a header says: anybody can write it. A proxy that
    // nobody has named is counted as one, so that it opens no door for all behind it.
    let is_told =
        ["x-forwarded-for", "forwarded"].iter().any(|name| request.headers().contains_key(*name));
    let is_here = peer.is_loopback() && !is_told;
    (!is_here).then(|| address::of(peer, request.headers(), &registry.settings.proxies))
}

/// What is answered to one is kept by nobody for others.
fn mark_private(response: &mut Response) {
    let headers = response.headers_mut();
    let control = match headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok()) {
        Some(text) if text.contains("no-store") => return,
        Some(text) => {
            let parts = text.split(',').map(str::trim).filter(|part| *part != "public");
            ["private"]
                .into_iter()
                .chain(parts.filter(|part| *part != "private"))
                .collect::<Vec<_>>()
                .join(", ")
        }
        None => "private, no-cache".to_owned(),
    };
    if let Ok(control) = HeaderValue::from_str(&control) {
        headers.insert(header::CACHE_CONTROL, control);
    }
    headers.append(header::VARY, HeaderValue::from_static("authorization"));
}
