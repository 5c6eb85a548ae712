//! A server on the network.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use egress::Rules;
use egress::http::{Client, HeaderMap, Settings, Url};
use egress::resolve::SystemResolver;
use tokio::time::timeout_at;

use super::answer::not_answered;
use super::era::{Era, Eras};
use super::server::Server;
use super::session::{AskError, Client as For, Opening, Session, http, of_wire, sse};
use crate::blocked::Blocked;
use crate::error::{CallError, Kind};
use crate::limit::too_late;
use crate::run::{note, place_of};

/// How long the question for its era may take, where the time of the call is longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which way a server is spoken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Every message is a request.
    Streamable,
    /// Events over one URL, messages to another.
    Events,
    /// Nobody said.
    Either,
}

/// What is known of a server on the network.
pub(super) struct Target<'t> {
    pub(super) url: Url,
    pub(super) way: Way,
    pub(super) headers: &'t HeaderMap,
    /// Bytes of one message.
    pub(super) longest: u64,
    /// What its era is remembered under.
    pub(super) name: &'t str,
    /// Who it is spoken with for.
    pub(super) client: &'t For,
}

/// Whatever we send on behalf of one server, within the rules.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) client: Client,
    blocked: Arc<Mutex<Vec<Blocked>>>,
}

impl Line {
    /// A line that reaches what the rules allow.
    pub(super) fn new(rules: &Rules) -> Result<Self, CallError> {
        let blocked: Arc<Mutex<Vec<Blocked>>> = Arc::default();
        let told = Arc::clone(&blocked);
        let settings = Settings {
            report: Arc::new(move |attempt| note(&told, &attempt)),
            ..Settings::default()
        };
        let made = Client::with(rules.clone(), Arc::new(SystemResolver::default()), settings);
        let client = made.map_err(|error| CallError::new(Kind::Unavailable, error.to_string()))?;
        Ok(Self { client, blocked })
    }

    /// What was refused since the last time.
    pub(super) fn take_blocked(&self) -> Vec<Blocked> {
        std::mem::take(&mut *self.blocked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says whether a URL may be asked for at all.
    pub(super) fn check(&self, url: &Url) -> Result<(), CallError> {
        self.client.check(url).map_err(|refusal| {
            let asked = place_of(url);
            let message = format!("{asked} may not be reached: {refusal}");
            CallError::blocked(message, Blocked::host(asked, refusal))
        })
    }
}

/// Begins to speak with a server on the network.
pub(super) async fn reach(
    line: Line,
    target: &Target<'_>,
    eras: &dyn Eras,
    until: Instant,
) -> Result<Server, CallError> {
    line.check(&target.url)?;
    let place = place_of(&target.url);
    let opened = timeout_at(until.into(), open(&line, target, eras)).await;
    match opened {
        Ok(Ok((session, era))) => {
            eras.remember(target.name, Some(era)).await;
            Ok(Server::remote(session, line, place))
        }
        Ok(Err(error)) => {
            if !is_about_login(&error) {
                eras.remember(target.name, None).await;
            }
            Err(not_answered(error, "initialize", Some(&place)))
        }
        Err(_) => Err(too_late(&format!("`{place}` had not greeted"))),
    }
}

/// Begins a conversation, and says what the server is known by from now on.
async fn open(
    line: &Line,
    target: &Target<'_>,
    eras: &dyn Eras,
) -> Result<(Session, Era), AskError> {
    if target.way == Way::Events {
        return events(line, target).await;
    }
    if let Some(era) = eras.known(target.name).await {
        let known = match era {
            Era::Events if target.way == Way::Either => events(line, target).await,
            era => streamable(line, target, Opening::Known(era)).await,
        };
        match known {
            Err(error) if !is_about_login(&error) => {
                // What was remembered may be of an older release.
                eras.remember(target.name, None).await;
            }
            known => return known,
        }
    }
    let asking = streamable(line, target, Opening::Ask);
    let first = match tokio::time::timeout(PATIENCE, asking).await {
        // Some of the older era answer whatever they do not know as if they did.
        Ok(Err(AskError::Odd(how))) => {
            let older = streamable(line, target, Opening::Known(Era::Handshake)).await;
            older.map_err(|other| if is_about_login(&other) { other } else { AskError::Odd(how) })
        }
        Ok(opened) => opened,
        Err(_) => streamable(line, target, Opening::Known(Era::Handshake)).await,
    };
    match first {
        Err(error) if target.way == Way::Either && !is_about_login(&error) => {
            // Those who only know the oldest way refuse what is not theirs in many words.
            let oldest = events(line, target).await;
            oldest.map_err(|other| if knows_more(&other) { other } else { error })
        }
        first => first,
    }
}

/// Every message is a request.
async fn streamable(
    line: &Line,
    target: &Target<'_>,
    opening: Opening,
) -> Result<(Session, Era), AskError> {
    let (url, headers) = (target.url.as_str(), target.headers);
    let (wire, health) = http::wire(line.client.inner(), url, headers, target.longest);
    let mut session = Session::open(wire, health, opening, target.client).await?;
    session.listen();
    let era = session.era();
    Ok((session, era))
}

/// Events over one URL, messages to another.
async fn events(line: &Line, target: &Target<'_>) -> Result<(Session, Era), AskError> {
    let wire = sse::Wire::open(&line.client, &target.url, target.headers, target.longest).await;
    let (wire, health) = wire.map_err(|error| of_wire(&error))?;
    let session = Session::open(wire, health, Opening::Known(Era::Events), target.client).await?;
    Ok((session, Era::Events))
}

/// Whether the server was understood to speak the oldest way.
fn knows_more(error: &AskError) -> bool {
    let is_odd = |told: &CallError| told.kind == Kind::BadOutput;
    is_about_login(error) || matches!(error, AskError::Told(told) if is_odd(told))
}

fn is_about_login(error: &AskError) -> bool {
    matches!(error, AskError::Login(_))
}
