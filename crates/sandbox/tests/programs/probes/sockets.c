/* Sockets and what can be reached by them. */
#include "common.h"

/* Raw and packet sockets forge and overhear; netlink configures; vsock talks to
 * the hypervisor past every firewall; the others are seldom-tested kernel code
 * that has been exploited again and again. */
void socket_probe(char **arg)
{
    static const struct {
        const char *name;
        int family, type, protocol;
    } FAMILIES[] = {
        {"raw", AF_INET, SOCK_RAW, IPPROTO_ICMP}, {"raw6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
        {"packet", AF_PACKET, SOCK_RAW, 0}, {"netlink", AF_NETLINK, SOCK_RAW, 0},
        {"vsock", AF_VSOCK, SOCK_STREAM, 0}, {"alg", AF_ALG, SOCK_SEQPACKET, 0},
        {"bluetooth", AF_BLUETOOTH, SOCK_RAW, 1 /* HCI */}, {"key", AF_KEY, SOCK_RAW, 2},
        {"xdp", AF_XDP, SOCK_RAW, 0}, {"tipc", AF_TIPC, SOCK_RDM, 0},
        {"inet", AF_INET, SOCK_STREAM, 0}, {"inet6", AF_INET6, SOCK_STREAM, 0}, {"unix", AF_UNIX, SOCK_STREAM, 0},
    };
    static const struct {
        const char *name;
        int type;
    } TYPES[] = {{"stream", SOCK_STREAM}, {"dgram", SOCK_DGRAM}, {"raw", SOCK_RAW}, {"rdm", SOCK_RDM}, {"seqpacket", SOCK_SEQPACKET}};
    int family = -1, type = 0, protocol = 0;
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++)
        if (!strcmp(arg[0], FAMILIES[i].name))
            family = FAMILIES[i].family, type = FAMILIES[i].type, protocol = FAMILIES[i].protocol;
    if (family < 0)
        family = (int)number_argument(arg[0], 255), type = SOCK_RAW;
    if (arg[1]) {
        int named = -1;
        for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
            if (!strcmp(arg[1], TYPES[i].name))
                named = TYPES[i].type;
        if (named < 0)
            bad_usage("TYPE is stream, dgram, raw, rdm or seqpacket");
        if (named != type)
            protocol = named == SOCK_RAW && (family == AF_INET || family == AF_INET6) ? IPPROTO_ICMP : 0;
        type = named;
    }
    char call[48];
    snprintf(call, sizeof call, "socket(%s)", arg[0]);
    attempt(call, socket(family, type | SOCK_CLOEXEC, protocol), FAMILY_OFF);
}

/* Connect by any type of socket that may be listening. */
static void unix_connect_to(const struct sockaddr_un *address, socklen_t length)
{
    static const int NOBODY[] = {ECONNREFUSED, ENOENT, ENOTDIR, EROFS, EAFNOSUPPORT, ELOOP, 0};
    static const struct {
        int type;
        const char *call;
    } WAYS[] = {{SOCK_STREAM, "connect(stream)"}, {SOCK_DGRAM, "connect(dgram)"}, {SOCK_SEQPACKET, "connect(seqpacket)"}};
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        int fd = socket(AF_UNIX, WAYS[i].type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            attempt("socket(unix)", -1, NOBODY);
            continue;
        }
        int result = connect(fd, (const struct sockaddr *)address, length);
        if (result < 0 && errno == EPROTOTYPE)
            note("%s: it is of another type", WAYS[i].call); /* another turn connects */
        else
            attempt(WAYS[i].call, result, NOBODY);
        close(fd);
    }
}

/* Abstract sockets (X11, session buses) have no path for file rules to see. */
void abstract_unix(char **arg)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(arg[0]);
    if (length > sizeof address.sun_path - 1)
        bad_usage("NAME is too long");
    memcpy(address.sun_path + 1, arg[0], length);
    unix_connect_to(&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
}

/* Sockets of services outside (docker, dbus, ssh-agent) act with their rights. */
void unix_connect(char **arg)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(arg[0]) >= sizeof address.sun_path)
        bad_usage("PATH is too long");
    strcpy(address.sun_path, arg[0]);
    unix_connect_to(&address, sizeof address);
}

static socklen_t ip_argument(const char *ip, const char *port, struct sockaddr_storage *out)
{
    struct sockaddr_in *four = (void *)out;
    struct sockaddr_in6 *six = (void *)out;
    in_port_t number = htons((uint16_t)number_argument(port, 65535));
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, ip, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = number;
        return sizeof *four;
    }
    if (inet_pton(AF_INET6, ip, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = number;
        return sizeof *six;
    }
    bad_usage("not an IP address");
}

/* Data leaves by the network. Only a connection that stands is an escape:
 * "refused" is also what an empty network namespace's loopback says. */
void tcp_connect(char **arg)
{
    struct sockaddr_storage address;
    socklen_t length = ip_argument(arg[0], arg[1], &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        attempt("socket(tcp)", -1, FAMILY_OFF);
        return;
    }
    if (connect(fd, (struct sockaddr *)&address, length) == 0)
        escaped("connect: succeeded");
    if (errno != EINPROGRESS) {
        note("connect: %s", errno_name(errno));
        return;
    }
    struct pollfd wait = {fd, POLLOUT, 0};
    if (poll(&wait, 1, 500) == 0) {
        note("connect: no answer in 500 ms");
        return;
    }
    int number = 0;
    socklen_t size = sizeof number;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size);
    if (number == 0)
        escaped("connect: succeeded");
    note("connect: %s", errno_name(number));
}

/* Name lookups carry data out, too. */
void udp_echo(char **arg)
{
    struct sockaddr_storage address;
    socklen_t length = ip_argument(arg[0], arg[1], &address);
    int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        attempt("socket(udp)", -1, FAMILY_OFF);
        return;
    }
    if (connect(fd, (struct sockaddr *)&address, length) < 0 || send(fd, "probe", 5, MSG_NOSIGNAL) < 0) {
        note("send: %s", errno_name(errno));
        return;
    }
    struct pollfd wait = {fd, POLLIN, 0};
    char answer[16];
    if (poll(&wait, 1, 300) == 0)
        note("recv: no answer in 300 ms");
    else if (recv(fd, answer, sizeof answer, MSG_DONTWAIT) < 0)
        note("recv: %s", errno_name(errno));
    else
        escaped("udp: an answer came");
}

/* An interface beside lo is a way out, or tells where we run. Asked in ways
 * that need no netlink socket. */
void interfaces_probe(char **arg)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        note("socket: %s", errno_name(errno));
    } else {
        int seen = 0;
        for (int i = 1; i <= 256; i++) {
            struct ifreq request = {.ifr_ifindex = i};
            if (ioctl(fd, SIOCGIFNAME, &request) < 0)
                continue;
            seen++;
            if (strcmp(request.ifr_name, "lo"))
                escaped("SIOCGIFNAME: %s", request.ifr_name);
        }
        note("SIOCGIFNAME: %s", seen ? "only lo" : "none");
    }
    FILE *file = fopen("/proc/self/net/dev", "re");
    if (!file) {
        note("/proc/self/net/dev: %s", errno_name(errno));
        return;
    }
    char line[512], name[64];
    while (fgets(line, sizeof line, file))
        if (sscanf(line, " %63[^: ]:", name) == 1 && strchr(line, ':') && strcmp(name, "lo"))
            escaped("/proc/self/net/dev: %s", name);
    note("/proc/self/net/dev: only lo");
}
