//! The system calls a walled process may make: a list of what is allowed, as
//! data. What is not on it does not exist for the process (`ENOSYS`), except
//! where programs read that as a broken machine and expect a plain refusal (`EPERM`).
//!
//! The filter checks the table of calls first: the 32-bit one kills, and the
//! numbers of x32 are on no list.

use std::collections::BTreeMap;

use super::filter::{Answer, Condition, Filter, Test};
use super::process::Namespaces;
use super::wire::Bounds;

/// Calls that are allowed whatever their arguments.
#[rustfmt::skip]
const ALLOWED: &[libc::c_long] = &[
    // Files and folders: which ones is for the mounts and Landlock to say.
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev,
    libc::SYS_pread64, libc::SYS_pwrite64, libc::SYS_preadv, libc::SYS_pwritev,
    libc::SYS_preadv2, libc::SYS_pwritev2,
     libc::SYS_close, libc::SYS_close_range,
    libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_statfs, libc::SYS_fstatfs,
    libc::SYS_lseek, libc::SYS_faccessat, libc::SYS_faccessat2, libc::SYS_getdents64,
    libc::SYS_readlinkat, libc::SYS_unlinkat, libc::SYS_renameat2, libc::SYS_linkat,
    libc::SYS_symlinkat, libc::SYS_mkdirat,
    libc::SYS_fchown, libc::SYS_fchownat,
    libc::SYS_truncate, libc::SYS_ftruncate, libc::SYS_fallocate, libc::SYS_fadvise64,
    libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_sync, libc::SYS_syncfs, libc::SYS_sync_file_range,
    libc::SYS_utimensat, libc::SYS_umask, libc::SYS_getcwd, libc::SYS_chdir, libc::SYS_fchdir,
    libc::SYS_flock, libc::SYS_fcntl, libc::SYS_dup, libc::SYS_dup3, libc::SYS_readahead,
    libc::SYS_sendfile, libc::SYS_splice, libc::SYS_tee, libc::SYS_vmsplice, libc::SYS_copy_file_range,
    libc::SYS_getxattr, libc::SYS_lgetxattr, libc::SYS_fgetxattr, libc::SYS_listxattr,
    libc::SYS_llistxattr, libc::SYS_flistxattr, libc::SYS_setxattr, libc::SYS_lsetxattr,
    libc::SYS_fsetxattr, libc::SYS_removexattr, libc::SYS_lremovexattr, libc::SYS_fremovexattr,
    libc::SYS_inotify_init1, libc::SYS_inotify_add_watch, libc::SYS_inotify_rm_watch,
    libc::SYS_memfd_create,
    // Memory of its own.
    libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_mprotect, libc::SYS_madvise,
    libc::SYS_brk, libc::SYS_mincore, libc::SYS_msync, libc::SYS_mlock, libc::SYS_mlock2,
    libc::SYS_munlock, libc::SYS_mlockall, libc::SYS_munlockall, libc::SYS_membarrier,
    libc::SYS_pkey_alloc, libc::SYS_pkey_free, libc::SYS_pkey_mprotect,
    libc::SYS_get_mempolicy, libc::SYS_set_mempolicy, libc::SYS_mbind,
    // Processes and threads. `clone` is below; `clone3` passes its flags where a filter cannot look.
    libc::SYS_execve, libc::SYS_execveat, libc::SYS_exit, libc::SYS_exit_group, libc::SYS_wait4,
    libc::SYS_waitid, libc::SYS_getpid, libc::SYS_getppid, libc::SYS_gettid, libc::SYS_set_tid_address,
    libc::SYS_getpgid, libc::SYS_setpgid, libc::SYS_getsid, libc::SYS_setsid,
    libc::SYS_prctl, libc::SYS_set_robust_list, libc::SYS_get_robust_list, libc::SYS_rseq,
    libc::SYS_futex, libc::SYS_futex_waitv, libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal,
    libc::SYS_sched_yield, libc::SYS_sched_getaffinity, libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler, 
    libc::SYS_sched_get_priority_max, libc::SYS_sched_get_priority_min,
    libc::SYS_sched_rr_get_interval, libc::SYS_sched_getattr, 
    libc::SYS_getpriority, libc::SYS_ioprio_get,
    libc::SYS_getcpu, libc::SYS_getrusage, libc::SYS_times,
    libc::SYS_getrlimit, libc::SYS_setrlimit, libc::SYS_capget, libc::SYS_capset,
    // Walls a program puts around itself.
    libc::SYS_seccomp, libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    // Identity: it has one user and no capability, so these change nothing.
    libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getgroups,
    libc::SYS_setgroups, libc::SYS_getresuid, libc::SYS_getresgid, libc::SYS_setuid, libc::SYS_setgid,
    libc::SYS_setreuid, libc::SYS_setregid, libc::SYS_setresuid, libc::SYS_setresgid,
    libc::SYS_setfsuid, libc::SYS_setfsgid,
    // Signals.
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend, libc::SYS_rt_sigtimedwait, libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo, libc::SYS_sigaltstack, libc::SYS_kill, libc::SYS_tkill,
    libc::SYS_tgkill, libc::SYS_signalfd4, libc::SYS_restart_syscall,
    // Waiting and time. Clocks are read, never set.
    libc::SYS_nanosleep, libc::SYS_clock_nanosleep, libc::SYS_clock_gettime, libc::SYS_clock_getres,
    libc::SYS_gettimeofday, libc::SYS_getitimer, libc::SYS_setitimer,
    libc::SYS_timer_create, libc::SYS_timer_settime, libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun, libc::SYS_timer_delete,
    libc::SYS_timerfd_create, libc::SYS_timerfd_settime, libc::SYS_timerfd_gettime,
    libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2,
    libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_eventfd2, libc::SYS_pipe2,
    // Sockets, once made; which can be made is below.
    libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4, libc::SYS_connect,
    libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_getsockopt, libc::SYS_setsockopt,
    libc::SYS_sendto, libc::SYS_recvfrom, libc::SYS_sendmsg, libc::SYS_recvmsg,
    libc::SYS_sendmmsg, libc::SYS_recvmmsg, libc::SYS_shutdown,
    // System V and POSIX objects: they live in a namespace of their own.
    libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmdt, libc::SYS_shmctl,
    libc::SYS_semget, libc::SYS_semop, libc::SYS_semtimedop, libc::SYS_semctl,
    libc::SYS_msgget, libc::SYS_msgsnd, libc::SYS_msgrcv, libc::SYS_msgctl,
    libc::SYS_mq_open, libc::SYS_mq_unlink, libc::SYS_mq_timedsend, libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify, libc::SYS_mq_getsetattr,
    // What the machine is.
    libc::SYS_uname, libc::SYS_sysinfo, libc::SYS_getrandom,
];

