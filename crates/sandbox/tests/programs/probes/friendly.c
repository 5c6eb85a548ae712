/* Things that must work: walls that nobody can work in get taken down. */
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *count_up(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* Also where clone3 answers ENOSYS. */
void threads_work(char **arg)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        int number = pthread_create(&threads[i], NULL, count_up, NULL);
        if (number)
            broken("pthread_create: %s", errno_name(number));
    }
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    if (counter != 8000)
        broken("threads: counted %d of 8000", counter);
    works("8 threads");
}

/* The program that is started by these is we ourselves, as `helper-exit`. */
static char *HELPER[] = {"probes", "helper-exit", NULL};

void fork_exec_works(char **arg)
{
    pid_t child = (pid_t)must("fork", fork());
    if (child == 0) {
        execv(own_path, HELPER);
        _exit(1);
    }
    if (!exited_with(child, 7))
        broken("execv: the child did not run");
    works("fork and exec");
}

void posix_spawn_works(char **arg)
{
    pid_t child;
    char *environment[] = {NULL};
    int number = posix_spawn(&child, own_path, NULL, NULL, HELPER, environment);
    if (number)
        broken("posix_spawn: %s", errno_name(number));
    if (!exited_with(child, 7))
        broken("posix_spawn: the child did not run");
    works("posix_spawn");
}

void pipes_work(char **arg)
{
    int ends[2];
    char text[8] = "";
    must("pipe2", pipe2(ends, O_CLOEXEC));
    pid_t child = (pid_t)must("fork", fork());
    if (child == 0)
        _exit(write(ends[1], "hello", 5) != 5);
    close(ends[1]);
    if (read(ends[0], text, sizeof text) != 5 || strcmp(text, "hello") || !exited_with(child, 0))
        broken("pipe: wrong content");
    works("pipe");
}

static int temporary_file(const char *call)
{
    const char *folder = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/probe-XXXXXX", folder && *folder ? folder : "/tmp");
    int fd = (int)must(call, mkostemp(path, O_CLOEXEC));
    must("unlink", unlink(path));
    return fd;
}

void temp_file_works(char **arg)
{
    int fd = temporary_file("mkostemp");
    char text[8] = "";
    must("write", write(fd, "hello", 5));
    must("fsync", fsync(fd));
    must("pread", pread(fd, text, 5, 0));
    if (strcmp(text, "hello"))
        broken("temporary file: wrong content");
    works("temporary file in %s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
}

/* Just-in-time compilers. */
void mmap_exec_works(char **arg)
{
    static const unsigned char CODE[] = {
#if defined(__x86_64__) || defined(__i386__)
        0xb8, 42, 0, 0, 0, 0xc3 /* mov $42, %eax; ret */
#elif defined(__aarch64__)
        0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6 /* mov w0, #42; ret */
#else
        0
#endif
    };
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        broken("mmap: %s", errno_name(errno));
    memcpy(memory, CODE, sizeof CODE);
    must("mprotect(EXEC)", mprotect(memory, 4096, PROT_READ | PROT_EXEC));
    if (sizeof CODE == 1)
        works("mprotect(EXEC), code not run on this machine");
    __builtin___clear_cache((char *)memory, (char *)memory + sizeof CODE);
    int (*function)(void);
    memcpy(&function, &memory, sizeof function);
    if (function() != 42)
        broken("generated code: wrong result");
    works("generated code");
}

static void *answer_hello(void *listener)
{
    int fd = accept4(*(int *)listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        write_all(fd, "hello", 5);
        close(fd);
    }
    return NULL;
}

/* Listen, connect to oneself, and say hello. */
static void talk_to_self(const struct sockaddr *address, socklen_t length)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    char text[8] = "";
    pthread_t thread;
    struct timeval limit = {2, 0};
    int listener = (int)must("socket", socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    must("bind", bind(listener, address, length));
    must("listen", listen(listener, 1));
    must("getsockname", getsockname(listener, (struct sockaddr *)&bound, &size));
    int fd = (int)must("socket", socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    must("setsockopt", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    int result = connect(fd, (struct sockaddr *)&bound, size), number = errno;
    if (address->sa_family == AF_UNIX)
        unlink(((const struct sockaddr_un *)address)->sun_path);
    errno = number;
    must("connect", result);
    if (pthread_create(&thread, NULL, answer_hello, &listener))
        broken("pthread_create");
    must("recv", recv(fd, text, 5, MSG_WAITALL));
    pthread_join(thread, NULL);
    if (strcmp(text, "hello"))
        broken("socket: wrong content");
}

void loopback_works(char **arg)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    talk_to_self((struct sockaddr *)&address, sizeof address);
    works("listen and connect on 127.0.0.1");
}

void unix_socket_works(char **arg)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, ".probe-socket-%s", stamp());
    talk_to_self((struct sockaddr *)&address, sizeof address);
    works("unix socket in the current folder");
}

