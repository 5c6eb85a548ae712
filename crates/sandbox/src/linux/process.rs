//! Making and ending processes. All of this runs in the launcher and in what
//! it forks, which have one thread each; the host never forks.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{Pid, Signal};

/// The namespaces of a room, apart from the network, which the launcher gives it, and the
/// control groups, which it makes when it is in its own group.
const NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS) as u64;

/// `CLONE_INTO_CGROUP`. That of the library is an `int`, which is too short for it.
const INTO_GROUP: u64 = 0x2_0000_0000;

/// Runs a function in a child, which ends with the number it gives.
pub(crate) fn fork(run: impl FnOnce() -> i32) -> Result<Pid, Errno> {
    // SAFETY: this process has one thread, so the child finds every lock free.
    match unsafe { libc::fork() } {
        0 => run_and_exit(run),
        pid @ 1.. => Pid::from_raw(pid).ok_or_else(last_error),
        _ => Err(last_error()),
    }
}

/// Runs a function as the first process of new namespaces, or of none, and perhaps in a control group of the
/// unified hierarchy. That of new namespaces is a child of this process's parent, which hears of its end.
pub(crate) fn fork_apart(
    namespaces: Namespaces,
    group: Option<BorrowedFd<'_>>,
    run: impl FnOnce() -> i32,
) -> Result<(Pid, OwnedFd), Errno> {
    let mut descriptor: libc::c_int = -1;
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = libc::CLONE_PIDFD as u64
        | match namespaces {
            // Made by a porter, it is the launcher's child all the same.
            Namespaces::New => NAMESPACES | libc::CLONE_PARENT as u64,
            Namespaces::Shared => 0,
        };
    if let Some(group) = group {
        arguments.flags |= INTO_GROUP;
        arguments.cgroup = u64::from(group.as_raw_fd().unsigned_abs());
    }
    arguments.pidfd = (&raw mut descriptor) as u64;
    arguments.exit_signal = match namespaces {
        Namespaces::New => 0,
        Namespaces::Shared => libc::SIGCHLD as u64,
    };
    // SAFETY: no memory is shared with the child and no stack is given, so this is a
    // fork; this process has one thread. The structure has the size passed with it.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>())
    };
    match i32::try_from(pid) {
        Ok(0) => run_and_exit(run),
        Ok(pid) if pid > 0 => {
            // SAFETY: the kernel has just made this descriptor for us.
            let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
            Ok((Pid::from_raw(pid).ok_or(Errno::SRCH)?, descriptor))
        }
        _ => Err(last_error()),
    }
}

/// A child never goes back up the stack it has copied, also when it panics.
fn run_and_exit(run: impl FnOnce() -> i32) -> ! {
    exit(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(70))
}

/// Room for the child of [`start`] to work on. Straight from the kernel: so large a piece would have the
/// allocator tidy up, and touch memory that is shared with the porter until then.
struct Stack(*mut libc::c_void);

impl Stack {
    const SIZE: usize = 256 << 10;

    fn new() -> Result<Self, Errno> {
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a mapping at an address the kernel chooses takes nothing away.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), Self::SIZE, rights, flags) }?;
        Ok(Self(start))
    }

    /// Its end: it grows downwards. A page is aligned as every processor wants it.
    fn top(&self) -> *mut libc::c_void {
        self.0.wrapping_byte_add(Self::SIZE)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and whoever ran on it is done with this memory.
        let _ = unsafe { munmap(self.0, Self::SIZE) };
    }
}

