//! A request to a server.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use egress::Rules;
use egress::http::{Client, HeaderMap, HeaderName, Request, Response, SendError, StatusCode, Url};
use egress::resolve::{Resolve, SystemResolver};
use manifest::model::{Action, OutputFormat};
use vault::{FileVault, Redactor, Secret};

use super::oauth::Tokens;
use super::place_of;
use crate::blocked::Blocked;
use crate::call::{Output, TraceContext};
use crate::error::{CallError, Kind};
use crate::limit::too_late;
use crate::output;
use crate::promise::check_heard;
use crate::request::{Http, Redirects, put_bearer};
use crate::stream::Stream;
use crate::strict::strict;
use crate::tape::{Answer, Asked, Tape, Turn};

/// The longest wait a server may ask for, in seconds.
const LONGEST_WAIT: u32 = 10;

/// How many clients are kept: one for each set of rules.
const MOST_CLIENTS: usize = 32;

/// What all HTTP calls of one host share: connections and tokens.
pub(crate) struct Web {
    clients: Mutex<Vec<(Rules, Client)>>,
    tokens: Arc<Tokens>,
    resolver: Arc<dyn Resolve>,
    /// Who hears requests, or answers them.
    tape: Option<Arc<dyn Tape>>,
}

/// What came of a request.
pub(crate) struct Answered {
    pub(crate) output: Result<Output, CallError>,
    pub(crate) attempts: u32,
    pub(crate) blocked: Vec<Blocked>,
    /// The tokens it was asked with.
    pub(crate) told: Vec<Secret>,
}

impl Web {
    /// Nothing was asked yet; tokens that change are kept in the vault of a home.
    pub(crate) fn new(
        vault: Arc<FileVault>,
        home: &Path,
        tape: Option<Arc<dyn Tape>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            clients: Mutex::default(),
            tokens: Arc::new(Tokens::new(vault, home)),
            resolver: Arc::new(SystemResolver::default()),
            tape,
        })
    }

    /// Whether no server is asked.
    pub(crate) fn is_offline(&self) -> bool {
        self.tape.as_ref().is_some_and(|tape| tape.is_offline())
    }

    /// Sends a request, and reads the response as the action promises.
    pub(crate) async fn call(
        &self,
        asked: (&Http, &Redactor, Option<&TraceContext>),
        action: &Action,
        until: Instant,
        stream: Option<&Stream>,
    ) -> Answered {
        let mut attempts = 0;
        let mut told = Vec::new();
        let answered = self.attempt(asked, until, stream, &mut attempts, &mut told).await;
        let output = answered.and_then(|response| read(response, action, until, stream));
        let blocked = output.as_ref().err().map(Blocked::of).unwrap_or_default();
        Answered { output, attempts, blocked, told }
    }

    /// Sends a request, and gives the response as it is.
    pub(crate) async fn fetch(
        &self,
        (plan, redactor): (&Http, &Redactor),
        until: Instant,
    ) -> Result<Response, CallError> {
        self.attempt((plan, redactor, None), until, None, &mut 0, &mut Vec::new()).await
    }

    async fn attempt(
        &self,
        (plan, redactor, context): (&Http, &Redactor, Option<&TraceContext>),
        until: Instant,
        stream: Option<&Stream>,
        attempts: &mut u32,
        told: &mut Vec<Secret>,
    ) -> Result<Response, CallError> {
        let mut heard = |status: StatusCode, bytes: &[u8]| {
            stream.iter().filter(|_| status.is_success()).for_each(|stream| stream.hear(bytes));
        };
        let tape = self.tape.as_ref().map(|tape| (tape, Asked::of(plan, redactor)));
        if let Some((tape, asked)) = &tape
            && let Some(kept) = kept(tape.answer(asked), asked, plan)
        {
            *attempts += 1;
            return kept.inspect(|response| heard(response.status, &response.body));
        }
        let client = self.client(&plan.rules)?;
        let mut may_renew = plan.account.is_some();
        loop {
            let mut request = self.request(plan, &client, until, told).await?;
            if let Some(context) = context {
                context.put_into_head(&mut request.headers);
            }
            *attempts += 1;
            match client.send_hearing(request, &mut heard).await {
                // It was not listened to, so this is the same attempt with another token.
                Ok(response) if response.status == StatusCode::UNAUTHORIZED && may_renew => {
                    may_renew = false;
                    if let (Some(account), Some(refused)) = (&plan.account, told.last()) {
                        self.tokens.forget(account, refused.expose());
                    }
                }
                Ok(response) => {
                    if let Some((tape, asked)) = tape {
                        let tokens = tokens(told);
                        tape.heard(asked, Answer::of(&response, &[redactor, &tokens]));
                    }
                    return Ok(response);
                }
                Err(error) => return Err(not_sent(&error, &plan.url)),
            }
        }
    }

    async fn request(
        &self,
        plan: &Http,
        client: &Client,
        until: Instant,
        told: &mut Vec<Secret>,
    ) -> Result<Request, CallError> {
        let mut request = Request::new(plan.method.clone(), plan.url.clone());
        request.headers.extend(plan.headers.clone());
        request.body.clone_from(&plan.body);
        request.most = plan.most;
        if plan.redirects == Redirects::Left {
            request.redirects = 0;
        }
        if let Some(account) = &plan.account {
            // A target that may not be asked is not worth a token.
            let refused = |refusal| CallError::refused(&place_of(&plan.url), refusal);
            client.check(&plan.url).map_err(refused)?;
            let token = self.tokens.of(account, client, until).await?;
            put_bearer(&mut request.headers, &token)?;
            told.extend(Secret::new(token).ok());
        }
        request.within = left(until);
        Ok(request)
    }

    /// Waits for tokens that are being fetched, for a while.
    pub(crate) async fn settle(&self) {
        self.tokens.settle().await;
    }

    /// The client of these rules; connections are shared among the calls that have the same.
    pub(super) fn client(&self, rules: &Rules) -> Result<Client, CallError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| known == rules) {
            return Ok(client.clone());
        }
        let made = Client::new(rules.clone(), Arc::clone(&self.resolver));
        let client = made.map_err(|error| CallError::new(Kind::Unavailable, error.to_string()))?;
        if clients.len() >= MOST_CLIENTS {
            clients.remove(0);
        }
        clients.push((rules.clone(), client.clone()));
        Ok(client)
    }
}

