// NOLINTNEXTLINE(bugprone-reserved-identifier): for getaddrinfo_a()
#define _GNU_SOURCE
#include "base/lookup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

#define NS_PER_S UINT64_C(1000000000)

struct question {
    struct gaicb request;
    struct addrinfo hints;
    char *host;
    char *service; // NULL: none
};

static void release(struct question *question)
{
    free(question->host);
    free(question->service);
    free(question);
}

// EAI_INPROGRESS at the deadline.
static int wait_for(const struct question *question, uint64_t deadline_ns)
{
    const struct gaicb *const requests[] = {&question->request};
    for (;;) {
        const int error = gai_error((struct gaicb *)(uintptr_t)&question->request);
        const uint64_t now_ns = weir_clock_now_ns();
        if (error != EAI_INPROGRESS || now_ns >= deadline_ns)
            return error;
        const uint64_t left_ns = deadline_ns - now_ns;
        const uint64_t wait_ns = left_ns < NS_PER_S ? left_ns : NS_PER_S;
        const struct timespec wait = {.tv_sec = (time_t)(wait_ns / NS_PER_S),
                                      .tv_nsec = (long)(wait_ns % NS_PER_S)};
        (void)gai_suspend(requests, 1, &wait);
    }
}

static struct question *ask(const char *host, const char *service)
{
    struct question *question = calloc(1, sizeof *question);
    if (!question)
        return NULL;
    question->host = strdup(host);
    question->service = service ? strdup(service) : NULL;
    question->hints.ai_socktype = SOCK_STREAM;
    question->request.ar_name = question->host;
    question->request.ar_service = question->service;
    question->request.ar_request = &question->hints;
    if (question->host && (question->service || !service))
        return question;
    release(question);
    return NULL;
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
    release(question);
    return error == 0                ? NULL
           : error == EAI_INPROGRESS ? "the name service has not answered in time"
                                     : gai_strerror(error);
}
