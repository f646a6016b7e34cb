// Which calls of the driver's the arguments of launches take: none in a loop whose arguments stay, whether they
// are whole buffers, parts of them or addresses.
#include <stdlib.h>

#include "tests/opencl/rig.h"

enum {
    PART_BYTES = OPENCL_RIG_COUNT * sizeof(uint32_t)
};

static void launch(const struct opencl_rig *rig, weir_buffer *buffer, size_t offset, size_t size,
                   uint32_t first)
{
    EXPECT_OK(weir_queue_launch(rig->queues[0], rig->iota, weir_dim(1, 1, 1),
                                weir_dim(OPENCL_RIG_COUNT, 1, 1), weir_out(buffer, offset, size),
                                first, (uint32_t)OPENCL_RIG_COUNT));
}

// As on a GPU: buffers are the driver's objects, and parts of them are sub-buffers.
static void open_without_addresses(struct opencl_rig *rig)
{
    opencl_rig_begin(rig, "");
    rig->shim->hide_svm(1);
    EXPECT_OK(weir_close(&rig->runtime));
    opencl_rig_open(rig, "");
}

static void close_without_addresses(struct opencl_rig *rig)
{
    opencl_rig_close(rig);
    rig->shim->hide_svm(0);
}

// Calls that arguments take.
static long argument_calls(const struct opencl_rig *rig)
{
    static const char *const names[] = {"clSetKernelArg",    "clSetKernelArgSVMPointer",
                                        "clRetainMemObject", "clReleaseMemObject",
                                        "clCreateSubBuffer", "clCreateKernel"};
    long calls = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        calls += rig->shim->calls(names[i]);
    return calls;
}

static void expect_no_calls(const struct opencl_rig *rig, size_t offset, size_t size)
{
    launch(rig, rig->buffer, offset, size, 5);
    const long calls = argument_calls(rig);
    for (int i = 0; i < 20; i++)
        launch(rig, rig->buffer, offset, size, 5);
    EXPECT_INT_EQ(argument_calls(rig), calls);
    opencl_rig_expect_numbers(rig->queues[0], rig->buffer, offset, 5);
}

WEIR_TEST(OpenclArguments, ThatStayAreNotSetAgain)
{
    struct opencl_rig rig;
    open_without_addresses(&rig);
    expect_no_calls(&rig, 0, OPENCL_RIG_BYTES);
    expect_no_calls(&rig, 512, PART_BYTES);
    close_without_addresses(&rig);
}

WEIR_TEST(OpenclArguments, OfAddressesThatStayAreNotSetAgain)
{
    struct opencl_rig rig;
    opencl_rig_open(&rig, "");
    expect_no_calls(&rig, 0, OPENCL_RIG_BYTES);
    expect_no_calls(&rig, 512, PART_BYTES);
    opencl_rig_close(&rig);
}

// The whole and a part that begins with it, another part, and another buffer.
WEIR_TEST(OpenclArguments, OfOneKernelWithOtherRanges)
{
    struct opencl_rig rig;
    for (int addresses = 0; addresses < 2; addresses++) {
        if (addresses)
            opencl_rig_open(&rig, "");
        else
            open_without_addresses(&rig);
        for (uint32_t i = 0; i < 12; i++) {
            weir_buffer *buffer = i % 3 == 2 ? rig.other : rig.buffer;
            const size_t offset = i % 2 * 512;
            launch(&rig, buffer, offset, i % 4 == 0 ? OPENCL_RIG_BYTES : PART_BYTES, i);
            opencl_rig_expect_numbers(rig.queues[0], buffer, offset, i);
        }
        close_without_addresses(&rig);
    }
}

