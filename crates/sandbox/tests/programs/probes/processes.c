/* Other processes, and the first one of the room above all. */
#include "common.h"

/* The process list gives away command lines and is the start of any attack on
 * a neighbour. A sandbox's own few processes may be seen. */
void list_processes(char **arg)
{
    long long handful = arg[0] ? number_argument(arg[0], 1000000) : 8;
    DIR *folder = opendir("/proc");
    if (!folder) {
        attempt("opendir /proc", -1, PATH_GONE);
        return;
    }
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
    if (count > handful)
        escaped("readdir /proc: %d processes", count);
    note("readdir /proc: only %d processes", count);
}

/* What is behind the numbers in a folder of descriptors; the numbers alone say nothing. */
static long follow_entries(const char *path)
{
    DIR *folder = opendir(path);
    long result = -1;
    if (!folder)
        return -1;
    int number = ENOENT;
    for (struct dirent *entry; (entry = readdir(folder)) && result < 0;) {
        char name[PATH_MAX], target[8];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.')
            continue;
        result = entry->d_type == DT_LNK ? readlink(name, target, sizeof target) : open(name, O_RDONLY | O_CLOEXEC);
        if (result < 0 && entry->d_type == DT_LNK)
            result = open(name, O_PATH | O_CLOEXEC);
        number = errno;
    }
    closedir(folder);
    errno = number;
    return result;
}

/* Memory, environment and descriptors of a process hold its secrets; its root
 * and cwd links lead around our own view of the file system. The kernel checks
 * at open time, so nothing is read. */
void read_proc(char **arg)
{
    static const struct {
        const char *what;
        enum { FILE_OF, LINK_OF, FOLDER_OF } kind;
    } KNOWN[] = {
        {"mem", FILE_OF}, {"environ", FILE_OF}, {"maps", FILE_OF},
        {"auxv", FILE_OF}, {"fd", FOLDER_OF}, {"fdinfo", FOLDER_OF},
        {"root", LINK_OF}, {"cwd", LINK_OF}, {"exe", LINK_OF},
    };
    pid_t pid = process_argument(arg[0]);
    bool found = false;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        if (strcmp(arg[1], KNOWN[i].what) && strcmp(arg[1], "all"))
            continue;
        found = true;
        char path[64], target[PATH_MAX];
        long result;
        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, KNOWN[i].what);
        if (KNOWN[i].kind == LINK_OF) {
            result = readlink(path, target, sizeof target);
        } else if (KNOWN[i].kind == FOLDER_OF) {
            result = follow_entries(path);
        } else {
            result = open(path, O_RDONLY | O_CLOEXEC);
        }
        attempt(path, result, PROCESS_GONE);
    }
    if (!found)
        bad_usage("no such file of a process");
}

/* Overwriting the program of whoever started us (the runc hole of 2019). It is
 * opened without truncation and never written; ETXTBSY means "may, but busy". */
void proc_exe_write(char **arg)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)process_argument(arg[0] ? arg[0] : "1"));
    attempt(path, open(path, O_WRONLY | O_CLOEXEC), PROCESS_GONE);
}

/* A debugger owns its target. SEIZE has the permission check of ATTACH but does
 * not stop the target; our exit lets go of it. */
void ptrace_attach(char **arg)
{
    attempt("ptrace(SEIZE)", ptrace(PTRACE_SEIZE, process_argument(arg[0]), 0, 0), PROCESS_GONE);
}

/* Reading foreign memory. Address 0 is nobody's: EFAULT means it was allowed. */
void vm_readv(char **arg)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {NULL, 1};
    attempt("process_vm_readv", process_vm_readv(process_argument(arg[0]), &here, 1, &there, 1, 0), PROCESS_GONE);
}

/* Who may send signal 0 may send SIGKILL. */
void signal_process(char **arg)
{
    attempt("kill(pid, 0)", kill(process_argument(arg[0]), 0), PROCESS_GONE);
}

/* What follows would hurt outside of a room, so it is not even tried there. */
static void demand_a_room(void)
{
    char name[16] = "";
    int fd = open("/etc/hostname", O_RDONLY | O_CLOEXEC);
    ssize_t length = read(fd, name, sizeof name - 1);
    close(fd);
    if (parent_pid != 1 || prctl(PR_GET_SECCOMP) != 2 || length != 5 || strcmp(name, "haft\n"))
        skipped("only in a room");
}

/* Every signal by every call that sends one. The first process of a room may
 * not even be asked: it keeps the time. */
void signal_every(char **arg)
{
    demand_a_room();
    pid_t pid = process_argument(arg[0]);
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    for (int number = 1; number <= 64; number++) {
        siginfo_t info = {.si_signo = number, .si_code = SI_QUEUE, .si_pid = getpid(), .si_uid = getuid()};
        attempt("kill", kill(pid, number), PROCESS_GONE);
        attempt("tgkill", syscall(SYS_tgkill, pid, pid, number), PROCESS_GONE);
        attempt("rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, pid, number, &info), PROCESS_GONE);
        if (pidfd >= 0)
            attempt("pidfd_send_signal", syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0), PROCESS_GONE);
    }
}

/* Kills all that it can: its own child, and neither the room nor itself. */
void kill_everyone(char **arg)
{
    demand_a_room();
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    long result = kill(-1, SIGKILL);
    int status, number = errno;
    if (result < 0)
        broken("kill(-1): %s", errno_name(number));
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
        broken("kill(-1): the child lives");
    if (getppid() != 1)
        escaped("kill(-1): the first process is gone");
    works("kill(-1) reached its own child only");
}

/* Slowing a process down or starving it, with values that it has already. Who may
 * set the same may set others; the one that watches us must not be set at all. */
void meddle(char **arg)
{
    pid_t pid = process_argument(arg[0]);
    struct rlimit limit;
    cpu_set_t set;
    struct sched_param priority = {0};
    int nice = getpriority(PRIO_PROCESS, 0);
    attempt("prlimit", prlimit(pid, RLIMIT_NOFILE, NULL, &limit), PROCESS_GONE);
    attempt("setpriority", setpriority(PRIO_PROCESS, (id_t)pid, nice), PROCESS_GONE);
    attempt("sched_setscheduler", sched_setscheduler(pid, SCHED_OTHER, &priority), PROCESS_GONE);
    attempt("sched_setparam", sched_setparam(pid, &priority), PROCESS_GONE);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        attempt("sched_setaffinity", sched_setaffinity(pid, sizeof set, &set), PROCESS_GONE);
    attempt("ioprio_set", syscall(SYS_ioprio_set, 1, pid, 0), PROCESS_GONE);
}

/* Our parent is the sandbox itself; whoever ends it ends its time limits. */
void signal_parent(char **arg)
{
    attempt("kill(getppid(), 0)", kill(process_argument("parent"), 0), PROCESS_GONE);
}

/* kcmp orders kernel pointers of another process: helps kernel exploits. */
void kcmp_process(char **arg)
{
    pid_t pid = arg[0] ? process_argument(arg[0]) : getpid();
    attempt("kcmp", syscall(SYS_kcmp, getpid(), pid, 1 /* KCMP_VM */, 0, 0), PROCESS_GONE);
}

/* Taking an open descriptor out of another process passes by every path rule.
 * The number asked for is never open: EBADF means it was allowed. */
void pidfd_getfd_process(char **arg)
{
    int pidfd = (int)syscall(SYS_pidfd_open, process_argument(arg[0]), 0);
    if (pidfd < 0) {
        attempt("pidfd_open", -1, PROCESS_GONE);
        return;
    }
    attempt("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, INT_MAX, 0), PROCESS_GONE);
}
