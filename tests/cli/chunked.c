// For sim_run_test.sh: four chunks of 4 MiB, each copied to the device, worked on and copied back on a
// queue of its own.
//
//     chunked depth|breadth   submits a chunk after the other, or a step after the other
//     chunked waits           the first, and each chunk waits for the one before it, needlessly
//     chunked fail            ends with 7
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"

enum {
    CHUNKS = 4,
    BYTES = 4 << 20,
    STEPS = 3,
};

static void check(weir_status status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s\n", weir_last_error_text());
    exit(3);
}

struct work {
    weir_queue *queues[CHUNKS];
    weir_buffer *host;
    weir_buffer *memory;
    weir_program *program;
    weir_kernel *kernel;
};

static void begin(struct work *work, weir_device *device)
{
    const struct weir_queue_params queue = {.struct_size = sizeof queue, .label = "chunk"};
    struct weir_buffer_params buffer = {.struct_size = sizeof buffer,
                                        .size = (size_t)CHUNKS * BYTES,
                                        .placement = WEIR_PLACE_HOST};
    const struct weir_bundle bundle = conformance_kernels;
    const struct weir_program_params program = {.struct_size = sizeof program, .bundle = &bundle};
    check(weir_buffer_create(device, &buffer, &work->host));
    buffer.placement = WEIR_PLACE_DEVICE;
    check(weir_buffer_create(device, &buffer, &work->memory));
    check(weir_program_create(device, &program, &work->program));
    check(weir_kernel_create(work->program, "spin", &work->kernel));
    for (int i = 0; i < CHUNKS; i++)
        check(weir_queue_create(device, &queue, &work->queues[i]));
}

static void submit(struct work *work, int chunk, int step)
{
    weir_queue *queue = work->queues[chunk];
    const size_t offset = (size_t)chunk * BYTES;
    if (step == 0)
        check(weir_queue_copy(queue, work->memory, offset, work->host, offset, BYTES));
    else if (step == 1)
        check(weir_queue_launch(queue, work->kernel, weir_dim(64, 1, 1), weir_dim(1, 1, 1),
                                weir_out(work->memory, offset, 256), 1u, UINT64_C(1)));
    else
        check(weir_queue_copy(queue, work->host, offset, work->memory, offset, BYTES));
}

static void wait_for_last(struct work *work, int chunk)
{
    struct weir_event event;
    check(weir_queue_record(work->queues[chunk - 1], &event));
    check(weir_queue_wait(work->queues[chunk], event));
}

static void submit_all(struct work *work, const char *order)
{
    const bool breadth = strcmp(order, "breadth") == 0;
    for (int i = 0; i < CHUNKS * STEPS; i++) {
        if (strcmp(order, "waits") == 0 && i > 0 && i % STEPS == 0)
            wait_for_last(work, i / STEPS);
        submit(work, breadth ? i % CHUNKS : i / STEPS, breadth ? i / CHUNKS : i % STEPS);
    }
}

static void end(struct work *work)
{
    for (int i = 0; i < CHUNKS; i++)
        check(weir_queue_sync(work->queues[i], WEIR_FOREVER));
    for (int i = 0; i < CHUNKS; i++)
        weir_queue_destroy(&work->queues[i]);
    weir_kernel_destroy(&work->kernel);
    weir_program_destroy(&work->program);
    weir_buffer_destroy(&work->memory);
    weir_buffer_destroy(&work->host);
}

int main(int argc, char **argv)
{
    const char *order = argc > 1 ? argv[1] : "depth";
    weir_runtime *runtime;
    weir_device *device;
    struct work work;
    check(weir_open(NULL, &runtime));
    check(weir_device_open(runtime, NULL, &device));
    begin(&work, device);
    submit_all(&work, order);
    end(&work);
    check(weir_device_close(&device));
    check(weir_close(&runtime));
    printf("%d chunks\n", CHUNKS);
    return strcmp(order, "fail") == 0 ? 7 : 0;
}
