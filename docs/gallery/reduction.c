// The sum of an array: one for each block, and then of these.
#include <stdio.h>
#include <weir/weir.h>

#include "docs/gallery/reduction_kernels.h"

enum {
    COUNT = 1 << 20,
    BLOCKS = 64,
    BLOCK = 256
};

static weir_buffer *buffer(weir_device *device, size_t count)
{
    weir_buffer *made;
    const size_t size = count * sizeof(unsigned);
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = size), &made));
    return made;
}

int main(void)
{
    static unsigned numbers[COUNT];
    const size_t shared = BLOCK * sizeof(unsigned);
    unsigned expected = 0, found;
    weir_device *device;
    weir_queue *queue;
    weir_kernel *sum;
    for (unsigned i = 0; i < COUNT; i++)
        expected += numbers[i] = i * 2654435761u;

    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, NULL, &queue));
    WEIR_CHECK(weir_kernel_load(device, &reduction_kernels, "sum", &sum));
    weir_buffer *in = buffer(device, COUNT), *parts = buffer(device, BLOCKS);
    weir_buffer *total = buffer(device, 1);

    WEIR_CHECK(weir_upload(queue, in, 0, numbers, sizeof numbers));
    WEIR_CHECK(weir_queue_launch(queue, sum, weir_dim(BLOCKS, 1, 1), weir_dim(BLOCK, 1, 1),
                                 weir_whole_in(in), weir_whole_out(parts), COUNT,
                                 weir_local(shared)));
    WEIR_CHECK(weir_queue_launch(queue, sum, weir_dim(1, 1, 1), weir_dim(BLOCK, 1, 1),
                                 weir_whole_in(parts), weir_whole_out(total), BLOCKS,
                                 weir_local(shared)));
    WEIR_CHECK(weir_download(queue, &found, total, 0, sizeof found));
    printf("the sum is %u, %d wrong\n", found, found != expected);

    weir_buffer_destroy(&in), weir_buffer_destroy(&parts), weir_buffer_destroy(&total);
    weir_queue_destroy(&queue), weir_kernel_destroy(&sum);
    WEIR_CHECK(weir_device_close(&device));
    return found != expected;
}
