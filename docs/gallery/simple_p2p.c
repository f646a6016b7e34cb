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
    weir_buffer *memory, *host;
    weir_buffer *bridge; // host memory, the same on both sides
};

static void side_open(struct side *side, size_t which)
{
    WEIR_CHECK(weir_device_open_index(NULL, which, &side->device));
    WEIR_CHECK(weir_queue_create(side->device, NULL, &side->queue));
    WEIR_CHECK(weir_buffer_pair(side->device, BYTES, &side->memory, &side->host));
}

static void side_bridge(struct side *side, int *shared)
{
    const struct weir_wrap_params params = {.struct_size = sizeof params,
                                            .pointer = shared,
                                            .size = BYTES};
    WEIR_CHECK(weir_buffer_wrap(side->device, &params, &side->bridge));
}

static void side_close(struct side *side)
{
    weir_queue_destroy(&side->queue), weir_buffer_destroy(&side->host);
    weir_buffer_destroy(&side->memory), weir_buffer_destroy(&side->bridge);
    WEIR_CHECK(weir_device_close(&side->device));
}

static void copy_over(const struct side *from, const struct side *to)
{
    weir_buffer *landing = from->bridge ? from->bridge : to->memory;
    WEIR_CHECK(weir_queue_copy(from->queue, landing, 0, from->memory, 0, BYTES));
    WEIR_CHECK(weir_queue_after(to->queue, from->queue));
    if (to->bridge)
        WEIR_CHECK(weir_queue_copy(to->queue, to->memory, 0, to->bridge, 0, BYTES));
}

int main(void)
{
    const struct weir_extent all = {COUNT, 1, 1};
    weir_kernel *twice;
    static int shared[COUNT];
    struct side first = {0}, second = {0};
    int *numbers;
    unsigned wrong = 0;

    side_open(&first, 0), side_open(&second, 1);
    if (!weir_device_can_peer(first.device, second.device))
        side_bridge(&first, shared), side_bridge(&second, shared);
    WEIR_CHECK(weir_kernel_load(second.device, &simple_p2p_kernels, "twice", &twice));
    WEIR_CHECK(weir_host_whole(first.host, WEIR_ACCESS_WRITE, &numbers));
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
    WEIR_CHECK(weir_host_whole_end(first.host, WEIR_ACCESS_WRITE));

    WEIR_CHECK(weir_queue_copy(first.queue, first.memory, 0, first.host, 0, BYTES));
    copy_over(&first, &second);
    WEIR_CHECK(weir_queue_launch_global(second.queue, twice, all, weir_whole_inout(second.memory)));
    copy_over(&second, &first);
    WEIR_CHECK(weir_queue_copy(first.queue, first.host, 0, first.memory, 0, BYTES));
    WEIR_CHECK(weir_queue_sync(first.queue, WEIR_FOREVER));

    WEIR_CHECK(weir_host_whole(first.host, WEIR_ACCESS_READ, &numbers));
    for (int i = 0; i < COUNT; i++)
        wrong += numbers[i] != 2 * i;
    WEIR_CHECK(weir_host_whole_end(first.host, WEIR_ACCESS_READ));
    printf("over two devices and back, %u wrong\n", wrong);

    weir_kernel_destroy(&twice);
    side_close(&first), side_close(&second);
    return wrong != 0;
}
