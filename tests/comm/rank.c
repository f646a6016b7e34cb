// One rank of a program in several processes: `rank STEPS [FATAL [HOW]]` reduces STEPS times, and before
// step FATAL rank 1 ends with SIGKILL; or, where HOW is "stop", stops itself; or leaves this step's call out ("skip"),
// makes it with another count ("count") or makes another one ("kind"); or, where HOW is the path of a FIFO,
// waits until something is written there. Where HOW is "shrink", the others go on without the rank that was
// killed. Prints what came out, or why it did not. With FATAL the ranks meet first, with time to start: what WEIR_COMM_TIMEOUT
// says is then the collectives' alone.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

#include "tests/comm/local_device.h"

enum {
    N = 5000
};

static float numbers[N];

static void check(weir_status status)
{
    if (status < 0) {
        printf("%s\n", weir_last_error_text());
        fflush(stdout);
        _Exit(3); // as it is: a sanitizer would tell of the library's threads
    }
}

static void misbehave(const char *how)
{
    char byte;
    if (strcmp(how, "kill") == 0 || strcmp(how, "shrink") == 0)
        raise(SIGKILL);
    else if (strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    else {
        FILE *gate = fopen(how, "r");
        if (!gate || fread(&byte, 1, 1, gate) != 1)
            exit(4);
        fclose(gate);
    }
}

// One step, in which rank 1 does `how`.
static weir_status call(weir_queue *queue, weir_comm *comm, weir_buffer *buffer, const char *how)
{
    const char *own = weir_comm_rank(comm) == 1 ? how : "";
    if (strcmp(own, "skip") == 0)
        return WEIR_OK;
    if (strcmp(own, "kind") == 0)
        return weir_queue_broadcast(queue, comm, buffer, 0, buffer, 0, N, WEIR_F32, 0);
    if (strcmp(own, "count") == 0)
        return weir_queue_all_reduce(queue, comm, buffer, 0, buffer, 0, N - 1, WEIR_F32, WEIR_SUM);
    if (own[0])
        misbehave(own);
    return weir_queue_all_reduce(queue, comm, buffer, 0, buffer, 0, N, WEIR_F32, WEIR_SUM);
}

static void run(weir_queue *queue, weir_comm *comm, weir_buffer *buffer, long steps, long fatal,
                const char *how);

// From the beginning, with the ranks that are left.
static void go_on(weir_queue *queue, weir_comm *comm, weir_buffer *buffer, long steps)
{
    weir_comm *left;
    check(weir_queue_recover(queue));
    check(weir_comm_shrink(comm, "left", &left));
    run(queue, left, buffer, steps, 0, "");
    weir_comm_destroy(&left);
}

// An engine completes calls that differ; the ranks learn of it soon after.
static void await_error(weir_comm *comm)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int i = 0; i < 10000 && weir_comm_error(comm) == WEIR_OK; i++)
        nanosleep(&pause, NULL);
    check(weir_comm_error(comm));
}

// Each step multiplies by the count of ranks.
static void run(weir_queue *queue, weir_comm *comm, weir_buffer *buffer, long steps, long fatal,
                const char *how)
{
    check(weir_upload(queue, buffer, 0, numbers, sizeof numbers));
    for (long step = 1; step <= steps; step++) {
        weir_status status = call(queue, comm, buffer, step == fatal ? how : "");
        if (status == WEIR_OK)
            status = weir_queue_sync(queue, WEIR_FOREVER);
        if (status < 0 && strcmp(how, "shrink") == 0) {
            go_on(queue, comm, buffer, steps);
            return;
        }
        check(status);
        if (step == fatal && (strcmp(how, "count") == 0 || strcmp(how, "kind") == 0))
            await_error(comm);
    }
    check(weir_download(queue, numbers, buffer, 0, sizeof numbers));
    printf("rank %u of %u: %g\n", weir_comm_rank(comm), weir_comm_count(comm),
           (double)numbers[N - 1]);
}

int main(int argc, char **argv)
{
    const struct weir_comm_params params = {.struct_size = sizeof params, .label = "grads"};
    const struct weir_comm_params patient = {.struct_size = sizeof patient,
                                             .label = "meeting",
                                             .timeout_ns = UINT64_C(100000000000)};
    const struct weir_buffer_params memory = {.struct_size = sizeof memory, .size = sizeof numbers};
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    weir_comm *meeting = NULL;
    weir_comm *comm;
    for (int i = 0; i < N; i++)
        numbers[i] = 1;
    check(weir_open(NULL, &runtime));
    check(local_device_open(runtime, &device));
    check(weir_queue_create(device, NULL, &queue));
    check(weir_buffer_create(device, &memory, &buffer));
    if (argc > 2)
        check(weir_comm_create(device, &patient, &meeting));
    check(weir_comm_create(device, &params, &comm));
    run(queue, comm, buffer, argc > 1 ? strtol(argv[1], NULL, 10) : 1,
        argc > 2 ? strtol(argv[2], NULL, 10) : 0, argc > 3 ? argv[3] : "kill");
    weir_comm_destroy(&comm), weir_comm_destroy(&meeting), weir_buffer_destroy(&buffer), weir_queue_destroy(&queue);
    check(weir_device_close(&device));
    check(weir_close(&runtime));
    return 0;
}
