/* Kernel interfaces that no confined program needs, and other tables of system calls. */
#include "common.h"

/* Keyrings are not split by namespaces and have a long list of holes.
 * KEYCTL_CAPABILITIES only asks what there is. */
void keyctl_probe(char **arg)
{
    char buffer[8];
    attempt("keyctl", syscall(SYS_keyctl, 31, buffer, sizeof buffer, 0, 0), ONLY_DENIALS);
}

/* Into the process keyring, which ends with us. */
void add_key_probe(char **arg)
{
    attempt("add_key", syscall(SYS_add_key, "user", "probe", "x", 1, -2), ONLY_DENIALS);
}

/* May start a helper program as root outside; without callout text it does not. */
void request_key_probe(char **arg)
{
    attempt("request_key", syscall(SYS_request_key, "user", "probe:no-such-key", NULL, 0), ONLY_DENIALS);
}

/* Loads programs into the kernel. */
void bpf_probe(char **arg)
{
    union bpf_attr map;
    memset(&map, 0, sizeof map);
    map.map_type = BPF_MAP_TYPE_ARRAY;
    map.key_size = map.value_size = 4;
    map.max_entries = 1;
    attempt("bpf(MAP_CREATE)", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map), ONLY_DENIALS);
}

/* Large, often broken, and a timer for side channels. */
void perf_probe(char **arg)
{
    struct perf_event_attr event = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof event, .config = PERF_COUNT_SW_CPU_CLOCK,
        .disabled = 1, .exclude_kernel = 1, .exclude_hv = 1,
    };
    attempt("perf_event_open", syscall(SYS_perf_event_open, &event, 0, -1, -1, 0), ONLY_DENIALS);
}

/* Its requests are carried out past any system call filter. */
void io_uring_probe(char **arg)
{
    char parameters[256] = {0}; /* struct io_uring_params is 120 bytes */
    attempt("io_uring_setup", syscall(SYS_io_uring_setup, 1, parameters), ONLY_DENIALS);
}

/* Lets a program hold the kernel in mid-copy: the standard help for winning
 * races. The second form is the one that needs no privilege. */
void userfaultfd_probe(char **arg)
{
    attempt("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC), ONLY_DENIALS);
    attempt("userfaultfd(USER_MODE_ONLY)", syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY), ONLY_DENIALS);
}

/* Memory that nobody outside can look at, swap out or move. */
void memfd_secret_probe(char **arg)
{
    attempt("memfd_secret", syscall(SYS_memfd_secret, 0), ONLY_DENIALS);
}

/* Watches (and with the content class holds up) file use of all others. */
void fanotify_probe(char **arg)
{
    attempt("fanotify_init(CONTENT)", syscall(SYS_fanotify_init, 0x04 | 0x01, O_RDONLY), ONLY_DENIALS);
    attempt("fanotify_init(REPORT_FID)", syscall(SYS_fanotify_init, 0x200 | 0x01, O_RDONLY), ONLY_DENIALS);
}

/* Opens any inode of a file system by number, outside our folders too (the
 * "shocker" way out of containers). Here: our own folder's handle, or a made-up
 * one where that cannot be had. */
void open_by_handle_probe(char **arg)
{
    union {
        struct file_handle handle;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } u;
    memset(&u, 0, sizeof u);
    u.handle.handle_bytes = MAX_HANDLE_SZ;
    int mount_id;
    if (name_to_handle_at(AT_FDCWD, ".", &u.handle, &mount_id, 0) < 0) {
        u.handle.handle_bytes = 8;
        u.handle.handle_type = 1;
    }
    int anchor = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    attempt("open_by_handle_at", open_by_handle_at(anchor < 0 ? AT_FDCWD : anchor, &u.handle, O_RDONLY | O_CLOEXEC), ONLY_DENIALS);
}

/* Code in the kernel. No image, no descriptor and no such module are given. */
void init_module_probe(char **arg)
{
    attempt("init_module", syscall(SYS_init_module, NULL, 0UL, ""), ONLY_DENIALS);
    attempt("finit_module", syscall(SYS_finit_module, -1, "", 0), ONLY_DENIALS);
    attempt("delete_module", syscall(SYS_delete_module, "no_such_module_of_the_probes", O_NONBLOCK), ONLY_DENIALS);
}

