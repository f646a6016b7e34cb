// The version of OpenCL C and the arithmetic that a rule asks for are those of the device that runs
// the bundle, whether its driver compiles the source or it takes another image.
#include "tests/kernels/language.h"
#include "tests/kernels/language_2_fast.h"
#include "tests/kernels/language_fast.h"
#include "tests/support/device.h"

static void ask(const struct weir_bundle *bundle, uint32_t out[2])
{
    const size_t size = 2 * sizeof *out;
    own_test_device on;
    own_program program = NULL;
    own_kernel tell = NULL;
    ASSERT_TRUE(test_device_open(&on));
    own_buffer buffer = test_buffer(on.device, "told", size, WEIR_PLACE_DEVICE);
    ASSERT_OK(
        weir_program_create(on.device, WEIR_PARAMS(weir_program, .bundle = bundle), &program));
    ASSERT_OK(weir_kernel_create(program, "tell", &tell));
    EXPECT_OK(weir_queue_launch(on.queue, tell, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(buffer, 0, size)));
    EXPECT_OK(weir_download(on.queue, out, buffer, 0, size));
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
