//! Things to try that need nothing around them, and whether each can succeed without walls.

use sandbox::Confinement;

use crate::kit::folders::{Folder, names};
use crate::kit::machine::field;
use crate::kit::users::as_each_user;
use crate::probing::{assert_escapes_outside, assert_held, probe_outside};

/// One thing to try.
pub(crate) struct Row {
    /// The words of the probe inside.
    inside: &'static str,
    outside: Outside,
}

/// Who gets through where there are no walls. What nobody can do anywhere shows nothing.
enum Outside {
    /// Everybody, by these words.
    Anybody(&'static str),
    /// Root, by these words. An ordinary user on many machines too, but not on all.
    Root(&'static str),
    /// Nobody where the kernel was built without it.
    SomeKernels,
}

const fn anybody(words: &'static str) -> Row {
    Row { inside: words, outside: Outside::Anybody(words) }
}

const fn root(words: &'static str) -> Row {
    Row { inside: words, outside: Outside::Root(words) }
}

const fn some_kernels(words: &'static str) -> Row {
    Row { inside: words, outside: Outside::SomeKernels }
}

/// Inside it is about the first process; outside that is somebody's, so a shell of ours takes its place.
const fn aimed(inside: &'static str, outside: &'static str) -> Row {
    Row { inside, outside: Outside::Root(outside) }
}

/// Signals to other processes.
pub(crate) const SIGNALS: &[Row] = &[aimed("signal 1", "signal parent"), anybody("signal-parent")];

/// Other processes: their memory, their descriptors.
pub(crate) const PROCESSES: &[Row] = &[
    anybody("list-processes 3"),
    aimed("read-proc 1 mem", "read-proc parent mem"),
    aimed("read-proc 1 environ", "read-proc parent environ"),
    aimed("read-proc 1 maps", "read-proc parent maps"),
    aimed("read-proc 1 auxv", "read-proc parent auxv"),
    aimed("read-proc 1 fd", "read-proc parent fd"),
    aimed("read-proc 1 fdinfo", "read-proc parent fdinfo"),
    aimed("read-proc 1 root", "read-proc parent root"),
    aimed("read-proc 1 cwd", "read-proc parent cwd"),
    aimed("read-proc 1 exe", "read-proc parent exe"),
    aimed("read-proc parent all", "read-proc parent all"),
    aimed("proc-exe-write 1", "proc-exe-write parent"),
    aimed("ptrace-attach 1", "ptrace-attach parent"),
    aimed("process-vm-readv 1", "process-vm-readv parent"),
    aimed("meddle 1", "meddle parent"),
    root("kcmp"),
    aimed("kcmp 1", "kcmp parent"),
    aimed("pidfd-getfd 1", "pidfd-getfd parent"),
    root("process-madvise"),
    aimed("process-madvise 1", "process-madvise parent"),
];

/// Namespaces and mounts: the ways out of a view of the files.
pub(crate) const NAMESPACES: &[Row] = &[
    root("unshare user"),
    root("unshare mount"),
    root("unshare pid"),
    root("unshare net"),
    root("unshare ipc"),
    root("unshare uts"),
    root("unshare cgroup"),
    root("unshare time"),
    root("clone-newuser"),
    root("clone3-newuser"),
    aimed("setns 1", "setns parent"),
    root("mount"),
    root("umount"),
    root("pivot-root"),
    root("chroot"),
    root("open-tree"),
    root("fsopen"),
    root("move-mount"),
    root("mount-setattr"),
];

/// Parts of the kernel that no tool needs.
pub(crate) const KERNEL: &[Row] = &[
    root("keyctl"),
    root("add-key"),
    root("request-key"),
    root("bpf"),
    root("perf-event-open"),
    root("io-uring-setup"),
    root("userfaultfd"),
    root("memfd-secret"),
    root("fanotify-init"),
    root("open-by-handle-at"),
    some_kernels("init-module"),
    some_kernels("kexec-load"),
    root("swapon"),
    root("syslog"),
    root("acct"),
    root("quotactl"),
    some_kernels("iopl"),
    root("sethostname"),
    root("clock-settime"),
    anybody("personality"),
    root("mknod-device"),
    root("int80"),
    some_kernels("x32"),
    root("tiocsti"),
    anybody("tioclinux"),
];

/// Users, groups, capabilities and limits.
pub(crate) const IDENTITY: &[Row] = &[
    root("setuid-zero"),
    root("setgroups"),
    anybody("capabilities"),
    root("capset-gain"),
    root("make-setuid-file"),
    aimed("raise-limits", "raise-limits parent"),
    root("sched-fifo"),
    root("nice-negative"),
];

/// Files that the kernel makes up.
pub(crate) const MADE_UP_FILES: &[Row] =
    &[root("proc-sys-write"), root("proc-leaks"), root("dev-nodes"), root("cgroup-write")];

/// Kinds of sockets.
pub(crate) const SOCKETS: &[Row] = &[
    root("socket raw"),
    root("socket raw6"),
    root("socket packet"),
    root("socket packet dgram"),
    anybody("socket netlink"),
    anybody("socket netlink dgram"),
    root("socket vsock"),
    some_kernels("socket alg"),
    some_kernels("socket bluetooth"),
    some_kernels("socket key"),
    root("socket xdp"),
    some_kernels("socket tipc"),
    root("interfaces"),
];

/// Probes that need something around them; their tests also run them without walls.
const ELSEWHERE: [&str; 11] = [
    "read-file",
    "list-folder",
    "write-file",
    "abstract-unix",
    "unix-connect",
    "tcp-connect",
    "udp-echo",
    "inherited-descriptors",
    "mountinfo-has",
    "plant",
    "swap-race",
];

/// Not even tried where there is no room.
const ONLY_INSIDE: [&str; 1] = ["signal-every"];

const ALL: [&[Row]; 7] = [PROCESSES, SIGNALS, NAMESPACES, KERNEL, IDENTITY, MADE_UP_FILES, SOCKETS];

/// Expects each row to be held.
pub(crate) fn assert_all_held(confinement: &Confinement, rows: &[Row]) {
    for row in rows {
        assert_held(confinement, &words(row.inside));
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Whether this is root in full, and not in a container that has taken rights away.
fn is_root_in_full() -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    u64::from_str_radix(field(&status, "CapEff:").unwrap(), 16).unwrap() & SYS_ADMIN != 0
}

#[test]
fn every_probe_can_fail_where_there_are_no_walls() {
    as_each_user(|| {
        let folder = Folder::outside();
        let is_root = is_root_in_full();
        for row in ALL.into_iter().flatten() {
            match row.outside {
                Outside::Anybody(line) => assert_escapes_outside(&folder, &words(line)),
                Outside::Root(line) if is_root => {
                    assert_escapes_outside(&folder, &words(line));
                }
                Outside::Root(_) | Outside::SomeKernels => {}
            }
        }
        assert!(names(&folder).is_empty(), "a probe left something");
    });
}

#[test]
fn every_probe_of_the_program_is_in_a_table() {
    let (list, code) = probe_outside(std::path::Path::new("/"), &["list"]);
    assert_eq!(code, Some(0), "{list}");
    let tried: Vec<&str> = ALL.into_iter().flatten().map(|row| words(row.inside)[0]).collect();
    for line in list.lines().filter(|line| line.ends_with("\tdeny")) {
        let name = line.split('\t').next().unwrap();
        let is_known = tried.contains(&name) || ELSEWHERE.contains(&name);
        assert!(is_known || ONLY_INSIDE.contains(&name), "`{name}` is in no table");
    }
}
