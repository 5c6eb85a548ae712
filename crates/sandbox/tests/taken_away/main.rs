//! What happens when the kernel refuses a part of the walls: nothing is started behind weaker ones,
//! and who asks is told what was missing.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers are tests too")]

#[path = "../kit/mod.rs"]
mod kit;

mod primitives;
mod tampering;
mod without_namespaces;
