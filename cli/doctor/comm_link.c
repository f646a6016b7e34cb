// Two ranks, one on each machine, that meet as ranks of any program do, through the transport `local`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/clock.h"
#include "cli/doctor/comm.h"

enum {
    SMALL_TIMES = 100,
    LARGE_TIMES = 4,
    LARGE = 4 << 20 // elements
};

struct link {
    struct doctor *doctor;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    weir_comm *comm;
};

// Splits "HOST:PORT", "[HOST]:PORT" and "PORT".
static bool split(const char *text, char *host, size_t size, const char **out_port)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    const char *begin = text;
    *out_port = colon ? colon + 1 : text;
    if (length > 1 && text[0] == '[' && text[length - 1] == ']') {
        begin++;
        length -= 2;
    }
    if (length >= size || (*out_port)[0] == '\0' ||
        (*out_port)[strspn(*out_port, "0123456789")] != '\0')
        return false;
    snprintf(host, size, "%.*s", (int)length, begin);
    return true;
}

static weir_status create(struct link *link, const struct doctor_comm *comm, const char *host,
                          const char *port)
{
    char rendezvous[320];
    snprintf(rendezvous, sizeof rendezvous, strchr(host, ':') ? "tcp://[%s]:%s" : "tcp://%s:%s",
             host, port);
    const struct weir_comm_params params = {
        .struct_size = sizeof params,
        .label = "doctor",
        .rank = comm->connect ? 1 : 0,
        .count = 2,
        .rendezvous = rendezvous,
        .timeout_ns = comm->timeout * UINT64_C(1000000000),
    };
    const struct weir_buffer_params memory = {.struct_size = sizeof memory,
                                              .size = LARGE * sizeof(int32_t),
                                              .placement = WEIR_PLACE_HOST};
    weir_status status = doctor_comm_open(link->doctor, "local", &link->runtime);
    if (status == WEIR_OK)
        status = (weir_device_open)(link->runtime, NULL, &link->device);
    if (status == WEIR_OK)
        status = weir_queue_create(link->device, NULL, &link->queue);
    if (status == WEIR_OK)
        status = weir_buffer_create(link->device, &memory, &link->buffer);
    return status == WEIR_OK ? weir_comm_create(link->device, &params, &link->comm) : status;
}

static weir_status time_reduce(const struct link *link, size_t count, int times, double *out_ns)
{
    const uint64_t began = cli_now_ns();
    for (int i = 0; i < times; i++) {
        weir_status status = weir_queue_all_reduce(link->queue, link->comm, link->buffer, 0,
                                                   link->buffer, 0, count, WEIR_I32, WEIR_MAXIMUM);
        if (status < 0)
            return status;
    }
    const weir_status status = weir_queue_sync(link->queue, WEIR_FOREVER);
    *out_ns = (double)(cli_now_ns() - began) / times;
    return status;
}

// Each rank's number, of which both get the larger one.
static weir_status exchange(const struct link *link, double *out_small_ns, double *out_large_ns,
                            int32_t *out_value)
{
    const int32_t own = (int32_t)weir_comm_rank(link->comm) + 1;
    weir_status status =
        weir_queue_fill(link->queue, link->buffer, 0, LARGE * sizeof own, &own, sizeof own);
    if (status == WEIR_OK)
        status = time_reduce(link, 1, SMALL_TIMES, out_small_ns);
    if (status == WEIR_OK)
        status = time_reduce(link, LARGE, LARGE_TIMES, out_large_ns);
    if (status == WEIR_OK)
        status = weir_download(link->queue, out_value, link->buffer, (LARGE - 1) * sizeof own,
                               sizeof own);
    return status;
}

static void tell(const struct link *link)
{
    char small[WEIR_TEXT_QUANTITY_SIZE];
    char large[WEIR_TEXT_QUANTITY_SIZE];
    double small_ns = 0;
    double large_ns = 0;
    int32_t value = 0;
    if (exchange(link, &small_ns, &large_ns, &value) < 0) {
        doctor_add_error(link->doctor, "exchange",
                         "let the network pass connections between the two machines that last");
        return;
    }
    if (value != 2)
        doctor_add(link->doctor, DOCTOR_PROBLEM, "exchange",
                   "let both machines run the same version of weir",
                   "the larger one of 1 and 2 came out as %d", (int)value);
    else
        doctor_add(link->doctor, DOCTOR_OK, "exchange", NULL,
                   "an all-reduce of 4 bytes takes %s, one of 16 MiB %s, %.2f GB/s",
                   weir_text_duration(small, small_ns), weir_text_duration(large, large_ns),
                   LARGE * sizeof value / large_ns);
}

static void meet(struct link *link, const struct doctor_comm *comm, const char *host,
                 const char *port)
{
    const weir_status status = create(link, comm, host, port);
    if (status == WEIR_ERROR_UNSUPPORTED) {
        // They have met, and know that no host memory goes from one to the other.
        doctor_add(link->doctor, DOCTOR_OK, "meeting", NULL,
                   "this machine is rank %d of 2, reaches the other one both ways, and has the "
                   "same secret; NCCL carries device memory between them, and MPI the host's",
                   comm->connect ? 1 : 0);
        return;
    }
    if (status < 0) {
        doctor_add_error(link->doctor, "meeting",
                         "let the firewalls of both machines pass connections to all their ports, "
                         "for ranks listen at ports of their own once they have met");
        return;
    }
    doctor_add(link->doctor, DOCTOR_OK, "meeting", NULL,
               "this machine is rank %u of 2, and reaches the other one both ways",
               (unsigned)weir_comm_rank(link->comm));
    tell(link);
}

void doctor_comm_link(struct doctor *doctor, const struct doctor_comm *comm)
{
    struct link link = {.doctor = doctor};
    char host[DOCTOR_HOST_SIZE];
    const char *port;
    if (!split(comm->connect ? comm->connect : comm->listen, host, sizeof host, &port) ||
        (comm->connect && !host[0])) {
        doctor_add(doctor, DOCTOR_PROBLEM, "meeting",
                   comm->connect ? "name a host and a port, such as node1:29500"
                                 : "name a port, such as 29500, or HOST:PORT",
                   "'%s' is no place to meet", comm->connect ? comm->connect : comm->listen);
        return;
    }
    if (!host[0])
        doctor_comm_own_address(host);
    if (comm->listen)
        cli_note("waits at %s; on the other machine run weir doctor comm --connect %s:%s, with the "
                 "same WEIR_COMM_SECRET",
                 comm->listen, host, port);
    if (comm->listen || doctor_comm_reach(doctor, comm, host, port))
        meet(&link, comm, host, port);
    weir_buffer_destroy(&link.buffer);
    weir_queue_destroy(&link.queue);
    weir_comm_destroy(&link.comm);
    (void)weir_device_close(&link.device);
    (void)weir_close(&link.runtime);
}