/// Runs a function in a child that shares this memory, and waits until it has become another
/// program or has ended. To copy the memory for it would cost more than all it does.
///
/// The function must not go back: it executes a program, or returns the number to end with. What it
/// writes to memory is seen here afterwards.
pub(crate) fn start(mut run: impl FnMut() -> i32) -> Result<Pid, Errno> {
    extern "C" fn enter<F: FnMut() -> i32>(function: *mut libc::c_void) -> libc::c_int {
        // SAFETY: this is the pointer passed below; the parent does not touch it meanwhile.
        let function = unsafe { &mut *function.cast::<F>() };
        run_and_exit(function)
    }
    fn entry<F: FnMut() -> i32>(_: &F) -> extern "C" fn(*mut libc::c_void) -> libc::c_int {
        enter::<F>
    }
    let (entry, stack) = (entry(&run), Stack::new()?);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: this process has one thread, which is stopped until the child has left this
    // memory. The child has a stack of its own, aligned and large enough; its descriptors, signal handlers and
    // credentials are copies.
    let pid = unsafe { libc::clone(entry, stack.top(), flags, (&raw mut run).cast()) };
    drop(stack);
    match pid {
        1.. => Pid::from_raw(pid).ok_or_else(last_error),
        _ => Err(last_error()),
    }
}

/// Whether a child gets namespaces of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespaces {
    New,
    Shared,
}

/// Ends this process at once, without the host's clean-up that a fork has copied.
pub(crate) fn exit(status: i32) -> ! {
    // SAFETY: ends the process; nothing runs after it.
    unsafe { libc::_exit(status) }
}

/// Becomes another program. Only returns when that fails.
pub(crate) fn execute(program: &CString, arguments: &[CString], environment: &[CString]) -> Errno {
    let pointers = |strings: &[CString]| {
        strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both lists end with a null pointer and all strings live until the call is over.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    last_error()
}

/// A child that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reaped {
    pub(crate) pid: i32,
    pub(crate) status: i32,
}

/// Takes the status of any child that has ended; `None` when none has.
/// `ECHILD` says that there are none at all.
pub(crate) fn reap_any(wait: Wait) -> Result<Option<Reaped>, Errno> {
    let mut status = 0;
    let options = match wait {
        Wait::ForOne => 0,
        Wait::No => libc::WNOHANG,
    };
    loop {
        // SAFETY: the pointer is to a number of our own.
        match unsafe { libc::waitpid(-1, &raw mut status, options | libc::__WALL) } {
            0 => return Ok(None),
            -1 => match last_error() {
                Errno::INTR => {}
                error => return Err(error),
            },
            pid => return Ok(Some(Reaped { pid, status })),
        }
    }
}

/// Whether to wait until a child ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    ForOne,
    No,
}

/// The status of one child, if it has ended.
pub(crate) fn try_reap(pid: Pid) -> Result<Option<i32>, Errno> {
    let mut status = 0;
    let options = libc::__WALL | libc::WNOHANG;
    // SAFETY: the pointer is to a number of our own.
    match unsafe { libc::waitpid(pid.as_raw_pid(), &raw mut status, options) } {
        0 => Ok(None),
        -1 => Err(last_error()),
        _ => Ok(Some(status)),
    }
}

/// Waits for one child and gives its status.
pub(crate) fn reap(pid: Pid) -> Result<i32, Errno> {
    let mut status = 0;
    loop {
        // SAFETY: the pointer is to a number of our own.
        match unsafe { libc::waitpid(pid.as_raw_pid(), &raw mut status, libc::__WALL) } {
            -1 => match last_error() {
                Errno::INTR => {}
                error => return Err(error),
            },
            _ => return Ok(status),
        }
    }
}

/// The processor time of all children that have been reaped, in microseconds, and the most
/// memory that one of them had, in bytes.
pub(crate) fn usage_of_children() -> (u64, u64, u64) {
    // SAFETY: all zeroes is a valid value of this plain structure, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec * 1_000_000 + time.tv_usec).unwrap_or_default()
    };
    let peak = u64::try_from(usage.ru_maxrss).unwrap_or_default() * 1024;
    (micros(usage.ru_utime), micros(usage.ru_stime), peak)
}

/// Writes over what the kernel has put on the stack of this process before it began, and zeros after that.
pub(crate) fn overwrite(place: std::ops::Range<usize>, bytes: &[u8]) {
    let kept = bytes.len().min(place.len());
    // SAFETY: the range is that of the arguments or the variables of this process, by its own `/proc`: they
    // can be written, nobody holds a reference to them, and this process has one thread.
    unsafe {
        let start = std::ptr::with_exposed_provenance_mut::<u8>(place.start);
        start.write_bytes(0, place.len());
        start.copy_from_nonoverlapping(bytes.as_ptr(), kept);
    }
}

