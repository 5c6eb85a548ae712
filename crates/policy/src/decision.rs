//! What was decided about a call, and why.

use std::fmt;

use manifest::model::Trust;

use crate::approval::Question;
use crate::policy::{Level, Policy};

/// What was decided about a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Whether it may go ahead.
    pub verdict: Verdict,
    /// What it would have: the walls. Also there when it is denied, to be shown.
    pub allowance: Allowance,
    /// Every rule that had a say, in the order it was asked.
    pub reasons: Vec<Reason>,
    /// The key of the policy by which it is so: `approval.write`; empty where none is.
    pub rule: &'static str,
}

/// Whether a call may go ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allowed,
    /// It may, if the owner says so.
    Ask(Question),
    /// It may not.
    Denied(Denial),
}

/// Why a call may not go ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The package is switched off.
    Disabled,
    /// The package is trusted too little.
    Trust(Trust),
    /// The policy refuses the package by name.
    Package,
    /// The policy refuses this action.
    Action(String),
    /// The owner must sign in first.
    Login,
    /// The owner would have to sign in for what cannot be told who they are.
    NoLogin,
    /// The owner's sign-in was not granted what the action needs.
    Scopes(Vec<String>),
    /// It wants a variable of the caller that changes what programs do.
    Environment {
        /// Which.
        name: String,
        /// Those that the policy lets be passed on.
        allowed: Vec<String>,
    },
    /// The owner said no.
    Refused,
    /// An approval was for other arguments.
    OtherArguments,
}

impl Denial {
    /// The key of the policy that it comes from; empty where it is none, or one of several.
    pub(crate) fn rule(&self) -> &'static str {
        match self {
            Self::Trust(_) => "trust.allow",
            Self::Package => "package.allow",
            Self::Environment { .. } => "environment.allow",
            Self::Disabled
            | Self::Action(_)
            | Self::Login
            | Self::NoLogin
            | Self::Scopes(_)
            | Self::Refused
            | Self::OtherArguments => "",
        }
    }

    /// The policy does not let a variable be passed on.
    pub fn environment(name: &str, policy: &Policy) -> Self {
        Self::Environment { name: name.to_owned(), allowed: policy.environment.allow.clone() }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => out.write_str("capability disabled"),
            Self::Trust(trust) => {
                write!(out, "trust_level not allowed by policy: {}", trust.name())
            }
            Self::Package => out.write_str("your policy refuses this package"),
            Self::Action(action) => write!(out, "your policy refuses the action `{action}`"),
            Self::Environment { name, .. } => write!(
                out,
                "`{name}` changes what programs execute, and your policy does not let it be passed on"
            ),
            Self::Login => out.write_str("capability requires oauth onboarding"),
            Self::NoLogin => out.write_str(
                "capability requires oauth onboarding, and declares no secret that it could be given a token as",
            ),
            Self::Scopes(scopes) => write!(
                out,
                "the action needs what your sign-in was not granted: {}",
                scopes.iter().map(|scope| format!("`{scope}`")).collect::<Vec<_>>().join(", ")
            ),
            Self::Refused => out.write_str("the owner said no"),
            Self::OtherArguments => out.write_str("the approval was for other arguments"),
        }
    }
}

/// What a call would have: the walls around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Hosts it may reach.
    pub hosts: Vec<HostAllowance>,
    /// Hosts it may not, whatever the others say.
    pub denied_hosts: Vec<String>,
    /// Files and folders it may read.
    pub read: Vec<String>,
    /// Files and folders it may read and write.
    pub write: Vec<String>,
    /// Folders it may not see, whatever the others say.
    pub hidden: Vec<String>,
    /// Devices it may use.
    pub devices: Vec<String>,
    /// Variables of the caller it is given.
    pub environment: Vec<String>,
    /// The least the walls must be.
    pub level: Level,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
    /// Who says so.
    pub timeout_by: SetBy,
    /// The key of the policy that asks for this level; empty where the package does.
    pub level_by: &'static str,
    /// Its memory, in bytes.
    pub memory: u64,
    /// Who says so.
    pub memory_by: SetBy,
    /// Processors at a time, in hundredths.
    pub cpu_share: Option<u32>,
    /// Processes at a time.
    pub processes: u32,
    /// The size of its scratch folder, in bytes.
    pub scratch: u64,
    /// Bytes of its answer.
    pub output: u64,
}

/// Who set a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// Whoever calls, who may only lower it.
    Caller,
    /// The manifest.
    Manifest,
    /// What the policy says of this package.
    Package,
    /// What the policy says of every package that says nothing.
    Policy,
    /// What the policy says is the most anybody may have.
    Most,
}

/// A host that may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAllowance {
    /// The rule, as it was written.
    pub rule: String,
    /// Whether it may lead to a private address: only where the owner typed it.
    pub may_be_private: bool,
}

/// One rule that had a say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Which rule.
    pub rule: &'static str,
    /// What it said.
    pub says: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.rule, self.says)
    }
}
