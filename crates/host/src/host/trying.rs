//! The smoke test of a package: whether it works here, tried inside the walls before anybody relies on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use manifest::model::{Action, Invocation, SideEffects};
use manifest::smoke::{Condition, Smoke, Way};
use sandbox::Exit;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Host;
use super::errand::{self, Errand, Grounds, Lacking, What, beside};
use crate::blocked::Blocked;
use crate::call::{Approver, Call, Matter, Said, Tool};
use crate::error::{CallError, Kind};
use crate::request::{Redirects, Written};
use crate::run::mcp::assumed;
use crate::run::worker::Warmth;
use crate::secrets::Variables;
use crate::smoke::{Came, Smoked, judge};

/// What a smoke test is called in the log.
const NAME: &str = "smoke";

impl Host {
    /// Runs the smoke test of a package. It was shown on the card that the owner accepted, so nobody is asked again;
    /// what is denied stays denied. Why it could not be run at all is an error.
    pub async fn smoke(
        &self,
        tool: &Tool,
        called_off: &CancellationToken,
    ) -> Result<Smoked, CallError> {
        self.smoke_asking(tool, Arc::new(Agreed), called_off).await
    }

    /// The same, where nobody has accepted a card: a call that the owner has to be asked about is asked for.
    pub async fn smoke_asking(
        &self,
        tool: &Tool,
        approver: Arc<dyn Approver>,
        called_off: &CancellationToken,
    ) -> Result<Smoked, CallError> {
        let smoke = Smoke::of(&tool.package).ok_or_else(|| {
            CallError::new(Kind::BadInput, format!("`{}` has no smoke test", tool.package.id))
        })?;
        let (kind, began) = (smoke.way.name(), Instant::now());
        let tried = match &smoke.way {
            Way::Shell { command } => {
                let what = What::Command { argv: command, lacking: Lacking::Refused };
                self.try_errand(tool, what, smoke.within, called_off).await
            }
            Way::Http { method, url, headers, body } => {
                let (body, redirects) = (body.as_deref(), Redirects::Followed);
                let what = What::Request(Written { method, url, headers, body, redirects });
                self.try_errand(tool, what, smoke.within, called_off).await
            }
            Way::McpToolCall { tool: name, arguments } => {
                let what = (served(tool, name), arguments);
                let tried = self.try_call(tool, what, &smoke, approver, called_off);
                tried.await.map(|tried| Tried { came: tried.came.or_as_mcp_says(), ..tried })
            }
            Way::ActionCall { action, arguments } => match tool.action(action) {
                Some(action) => {
                    let what = (action.clone(), arguments);
                    self.try_call(tool, what, &smoke, approver, called_off).await
                }
                None => Err(CallError::new(Kind::Unknown, format!("unknown tool: {action}"))),
            },
        };
        match tried {
            Ok(Tried { came, variables, blocked, took }) => {
                let judged = judge(kind, &smoke.conditions, &came, &variables, took);
                Ok(Smoked { blocked, ..judged })
            }
            Err(error) => Smoked::without_answer(kind, error, began.elapsed()),
        }
    }

    async fn try_errand(
        &self,
        tool: &Tool,
        what: What<'_>,
        within: Duration,
        called_off: &CancellationToken,
    ) -> Result<Tried, CallError> {
        let errand = Errand { name: NAME, what, within };
        let done = self.run_errand(tool, &errand, called_off).await?;
        let came = match done.came {
            errand::Came::Finished(finished) => Came {
                exit: Some(match finished.ended.exit {
                    Exit::Code(code) => Ok(code),
                    Exit::Cancelled => return Err(CallError::called_off()),
                    exit => Err(format!("it {exit}")),
                }),
                aside: String::from_utf8_lossy(&finished.stderr).into_owned(),
                ..Came::of_bytes(&finished.stdout)
            },
            errand::Came::Response(response) => {
                Came { status: Some(response.status.as_u16()), ..Came::of_bytes(&response.body) }
            }
        };
        Ok(Tried { came, variables: done.variables, blocked: done.blocked, took: done.took })
    }

    /// Tries an action by the path of every call.
    async fn try_call(
        &self,
        tool: &Tool,
        (action, arguments): (Action, &Value),
        smoke: &Smoke,
        approver: Arc<dyn Approver>,
        called_off: &CancellationToken,
    ) -> Result<Tried, CallError> {
        if let Some(effects @ (SideEffects::Write | SideEffects::Destructive)) = action.side_effects
        {
            let (name, effects) = (&action.name, effects.name());
            let message =
                format!("the smoke test would run `{name}`, whose side effects are `{effects}`");
            return Err(CallError::new(Kind::Denied, message));
        }
        let timeout_ms = u64::try_from(smoke.within.as_millis()).ok();
        let mut tool = tool.clone();
        tool.package.actions = vec![Action { timeout_ms, ..action }];
        let call = Call {
            input: arguments.to_string(),
            approver: Some(approver),
            ..beside(&tool, &tool.package.actions[0].name, called_off)
        };
        // Where it is tried it may not stay, so nothing of it is kept running.
        let made = Box::pin(self.call(&tool, &call, Warmth::Cold)).await;
        let (took, blocked) = (made.took, made.blocked);
        let reply = made.reply.map_err(|error| CallError { blocked: blocked.clone(), ..error });
        let came = Came::of_output(reply?);
        let speaks_of_values =
            |one: &Condition| matches!(one, Condition::Equals(..) | Condition::In(..));
        let variables = if smoke.conditions.iter().any(speaks_of_values) {
            let Grounds { known, decision } =
                self.grounds(&tool, &call, &tool.package.actions[0]).await?;
            self.values(&tool, &known, &decision, Lacking::Left).await?
        } else {
            Variables::new()
        };
        Ok(Tried { came, variables, blocked, took })
    }
}

/// What was tried.
struct Tried {
    came: Came,
    variables: Variables,
    blocked: Vec<Blocked>,
    took: Duration,
}

/// The tool of a server, as the package declares it, if it does.
fn served(tool: &Tool, name: &str) -> Action {
    let is_it = |action: &&Action| matches!(&action.invocation, Invocation::McpTool { tool_name } if tool_name == name);
    tool.package.actions.iter().find(is_it).cloned().unwrap_or_else(|| assumed(name))
}

/// Whoever accepted a card has agreed to the smoke test on it.
#[derive(Debug)]
struct Agreed;

impl Approver for Agreed {
    fn ask(&self, _: &Matter) -> Result<Option<Said>, CallError> {
        Ok(Some(Said::Once))
    }

    fn is_there(&self) -> bool {
        true
    }
}
