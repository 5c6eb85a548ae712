//! Zip archives, clean and hostile.
//!
//! They are written by a writer of their own, which shares no line with the one
//! in `package`: so each is a second opinion on the other.
//!
//! | module | what it is |
//! |---|---|
//! | [`deflate`] | compressed data, also such as no compressor would make |
//! | [`zip`] | a writer that writes any field wrongly |
//! | [`mod@clean`] | archives that must be accepted |
//! | [`mod@hostile`] | archives that must be refused, each with its code |
//! | [`drawn`] | archives made by chance, and damaged ones |

pub mod clean;
pub mod deflate;
pub mod drawn;
pub mod hostile;
pub mod zip;

pub use clean::{Clean, CleanFile, clean};
pub use hostile::{Hostile, hostile};
