// For sim_run_test.sh: 16 MiB in chunks, each copied to the device, worked on and copied back on a queue.
//
//     chunked depth|breadth   submits a chunk after the other, or a step after the other
//     chunked waits           the first, and each chunk waits for the one before it, needlessly
//     chunked fail            ends with 7
//
// After it, --chunks N and --queues N, a power of two up to 64; without them, 4, and as many queues
// as chunks. --turns N, likewise, does all of it so often.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"

enum {
    MOST = 64,
    BYTES = 16 << 20,
    BLOCKS = 256,
    STEPS = 3,
};

struct work {
    int chunks;
    int queue_count;
    int turns;
    weir_queue *queues[MOST];
    weir_buffer *host;
    weir_buffer *memory;
    weir_kernel *kernel;
};

static void begin(struct work *work, weir_device *device)
{
    const struct weir_queue_params queue = {.struct_size = sizeof queue, .label = "chunk"};
    WEIR_CHECK(weir_buffer_pair(device, BYTES, &work->memory, &work->host));
    WEIR_CHECK(weir_kernel_load(device, &conformance_kernels, "spin", &work->kernel));
    for (int i = 0; i < work->queue_count; i++)
        WEIR_CHECK(weir_queue_create(device, &queue, &work->queues[i]));
}

static void submit(struct work *work, int chunk, int step)
{
    weir_queue *queue = work->queues[chunk % work->queue_count];
    const size_t bytes = BYTES / (size_t)work->chunks;
    const size_t offset = (size_t)chunk * bytes;
    const uint32_t blocks = BLOCKS / (uint32_t)work->chunks;
    if (step == 0)
        WEIR_CHECK(weir_queue_copy(queue, work->memory, offset, work->host, offset, bytes));
    else if (step == 1)
        WEIR_CHECK(weir_queue_launch(queue, work->kernel, weir_dim(blocks, 1, 1), weir_dim(1, 1, 1),
                                     weir_out(work->memory, offset, 256), 1u, UINT64_C(1)));
    else
        WEIR_CHECK(weir_queue_copy(queue, work->host, offset, work->memory, offset, bytes));
}

static void wait_for_last(struct work *work, int chunk)
{
    struct weir_event event;
    WEIR_CHECK(weir_queue_record(work->queues[(chunk - 1) % work->queue_count], &event));
    WEIR_CHECK(weir_queue_wait(work->queues[chunk % work->queue_count], event));
}

static void submit_all(struct work *work, const char *order)
{
    const bool breadth = strcmp(order, "breadth") == 0;
    const int chunks = work->chunks;
    for (int i = 0; i < chunks * STEPS; i++) {
        if (strcmp(order, "waits") == 0 && i > 0 && i % STEPS == 0)
            wait_for_last(work, i / STEPS);
        submit(work, breadth ? i % chunks : i / STEPS, breadth ? i / chunks : i % STEPS);
    }
}

static void end(struct work *work)
{
    for (int i = 0; i < work->queue_count; i++)
        WEIR_CHECK(weir_queue_sync(work->queues[i], WEIR_FOREVER));
    for (int i = 0; i < work->queue_count; i++)
        weir_queue_destroy(&work->queues[i]);
    weir_kernel_destroy(&work->kernel);
    weir_buffer_destroy(&work->memory);
    weir_buffer_destroy(&work->host);
}

static int count_of(const char *text)
{
    const long count = text ? strtol(text, NULL, 10) : 0;
    if (count < 1 || count > MOST || (count & (count - 1)) != 0) {
        fprintf(stderr, "chunked: %s is no power of two up to %d\n", text ? text : "nothing", MOST);
        exit(2);
    }
    return (int)count;
}

static void read_arguments(struct work *work, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        int *number = strncmp(argv[i], "--chunks", 8) == 0  ? &work->chunks
                      : strncmp(argv[i], "--turns", 7) == 0 ? &work->turns
                                                            : &work->queue_count;
        const char *equals = strchr(argv[i], '=');
        *number = count_of(equals ? equals + 1 : argv[++i]);
    }
    if (work->queue_count == 0)
        work->queue_count = work->chunks;
}

int main(int argc, char **argv)
{
    const char *order = argc > 1 ? argv[1] : "depth";
    weir_device *device;
    struct work work = {.chunks = 4, .turns = 1};
    read_arguments(&work, argc, argv);
    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    begin(&work, device);
    for (int i = 0; i < work.turns; i++)
        submit_all(&work, order);
    end(&work);
    WEIR_CHECK(weir_device_close(&device));
    printf("%d chunks\n", work.chunks);
    return strcmp(order, "fail") == 0 ? 7 : 0;
}
