//! The face that speaks MCP, in both of its eras.
//!
//! - `message`, `error`, `revision`: JSON-RPC, and what the protocol adds to it
//! - `client`: a client, and one of its requests while it is worked on
//! - `seal`, `waiting`: what clients bring back, and calls that wait for it
//! - `result`: results as each era knows them
//! - `tools`, `asking`, `finding`: tools; questions to the owner; tools for finding tools
//! - `tasks`: calls that go on after their request was answered
//! - `servers`: prompts and resources of hosted servers
//! - `listen`: who is told of changes
//! - `serve`: a request and its answer, the same for every wire
//! - `lines`, `headers`, `http`: the wires
//! - `promises`: what must hold for any text of a client

mod asking;
pub(crate) mod client;
pub(crate) mod error;
mod finding;
mod headers;
pub(crate) mod http;
pub mod lines;
pub(crate) mod listen;
pub(crate) mod message;
pub mod promises;
mod result;
pub(crate) mod revision;
pub(crate) mod seal;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod tasks;
mod tools;
pub(crate) mod waiting;