void socketpair_works(char **arg)
{
    int ends[2];
    char text[8] = "";
    must("socketpair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    must("write", write(ends[0], "hello", 5));
    must("read", read(ends[1], text, 5));
    if (strcmp(text, "hello"))
        broken("socketpair: wrong content");
    works("socketpair");
}

/* Python's multiprocessing and browsers need them. */
void posix_shm_works(char **arg)
{
    char name[96];
    snprintf(name, sizeof name, "/probe-%s", stamp());
    int fd = (int)must("shm_open", shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600));
    must("shm_unlink", shm_unlink(name));
    must("ftruncate", ftruncate(fd, 4096));
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        broken("mmap: %s", errno_name(errno));
    memory[0] = 1;
    sem_t *semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    if (semaphore == SEM_FAILED)
        broken("sem_open: %s", errno_name(errno));
    must("sem_unlink", sem_unlink(name));
    must("sem_wait", sem_wait(semaphore));
    must("sem_post", sem_post(semaphore));
    works("shm_open and sem_open");
}

void inotify_works(char **arg)
{
    char path[96], events[4096];
    int fd = (int)must("inotify_init1", inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    must("inotify_add_watch", inotify_add_watch(fd, ".", IN_CREATE));
    snprintf(path, sizeof path, ".probe-watched-%s", stamp());
    int file = (int)must("create in cwd", open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    close(file);
    unlink(path);
    struct pollfd wait = {fd, POLLIN, 0};
    if (poll(&wait, 1, 2000) != 1 || read(fd, events, sizeof events) <= 0)
        broken("inotify: no event");
    works("inotify in the current folder");
}

/* What every event loop is made of. */
void event_loop_works(char **arg)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    must("sigprocmask", sigprocmask(SIG_BLOCK, &set, NULL));
    struct itimerspec soon = {.it_value = {0, 1000000}};
    int fds[3] = {
        (int)must("eventfd", eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)),
        (int)must("timerfd_create", timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
        (int)must("signalfd", signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)),
    };
    must("timerfd_settime", timerfd_settime(fds[1], 0, &soon, NULL));
    must("raise", raise(SIGUSR1) ? -1 : 0);
    int loop = (int)must("epoll_create1", epoll_create1(EPOLL_CLOEXEC));
    for (int i = 0; i < 3; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = i};
        must("epoll_ctl", epoll_ctl(loop, EPOLL_CTL_ADD, fds[i], &event));
    }
    unsigned ready = 0;
    for (long long end = now_ms() + 2000; ready != 7 && now_ms() < end;) {
        struct epoll_event events[3];
        int n = (int)must("epoll_wait", epoll_wait(loop, events, 3, 100));
        for (int i = 0; i < n; i++)
            ready |= 1u << events[i].data.fd;
    }
    if (ready != 7)
        broken("epoll: of eventfd, timerfd, signalfd (bits) only %u came", ready);
    works("epoll, eventfd, timerfd, signalfd");
}

void memfd_exec_works(char **arg)
{
    static char block[1 << 16];
    int from = (int)must("open own program", open(own_path, O_RDONLY | O_CLOEXEC));
    int to = (int)must("memfd_create", memfd_create("probe", 0));
    for (ssize_t n; (n = read(from, block, sizeof block)) > 0;)
        if (!write_all(to, block, (size_t)n))
            broken("write to memfd: %s", errno_name(errno));
    pid_t child = (pid_t)must("fork", fork());
    if (child == 0) {
        char *environment[] = {NULL};
        syscall(SYS_execveat, to, "", HELPER, environment, AT_EMPTY_PATH);
        _exit(errno == EACCES ? 1 : 2);
    }
    if (!exited_with(child, 7))
        broken("execveat of a memfd");
    works("program run from a memfd");
}

void getrandom_works(char **arg)
{
    unsigned char bytes[32] = {0};
    must("getrandom", syscall(SYS_getrandom, bytes, sizeof bytes, 0));
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i])
            works("getrandom");
    broken("getrandom: only zeros");
}