/// Sends a signal to everything this process may signal, itself and the first of its namespace apart.
pub(crate) fn signal_everything(signal: Signal) {
    // SAFETY: plain system call. Only called by the first process of a pid namespace of its own.
    unsafe { libc::kill(-1, signal.as_raw()) };
}

/// Blocks the signals this process waits for by descriptor, and gives the descriptor.
pub(crate) fn by_descriptor(signals: &[libc::c_int]) -> Result<OwnedFd, Errno> {
    // SAFETY: the set is a plain structure that the first call fills; the descriptor that
    // the last one returns is ours.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(last_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Takes every signal as a new program does, whatever the host ignored. A closed pipe stays an error.
pub(crate) fn default_signals() {
    for signal in (1..=64).filter(|signal| *signal != libc::SIGPIPE) {
        // SAFETY: plain system call; numbers that are no signals are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Gives back the signals that this program has for itself: the blocked ones, and closed pipes.
pub(crate) fn reset_signals() {
    // SAFETY: plain system calls on a set of our own.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Gives up every capability, now and for every program to come.
pub(crate) fn drop_capabilities_for_good() -> Result<(), Errno> {
    // SAFETY: plain system calls without pointers.
    unsafe {
        for capability in 0..64 {
            let dropped = libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            if dropped != 0 && last_error() == Errno::INVAL {
                break;
            }
        }
    }
    let _ = rustix::thread::clear_ambient_capability_set();
    drop_capabilities()
}

/// Gives up every capability this process has.
pub(crate) fn drop_capabilities() -> Result<(), Errno> {
    use rustix::thread::{CapabilitySet, CapabilitySets};
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )
}

/// Keeps this process to the first so many of the processors it has.
pub(crate) fn pin_to_processors(most: u32) -> Result<(), Errno> {
    let has = rustix::thread::sched_getaffinity(None)?;
    let mut keeps = rustix::thread::CpuSet::new();
    let first = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| has.is_set(*cpu));
    for cpu in first.take(most.max(1) as usize) {
        keeps.set(cpu);
    }
    rustix::thread::sched_setaffinity(None, &keeps)
}

/// Closes every descriptor but the first three and this one, a socket, which moves down to number three.
///
/// Only for a process that was just forked: whatever else owned descriptors in
/// its copy of the memory must never run again, and that process leaves by [`exit`].
pub(crate) fn keep_only(socket: RawFd) -> Result<UnixStream, Errno> {
    const THREE: RawFd = 3;
    // SAFETY: see above; the number three is the socket's from here on and nobody else's.
    unsafe {
        if socket != THREE && libc::dup3(socket, THREE, libc::O_CLOEXEC) != THREE {
            return Err(last_error());
        }
        libc::close_range(4, u32::MAX, 0);
        Ok(UnixStream::from_raw_fd(THREE))
    }
}

/// Leaves a namespace for a new one. Other kinds of state are not meant.
pub(crate) fn unshare(flags: rustix::thread::UnshareFlags) -> Result<(), Errno> {
    // SAFETY: with flags of namespaces only, no memory or descriptor table is unshared.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Switches on the loopback interface of this network namespace.
pub(crate) fn switch_loopback_on() -> Result<(), Errno> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: all zeroes is a valid value of this plain structure; the name of the interface
    // fits and ends with a zero; the request reads nothing but the structure.
    let result = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        #[expect(clippy::cast_possible_truncation, reason = "two small flags")]
        let flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        request.ifr_ifru.ifru_flags = flags;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    };
    match result {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// Lets every descriptor from here on go when another program is executed.
pub(crate) fn close_on_execute_from(first: u32) -> Result<(), Errno> {
    #[expect(clippy::cast_possible_wrap, reason = "the flag is a small number")]
    let flag = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
    // SAFETY: only sets a flag on descriptors.
    match unsafe { libc::close_range(first, u32::MAX, flag) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
