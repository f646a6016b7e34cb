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
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *copy, *compute;
    weir_program *program;
    weir_kernel *scale;
    weir_buffer *host, *in, *out;
    const size_t size = PARTS * BYTES;
    void *memory;
    float result;

    WEIR_CHECK(weir_open(NULL, &runtime)); // the chain that WEIR_CONFIG or the default names
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "copy"), &copy));
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "compute"), &compute));
    WEIR_CHECK(
        weir_program_create(device, WEIR_PARAMS(weir_program, .bundle = &scale_kernels), &program));
    WEIR_CHECK(weir_kernel_create(program, "scale", &scale));
    WEIR_CHECK(weir_buffer_create(
        device, WEIR_PARAMS(weir_buffer, .size = size, .placement = WEIR_PLACE_HOST), &host));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = size), &in));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = size), &out));

    WEIR_CHECK(weir_host_begin(host, 0, size, WEIR_ACCESS_WRITE, &memory));
    for (int i = 0; i < PARTS * COUNT; i++)
        ((float *)memory)[i] = (float)i;
    WEIR_CHECK(weir_host_end(host, 0, size, WEIR_ACCESS_WRITE));

    for (size_t at = 0; at < size; at += BYTES) {
        struct weir_event copied;
        WEIR_CHECK(weir_queue_copy(copy, in, at, host, at, BYTES));
        WEIR_CHECK(weir_queue_record(copy, &copied));
        WEIR_CHECK(weir_queue_wait(compute, copied)); // the next part is copied meanwhile
        WEIR_CHECK(weir_queue_launch(compute, scale, weir_dim(COUNT / 64, 1, 1), weir_dim(64, 1, 1),
                                     weir_in(in, at, BYTES), weir_out(out, at, BYTES), 2.0f));
    }
    WEIR_CHECK(weir_download(compute, &result, out, 1000 * sizeof result, sizeof result)); // blocks
    printf("1000 * 2 = %g\n", (double)result);

    weir_buffer_destroy(&host), weir_buffer_destroy(&in), weir_buffer_destroy(&out);
    weir_queue_destroy(&copy), weir_queue_destroy(&compute);
    weir_kernel_destroy(&scale), weir_program_destroy(&program);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return 0;
}
