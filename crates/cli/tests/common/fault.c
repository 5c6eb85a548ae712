/* Runs a program and counts its calls that change what lies below a folder, or make that last; the one of a number fails,
 * or the program is killed where it is about to be made.
 *
 *     fault REPORT FOLDER NUMBER kill|ERRNO PROGRAM [ARGUMENT...]
 *
 * All threads of the program are counted together, and no other process. REPORT has a line for each call: its name, the
 * path or the two paths, and what came of it, parted by tabs. The one that was hit says `hit`.
 *
 * Ends as the program does; with 124 where that takes more than a minute, and with 125 where it cannot be watched.
 *
 * Nothing is really put on the disk: nobody who is killed can tell, and thousands of runs need not wait for it.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum kind { DESCRIPTOR, PATH, AT, TWO_PATHS, TWO_AT, LINK, LINK_AT };

struct call {
    long number;
    const char *name;
    enum kind kind;
    /* Which argument it begins with, and which one has the flags of an opening. */
    int first, flags;
};

static const struct call CALLS[] = {
#ifdef SYS_open
    {SYS_open, "open", PATH, 0, 1},
#endif
#ifdef SYS_creat
    {SYS_creat, "creat", PATH, 0, 0},
#endif
#ifdef SYS_mkdir
    {SYS_mkdir, "mkdir", PATH, 0, 0},
#endif
#ifdef SYS_rmdir
    {SYS_rmdir, "rmdir", PATH, 0, 0},
#endif
#ifdef SYS_unlink
    {SYS_unlink, "unlink", PATH, 0, 0},
#endif
#ifdef SYS_chmod
    {SYS_chmod, "chmod", PATH, 0, 0},
#endif
#ifdef SYS_rename
    {SYS_rename, "rename", TWO_PATHS, 0, 0},
#endif
#ifdef SYS_link
    {SYS_link, "link", TWO_PATHS, 0, 0},
#endif
#ifdef SYS_symlink
    {SYS_symlink, "symlink", LINK, 1, 0},
#endif
#ifdef SYS_renameat
    {SYS_renameat, "rename", TWO_AT, 0, 0},
#endif
    {SYS_renameat2, "rename", TWO_AT, 0, 0},
    {SYS_linkat, "link", TWO_AT, 0, 0},
    {SYS_symlinkat, "symlink", LINK_AT, 1, 0},
    {SYS_openat, "open", AT, 0, 2},
    {SYS_mkdirat, "mkdir", AT, 0, 0},
    {SYS_unlinkat, "unlink", AT, 0, 0},
    {SYS_fchmodat, "chmod", AT, 0, 0},
    {SYS_truncate, "truncate", PATH, 0, 0},
    {SYS_write, "write", DESCRIPTOR, 0, 0},
    {SYS_writev, "write", DESCRIPTOR, 0, 0},
    {SYS_pwrite64, "write", DESCRIPTOR, 0, 0},
    {SYS_pwritev, "write", DESCRIPTOR, 0, 0},
    {SYS_sendfile, "write", DESCRIPTOR, 0, 0},
    {SYS_copy_file_range, "write", DESCRIPTOR, 2, 0},
    {SYS_ftruncate, "truncate", DESCRIPTOR, 0, 0},
    {SYS_fallocate, "truncate", DESCRIPTOR, 0, 0},
    {SYS_fchmod, "chmod", DESCRIPTOR, 0, 0},
    {SYS_fsync, "fsync", DESCRIPTOR, 0, 0},
    {SYS_fdatasync, "fsync", DESCRIPTOR, 0, 0},
    {SYS_syncfs, "syncfs", DESCRIPTOR, 0, 0},
};

struct thread {
    pid_t id;
    /* What is written down when the call that it is in comes back. */
    char *line;
    /* Whether the call is not made, and what is answered instead. */
    int is_skipped, error;
};

static struct thread threads[1024];
static const char *folder;
static pid_t program;

static void die(const char *what) {
    perror(what);
    exit(125);
}

static struct thread *thread_of(pid_t id, int *is_new) {
    for (size_t at = 0; at < sizeof threads / sizeof *threads; at++) {
        if (threads[at].id == id || threads[at].id == 0) {
            *is_new = threads[at].id == 0;
            threads[at].id = id;
            return &threads[at];
        }
    }
    fprintf(stderr, "more threads than expected\n");
    exit(125);
}

static void look(pid_t id, const char *what, char *into) {
    char place[64];
    snprintf(place, sizeof place, "/proc/%d/%s", id, what);
    ssize_t length = readlink(place, into, PATH_MAX - 1);
    into[length < 0 ? 0 : length] = 0;
}

static void of_descriptor(pid_t id, long number, char *into) {
    char what[32];
    if ((int)number == AT_FDCWD)
        strcpy(what, "cwd");
    else
        snprintf(what, sizeof what, "fd/%d", (int)number);
    look(id, what, into);
}

static void of_path(pid_t id, long base, unsigned long place, char *into) {
    char text[PATH_MAX];
    size_t length = 0;
    /* Byte by byte it never reaches into a page that is not there. */
    for (; length < sizeof text - 1; length++) {
        struct iovec here = {text + length, 1}, there = {(void *)(place + length), 1};
        if (process_vm_readv(id, &here, 1, &there, 1, 0) != 1 || text[length] == 0)
            break;
    }
    text[length] = 0;
    if (text[0] == '/') {
        strcpy(into, text);
        return;
    }
    of_descriptor(id, base, into);
    size_t used = strlen(into);
    snprintf(into + used, 2 * PATH_MAX - used, "/%s", text);
}

