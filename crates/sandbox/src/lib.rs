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
//! - [`held`]: folders that are there for as long as somebody holds them
//! - [`level`]: how strong the walls are, and what is missing
//! - [`outcome`]: how a process ended, and why one was not started
//! - [`protected`]: what must not be planted in a folder it may write
//! - [`runtime`]: a program as people name it, and the files it needs
//! - `script`: the first line of one, and what it tells of one that was not executed
//! - `linux`, `seatbelt` (macOS): the walls themselves; `elsewhere`: their absence
//! - `killer`, `output`, `streams`, `scratch`, `check`: what the walls of all systems share

#![cfg_attr(
    any(target_os = "linux", target_os = "macos"),
    expect(unsafe_code, reason = "walls are made of system calls that no library wraps")
)]
#![warn(clippy::undocumented_unsafe_blocks)]

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod check;
pub mod confinement;
#[cfg(any(test, not(any(target_os = "linux", target_os = "macos"))))]
#[cfg_attr(
    any(target_os = "linux", target_os = "macos"),
    expect(dead_code, unreachable_pub, reason = "here it is only compiled and tried")
)]
mod elsewhere;
pub mod held;
mod killer;
pub mod level;
#[cfg(target_os = "linux")]
mod linux;
mod network;
pub mod outcome;
mod output;
pub mod protected;
pub mod runtime;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod scratch;
mod script;
#[cfg(any(target_os = "macos", all(test, target_os = "linux")))]
#[cfg_attr(
    target_os = "linux",
    expect(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "here it is only compiled and tried"
    )
)]
mod seatbelt;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod streams;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub use elsewhere::{Child, Launcher, close_memory, enter_if_launcher};
#[cfg(target_os = "linux")]
pub use linux::{
    Child, Early, Launcher, close_memory, enter_if_launcher, has_output, is_in_every_room,
};
#[cfg(target_os = "macos")]
pub use seatbelt::{Child, Launcher, close_memory, enter_if_launcher};

pub use confinement::{Confinement, Limits, Network, PROXY_PORT, SCRATCH, Stream};
pub use killer::Killer;
pub use level::{Fault, Finding, Level, Primitive, Walls};
pub use network::{Asked, Ends, MOST_DOORS};
pub use outcome::{Ended, Exit, SpawnError, StartError, Usage};
#[cfg(unix)]
pub use output::{End, Sign, Watch};
pub use output::{Finished, Output};
pub use protected::protected_names;
pub use script::Obstacle;

/// Whether a path is within every wall by itself, if the system has it.
#[cfg(not(target_os = "linux"))]
pub fn is_in_every_room(path: &std::path::Path) -> bool {
    runtime::is_system(path) || path.starts_with("/etc")
}

/// The program that runs, to be executed again, also when another was installed in its place since.
pub fn own_program() -> std::io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Whether this process was started with a standard output, as far as that can be told here.
#[cfg(not(target_os = "linux"))]
pub fn has_output() -> bool {
    true
}

/// Whether this process seems to be inside such walls itself, where it can build none. Only root could
/// make it seem so outside.
pub fn is_walled() -> bool {
    cfg!(target_os = "linux") && std::path::Path::new("/etc/haft.exclude").exists()
}
