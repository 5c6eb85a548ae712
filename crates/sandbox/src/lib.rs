//! The walls around one process.
//!
//! A [`Confinement`] says, as plain data, all that a process may have. A
//! [`Launcher`] starts programs inside it: one-shot calls and servers that live for days alike.
//! What the walls are worth on this machine is a [`Level`], found by building them; below
//! the level that is required nothing is started.
//!
//! This crate knows nothing of manifests or policy, and it is the only one with `unsafe`.
//!
//! - [`confinement`]: what a process may have
//! - [`level`]: how strong the walls are, and what is missing
//! - [`outcome`]: how a process ended, and why one was not started
//! - [`protected`]: what must not be planted in a folder it may write
//! - [`runtime`]: a program as people name it, and the files it needs
//! - `linux`: the walls themselves

#![expect(unsafe_code, reason = "walls are made of system calls that no library wraps")]
#![warn(clippy::undocumented_unsafe_blocks)]

pub mod confinement;
pub mod level;
#[cfg(target_os = "linux")]
mod linux;
pub mod outcome;
pub mod protected;
pub mod runtime;

pub use confinement::{Confinement, Limits, Network, PROXY_PORT, SCRATCH, Stream};
pub use level::{Fault, Finding, Level, Primitive, Walls};
#[cfg(target_os = "linux")]
pub use linux::{Child, Finished, Killer, Launcher, Output, close_memory, enter_if_launcher};
pub use outcome::{Ended, Exit, SpawnError, StartError, Usage};
pub use protected::protected_names;
