#include <stdio.h>
#include <weir/weir.h>

#include "docs/first/scale.h" // made from scale.cl by weir_kernels

enum {
    PARTS = 4,
    COUNT = 1 << 16, // numbers of a part
    BYTES = COUNT * sizeof(float)
};

int main(void)
{
    const struct weir_extent part = {COUNT, 1, 1};
    const size_t size = PARTS * BYTES;
    weir_device *device;
    weir_queue *copy, *compute;
    weir_kernel *scale;
    weir_buffer *host, *in, *out;
    float *numbers, result;

    WEIR_CHECK(weir_device_open(NULL, NULL, &device)); // as WEIR_CONFIG or the default says
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "copy"), &copy));
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "compute"), &compute));
    WEIR_CHECK(weir_kernel_load(device, &scale_kernels, "scale", &scale));
    WEIR_CHECK(weir_buffer_pair(device, size, &in, &host));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = size), &out));

    WEIR_CHECK(weir_host_whole(host, WEIR_ACCESS_WRITE, &numbers));
    for (int i = 0; i < PARTS * COUNT; i++)
        numbers[i] = (float)i;
    WEIR_CHECK(weir_host_whole_end(host, WEIR_ACCESS_WRITE));

    for (size_t at = 0; at < size; at += BYTES) {
        WEIR_CHECK(weir_queue_copy(copy, in, at, host, at, BYTES));
        WEIR_CHECK(weir_queue_after(compute, copy)); // the next part is copied meanwhile
        WEIR_CHECK(weir_queue_launch_global(compute, scale, part, weir_in(in, at, BYTES),
                                            weir_out(out, at, BYTES), 2.0f));
    }
    WEIR_CHECK(weir_download(compute, &result, out, 1000 * sizeof result, sizeof result)); // blocks
    printf("1000 * 2 = %g\n", (double)result);

    weir_buffer_destroy(&host), weir_buffer_destroy(&in), weir_buffer_destroy(&out);
    weir_queue_destroy(&copy), weir_queue_destroy(&compute), weir_kernel_destroy(&scale);
    WEIR_CHECK(weir_device_close(&device));
    return 0;
}
