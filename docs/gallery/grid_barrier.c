// Many steps in one launch: all blocks wait for each other after each.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#include "docs/gallery/grid_barrier_kernels.h"

enum {
    COUNT = 1 << 14,
    STEPS = 16,
    BLOCK = 256
};

static void relax_here(float *a)
{
    static float b[COUNT];
    for (unsigned step = 0; step < STEPS; step++) {
        memcpy(b, a, sizeof b);
        for (unsigned i = 0; i < COUNT; i++)
            a[i] = 0.5f * (b[i > 0 ? i - 1 : 0] + b[i + 1 < COUNT ? i + 1 : i]);
    }
}

int main(void)
{
    static float numbers[COUNT], expected[COUNT];
    const struct weir_extent block = weir_dim(BLOCK, 1, 1);
    unsigned wrong = 0;
    uint32_t blocks;
    weir_device *device;
    weir_queue *queue;
    weir_kernel *relax;
    weir_buffer *a, *b;
    for (int i = 0; i < COUNT; i++)
        expected[i] = numbers[i] = (float)(i * 37 % 101);
    relax_here(expected);

    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, NULL, &queue));
    WEIR_CHECK(weir_kernel_load(device, &grid_barrier_kernels, "relax", &relax));
    WEIR_CHECK(weir_kernel_cooperative_blocks(relax, block, 0, &blocks));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = sizeof numbers), &a));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = sizeof numbers), &b));

    WEIR_CHECK(weir_upload(queue, a, 0, numbers, sizeof numbers));
    const struct weir_extent grid = {blocks, 1, 1};
    WEIR_CHECK(weir_queue_launch_cooperative(queue, relax, grid, block, weir_whole_inout(a),
                                             weir_whole_inout(b), COUNT, STEPS));
    WEIR_CHECK(weir_download(queue, numbers, a, 0, sizeof numbers));
    for (int i = 0; i < COUNT; i++)
        wrong += !(fabsf(numbers[i] - expected[i]) < 1e-3f);
    printf("%d steps in one launch, %u wrong\n", STEPS, wrong);

    weir_buffer_destroy(&a), weir_buffer_destroy(&b);
    weir_queue_destroy(&queue), weir_kernel_destroy(&relax);
    WEIR_CHECK(weir_device_close(&device));
    return wrong != 0;
}