/// The same as above, under the names only this processor still has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const ALLOWED_HERE: &[libc::c_long] = &[
    libc::SYS_stat, libc::SYS_lstat, libc::SYS_access,
    libc::SYS_readlink, libc::SYS_unlink, libc::SYS_rmdir, libc::SYS_rename, libc::SYS_renameat,
    libc::SYS_link, libc::SYS_symlink, libc::SYS_mkdir, libc::SYS_chown,
    libc::SYS_lchown, libc::SYS_getdents, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat,
    libc::SYS_dup2, libc::SYS_pipe, libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_create,
    libc::SYS_epoll_wait, libc::SYS_eventfd, libc::SYS_signalfd, libc::SYS_inotify_init,
    libc::SYS_fork, libc::SYS_vfork, libc::SYS_getpgrp, libc::SYS_arch_prctl, libc::SYS_alarm,
    libc::SYS_pause, libc::SYS_time,
];

/// The same as above, under the names only this processor still has.
#[cfg(target_arch = "aarch64")]
const ALLOWED_HERE: &[libc::c_long] = &[libc::SYS_renameat];

/// Calls that answer `EPERM`: programs that meet them know what it means.
#[rustfmt::skip]
const REFUSED: &[libc::c_long] = &[
    // Namespaces and mounts: the way out of the walls.
    libc::SYS_unshare, libc::SYS_setns, libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root,
    libc::SYS_chroot, libc::SYS_open_tree, libc::SYS_move_mount, libc::SYS_fsopen,
    libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick, libc::SYS_mount_setattr,
    // Other processes' memory and descriptors.
    libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_kcmp,
    libc::SYS_pidfd_getfd, libc::SYS_process_madvise, libc::SYS_move_pages, libc::SYS_migrate_pages,
    // Keys are not kept apart by the namespaces.
    libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key,
    // Programs inside the kernel, and watching it.
    libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark, libc::SYS_syslog, libc::SYS_init_module, libc::SYS_finit_module,
    libc::SYS_delete_module, libc::SYS_kexec_load,
    // The machine.
    libc::SYS_reboot, libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_acct, libc::SYS_quotactl,
    libc::SYS_sethostname, libc::SYS_setdomainname, libc::SYS_clock_settime,
    libc::SYS_settimeofday, libc::SYS_adjtimex, libc::SYS_clock_adjtime, libc::SYS_vhangup,
    // Files by handle: past every path.
    libc::SYS_open_by_handle_at, libc::SYS_name_to_handle_at,
];

