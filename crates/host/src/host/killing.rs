//! The kill switch of a package: what it was given, made worthless.

use std::time::Duration;

use egress::http::Response;
use manifest::kill_switch::{ByHand, KillSwitch};
use sandbox::{Exit, Finished};
use tokio_util::sync::CancellationToken;

use super::Host;
use super::errand::{Came, Errand, Lacking, What};
use crate::blocked::Blocked;
use crate::call::Tool;
use crate::clip;
use crate::error::{CallError, Kind};
use crate::kill::Killed;
use crate::secrets::redactor;

/// What a kill switch is called in the log.
const NAME: &str = "kill_switch";

/// How long one may take; what the owner allows bounds it.
const WITHIN: Duration = Duration::from_mins(1);

/// How many bytes are told of what a command said.
const MOST_TOLD: usize = 400;

impl Host {
    /// Runs the kill switch of a package, also of one that is switched off: nothing else of it may use its secrets then.
    /// Where it has several, `secret` names the one that shows who revokes.
    pub async fn kill(
        &self,
        tool: &Tool,
        secret: Option<&str>,
        called_off: &CancellationToken,
    ) -> Result<Killed, CallError> {
        let (revoked, by_hand) = match &KillSwitch::of(&tool.package) {
            None | Some(KillSwitch::None) => return Ok(Killed::NothingToDo),
            Some(KillSwitch::Manual(by_hand)) => {
                let why = "only its owner can revoke it".to_owned();
                return Ok(Killed::Unconfirmed { why, by_hand: Some(by_hand.clone()) });
            }
            Some(KillSwitch::Url(url)) => {
                let by_hand = ByHand::Url(url.clone());
                (
                    self.revoke(tool, What::Revocation { url, secret }, called_off).await,
                    Some(by_hand),
                )
            }
            Some(KillSwitch::Shell(argv)) => {
                let what = What::Command { argv, lacking: Lacking::Left };
                (self.revoke(tool, what, called_off).await, None)
            }
        };
        match revoked {
            Ok(None) => Ok(Killed::Confirmed),
            Ok(Some(why)) => Ok(Killed::Unconfirmed { why, by_hand }),
            // Nothing was tried, and who asked can do something about that.
            Err(error) if matches!(error.kind, Kind::Cancelled | Kind::BadInput) => Err(error),
            Err(error) => {
                // Where only the owner's word leads, they are told which.
                let granting = Blocked::of(&error).first().map(|one| {
                    let (id, kind) = (tool.package.canonical_id(), one.kind().name());
                    format!("; `haft grant {id} --{kind} {}` allows it", one.asked)
                });
                let why = error.message + &granting.unwrap_or_default();
                Ok(Killed::Unconfirmed { why, by_hand })
            }
        }
    }

    /// Why a revocation is not confirmed; none where it is.
    async fn revoke(
        &self,
        tool: &Tool,
        what: What<'_>,
        called_off: &CancellationToken,
    ) -> Result<Option<String>, CallError> {
        let mut tool = tool.clone();
        (tool.package.enabled, tool.package.requires_oauth) = (true, false);
        let errand = Errand { name: NAME, what, within: WITHIN };
        let done = self.run_errand(&tool, &errand, called_off).await?;
        let why = match done.came {
            Came::Response(response) if response.status.is_success() => return Ok(None),
            Came::Response(Response { status, .. }) if status.is_redirection() => {
                format!("the server answered {status}, and the secret is told to nobody else")
            }
            Came::Response(Response { status, .. }) => format!("the server answered {status}"),
            Came::Finished(Finished { ended, .. }) if ended.exit == Exit::Code(0) => {
                return Ok(None);
            }
            Came::Finished(Finished { ended, .. }) if ended.exit == Exit::Cancelled => {
                return Err(CallError::called_off());
            }
            Came::Finished(Finished { ended, stdout, stderr }) => {
                let is_silent = stderr.trim_ascii().is_empty();
                let said = String::from_utf8_lossy(if is_silent { &stdout } else { &stderr });
                let said =
                    clip::end(redactor(&done.variables).text(said.trim()).as_str(), MOST_TOLD);
                let said = if said.is_empty() { said } else { format!(": {said}") };
                format!("the command {}{said}", ended.exit)
            }
        };
        Ok(Some(why))
    }
}
