/* The table of probes, and how one of them is run. */
#include "common.h"

enum kind {
    DENY,  /* must be denied: run in a child, since it may be killed for it */
    FAULT, /* the same, where SIGSEGV is a denial as well */
    LOAD,  /* says how far it came */
    WORK,  /* must work: run in a child as well */
};

static const struct probe {
    const char *name;
    run *run;
    enum kind kind;
    int least, most; /* arguments */
    const char *arguments;
} PROBES[] = {
    /* files */
    {"read-file", read_file, DENY, 1, 1, "PATH"},
    {"list-folder", list_folder, DENY, 1, 1, "PATH"},
    {"write-file", write_file, DENY, 1, 1, "PATH"},
    /* processes */
    {"list-processes", list_processes, DENY, 0, 1, "[HANDFUL]"},
    {"read-proc", read_proc, DENY, 2, 2, "PID|parent mem|environ|maps|auxv|fd|fdinfo|root|cwd|exe|all"},
    {"proc-exe-write", proc_exe_write, DENY, 0, 1, "[PID|parent]"},
    {"ptrace-attach", ptrace_attach, DENY, 1, 1, "PID|parent"},
    {"process-vm-readv", vm_readv, DENY, 1, 1, "PID|parent"},
    {"signal", signal_process, DENY, 1, 1, "PID|parent"},
    {"meddle", meddle, DENY, 1, 1, "PID|parent"},
    {"signal-every", signal_every, DENY, 1, 1, "PID|parent"},
    {"kill-everyone", kill_everyone, LOAD, 0, 0, ""},
    {"signal-parent", signal_parent, DENY, 0, 0, ""},
    {"kcmp", kcmp_process, DENY, 0, 1, "[PID|parent]"},
    {"pidfd-getfd", pidfd_getfd_process, DENY, 1, 1, "PID|parent"},
    /* namespaces */
    {"unshare", unshare_flag, DENY, 1, 1, "user|mount|pid|net|ipc|uts|cgroup|time"},
    {"clone-newuser", clone_newuser, DENY, 0, 0, ""},
    {"clone3-newuser", clone3_newuser, DENY, 0, 0, ""},
    {"setns", setns_process, DENY, 0, 1, "[PID|parent]"},
    /* mounts */
    {"mount", mount_probe, DENY, 0, 0, ""},
    {"umount", umount_probe, DENY, 0, 0, ""},
    {"pivot-root", pivot_root_probe, DENY, 0, 0, ""},
    {"chroot", chroot_probe, DENY, 0, 0, ""},
    {"open-tree", open_tree_probe, DENY, 0, 0, ""},
    {"fsopen", fsopen_probe, DENY, 0, 0, ""},
    {"move-mount", move_mount_probe, DENY, 0, 0, ""},
    {"mount-setattr", mount_setattr_probe, DENY, 0, 0, ""},
    /* kernel interfaces */
    {"keyctl", keyctl_probe, DENY, 0, 0, ""},
    {"add-key", add_key_probe, DENY, 0, 0, ""},
    {"request-key", request_key_probe, DENY, 0, 0, ""},
    {"bpf", bpf_probe, DENY, 0, 0, ""},
    {"perf-event-open", perf_probe, DENY, 0, 0, ""},
    {"io-uring-setup", io_uring_probe, DENY, 0, 0, ""},
    {"userfaultfd", userfaultfd_probe, DENY, 0, 0, ""},
    {"memfd-secret", memfd_secret_probe, DENY, 0, 0, ""},
    {"fanotify-init", fanotify_probe, DENY, 0, 0, ""},
    {"open-by-handle-at", open_by_handle_probe, DENY, 0, 0, ""},
    {"init-module", init_module_probe, DENY, 0, 0, ""},
    {"kexec-load", kexec_probe, DENY, 0, 0, ""},
    {"swapon", swapon_probe, DENY, 0, 0, ""},
    {"syslog", syslog_probe, DENY, 0, 0, ""},
    {"acct", acct_probe, DENY, 0, 0, ""},
    {"quotactl", quotactl_probe, DENY, 0, 0, ""},
    {"iopl", iopl_probe, DENY, 0, 0, ""},
    {"sethostname", sethostname_probe, DENY, 0, 0, ""},
    {"clock-settime", clock_probe, DENY, 0, 0, ""},
    {"personality", personality_probe, DENY, 0, 0, ""},
    {"mknod-device", mknod_probe, DENY, 0, 0, ""},
    {"process-madvise", process_madvise_probe, DENY, 0, 1, "[PID|parent]"},
    /* identity */
    {"setuid-zero", setuid_zero, DENY, 0, 0, ""},
    {"setgroups", setgroups_probe, DENY, 0, 0, ""},
    {"capabilities", capabilities_probe, DENY, 0, 0, ""},
    {"capset-gain", capset_gain, DENY, 0, 0, ""},
    {"make-setuid-file", make_setuid_file, DENY, 0, 0, ""},
    /* sockets */
    {"socket", socket_probe, DENY, 1, 2, "raw|raw6|packet|netlink|vsock|alg|bluetooth|key|xdp|tipc|inet|inet6|unix|NUMBER [stream|dgram|raw|rdm|seqpacket]"},
    {"abstract-unix", abstract_unix, DENY, 1, 1, "NAME"},
    {"unix-connect", unix_connect, DENY, 1, 1, "PATH"},
    {"tcp-connect", tcp_connect, DENY, 2, 2, "IP PORT"},
    {"udp-echo", udp_echo, DENY, 2, 2, "IP PORT"},
    {"interfaces", interfaces_probe, DENY, 0, 0, ""},
    /* other system-call tables */
    {"int80", int80_probe, FAULT, 0, 0, ""},
    {"x32", x32_probe, DENY, 0, 0, ""},
    /* terminal */
    {"tiocsti", tiocsti_probe, DENY, 0, 0, ""},
    {"tioclinux", tioclinux_probe, DENY, 0, 0, ""},
    /* descriptors, /proc and /dev */
    {"inherited-descriptors", inherited_descriptors, DENY, 0, 0, ""},
    {"proc-sys-write", proc_sys_write, DENY, 0, 0, ""},
    {"proc-leaks", proc_leaks, DENY, 0, 0, ""},
    {"dev-nodes", dev_nodes, DENY, 0, 0, ""},
    {"cgroup-write", cgroup_write, DENY, 0, 1, "[FOLDER]"},
    {"mountinfo-has", mountinfo_has, DENY, 1, 1, "TEXT"},
    /* limits */
    {"raise-limits", raise_limits, DENY, 0, 1, "[PID|parent]"},
    {"sched-fifo", sched_fifo, DENY, 0, 0, ""},
    {"nice-negative", nice_negative, DENY, 0, 0, ""},
    {"fork-many", fork_many, LOAD, 1, 1, "MAX"},
    {"allocate", allocate, LOAD, 1, 1, "BYTES"},
    {"allocate-spread", allocate_spread, LOAD, 2, 2, "BYTES PROCS"},
    {"memfd-fill", memfd_fill, LOAD, 1, 1, "BYTES"},
    {"shm-fill", shm_fill, LOAD, 1, 1, "BYTES"},
    {"fill-file", fill_file, LOAD, 2, 2, "PATH BYTES"},
    {"many-files", many_files, LOAD, 2, 2, "PATH N"},
    {"open-many", open_many, LOAD, 1, 1, "MAX"},
    {"output", output, LOAD, 1, 1, "BYTES"},
    {"spin", spin, LOAD, 1, 1, "SECONDS"},
    {"sleep-stubborn", sleep_stubborn, LOAD, 1, 1, "SECONDS"},
    {"daemon-heartbeat", daemon_heartbeat, LOAD, 1, 1, "FILE"},
    /* paths */
    {"plant", plant_probe, DENY, 2, 3, "FOLDER NAME [WAY]"},
    {"swap-race", swap_race, DENY, 3, 3, "FOLDER TARGET MILLISECONDS"},
    /* must work */
    {"threads", threads_work, WORK, 0, 0, ""},
    {"fork-exec", fork_exec_works, WORK, 0, 0, ""},
    {"pipes", pipes_work, WORK, 0, 0, ""},
    {"temp-file", temp_file_works, WORK, 0, 0, ""},
    {"mmap-exec", mmap_exec_works, WORK, 0, 0, ""},
    {"loopback", loopback_works, WORK, 0, 0, ""},
    {"unix-socket", unix_socket_works, WORK, 0, 0, ""},
    {"socketpair", socketpair_works, WORK, 0, 0, ""},
    {"posix-shm", posix_shm_works, WORK, 0, 0, ""},
    {"inotify", inotify_works, WORK, 0, 0, ""},
    {"epoll-eventfd-timerfd-signalfd", event_loop_works, WORK, 0, 0, ""},
    {"memfd-exec", memfd_exec_works, WORK, 0, 0, ""},
    {"getrandom", getrandom_works, WORK, 0, 0, ""},
    {"devices", devices_work, WORK, 0, 0, ""},
    {"passwd", passwd_works, WORK, 0, 0, ""},
    {"localtime", localtime_works, WORK, 0, 0, ""},
    {"affinity", affinity_works, WORK, 0, 0, ""},
    {"statx-openat2", statx_openat2_work, WORK, 0, 0, ""},
    {"copy-file-range", copy_file_range_works, WORK, 0, 0, ""},
    {"pidfd-open", pidfd_open_works, WORK, 0, 0, ""},
    {"posix-spawn", posix_spawn_works, WORK, 0, 0, ""},
    {"landlock-own", landlock_works, WORK, 0, 0, ""},
    {"pty", pty_works, WORK, 0, 0, ""},
    {"not-root", not_root, WORK, 0, 0, ""},
    {"helper-exit", helper_exit, LOAD, 0, 0, ""},
};

