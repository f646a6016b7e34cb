// The version of OpenCL C and the arithmetic that a rule asks for are those of the device that runs
// the bundle, whether its driver compiles the source or it takes another image.
#include <weir/weir.h>

#include "tests/kernels/language.h"
#include "tests/kernels/language_2_fast.h"
#include "tests/kernels/language_fast.h"
#include "tests/support/test.h"

static void launch(weir_device *device, weir_kernel *tell, uint32_t out[2])
{
    const size_t size = 2 * sizeof *out;
    weir_queue *queue = NULL;
    weir_buffer *buffer = NULL;
    EXPECT_OK(weir_queue_create(device, NULL, &queue));
    EXPECT_OK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = size), &buffer));
    EXPECT_OK(weir_queue_launch(queue, tell, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(buffer, 0, size)));
    EXPECT_OK(weir_download(queue, out, buffer, 0, size));
    weir_buffer_destroy(&buffer);
    weir_queue_destroy(&queue);
}

static void ask(const struct weir_bundle *bundle, uint32_t out[2])
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_program *program = NULL;
    weir_kernel *tell = NULL;
    EXPECT_OK(weir_open(NULL, &runtime));
    EXPECT_OK(weir_device_open(runtime, NULL, &device));
    EXPECT_OK(weir_program_create(device, WEIR_PARAMS(weir_program, .bundle = bundle), &program));
    EXPECT_OK(weir_kernel_create(program, "tell", &tell));
    if (tell)
        launch(device, tell, out);
    weir_kernel_destroy(&tell);
    weir_program_destroy(&program);
    EXPECT_OK(weir_device_close(&device));
    EXPECT_OK(weir_close(&runtime));
}

WEIR_TEST(Language, IsThatOfTheRule)
{
    static const struct {
        const struct weir_bundle *bundle;
        uint32_t version, other; // 3.0 where the driver has no 2.0
        uint32_t fast;
    } rows[] = {{&language_kernels, 120, 120, 0},
                {&language_fast_kernels, 120, 120, 1},
                {&language_2_fast_kernels, 200, 300, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t told[2] = {0, 9};
        weir_test_note("%s", rows[i].bundle->name);
        ask(rows[i].bundle, told);
        EXPECT_TRUE(told[0] == rows[i].version || told[0] == rows[i].other);
        EXPECT_UINT_EQ(told[1], rows[i].fast);
    }
}
