//! The log of a home: what happened, one record a line.
//!
//! All processes of a home write one chain. A record holds the hash of the one before it, and
//! the last one is signed ([`Head`]), so that a line that was edited, removed, moved, added or cut
//! off is found by [`verify()`] and named. What this proves and what not: `docs/audit.md`.
//!
//! A call that runs leaves two records, so that it never runs without one: [`Audit::begin`]
//! writes the first and gives a [`Begun`], without which there is no second. A call that
//! never ran leaves one, through [`Audit::record`].
//!
//! ```
//! # let home = tempfile::tempdir().unwrap();
//! use ledger::audit::{Audit, Call, Durability, Ending, verify};
//! use ledger::Time;
//!
//! let audit = Audit::new(home.path().join("audit"), Durability::Process);
//! let call = Call { package: "demo.files".into(), action: "remove".into(), ..Call::default() };
//! let begun = audit.begin(&call, Time::from_unix_millis(1_000))?;
//! // The tool runs here, and only here.
//! audit.end(begun, &call, &Ending::default(), Time::from_unix_millis(1_250))?;
//! assert!(verify(&home.path().join("audit"))?.is_sound());
//! # Ok::<(), ledger::AuditError>(())
//! ```
//!
//! The modules form a ladder; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | `error` | why the log cannot be written or read |
//! | [`record`] | what is written of a call, and how much of it |
//! | [`shape`] | what arguments look like, without what they say |
//! | [`mod@line`] | a record as the bytes of a line, hashed; and back |
//! | `lines`, `folder` | lines in both directions; the files of a log, and its lock |
//! | `key`, [`head`] | the key of the home, and the signed end of the chain |
//! | `end` | where the chain goes on, and what is wrong there |
//! | `held`, `append`, `sitting` | what is kept open between two records; one more record; how long a writer keeps the lock to itself |
//! | `fault`, [`mod@verify`] | what can be wrong with a log; everything that is |
//! | [`read`], [`follow`] | records from the end backwards, and records to come |
//! | [`mod@copy`] | lines for whoever keeps a copy, and a copy that is looked through |

mod append;
pub mod copy;
mod end;
mod error;
mod fault;
mod folder;
pub mod follow;
pub mod head;
mod held;
mod key;
pub mod line;
mod lines;
pub mod read;
pub mod record;
pub mod shape;
mod sitting;
pub mod verify;

pub use append::{Audit, Begun, Durability};
pub use error::{AuditError, AuditErrorKind};
pub use fault::{Fault, Finding};
pub use follow::Follow;
pub use head::Head;
pub use read::{Filter, Page, Place, page};
pub use record::{Blocked, BlockedKind, Call, Decision, Ending, Kind, Outcome, Record};
pub use shape::shape_of;
pub use verify::{Report, verify};
