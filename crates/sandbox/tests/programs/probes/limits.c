/* Limits: raising them, and loads that say how far they came. */
#include "common.h"

/* A limit that can be raised is none. Limits that are unlimited already cannot
 * be; they are named, for the caller to judge. Those of pid 1 (or
 * another) are only asked for, which takes the same permission as setting them. */
void raise_limits(char **arg)
{
    static const struct {
        const char *name;
        int which;
    } LIMITS[] = {{"NOFILE", RLIMIT_NOFILE}, {"FSIZE", RLIMIT_FSIZE}, {"CORE", RLIMIT_CORE}};
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
        struct rlimit limit;
        if (getrlimit(LIMITS[i].which, &limit) < 0) {
            note("getrlimit %s: %s", LIMITS[i].name, errno_name(errno));
            continue;
        }
        if (limit.rlim_max == RLIM_INFINITY) {
            note("%s: unlimited already", LIMITS[i].name);
            continue;
        }
        limit.rlim_max++;
        attempt(LIMITS[i].name, setrlimit(LIMITS[i].which, &limit), ONLY_DENIALS);
    }
    struct rlimit limit;
    attempt("prlimit", prlimit(process_argument(arg[0] ? arg[0] : "1"), RLIMIT_NOFILE, NULL, &limit), PROCESS_GONE);
}

/* A real-time process keeps everyone else off its processor. */
void sched_fifo(char **arg)
{
    struct sched_param priority = {.sched_priority = 1};
    attempt("sched_setscheduler(FIFO)", sched_setscheduler(0, SCHED_FIFO, &priority), ONLY_DENIALS);
    attempt("sched_setscheduler(RR)", sched_setscheduler(0, SCHED_RR, &priority), ONLY_DENIALS);
}

void nice_negative(char **arg)
{
    attempt("setpriority(-5)", setpriority(PRIO_PROCESS, 0, -5), ONLY_DENIALS);
}

/* The load probes below do not judge; they say how far they came, and the
 * caller knows how far that should have been. */

static const char *stopped_by(int number)
{
    static char text[32];
    snprintf(text, sizeof text, "%s%s", number ? " " : "", number ? errno_name(number) : "");
    return text;
}

void fork_many(char **arg)
{
    long long wanted = number_argument(arg[0], MAX_PROCESSES);
    static pid_t children[MAX_PROCESSES];
    int count = 0, number = 0;
    pid_t me = getpid();
    for (; count < wanted; count++) {
        pid_t child = fork();
        if (child < 0) {
            number = errno;
            break;
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the parent be killed */
            alarm(60);
            if (getppid() == me)
                pause();
            _exit(0);
        }
        children[count] = child;
    }
    for (int i = 0; i < count; i++)
        kill(children[i], SIGKILL);
    for (int i = 0; i < count; i++)
        waitpid(children[i], NULL, 0);
    report("count %d%s", count, stopped_by(number));
}

/* Touches `bytes` in pieces; `*done` follows, so that it survives being killed. */
static int touch_memory(long long bytes, volatile long long *done)
{
    const size_t piece = 4 << 20;
    while (*done < bytes) {
        size_t length = bytes - *done < (long long)piece ? (size_t)(bytes - *done) : piece;
        char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return errno;
        for (size_t i = 0; i < length; i += 4096)
            memory[i] = 1;
        *done += (long long)length;
    }
    return 0;
}

void allocate(char **arg)
{
    volatile long long done = 0;
    int number = touch_memory(number_argument(arg[0], MAX_BYTES), &done);
    report("touched %lld%s", done, stopped_by(number));
}

/* Limits per process do not add up: many processes with a little each. All keep
 * their share until everybody is done. */
void allocate_spread(char **arg)
{
    long long bytes = number_argument(arg[0], MAX_BYTES);
    int processes = (int)number_argument(arg[1], 256), started = 0, killed = 0, number = 0;
    if (processes < 1)
        bad_usage("PROCS is 1 or more");
    struct share {
        volatile long long done;
        volatile int finished, number;
    } *shares = mmap(NULL, sizeof *shares * (size_t)processes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shares == MAP_FAILED)
        skipped("mmap: %s", errno_name(errno));
    pid_t children[256];
    for (; started < processes; started++) {
        pid_t child = fork();
        if (child < 0) {
            number = errno;
            break;
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(120);
            shares[started].number = touch_memory(bytes / processes, &shares[started].done);
            shares[started].finished = 1;
            for (;;)
                pause();
        }
        children[started] = child;
    }
    bool gone[256] = {false};
    for (long long end = now_ms() + 60000; now_ms() < end; sleep_ms(10)) {
        bool waiting = false;
        for (int i = 0; i < started; i++) {
            if (!gone[i] && waitpid(children[i], NULL, WNOHANG) == children[i])
                gone[i] = true, killed++;
            waiting |= !gone[i] && !shares[i].finished;
        }
        if (!waiting)
            break;
    }
    long long total = 0;
    for (int i = 0; i < started; i++) {
        total += shares[i].done;
        if (shares[i].number)
            number = shares[i].number;
        if (!gone[i]) {
            kill(children[i], SIGKILL);
            waitpid(children[i], NULL, 0);
        }
    }
    char ending[32] = "";
    if (killed)
        snprintf(ending, sizeof ending, " %d killed", killed);
    report("touched %lld%s%s", total, stopped_by(number), ending);
}

