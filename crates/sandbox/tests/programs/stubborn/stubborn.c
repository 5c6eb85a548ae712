/* A program that does not want to end. It adds a letter to a file again and again, from each of its processes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void beat(const char *path) {
    for (;;) {
        int file = open(path, O_CREAT | O_WRONLY | O_APPEND, 0666);
        if (file >= 0) {
            if (write(file, ".", 1) != 1) _exit(9);
            close(file);
        }
        usleep(5000);
    }
}

int main(int count, char **words) {
    if (count < 3) return 2;
    const char *how = words[1], *path = words[2];
    if (strstr(how, "ignore")) signal(SIGTERM, SIG_IGN);
    if (strstr(how, "block")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    if (strstr(how, "orphan")) {
        /* Forks twice and leaves its session, so that nobody is its parent. */
        if (fork() == 0) {
            setsid();
            if (fork() == 0) {
                setsid();
                beat(path);
            }
            _exit(0);
        }
    }
    if (strstr(how, "many"))
        for (int i = 0; i < 8; i++)
            if (fork() == 0) {
                setsid();
                beat(path);
            }
    if (strstr(how, "leave")) {
        usleep(100000);
        return 5;
    }
    beat(path);
}
