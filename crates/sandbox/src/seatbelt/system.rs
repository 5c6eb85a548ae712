//! The few system calls that the standard library does not offer, declared by
//! hand: their types are the same on every system that has them.

use std::ffi::{c_int, c_uint};
use std::io;

pub(crate) const KILL: i32 = 9;
pub(crate) const TERMINATE: i32 = 15;
/// A process used its processor time up.
pub(crate) const PROCESSOR: i32 = 24;

/// What a process can be limited in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    Processor,
    FileSize,
    Core,
    OpenFiles,
}

unsafe extern "C" {
    safe fn kill(process: c_int, signal: c_int) -> c_int;
    fn setrlimit(resource: c_int, limits: *const [u64; 2]) -> c_int;
    fn waitid(kind: c_uint, id: c_uint, found: *mut Found, options: c_int) -> c_int;
}

/// Room for what `waitid` tells, which is not looked at. It is 128 bytes at most.
#[repr(C, align(16))]
struct Found([u8; 256]);

/// Sends a signal to all processes of a group. Whether there were any.
pub(crate) fn signal_group(group: u32, signal: i32) -> bool {
    // Zero and one would mean ourselves and everybody.
    match c_int::try_from(group) {
        Ok(group @ 2..) => kill(-group, signal) == 0,
        _ => false,
    }
}

/// Waits until a child has ended, and leaves it: its number stays its own until it is collected.
pub(crate) fn wait_for_end(child: u32) {
    const ONE_PROCESS: c_uint = 1;
    const ENDED: c_int = 4;
    const LEAVE: c_int = if cfg!(target_os = "macos") { 0x20 } else { 0x0100_0000 };
    let mut found = Found([0; 256]);
    loop {
        // SAFETY: `found` is larger than what is written to it and lives as long as the call.
        let waited = unsafe { waitid(ONE_PROCESS, child, &raw mut found, ENDED | LEAVE) };
        if waited == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

/// Limits this process for good, unless it is limited more already. It allocates nothing, so it
/// may be called between fork and exec.
pub(crate) fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let number = match resource {
        Resource::Processor => 0,
        Resource::FileSize => 1,
        Resource::Core => 4,
        Resource::OpenFiles if cfg!(target_os = "macos") => 8,
        Resource::OpenFiles => 7,
    };
    // A process is told first that its time is up, and killed when it goes on.
    let hard = if resource == Resource::Processor { most.saturating_add(1) } else { most };
    // SAFETY: two 64-bit numbers are what the call reads.
    let set = unsafe { setrlimit(number, &[most, hard]) };
    if set == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // Only raising a limit is not permitted.
        error if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        error => Err(error),
    }
}
