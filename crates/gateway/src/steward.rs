//! What a gateway has done for it by the program that runs it: what is installed is found, and what the owner's policy wants
//! done is done.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use host::violation::Violation;
use host::{CallError, Settings, Tool};
use manifest::export::Context;
use manifest::model::Trust;
use prove::measured::All;
use serde_json::Value;
use vault::Secret;

pub use crate::mark::Files;

/// What a gateway has done for it.
pub trait Steward: fmt::Debug + Send + Sync + 'static {
    /// The files that say what is installed and what is allowed. When one of them is another, all of it is read anew.
    fn files(&self) -> Vec<PathBuf>;

    /// What only the owner may write for all of that to be their word. When somebody else may, all of it is read anew, too.
    fn guarded(&self) -> Vec<PathBuf>;

    /// What the host has to know, or why that cannot be said.
    fn settings(&self) -> Result<Settings, String>;

    /// What is installed.
    fn packages(&self) -> Result<Vec<Package>, String>;

    /// What is known of tools beside what they declare, by the ids of their packages: what their authors show, and how their tests
    /// went. It takes its time.
    fn context(&self, tools: &[&Tool], measured: &All) -> BTreeMap<String, Context>;

    /// The ids of what is installed, the best by its rank first. It takes its time.
    fn order(&self, measured: &All) -> Result<Vec<String>, String>;

    /// Tells whoever runs the gateway that nothing can be called from now on, and why; or that it can again.
    fn troubled(&self, words: Option<&str>);

    /// Does what the owner wants done about a tool that reached for what it was not given.
    fn violated(&self, tool: &Tool, violation: &Violation);

    /// What the owner can do about a call that came to nothing, in the words of the command line: a phrase each.
    fn remedies(&self, error: &CallError, tool: &Tool) -> Vec<String>;

    /// Does what somebody asks for, by the same way as at a terminal; what came of it, as programs are told.
    /// It takes its time.
    fn deed(&self, by: &By, deed: &Deed) -> Result<Value, Trouble>;

    /// Begins to sign the owner in for a package, up to the page for their browser. It takes its time.
    fn sign_in(&self, by: &By, wanted: &SignIn) -> Result<Box<dyn SigningIn>, Trouble>;
}

/// Somebody who is about to sign in. Nothing is left of it where this is dropped.
pub trait SigningIn: fmt::Debug + Send {
    /// What programs are told of it: the page, its state, where the browser is sent with the answer, what is asked for.
    fn told(&self) -> &Value;

    /// Goes on with the address that the browser was sent to; what came of it, without anything secret. It takes its time.
    fn finish(self: Box<Self>, redirected: &Secret) -> Result<Value, Trouble>;
}

/// What somebody wants to sign in for, and how. What is not said is found out.
#[derive(Clone, Debug, Default)]
pub struct SignIn {
    /// The package.
    pub id: String,
    /// What is asked for, besides what was granted before.
    pub scopes: Vec<String>,
    /// The authorization server, where nobody on the network says which one it is.
    pub issuer: Option<String>,
    /// The secret that the package is given the token as.
    pub secret: Option<String>,
    /// What the token is for.
    pub resource: Option<String>,
    /// The hosts of the authorization server that are agreed to.
    pub hosts: Vec<String>,
    /// What the owner is registered as there.
    pub client_id: Option<String>,
    /// What proves it.
    pub client_secret: Option<Secret>,
    /// Where the browser is sent with the answer, if not to a port of this machine.
    pub redirect: Option<String>,
}

/// Who asks for a deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The owner, in the console.
    Console,
    /// Somebody with a token, over HTTP or as an agent: the name of the token, or of who it is.
    Token(String),
}

/// What the owner may ask for in the console.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Tools of the registries that are known.
    Search {
        /// What they should do.
        words: String,
    },
    /// The card of a package: who made it, what it wants, what will run.
    Card {
        /// What was typed: an id, a path, an address.
        what: String,
    },
    /// A package is installed, if its card is this one.
    Install {
        /// What was typed.
        what: String,
        /// The digest of the card that was accepted.
        card: String,
        /// What it asks for.
        values: Vec<(String, Secret)>,
    },
    /// A package of a registry is installed where the policy lets it in without anybody who looks at its card.
    Bring {
        /// Its id, which is no path and no address.
        id: String,
    },
    /// Everything that was installed goes.
    Reset,
    /// What is known of a package that is installed.
    Status {
        /// Its id.
        id: String,
    },
    /// What is newer than a package, and what is different about it.
    Newer {
        /// Its id.
        id: String,
    },
    /// A package is updated, if what is newer has this digest.
    Update {
        /// Its id.
        id: String,
        /// What stands for all files of the version that was shown.
        digest: String,
    },
    /// What the server of a package offers, held against what was approved.
    Offered {
        /// Its id.
        id: String,
    },
    /// What the server of a package offers is approved, if it has this digest.
    Approve {
        /// Its id.
        id: String,
        /// What stands for all tools that were shown.
        digest: String,
    },
    /// The version before this one becomes active again.
    Rollback {
        /// Its id.
        id: String,
    },
    /// A package may be called again.
    Enable {
        /// Its id.
        id: String,
    },
    /// A package is kept from being called.
    Disable {
        /// Its id.
        id: String,
    },
    /// A package goes.
    Remove {
        /// Its id.
        id: String,
    },
    /// What a package was given becomes worthless, and it is kept from being called.
    Revoke {
        /// Its id.
        id: String,
    },
    /// The same for everything.
    RevokeAll,
    /// The names of the secrets that are kept.
    Secrets,
    /// A secret is kept, in place of the one that may be there.
    KeepSecret {
        /// The package that is given it.
        package: String,
        /// Its name.
        name: String,
        /// What it is.
        value: Secret,
    },
    /// A secret is forgotten.
    ForgetSecret {
        /// The package that was given it.
        package: String,
        /// Its name.
        name: String,
    },
    /// The installed tools of a capability by their scores, with every term of them.
    Rank {
        /// What they can do.
        capability: String,
    },
    /// How strong the walls are here, which runtimes there are, and what to mend.
    Doctor,
}

/// Why something was not done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// What kind of trouble it is, as the command line names it; empty where nobody said.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What led to it.
    pub causes: Vec<String>,
    /// What would mend it.
    pub hints: Vec<String>,
}

/// A package that is installed.
#[derive(Debug)]
pub struct Package {
    /// With its dialect.
    pub id: String,
    /// The version that is active, or that its catalog says, as far as that can be read.
    pub version: Option<String>,
    /// Whether it is switched on.
    pub is_enabled: bool,
    /// The same, and why it is not.
    pub standing: Standing,
    /// How far it is trusted.
    pub trust: Trust,
    /// Whether its registry has taken this version back for security, as far as that is known here.
    pub is_taken_back: bool,
    /// As it is called, or why it cannot be.
    pub tool: Result<Tool, String>,
    /// The files that it is made of, as they were before it was read: when one of them is another, it is no longer what was agreed
    /// to.
    pub files: Files,
}

/// How a package stands with its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may be called.
    Enabled,
    /// It is switched off.
    Disabled,
    /// It was revoked: what it was given is worth nothing any more.
    Revoked,
    /// It was revoked, and nobody has confirmed that.
    Unconfirmed,
}
