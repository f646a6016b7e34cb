// A program with one queue and its device code as text, for builds without Bazel.
#include <stdio.h>
#include <weir/weir.h>

static const char source[] =
    "__kernel void scale(__global const float *in, __global float *out, float factor)\n"
    "{\n"
    "    uint i = (uint)get_global_id(0);\n"
    "    out[i] = in[i] * factor;\n"
    "}\n";

int main(void)
{
    float numbers[1024] = {[1000] = 1000};
    const size_t bytes = sizeof numbers;
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_kernel *scale;
    weir_buffer *in, *out;

    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, NULL, &queue));
    WEIR_CHECK(weir_program_create(device, WEIR_PARAMS(weir_program, .source = source), &program));
    WEIR_CHECK(weir_kernel_create(program, "scale", &scale));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = bytes), &in));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = bytes), &out));

    WEIR_CHECK(weir_upload(queue, in, 0, numbers, bytes));
    WEIR_CHECK(weir_queue_launch_global(queue, scale, weir_dim(1024, 1, 1), weir_whole_in(in),
                                        weir_whole_out(out), 2.0f));
    WEIR_CHECK(weir_download(queue, numbers, out, 0, bytes));
    printf("1000 * 2 = %g on %s\n", (double)numbers[1000], weir_device_get_info(device)->name);

    weir_buffer_destroy(&in), weir_buffer_destroy(&out), weir_queue_destroy(&queue);
    weir_kernel_destroy(&scale), weir_program_destroy(&program);
    WEIR_CHECK(weir_device_close(&device));
    return 0;
}
