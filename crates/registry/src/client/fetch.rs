//! One answer: asked for, asked again when it fails for a moment, kept, or taken from what is kept.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use egress::Rules;
use egress::Watch;
use egress::http::{
    Client, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, SetupError, StatusCode,
    Url,
};
use egress::resolve::{Resolve, SystemResolver};

use super::address::Address;
use super::bounds::clip;
use super::cache::{Cache, Kept};
use super::error::FetchError;
use super::limits::{self, Limits};
use super::pace::{Pace, chance, retry_after};
use super::token::Token;
use crate::channel::Channel;
use crate::error::ErrorBody;
use crate::link;
use crate::versions::Yank;

/// Says that a version was taken back, and why.
const YANKED: HeaderName = HeaderName::from_static("haft-yanked");
/// Says what it was taken back for, where that is more than its reason.
const YANKED_FOR: HeaderName = HeaderName::from_static("haft-yanked-for");
/// After how many answers, on average, what was used longest ago is looked for.
const PRUNED_EVERY: u32 = 32;
/// The longest tag that is kept and sent back.
const LONGEST_TAG: usize = 1_024;
/// The longest address at which an answer goes on.
const LONGEST_LINK: usize = 4_096;

/// Whether anybody is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Registries are.
    #[default]
    Online,
    /// Nobody is: what is kept has to do.
    Offline,
}

/// How a client behaves.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How much is taken.
    pub limits: Limits,
    /// When something is tried again.
    pub pace: Pace,
    /// Whether anybody is asked.
    pub reach: Reach,
    /// How far along a version may be that nobody names.
    pub channel: Channel,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::DEFAULT,
            pace: Pace::DEFAULT,
            reach: Reach::Online,
            channel: Channel::default(),
        }
    }
}

/// Whether a request may be sent again without knowing what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Asking twice is as good as asking once.
    Freely,
    /// Only where the registry has certainly not heard of it.
    Unheard,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was answered.
    pub body: Vec<u8>,
    /// Why what it is about was taken back.
    pub yanked: Option<Yank>,
    /// Where it goes on.
    pub next: Option<Url>,
}

impl From<Kept> for Answer {
    fn from(Kept { body, yanked, next, .. }: Kept) -> Self {
        Self { body, yanked, next: next.and_then(|next| Url::parse(&next).ok()) }
    }
}

/// Asks one registry, and keeps what it answers.
#[derive(Clone, Debug)]
pub struct Fetcher {
    pub(super) client: Client,
    pub(super) token: Option<HeaderValue>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) settings: Settings,
    /// Is told of the bytes of packages as they arrive.
    pub(super) watch: Watch,
    /// What kinds of answers are wanted, where that is said.
    accept: Option<HeaderValue>,
    address: Address,
}