static int is_inside(const char *path) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* The line of a call that counts; nothing for any other. */
static char *counted(pid_t id, const struct __ptrace_syscall_info *info) {
    static char one[2 * PATH_MAX], two[2 * PATH_MAX];
    const struct call *call = NULL;
    for (size_t at = 0; at < sizeof CALLS / sizeof *CALLS; at++)
        if ((__uint64_t)CALLS[at].number == info->entry.nr)
            call = &CALLS[at];
    if (!call)
        return NULL;
    const __uint64_t *given = info->entry.args;
    if (call->flags && !(given[call->flags] & (O_CREAT | O_TRUNC)))
        return NULL;
    one[0] = two[0] = 0;
    switch (call->kind) {
    case DESCRIPTOR: of_descriptor(id, given[call->first], one); break;
    case PATH:
    case LINK: of_path(id, AT_FDCWD, given[call->first], one); break;
    case AT: of_path(id, given[0], given[1], one); break;
    case LINK_AT: of_path(id, given[1], given[2], one); break;
    case TWO_PATHS:
        of_path(id, AT_FDCWD, given[0], one);
        of_path(id, AT_FDCWD, given[1], two);
        break;
    case TWO_AT:
        of_path(id, given[0], given[1], one);
        of_path(id, given[2], given[3], two);
        break;
    }
    if (!is_inside(one) && !is_inside(two))
        return NULL;
    char *line = NULL;
    if (asprintf(&line, "%s\t%s\t%s", call->name, one, two) < 0)
        die("asprintf");
    return line;
}

static int is_sync(const char *line) {
    return strncmp(line, "fsync\t", 6) == 0 || strncmp(line, "syncfs\t", 7) == 0;
}

/* No call is made where this thread is about to make one. */
static void skip(pid_t id) {
#if defined(__x86_64__)
    if (ptrace(PTRACE_POKEUSER, id, offsetof(struct user_regs_struct, orig_rax), -1L) < 0)
        die("skip");
#elif defined(__aarch64__)
    int none = -1;
    struct iovec part = {&none, sizeof none};
    if (ptrace(PTRACE_SETREGSET, id, NT_ARM_SYSTEM_CALL, &part) < 0)
        die("skip");
#else
#error "unknown machine"
#endif
}

static void answer(pid_t id, long value) {
#if defined(__x86_64__)
    if (ptrace(PTRACE_POKEUSER, id, offsetof(struct user_regs_struct, rax), value) < 0)
        die("answer");
#elif defined(__aarch64__)
    struct user_regs_struct registers;
    struct iovec part = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, id, NT_PRSTATUS, &part) < 0)
        die("answer");
    registers.regs[0] = value;
    if (ptrace(PTRACE_SETREGSET, id, NT_PRSTATUS, &part) < 0)
        die("answer");
#endif
}

/* Set once the program was ended for taking too long. */
static volatile sig_atomic_t is_late;

static void too_long(int signal) {
    (void)signal;
    is_late = 1;
    kill(program, SIGKILL);
}

int main(int count, char **words) {
    if (count < 6) {
        fprintf(stderr, "fault REPORT FOLDER NUMBER kill|ERRNO PROGRAM [ARGUMENT...]\n");
        return 125;
    }
    FILE *report = fopen(words[1], "we");
    if (!report)
        die(words[1]);
    folder = words[2];
    long wanted = atol(words[3]), seen = 0;
    int error = strcmp(words[4], "kill") == 0 ? 0 : atoi(words[4]);
    program = fork();
    if (program == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execv(words[5], words + 5);
        die(words[5]);
    }
    int status, is_new;
    if (waitpid(program, &status, 0) < 0)
        die("waitpid");
    thread_of(program, &is_new);
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, program, 0, options) < 0)
        die("ptrace");
    struct sigaction ending = {.sa_handler = too_long, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &ending, NULL);
    alarm(60);
    ptrace(PTRACE_SYSCALL, program, 0, 0);
    for (;;) {
        pid_t id = waitpid(-1, &status, __WALL);
        if (id < 0) {
            if (errno == EINTR)
                continue;
            die("waitpid");
        }
        if (id == program && (WIFEXITED(status) || WIFSIGNALED(status)))
            break;
        if (!WIFSTOPPED(status))
            continue;
        struct thread *thread = thread_of(id, &is_new);
        int signal = WSTOPSIG(status), told = 0;
        if (signal == (SIGTRAP | 0x80)) {
            struct __ptrace_syscall_info info;
            if (ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof info, &info) < 0)
                continue;
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY && (thread->line = counted(id, &info))) {
                seen++;
                if (seen == wanted && error == 0) {
                    fprintf(report, "%s\thit\n", thread->line);
                    kill(program, SIGKILL);
                    continue;
                }
                thread->error = seen == wanted ? error : 0;
                thread->is_skipped = seen == wanted || is_sync(thread->line);
                if (thread->is_skipped)
                    skip(id);
            } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && thread->line) {
                if (thread->is_skipped)
                    answer(id, -thread->error);
                int has_failed = info.exit.is_error && !thread->is_skipped;
                fprintf(report, "%s\t%s\n", thread->line, thread->error ? "hit" : has_failed ? "failed" : "done");
                free(thread->line);
                thread->line = NULL;
            }
        } else if (status >> 16 == 0 && !(is_new && signal == SIGSTOP)) {
            told = signal;
        }
        ptrace(PTRACE_SYSCALL, id, 0, told);
    }
    fclose(report);
    if (is_late)
        return 124;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
