// NOLINTNEXTLINE(bugprone-reserved-identifier): for IFF_UP
#define _DEFAULT_SOURCE
#include "transports/local/socket.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "transports/local/descriptors.h"

#define NS_PER_MS UINT64_C(1000000)
#define LONGEST_POLL_MS 60000u
#define RETRY_NS (20 * NS_PER_MS)
#define BACKLOG 4096

bool local_address_find(const char *host, uint16_t port, struct local_address *out_address,
                        const char **out_error)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int error = getaddrinfo(host, NULL, &hints, &found);
    if (error) {
        *out_error = gai_strerror(error);
        return false;
    }
    memcpy(&out_address->address, found->ai_addr, found->ai_addrlen);
    out_address->size = found->ai_addrlen;
    freeaddrinfo(found);
    local_address_set_port(out_address, port);
    return true;
}

void local_address_set_port(struct local_address *address, uint16_t port)
{
    if (address->address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address->address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&address->address)->sin_port = htons(port);
}

bool local_address_is_loopback(const struct local_address *address)
{
    if (address->address.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address->address)->sin6_addr);
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->address;
    return ntohl(in->sin_addr.s_addr) >> 24 == 127;
}

void local_address_text(const struct local_address *address, char *text, size_t size)
{
    if (getnameinfo((const struct sockaddr *)&address->address, address->size, text,
                    (socklen_t)size, NULL, 0, NI_NUMERICHOST))
        snprintf(text, size, "?");
}

static bool is_public(const struct ifaddrs *each)
{
    const struct sockaddr *address = each->ifa_addr;
    return address && address->sa_family == AF_INET && each->ifa_flags & IFF_UP &&
           !(each->ifa_flags & IFF_LOOPBACK);
}

void local_address_of_host(struct local_address *out_address)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) == 0) {
        const struct ifaddrs *each = list;
        while (each && !is_public(each))
            each = each->ifa_next;
        if (each)
            memcpy(&in, each->ifa_addr, sizeof in);
        freeifaddrs(list);
    }
    memcpy(&out_address->address, &in, sizeof in);
    out_address->size = sizeof in;
}

static void set_any(struct local_address *address)
{
    if (address->address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address->address)->sin6_addr = in6addr_any;
    else
        ((struct sockaddr_in *)&address->address)->sin_addr.s_addr = htonl(INADDR_ANY);
}

static uint16_t port_of(int descriptor)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    memset(&address, 0, sizeof address);
    if (getsockname(descriptor, (struct sockaddr *)&address, &size))
        return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

int local_listen(struct local_address address, bool any, uint16_t *out_port)
{
    const int yes = 1;
    if (any)
        set_any(&address);
    int listener = local_descriptor_socket(address.address.ss_family);
    if (listener < 0)
        return -1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&address.address, address.size) ||
        listen(listener, BACKLOG)) {
        const int error = errno;
        local_close(&listener);
        errno = error;
        return -1;
    }
    *out_port = port_of(listener);
    return listener;
}

int local_poll_ms(uint64_t deadline_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    const uint64_t left_ms = left_ns / NS_PER_MS + (left_ns % NS_PER_MS > 0);
    return (int)(left_ms < LONGEST_POLL_MS ? left_ms : LONGEST_POLL_MS);
}

// False at the deadline.
static bool wait_for(int descriptor, short events, uint64_t deadline_ns)
{
    struct pollfd wanted = {.fd = descriptor, .events = events};
    for (;;) {
        if (poll(&wanted, 1, local_poll_ms(deadline_ns)) > 0)
            return true;
        if (weir_clock_now_ns() >= deadline_ns)
            return false;
    }
}

static void set_no_delay(int descriptor)
{
    const int yes = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// Of the process or the machine: the connection stays, and so does the error.
static bool is_lack(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

int local_accept(int listener, uint64_t deadline_ns, struct local_address *out_from)
{
    while (wait_for(listener, POLLIN, deadline_ns)) {
        out_from->size = sizeof out_from->address;
        const int accepted =
            local_descriptor_accept(listener, (struct sockaddr *)&out_from->address,
                                    &out_from->size);
        if (accepted < 0 && is_lack(errno))
            return -1;
        if (accepted < 0)
            continue; // the other side has given up
        set_no_delay(accepted);
        return accepted;
    }
    errno = ETIMEDOUT;
    return -1;
}

// 0, or the error.
static int connect_once(int descriptor, const struct local_address *address, uint64_t deadline_ns)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (connect(descriptor, (const struct sockaddr *)&address->address, address->size) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    if (!wait_for(descriptor, POLLOUT, deadline_ns))
        return ETIMEDOUT;
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

int local_connect(const struct local_address *address, bool patient, uint64_t deadline_ns)
{
    for (;;) {
        int descriptor = local_descriptor_socket(address->address.ss_family);
        if (descriptor < 0)
            return -1;
        const int error = connect_once(descriptor, address, deadline_ns);
        if (error == 0) {
            set_no_delay(descriptor);
            return descriptor;
        }
        local_close(&descriptor);
        errno = error;
        if (!patient || weir_clock_now_ns() >= deadline_ns)
            return -1;
        weir_clock_sleep_ns(RETRY_NS);
    }
}

bool local_write_all(int descriptor, const void *data, size_t size, uint64_t deadline_ns)
{
    for (size_t at = 0; at < size;) {
        const ssize_t sent = send(descriptor, (const char *)data + at, size - at, MSG_NOSIGNAL);
        if (sent > 0)
            at += (size_t)sent;
        else if ((errno != EAGAIN && errno != EINTR) || !wait_for(descriptor, POLLOUT, deadline_ns))
            return false;
    }
    return true;
}

bool local_read_all(int descriptor, void *data, size_t size, uint64_t deadline_ns)
{
    for (size_t at = 0; at < size;) {
        const ssize_t got = recv(descriptor, (char *)data + at, size - at, 0);
        if (got > 0)
            at += (size_t)got;
        else if (got == 0 || (errno != EAGAIN && errno != EINTR) ||
                 !wait_for(descriptor, POLLIN, deadline_ns))
            return false;
    }
    return true;
}

void local_close(int *descriptor)
{
    if (*descriptor >= 0)
        local_descriptor_close(*descriptor);
    *descriptor = -1;
}
