//! The walls on macOS: Apple's Seatbelt, through `sandbox-exec`.
//!
//! - [`rules`]: every path is looked at, and becomes a rule;
//! - [`profile`]: the rules as a profile in Seatbelt's language, with [`names`] for what must not be planted;
//! - [`launch`]: starts `sandbox-exec` with it;
//! - [`child`]: the program as the host holds it, and the thread that sees its end;
//! - [`system`]: the system calls below all of it.
//!
//! They hold less than those of Linux, and say so by their level, L1:
//!
//! - A process that leaves its process group survives the end of its program. It keeps its walls.
//! - A program outlives a host that is killed. On Linux it ends with it.
//! - Memory, processes and the size of the scratch folder are not limited; processor time,
//!   open files and the size of files are, for each process by itself.
//! - What is hidden can be seen to be refused, where on Linux it is empty.
//! - The network is refused altogether: the loopback address is that of the whole machine, so
//!   anybody on it could use the listener in place of the program.
//! - What a program used is known only as time on the clock and as output.

mod child;
mod launch;
mod names;
mod profile;
mod rules;
mod system;

pub use child::Child;
pub use launch::Launcher;

/// Does nothing: on this system every program is started by the host itself.
pub fn enter_if_launcher() {}

/// Keeps the memory of this process out of core dumps. Other processes of the
/// same user are kept from it by the system, which asks the owner first.
pub fn close_memory() -> std::io::Result<()> {
    system::limit(system::Resource::Core, 0)
}
