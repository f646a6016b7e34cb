// A sum in one launch: every block sums a part, all blocks wait for each other, and the first one sums the
// parts. The program is made for every device that there is; on a device whose blocks cannot wait for
// each other the same kernel runs with one block.
#include <stdio.h>
#include <weir/weir.h>

enum {
    COUNT = 1 << 20,
    DEVICES_MOST = 8
};

static const char source[] =
    "uint sum_of_block(__local uint *scratch, uint value)\n"
    "{\n"
    "    uint lane = (uint)get_local_id(0), sum = 0;\n"
    "    scratch[lane] = value;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    for (uint i = 0; i < (uint)get_local_size(0); i++)\n"
    "        sum += scratch[i];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    return sum;\n"
    "}\n"
    "\n"
    "__kernel void sum(__global const uint *in, __global uint *parts, __global uint *out,\n"
    "                  __local uint *scratch, uint n)\n"
    "{\n"
    "    uint value = 0;\n"
    "    for (size_t i = get_global_id(0); i < n; i += get_global_size(0))\n"
    "        value += in[i];\n"
    "    value = sum_of_block(scratch, value);\n"
    "    if (get_local_id(0) == 0)\n"
    "        parts[get_group_id(0)] = value;\n"
    "\n"
    "    weir_grid_barrier(); // now all parts are there\n"
    "\n"
    "    if (get_group_id(0) != 0)\n"
    "        return;\n"
    "    value = 0;\n"
    "    for (size_t i = get_local_id(0); i < get_num_groups(0); i += get_local_size(0))\n"
    "        value += parts[i];\n"
    "    value = sum_of_block(scratch, value);\n"
    "    if (get_local_id(0) == 0)\n"
    "        out[0] = value;\n"
    "}\n";

static weir_buffer *make_buffer(weir_device *device, size_t size)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = size};
    weir_buffer *buffer;
    WEIR_CHECK(weir_buffer_create(device, &params, &buffer));
    return buffer;
}

// The kernel as the device has it tells the figures of this device; a launch finds it by the queue.
static uint32_t sum_on(weir_device *device, weir_kernel *kernel, const uint32_t *numbers)
{
    weir_kernel *here = weir_kernel_on(kernel, device);
    uint32_t items, blocks, sum = 0;
    weir_queue *queue;

    WEIR_CHECK(weir_kernel_suggest_block(here, 0, &items));
    const struct weir_extent block = weir_dim(items, 1, 1);
    const size_t scratch = items * sizeof sum;
    WEIR_CHECK(weir_kernel_cooperative_blocks(here, block, scratch, &blocks));

    WEIR_CHECK(weir_queue_create(device, NULL, &queue));
    weir_buffer *in = make_buffer(device, COUNT * sizeof sum);
    weir_buffer *parts = make_buffer(device, blocks * sizeof sum);
    weir_buffer *out = make_buffer(device, sizeof sum);
    WEIR_CHECK(weir_upload(queue, in, 0, numbers, COUNT * sizeof sum));
    WEIR_CHECK(weir_queue_launch_cooperative(queue, kernel, weir_dim(blocks, 1, 1), block,
                                             weir_in(in, 0, COUNT * sizeof sum),
                                             weir_inout(parts, 0, blocks * sizeof sum),
                                             weir_out(out, 0, sizeof sum), weir_local(scratch),
                                             (uint32_t)COUNT));
    WEIR_CHECK(weir_download(queue, &sum, out, 0, sizeof sum));
    printf("%s: %u blocks of %u work-items\n", weir_device_get_info(device)->name, blocks, items);

    weir_buffer_destroy(&in), weir_buffer_destroy(&parts), weir_buffer_destroy(&out);
    weir_queue_destroy(&queue);
    return sum;
}

int main(void)
{
    static uint32_t numbers[COUNT];
    uint32_t expected = 0, right = 0, count = 0;
    weir_runtime *runtime;
    weir_device *devices[DEVICES_MOST];
    weir_program *program;
    weir_kernel *kernel;

    WEIR_CHECK(weir_open(NULL, &runtime));
    for (; count < weir_device_count(runtime) && count < DEVICES_MOST; count++) {
        char index[16];
        snprintf(index, sizeof index, "%u", count);
        const struct weir_device_params which = {.struct_size = sizeof which, .select = index};
        WEIR_CHECK(weir_device_open(runtime, &which, &devices[count]));
    }
    for (uint32_t i = 0; i < COUNT; i++)
        expected += numbers[i] = i * i;

    const struct weir_program_params code = {
        .struct_size = sizeof code,
        .source = source,
        .devices = devices,
        .device_count = count,
    };
    WEIR_CHECK(weir_program_create(devices[0], &code, &program));
    WEIR_CHECK(weir_kernel_create(program, "sum", &kernel));
    weir_program_destroy(&program);
    for (uint32_t i = 0; i < count; i++)
        right += sum_on(devices[i], kernel, numbers) == expected;
    printf("%u of %u sums right\n", right, count);

    weir_kernel_destroy(&kernel);
    for (uint32_t i = 0; i < count; i++)
        WEIR_CHECK(weir_device_close(&devices[i]));
    WEIR_CHECK(weir_close(&runtime));
    return right == count ? 0 : 1;
}
