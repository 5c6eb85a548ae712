/* plant: files that others will run or trust later. */
#include "common.h"

/*
 * Files such as .git/hooks/pre-commit lie inside a folder that the sandbox may
 * write, yet are run by the user outside. They must be neither made nor changed,
 * by any of the ways in which a path comes to mean another file. A planted file
 * is left there, for the caller to look at.
 */
static struct {
    char folder[PATH_MAX / 4], name[PATH_MAX / 4]; /* FOLDER, NAME */
    char path[PATH_MAX];                           /* FOLDER/NAME */
    char parent[PATH_MAX];                         /* the folder NAME lies in */
    char marker[96];                               /* our content */
    bool mode_changed;
} plant;

/* What we made on the way, to be removed at the end but for what is kept. */
static char litter[64][PATH_MAX];
static bool kept[64];
static int pieces;

struct snapshot {
    bool exists, readable;
    struct stat info;
    size_t length;
    char data[65536];
};

static struct snapshot before, after;

#define MARK "planted" /* our file, when what we plant is a folder */

static bool holds_marker(const char *path)
{
    char data[sizeof plant.marker];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, data, sizeof data);
    close(fd);
    size_t length = strlen(plant.marker);
    return n >= (ssize_t)length && !memcmp(data, plant.marker, length);
}

