//! Where tools are found: what a registry and its clients say to each other, and the client.
//!
//! The wire types of the registry API come first. What is written has exactly the members that are named here; what is
//! read may have more, but none of another type, none twice, and none that must be there left out.
//!
//! | module | what it is |
//! |---|---|
//! | [`identity`] | what a package is called in a registry, and whose names it is among |
//! | [`error`] | the answer that is no success, and its codes |
//! | [`describe`](mod@describe) | what is said of one version |
//! | [`of_package`] | the same, made from a package of any dialect |
//! | [`find`] | results of a search, the listing, tags and providers |
//! | [`moment`] | moments, as they are told |
//! | [`tested`] | how the tests of a version went, and who says so |
//! | [`versions`] | the versions of a tool; what publishing and yanking answer |
//! | [`bundle`] | a version with its files |
//! | [`channel`] | how far along a version is offered, and what a reviewer says of it |
//! | [`access`] | tokens, owners and publishers, as an administrator sees them |
//! | [`server_json`] | a server.json, made from a package of any dialect |
//! | [`mcp`] | what a registry of the MCP world answers |
//! | [`import`] | what others hold, made into packages |
//! | [`mod@read`] | bytes from outside, read strictly |
//! | `link` | where a list goes on |
//! | [`client`] | registries asked from somewhere else |
//! | [`catalog`] | tools that somebody lists without running a registry |

pub mod access;
pub mod bundle;
pub mod catalog;
pub mod channel;
pub mod client;
pub mod describe;
pub mod error;
pub mod find;
pub mod identity;
pub mod import;
mod link;
pub mod mcp;
pub mod moment;
pub mod of_package;
pub mod read;
pub mod server_json;
pub mod tested;
pub mod versions;

pub use access::{
    Exchange, Given, NewPublisher, NewToken, Owners, Provenance, Publisher, Publishers, Token,
    Tokens,
};
pub use bundle::{Bundle, BundleFile, Encoding};
pub use channel::{Channel, Decision, Reviewed, Reviews, State, Waiting, WaitingList};
pub use describe::{Describe, EntryPoint, Schemas, Signature};
pub use error::{ErrorBody, ErrorCode};
pub use find::{Counted, Found, Page, Providers, Tags};
pub use read::{Unreadable, read};
pub use tested::{TestReport, TestedCase, Tests};
pub use versions::{Outcome, Published, Version, Versions, Yank};
