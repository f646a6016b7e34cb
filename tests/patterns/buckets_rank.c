// One rank of a program in several processes: `buckets_rank STEPS [FATAL [racy | auto]]` averages so many
// steps, and rank 1 ends with SIGKILL in the middle of step FATAL. If it is racy, every second step writes
// its gradients on a queue that does not wait for the step before; if it is auto, sizes are measured. Prints
// what came out, or why it did not.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patterns/buckets.h"

enum {
    PARAMETERS = 8,
    COUNT = 3000
};

// What the arguments say.
struct task {
    long steps;
    long fatal; // 0: none
    bool racy;
    bool measured;
};

static struct task read_task(int argc, char **argv)
{
    const char *way = argc > 3 ? argv[3] : "";
    return (struct task){.steps = argc > 1 ? strtol(argv[1], NULL, 10) : 1,
                         .fatal = argc > 2 ? strtol(argv[2], NULL, 10) : 0,
                         .racy = strcmp(way, "racy") == 0,
                         .measured = strcmp(way, "auto") == 0};
}

static void check(weir_status status)
{
    if (status < 0) {
        printf("%s\n", weir_last_error_text());
        exit(3);
    }
}

static weir_buckets *make(weir_comm *comm, bool measured)
{
    struct weir_bucket_parameter parameters[PARAMETERS];
    weir_buckets *buckets;
    for (int i = 0; i < PARAMETERS; i++)
        parameters[i] = (struct weir_bucket_parameter){.struct_size = sizeof *parameters,
                                                       .name = "weight",
                                                       .count = COUNT};
    check(weir_buckets_create(
        WEIR_PARAMS(weir_buckets, .comm = comm, .label = "grads", .element = WEIR_F32,
                    .parameters = parameters, .parameter_count = PARAMETERS,
                    .parameter_size = sizeof *parameters,
                    .cap_bytes = measured ? WEIR_BUCKETS_AUTO : 2u * COUNT * sizeof(float)),
        &buckets));
    return buckets;
}

static void step(weir_buckets *buckets, weir_queue *queue, float gradient, bool fatal)
{
    struct weir_bucket_view view;
    check(weir_buckets_begin(buckets, true));
    for (uint32_t i = 0; i < PARAMETERS; i++) {
        if (fatal && i == PARAMETERS / 2)
            raise(SIGKILL);
        check(weir_buckets_get_view(buckets, i, &view));
        check(weir_queue_fill(queue, view.buffer, view.offset, view.size, &gradient, 4));
        check(weir_buckets_ready(buckets, i, queue));
    }
    check(weir_buckets_finish(buckets, queue));
}

// Every second step is on `other`.
static float run(weir_comm *comm, weir_queue *queue, weir_queue *other, const struct task *task)
{
    weir_buckets *buckets = make(comm, task->measured);
    struct weir_bucket_view view;
    const uint32_t rank = weir_comm_rank(comm);
    float last = 0;
    for (long i = 1; i <= task->steps; i++)
        step(buckets, i % 2 ? queue : other, (float)(rank + 1) * (float)i,
             i == task->fatal && rank == 1);
    check(weir_buckets_get_view(buckets, PARAMETERS - 1, &view));
    check(weir_download(queue, &last, view.buffer, view.offset + view.size - 4, 4));
    weir_buckets_destroy(&buckets);
    return last;
}

int main(int argc, char **argv)
{
    const struct task task = read_task(argc, argv);
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_queue *other;
    weir_comm *comm;
    check(weir_open(NULL, &runtime));
    check(weir_device_open(runtime, NULL, &device));
    check(weir_queue_create(device, NULL, &queue));
    check(weir_queue_create(device, NULL, &other));
    check(weir_comm_create(device, WEIR_PARAMS(weir_comm, .label = "ranks"), &comm));
    const float last = run(comm, queue, task.racy ? other : queue, &task);
    printf("rank %u of %u: %g\n", weir_comm_rank(comm), weir_comm_count(comm), (double)last);
    weir_comm_destroy(&comm), weir_queue_destroy(&other), weir_queue_destroy(&queue);
    check(weir_device_close(&device));
    check(weir_close(&runtime));
    return 0;
}
