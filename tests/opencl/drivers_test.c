// What PoCL 3.1 makes of the kernels in kernels/drivers, with and without -cl-opt-disable. A fault
// that is expected and does not show fails here too: then `weir doctor` warns of
// what is mended.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "kernels/drivers/drivers.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    BLOCK = 64,
    BLOCKS = 4,
    NUMBERS = BLOCK * BLOCKS
};

static void launch(weir_device *device, const char *name, weir_kernel *kernel, uint32_t out[BLOCKS])
{
    const size_t size = NUMBERS * sizeof *out, out_size = BLOCKS * sizeof *out;
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = size};
    struct weir_argument arguments[3] = {{0}};
    uint32_t in[NUMBERS];
    own_queue queue = NULL;
    weir_buffer *numbers = NULL, *results = NULL;
    for (uint32_t i = 0; i < NUMBERS; i++)
        in[i] = i + 1;
    EXPECT_OK(weir_queue_create(device, NULL, &queue));
    EXPECT_OK(weir_buffer_create(device, &params, &numbers));
    EXPECT_OK(weir_buffer_create(device, &params, &results));
    EXPECT_OK(weir_upload(queue, numbers, 0, in, size));
    arguments[0] = weir_in(numbers, 0, size);
    arguments[1] = weir_out(results, 0, out_size);
    arguments[2] = weir_local(BLOCK * sizeof *out);
    EXPECT_OK(weir_queue_launch_array(queue, kernel, weir_dim(BLOCKS, 1, 1), weir_dim(BLOCK, 1, 1),
                                      arguments, strcmp(name, "barrier_in_loop") == 0 ? 3 : 2));
    EXPECT_OK(weir_download(queue, out, results, 0, out_size));
    weir_buffer_destroy(&results);
    weir_buffer_destroy(&numbers);
}

// Gives the driver's major version, as "7.1+debian" has it.
static int run(const char *name, const char *settings, uint32_t out[BLOCKS])
{
    char text[256];
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_program *program = NULL;
    weir_kernel *kernel = NULL;
    snprintf(text, sizeof text, "[weir]\nbackend = opencl\n[opencl]\n%s", settings);
    EXPECT_OK(weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini", .config_text = text,
                                    .module_path = weir_test_runfile("backends/opencl")),
                        &runtime));
    EXPECT_OK(weir_device_open(runtime, NULL, &device));
    const int version = device ? atoi(weir_device_get_info(device)->driver) : 0;
    EXPECT_OK(weir_program_create(device, WEIR_PARAMS(weir_program, .bundle = &drivers_kernels),
                                  &program));
    EXPECT_OK(weir_kernel_create(program, name, &kernel));
    if (kernel)
        launch(device, name, kernel, out);
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    EXPECT_OK(weir_device_close(&device));
    EXPECT_OK(weir_close(&runtime));
    return version;
}

// The last number of a block.
static uint32_t last(uint32_t block)
{
    return (block + 1) * BLOCK;
}

// The sum of a block's numbers.
static uint32_t sum(uint32_t block)
{
    return BLOCK * (last(block) + last(block) - BLOCK + 1) / 2;
}

static void expect_right(const char *name, const char *settings, uint32_t (*right)(uint32_t block))
{
    uint32_t out[BLOCKS] = {0};
    run(name, settings, out);
    for (uint32_t i = 0; i < BLOCKS; i++)
        EXPECT_UINT_EQ(out[i], right(i));
}

static const char unoptimised[] = "build_options = -cl-opt-disable\n";

WEIR_TEST(Drivers, BarrierInALoop)
{
    expect_right("barrier_in_loop", "", sum);
    expect_right("barrier_in_loop", unoptimised, sum);
}

WEIR_TEST(Drivers, LocalVariable)
{
    expect_right("written_by_one", "", last);
    expect_right("volatile_variable", "", last);
    expect_right("written_by_all", unoptimised, last);
}

// Until PoCL 7.
WEIR_TEST(Drivers, LocalVariableWrittenByAllIsLost)
{
    uint32_t out[BLOCKS] = {0};
    const int version = run("written_by_all", "", out);
    for (uint32_t i = 0; i < BLOCKS; i++)
        EXPECT_UINT_EQ(out[i], version < 7 ? 0 : last(i));
}
