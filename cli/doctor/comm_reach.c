// Plain connections, so that each address of a host is told on its own.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for NI_MAXHOST
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lookup.h"
#include "base/text.h"
#include "cli/common/clock.h"
#include "cli/doctor/comm.h"

#define WAIT_MS 5000

static void name_of(const struct sockaddr *address, socklen_t size, char *text, size_t text_size)
{
    if (getnameinfo(address, size, text, (socklen_t)text_size, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(text, text_size, "?");
}

// 0, or the error of the connection.
static int try_address(const struct addrinfo *address)
{
    int error = 0;
    socklen_t size = sizeof error;
    const int it = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (it < 0)
        return errno;
    struct pollfd poll_it = {.fd = it, .events = POLLOUT};
    if (connect(it, address->ai_addr, address->ai_addrlen) != 0)
        error = errno;
    if (error == EINPROGRESS) {
        error = poll(&poll_it, 1, WAIT_MS) == 1 ? 0 : ETIMEDOUT;
        if (!error && getsockopt(it, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
    }
    close(it);
    return error;
}

static const char *remedy_of(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return "start `weir doctor comm --listen HOST:PORT` there first, with WEIR_COMM_SECRET, "
               "the same port and this address; if it runs, a firewall refuses the connection";
    case ETIMEDOUT:
        return "let the firewalls between the two machines pass the port, and see that the address "
               "is the other machine's";
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "name an address of a network that both machines are in";
    default:
        return "name another address";
    }
}

static void tell_address(struct doctor *doctor, const struct addrinfo *address, const char *port,
                         int error, double ns, bool *reached)
{
    char name[NI_MAXHOST];
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    name_of(address->ai_addr, address->ai_addrlen, name, sizeof name);
    if (!error)
        doctor_add(doctor, DOCTOR_OK, "reaching", NULL, "%s, port %s, answers in %s", name, port,
                   weir_text_duration(duration, ns));
    else if (address->ai_next || *reached) // another one may do
        doctor_add(doctor, DOCTOR_NOTE, "reaching", NULL, "%s, port %s: %s", name, port,
                   strerror(error));
    else
        doctor_add(doctor, DOCTOR_PROBLEM, "reaching", remedy_of(error), "%s, port %s: %s", name,
                   port, strerror(error));
    *reached = *reached || !error;
}

bool doctor_comm_reach(struct doctor *doctor, const struct doctor_comm *comm, const char *host,
                       const char *port)
{
    struct addrinfo *addresses = NULL;
    bool reached = false;
    const char *failure =
        weir_lookup(host, port, cli_now_ns() + comm->timeout * UINT64_C(1000000000), &addresses);
    if (failure) {
        doctor_add(doctor, DOCTOR_PROBLEM, "reaching",
                   "name the host by its number, or enter it in /etc/hosts or the name service",
                   "the host '%s' is not found: %s", host, failure);
        return false;
    }
    for (const struct addrinfo *it = addresses; it; it = it->ai_next) {
        if (weir_address_is_own(it->ai_addr, it->ai_addrlen)) {
            doctor_add(doctor, DOCTOR_OK, "reaching", NULL,
                       "%s is this machine, whose ranks meet at a socket of their user", host);
            reached = true;
            break;
        }
        const uint64_t began = cli_now_ns();
        const int error = try_address(it);
        tell_address(doctor, it, port, error, (double)(cli_now_ns() - began), &reached);
    }
    freeaddrinfo(addresses);
    return reached;
}

void doctor_comm_own_address(char host[DOCTOR_HOST_SIZE])
{
    const struct sockaddr_in own = weir_address_of_host();
    name_of((const struct sockaddr *)&own, sizeof own, host, DOCTOR_HOST_SIZE);
}
