// The start of a program, by counting calls of the driver from weir_open() to the first result of a
// kernel on the host. Every program waits for each of them, so this test fails when one is added.
#include "tests/cuda/rig.h"

enum {
    NUMBERS = 1024
};

// Those that take long in a driver, or grow with the number of kernels in a bundle. Contexts are
// entered and left in each call of Weir, and attributes of a device are read, many times: these
// are not counted here.
static const struct {
    const char *name;
    long most;
} expected[] = {
    {"cuInit", 1},
    {"cuDevicePrimaryCtxRetain", 1},
    {"cuModuleLoadDataEx", 1},
    {"cuFuncLoad", 1},         // of the one kernel that is created
    {"cuFuncGetParamInfo", 5}, // its four parameters, and that there is no fifth one
    {"cuFuncGetAttribute", 3},
    {"cuFuncSetAttribute", 1},
    {"cuMemPoolCreate", 1},
    {"cuMemPoolSetAttribute", 2},
    {"cuMemAllocFromPoolAsync", 0}, // the first one takes 7 ms and more
    {"cuMemAlloc", 2},
    {"cuMemAllocManaged", 0},
    {"cuMemHostAlloc", 2},             // the words of queues, and the staging of transfers
    {"cuStreamCreateWithPriority", 2}, // the memory stream, and the program's
    {"cuStreamSynchronize", 1},        // the memory stream, at the timeline's start
    {"cuEventCreate", 2},              // the timeline's first anchor, and the queue's first record
    {"cuEventRecord", 3},
    {"cuEventSynchronize", 2},
    {"cuLaunchKernel", 1},
    {"cuMemcpyHtoDAsync", 1},
    {"cuMemcpyDtoHAsync", 1},
    {"cuMemGetInfo", 0},
};

static void compute(struct rig *rig)
{
    float numbers[NUMBERS] = {[1000] = 1000};
    weir_program *program = rig_program(rig);
    weir_kernel *scale = rig_kernel(program, "scale");
    weir_buffer *in = rig_buffer(rig, sizeof numbers, WEIR_PLACE_DEVICE);
    weir_buffer *out = rig_buffer(rig, sizeof numbers, WEIR_PLACE_DEVICE);
    EXPECT_OK(weir_upload(rig->queue, in, 0, numbers, sizeof numbers));
    EXPECT_OK(weir_queue_launch(rig->queue, scale, weir_dim(NUMBERS / 64, 1, 1), weir_dim(64, 1, 1),
                                weir_whole_in(in), weir_whole_out(out), 2.0f, (uint32_t)NUMBERS));
    EXPECT_OK(weir_download(rig->queue, numbers, out, 0, sizeof numbers));
    EXPECT_TRUE(numbers[1000] == 2000);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        weir_test_note("%s", expected[i].name);
        EXPECT_INT_EQ(rig_fake()->calls(expected[i].name), expected[i].most);
    }
    weir_test_note(NULL);
    weir_buffer_destroy(&in);
    weir_buffer_destroy(&out);
    weir_kernel_destroy(&scale);
    weir_program_destroy(&program);
}

static void start(void)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    compute(&rig);
    rig_finish(&rig);
}

WEIR_TEST(CudaStart, CallsUntilTheFirstResult)
{
    rig_in_child(start);
}