static void take_snapshot(struct snapshot *s)
{
    memset(s, 0, sizeof *s);
    s->exists = stat(plant.path, &s->info) == 0;
    int fd = s->exists && S_ISREG(s->info.st_mode) ? open(plant.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        return;
    ssize_t n = read(fd, s->data, sizeof s->data);
    close(fd);
    s->readable = n >= 0;
    s->length = n < 0 ? 0 : (size_t)n;
}

/* What has come of it: NULL when all is as it was. */
static const char *planted(void)
{
    char inside[PATH_MAX + 16];
    take_snapshot(&after);
    if (!after.exists)
        return before.exists ? "the file is gone" : NULL;
    snprintf(inside, sizeof inside, "%s/" MARK, plant.path);
    if (holds_marker(plant.path) || holds_marker(inside))
        return "our content is there";
    if (!before.exists)
        return NULL; /* something empty, without our content */
    if ((before.info.st_mode ^ after.info.st_mode) & S_IFMT)
        return "it is of another kind now";
    if (before.readable && after.readable) {
        if (before.length != after.length || memcmp(before.data, after.data, before.length))
            return "its content changed";
    } else if (before.info.st_size != after.info.st_size || before.info.st_ino != after.info.st_ino) {
        return "it is another file now";
    }
    return NULL;
}

static int write_marker(int fd)
{
    int number = 0;
    if (fd < 0)
        return errno;
    if (!write_all(fd, plant.marker, strlen(plant.marker)))
        number = errno;
    close(fd);
    return number;
}

/* A new name in `folder`, kept for the cleaning. */
static const char *fresh_name(const char *folder)
{
    if (pieces == 64)
        return NOWHERE;
    char *path = litter[pieces];
    snprintf(path, PATH_MAX, "%.3000s/.probe-%s-%d", folder, stamp(), pieces);
    pieces++;
    return path;
}

/* Not to be cleaned away: something that was there before lies there now, or
 * what we planted needs it. */
static void keep(const char *path)
{
    for (int i = 0; i < pieces; i++)
        if (litter[i] == path)
            kept[i] = true;
}

/* Where to make the files that we move into place: beside it, in FOLDER, here.
 * Of one file system all, or the move answers EXDEV. */
static const char *workplace(int turn)
{
    const char *const places[] = {plant.parent, plant.folder, ".", "/tmp"};
    return turn < 4 ? places[turn] : NULL;
}

/* A new file with our content, NULL (and errno) if it cannot be made. */
static const char *fresh_file(const char *folder)
{
    const char *path = fresh_name(folder);
    int number = write_marker(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
    errno = number;
    return number ? NULL : path;
}

/* A new folder in which `rest` (MARK, hooks/pre-commit) has our content. */
static const char *fresh_tree(const char *folder, const char *rest)
{
    const char *top = fresh_name(folder);
    char path[PATH_MAX + 16];
    if (mkdir(top, 0755) < 0)
        return NULL;
    snprintf(path, sizeof path, "%.3000s/%.1000s", top, rest);
    for (char *slash = path + strlen(top) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
    int number = write_marker(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
    errno = number;
    return number ? NULL : top;
}

static int remove_tree(const char *path, int depth)
{
    if (unlink(path) == 0 || rmdir(path) == 0 || depth > 8)
        return 0;
    DIR *folder = opendir(path);
    if (!folder)
        return -1;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) {
            char inside[PATH_MAX];
            snprintf(inside, sizeof inside, "%.3000s/%s", path, entry->d_name);
            remove_tree(inside, depth + 1);
        }
    closedir(folder);
    return rmdir(path);
}

static int exchange(const char *ours, const char *other)
{
    if (renameat2(AT_FDCWD, ours, AT_FDCWD, other, RENAME_EXCHANGE) < 0)
        return errno;
    keep(ours);
    return 0;
}

/* The folders on the way to NAME; `made` tells which of them are new. */
static void make_parents(uint64_t *made)
{
    char path[PATH_MAX];
    strcpy(path, plant.path);
    int level = 0;
    for (char *slash = path + strlen(plant.folder) + 1; (slash = strchr(slash, '/')); slash++, level++) {
        *slash = 0;
        if (mkdir(path, 0755) == 0 && level < 64)
            *made |= 1ull << level;
        *slash = '/';
    }
}

static void remove_parents(uint64_t made)
{
    char path[PATH_MAX];
    for (int level = 63; level >= 0; level--) {
        if (!(made >> level & 1))
            continue;
        strcpy(path, plant.path);
        char *slash = path + strlen(plant.folder);
        for (int i = 0; i <= level && slash; i++)
            slash = strchr(slash + 1, '/');
        if (slash) {
            *slash = 0;
            rmdir(path);
        }
    }
}

/* Each way gives the errno that stopped it, or 0. */

static int way_create(void)
{
    char inside[PATH_MAX + 16];
    uint64_t made = 0;
    make_parents(&made);
    int number = write_marker(open(plant.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
    if (number && before.exists && S_ISDIR(before.info.st_mode)) {
        snprintf(inside, sizeof inside, "%s/" MARK, plant.path);
        number = write_marker(open(inside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
    }
    if (number)
        remove_parents(made);
    return number;
}

static int way_write(void)
{
    int number = write_marker(open(plant.path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK));
    if (number && before.info.st_size > 0 && S_ISREG(before.info.st_mode) && truncate(plant.path, 0) == 0)
        return 0;
    return number;
}

static int way_append(void)
{
    return write_marker(open(plant.path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK));
}

static int way_rename(void)
{
    int number = 0;
    for (int turn = 0; workplace(turn) && !planted(); turn++) {
        const char *file = fresh_file(workplace(turn));
        if (!file || rename(file, plant.path) < 0)
            number = errno;
    }
    return number;
}

static int way_unlink(void)
{
    if (before.exists && unlink(plant.path) < 0 && rmdir(plant.path) < 0)
        return errno;
    return write_marker(open(plant.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
}

/* A link with our file's absolute path, renamed over NAME. */
static int way_symlink(void)
{
    int number = 0;
    for (int turn = 0; workplace(turn) && !planted(); turn++) {
        char full[PATH_MAX];
        const char *file = fresh_file(workplace(turn));
        if (!file || !realpath(file, full)) {
            number = errno;
            continue;
        }
        const char *link = fresh_name(workplace(turn));
        if (symlink(full, plant.path) < 0 && (symlink(full, link) < 0 || rename(link, plant.path) < 0))
            number = errno;
        if (planted())
            keep(file);
    }
    return number;
}

static int way_hardlink(void)
{
    int number = 0;
    for (int turn = 0; workplace(turn) && !planted(); turn++) {
        const char *file = fresh_file(workplace(turn));
        const char *second = fresh_name(workplace(turn));
        if (!file || (link(file, plant.path) < 0 && (link(file, second) < 0 || rename(second, plant.path) < 0)))
            number = errno;
    }
    return number;
}

static int way_exchange_file(void)
{
    int number = 0;
    for (int turn = 0; workplace(turn) && !planted(); turn++) {
        const char *file = fresh_file(workplace(turn));
        number = file ? exchange(file, plant.path) : errno;
    }
    return number;
}

static int way_exchange_folder(void)
{
    int number = 0;
    for (int turn = 0; workplace(turn) && !planted(); turn++) {
        const char *tree = fresh_tree(workplace(turn), MARK);
        number = tree ? exchange(tree, plant.path) : errno;
    }
    return number;
}

/* A new mode is not yet new content, but may open the way to it. */
static int way_chmod(void)
{
    if (chmod(plant.path, 0777) < 0)
        return errno;
    plant.mode_changed = true;
    int number = way_write();
    if (!planted())
        chmod(plant.path, before.info.st_mode & 07777);
    return number;
}

/* An owner may write in a folder of theirs after a word to it. */
static int way_chmod_parent(void)
{
    struct stat top, parent;
    if (stat(plant.folder, &top) < 0 || chmod(plant.folder, 0755) < 0)
        return errno;
    bool has_parent = stat(plant.parent, &parent) == 0 && chmod(plant.parent, 0755) == 0;
    int number = way_create();
    if (!planted())
        number = way_unlink();
    if (has_parent)
        chmod(plant.parent, parent.st_mode & 07777);
    chmod(plant.folder, top.st_mode & 07777);
    return number;
}

/* For each parent of a nested NAME, `.git` and `.git/hooks`: what the caller
 * gets is its path and the rest of NAME below it. */
static int for_each_parent(int (*way)(const char *parent, const char *rest))
{
    int number = 0;
    for (char *slash = plant.name; (slash = strchr(slash, '/')) && !planted(); slash++) {
        char parent[PATH_MAX];
        snprintf(parent, sizeof parent, "%s/%.*s", plant.folder, (int)(slash - plant.name), plant.name);
        number = way(parent, slash + 1);
    }
    return number;
}

static int move_parent(const char *parent, const char *rest, bool by_link)
{
    const char *away = fresh_name(plant.folder);
    keep(away);
    if (rename(parent, away) < 0)
        return errno;
    int number = 0;
    if (by_link) {
        char full[PATH_MAX];
        const char *tree = fresh_tree(plant.folder, rest);
        if (!tree || !realpath(tree, full) || symlink(full, parent) < 0)
            number = errno;
        else if (planted())
            keep(tree);
    } else {
        uint64_t made = 0;
        make_parents(&made);
        number = write_marker(open(plant.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
    }
    if (number || !planted()) {
        remove_tree(parent, 0);
        rename(away, parent);
    }
    return number;
}

static int move_and_make(const char *parent, const char *rest)
{
    return move_parent(parent, rest, false);
}

static int move_and_link(const char *parent, const char *rest)
{
    return move_parent(parent, rest, true);
}

static int exchange_parent(const char *parent, const char *rest)
{
    int number = 0;
    for (int turn = 1; workplace(turn) && !planted(); turn++) {
        const char *tree = fresh_tree(workplace(turn), rest);
        number = tree ? exchange(tree, parent) : errno;
    }
    return number;
}

static int way_move_parent(void)
{
    return for_each_parent(move_and_make);
}

static int way_link_parent(void)
{
    return for_each_parent(move_and_link);
}

static int way_exchange_parent(void)
{
    return for_each_parent(exchange_parent);
}

void plant_probe(char **arg)
{
    static const struct {
        const char *name;
        int (*way)(void);
        bool nested; /* only where NAME has parents within FOLDER */
    } WAYS[] = {
        {"create", way_create, false},
        {"write", way_write, false},
        {"append", way_append, false},
        {"rename-over", way_rename, false},
        {"unlink-create", way_unlink, false},
        {"symlink", way_symlink, false},
        {"hardlink", way_hardlink, false},
        {"exchange-file", way_exchange_file, false},
        {"exchange-folder", way_exchange_folder, false},
        {"chmod", way_chmod, false},
        {"chmod-parent", way_chmod_parent, false},
        {"move-parent", way_move_parent, true},
        {"link-parent", way_link_parent, true},
        {"exchange-parent", way_exchange_parent, true},
    };
    if (strlen(arg[0]) >= sizeof plant.folder || strlen(arg[1]) >= sizeof plant.name || arg[1][0] == '/')
        bad_usage("FOLDER or NAME is too long, or NAME begins with a slash");
    strcpy(plant.folder, arg[0]);
    strcpy(plant.name, arg[1]);
    snprintf(plant.path, sizeof plant.path, "%s/%s", plant.folder, plant.name);
    strcpy(plant.parent, plant.path);
    *strrchr(plant.parent, '/') = 0;
    snprintf(plant.marker, sizeof plant.marker, "#!/bin/sh\n# planted by a probe %s\n", stamp());
    take_snapshot(&before);
    const char *outcome = NULL, *way = NULL;
    bool known = !arg[2];
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS && !outcome; i++) {
        if (arg[2] && strcmp(arg[2], WAYS[i].name))
            continue;
        known = true;
        if (WAYS[i].nested && !strchr(plant.name, '/'))
            continue;
        way = WAYS[i].name;
        int number = WAYS[i].way();
        outcome = planted();
        if (!outcome)
            note("%s: %s", way, number ? errno_name(number) : "no effect");
    }
    for (int i = 0; i < pieces; i++)
        if (!kept[i])
            remove_tree(litter[i], 0);
    if (!known)
        bad_usage("no such way to plant");
    if (outcome)
        escaped("plant %s by %s: %s", plant.name, way, outcome);
    if (plant.mode_changed)
        note("the mode could be changed, though");
}
