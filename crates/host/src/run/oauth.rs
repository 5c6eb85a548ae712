//! Tokens of OAuth 2: fetched when they are needed, kept in memory until shortly before they end.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use egress::http::{Client, HeaderName, HeaderValue, Method, Request, Response, SendError};
use tokio::time::timeout_at;
use vault::{FileVault, Secret};

use super::http::not_sent;
use crate::error::{CallError, Kind};
use crate::limit::too_late;
use crate::login::form::{basic, encoded, form};
use crate::login::kept::life;
use crate::login::talk::{code, said};
use crate::login::underway::Underway;
use crate::login::{LoginError, logins};
use crate::request::Account;

/// How long a token is kept of which nobody said when it ends.
const UNSAID: Duration = Duration::from_mins(5);

/// How long a token endpoint may take, also where the call may not: what it gives takes the place of what it was
/// given, and would be lost.
const WITHIN: Duration = Duration::from_secs(10);

/// The longest answer of a token endpoint.
const MOST: u64 = 256 << 10;

const AUTHORIZATION: HeaderName = HeaderName::from_static("authorization");

/// The tokens that are known.
pub(crate) struct Tokens {
    known: Mutex<HashMap<Account, Token>>,
    /// One for each account: whoever fetches a token has it.
    turns: Mutex<HashMap<Account, Arc<tokio::sync::Mutex<()>>>>,
    vault: Arc<FileVault>,
    locks: PathBuf,
    underway: Underway,
}

struct Token {
    access: String,
    /// What the endpoint said is to be used the next time, where it changes.
    refresh: Option<String>,
    until: Instant,
}

/// How many accounts are known at a time.
const MOST_ACCOUNTS: usize = 1024;

impl Tokens {
    /// Nothing is known yet. Refresh tokens are kept in the vault of a home.
    pub(crate) fn new(vault: Arc<FileVault>, home: &Path) -> Self {
        let locks = home.join("locks");
        let (known, turns) = (Mutex::default(), Mutex::default());
        Self { known, turns, vault, locks, underway: Underway::default() }
    }

    /// A token for an account: one that is known, or a new one. Of those who need a new one at the same
    /// time, one fetches it. They wait as long as they may; one that is being fetched is not given up.
    pub(crate) async fn of(
        self: &Arc<Self>,
        account: &Account,
        client: &Client,
        until: Instant,
    ) -> Result<String, CallError> {
        if let Some(access) = self.current(account) {
            return Ok(access);
        }
        let turn = Arc::clone(lock(&self.turns).entry(account.clone()).or_default());
        let late = |_| too_late("it waited for a token");
        let turn = timeout_at(until.into(), turn.lock_owned()).await.map_err(late)?;
        if let Some(access) = self.current(account) {
            return Ok(access);
        }
        let renewed = lock(&self.known).get(account).and_then(|token| token.refresh.clone());
        let (mut kept, mut alone) = (None, None);
        if let Some(place) = &account.kept_at {
            // Another program may use the same refresh token, and each of them is good for one use only.
            alone = Some(logins::lock(&self.locks, &place.to_string(), until).await?);
            kept = self.vault.get(place).map_err(LoginError::Vault)?;
        }
        let (tokens, account, client) = (Arc::clone(self), account.clone(), client.clone());
        let fetching = self.underway.finish(async move {
            let _held = (turn, alone);
            tokens.fetched(&account, kept, renewed, &client, until).await
        });
        let broken =
            |_| Err(CallError::new(Kind::Unavailable, "the fetching of a token broke off"));
        timeout_at(until.into(), fetching).await.map_err(late)?.unwrap_or_else(broken)
    }

    /// Waits for tokens that are being fetched, for a while.
    pub(crate) async fn settle(&self) {
        self.underway.settle().await;
    }

    async fn fetched(
        &self,
        account: &Account,
        kept: Option<Secret>,
        renewed: Option<String>,
        client: &Client,
        until: Instant,
    ) -> Result<String, CallError> {
        let used = kept.as_ref().map(|kept| kept.expose().to_owned()).or(renewed);
        let token = fetch(account, used, client, until.max(Instant::now() + WITHIN)).await?;
        let access = token.access.clone();
        let mut later = account.clone();
        if let (Some(place), Some(kept), Some(next)) = (&account.kept_at, &kept, &token.refresh)
            && kept.expose() != next
        {
            // It is written before anything is done with what came along with it. What the owner set or removed
            // meanwhile stays as they have it, and this one is for this program alone.
            let secret = Secret::new(next.clone());
            let secret = secret.map_err(|_| bad("the token endpoint gave a token without end"))?;
            if self.vault.replace(place, kept, &secret).map_err(LoginError::Vault)? {
                later.refresh_token = Some(next.clone());
            }
        }
        let mut known = lock(&self.known);
        if known.len() >= MOST_ACCOUNTS {
            known.clear();
            lock(&self.turns).clear();
        }
        if later != *account {
            // The next call finds the newer one in the vault.
            let Token { access, refresh, until } = &token;
            let same = Token { access: access.clone(), refresh: refresh.clone(), until: *until };
            known.insert(later, same);
        }
        known.insert(account.clone(), token);
        Ok(access)
    }

    fn current(&self, account: &Account) -> Option<String> {
        let known = lock(&self.known);
        let token = known.get(account).filter(|token| token.until > Instant::now());
        token.map(|token| token.access.clone())
    }