/// Requests to a terminal that would type for its owner (`TIOCSTI`, `TIOCLINUX`), or change the code behind it (`TIOCSETD`).
const TERMINAL_REFUSED: [u32; 3] = [0x5412, 0x541c, 0x5423];

/// Calls that set a mode, and which argument it is. A file with the set-user-id bit in a granted folder
/// would give another user of the machine the owner's rights. `openat2` passes its mode where a filter cannot look.
const MODES: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
];

/// Calls that open, and which argument their flags are; the mode is the next.
const OPENING: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// What makes memory that nobody counts without control groups: files without a path, which can be under
/// way in a socket, and the objects of System V that are no memory to map.
const UNCOUNTED: [libc::c_long; 3] = [libc::SYS_memfd_create, libc::SYS_semget, libc::SYS_msgget];

/// The flags of `clone` that make namespaces.
const NAMESPACES: u32 = 0x7e02_0000;

/// Kinds of sockets between processes.
const KINDS: [libc::c_int; 3] = [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET];

/// Kinds of sockets of the Internet and the protocols they may name. Raw ones are not here, and
/// no protocol for whose sake the kernel would load a module.
const PROTOCOLS: [(libc::c_int, [libc::c_int; 2]); 2] =
    [(libc::SOCK_STREAM, [0, libc::IPPROTO_TCP]), (libc::SOCK_DGRAM, [0, libc::IPPROTO_UDP])];

/// The number, inside, of the process that watches a program. It has the program's user, and only this
/// list keeps its limits and its priority from being changed.
const WATCHER: u32 = 1;

/// What kinds of nodes may be made: files, pipes and sockets, no devices.
const NODES: [u32; 3] = [libc::S_IFREG, libc::S_IFIFO, libc::S_IFSOCK];

/// What the list must hold that nothing else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strictness {
    /// Without namespaces: no sockets but those between processes.
    pub(crate) is_bare: bool,
    /// It may not choose its processors, because no control group divides them.
    pub(crate) is_pinned: bool,
    /// No files in memory without a path: no control group counts them, and one that is under way in
    /// a socket is seen by nobody.
    pub(crate) is_uncounted: bool,
}

/// The filters for every need, made ahead.
#[derive(Debug)]
pub(crate) struct Filters {
    /// By whether it is pinned, and whether its memory is uncounted.
    filters: [[Filter; 2]; 2],
}

impl Filters {
    /// Makes them for rooms with namespaces or without.
    pub(crate) fn new(namespaces: Namespaces) -> Self {
        let is_bare = namespaces == Namespaces::Shared;
        let make = |is_pinned| {
            [false, true]
                .map(|is_uncounted| filter(Strictness { is_bare, is_pinned, is_uncounted }))
        };
        Self { filters: [make(false), make(true)] }
    }

    /// The one that allows least.
    pub(crate) fn strictest(&self) -> &Filter {
        &self.filters[1][1]
    }

