//! Whether this process was started with a standard output.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether this process was started with a standard output. The standard library puts `/dev/null` in the place of
/// one that is closed, and what is written there seems to arrive; so it is looked at before.
pub fn has_output() -> bool {
    !IS_CLOSED.load(Ordering::Relaxed)
}

// SAFETY: what stands in this section is called once, before `main` and while there is one thread; `look` needs
// nothing of the standard library that has to be made ready first.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: it asks for the flags of a descriptor, which may be any number.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    IS_CLOSED.store(flags == -1, Ordering::Relaxed);
}
