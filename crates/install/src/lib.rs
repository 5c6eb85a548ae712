//! How a tool reaches this machine, and how it leaves again.
//!
//! The modules form a ladder; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`report`] | who is told how far it is |
//! | [`key`] | what a package is called on the disk |
//! | [`acquire`] | how the artefacts of a package reach this machine, inside the walls |

pub mod acquire;
pub mod key;
pub mod report;
