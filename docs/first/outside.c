// The README's first program with its device code as text, for builds without Bazel.
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

static const char source[] =
    "__kernel void scale(__global const float *in, __global float *out, float factor)\n"
    "{\n"
    "    uint i = (uint)get_global_id(0);\n"
    "    out[i] = in[i] * factor;\n"
    "}\n";

static void check(weir_status status)
{
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text()), exit(1);
}

int main(void)
{
    float numbers[1024] = {[1000] = 1000};
    const size_t bytes = sizeof numbers;
    const struct weir_program_params code = {.struct_size = sizeof code, .source = source};
    const struct weir_buffer_params memory = {.struct_size = sizeof memory, .size = bytes};
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_kernel *scale;
    weir_buffer *in, *out;

    check(weir_open(NULL, &runtime));
    check(weir_device_open(runtime, NULL, &device));
    check(weir_queue_create(device, NULL, &queue));
    check(weir_program_create(device, &code, &program));
    check(weir_kernel_create(program, "scale", &scale));
    check(weir_buffer_create(device, &memory, &in));
    check(weir_buffer_create(device, &memory, &out));

    check(weir_upload(queue, in, 0, numbers, bytes));
    check(weir_queue_launch(queue, scale, weir_dim(1024 / 64, 1, 1), weir_dim(64, 1, 1),
                            weir_in(in, 0, bytes), weir_out(out, 0, bytes), 2.0f));
    check(weir_download(queue, numbers, out, 0, bytes));
    printf("1000 * 2 = %g on %s\n", (double)numbers[1000], weir_device_get_info(device)->name);

    weir_buffer_destroy(&in), weir_buffer_destroy(&out), weir_queue_destroy(&queue);
    weir_kernel_destroy(&scale), weir_program_destroy(&program);
    check(weir_device_close(&device));
    check(weir_close(&runtime));
    return 0;
}
