//! What happened and what was decided.
//!
//! Two things of a home are kept here, and they never meet:
//!
//! * [`audit`]: what happened. Text, one record a line, each bound to the one before it by a
//!   hash, the last one signed. It is only ever appended to.
//! * [`state`]: what was decided and counted. A database that is changed all the time: a file, or one that replicas
//!   share.
//!
//! | module | what it is |
//! |---|---|
//! | [`time`] | moments and days, as the caller's clock gave them |
//! | [`audit`] | the log: written, read, followed, verified |
//! | [`state`] | the database: metrics, approvals, grants, budgets, pins |
//!
//! What is absent: nothing here runs a tool, asks a person, prints, or reads the clock or the
//! environment (but for what all clients of `PostgreSQL` read, like `PGPASSWORD`). Every moment is handed in.

pub mod audit;
pub mod state;
pub mod time;

pub use audit::{Audit, AuditError};
pub use state::{State, StateError};
pub use time::Time;
