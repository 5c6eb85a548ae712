//! A server behind two URLs, as the revision of 2024-11-05 has it: events come over one, and the first
//! of them names the other, which messages are sent to.

use std::io;
use std::sync::Arc;

use egress::http::{Client, HeaderMap, Url};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::events::Events;
use super::health::Health;
use super::line::{self, Line, Message};
use super::not_reached;
use crate::login::challenge::WantsLogin;
use crate::run::http::answered;
use crate::run::mcp::answer::odd;

/// A wire to a server behind two URLs.
#[derive(Debug)]
pub(in crate::run::mcp) struct Wire {
    client: Client,
    headers: HeaderMap,
    messages: Url,
    events: Events,
    /// Messages of a batch that were not taken yet, the last first.
    rest: Vec<Message>,
    health: Arc<Health>,
}

impl Wire {
    /// Opens the stream of events, and waits for the first.
    pub(in crate::run::mcp) async fn open(
        client: &Client,
        url: &Url,
        headers: &HeaderMap,
        longest: u64,
    ) -> io::Result<(Self, Arc<Health>)> {
        let request = client.inner().get(url.clone()).headers(headers.clone());
        let sent = request.header(ACCEPT, "text/event-stream").send().await;
        let lost = |error| io::Error::other(not_reached(error, url.as_str()));
        let response = sent.map_err(lost)?;
        if let Some(login) = WantsLogin::of(response.status(), response.headers()) {
            return Err(io::Error::other(login));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !response.status().is_success()
            || !kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
        {
            return Err(io::Error::other(answered(response.status(), response.headers(), &[])));
        }
        let health = Health::new(longest);
        let longest = usize::try_from(longest).unwrap_or(usize::MAX);
        let mut events = Events::of(response, longest);
        let first = events.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if first.name.as_deref() != Some("endpoint") {
            return Err(io::Error::other(odd("its first event names no endpoint")));
        }
        let no_url = |_| io::Error::other(odd("the endpoint that it names is no URL"));
        let messages = url.join(&first.data).map_err(no_url)?;
        // A server must not have us carry its credentials to somebody else.
        if messages.origin() != url.origin() {
            return Err(io::Error::other(odd("the endpoint that it names is of another origin")));
        }
        let wire = Self {
            client: client.clone(),
            headers: headers.clone(),
            messages,
            events,
            rest: Vec::new(),
            health: Arc::clone(&health),
        };
        Ok((wire, health))
    }
}

impl Transport<RoleClient> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let url = self.messages.clone();
        let request = self.client.inner().post(url.clone()).headers(self.headers.clone());
        let telling = self.health.tell(&message);
        async move {
            let _telling = telling;
            let request = request.header(CONTENT_TYPE, "application/json");
            let sent = request.body(serde_json::to_vec(&message)?).send().await;
            let lost = |error| io::Error::other(not_reached(error, url.as_str()));
            let response = sent.map_err(lost)?;
            let status = response.status();
            if status.is_success() {
                return Ok(());
            }
            Err(match WantsLogin::of(status, response.headers()) {
                Some(login) => io::Error::other(login),
                None => io::Error::other(answered(status, response.headers(), &[])),
            })
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.rest.pop() {
                return self.health.take(&message).ok().map(|()| message);
            }
            let event = self.events.next().await;
            let event = event.inspect_err(|error| self.health.lost(error)).ok()??;
            let data = event.data.as_bytes();
            let line = self.health.noting(line::understand_any(data)).ok()?;
            self.health.hear(event.size, &line).ok()?;
            if let Line::Messages(mut messages) = line {
                messages.reverse();
                self.rest = messages;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
