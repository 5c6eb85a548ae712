//! A message to an agent, as it is planned.

use egress::Rules;
use egress::http::{HeaderValue, Url};
use policy::Allowance;
use serde_json::{Map, Value, json};
use vault::Secret;

use super::{Asked, unavailable};
use crate::confine;
use crate::error::CallError;
use crate::login::Bearer;
use crate::request::check_private;

/// A message to an agent on the network.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    /// Where the agent is spoken to.
    pub(crate) endpoint: Url,
    /// What it is told.
    pub(crate) input: Map<String, Value>,
    /// What says who is asking. Where it goes, the agent's card says.
    pub(crate) secret: Option<Secret>,
    /// Who the owner signed in as, once that is known.
    pub(crate) bearer: Option<Bearer>,
    /// What may be reached.
    pub(crate) rules: Rules,
    /// Bytes of one answer.
    pub(crate) most: u64,
}

impl Agent {
    /// The token of whoever signed in, where it is meant for this agent.
    pub(crate) fn signed(&self) -> Option<HeaderValue> {
        self.bearer.as_ref().and_then(|bearer| bearer.header(&self.endpoint))
    }

    /// Whether the agent is told a key, and no token of a sign-in.
    pub(crate) fn has_key(&self) -> bool {
        self.secret.is_some() && self.signed().is_none()
    }

    /// Refuses it where a secret would be told in plain.
    pub(super) fn check_private(&self) -> Result<(), CallError> {
        if self.secret.is_some() { check_private(&self.endpoint) } else { Ok(()) }
    }

    /// The message as one JSON value, for people and programs.
    pub(super) fn to_value(&self, allowance: &Allowance) -> Value {
        let hosts: Vec<_> = self.rules.iter().map(ToString::to_string).collect();
        json!({
            "runs": "an agent on the network",
            "url": self.endpoint.as_str(),
            "signed_in": self.secret.is_some() || self.signed().is_some(),
            "hosts": hosts,
            "timeout_ms": allowance.timeout_ms,
            "output": allowance.output,
        })
    }
}

impl Asked<'_> {
    /// Plans a message to an agent.
    pub(super) fn agent(&self, endpoint: &str) -> Result<Agent, CallError> {
        let url = Url::parse(endpoint).ok().filter(|url| {
            let is_plain = url.username().is_empty() && url.password().is_none();
            is_plain && matches!(url.scheme(), "http" | "https")
        });
        let endpoint =
            url.ok_or_else(|| unavailable(&format!("`{endpoint}` is no address of an agent")))?;
        let secret = self.only_secret()?;
        Ok(Agent {
            endpoint,
            input: self.input.arguments.value().as_object().cloned().unwrap_or_default(),
            secret,
            bearer: None,
            rules: confine::rules(&self.decision.allowance)?,
            most: self.decision.allowance.output,
        })
    }

    /// The dialect has no words for what a secret is to an agent, so there can be only one.
    fn only_secret(&self) -> Result<Option<Secret>, CallError> {
        let mut secrets = self.variables.iter().filter(|(_, one)| one.is_secret);
        let first = secrets.next();
        if secrets.next().is_some() {
            return Err(unavailable(
                "the package declares several secrets, and an agent is told one",
            ));
        }
        let secret = first.map(|(name, one)| {
            Secret::new(one.value.clone())
                .map_err(|error| unavailable(&format!("the secret `{name}` is none: {error}")))
        });
        secret.transpose()
    }
}