impl std::fmt::Debug for Web {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Web").finish_non_exhaustive()
    }
}

/// What a tape answers a request with; nothing where the server is asked.
fn kept(turn: Turn, asked: &Asked, plan: &Http) -> Option<Result<Response, CallError>> {
    let answer = match turn {
        Turn::Server => return None,
        Turn::Kept(answer) => answer,
        Turn::Nobody => {
            let message = format!("no answer to `{asked}` was recorded");
            return Some(Err(CallError::new(Kind::Unavailable, message).with("unrecorded", true)));
        }
    };
    if answer.body.len() as u64 > plan.most {
        return Some(Err(not_sent(&SendError::TooLarge { most: plan.most }, &plan.url)));
    }
    let response = answer.into_response(plan.url.clone());
    let broken = || {
        let message = format!("what was recorded for `{asked}` is no answer of a server");
        CallError::new(Kind::Unavailable, message)
    };
    Some(response.ok_or_else(broken))
}

/// Takes tokens out of whatever is shown of a request.
pub(crate) fn tokens(told: &[Secret]) -> Redactor {
    Redactor::new(told.iter().map(|secret| ("token", secret)))
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// After how many seconds the same may be asked again, if it is worth it.
fn passes_after(status: StatusCode, headers: &HeaderMap) -> Option<u32> {
    if !matches!(status.as_u16(), 429 | 502 | 503 | 504) {
        return None;
    }
    let asked = headers.get("retry-after").and_then(|value| value.to_str().ok());
    let asked: Option<u32> = asked.and_then(|text| text.trim().parse().ok());
    Some(asked.unwrap_or_default()).filter(|asked| *asked <= LONGEST_WAIT)
}

/// Why there is no response from a URL.
pub(super) fn not_sent(error: &SendError, url: &Url) -> CallError {
    let place = place_of(url);
    let kind = match error {
        SendError::Refused { asked, refusal } => return CallError::refused(asked, *refusal),
        SendError::TimedOut => return too_late(&format!("`{place}` had not answered")),
        SendError::TooLarge { .. } => Kind::TooMuchOutput,
        SendError::Header(_) => Kind::Denied,
        SendError::TooManyRedirects { .. } | SendError::BadRedirect | SendError::Downgrade => {
            Kind::Failed
        }
        SendError::Unresolved(_)
        | SendError::NotConnected(_)
        | SendError::Lost(_)
        | SendError::Interrupted(_) => Kind::Unavailable,
    };
    // The deepest cause says most: `connection refused`, `invalid peer certificate`.
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    let told = CallError::new(kind, format!("the request to `{place}` failed: {error}{cause}"));
    if error.is_transient() { told.passing() } else { told }
}

/// A server that answered, but not that it did what it was asked.
pub(crate) fn answered(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> CallError {
    let told = CallError::new(Kind::Failed, format!("the server answered {status}"))
        .with("status", status.as_u16())
        .with("body", String::from_utf8_lossy(body));
    CallError { passes_after: passes_after(status, headers), ..told }
}

/// Reads a response as the action promises.
fn read(
    response: Response,
    action: &Action,
    until: Instant,
    stream: Option<&Stream>,
) -> Result<Output, CallError> {
    if let Some(coding) = response.header(&HeaderName::from_static("content-encoding"))
        && !coding.eq_ignore_ascii_case("identity")
    {
        let message = format!("the answer is packed (`{coding}`), which was not asked for");
        return Err(CallError::new(Kind::BadOutput, message));
    }
    if !response.status.is_success() {
        return Err(failed(&response, action));
    }
    let said = response.header(&HeaderName::from_static("content-type")).map(str::to_owned);
    let output = match action.output_format {
        Some(OutputFormat::Json) if response.body.is_empty() => {
            Output::Json(serde_json::Value::Null)
        }
        Some(OutputFormat::Binary) if said.is_some() => {
            Output::binary(response.body, said.as_deref())
        }
        _ => output::by_format(&response.body, action.output_format)?,
    };
    check_heard(output, action, until, stream)
}

/// A server that said itself that it failed.
fn failed(response: &Response, action: &Action) -> CallError {
    let error = answered(response.status, &response.headers, &response.body);
    let told = std::str::from_utf8(&response.body).ok();
    if action.standard_errors
        && let Some(said) = told.and_then(strict).as_ref().and_then(output::envelope)
    {
        let said = said.with("status", response.status.as_u16());
        return CallError { passes_after: error.passes_after, ..said };
    }
    error
}
