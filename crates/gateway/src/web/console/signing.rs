//! Signing in and out. An address alone signs nobody in: a button does, so that whoever only looks at addresses uses none up.

use std::sync::Arc;
use std::time::Instant;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::Console;
use super::frame::{Frame, Refusal, page, refused, see};
use super::visit::{COOKIE_NAME, Posted, check_origin, check_place, read};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'c> {
    frame: Frame,
    code: &'c str,
}

/// Where the address from the terminal leads.
pub(super) async fn look(
    State(console): State<Arc<Console>>,
    Path(code): Path<String>,
    request: Request,
) -> Response {
    if let Err(response) = check_place(request.headers()) {
        return response;
    }
    if !console.gateway.door.knows(&code, Instant::now()) {
        return used();
    }
    page(&SignInPage { frame: Frame::bare("Sign in"), code: &code })
}

/// What its button does.
pub(super) async fn enter(State(console): State<Arc<Console>>, request: Request) -> Response {
    let checked = check_place(request.headers()).and_then(|()| check_origin(request.headers()));
    let fields = match checked {
        Ok(()) => match read(request).await {
            Ok(fields) => fields,
            Err(response) => return response,
        },
        Err(response) => return response,
    };
    let code = fields.get("code").unwrap_or_default();
    let Some(shown) = console.gateway.door.enter(code, Instant::now()) else { return used() };
    let cookie = format!("{COOKIE_NAME}={shown}; HttpOnly; SameSite=Strict; Path=/");
    with_cookie(see("/"), &cookie)
}

/// Ends the session.
pub(super) async fn leave(State(console): State<Arc<Console>>, posted: Posted) -> Response {
    console.gateway.door.leave(&posted.visit.session);
    let cookie = format!("{COOKIE_NAME}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    with_cookie(see("/"), &cookie)
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn used() -> Response {
    let words = "An address counts once, and for ten minutes. At your terminal, `haft console` prints another.";
    refused(StatusCode::UNAUTHORIZED, &Refusal::new("This address does not count any more", words))
}
