//! The face for agents: every installed tool behind one MCP endpoint; and what their owner sees of it, the console.
//!
//! The modules form a ladder; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | `mark` | whether files are still the ones they were |
//! | [`steward`] | what the program that runs a gateway does for it |
//! | `offer`, [`view`], `shelf` | what can be called, what of it is shown, and what is installed, read anew when it changes |
//! | `door` | who may see the console |
//! | `sign_ins` | sign-ins that wait for what a browser brings back |
//! | `refusal` | what an agent is told of a call that came to nothing |
//! | `watch` | what is counted, and told to a collector of traces |
//! | `gateway` | everything that the faces share |
//! | `bring` | tools that an agent, or somebody with a token, has installed |
//! | `outbox` | what waits to be written to somebody who may be slow to read |
//! | `undertaking` | what is brought to its end, whoever waits for it |
//! | `call` | a call that somebody else than a client of MCP asks for |
//! | [`mcp`] | MCP, in both of its eras |
//! | `lanes` | the threads that serve clients |
//! | [`socket`], [`relay`] | the one host of a home, and what clients start that leads there |
//! | [`token`] | who may do what over HTTP |
//! | [`web`] | the gateway over HTTP, and the console of its owner |

mod bring;
mod call;
mod door;
mod gateway;
mod lanes;
mod mark;
pub mod mcp;
mod offer;
mod outbox;
mod refusal;
#[cfg(target_os = "linux")]
pub mod relay;
mod shelf;
mod sign_ins;
#[cfg(target_os = "linux")]
pub mod socket;
pub mod steward;
pub mod token;
mod undertaking;
pub mod view;
mod watch;
pub mod web;

pub use gateway::{Gateway, Options};
pub use lanes::Lanes;
pub use steward::Steward;
pub use view::View;
