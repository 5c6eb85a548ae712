//! Every outgoing connection of ours: typed hosts, rules, dialling, and the proxy for walled tools.
//!
//! A tool behind our walls has a network of its own with nothing in it but a
//! loopback, and on it a few listeners that were handed to us. Whatever the tool
//! wants of the world it asks there. Each request goes one way:
//!
//! ```text
//! bytes ─ head ─▶ Target ─ rules ─▶ rule ─ resolve ─▶ addresses ─ rules ─▶ dial ─▶ relay
//! ```
//!
//! The target is parsed once into a typed value and never looked at as text again; a
//! name that no rule names is not even looked up, since a look-up already carries
//! data out; the address that was checked is the address that is dialled.
//!
//! The modules form a ladder; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`limits`] | how much one tool may ask of the proxy, and how long it may take |
//! | [`escape`] | a stranger's text, bounded and safe to show |
//! | [`host`] | who is meant: a name or an address, and a port; odd spellings are refused |
//! | [`address`] | which addresses are not of the public internet, whatever they hide in |
//! | [`rules`] | what the owner allows, and why something is not |
//! | [`resolve`] | names to addresses; tests bring their own |
//! | [`mod@dial`] | resolve once, check every address, connect to the checked one |
//! | [`head`] | the heads of HTTP requests and responses, read strictly |
//! | [`attempt`] | what is reported: each attempt once as it opens, once as it ends |
//! | `answer` | what the tool is told when its request goes nowhere |
//! | `stream` | bytes on their way, counted, each body within its own bounds |
//! | `gate` | the one way out: rules, dialling, report |
//! | `tunnel`, `exchange`, `socks` | any bytes both ways; one plain request; one request of SOCKS5 |
//! | `connection` | from the first byte of a client of the proxy to the last |
//! | [`names`], `door` | the same for programs that know of no proxy: addresses that stand for names, and what connects there |
//! | [`proxy`] | all that one program reaches |
//! | [`background`] | the same on a thread of its own |
//! | [`environment`] | the variables that send a program to the proxy |
//! | [`watch`] | who is told how far long work is |
//! | [`http`] | requests of our own, by the same rules |
//!
//! What is absent: a tool's TLS is never opened and credentials are never added to what it sends, nothing is
//! cached, no proxy of the system is used, and nothing here prints. Which certificates are trusted is the
//! system's business, with the variables by which its owner names them.

pub mod address;
mod answer;
pub mod attempt;
pub mod background;
mod connection;
pub mod dial;
mod door;
pub mod environment;
pub mod escape;
mod exchange;
mod gate;
pub mod head;
pub mod host;
pub mod http;
pub mod limits;
pub mod names;
pub mod proxy;
pub mod resolve;
pub mod rules;
mod socks;
mod stream;
mod tunnel;
pub mod watch;

pub use attempt::{Attempt, Outcome, Stage};
pub use background::Running;
pub use host::{Host, Name, Port, Target};
pub use limits::Limits;
pub use proxy::{Ends, Proxy};
pub use rules::{Decision, Reach, Refusal, Rule, Rules};
pub use watch::{Passed, Watch};
