/* Files outside what was granted. */
#include "common.h"

/* Secrets outside the granted folders must not be readable. A file that is
 * there but empty (something was mounted over it) has told nothing. */
void read_file(char **arg)
{
    int fd = open(arg[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        attempt("open", -1, PATH_GONE);
        return;
    }
    char byte;
    ssize_t n = read(fd, &byte, 1);
    if (n > 0)
        escaped("read: %s can be read", arg[0]);
    if (n < 0 && errno == EISDIR)
        skipped("%s is a folder, see list-folder", arg[0]);
    if (n == 0)
        note("read: nothing in it");
    else
        note("read: %s", errno_name(errno));
}

/* File names alone tell much: projects, customers, which keys there are. */
void list_folder(char **arg)
{
    DIR *folder = opendir(arg[0]);
    if (!folder) {
        attempt("opendir", -1, PATH_GONE);
        return;
    }
    int count = 0;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    if (count)
        escaped("readdir: %d entries of %s", count, arg[0]);
    if (errno)
        note("readdir: %s", errno_name(errno));
    else
        note("readdir: nothing in it");
}

/* Whoever writes outside the granted folders runs code there sooner or later.
 * An existing file is only opened (and cut to the length that it has, given
 * the mode that it has, and another name for a moment); a new one is removed again. */
void write_file(char **arg)
{
    static const int MOUNTED[] = {EBUSY, ENOENT, EROFS, 0};
    const char *path = arg[0];
    struct stat info;
    char inside[PATH_MAX];
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) {
        snprintf(inside, sizeof inside, "%s/.probe-%s", path, stamp());
        path = inside;
        exists = false;
    }
    if (exists) {
        attempt("open for writing", open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), PATH_GONE);
        attempt("open for appending", open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), PATH_GONE);
        if (S_ISREG(info.st_mode))
            attempt("truncate", truncate(path, info.st_size), PATH_GONE);
        attempt("chmod", chmod(path, info.st_mode & 07777), PATH_GONE);
        char aside[PATH_MAX];
        snprintf(aside, sizeof aside, "%.3000s.probe-%s", path, stamp());
        int moved = rename(path, aside), number = errno;
        if (moved == 0)
            rename(aside, path);
        errno = number;
        attempt("rename", moved, MOUNTED);
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int number = errno;
    if (fd >= 0)
        unlink(path);
    errno = number;
    attempt("create", fd, PATH_GONE);
}

/* Any part of the sandbox that looks at a path and then uses it can be led
 * elsewhere in between. What is opened through FOLDER/a is ours or, by its
 * inode, TARGET's; TARGET's is not written, a descriptor for it is enough. */
static struct {
    char a[PATH_MAX], b[PATH_MAX], file[PATH_MAX + 8];
    atomic_bool end;
    atomic_ulong swaps;
    atomic_int number;
} race;

static void *swap_in_a_loop(void *unused)
{
    while (!race.end)
        if (renameat2(AT_FDCWD, race.a, AT_FDCWD, race.b, RENAME_EXCHANGE) == 0)
            race.swaps++;
        else
            race.number = errno;
    return unused;
}

static void remove_race(void)
{
    const char *const names[] = {race.a, race.b};
    for (int i = 0; i < 2; i++) {
        char file[PATH_MAX + 8];
        struct stat info;
        snprintf(file, sizeof file, "%s/file", names[i]);
        if (lstat(names[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            unlink(file);
            rmdir(names[i]);
        } else {
            unlink(names[i]);
        }
    }
}

void swap_race(char **arg)
{
    struct stat own, opened;
    long long ms = number_argument(arg[2], MAX_SECONDS * 1000);
    if (arg[1][0] != '/')
        bad_usage("TARGET begins with a slash: it is put into a symbolic link");
    snprintf(race.a, sizeof race.a, "%.3000s/a", arg[0]);
    snprintf(race.b, sizeof race.b, "%.3000s/b", arg[0]);
    snprintf(race.file, sizeof race.file, "%s/file", race.a);
    bool made = mkdir(race.a, 0755) == 0;
    if (!made || symlink(arg[1], race.b) < 0) {
        int number = errno;
        if (made)
            rmdir(race.a);
        skipped("%s must be an empty folder that can be written (%s)", arg[0], errno_name(number));
    }
    int fd = open(race.file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || fstat(fd, &own) < 0 || write(fd, "ours", 4) != 4)
        skipped("%s: %s", race.file, errno_name(errno));
    close(fd);
    pthread_t thread;
    if (pthread_create(&thread, NULL, swap_in_a_loop, NULL))
        skipped("no second thread");
    unsigned long opens = 0, denied = 0;
    int number = 0;
    const char *got = NULL;
    for (long long end = now_ms() + ms; now_ms() < end && !got;)
        for (int write_turn = 0; write_turn < 2 && !got; write_turn++) {
            fd = open(race.file, (write_turn ? O_WRONLY | O_CREAT : O_RDONLY) | O_CLOEXEC, 0644);
            if (fd < 0) {
                if (errno != ENOENT) /* the moment between two names */
                    number = errno;
                denied++;
                continue;
            }
            opens++;
            char byte;
            if (fstat(fd, &opened) == 0 && (opened.st_ino != own.st_ino || opened.st_dev != own.st_dev) &&
                (write_turn || read(fd, &byte, 1) >= 0))
                got = write_turn ? "opened for writing" : "read";
            close(fd);
        }
    race.end = true;
    pthread_join(thread, NULL);
    remove_race();
    if (got)
        escaped("swap-race: a file of %s %s after %lu swaps", arg[1], got, (unsigned long)race.swaps);
    if (!race.swaps)
        skipped("renameat2(EXCHANGE): %s", errno_name(race.number));
    note("open: %s (%lu swaps, %lu opened ours, %lu denied)", number ? errno_name(number) : denied ? "ENOENT" : "always ours",
         (unsigned long)race.swaps, opens, denied);
}
