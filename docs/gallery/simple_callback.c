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

static weir_status check(void *user)
{
    struct worker *worker = user;
    const int *numbers;
    WEIR_CHECK(weir_host_whole(worker->host, WEIR_ACCESS_READ, &numbers));
    for (int i = 0; i < COUNT; i++)
        worker->wrong += numbers[i] != 2 * i;
    WEIR_CHECK(weir_host_whole_end(worker->host, WEIR_ACCESS_READ));
    return worker->wrong ? WEIR_ERROR_HOST_CALL : WEIR_OK; // an error fails the queue
}

static void submit(struct worker *w, weir_device *device, weir_kernel *twice)
{
    const struct weir_extent all = {COUNT, 1, 1};
    int *numbers;
    WEIR_CHECK(weir_queue_create(device, NULL, &w->queue));
    WEIR_CHECK(weir_buffer_pair(device, BYTES, &w->memory, &w->host));
    WEIR_CHECK(weir_host_whole(w->host, WEIR_ACCESS_WRITE, &numbers));
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
    WEIR_CHECK(weir_host_whole_end(w->host, WEIR_ACCESS_WRITE));
    WEIR_CHECK(weir_queue_copy(w->queue, w->memory, 0, w->host, 0, BYTES));
    WEIR_CHECK(weir_queue_launch_global(w->queue, twice, all, weir_whole_inout(w->memory)));
    WEIR_CHECK(weir_queue_copy(w->queue, w->host, 0, w->memory, 0, BYTES));
    WEIR_CHECK(weir_queue_host_call(w->queue, check, w));
}

static unsigned finish(struct worker *w)
{
    WEIR_CHECK(weir_queue_sync(w->queue, WEIR_FOREVER));
    weir_queue_destroy(&w->queue), weir_buffer_destroy(&w->host), weir_buffer_destroy(&w->memory);
    return w->wrong;
}

int main(void)
{
    weir_device *device;
    weir_kernel *twice;
    struct worker workers[WORKERS] = {{0}};
    unsigned wrong = 0;

    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    WEIR_CHECK(weir_kernel_load(device, &simple_callback_kernels, "twice", &twice));
    for (int i = 0; i < WORKERS; i++)
        submit(&workers[i], device, twice);
    for (int i = 0; i < WORKERS; i++)
        wrong += finish(&workers[i]);
    printf("%d workers, %u wrong\n", WORKERS, wrong);

    weir_kernel_destroy(&twice), WEIR_CHECK(weir_device_close(&device));
    return wrong != 0;
}