static long long fill(int fd, long long bytes, int *number)
{
    static char block[1 << 20];
    memset(block, 'x', sizeof block);
    signal(SIGXFSZ, SIG_IGN); /* EFBIG instead */
    long long done = 0;
    while (done < bytes) {
        size_t length = bytes - done < (long long)sizeof block ? (size_t)(bytes - done) : sizeof block;
        ssize_t n = write(fd, block, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            *number = errno;
            break;
        }
        done += n;
    }
    return done;
}

/* Memory that belongs to no process's size. */
void memfd_fill(char **arg)
{
    long long bytes = number_argument(arg[0], MAX_BYTES);
    int number = 0, fd = memfd_create("probe", MFD_CLOEXEC);
    if (fd < 0)
        report("wrote 0 %s", errno_name(errno));
    long long done = fill(fd, bytes, &number);
    report("wrote %lld%s", done, stopped_by(number));
}

/* System V memory outlives its maker; marked for removal as soon as it is ours. */
void shm_fill(char **arg)
{
    long long bytes = number_argument(arg[0], MAX_BYTES), done = 0;
    int id = shmget(IPC_PRIVATE, (size_t)(bytes ? bytes : 1), IPC_CREAT | 0600);
    if (id < 0)
        report("touched 0 %s", errno_name(errno));
    char *memory = shmat(id, NULL, 0);
    int number = errno;
    shmctl(id, IPC_RMID, NULL);
    if (memory == (void *)-1)
        report("touched 0 %s", errno_name(number));
    for (; done < bytes; done += 4096)
        memory[done] = 1;
    report("touched %lld", bytes);
}

void fill_file(char **arg)
{
    long long bytes = number_argument(arg[1], MAX_BYTES);
    int number = 0, fd = open(arg[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        report("wrote 0 %s", errno_name(errno));
    long long done = fill(fd, bytes, &number);
    unlink(arg[0]);
    report("wrote %lld%s", done, stopped_by(number));
}

void many_files(char **arg)
{
    long long wanted = number_argument(arg[1], MAX_FILES), count = 0;
    int number = 0;
    char path[PATH_MAX];
    for (; count < wanted; count++) {
        snprintf(path, sizeof path, "%s/.probe-many-%s-%lld", arg[0], stamp(), count);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0) {
            number = errno;
            break;
        }
        close(fd);
    }
    for (long long i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/.probe-many-%s-%lld", arg[0], stamp(), i);
        unlink(path);
    }
    report("count %lld%s", count, stopped_by(number));
}

void open_many(char **arg)
{
    long long wanted = number_argument(arg[0], MAX_FILES), count = 0;
    int number = 0;
    for (; count < wanted; count++)
        if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) {
            number = errno;
            break;
        }
    report("count %lld%s", count, stopped_by(number));
}

/* Only the bytes, no newline. */
void output(char **arg)
{
    int number = 0;
    long long bytes = number_argument(arg[0], MAX_BYTES);
    if (fill(1, bytes, &number) < bytes)
        fprintf(stderr, "probes: stdout: %s\n", errno_name(number));
    _exit(0);
}

void spin(char **arg)
{
    long long end = now_ms() + 1000 * number_argument(arg[0], MAX_SECONDS);
    volatile unsigned long turns = 0;
    while (now_ms() < end)
        for (int i = 0; i < 100000; i++)
            turns++;
    report("spun %s", arg[0]);
}

void sleep_stubborn(char **arg)
{
    long long end = now_ms() + 1000 * number_argument(arg[0], MAX_SECONDS);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    while (now_ms() < end)
        sleep_ms(end - now_ms() < 100 ? end - now_ms() : 100);
    report("slept %s", arg[0]);
}

/* A process that left its session and its parent: must end with the sandbox.
 * The file stops growing when it does. At most 60 seconds. */
void daemon_heartbeat(char **arg)
{
    int fd = open(arg[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        skipped("%s: %s", arg[0], errno_name(errno));
    pid_t child = fork();
    if (child < 0)
        skipped("fork: %s", errno_name(errno));
    if (child > 0) {
        exited_with(child, 0);
        report("started");
    }
    setsid();
    if (fork() != 0)
        _exit(0);
    signal(SIGHUP, SIG_IGN);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; i++) /* else the caller waits for our stdout */
        if (null < 0 || dup2(null, i) < 0)
            close(i);
    for (long long end = now_ms() + 60000; now_ms() < end; sleep_ms(50))
        if (write(fd, ".", 1) != 1)
            break;
    _exit(0);
}
