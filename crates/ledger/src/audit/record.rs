//! What is written of a call, or of a change, and how much of it.
//!
//! A [`Call`] is known before it runs, an [`Ending`] after; a [`Record`] is what a line holds.
//! Texts are given as they may be shown: secrets in argv and cwd are taken out by the caller.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;

/// A call as it was asked for, and what was decided about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// The name of the tool as the caller knows it.
    pub tool: String,
    /// The package.
    pub package: String,
    /// The digest of the package's files.
    pub package_digest: String,
    /// The action.
    pub action: String,
    /// The implementation that runs it, where one was chosen.
    pub implementation: String,
    /// Where the call came from: `terminal`, `mcp`, `http`, …
    pub surface: String,
    /// Which client that was: the token that it showed, or its conversation.
    pub session: String,
    /// Whether it may run.
    pub decision: Decision,
    /// The key of the policy by which that was decided: `approval.write`; empty where it was none.
    pub rule: String,
    /// The command, redacted.
    pub argv: Vec<String>,
    /// The working folder, redacted.
    pub cwd: String,
    /// The names of the environment's variables, never their values.
    pub env_keys: Vec<String>,
    /// How strong the walls are.
    pub sandbox: String,
    /// What the arguments look like; see [`shape_of`](super::shape_of).
    pub arguments: Value,
    /// What links the records of a chain: its own and those of its steps.
    pub trace: String,
    /// The step of the chain that this call is, after those of the chains around it.
    pub step: String,
    /// What is done to the package, where it is not called: `install`, `remove`, `revoke`, …
    pub change: String,
    /// The version that this is about, of a change.
    pub version: String,
    /// The card that was accepted for it, of a change.
    pub card: String,
}

/// The owner said yes to a call that waited, as a change.
pub const APPROVE: &str = "approve";
/// They said no.
pub const REFUSE: &str = "refuse";

/// Whether a call may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    #[default]
    Allowed,
    /// It may not, for the reason with this code.
    Denied(String),
    /// Nobody got as far as deciding: the call was not one that can be made.
    Open,
}

/// How a call ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Whether it did what it should.
    pub outcome: Outcome,
    /// The exit status of the process, if there was one.
    pub exit: Option<i32>,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// How much it wrote to its output.
    pub stdout_bytes: u64,
    /// How much it wrote to its error output.
    pub stderr_bytes: u64,
    /// Whether the output was cut off.
    pub truncated: bool,
    /// How often it was tried.
    pub attempts: u32,
    /// What it reached for in vain.
    pub blocked: Vec<Blocked>,
    /// Whether nothing ran, because the answer was known from before.
    pub is_cached: bool,
}

/// Whether a call did what it should.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It did.
    #[default]
    Ok,
    /// It failed, with this code.
    Error(String),
}

/// Something a tool reached for and was not granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// What it is.
    pub kind: BlockedKind,
    /// Which one.
    pub value: String,
}

/// What a tool reached for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockedKind {
    /// A host of the network.
    Host,
    /// A file or folder.
    Path,
}

/// What a line tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A call that never ran.
    Call,
    /// A call is about to run.
    Begin,
    /// The call of the `begin` with the number in `begin` ended; all of it is told once more.
    End,
    /// A line that a killed process had left half written was taken out; `note` says where to.
    Torn,
    /// The log did not fit its signed head; `note` says how.
    Mended,
}

/// A line of the log. Members that say nothing are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the members are those of `Call` and `Ending`, and are told there")]
pub struct Record {
    /// One more than that of the record before.
    pub seq: u64,
    /// When.
    pub ts: Time,
    /// What the line tells of.
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub package: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub package_digest: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub action: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub implementation: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trace: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub change: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub card: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub surface: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// `allowed` or `denied`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Why it was denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The key of the policy by which that was decided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// `ok`, or the code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_keys: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Whether the answer was known from before, so that nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<bool>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Blocked>,
    /// Of an `end`: the number of its `begin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<u64>,
    /// What was found, for a record that tells of the log itself or of a package that got worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The hash of the record before, in hex; zeros for the first.
    #[serde(default, skip_serializing)]
    pub prev: String,
    /// The hash of this record, in hex.
    #[serde(default, skip_serializing)]
    pub hash: String,
}

impl Record {
    /// Whether something was done to a package, which was not called.
    pub fn is_change(&self) -> bool {
        !self.change.is_empty()
    }

    /// Whether it is the owner's word to a call that waited.
    pub fn is_answer(&self) -> bool {
        [APPROVE, REFUSE].contains(&self.change.as_str())
    }

    /// A record that says nothing yet.
    pub(super) fn blank(kind: Kind, ts: Time) -> Self {
        Self {
            seq: 0,
            ts,
            kind,
            tool: String::new(),
            package: String::new(),
            package_digest: String::new(),
            action: String::new(),
            implementation: String::new(),
            trace: String::new(),
            step: String::new(),
            change: String::new(),
            version: String::new(),
            card: String::new(),
            surface: String::new(),
            session: String::new(),
            decision: None,
            reason: None,
            rule: String::new(),
            outcome: None,
            argv: Vec::new(),
            cwd: String::new(),
            exit: None,
            ms: None,
            stdout_bytes: None,
            stderr_bytes: None,
            truncated: None,
            env_keys: Vec::new(),
            sandbox: String::new(),
            attempts: None,
            cached: None,
            arguments: Value::Null,
            blocked: Vec::new(),
            begin: None,
            note: None,
            prev: String::new(),
            hash: String::new(),
        }
    }

    pub(super) fn put_call(&mut self, call: &Call) {
        self.tool.clone_from(&call.tool);
        self.package.clone_from(&call.package);
        self.action.clone_from(&call.action);
        self.implementation.clone_from(&call.implementation);
        self.trace.clone_from(&call.trace);
        self.step.clone_from(&call.step);
        self.change.clone_from(&call.change);
        self.version.clone_from(&call.version);
        self.card.clone_from(&call.card);
        self.surface.clone_from(&call.surface);
        self.session.clone_from(&call.session);
        self.package_digest.clone_from(&call.package_digest);
        self.argv.clone_from(&call.argv);
        self.cwd.clone_from(&call.cwd);
        self.env_keys.clone_from(&call.env_keys);
        self.sandbox.clone_from(&call.sandbox);
        if self.arguments != call.arguments {
            self.arguments = call.arguments.clone();
        }
        let (decision, reason) = match &call.decision {
            Decision::Allowed => (Some("allowed"), None),
            Decision::Denied(reason) => (Some("denied"), Some(reason.clone())),
            Decision::Open => (None, None),
        };
        self.decision = decision.map(str::to_owned);
        self.reason = reason;
        self.rule.clone_from(&call.rule);
    }

    pub(super) fn put_outcome(&mut self, outcome: &Outcome) {
        self.outcome = Some(match outcome {
            Outcome::Ok => "ok".to_owned(),
            Outcome::Error(code) => code.clone(),
        });
    }

    pub(super) fn put_ending(&mut self, ending: &Ending) {
        self.put_outcome(&ending.outcome);
        self.blocked.clone_from(&ending.blocked);
        self.ms = Some(ending.ms);
        if self.is_change() {
            return;
        }
        self.exit = ending.exit;
        self.stdout_bytes = Some(ending.stdout_bytes);
        self.stderr_bytes = Some(ending.stderr_bytes);
        self.truncated = Some(ending.truncated);
        self.attempts = Some(ending.attempts);
        self.cached = ending.is_cached.then_some(true);
    }
}
