//! A registry over HTTP, in process: the same suite on every store, and what only the embedded ones can be put through.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod browser;
mod damage;
mod embedded;
mod hostile;
mod large;
mod suite;
