/* What every probe uses: verdicts and small helpers. */
#include "common.h"

pid_t parent_pid;
const char *own_path;

const char *errno_name(int number)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
    const char *name = strerrorname_np(number);
    if (name)
        return name;
#endif
    static char text[24];
    snprintf(text, sizeof text, "errno%d", number);
    return text;
}

static void finish(int status, const char *word, const char *format, va_list list)
    __attribute__((noreturn, format(printf, 3, 0)));

static void finish(int status, const char *word, const char *format, va_list list)
{
    printf("%s", word);
    vprintf(format, list);
    putchar('\n');
    fflush(stdout);
    _exit(status);
}

#define VERDICT(function, status, word)                                        \
    void function(const char *format, ...)                              \
    {                                                                          \
        va_list list;                                                          \
        va_start(list, format);                                                \
        finish(status, word, format, list);                                    \
    }

VERDICT(escaped, ESCAPED, "ESCAPED: ")
VERDICT(skipped, SKIPPED, "skipped: ")
VERDICT(works, WORKS, "works: ")
VERDICT(broken, BROKEN, "BROKEN: ")
VERDICT(report, 0, "")

/* What has been denied so far; printed when the probe comes to its end. */
static char held_so_far[1500];

void note(const char *format, ...)
{
    size_t used = strlen(held_so_far);
    if (used + 80 > sizeof held_so_far)
        return;
    if (used) {
        strcpy(held_so_far + used, "; ");
        used += 2;
    }
    va_list list;
    va_start(list, format);
    vsnprintf(held_so_far + used, sizeof held_so_far - used, format, list);
    va_end(list);
}

void end_of_probe(void)
{
    if (!held_so_far[0])
        skipped("there was nothing to try");
    report("held: %s", held_so_far);
}

/* Further errnos that mean "denied", for one kind of call each. */
const int ONLY_DENIALS[] = {0};
const int PATH_GONE[] = {ENOENT, ENOTDIR, EROFS, ELOOP, ENXIO, ENODEV, 0};
const int PROCESS_GONE[] = {ESRCH, ENOENT, ENOTDIR, EROFS, 0};
const int NAMESPACE_OFF[] = {ENOSPC, EUSERS, 0};
const int FAMILY_OFF[] = {EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT, 0};
const int TERMINAL_OFF[] = {EIO, 0}; /* dev.tty.legacy_tiocsti=0 */

bool is_denial(int number, const int *further)
{
    if (number == EPERM || number == EACCES || number == ENOSYS)
        return true;
    for (; *further; further++)
        if (number == *further)
            return true;
    return false;
}

/* Judge one call. Comes back only when the call was denied. */
void attempt(const char *call, long result, const int *further)
{
    int number = errno;
    if (result >= 0)
        escaped("%s: succeeded", call);
    if (!is_denial(number, further))
        escaped("%s: past the permission check (%s)", call, errno_name(number));
    note("%s: %s", call, errno_name(number));
}

/* For the things that must work: 0 or more is fine. */
long must(const char *call, long result)
{
    if (result < 0)
        broken("%s: %s", call, errno_name(errno));
    return result;
}

void bad_usage(const char *why)
{
    fprintf(stderr, "probes: %s\n", why);
    exit(USAGE);
}

/* A number with an optional k, M or G, no greater than `ceiling`. */
long long number_argument(const char *text, long long ceiling)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end == 'k')
        value <<= 10, end++;
    else if (*end == 'M')
        value <<= 20, end++;
    else if (*end == 'G')
        value <<= 30, end++;
    if (errno || *end || end == text || value < 0)
        bad_usage("not a number");
    if (value > ceiling)
        skipped("%s is above this probe's ceiling of %lld", text, ceiling);
    return value;
}

/* A process: its number, or the word "parent". Never 0 or less, which would
 * mean whole groups of processes. */
pid_t process_argument(const char *text)
{
    if (!strcmp(text, "parent")) {
        if (parent_pid <= 0)
            report("held: getppid: parent is outside this pid namespace");
        return parent_pid;
    }
    long long value = number_argument(text, INT_MAX);
    if (value < 1)
        bad_usage("a process number is 1 or more");
    return (pid_t)value;
}

long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

/* Text that no earlier run can have left behind, also where process numbers
 * start over with each namespace. */
const char *stamp(void)
{
    static char text[48];
    if (!text[0]) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        snprintf(text, sizeof text, "%d-%lld%09ld", (int)getpid(), (long long)t.tv_sec, t.tv_nsec);
    }
    return text;
}

bool write_all(int fd, const void *data, size_t length)
{
    const char *at = data;
    while (length) {
        ssize_t n = write(fd, at, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        length -= (size_t)n;
    }
    return true;
}

bool exited_with(pid_t child, int status)
{
    int result;
    while (waitpid(child, &result, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(result) && WEXITSTATUS(result) == status;
}
