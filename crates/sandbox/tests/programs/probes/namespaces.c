/* Namespaces: a new one hands out new rights, another one leads out. */
#include "common.h"

static const struct {
    const char *name;
    int flag;
} NAMESPACES[] = {
    {"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID}, {"net", CLONE_NEWNET},
    {"ipc", CLONE_NEWIPC}, {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}, {"time", CLONE_NEWTIME},
};

/* A new user namespace hands out every capability inside it, and with them the
 * parts of the kernel that most exploits live in; the others need it or are
 * ways around our mounts, limits and network. */
void unshare_flag(char **arg)
{
    for (size_t i = 0; i < sizeof NAMESPACES / sizeof *NAMESPACES; i++)
        if (!strcmp(arg[0], NAMESPACES[i].name)) {
            char call[32];
            snprintf(call, sizeof call, "unshare(%s)", arg[0]);
            attempt(call, unshare(NAMESPACES[i].flag), NAMESPACE_OFF);
            return;
        }
    bad_usage("FLAG is user, mount, pid, net, ipc, uts, cgroup or time");
}

/* The same through clone, whose flags a filter has to look at. */
void clone_newuser(char **arg)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    int number = errno;
    if (child > 0)
        exited_with((pid_t)child, 0);
    errno = number;
    attempt("clone(NEWUSER)", child, NAMESPACE_OFF);
}

/* clone3 keeps its flags in memory where a filter cannot see them, so all of it
 * has to answer ENOSYS (the C library then falls back to clone). */
void clone3_newuser(char **arg)
{
    struct clone_args call = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &call, sizeof call);
    if (child == 0)
        _exit(0);
    int number = errno;
    if (child > 0)
        exited_with((pid_t)child, 0);
    errno = number;
    attempt("clone3(NEWUSER)", child, NAMESPACE_OFF);
}

/* Joining the namespaces of pid 1 undoes all of ours. Joining the user
 * namespace that one is in already answers EINVAL before it looks at
 * permissions, which is no escape. */
void setns_process(char **arg)
{
    static const char *const NAMES[] = {"cgroup", "ipc", "net", "uts", "time", "pid", "mnt", "user"};
    static const int USER[] = {EINVAL, 0};
    pid_t pid = process_argument(arg[0] ? arg[0] : "1");
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, NAMES[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            /* Only the link could be opened or not; that alone changes nothing. */
            note("open ns/%s: %s", NAMES[i], errno_name(errno));
            continue;
        }
        char call[32];
        snprintf(call, sizeof call, "setns(%s)", NAMES[i]);
        attempt(call, setns(fd, 0), strcmp(NAMES[i], "user") ? ONLY_DENIALS : USER);
        close(fd);
    }
}