#define COUNT (sizeof PROBES / sizeof *PROBES)

/* Run in a child: a filter may kill for a forbidden call, and then somebody
 * has to be left to say so. */
static int run_in_child(const struct probe *probe, char **arg)
{
    int status;
    pid_t child = fork();
    if (child <= 0) { /* the child, or we ourselves where there can be none */
        probe->run(arg);
        end_of_probe();
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            broken("waitpid: %s", errno_name(errno));
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    int signal = WTERMSIG(status);
    if (probe->kind == WORK)
        broken("%s: killed by signal %d", probe->name, signal);
    if (signal == SIGSYS)
        report("held: %s: SIGSYS", probe->name);
    if (signal == SIGSEGV && probe->kind == FAULT)
        report("held: %s: SIGSEGV", probe->name);
    broken("%s: the probe was killed by signal %d", probe->name, signal);
}

int main(int argc, char **argv)
{
    static const char *const KINDS[] = {"deny", "deny", "load", "work"};
    parent_pid = getppid();
    own_path = access("/proc/self/exe", X_OK) == 0 ? "/proc/self/exe" : argv[0];
    if (argc == 2 && !strcmp(argv[1], "list")) {
        for (size_t i = 0; i + 1 < COUNT; i++)
            printf("%s\t%s\t%s\n", PROBES[i].name, PROBES[i].arguments, KINDS[PROBES[i].kind]);
        return 0;
    }
    if (argc < 2)
        bad_usage("probes NAME [ARGS], or: probes list");
    for (size_t i = 0; i < COUNT; i++) {
        const struct probe *probe = &PROBES[i];
        if (strcmp(argv[1], probe->name))
            continue;
        if (argc - 2 < probe->least || argc - 2 > probe->most) {
            fprintf(stderr, "usage: probes %s %s\n", probe->name, probe->arguments);
            return USAGE;
        }
        /* Up to `most` arguments, NULL where one was left out (argv ends so). */
        if (probe->kind != LOAD)
            return run_in_child(probe, argv + 2);
        probe->run(argv + 2);
        return 0;
    }
    bad_usage("no such probe (see: probes list)");
}
