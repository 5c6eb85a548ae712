//! How a tool reaches this machine, and how it leaves again.
//!
//! The modules form a ladder; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`report`] | who is told how far it is |
//! | [`key`] | what a package is called on the disk |

pub mod key;
pub mod report;
