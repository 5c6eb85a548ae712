//! Runs calls inside the walls: one path from a request to a result, for every kind of tool.
//!
//! `request → action → implementation → input → decision → secrets → walls → run → output → answer`.
//! The modules follow that path; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`surface`] | what a server offers, and what of it is not as it was approved |
//! | [`call`] | a tool, a call, a reply |
//! | [`chain`] | what the steps of a chain call, and in what order |
//! | [`error`] | why there is none |
//! | `blocked` | what a tool reached for in vain |
//! | [`violation`] | what it reached for by itself, and what the owner wants done about it |
//! | `limit` | which limit a call ran into, and who set it |
//! | `choose` | which implementation runs here |
//! | `input`, [`judge`] | defaults, schema, a clock for schemas that may take long |
//! | `template` | `${…}` filled in |
//! | `request` | a call as an HTTP request |
//! | [`tape`] | requests and answers apart from the network, for tests |
//! | [`plan`] | exactly what would be run, and with what |
//! | [`login`] | signing in to servers on the network |
//! | [`secrets`] | the values a call is given |
//! | `confine` | what was allowed, as walls |
//! | `endpoint` | where a tool is reached that runs elsewhere, and whether it may be |
//! | `weight` | what a JSON text would take in memory |
//! | `output`, `stream` | from bytes to a result, at the end or as it comes |
//! | `run` | the ways to run |
//! | `consider` | what a Node tool says of a call before it is made |
//! | [`records`] | what is known before a call and written down after it |
//! | [`smoke`], [`kill`] | whether a smoke test passed; what came of a kill switch |
//! | `spending` | what calls may spend, and what is left of it |
//! | `eras` | which era of the protocol servers speak, remembered |
//! | [`host`] | the path as a whole |

mod blocked;
pub mod brought;
pub mod call;
pub mod chain;
mod choose;
mod clip;
mod complaint;
mod confine;
mod consider;
mod endpoint;
mod eras;
pub mod error;
pub mod fleet;
pub mod host;
mod input;
pub mod judge;
pub mod kill;
mod limit;
pub mod login;
mod offered;
mod output;
pub mod plan;
mod promise;
pub mod records;
mod request;
mod run;
pub mod secrets;
pub mod smoke;
mod spending;
mod stream;
mod strict;
pub mod surface;
pub mod tape;
mod template;
pub mod ticket;
pub mod violation;
mod weight;

pub use blocked::{Blocked, Why};
pub use brought::Brought;
pub use call::{
    Advance, Approver, AskedStep, Call, Given, Matter, Output, Peer, Progress, Refused, Resumed,
    Said, Tool, TraceContext, Unasked,
};
pub use choose::could_start;
pub use confine::denied;
pub use endpoint::endpoints;
pub use eras::InHome;
pub use error::{CallError, Kind};
pub use host::{Discovered, Fallen, Host, Made, Request, SWITCHED_OFF, Settings, Way, ways};
pub use kill::Killed;
pub use plan::Plan;
pub use records::Records;
pub use run::mcp::era::{Era, Eras, InMemory};
pub use run::mcp::notice::Notice;
pub use run::mcp::watching::Watching;
pub use run::mcp::{GREETING, Replied, actions_of, assumed};
pub use run::worker::Warmth;
pub use sandbox::Level;
pub use smoke::Smoked;
pub use tokio_util::sync::CancellationToken;
pub use violation::Violation;