impl Fetcher {
    /// Asks the registry at this address. A token is shown to it and to nobody else, and not where others could read
    /// it on the way.
    pub fn new(
        address: &Address,
        token: Option<&Token>,
        cache: Arc<Cache>,
        settings: Settings,
    ) -> Result<Self, SetupError> {
        let rules = Rules::from_iter(address.rule().ok());
        let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::default());
        let client = Client::new(rules, resolver)?;
        let token = token.filter(|_| address.is_private_talk()).and_then(Token::header);
        let (watch, address) = (Watch::default(), address.clone());
        Ok(Self { client, token, cache, settings, watch, accept: None, address })
    }

    /// Asks whoever a client reaches, for files that have nothing to do with registries. What it is told to show, it
    /// shows to this address alone.
    pub fn through(
        client: Client,
        address: &Address,
        cache: Arc<Cache>,
        settings: Settings,
        watch: Watch,
    ) -> Self {
        let (token, accept, address) = (None, None, address.clone());
        Self { client, token, cache, settings, watch, accept, address }
    }

    /// The same, which shows this, unless others could read it on the way.
    #[must_use]
    pub fn showing(mut self, authorization: HeaderValue) -> Self {
        self.token = Some(authorization).filter(|_| self.address.is_private_talk());
        self
    }

    /// The same, which says what kinds of answers it wants.
    #[must_use]
    pub fn accepting(mut self, kinds: HeaderValue) -> Self {
        self.accept = Some(kinds);
        self
    }

    /// The same, which takes no file with more bytes.
    #[must_use]
    pub fn at_most(mut self, bytes: u64) -> Self {
        self.settings.limits.package = bytes;
        self
    }

    /// The bytes at an address. Nothing is kept of them.
    pub async fn bytes(
        &self,
        url: Url,
        most: u64,
        within: Duration,
    ) -> Result<Vec<u8>, FetchError> {
        let request = self.request(Method::GET, url, most, within);
        let body = self.send(&request, Again::Freely).await?.body;
        self.watch.passed(body.len() as u64);
        Ok(body)
    }

    /// The same, which also reaches what these rules allow; a token stays where it is for.
    pub(crate) fn with_rules(&self, rules: Rules) -> Result<Self, SetupError> {
        let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::default());
        Ok(Self { client: Client::new(rules, resolver)?, ..self.clone() })
    }

    /// The address of the registry.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The answer of an address, of no more than so many bytes. What was kept is asked about first; where nobody is
    /// asked, it is the answer.
    pub async fn get(&self, url: Url, most: u64, within: Duration) -> Result<Answer, FetchError> {
        let key = url.as_str().to_owned();
        let kept = self.cache.answer(&key);
        if self.settings.reach == Reach::Offline {
            let kept = kept.filter(|kept| kept.body.len() as u64 <= most);
            let kept = kept.ok_or_else(|| FetchError::Offline(format!("`{}`", clip(&key, 300))))?;
            return Ok(kept.into());
        }
        let mut request = self.request(Method::GET, url, most, within);
        if let Some(tag) = kept.as_ref().and_then(|kept| kept.tag.as_deref())
            && let Ok(tag) = HeaderValue::from_str(tag)
        {
            request.headers.insert(HeaderName::from_static("if-none-match"), tag);
        }
        let response = self.send(&request, Again::Freely).await?;
        let yanked = yanked(&response.headers);
        let next = link::next(&response.headers, &response.url);
        if response.status == StatusCode::NOT_MODIFIED
            && let Some(mut kept) = kept
        {
            // What has not changed need not be told again.
            if yanked.is_some() && kept.yanked != yanked {
                kept.yanked = yanked;
                let _kept_next_time = self.cache.keep_answer(&key, &kept);
            }
            return Ok(kept.into());
        }
        if response.status != StatusCode::OK {
            return Err(FetchError::Refused {
                status: response.status.as_u16(),
                said: None,
                again: None,
            });
        }
        let tag = response.header(&HeaderName::from_static("etag"));
        let tag = tag.filter(|tag| tag.len() <= LONGEST_TAG).map(str::to_owned);
        let next = next.filter(|next| next.as_str().len() <= LONGEST_LINK).map(String::from);
        let kept = Kept { tag, yanked, next, body: response.body };
        // Who cannot keep it has it all the same.
        let _kept_next_time = self.cache.keep_answer(&key, &kept);
        if chance().is_multiple_of(PRUNED_EVERY) {
            self.cache.prune(None);
        }
        Ok(kept.into())
    }

    /// Keeps what another address is known to answer, unless that is kept already.
    pub(super) fn note(&self, url: &Url, body: &[u8], yanked: Option<&Yank>) {
        if self.cache.answer(url.as_str()).is_none_or(|kept| kept.body != body) {
            let yanked = yanked.cloned();
            let kept = Kept { tag: None, yanked, next: None, body: body.to_vec() };
            let _kept_next_time = self.cache.keep_answer(url.as_str(), &kept);
        }
    }

    /// A request to the registry, which shows the token where there is one.
    pub(super) fn request(&self, method: Method, url: Url, most: u64, within: Duration) -> Request {
        let is_there = url.origin() == self.address.url().origin();
        let mut request = Request::new(method, url);
        (request.most, request.within, request.redirects) = (most, within, 0);
        if let Some(token) = self.token.clone().filter(|_| is_there) {
            request.headers.insert(HeaderName::from_static("authorization"), token);
        }
        if let Some(kinds) = self.accept.clone() {
            request.headers.insert(HeaderName::from_static("accept"), kinds);
        }
        request
    }

    /// Sends a request, and again as long as its failure looks like one that passes. Whatever is neither a success nor
    /// `304` is a failure.
    pub(super) async fn send(
        &self,
        request: &Request,
        again: Again,
    ) -> Result<Response, FetchError> {
        if self.settings.reach == Reach::Offline {
            return Err(FetchError::Offline("an answer to this".to_owned()));
        }
        let mut failures = 0;
        loop {
            if let Some(watch) = request.watch.as_ref().filter(|_| failures > 0) {
                watch.again();
            }
            let sent = self.client.send(request.clone()).await;
            let failed = match sent {
                Ok(response) => match check_status(response) {
                    Ok(response) => return Ok(response),
                    Err(error) => error,
                },
                Err(error) => error.into(),
            };
            failures += 1;
            let may_again = match again {
                Again::Freely => failed.passes(),
                Again::Unheard => failed.was_not_heard(),
            };
            if !(may_again && self.pause(failures, &failed).await) {
                return Err(failed);
            }
        }
    }

    /// Waits before something is tried again; says whether it is.
    pub(super) async fn pause(&self, failures: u32, failed: &FetchError) -> bool {
        let asked = match failed {
            FetchError::Refused { again, .. } => again.map(Duration::from_secs),
            _ => None,
        };
        match self.settings.pace.wait(failures, asked, chance()) {
            Some(wait) => {
                tokio::time::sleep(wait).await;
                true
            }
            None => false,
        }
    }
}

fn check_status(response: Response) -> Result<Response, FetchError> {
    if response.status.is_success() || response.status == StatusCode::NOT_MODIFIED {
        return Ok(response);
    }
    Err(refused(response.status, &response.headers, &response.body))
}

/// What an answer means that is no success.
pub(super) fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> FetchError {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if status.is_redirection() {
        return FetchError::Redirected(clip(text("location").unwrap_or_default(), LONGEST_LINK));
    }
    let again = text("retry-after").and_then(|text| retry_after(text, SystemTime::now()));
    let said = crate::read::read::<ErrorBody>(body).ok().map(|said| Box::new(said.error));
    FetchError::Refused { status: status.as_u16(), said, again: again.map(|time| time.as_secs()) }
}

/// Why the version that an answer is about was taken back; nothing where no reason was given.
fn yanked(headers: &HeaderMap) -> Option<Yank> {
    let text = headers.get(YANKED)?.to_str().ok()?;
    let security = headers.get(YANKED_FOR).is_some_and(|what| what == Yank::SECURITY);
    let reason = if text == Yank::NO_REASON {
        String::new()
    } else {
        let reason = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
        clip(&reason, limits::LINE / 4)
    };
    Some(Yank { reason, security })
}
