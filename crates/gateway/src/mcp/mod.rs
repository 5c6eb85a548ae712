//! The face that speaks MCP, in both of its eras.
//!
//! - `message`, `error`, `revision`: JSON-RPC, and what the protocol adds to it
//! - `client`: a client, and one of its requests while it is worked on
//! - `seal`, `places`, `waiting`, `rounds`: what clients bring back, what is kept for them, what waits for them, and what they ask
//!   again
//! - `result`: results as each era knows them
//! - `tools`, `asking`, `finding`: tools; questions to the owner; tools for finding tools
//! - `tasks`: calls that go on after their request was answered
//! - `elsewhere`: requests about what another replica has
//! - `hosted`, `listings`: the servers of a view, and what they list
//! - `servers`, `passing`, `watching`: their prompts and resources; what they ask meanwhile; who is told of which resource
//! - `listen`: who is told of changes
//! - `serve`: a request and its answer, the same for every wire
//! - `lines`, `headers`, `http`: the wires
//! - `promises`: what must hold for any text of a client

mod asking;
pub(crate) mod client;
pub(crate) mod elsewhere;
pub(crate) mod error;
mod finding;
mod headers;
pub(crate) mod hosted;
pub(crate) mod http;
pub mod lines;
pub(crate) mod listen;
pub(crate) mod listings;
pub(crate) mod message;
mod passing;
mod places;
pub mod promises;
mod result;
pub(crate) mod revision;
mod rounds;
pub(crate) mod seal;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod tasks;
mod tools;
pub(crate) mod waiting;
pub(crate) mod watching;
