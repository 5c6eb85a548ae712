/* Users, groups and capabilities. */
#include "common.h"

/* Root's files and root's capabilities. */
void setuid_zero(char **arg)
{
    static const int UNMAPPED[] = {EINVAL, 0}; /* a user namespace without a 0 */
    attempt("setgid(0)", setgid(0), UNMAPPED);
    attempt("setresgid(0)", setresgid(0, 0, 0), UNMAPPED);
    attempt("setuid(0)", setuid(0), UNMAPPED);
    attempt("setreuid(0)", setreuid(0, 0), UNMAPPED);
    attempt("setresuid(0)", setresuid(0, 0, 0), UNMAPPED);
    syscall(SYS_setfsuid, 0);
    if (syscall(SYS_setfsuid, -1) == 0)
        escaped("setfsuid(0): succeeded");
    note("setfsuid(0): no effect");
}

/* Groups open files; dropping one can, too (mode 0707). */
void setgroups_probe(char **arg)
{
    attempt("setgroups", syscall(SYS_setgroups, 0, NULL), ONLY_DENIALS);
}

/* No capability in any set, no way to get one by exec, and a filter in place. */
void capabilities_probe(char **arg)
{
    static const struct {
        const char *key;
        unsigned long long wanted;
        int base;
    } LINES[] = {
        {"CapInh:", 0, 16}, {"CapPrm:", 0, 16}, {"CapEff:", 0, 16}, {"CapBnd:", 0, 16},
        {"CapAmb:", 0, 16}, {"NoNewPrivs:", 1, 10}, {"Seccomp:", 2, 10},
    };
    FILE *file = fopen("/proc/self/status", "re");
    if (!file)
        skipped("/proc/self/status: %s", errno_name(errno));
    char line[256], wrong[512] = "";
    size_t seen = 0;
    while (fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
            size_t length = strlen(LINES[i].key);
            if (strncmp(line, LINES[i].key, length))
                continue;
            seen++;
            if (strtoull(line + length, NULL, LINES[i].base) != LINES[i].wanted) {
                line[strcspn(line, "\n")] = 0;
                size_t used = strlen(wrong);
                snprintf(wrong + used, sizeof wrong - used, " %s%s", LINES[i].key, line + length + strspn(line + length, "\t "));
            }
        }
    if (wrong[0])
        escaped("status:%s", wrong);
    if (seen != sizeof LINES / sizeof *LINES)
        skipped("/proc/self/status has %zu of the lines only", seen);
    note("status: no capabilities, NoNewPrivs 1, Seccomp 2");
}

/* Taking a capability, one at a time (all at once fails for one missing). */
void capset_gain(char **arg)
{
    int number = 0;
    for (int cap = 0; cap < 64; cap++) {
        struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
        struct __user_cap_data_struct sets[2];
        memset(sets, 0, sizeof sets);
        sets[cap / 32].effective = sets[cap / 32].permitted = sets[cap / 32].inheritable = 1u << (cap % 32);
        int result = (int)syscall(SYS_capset, &header, sets);
        /* Bits that the kernel does not know are dropped without an error. */
        if (result == 0 && syscall(SYS_capget, &header, sets) == 0 && (sets[cap / 32].effective >> (cap % 32) & 1))
            escaped("capset: capability %d", cap);
        if (result < 0 && !is_denial(number = errno, ONLY_DENIALS))
            escaped("capset: past the permission check (%s)", errno_name(number));
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0)
            escaped("prctl(CAP_AMBIENT_RAISE): capability %d", cap);
    }
    note("capset: %s (none of 64)", number ? errno_name(number) : "no effect");
}

/* A set-user-id file left in a shared folder lends our identity to whoever runs
 * it later. Mostly a report: the bit alone does not help while new privileges
 * are off or the mount is nosuid. */
void make_setuid_file(char **arg)
{
    char path[96];
    snprintf(path, sizeof path, ".probe-setuid-%s", stamp());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 04755);
    if (fd < 0) {
        attempt("create in cwd", -1, PATH_GONE);
        return;
    }
    static const char *const WAYS[] = {"open(mode u+s)", "chmod u+s", "fchmod u+s", "fchmodat2 u+s"};
    const char *way = NULL;
    int number = 0;
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS && !way; i++) {
        if ((i == 1 && chmod(path, 04755)) || (i == 2 && fchmod(fd, 04755)) ||
            (i == 3 && syscall(SYS_fchmodat2, AT_FDCWD, path, 04755, 0)))
            number = errno;
        struct stat info;
        if (fstat(fd, &info) == 0 && (info.st_mode & S_ISUID))
            way = WAYS[i];
    }
    struct statvfs mount;
    bool nosuid = fstatvfs(fd, &mount) == 0 && (mount.f_flag & ST_NOSUID);
    bool no_new = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    close(fd);
    unlink(path);
    if (!way)
        note("chmod u+s: %s", number ? errno_name(number) : "no effect");
    else if (nosuid || no_new)
        note("%s: bit stays, useless here (nosuid %d, no_new_privs %d)", way, nosuid, no_new);
    else
        escaped("%s: bit stays, nosuid 0, no_new_privs 0", way);
}