    /// The one for a program with these bounds.
    pub(crate) fn of(&self, bounds: &Bounds) -> &Filter {
        let is_uncounted = bounds.memory.is_some() && !bounds.grouped;
        &self.filters[usize::from(bounds.processors.is_some())][usize::from(is_uncounted)]
    }
}

/// The filter for one process.
fn filter(strictness: Strictness) -> Filter {
    let mut calls: BTreeMap<libc::c_long, Answer> = BTreeMap::new();
    for call in ALLOWED.iter().chain(ALLOWED_HERE) {
        calls.insert(*call, Answer::Allow);
    }
    for call in REFUSED {
        calls.insert(*call, Answer::Refuse(libc::EPERM));
    }
    let no_namespaces = Condition { argument: 0, test: Test::MaskedIs(NAMESPACES, 0) };
    calls.insert(libc::SYS_clone, one_of(vec![vec![no_namespaces]]));
    calls.insert(libc::SYS_socket, sockets(strictness));
    let pair = Condition { argument: 0, test: Test::Is(bits(libc::AF_UNIX)) };
    calls.insert(libc::SYS_socketpair, one_of(vec![vec![pair]]));
    let requests =
        TERMINAL_REFUSED.map(|request| Condition { argument: 1, test: Test::IsNot(request) });
    calls.insert(libc::SYS_ioctl, one_of(vec![requests.to_vec()]));
    // The default persona, and asking which it is.
    let persona = |value| vec![Condition { argument: 0, test: Test::Is(value) }];
    calls.insert(libc::SYS_personality, one_of(vec![persona(0), persona(u32::MAX)]));
    for (call, mode) in MODES {
        calls.insert(*call, one_of(vec![vec![plain_mode(*mode)]]));
    }
    for (call, flags) in OPENING {
        // The mode counts only where a file is made.
        let makes_none =
            Test::MaskedIs(bits(libc::O_CREAT | libc::O_TMPFILE) & !bits(libc::O_DIRECTORY), 0);
        let makes_none = Condition { argument: *flags, test: makes_none };
        calls.insert(*call, one_of(vec![vec![makes_none], vec![plain_mode(*flags + 1)]]));
    }
    calls.insert(libc::SYS_mknodat, nodes(2));
    #[cfg(target_arch = "x86_64")]
    calls.insert(libc::SYS_mknod, nodes(1));
    for call in [
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setaffinity,
    ] {
        let others = Condition { argument: 0, test: Test::IsNot(WATCHER) };
        calls.insert(call, one_of(vec![vec![others]]));
    }
    if strictness.is_uncounted {
        for call in UNCOUNTED {
            calls.remove(&call);
        }
    }
    if strictness.is_pinned {
        calls.insert(libc::SYS_sched_setaffinity, Answer::Refuse(libc::EPERM));
    }
    // Of one process; by group or user they would reach the watcher too.
    for (call, one_process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        let single = Condition { argument: 0, test: Test::Is(one_process) };
        let others = Condition { argument: 1, test: Test::IsNot(WATCHER) };
        calls.insert(call, one_of(vec![vec![single, others]]));
    }
    // Its own limits.
    let own = Condition { argument: 0, test: Test::Is(0) };
    calls.insert(libc::SYS_prlimit64, one_of(vec![vec![own]]));
    let calls: Vec<_> = calls
        .into_iter()
        .map(|(call, answer)| (u32::try_from(call).expect("a call number is small"), answer))
        .collect();
    Filter::compile(&calls, &Answer::Refuse(libc::ENOSYS))
}

fn sockets(strictness: Strictness) -> Answer {
    let family = |family| Condition { argument: 0, test: Test::Is(bits(family)) };
    // The upper bits are flags: close on exec, do not block.
    let kind = |kind| Condition { argument: 1, test: Test::MaskedIs(0xf, bits(kind)) };
    let protocol = |protocol| Condition { argument: 2, test: Test::Is(bits(protocol)) };
    let mut alternatives: Vec<_> =
        KINDS.iter().map(|one| vec![family(libc::AF_UNIX), kind(*one)]).collect();
    if !strictness.is_bare {
        // The two versions of the Internet differ in one bit.
        let [four, six] = [libc::AF_INET, libc::AF_INET6].map(bits);
        let internet = Condition { argument: 0, test: Test::MaskedIs(!(four ^ six), four & six) };
        for (one, protocols) in PROTOCOLS {
            for named in protocols {
                alternatives.push(vec![internet, kind(one), protocol(named)]);
            }
        }
    }
    one_of(alternatives)
}

