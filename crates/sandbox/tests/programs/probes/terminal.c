/* Typing into a terminal that is shared with its owner. */
#include "common.h"

int open_pty(int *master, char *name, size_t size)
{
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*master < 0 || grantpt(*master) || unlockpt(*master) || ptsname_r(*master, name, size))
        return -1;
    return open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* One request on one descriptor: plain, then with rubbish in the upper half of
 * the number, which the kernel ignores but a filter may compare. The argument
 * is a bad pointer: EFAULT tells that it was allowed, and nothing is done. */
static void terminal_requests(const char *where, int fd, const char *name, unsigned long request)
{
    static const unsigned long UPPER[] = {0, 0x100000000UL, 0xdeadbeef00000000UL, 0xffffffff00000000UL};
    for (size_t i = 0; i < sizeof UPPER / sizeof *UPPER; i++) {
        char call[80];
        snprintf(call, sizeof call, "%s on %s%s", name, where, i ? ", upper bits" : "");
        if (sizeof(long) < 8 && i)
            break;
        attempt(call, syscall(SYS_ioctl, (long)fd, request | UPPER[i], (void *)1), TERMINAL_OFF);
    }
}

static void terminal_probe(const char *name, unsigned long request)
{
    bool tried = false;
    if (isatty(0)) {
        terminal_requests("fd 0", 0, name, request);
        tried = true;
    }
    int master;
    char path[128];
    setsid(); /* so that the new terminal becomes ours */
    int slave = open_pty(&master, path, sizeof path);
    if (slave >= 0) {
        ioctl(slave, TIOCSCTTY, 0);
        terminal_requests("own pty", slave, name, request);
        tried = true;
    }
    if (!tried)
        skipped("fd 0 is no terminal and no pty can be opened (%s)", errno_name(errno));
}

/* Types into the terminal that we share with the user's shell. */
void tiocsti_probe(char **arg)
{
    terminal_probe("TIOCSTI", TIOCSTI);
}

/* Pastes the console's selection: the same by another number. A pty does not
 * know it (ENOTTY); that it was asked at all tells that no filter looked. */
void tioclinux_probe(char **arg)
{
    terminal_probe("TIOCLINUX", TIOCLINUX);
}
