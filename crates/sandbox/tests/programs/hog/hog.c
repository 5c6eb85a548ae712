/* Takes ten gibibytes in one of many ways. Ends with 3 where it was refused, with 0 where it got them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE (16UL << 20)
#define ALL (10UL << 30)

static void refused(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(3);
}

static void *piece(size_t size, int flags) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) refused("mmap");
    memset(memory, 1, size);
    return memory;
}

static void grow(size_t size, int flags) {
    for (size_t taken = 0; taken < size; taken += PIECE) piece(PIECE, flags);
}

/* A private mapping of a file in memory, so that even the buffer costs little. */
static void fill(int file, size_t size) {
    static char buffer[1 << 20];
    memset(buffer, 1, sizeof buffer);
    for (size_t taken = 0; taken < size; taken += sizeof buffer)
        if (write(file, buffer, sizeof buffer) != sizeof buffer) refused("write");
}

static int unnamed(void) {
    int file = memfd_create("hog", 0);
    if (file < 0) refused("memfd_create");
    return file;
}

/* Memory that a child has touched and that its parent has only mapped: nobody has it resident. */
static void leave_behind(size_t all) {
    for (size_t taken = 0; taken < all; taken += PIECE) {
        int flags = MAP_SHARED | MAP_ANONYMOUS;
        char *memory = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (memory == MAP_FAILED) refused("mmap");
        pid_t child = fork();
        if (child < 0) refused("fork");
        if (child == 0) {
            for (size_t at = 0; at < PIECE; at += 4096) memory[at]++;
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    if (!strcmp(how, "once")) {
        piece(ALL, MAP_PRIVATE);
    } else if (!strcmp(how, "pieces")) {
        grow(ALL, MAP_PRIVATE);
    } else if (!strcmp(how, "shared")) {
        grow(ALL, MAP_SHARED);
    } else if (!strcmp(how, "spread")) {
        for (int i = 0; i < 40; i++) {
            pid_t child = fork();
            if (child < 0) refused("fork");
            if (child == 0) {
                grow(ALL / 40, MAP_PRIVATE);
                pause();
            }
        }
        int status;
        wait(&status);
        return WIFSIGNALED(status) ? 4 : WEXITSTATUS(status);
    } else if (!strcmp(how, "child")) {
        /* The child goes over the limit; its parent does not mind. */
        if (fork() == 0) grow(ALL, MAP_PRIVATE);
        for (;;) pause();
    } else if (!strcmp(how, "memfd")) {
        fill(unnamed(), ALL);
    } else if (!strcmp(how, "memfds")) {
        for (size_t taken = 0; taken < ALL; taken += PIECE) fill(unnamed(), PIECE);
    } else if (!strcmp(how, "undumpable")) {
        prctl(PR_SET_DUMPABLE, 0);
        leave_behind(ALL);
    } else if (!strcmp(how, "left-behind")) {
        leave_behind(ALL);
    } else if (!strcmp(how, "travelling")) {
        /* Descriptors that are in no process: they are under way in a socket. */
        int ends[2];
        for (size_t taken = 0; taken < ALL; taken += PIECE * 8) {
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) refused("socketpair");
            int file = unnamed();
            fill(file, PIECE * 8);
            char control[CMSG_SPACE(sizeof file)] = {0};
            char byte = 0;
            struct iovec bytes = {&byte, 1};
            struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control,
                                     .msg_controllen = sizeof control};
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof file);
            memcpy(CMSG_DATA(header), &file, sizeof file);
            if (sendmsg(ends[0], &message, 0) != 1) refused("sendmsg");
            close(file);
        }
    } else if (!strcmp(how, "mapped-and-closed")) {
        /* Written through the descriptor, mapped, never touched, and closed. */
        for (size_t taken = 0; taken < ALL; taken += PIECE * 8) {
            int file = unnamed();
            fill(file, PIECE * 8);
            if (mmap(NULL, PIECE * 8, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED) refused("mmap");
            close(file);
        }
    } else if (!strcmp(how, "segments")) {
        for (size_t taken = 0; taken < ALL; taken += PIECE * 8) {
            int id = shmget(IPC_PRIVATE, PIECE * 8, IPC_CREAT | 0600);
            if (id < 0) refused("shmget");
            void *memory = shmat(id, NULL, 0);
            if (memory == (void *)-1) refused("shmat");
            memset(memory, 1, PIECE * 8);
            shmdt(memory);
        }
    } else if (!strcmp(how, "pipes")) {
        int ends[2];
        static char buffer[1 << 16];
        for (size_t taken = 0; taken < ALL;) {
            if (pipe2(ends, O_NONBLOCK)) refused("pipe");
            fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
            ssize_t wrote;
            while ((wrote = write(ends[1], buffer, sizeof buffer)) > 0) taken += wrote;
        }
    } else if (!strcmp(how, "scratch")) {
        int file = open("/tmp/hog", O_CREAT | O_WRONLY, 0600);
        if (file < 0) refused("open");
        fill(file, ALL);
    } else if (!strcmp(how, "share")) {
        /* One memory, mapped by several: MiB and processes. */
        size_t size = strtoul(words[2], NULL, 10) << 20;
        int flags = MAP_SHARED | MAP_ANONYMOUS;
        char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (memory == MAP_FAILED) refused("mmap");
        int children = atoi(words[3]);
        for (int i = 0; i < children; i++)
            if (fork() == 0) {
                for (size_t at = 0; at < size; at += 4096) memory[at]++;
                usleep(400000);
                _exit(0);
            }
        while (wait(NULL) > 0) {
        }
        return 0;
    } else if (!strcmp(how, "touch")) {
        piece(strtoul(words[2], NULL, 10) << 20, MAP_PRIVATE);
        usleep(300000);
        return 0;
    } else {
        return 2;
    }
    puts("it got all of it");
    return 0;
}
