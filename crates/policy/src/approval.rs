//! Questions to the owner, and answers that are remembered.

use std::borrow::Cow;

use crate::arguments::{Arguments, Pattern};

/// Where a call comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The owner's own terminal.
    Terminal,
    /// An agent, by the name of the surface (`mcp`, `http`) and its session.
    Agent {
        /// Which surface.
        name: String,
        /// One client's session.
        session: String,
        /// Who it is, for the owner to read; whose an answer is is told by it, and nothing else is decided.
        who: Who,
    },
    /// A test of the package itself.
    Test,
}

/// Who calls, as far as that can be said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// What the owner calls it: the name of its token.
    pub name: Option<String>,
    /// Whether that is the name of a token, which nobody else has.
    pub has_token: bool,
    /// What its program says that it is. Nobody has proved that.
    pub says: Option<String>,
}

impl Who {
    /// What the owner calls whoever starts `haft mcp`; no token has the name.
    pub const STDIO: &str = "stdio";

    /// Whether the name is of one client in all its conversations: of a token, or of whoever runs as the owner on this machine.
    pub fn is_known(&self) -> bool {
        self.has_token || self.name.as_deref() == Some(Self::STDIO)
    }
}

impl Surface {
    /// Its name in records.
    pub fn name(&self) -> &str {
        match self {
            Self::Terminal => "terminal",
            Self::Agent { name, .. } => name,
            Self::Test => "test",
        }
    }

    /// The conversation that it is, where there is one.
    pub fn session(&self) -> &str {
        match self {
            Self::Agent { session, .. } => session,
            Self::Terminal | Self::Test => "",
        }
    }

    /// Who it is in records: by the name of the token that was shown, or else as a conversation.
    pub fn client(&self) -> &str {
        match self {
            Self::Agent { who: Who { name: Some(name), has_token: true, .. }, .. } => name,
            _ => self.session(),
        }
    }
}

/// What the owner has to say yes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The action.
    pub action: String,
    /// Why it is asked.
    pub why: Why,
    /// The digest of the arguments that the answer is for.
    pub digest: String,
    /// How long an answer counts, in seconds.
    pub expires_seconds: u64,
    /// The key of the policy by which it is asked.
    pub rule: &'static str,
    /// Whether it is asked the first time only: a yes counts for this action from now on, wherever the call
    /// came from.
    pub is_first: bool,
}

/// Why the owner is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The package demands it.
    Declared,
    /// The package was asked whether it demands it, and failed with these words.
    Failed(String),
    /// The action cannot be undone.
    Destructive,
    /// The policy demands it.
    Policy,
    /// The policy demands it the first time.
    PolicyFirst,
    /// The action does not say what it changes, and this surface has not called it before.
    FirstCall,
    /// It is a chain, and some of its steps need the owner's word.
    Steps,
}

impl Why {
    /// In words, after "because".
    pub fn words(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Declared => "the package asks for it",
            // A stranger's words: quoted, so that they cannot pass for ours.
            Self::Failed(words) => {
                return format!("its `requiresApproval` failed: {words:?}").into();
            }
            Self::Destructive => "the action is destructive",
            Self::Policy => "your policy asks for it",
            Self::PolicyFirst => "your policy asks for it the first time",
            Self::Steps => "some of its steps need your word",
            Self::FirstCall => {
                "the action does not say what it changes and is called here for the first time"
            }
        })
    }
}

/// What the owner answered to a question of before.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    /// The action.
    pub action: String,
    /// The arguments that are meant.
    pub pattern: Pattern,
    /// The session it counts for; all of them if there is none.
    pub session: Option<String>,
}

/// An answer to the question of this very call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The owner said yes, to arguments with this digest.
    Approved {
        /// Their digest.
        digest: String,
    },
    /// The owner said no.
    Refused,
}

/// All that the owner answered before and that may matter for a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Answers that count for more than one call.
    pub remembered: Vec<Remembered>,
    /// Whether the owner has already let this action be called from this surface.
    pub is_known: bool,
    /// The answer to this call.
    pub answer: Option<Answer>,
}

impl Memory {
    /// The remembered answer that covers a call.
    pub fn covers(
        &self,
        action: &str,
        arguments: &Arguments,
        surface: &Surface,
    ) -> Option<&Remembered> {
        let session = match surface {
            Surface::Agent { session, .. } => Some(session),
            Surface::Terminal | Surface::Test => None,
        };
        self.remembered.iter().find(|one| {
            one.action == action
                && one.session.as_ref().is_none_or(|wanted| Some(wanted) == session)
                && one.pattern.fits(arguments)
        })
    }
}
