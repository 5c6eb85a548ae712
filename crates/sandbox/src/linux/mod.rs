//! The walls on Linux.
//!
//! Three processes play together, all of them this program:
//!
//! - the *host* ([`host`], [`order`], [`repository`], [`settings`], [`child`], [`pipe`]) decides nothing of the walls and holds the ends;
//! - the *launcher* ([`launch`], [`early`], [`groups`], [`protect`]) has one thread, has rooms made by its [`porter`]s, and cleans up after them;
//! - a *room* ([`room`], [`root`], [`furniture`], [`image`], [`files`], [`calls`], [`limits`], [`watch`], [`covers`]) is the first
//!   process of its namespaces, builds the walls and watches the program inside them.
//!
//! They talk in [`wire`]; [`mounts`] and [`process`] are the system calls below all of it.

mod bare;
mod calls;
mod child;
mod covers;
mod early;
mod files;
mod filter;
mod furniture;
mod groups;
mod host;
mod image;
mod launch;
mod limits;
mod mounts;
mod names;
mod opened;
mod order;
mod pipe;
mod porter;
mod process;
mod protect;
mod repository;
mod room;
mod root;
mod settings;
mod watch;
mod wire;

pub use child::Child;
pub use early::Early;
pub use furniture::is_in_every_room;
pub use host::Launcher;
pub use opened::has_output;

use rustix::process::DumpableBehavior;

/// Becomes the launcher, if this process was started to be it, and never comes
/// back then. To be called first in `main`, before there is a second thread.
pub fn enter_if_launcher() {
    if std::env::args_os().next().is_none_or(|name| name != host::NAME) {
        return;
    }
    let status = match std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned() {
        Ok(socket) => i32::from(launch::run(&socket.into()).is_err()),
        Err(_) => 1,
    };
    std::process::exit(status);
}

/// Closes the memory of this process to others of the same user, and keeps it out of core dumps.
pub fn close_memory() -> std::io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}
