// NOLINTNEXTLINE(bugprone-reserved-identifier): for getaddrinfo_a() and IFF_UP
#define _GNU_SOURCE
#include "base/lookup.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define NS_PER_S UINT64_C(1000000000)

bool weir_address_split(const char *text, char *host, size_t size, const char **out_port)
{
    const char *colon = strrchr(text, ':');
    const bool bracketed = text[0] == '[';
    const size_t length = colon ? (size_t)(colon - text) : 0;
    char *end = NULL;
    *out_port = colon ? colon + 1 : text;
    if ((*out_port)[0] < '1' || (*out_port)[0] > '9' || strtol(*out_port, &end, 10) > UINT16_MAX ||
        *end || length >= size || (bracketed && (length < 2 || text[length - 1] != ']')))
        return false;
    snprintf(host, size, "%.*s", (int)length - 2 * bracketed, text + bracketed);
    return true;
}

struct question {
    struct gaicb request;
    struct addrinfo hints;
    char names[]; // of the host, and of the service
};

// EAI_INPROGRESS at the deadline.
static int wait_for(const struct question *question, uint64_t deadline_ns)
{
    const struct gaicb *const requests[] = {&question->request};
    for (;;) {
        const int error = gai_error((struct gaicb *)(uintptr_t)&question->request);
        const uint64_t left_ns = weir_clock_left(deadline_ns);
        if (error != EAI_INPROGRESS || left_ns == 0)
            return error;
        const struct timespec wait = weir_clock_timespec(left_ns < NS_PER_S ? left_ns : NS_PER_S);
        (void)gai_suspend(requests, 1, &wait);
    }
}

static struct question *ask(const char *host, const char *service)
{
    const size_t host_size = strlen(host) + 1, service_size = strlen(service) + 1;
    struct question *question = calloc(1, sizeof *question + host_size + service_size);
    if (!question)
        return NULL;
    question->hints.ai_socktype = SOCK_STREAM;
    question->request.ar_request = &question->hints;
    question->request.ar_name = memcpy(question->names, host, host_size);
    question->request.ar_service = memcpy(question->names + host_size, service, service_size);
    return question;
}

// A question that cannot be taken back keeps its memory.
const char *weir_lookup(const char *host, const char *service, uint64_t deadline_ns,
                        struct addrinfo **out_found)
{
    const struct addrinfo number = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    const char *known = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    *out_found = NULL;
    if (getaddrinfo(known, service, &number, out_found) == 0)
        return NULL;
    struct question *question = ask(host, service);
    struct gaicb *requests[] = {question ? &question->request : NULL};
    if (!question)
        return "out of memory";
    int error = getaddrinfo_a(GAI_NOWAIT, requests, 1, NULL);
    if (error == 0)
        error = wait_for(question, deadline_ns);
    if (error == EAI_INPROGRESS && gai_cancel(&question->request) == EAI_NOTCANCELED)
        return "the name service has not answered in time";
    if (error == 0)
        *out_found = question->request.ar_result;
    free(question);
    return error == 0                ? NULL
           : error == EAI_INPROGRESS ? "the name service has not answered in time"
                                     : gai_strerror(error);
}

// A socket can be bound to addresses of this machine only.
bool weir_address_is_own(const struct sockaddr *address, socklen_t size)
{
    struct sockaddr_storage free_port;
    if (size > sizeof free_port)
        return false;
    memcpy(&free_port, address, size);
    if (free_port.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&free_port)->sin6_port = 0;
    else
        ((struct sockaddr_in *)&free_port)->sin_port = 0;
    const int probe = socket(free_port.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool own = probe >= 0 && bind(probe, (struct sockaddr *)&free_port, size) == 0;
    if (probe >= 0)
        close(probe);
    return own;
}

static bool is_public(const struct ifaddrs *each)
{
    return each->ifa_addr && each->ifa_addr->sa_family == AF_INET && each->ifa_flags & IFF_UP &&
           !(each->ifa_flags & IFF_LOOPBACK);
}

struct sockaddr_in weir_address_of_host(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0)
        return address;
    const struct ifaddrs *each = list;
    while (each && !is_public(each))
        each = each->ifa_next;
    if (each)
        memcpy(&address, each->ifa_addr, sizeof address);
    address.sin_port = 0;
    freeifaddrs(list);
    return address;
}