/* Another kernel. Invalid flags: zero segments alone would unload a loaded one. */
void kexec_probe(char **arg)
{
    attempt("kexec_load", syscall(SYS_kexec_load, 0UL, 1UL, NULL, 0xff00UL), ONLY_DENIALS);
#ifdef SYS_kexec_file_load
    attempt("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0UL, NULL, 0xff00UL), ONLY_DENIALS);
#endif
}

/* Memory of all processes would go to a file of ours. */
void swapon_probe(char **arg)
{
    attempt("swapon", syscall(SYS_swapon, NOWHERE, 0), ONLY_DENIALS);
    attempt("swapoff", syscall(SYS_swapoff, NOWHERE), ONLY_DENIALS);
}

/* The kernel log gives away addresses and what happens outside. Asks only for
 * the size of the buffer. */
void syslog_probe(char **arg)
{
    attempt("syslog", syscall(SYS_syslog, 10, NULL, 0), ONLY_DENIALS);
}

/* Writes a record of each process to a file. (acct(NULL) would switch it off.) */
void acct_probe(char **arg)
{
    attempt("acct", syscall(SYS_acct, NOWHERE), ONLY_DENIALS);
}

/* Limits of other users; the device is looked up before any permission check,
 * so only a filter can hold this one. */
void quotactl_probe(char **arg)
{
    char room[256];
    attempt("quotactl", syscall(SYS_quotactl, (int)(0x800007u << 8) /* Q_GETQUOTA */, NOWHERE, (int)getuid(), room), ONLY_DENIALS);
}

/* Direct access to device ports. */
void iopl_probe(char **arg)
{
#if defined(__x86_64__) || defined(__i386__)
    attempt("iopl", syscall(SYS_iopl, 3), ONLY_DENIALS);
    attempt("ioperm", syscall(SYS_ioperm, 0x80UL, 1UL, 1), ONLY_DENIALS);
#else
    skipped("iopl is of x86 only");
#endif
}

/* Host identity, as logs and licence checks use it. Length -1 is never valid. */
void sethostname_probe(char **arg)
{
    attempt("sethostname", syscall(SYS_sethostname, "", -1), ONLY_DENIALS);
    attempt("setdomainname", syscall(SYS_setdomainname, "", -1), ONLY_DENIALS);
}

/* The clock decides about certificates and logs. clock_settime itself checks
 * the time before the permission, so its sisters, which need the same
 * capability and can be called to no effect, are asked: settimeofday with
 * nothing to set, and an impossible tick length. */
void clock_probe(char **arg)
{
    attempt("settimeofday", syscall(SYS_settimeofday, NULL, NULL), ONLY_DENIALS);
    struct timex change = {.modes = ADJ_TICK, .tick = 0};
    attempt("adjtimex", syscall(SYS_adjtimex, &change), ONLY_DENIALS);
    change.modes = ADJ_TICK;
    attempt("clock_adjtime", syscall(SYS_clock_adjtime, CLOCK_REALTIME, &change), ONLY_DENIALS);
}

/* Switches address randomisation off for everything started from here. */
void personality_probe(char **arg)
{
    attempt("personality(ADDR_NO_RANDOMIZE)", syscall(SYS_personality, 0x0040000), ONLY_DENIALS);
}

/* A device node made by oneself passes by an empty /dev. Number 1,3 is null. */
void mknod_probe(char **arg)
{
    static const char *const FOLDERS[] = {".", "/tmp", "/dev/shm", "/dev"};
    for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
        char path[128], call[64];
        snprintf(path, sizeof path, "%s/.probe-node-%s", FOLDERS[i], stamp());
        snprintf(call, sizeof call, "mknod in %s", FOLDERS[i]);
        int result = mknod(path, S_IFCHR | 0600, makedev(1, 3));
        int number = errno;
        if (result == 0)
            unlink(path);
        errno = number;
        attempt(call, result, PATH_GONE);
    }
}

/* Advises on memory of others; on oneself it needs no privilege, so without an
 * argument this tells whether the filter lets the call through at all. Nothing
 * is advised: the list is empty. */
void process_madvise_probe(char **arg)
{
    int pidfd = (int)syscall(SYS_pidfd_open, arg[0] ? process_argument(arg[0]) : getpid(), 0);
    if (pidfd < 0) {
        attempt("pidfd_open", -1, PROCESS_GONE);
        if (arg[0])
            return; /* else go on: the descriptor is looked at after the filter */
    }
    struct iovec nothing = {NULL, 0};
    attempt("process_madvise", syscall(SYS_process_madvise, pidfd, &nothing, 0UL, 20 /* MADV_COLD */, 0U), PROCESS_GONE);
}

/* 32-bit entry; where emulation is off it is a fault (SIGSEGV), also fine. */
void int80_probe(char **arg)
{
#if defined(__x86_64__)
    long result = 20; /* getpid of the 32-bit table */
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "rcx", "rdx", "r8", "r9", "r10", "r11");
    int answer = (int)result;
    errno = answer < 0 ? -answer : 0;
    attempt("int $0x80", answer < 0 ? -1 : answer, ONLY_DENIALS);
#else
    skipped("int $0x80 is of x86_64 only");
#endif
}

void x32_probe(char **arg)
{
#if defined(__x86_64__)
    attempt("x32 getpid", syscall(0x40000000 | SYS_getpid), ONLY_DENIALS);
#else
    skipped("x32 is of x86_64 only");
#endif
}
