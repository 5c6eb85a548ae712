//! Signing in: to servers and agents on the network, which say where, and for tools that run here, for which the owner does.
//!
//! Whoever wants a token goes through these steps; each is a function of what the one before gave:
//! [`find`] who guards a server, or take whom the owner named → [`meet`] the authorization server → [`identify`] ourselves to it →
//! [`Attempt`]: a page for the owner's browser, and what comes back → [`exchange`] → [`Kept`]; or, with no browser here,
//! [`Handoff`]: a [`Code`] for a browser on any machine, which is asked after until it was used → [`Kept`].
//!
//! | module | what it is |
//! |---|---|
//! | [`address`] | which URLs are safe, which belong together, where documents lie |
//! | [`error`] | why somebody is not signed in |
//! | [`audience`] | what a token is for, and who is told it |
//! | `challenge` | what an answer says that wants somebody to sign in |
//! | `card` | where the card of an agent says that people sign in |
//! | [`metadata`] | what a resource and an authorization server say about themselves, checked |
//! | [`attempt`] | one try to sign in: what is asked, what may come back |
//! | [`device`] | a code for a browser on any machine: what is shown, how often it is asked after |
//! | [`kept`] | what is kept of a sign-in |
//! | [`scopes`] | what was granted, held against what a package needs |
//! | `form` | forms, and who sends them |
//! | `talk` | requests to authorization servers, bounded |
//! | [`discover`], [`register`], `token` | the steps that talk |
//! | [`handoff`] | one try to sign in by such a code, from asking for it to its tokens |
//! | [`listener`] | where a browser brings its answer to |
//! | `underway` | what must not be broken off once it has begun |
//! | [`logins`] | the sign-ins of a home: read, renewed once, forgotten |
//!
//! Everything down to `form` is pure.

pub mod address;
pub mod attempt;
pub mod audience;
pub(crate) mod card;
pub(crate) mod challenge;
pub mod device;
pub mod discover;
pub mod error;
pub(crate) mod form;
pub mod handoff;
pub mod kept;
pub mod listener;
pub mod logins;
pub mod metadata;
pub mod register;
pub mod scopes;
pub(crate) mod talk;
mod token;
pub(crate) mod underway;

pub use attempt::{Attempt, Redirected};
pub use audience::Audience;
pub use device::Code;
pub use discover::{Found, Protocol, find, meet};
pub use error::LoginError;
pub use handoff::{Clock, Handoff, Steady};
pub use kept::{Bearer, Kept};
pub use listener::Listener;
pub use logins::{Logins, NAME};
pub use metadata::Server;
pub use register::{Identity, Known, Way, identify};
pub use token::{exchange, revoke};