    /// A token was refused, so it is not used again; another that was fetched meanwhile is.
    pub(crate) fn forget(&self, account: &Account, refused: &str) {
        let mut known = lock(&self.known);
        if let Some(token) = known.get_mut(account).filter(|token| token.access == refused) {
            token.until = Instant::now();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bad(message: &str) -> CallError {
    CallError::new(Kind::BadOutput, message)
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tokens").finish_non_exhaustive()
    }
}

async fn fetch(
    account: &Account,
    renewed: Option<String>,
    client: &Client,
    until: Instant,
) -> Result<Token, CallError> {
    let refresh = renewed.or_else(|| account.refresh_token.clone());
    let ask = async |way| {
        let left = until.saturating_duration_since(Instant::now());
        let request = request(account, refresh.as_deref(), way, left);
        client.send(request).await.map_err(|error| match error {
            // This limit is ours, and not that of the call.
            SendError::TooLarge { most } => {
                bad(&format!("the token endpoint answered with more than {most} bytes"))
            }
            error => not_sent(&error, &account.token_url),
        })
    };
    let mut response = ask(SecretIn::Header).await?;
    for other in other_ways(account) {
        let is_unknown = matches!(response.status.as_u16(), 400 | 401)
            && said(&response)["error"] == "invalid_client";
        if !is_unknown {
            break;
        }
        response = ask(*other).await?;
    }
    read(&response, refresh)
}

/// Where a secret is put. Servers must understand the first way; some do not decode what is encoded, and
/// some look into the body only.
#[derive(Clone, Copy)]
enum SecretIn {
    Header,
    HeaderAsItIs,
    Body,
}

fn other_ways(account: &Account) -> &'static [SecretIn] {
    match &account.client_secret {
        None => &[],
        Some(secret)
            if encoded(secret) == *secret && encoded(&account.client_id) == account.client_id =>
        {
            &[SecretIn::Body]
        }
        Some(_) => &[SecretIn::HeaderAsItIs, SecretIn::Body],
    }
}

fn request(account: &Account, refresh: Option<&str>, way: SecretIn, within: Duration) -> Request {
    let mut pairs = match refresh {
        Some(token) => vec![("grant_type", "refresh_token"), ("refresh_token", token)],
        None => vec![("grant_type", "client_credentials")],
    };
    let scopes = account.scopes.join(" ");
    // A refresh without scopes gives those that were granted before; more would be refused.
    if refresh.is_none() && !scopes.is_empty() {
        pairs.push(("scope", &scopes));
    }
    let mut request = Request::new(Method::POST, account.token_url.clone());
    match (&account.client_secret, way) {
        (Some(secret), SecretIn::Header) => {
            let (id, secret) = (encoded(&account.client_id), encoded(secret));
            request.headers.insert(AUTHORIZATION, basic(&id, &secret));
        }
        (Some(secret), SecretIn::HeaderAsItIs) => {
            request.headers.insert(AUTHORIZATION, basic(&account.client_id, secret));
        }
        (secret, _) => {
            pairs.push(("client_id", &account.client_id));
            pairs.extend(secret.as_deref().map(|secret| ("client_secret", secret)));
        }
    }
    request.body = Some(form(pairs).into_bytes());
    for (name, value) in
        [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")]
    {
        request.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    request.within = within;
    request.most = MOST;
    // A secret is in the body, and a redirect would carry it elsewhere.
    request.redirects = 0;
    request
}

fn read(response: &Response, refresh: Option<String>) -> Result<Token, CallError> {
    let said = said(response);
    if !response.status.is_success() {
        let code = code(&said);
        let words = code.as_ref().map(|code| format!(": {code}")).unwrap_or_default();
        let message = format!("the token endpoint answered {}{words}", response.status);
        let error = CallError::new(Kind::Failed, message).with("status", response.status.as_u16());
        return Err(match code {
            Some(code) => error.with("error", code),
            None => error,
        });
    }
    let Some(access) = said["access_token"].as_str().filter(|token| !token.is_empty()) else {
        return Err(bad("the token endpoint answered without a token"));
    };
    if said["token_type"].as_str().is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(bad("the token endpoint gave a token that is no bearer token"));
    }
    let life = life(&said).unwrap_or(UNSAID);
    let refresh = said["refresh_token"].as_str().map(str::to_owned).or(refresh);
    Ok(Token { access: access.to_owned(), refresh, until: Instant::now() + life })
}

#[cfg(test)]
mod tests {
    use egress::http::Url;

    use super::*;

    #[test]
    fn a_token_that_was_renewed_meanwhile_is_not_forgotten_with_the_old_one() {
        let home = tempfile::tempdir().unwrap();
        let vault = Arc::new(FileVault::open(home.path().join("vault"), || None).unwrap());
        let tokens = Tokens::new(vault, home.path());
        let account = Account {
            token_url: Url::parse("https://as.test/token").unwrap(),
            client_id: "me".to_owned(),
            client_secret: None,
            refresh_token: None,
            scopes: Vec::new(),
            refresh_name: None,
            kept_at: None,
        };
        let until = Instant::now() + Duration::from_mins(1);
        let new = Token { access: "new".to_owned(), refresh: None, until };
        lock(&tokens.known).insert(account.clone(), new);
        tokens.forget(&account, "old");
        assert_eq!(tokens.current(&account).as_deref(), Some("new"));
        tokens.forget(&account, "new");
        assert_eq!(tokens.current(&account), None);
    }
}
