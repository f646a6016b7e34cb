// The same work in small blocks, and in blocks of the size that fills the device.
#include <stdio.h>
#include <weir/weir.h>

#include "docs/gallery/simple_occupancy_kernels.h"

enum {
    COUNT = 1 << 18,
    SMALL = 32
};

static unsigned run(weir_queue *queue, weir_kernel *square, weir_buffer *memory, uint32_t block)
{
    static int numbers[COUNT];
    struct weir_occupancy occupancy;
    unsigned wrong = 0;
    WEIR_CHECK(weir_kernel_occupancy(square, weir_dim(block, 1, 1), 0, &occupancy));
    printf("blocks of %u: %u to a compute unit, %u of %u work-items (0: not told)\n", block,
           occupancy.unit_blocks, occupancy.unit_items, occupancy.max_unit_items);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i % 1000;
    WEIR_CHECK(weir_upload(queue, memory, 0, numbers, sizeof numbers));
    WEIR_CHECK(weir_queue_launch(queue, square, weir_dim((COUNT + block - 1) / block, 1, 1),
                                 weir_dim(block, 1, 1), weir_whole_inout(memory), COUNT));
    WEIR_CHECK(weir_download(queue, numbers, memory, 0, sizeof numbers));
    for (int i = 0; i < COUNT; i++)
        wrong += numbers[i] != (i % 1000) * (i % 1000);
    return wrong;
}

int main(void)
{
    weir_device *device;
    weir_queue *queue;
    weir_kernel *square;
    weir_buffer *memory;
    uint32_t block;

    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, NULL, &queue));
    WEIR_CHECK(weir_kernel_load(device, &simple_occupancy_kernels, "square", &square));
    WEIR_CHECK(
        weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = COUNT * sizeof(int)), &memory));
    WEIR_CHECK(weir_kernel_suggest_block(square, 0, &block));

    unsigned wrong = run(queue, square, memory, SMALL);
    wrong += run(queue, square, memory, block);
    printf("both ways, %u wrong\n", wrong);

    weir_buffer_destroy(&memory), weir_queue_destroy(&queue), weir_kernel_destroy(&square);
    WEIR_CHECK(weir_device_close(&device));
    return wrong != 0;
}
