/*
 * probes: what a program inside the walls tries, and must not be able to do.
 *
 *     probes NAME [ARGS]      runs one probe
 *     probes list             name, arguments and kind of every probe
 *
 * One line of output and one exit status per probe:
 *
 *     held: CALL: ERRNO       0    the operation was denied
 *     ESCAPED: ...           42    the operation was possible
 *     skipped: why           43    nothing could be said here
 *     works: ...              0    an ordinary thing that must work does
 *     BROKEN: ...            44    ... and does not (or a probe died oddly)
 *     count/touched/wrote N   0    loads: how far they came, and what stopped them
 *     usage, on stderr       64
 *
 * Only an errno that means "you may not" counts as held: EPERM, EACCES, ENOSYS,
 * death by SIGSYS, and the few more that a probe names (a path that is hidden,
 * a process that is not there). Any other answer means that the call went past
 * the permission check, so it is an ESCAPE. That lets a probe use arguments that
 * do nothing where there are no walls: unknown file systems, paths that are not
 * there, bad pointers. Nothing of another process is read, stopped or written:
 * an opened descriptor is proof enough.
 */
#pragma once
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* Constants that older headers do not have. */
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#ifndef AF_VSOCK
#define AF_VSOCK 40
#endif
#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { HELD = 0, WORKS = 0, ESCAPED = 42, SKIPPED = 43, BROKEN = 44, USAGE = 64 };

/* A name that is nowhere, for calls that must fail after the permission check. */
#define NOWHERE "/no-such-folder-of-the-probes/nothing"

/* Ceilings, so that a mistyped number cannot hurt the machine. */
#define MAX_BYTES (8LL << 30)
#define MAX_PROCESSES 8192
#define MAX_FILES 200000
#define MAX_SECONDS 600

extern pid_t parent_pid; /* who started us, taken before we fork */
extern const char *own_path;

/* Verdicts; they end the process. */
#define VERDICT_LIKE __attribute__((noreturn, format(printf, 1, 2)))
void escaped(const char *format, ...) VERDICT_LIKE;
void skipped(const char *format, ...) VERDICT_LIKE;
void works(const char *format, ...) VERDICT_LIKE;
void broken(const char *format, ...) VERDICT_LIKE;
void report(const char *format, ...) VERDICT_LIKE;
void bad_usage(const char *why) __attribute__((noreturn));
void end_of_probe(void) __attribute__((noreturn));

/* Further errnos that mean "denied", for one kind of call each. */
extern const int ONLY_DENIALS[], PATH_GONE[], PROCESS_GONE[], NAMESPACE_OFF[], FAMILY_OFF[], TERMINAL_OFF[];

const char *errno_name(int number);
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool is_denial(int number, const int *further);
void attempt(const char *call, long result, const int *further);
long must(const char *call, long result);
long long number_argument(const char *text, long long ceiling);
pid_t process_argument(const char *text);
long long now_ms(void);
void sleep_ms(long ms);
const char *stamp(void);
bool write_all(int fd, const void *data, size_t length);
bool exited_with(pid_t child, int status);
int open_pty(int *master, char *name, size_t size);

typedef void run(char **arg);
run read_file, list_folder, write_file, swap_race; /* files.c */
run threads_work, fork_exec_works, pipes_work, temp_file_works, mmap_exec_works, loopback_works,
    unix_socket_works, socketpair_works, posix_shm_works, inotify_works, event_loop_works,
    memfd_exec_works, getrandom_works, devices_work, passwd_works, localtime_works, affinity_works,
    statx_openat2_work, copy_file_range_works, pidfd_open_works, posix_spawn_works, landlock_works,
    pty_works, not_root, helper_exit; /* friendly.c */
run setuid_zero, setgroups_probe, capabilities_probe, capset_gain, make_setuid_file; /* identity.c */
run keyctl_probe, add_key_probe, request_key_probe, bpf_probe, perf_probe, io_uring_probe,
    userfaultfd_probe, memfd_secret_probe, fanotify_probe, open_by_handle_probe, init_module_probe,
    kexec_probe, swapon_probe, syslog_probe, acct_probe, quotactl_probe, iopl_probe,
    sethostname_probe, clock_probe, personality_probe, mknod_probe, process_madvise_probe,
    int80_probe, x32_probe; /* kernel.c */
run raise_limits, sched_fifo, nice_negative, fork_many, allocate, allocate_spread, memfd_fill,
    shm_fill, fill_file, many_files, open_many, output, spin, sleep_stubborn, daemon_heartbeat; /* limits.c */
run mount_probe, umount_probe, pivot_root_probe, chroot_probe, open_tree_probe, fsopen_probe,
    move_mount_probe, mount_setattr_probe; /* mounts.c */
run unshare_flag, clone_newuser, clone3_newuser, setns_process; /* namespaces.c */
run plant_probe; /* plant.c */
run inherited_descriptors, proc_sys_write, proc_leaks, dev_nodes, cgroup_write, mountinfo_has; /* proc.c */
run meddle, signal_every, kill_everyone, list_processes, read_proc, proc_exe_write, ptrace_attach, vm_readv, signal_process,
    signal_parent, kcmp_process, pidfd_getfd_process; /* processes.c */
run socket_probe, abstract_unix, unix_connect, tcp_connect, udp_echo, interfaces_probe; /* sockets.c */
run tiocsti_probe, tioclinux_probe; /* terminal.c */
