//! What calls tell us: the tests of a package, run by the one path that all calls take; whether it got worse; how good it is.
//!
//! | module | what it is |
//! |---|---|
//! | [`fault`] | what is not as it should be, at one place of an answer |
//! | [`effort`] | how much work a path is on an answer |
//! | [`value`] | JSON values held against each other |
//! | [`assertion`] | what must hold of one place in an answer |
//! | [`case`] | a test as its author wrote it |
//! | [`verify`] | what an author promises of many cases |
//! | [`suite`] | the tests of a package, read one at a time |
//! | [`report`] | how tests ended |
//! | [`run`](mod@run) | tests run through the host |
//! | [`compare`] | two tools on the same tests |
//! | [`regression`], [`watch`](mod@watch) | whether a tool got worse, by a statistical test; what did, noted and written down |
//! | [`mining`] | sequences of calls in which one result became the next input |
//! | [`replace`] | other tools for the steps of a chain |
//! | [`columns`] | calls over time, in columns of one length |
//! | [`rank`] | how good a tool is, as one number that explains itself |
//! | [`measured`] | what was measured here, of every version |
//! | [`recording`] | requests and answers in a file, to test without a server |
//!
//! There is no way to run a tool here but [`host::Host::call`], and its smoke test by the host too: a test has the same
//! walls, grants, approvals and records as any other call.

pub mod assertion;
pub mod case;
pub mod columns;
pub mod compare;
pub mod effort;
pub mod fault;
pub mod measured;
pub mod mining;
#[cfg(test)]
mod random;
pub mod rank;
pub mod recording;
pub mod regression;
pub mod replace;
pub mod report;
pub mod run;
pub mod suite;
pub mod value;
pub mod verify;
pub mod watch;

pub use assertion::Assertion;
pub use case::{Case, CaseError, Origin};
pub use fault::Fault;
pub use recording::{Recorder, Recording, RecordingError};
pub use report::{Ended, Outcome, Report};
pub use run::{How, run, smoke};
pub use suite::Suite;
pub use verify::{Promise, Tally, Verify};
