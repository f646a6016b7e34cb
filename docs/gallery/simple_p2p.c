// To the first device, over to the second, work there, and back the same way.
#include <stdio.h>
#include <weir/weir.h>

#include "docs/gallery/simple_p2p_kernels.h"

enum {
    COUNT = 1 << 20,
    BYTES = COUNT * sizeof(int)
};

struct side {
    weir_device *device;
    weir_queue *queue;
    weir_buffer *memory;
    weir_buffer *bridge; // host memory, the same on both sides
};

static void side_open(struct side *side, weir_runtime *runtime, const char *which)
{
    WEIR_CHECK(weir_device_open(runtime, WEIR_PARAMS(weir_device, .select = which), &side->device));
    WEIR_CHECK(weir_queue_create(side->device, NULL, &side->queue));
    WEIR_CHECK(
        weir_buffer_create(side->device, WEIR_PARAMS(weir_buffer, .size = BYTES), &side->memory));
}

static void side_bridge(struct side *side, int *shared)
{
    WEIR_CHECK(weir_buffer_wrap(side->device,
                                WEIR_PARAMS(weir_wrap, .pointer = shared, .size = BYTES),
                                &side->bridge));
}

static void side_close(struct side *side)
{
    weir_queue_destroy(&side->queue);
    weir_buffer_destroy(&side->memory), weir_buffer_destroy(&side->bridge);
    WEIR_CHECK(weir_device_close(&side->device));
}

static int *begin(weir_buffer *buffer, weir_access access)
{
    void *pointer;
    WEIR_CHECK(weir_host_begin(buffer, 0, BYTES, access, &pointer));
    return pointer;
}

static void copy_over(const struct side *from, const struct side *to)
{
    struct weir_event there;
    weir_buffer *landing = from->bridge ? from->bridge : to->memory;
    WEIR_CHECK(weir_queue_copy(from->queue, landing, 0, from->memory, 0, BYTES));
    WEIR_CHECK(weir_queue_record(from->queue, &there));
    WEIR_CHECK(weir_queue_wait(to->queue, there));
    if (to->bridge)
        WEIR_CHECK(weir_queue_copy(to->queue, to->memory, 0, to->bridge, 0, BYTES));
}

int main(void)
{
    weir_runtime *runtime;
    weir_program *program;
    weir_kernel *twice;
    weir_buffer *host;
    static int shared[COUNT];
    struct side first = {0}, second = {0};
    unsigned wrong = 0;

    WEIR_CHECK(weir_open(NULL, &runtime));
    side_open(&first, runtime, "0");
    side_open(&second, runtime, "1");
    if (!weir_device_can_peer(first.device, second.device))
        side_bridge(&first, shared), side_bridge(&second, shared);
    WEIR_CHECK(weir_program_create(second.device,
                                   WEIR_PARAMS(weir_program, .bundle = &simple_p2p_kernels),
                                   &program));
    WEIR_CHECK(weir_kernel_create(program, "twice", &twice));
    WEIR_CHECK(
        weir_buffer_create(first.device,
                           WEIR_PARAMS(weir_buffer, .size = BYTES, .placement = WEIR_PLACE_HOST),
                           &host));
    int *numbers = begin(host, WEIR_ACCESS_WRITE);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
    WEIR_CHECK(weir_host_end(host, 0, BYTES, WEIR_ACCESS_WRITE));

    WEIR_CHECK(weir_queue_copy(first.queue, first.memory, 0, host, 0, BYTES));
    copy_over(&first, &second);
    WEIR_CHECK(weir_queue_launch_count(second.queue, twice, COUNT, weir_whole_inout(second.memory),
                                       COUNT));
    copy_over(&second, &first);
    WEIR_CHECK(weir_queue_copy(first.queue, host, 0, first.memory, 0, BYTES));
    WEIR_CHECK(weir_queue_sync(first.queue, WEIR_FOREVER));

    numbers = begin(host, WEIR_ACCESS_READ);
    for (int i = 0; i < COUNT; i++)
        wrong += numbers[i] != 2 * i;
    WEIR_CHECK(weir_host_end(host, 0, BYTES, WEIR_ACCESS_READ));
    printf("over two devices and back, %u wrong\n", wrong);

    weir_buffer_destroy(&host), weir_kernel_destroy(&twice), weir_program_destroy(&program);
    side_close(&first), side_close(&second);
    WEIR_CHECK(weir_close(&runtime));
    return wrong != 0;
}
