// NOLINTNEXTLINE(bugprone-reserved-identifier): for struct ucred and accept4()
#define _GNU_SOURCE
#include "transports/local/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define NS_PER_MS UINT64_C(1000000)
#define LONGEST_POLL_MS 60000u
#define BACKLOG 4096
// A number that the system gives to a socket without a path has so many digits, after a zero byte.
#define NUMBER_DIGITS 5

// The descriptors of this process.

#define MOST_DESCRIPTORS (1 << 20)

static struct {
    // Held while a descriptor is opened or closed, so that no fork comes between that and the set.
    pthread_mutex_t lock;
    bool held[MOST_DESCRIPTORS];
    int end; // after the highest that has been
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int handlers_error;

static void before_fork(void)
{
    pthread_mutex_lock(&process.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&process.lock);
}

// Of the system's calls nothing but close(): other threads of the parent may have held the allocator's locks.
static void in_child(void)
{
    for (int i = 0; i < process.end; i++)
        if (process.held[i])
            close(i);
    memset(process.held, 0, (size_t)process.end);
    pthread_mutex_unlock(&process.lock);
}

static void set_handlers(void)
{
    handlers_error = pthread_atfork(before_fork, after_fork, in_child);
}

void local_process_lock(void)
{
    pthread_once(&once, set_handlers);
    pthread_mutex_lock(&process.lock);
}

void local_process_unlock(void)
{
    pthread_mutex_unlock(&process.lock);
}

// Of a call with the lock, which ends here.
static int keep(int descriptor)
{
    int error = errno;
    if (descriptor >= 0 && (handlers_error || descriptor >= MOST_DESCRIPTORS)) {
        close(descriptor);
        descriptor = -1;
        error = handlers_error ? ENOMEM : EMFILE;
    }
    if (descriptor >= 0) {
        process.held[descriptor] = true;
        process.end = descriptor < process.end ? process.end : descriptor + 1;
    }
    local_process_unlock();
    errno = error;
    return descriptor;
}

// What a listener accepts has its options.
static int open_socket(int family)
{
    const int yes = 1;
    local_process_lock();
    const int descriptor = keep(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (descriptor >= 0 && family != AF_UNIX)
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return descriptor;
}

void local_close(int *descriptor)
{
    const int error = errno;
    if (*descriptor < 0)
        return;
    local_process_lock();
    close(*descriptor);
    if (*descriptor < MOST_DESCRIPTORS) // else it is no socket of ours
        process.held[*descriptor] = false;
    local_process_unlock();
    *descriptor = -1;
    errno = error;
}

// Addresses.

bool local_address_take(struct addrinfo *found, struct local_address *out_address)
{
    *out_address = (struct local_address){.size = 0};
    if (!found)
        return false;
    memcpy(&out_address->address, found->ai_addr, found->ai_addrlen);
    out_address->size = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

bool local_address_parse(const char *number, struct local_address *out_address)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    return local_address_take(getaddrinfo(number, NULL, &hints, &found) == 0 ? found : NULL,
                              out_address);
}

struct local_address local_address_at_number(uint32_t number)
{
    struct local_address address = {.size = sizeof(sa_family_t)};
    struct sockaddr_un *un = (struct sockaddr_un *)&address.address;
    un->sun_family = AF_UNIX;
    if (number == 0)
        return address;
    snprintf(un->sun_path + 1, NUMBER_DIGITS + 1, "%05x", (unsigned)number & 0xfffff);
    address.size += 1 + NUMBER_DIGITS;
    return address;
}

bool local_address_is_machine(const struct local_address *address)
{
    return address->address.ss_family == AF_UNIX;
}

void local_address_set_port(struct local_address *address, uint16_t port)
{
    if (address->address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address->address)->sin6_port = htons(port);
    else if (address->address.ss_family == AF_INET)
        ((struct sockaddr_in *)&address->address)->sin_port = htons(port);
}

enum local_reach local_address_reach(const struct local_address *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->address;
    const bool is_6 = address->address.ss_family == AF_INET6;
    if (is_6 ? IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) : ntohl(in->sin_addr.s_addr) >> 24 == 127)
        return LOCAL_REACH_LOOPBACK;
    if (is_6 ? IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr) : in->sin_addr.s_addr == htonl(INADDR_ANY))
        return LOCAL_REACH_ALL;
    return LOCAL_REACH_NETWORK;
}

