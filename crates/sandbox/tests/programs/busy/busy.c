/* Uses processors, processes and descriptors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double used(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void spin(double seconds) {
    while (used() < seconds) {
    }
}

static void *forever(void *nothing) {
    for (;;) {
    }
    return nothing;
}

static void *idle(void *nothing) {
    for (;;) pause();
    return nothing;
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    if (!strcmp(how, "spin")) {
        spin(atof(words[2]));
        return 0;
    }
    if (!strcmp(how, "threads")) {
        pthread_t thread;
        for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, forever, NULL);
        forever(NULL);
    }
    if (!strcmp(how, "children")) {
        /* One after another, each short and waited for. */
        for (int i = 0; i < 400; i++) {
            if (fork() == 0) {
                spin(0.05);
                _exit(0);
            }
            wait(NULL);
        }
        return 0;
    }
    if (!strcmp(how, "unwaited")) {
        /* One after another, each short, and nobody waits for them. */
        signal(SIGCHLD, SIG_IGN);
        for (int i = 0; i < 400; i++) {
            if (fork() == 0) {
                spin(0.05);
                _exit(0);
            }
            wait(NULL);
        }
        return 0;
    }
    if (!strcmp(how, "fork")) {
        int made = 0;
        while (made < 100000) {
            pid_t child = fork();
            if (child < 0) break;
            if (child == 0) {
                for (;;) pause();
            }
            made++;
        }
        printf("%d\n", made);
        return 0;
    }
    if (!strcmp(how, "bomb")) {
        for (;;) fork();
    }
    if (!strcmp(how, "start-threads")) {
        int made = 0;
        pthread_t thread;
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 64 << 10);
        while (made < 100000 && pthread_create(&thread, &small, idle, NULL) == 0) made++;
        printf("%d\n", made);
        fflush(stdout);
        _exit(0);
    }
    if (!strcmp(how, "descriptors")) {
        struct rlimit more = {1 << 20, 1 << 20};
        int raised = setrlimit(RLIMIT_NOFILE, &more) == 0;
        int made = 0;
        while (made < 1000000 && open("/dev/null", O_RDONLY) >= 0) made++;
        dprintf(1, "%d %d %s\n", raised, made, strerrorname_np(errno));
        return 0;
    }
    return 2;
}
