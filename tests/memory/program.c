// A small program for the commands that run one: each rank of those that it is told of, or one.
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

struct made {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    weir_comm *comm;
};

static weir_status count_call(void *user)
{
    ++*(int *)user;
    return WEIR_OK;
}

static weir_status open_all(struct made *made)
{
    weir_status status = weir_open(NULL, &made->runtime);
    if (status >= 0)
        status = weir_device_open(made->runtime, NULL, &made->device);
    if (status >= 0)
        status = weir_queue_create(made->device, NULL, &made->queue);
    if (status >= 0)
        status =
            weir_buffer_create(made->device, WEIR_PARAMS(weir_buffer, .size = 4096), &made->buffer);
    if (status >= 0 && getenv("RANK"))
        status = weir_comm_create(made->device, NULL, &made->comm);
    return status;
}

static weir_status work(struct made *made, int *calls)
{
    weir_region_push(made->runtime, "work", 1);
    weir_status status = weir_queue_fill(made->queue, made->buffer, 0, 4096, "\1", 1);
    for (int i = 0; i < 20 && status >= 0; i++)
        status = weir_queue_copy(made->queue, made->buffer, 0, made->buffer, 2048, 1024);
    if (status >= 0)
        status = weir_queue_host_call(made->queue, count_call, calls);
    if (status >= 0 && made->comm)
        status = weir_queue_all_reduce(made->queue, made->comm, made->buffer, 0, made->buffer, 0,
                                       16, WEIR_F32, WEIR_SUM);
    if (status >= 0)
        status = weir_queue_sync(made->queue, WEIR_S(20));
    weir_region_pop(made->runtime);
    return status;
}

int main(void)
{
    struct made made = {0};
    int calls = 0;
    weir_status status = open_all(&made);
    if (status >= 0)
        status = work(&made, &calls);
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text());
    weir_comm_destroy(&made.comm);
    weir_buffer_destroy(&made.buffer);
    weir_queue_destroy(&made.queue);
    if (made.device && weir_device_close(&made.device) < 0)
        status = WEIR_ERROR_SYSTEM;
    if (made.runtime && weir_close(&made.runtime) < 0) {
        fprintf(stderr, "%s\n", weir_last_error_text());
        status = WEIR_ERROR_SYSTEM;
    }
    return status < 0;
}