void devices_work(char **arg)
{
    static const struct {
        const char *path;
        int bytes; /* to be had of 4 */
    } DEVICES[] = {{"/dev/null", 0}, {"/dev/zero", 4}, {"/dev/urandom", 4}};
    for (size_t i = 0; i < sizeof DEVICES / sizeof *DEVICES; i++) {
        char bytes[4];
        int fd = (int)must(DEVICES[i].path, open(DEVICES[i].path, O_RDONLY | O_CLOEXEC));
        if (read(fd, bytes, 4) != DEVICES[i].bytes)
            broken("%s: wrong length read", DEVICES[i].path);
    }
    int fd = (int)must("/dev/null for writing", open("/dev/null", O_WRONLY | O_CLOEXEC));
    must("write to /dev/null", write(fd, "x", 1));
    works("/dev/null, /dev/zero, /dev/urandom");
}

void passwd_works(char **arg)
{
    errno = 0;
    struct passwd *entry = getpwuid(getuid());
    if (!entry)
        broken("getpwuid(%u): %s", (unsigned)getuid(), errno ? errno_name(errno) : "no entry");
    works("user %s, home %s", entry->pw_name, entry->pw_dir);
}

void localtime_works(char **arg)
{
    time_t now = time(NULL);
    struct tm parts;
    char text[64];
    tzset();
    if (!localtime_r(&now, &parts) || !strftime(text, sizeof text, "%Y-%m-%d %Z", &parts) || parts.tm_year < 120)
        broken("localtime");
    works("localtime: %s", text);
}

void affinity_works(char **arg)
{
    cpu_set_t set;
    must("sched_getaffinity", sched_getaffinity(0, sizeof set, &set));
    works("%d processors", CPU_COUNT(&set));
}

void statx_openat2_work(char **arg)
{
    struct statx info;
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
    must("statx", statx(AT_FDCWD, ".", 0, STATX_BASIC_STATS, &info));
    /* A filter cannot look at its mode, so it does not exist; programs then use openat. */
    if (syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how) < 0 && errno != ENOSYS)
        broken("openat2: %s", errno_name(errno));
    must("openat", openat(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    works("statx and openat2 or openat");
}

void copy_file_range_works(char **arg)
{
    int from = temporary_file("mkostemp"), to = temporary_file("mkostemp");
    char text[8] = "";
    loff_t at = 0;
    must("write", write(from, "hello", 5));
    if (must("copy_file_range", copy_file_range(from, &at, to, NULL, 5, 0)) != 5)
        broken("copy_file_range: short");
    must("pread", pread(to, text, 5, 0));
    if (strcmp(text, "hello"))
        broken("copy_file_range: wrong content");
    works("copy_file_range");
}

void pidfd_open_works(char **arg)
{
    pid_t child = (pid_t)must("fork", fork());
    if (child == 0) {
        alarm(10);
        pause();
        _exit(0);
    }
    int fd = (int)must("pidfd_open", syscall(SYS_pidfd_open, child, 0));
    must("pidfd_send_signal", syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
    struct pollfd wait = {fd, POLLIN, 0};
    if (poll(&wait, 1, 2000) != 1)
        broken("poll of a pidfd");
    siginfo_t info;
    must("waitid(P_PIDFD)", waitid((idtype_t)3, (id_t)fd, &info, WEXITED));
    works("pidfd of a child");
}

/* Programs that confine themselves further, as browsers do. */
void landlock_works(char **arg)
{
    struct landlock_ruleset_attr rules = {.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE};
    long version = must("landlock version", syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION));
    must("landlock_create_ruleset", syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0));
    works("landlock, version %ld", version);
}

void pty_works(char **arg)
{
    int master;
    char name[128], text[8] = "";
    int slave = (int)must("open a pty", open_pty(&master, name, sizeof name));
    must("write to the pty", write(master, "hello\n", 6));
    struct pollfd wait = {slave, POLLIN, 0};
    if (poll(&wait, 1, 2000) != 1 || read(slave, text, 6) != 6)
        broken("pty: nothing came");
    works("pty %s", name);
}

void not_root(char **arg)
{
    if (getuid() == 0 || geteuid() == 0)
        broken("uid %u, effective %u", (unsigned)getuid(), (unsigned)geteuid());
    works("uid %u, gid %u", (unsigned)getuid(), (unsigned)getgid());
}

void helper_exit(char **arg)
{
    _exit(7);
}