// Each view is gone when the next one comes, and the driver may give the next one its address. Those of
// PoCL 7 and later stay.
WEIR_TEST(OpenclArguments, ThatOverlapThoseBefore)
{
    struct opencl_rig rig;
    open_without_addresses(&rig);
    const bool stay = atoi(weir_device_get_info(rig.device)->driver) >= 7;
    for (uint32_t i = 0; i < 20; i++) {
        const long views = rig.shim->calls("clCreateSubBuffer");
        const long releases = rig.shim->calls("clReleaseMemObject");
        launch(&rig, rig.buffer, 256 + i % 2 * 256, 512, i);
        EXPECT_INT_EQ(rig.shim->calls("clCreateSubBuffer") - views, !stay || i < 2);
        EXPECT_INT_EQ(rig.shim->calls("clReleaseMemObject") - releases, !stay && i > 0);
        opencl_rig_expect_numbers(rig.queues[0], rig.buffer, 256 + i % 2 * 256, i);
    }
    close_without_addresses(&rig);
}

// A part of a buffer for each slot.
static void launch_in_slots(const struct opencl_rig *rig, size_t slots, uint32_t first)
{
    for (size_t i = 0; i < slots; i++)
        launch(rig, i % 2 ? rig->other : rig->buffer, i / 2 * 128, PART_BYTES, first);
}

// Once the slots have come twice, each has a kernel object. Only the number, which changes, is set.
WEIR_TEST(OpenclArguments, OfSlotsInTurnAreNotSetAgain)
{
    struct opencl_rig rig;
    open_without_addresses(&rig);
    for (uint32_t i = 0; i < 2; i++)
        launch_in_slots(&rig, 4, 0);
    const long calls = argument_calls(&rig);
    for (uint32_t i = 0; i < 20; i++)
        launch_in_slots(&rig, 4, 0);
    EXPECT_INT_EQ(argument_calls(&rig), calls);
    launch_in_slots(&rig, 4, 7);
    EXPECT_INT_EQ(argument_calls(&rig) - calls, 4);
    for (uint32_t i = 0; i < 4; i++)
        opencl_rig_expect_numbers(rig.queues[0], i % 2 ? rig.other : rig.buffer, i / 2 * 128, 7);
    close_without_addresses(&rig);
}

// Ranges that come once have no kernel object of their own, and without another object the first serves.
WEIR_TEST(OpenclArguments, OfSlotsWithoutAnotherKernelObject)
{
    struct opencl_rig rig;
    open_without_addresses(&rig);
    const long kernels = rig.shim->calls("clCreateKernel");
    launch_in_slots(&rig, 4, 1);
    EXPECT_INT_EQ(rig.shim->calls("clCreateKernel"), kernels);
    rig.shim->fail("clCreateKernel", 1, 0);
    launch_in_slots(&rig, 1, 2);
    EXPECT_INT_EQ(rig.shim->struck(), 1);
    rig.shim->fail(NULL, 0, 0);
    opencl_rig_expect_numbers(rig.queues[0], rig.buffer, 0, 2);
    opencl_rig_expect_numbers(rig.queues[0], rig.other, 0, 1);
    close_without_addresses(&rig);
}

// More ranges in turn than there are kernel objects: 8 are in each of the buffers.
WEIR_TEST(OpenclArguments, OfMoreSlotsThanKernelObjects)
{
    struct opencl_rig rig;
    open_without_addresses(&rig);
    const long kernels = rig.shim->calls("clCreateKernel");
    for (uint32_t i = 0; i < 2; i++)
        launch_in_slots(&rig, 8, i);
    for (uint32_t i = 0; i < 4; i++) {
        launch_in_slots(&rig, 16, i);
        launch(&rig, rig.buffer, 0, OPENCL_RIG_BYTES, 90 + i);
    }
    EXPECT_INT_EQ(rig.shim->calls("clCreateKernel") - kernels, 15);
    for (size_t i = 1; i < 16; i++)
        opencl_rig_expect_numbers(rig.queues[0], i % 2 ? rig.other : rig.buffer, i / 2 * 128, 3);
    opencl_rig_expect_numbers(rig.queues[0], rig.buffer, 0, 93);
    close_without_addresses(&rig);
}
