//! What calls tell us: the tests of a package, run by the one path that all calls take.
//!
//! | module | what it is |
//! |---|---|
//! | [`value`] | JSON values held against each other |
//! | [`assertion`] | what must hold of one place in an answer |
//! | [`case`] | a test as its author wrote it |
//! | [`run`](mod@run) | tests run through the host |
//!
//! There is no way to run a tool here but [`host::Host::call`]: a test has the same walls, grants, approvals and
//! records as any other call.

pub mod assertion;
pub mod case;
pub mod run;
pub mod value;

pub use assertion::Assertion;
pub use case::{Case, CaseError};
pub use run::{Ended, How, Outcome, Report, run};
