/* Descriptors, /proc, /dev and control groups. */
#include "common.h"

/* An inherited descriptor works past all path rules. Counted to 65536 at least:
 * one can lie above a limit that was lowered later. */
void inherited_descriptors(char **arg)
{
    struct rlimit limit;
    rlim_t top = 65536;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max > top && limit.rlim_max <= 1 << 20)
        top = limit.rlim_max;
    int count = 0, first = -1;
    for (rlim_t fd = 3; fd < top; fd++)
        if (fcntl((int)fd, F_GETFD) >= 0 && count++ == 0)
            first = (int)fd;
    if (count) {
        char path[64], target[200] = "?";
        snprintf(path, sizeof path, "/proc/self/fd/%d", first);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n > 0)
            target[n] = 0;
        escaped("%d open, first %d -> %s", count, first, target);
    }
    note("descriptors: only 0, 1, 2");
}

/* Switches of the whole machine; core_pattern and modprobe name programs that
 * run as root. Opened, never written. */
void proc_sys_write(char **arg)
{
    static const char *const FILES[] = {
        "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/binfmt_misc/register",
        "/proc/sys/net/ipv4/ip_forward", "/proc/sys/kernel/randomize_va_space", "/proc/sys/user/max_user_namespaces",
    };
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
        attempt(FILES[i], open(FILES[i], O_WRONLY | O_CLOEXEC), PATH_GONE);
}

/* Kernel memory, keys, log and timers tell about everyone on the machine. One
 * byte is read at most, and none where reading would take it from others. */
void proc_leaks(char **arg)
{
    static const struct {
        const char *path;
        bool read;
    } FILES[] = {
        {"/proc/kcore", false}, {"/proc/kmsg", false}, {"/proc/keys", true}, {"/proc/timer_list", true},
        {"/proc/vmallocinfo", true}, {"/proc/slabinfo", true}, {"/proc/kpagecount", false}, {"/proc/kpageflags", false},
        {"/proc/kpagecgroup", false}, {"/proc/pagetypeinfo", true}, {"/proc/sched_debug", true},
    };
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        int fd = open(FILES[i].path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        struct statfs place;
        char byte;
        if (fd < 0)
            attempt(FILES[i].path, -1, PATH_GONE);
        else if (fstatfs(fd, &place) == 0 && place.f_type != 0x9fa0 /* proc */ && read(fd, &byte, 1) == 0)
            note("%s: covered", FILES[i].path);
        else if (!FILES[i].read || read(fd, &byte, 1) == 1)
            escaped("%s: can be read", FILES[i].path);
        else
            note("%s: nothing in it", FILES[i].path);
        if (fd >= 0)
            close(fd);
    }
}

/* Each driver is a way into the kernel; disks are all files at once. */
void dev_nodes(char **arg)
{
    static const char *const FINE[] = {".", "..", "null", "zero", "full", "random", "urandom", "tty", "ptmx",
                                       "pts", "shm", "fd", "stdin", "stdout", "stderr"};
    DIR *folder = opendir("/dev");
    if (!folder) {
        attempt("opendir /dev", -1, PATH_GONE);
        return;
    }
    char names[160] = "";
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        bool fine = false;
        for (size_t i = 0; i < sizeof FINE / sizeof *FINE; i++)
            fine |= !strcmp(entry->d_name, FINE[i]);
        if (fine)
            continue;
        count++;
        size_t used = strlen(names);
        if (used + strlen(entry->d_name) + 2 < sizeof names)
            sprintf(names + used, " %s", entry->d_name);
    }
    if (count)
        escaped("/dev: %d more:%s", count, names);
    note("/dev: only the plain ones");
}

/* Whoever moves himself to another cgroup leaves his limits behind. Opened,
 * never written; ends at the first that opens. */
static int cgroups_seen;

static void cgroup_walk(const char *folder, int depth)
{
    char path[PATH_MAX];
    if (cgroups_seen > 2000 || depth > 6)
        return;
    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    if (access(path, F_OK) == 0) {
        cgroups_seen++;
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
            escaped("open for writing: %s", path);
        if (cgroups_seen == 1)
            attempt("open cgroup.procs", -1, PATH_GONE);
    }
    DIR *list = opendir(folder);
    if (!list) {
        if (depth == 0)
            attempt("opendir", -1, PATH_GONE);
        return;
    }
    for (struct dirent *entry; (entry = readdir(list));)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            cgroup_walk(path, depth + 1);
        }
    closedir(list);
}

void cgroup_write(char **arg)
{
    cgroup_walk(arg[0] ? arg[0] : "/sys/fs/cgroup", 0);
    note("cgroups: %d, none to be written", cgroups_seen);
}

/* The mount table names folders of the host, e.g. the user's home. */
void mountinfo_has(char **arg)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    if (!file) {
        attempt("open mountinfo", -1, PATH_GONE);
        return;
    }
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0)
        if (strstr(line, arg[0])) {
            line[strcspn(line, "\n")] = 0;
            escaped("mountinfo: %.200s", line);
        }
    note("mountinfo: no such text");
}