/// A kind of zero means a file.
fn nodes(argument: u8) -> Answer {
    let kind = |kind: u32| Condition { argument, test: Test::MaskedIs(libc::S_IFMT, kind) };
    let kinds = [0].into_iter().chain(NODES);
    one_of(kinds.map(|one| vec![kind(one), plain_mode(argument)]).collect())
}

/// A mode that lends nobody the owner's rights.
fn plain_mode(argument: u8) -> Condition {
    Condition { argument, test: Test::MaskedIs(libc::S_ISUID | libc::S_ISGID, 0) }
}

fn one_of(alternatives: Vec<Vec<Condition>>) -> Answer {
    Answer::AllowIf(alternatives, libc::EPERM)
}

fn bits(number: libc::c_int) -> u32 {
    number.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: Strictness = Strictness { is_bare: false, is_pinned: false, is_uncounted: false };
    const BARE: Strictness = Strictness { is_bare: true, ..INSIDE };

    fn ask(strictness: Strictness, call: libc::c_long, arguments: [u64; 6]) -> Result<(), i32> {
        match filter(strictness).here(u32::try_from(call).unwrap(), arguments) {
            libc::SECCOMP_RET_ALLOW => Ok(()),
            refused => Err((refused & libc::SECCOMP_RET_DATA).try_into().unwrap()),
        }
    }

    #[test]
    fn no_call_is_both_allowed_and_refused() {
        let allowed: Vec<_> = ALLOWED.iter().chain(ALLOWED_HERE).collect();
        for call in REFUSED {
            assert!(!allowed.contains(&call), "{call}");
            assert_eq!(ask(INSIDE, *call, [0; 6]), Err(libc::EPERM));
        }
        for call in allowed {
            assert_eq!(ask(INSIDE, *call, [0; 6]), Ok(()), "{call}");
        }
    }

    #[test]
    fn what_takes_flags_by_pointer_or_is_a_kernel_in_itself_does_not_exist() {
        for call in [libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, 9999] {
            assert_eq!(ask(INSIDE, call, [0; 6]), Err(libc::ENOSYS));
        }
    }

    #[test]
    fn a_clone_makes_threads_and_processes_but_no_namespace() {
        let clone =
            |flags: libc::c_int| ask(INSIDE, libc::SYS_clone, [bits(flags).into(), 0, 0, 0, 0, 0]);
        assert_eq!(clone(libc::CLONE_VM | libc::CLONE_THREAD | libc::SIGCHLD), Ok(()));
        for flag in [
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWCGROUP,
        ] {
            assert_eq!(clone(flag | libc::SIGCHLD), Err(libc::EPERM));
        }
    }

    #[test]
    fn only_plain_sockets_can_be_made() {
        let socket = |strictness, family: libc::c_int, kind: libc::c_int| {
            ask(strictness, libc::SYS_socket, [bits(family).into(), bits(kind).into(), 0, 0, 0, 0])
        };
        let plain = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        assert_eq!(socket(INSIDE, libc::AF_INET, plain), Ok(()));
        assert_eq!(socket(BARE, libc::AF_INET, plain), Err(libc::EPERM));
        assert_eq!(socket(BARE, libc::AF_UNIX, plain), Ok(()));
        assert_eq!(socket(INSIDE, libc::AF_INET, libc::SOCK_RAW), Err(libc::EPERM));
        for family in [libc::AF_NETLINK, libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG] {
            assert_eq!(socket(INSIDE, family, libc::SOCK_DGRAM), Err(libc::EPERM));
        }
    }

    #[test]
    fn no_module_is_loaded_for_a_protocol() {
        let socket = |kind: libc::c_int, protocol: libc::c_int| {
            let arguments =
                [bits(libc::AF_INET).into(), bits(kind).into(), bits(protocol).into(), 0, 0, 0];
            ask(INSIDE, libc::SYS_socket, arguments)
        };
        assert_eq!(socket(libc::SOCK_STREAM, libc::IPPROTO_TCP), Ok(()));
        assert_eq!(socket(libc::SOCK_STREAM, libc::IPPROTO_SCTP), Err(libc::EPERM));
        assert_eq!(socket(libc::SOCK_DGRAM, libc::IPPROTO_ICMP), Err(libc::EPERM));
    }

    #[test]
    fn no_file_lends_the_rights_of_its_owner() {
        let ask = |call, arguments| ask(INSIDE, call, arguments);
        let set = u64::from(libc::S_ISUID) | 0o755;
        assert_eq!(ask(libc::SYS_fchmod, [0, 0o755, 0, 0, 0, 0]), Ok(()));
        assert_eq!(ask(libc::SYS_fchmod, [0, set, 0, 0, 0, 0]), Err(libc::EPERM));
        assert_eq!(ask(libc::SYS_fchmodat, [0, 0, set, 0, 0, 0]), Err(libc::EPERM));
        let create = bits(libc::O_CREAT | libc::O_WRONLY).into();
        assert_eq!(ask(libc::SYS_openat, [0, 0, create, 0o644, 0, 0]), Ok(()));
        assert_eq!(ask(libc::SYS_openat, [0, 0, create, set, 0, 0]), Err(libc::EPERM));
        let folder = bits(libc::O_DIRECTORY).into();
        assert_eq!(ask(libc::SYS_openat, [0, 0, folder, u64::MAX, 0, 0]), Ok(()));
        let nameless = bits(libc::O_TMPFILE | libc::O_RDWR).into();
        assert_eq!(ask(libc::SYS_openat, [0, 0, nameless, set, 0, 0]), Err(libc::EPERM));
        assert_eq!(ask(libc::SYS_openat2, [0; 6]), Err(libc::ENOSYS));
    }

    #[test]
    fn what_nobody_counts_or_divides_is_refused() {
        let ask = |strictness, call| ask(strictness, call, [0; 6]);
        let (memory, processors) = (libc::SYS_memfd_create, libc::SYS_sched_setaffinity);
        assert_eq!(ask(INSIDE, memory), Ok(()));
        assert_eq!(ask(Strictness { is_uncounted: true, ..INSIDE }, memory), Err(libc::ENOSYS));
        assert_eq!(ask(Strictness { is_pinned: true, ..INSIDE }, processors), Err(libc::EPERM));
    }

    #[test]
    fn the_watcher_is_left_alone() {
        let ask = |call, first, second| ask(INSIDE, call, [first, second, 0, 0, 0, 0]);
        assert_eq!(ask(libc::SYS_prlimit64, 0, 0), Ok(()));
        assert_eq!(ask(libc::SYS_prlimit64, 1, 0), Err(libc::EPERM));
        assert_eq!(ask(libc::SYS_sched_setscheduler, 7, 0), Ok(()));
        assert_eq!(ask(libc::SYS_sched_setscheduler, 1, 0), Err(libc::EPERM));
        assert_eq!(ask(libc::SYS_setpriority, 0, 0), Ok(()));
        assert_eq!(ask(libc::SYS_setpriority, 0, 1), Err(libc::EPERM));
        assert_eq!(ask(libc::SYS_setpriority, 2, 0), Err(libc::EPERM));
        assert_eq!(ask(libc::SYS_sched_setaffinity, 0, 0), Ok(()));
    }

    #[test]
    fn a_terminal_is_not_typed_into_by_any_spelling_of_the_request() {
        for request in [libc::TIOCSTI, libc::TIOCSTI | (1 << 32), libc::TIOCLINUX] {
            let asked = ask(INSIDE, libc::SYS_ioctl, [0, request, 0, 0, 0, 0]);
            assert_eq!(asked, Err(libc::EPERM));
        }
        let size = ask(INSIDE, libc::SYS_ioctl, [0, libc::TIOCGWINSZ, 0, 0, 0, 0]);
        assert_eq!(size, Ok(()));
    }
}
