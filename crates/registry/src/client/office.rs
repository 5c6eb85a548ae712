//! What reviewers, owners and administrators ask of a registry.

use egress::http::{HeaderName, HeaderValue, Method};
use serde::de::DeserializeOwned;

use super::error::FetchError;
use super::fetch::Again;
use super::remote::Remote;
use crate::read::{Checked, read};

/// A request.
#[derive(Clone, Debug)]
pub struct Errand<'e> {
    /// What is done.
    pub method: Method,
    /// What it is done to: what follows `/v1/`, a segment each.
    pub path: &'e [&'e str],
    /// Parameters.
    pub query: &'e [(&'e str, &'e str)],
    /// What is said, as JSON.
    pub body: Option<Vec<u8>>,
    /// Who may ask.
    pub by: By,
}

/// Who may ask for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Whoever has a token.
    Token,
    /// Anybody, but what is said is a secret.
    Secret,
    /// Anybody; a token is shown where there is one.
    Anybody,
}

impl<'e> Errand<'e> {
    /// What somebody with a token asks for.
    pub fn new(method: Method, path: &'e [&'e str]) -> Self {
        Self { method, path, query: &[], body: None, by: By::Token }
    }
}

impl Remote {
    /// Asks, and reads the answer.
    pub async fn ask<T: DeserializeOwned + Checked>(
        &self,
        errand: Errand<'_>,
    ) -> Result<T, FetchError> {
        read(&self.answer(errand).await?).map_err(|error| FetchError::Unreadable("answer", error))
    }

    /// Asks for something that answers nothing.
    pub async fn tell(&self, errand: Errand<'_>) -> Result<(), FetchError> {
        self.answer(errand).await.map(drop)
    }

    async fn answer(&self, errand: Errand<'_>) -> Result<Vec<u8>, FetchError> {
        match errand.by {
            By::Token => self.check_token()?,
            By::Secret => self.check_private_talk()?,
            By::Anybody => {}
        }
        let mut url = self.url(errand.path);
        if !errand.query.is_empty() {
            url.query_pairs_mut().extend_pairs(errand.query);
        }
        let limits = self.fetcher.settings.limits;
        // Only asking changes nothing when it is done twice.
        let again = if errand.method == Method::GET { Again::Freely } else { Again::Unheard };
        let mut request = self.fetcher.request(errand.method, url, limits.versions, limits.within);
        if errand.body.is_some() {
            let json = HeaderValue::from_static("application/json");
            request.headers.insert(HeaderName::from_static("content-type"), json);
        }
        request.body = errand.body;
        Ok(self.fetcher.send(&request, again).await?.body)
    }
}
