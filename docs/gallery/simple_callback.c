// Four workers, whose results a function of the host checks as soon as they are there.
#include <stdio.h>
#include <weir/weir.h>

#include "docs/gallery/simple_callback_kernels.h"

enum {
    COUNT = 1 << 18,
    WORKERS = 4,
    BYTES = COUNT * sizeof(int)
};

struct worker {
    weir_queue *queue;
    weir_buffer *host, *memory;
    unsigned wrong;
};

static int *begin(weir_buffer *buffer, weir_access access)
{
    void *pointer;
    WEIR_CHECK(weir_host_begin(buffer, 0, BYTES, access, &pointer));
    return pointer;
}

static weir_status check(void *user)
{
    struct worker *worker = user;
    const int *numbers = begin(worker->host, WEIR_ACCESS_READ);
    for (int i = 0; i < COUNT; i++)
        worker->wrong += numbers[i] != 2 * i;
    WEIR_CHECK(weir_host_end(worker->host, 0, BYTES, WEIR_ACCESS_READ));
    return worker->wrong ? WEIR_ERROR_HOST_CALL : WEIR_OK; // an error fails the queue
}

static void submit(struct worker *worker, weir_device *device, weir_kernel *twice)
{
    WEIR_CHECK(weir_queue_create(device, NULL, &worker->queue));
    WEIR_CHECK(
        weir_buffer_create(device,
                           WEIR_PARAMS(weir_buffer, .size = BYTES, .placement = WEIR_PLACE_HOST),
                           &worker->host));
    WEIR_CHECK(
        weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = BYTES), &worker->memory));
    int *numbers = begin(worker->host, WEIR_ACCESS_WRITE);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
    WEIR_CHECK(weir_host_end(worker->host, 0, BYTES, WEIR_ACCESS_WRITE));
    WEIR_CHECK(weir_queue_copy(worker->queue, worker->memory, 0, worker->host, 0, BYTES));
    WEIR_CHECK(weir_queue_launch_count(worker->queue, twice, COUNT,
                                       weir_whole_inout(worker->memory), COUNT));
    WEIR_CHECK(weir_queue_copy(worker->queue, worker->host, 0, worker->memory, 0, BYTES));
    WEIR_CHECK(weir_queue_host_call(worker->queue, check, worker));
}

static unsigned finish(struct worker *worker)
{
    WEIR_CHECK(weir_queue_sync(worker->queue, WEIR_FOREVER));
    weir_buffer_destroy(&worker->host), weir_buffer_destroy(&worker->memory);
    weir_queue_destroy(&worker->queue);
    return worker->wrong;
}

int main(void)
{
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    weir_kernel *twice;
    struct worker workers[WORKERS] = {{0}};
    unsigned wrong = 0;

    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_program_create(device,
                                   WEIR_PARAMS(weir_program, .bundle = &simple_callback_kernels),
                                   &program));
    WEIR_CHECK(weir_kernel_create(program, "twice", &twice));
    for (int i = 0; i < WORKERS; i++)
        submit(&workers[i], device, twice);
    for (int i = 0; i < WORKERS; i++)
        wrong += finish(&workers[i]);
    printf("%d workers, %u wrong\n", WORKERS, wrong);

    weir_kernel_destroy(&twice), weir_program_destroy(&program);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return wrong != 0;
}
