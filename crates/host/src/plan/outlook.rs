//! What can be told before a call beside its plan: what may still keep it from being made.

use serde_json::{Map, Value};

use crate::error::CallError;
use crate::spending::Left;

/// What can be told before a call beside its plan.
#[derive(Clone, Debug)]
pub(crate) struct Outlook {
    /// What the walls of this machine are worth.
    pub(crate) level: sandbox::Level,
    /// What is left to spend.
    pub(crate) budget: Left,
    /// Why it would be refused, where it would.
    pub(crate) refused: Option<CallError>,
    /// What the tool needs and is not there, as it is told.
    pub(crate) missing: Vec<Value>,
    /// Why its secrets cannot be had, where they cannot.
    pub(crate) no_secrets: Option<CallError>,
    /// Whether the tool is asked for its own word first.
    pub(crate) has_hooks: bool,
    /// Why an engine cannot run its image, where it cannot.
    pub(crate) no_image: Option<String>,
    /// Its steps, of a chain, as they are told.
    pub(crate) steps: Vec<Value>,
}

impl Outlook {
    /// The steps of a chain, as they are told.
    pub(super) fn steps(&self) -> Vec<Value> {
        self.steps.clone()
    }

    /// What is told of it.
    pub(super) fn to_value(&self) -> Map<String, Value> {
        let mut told = Map::new();
        told.insert("budget".into(), self.budget.limits.as_slice().into());
        told.insert("missing".into(), self.missing.as_slice().into());
        let words = [
            ("secrets", self.no_secrets.as_ref().map(ToString::to_string)),
            ("hooks", self.has_hooks.then(|| HOOKS.to_owned())),
            ("image_missing", self.no_image.clone()),
        ];
        told.extend(
            words.into_iter().filter_map(|(name, words)| Some((name.into(), words?.into()))),
        );
        told
    }
}

const HOOKS: &str = "`requiresApproval`, `requiredSecrets` and `getApprovalMessage` of the tool are asked when it is called, so it may want your approval, or secrets that are not named here";