// A socket of datagrams that is connected has an address, and has sent nothing.
bool local_address_toward(const struct local_address *other, struct local_address *out_own)
{
    const int probe = socket(other->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    out_own->size = sizeof out_own->address;
    const bool found =
        probe >= 0 && connect(probe, (const struct sockaddr *)&other->address, other->size) == 0 &&
        getsockname(probe, (struct sockaddr *)&out_own->address, &out_own->size) == 0;
    const int error = errno;
    if (probe >= 0)
        close(probe);
    errno = error;
    return found;
}

void local_address_text(const struct local_address *address, char *text, size_t size)
{
    if (local_address_is_machine(address))
        snprintf(text, size, "this machine");
    else if (getnameinfo((const struct sockaddr *)&address->address, address->size, text,
                         (socklen_t)size, NULL, 0, NI_NUMERICHOST))
        snprintf(text, size, "?");
}

// Connections.

static uint32_t number_of(int descriptor)
{
    struct local_address address = {.size = sizeof address.address};
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address.address;
    memset(&address.address, 0, sizeof address.address);
    if (getsockname(descriptor, (struct sockaddr *)&address.address, &address.size))
        return 0;
    if (address.address.ss_family == AF_UNIX)
        return un->sun_path[0] ? 0 : (uint32_t)strtoul(un->sun_path + 1, NULL, 16);
    return ntohs(address.address.ss_family == AF_INET6
                     ? ((struct sockaddr_in6 *)&address.address)->sin6_port
                     : ((struct sockaddr_in *)&address.address)->sin_port);
}

int local_listen(const struct local_address *address, uint32_t *out_number)
{
    const int yes = 1;
    int listener = open_socket(address->address.ss_family);
    if (listener < 0)
        return -1;
    if (!local_address_is_machine(address))
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (const struct sockaddr *)&address->address, address->size) ||
        listen(listener, BACKLOG))
        local_close(&listener);
    else
        *out_number = number_of(listener);
    return listener;
}

int local_poll_ms(uint64_t deadline_ns)
{
    const uint64_t left_ns = weir_clock_left(deadline_ns);
    const uint64_t left_ms = left_ns / NS_PER_MS + (left_ns % NS_PER_MS > 0);
    return (int)(left_ms < LONGEST_POLL_MS ? left_ms : LONGEST_POLL_MS);
}

// False at the deadline.
static bool wait_for(int descriptor, short events, uint64_t deadline_ns)
{
    struct pollfd wanted = {.fd = descriptor, .events = events};
    for (;;) {
        if (weir_clock_now_ns() >= deadline_ns) {
            errno = ETIMEDOUT;
            return false;
        }
        if (poll(&wanted, 1, local_poll_ms(deadline_ns)) > 0)
            return true;
    }
}

// The system tells who made the other end, or who has begun to listen there.
static bool is_of_own_user(int descriptor)
{
    struct ucred other;
    socklen_t size = sizeof other;
    return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
           size == sizeof other && other.uid == geteuid();
}

int local_accept(int listener, struct local_address *out_from)
{
    out_from->size = sizeof out_from->address;
    local_process_lock();
    int accepted = keep(accept4(listener, (struct sockaddr *)&out_from->address, &out_from->size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (accepted < 0 || !local_address_is_machine(out_from) || is_of_own_user(accepted))
        return accepted;
    local_close(&accepted);
    errno = EPERM;
    return -1;
}

int local_connect(const struct local_address *address, uint64_t deadline_ns)
{
    const bool machine = local_address_is_machine(address);
    int error = 0;
    socklen_t size = sizeof error;
    int descriptor = open_socket(address->address.ss_family);
    if (descriptor < 0)
        return -1;
    if (connect(descriptor, (const struct sockaddr *)&address->address, address->size) == 0)
        error = machine && !is_of_own_user(descriptor) ? EPERM : 0;
    else if (errno != EINPROGRESS || !wait_for(descriptor, POLLOUT, deadline_ns))
        error = errno;
    else
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error)
        local_close(&descriptor);
    errno = error;
    return descriptor;
}

bool local_may_try_again(int descriptor, short events, uint64_t deadline_ns)
{
    return errno == EINTR ||
           ((errno == EAGAIN || errno == EWOULDBLOCK) && wait_for(descriptor, events, deadline_ns));
}

bool local_write_all(int descriptor, const void *data, size_t size, uint64_t deadline_ns)
{
    for (size_t at = 0; at < size;) {
        const ssize_t sent = send(descriptor, (const char *)data + at, size - at, MSG_NOSIGNAL);
        if (sent > 0)
            at += (size_t)sent;
        else if (!local_may_try_again(descriptor, POLLOUT, deadline_ns))
            return false;
    }
    return true;
}

bool local_read_all(int descriptor, void *data, size_t size, uint64_t deadline_ns)
{
    for (size_t at = 0; at < size;) {
        const ssize_t got = recv(descriptor, (char *)data + at, size - at, 0);
        if (got > 0) {
            at += (size_t)got;
        } else if (got == 0) {
            errno = ECONNRESET;
            return false;
        } else if (!local_may_try_again(descriptor, POLLIN, deadline_ns)) {
            return false;
        }
    }
    return true;
}
