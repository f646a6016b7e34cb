// Devices of other kinds than that of the conformance suite: their occupancy, cooperative launches and limits;
// and programs of several devices of which one fails. The fake reads its environment when it is loaded, so each
// test is a process.

#include "tests/cuda/rig.h"

// A test with a rig, `rig`, whose fake has this in its environment.
#define DEVICE_TEST(name, variable, value)            \
    static void name##_on(struct rig *rig);           \
    WEIR_CHILD_TEST(CudaDevices, name)                \
    {                                                 \
        struct rig rig;                               \
        setenv("WEIR_TEST_CUDA_" variable, value, 1); \
        ASSERT_TRUE(rig_start(&rig));                 \
        name##_on(&rig);                              \
        rig_finish(&rig);                             \
    }                                                 \
    static void name##_on(struct rig *rig)

static void expect_limit(weir_kernel *kernel, uint32_t items, size_t local_bytes, uint32_t blocks,
                         weir_occupancy_limit limit)
{
    struct weir_occupancy occupancy;
    ASSERT_OK(weir_kernel_occupancy(kernel, weir_dim(items, 1, 1), local_bytes, &occupancy));
    weir_test_note("%u items, %zu bytes", (unsigned)items, local_bytes);
    EXPECT_UINT_EQ(occupancy.compute_units, 132);
    EXPECT_UINT_EQ(occupancy.unit_blocks, blocks);
    EXPECT_UINT_EQ(occupancy.unit_items, blocks * ((items + 31) / 32 * 32));
    EXPECT_UINT_EQ(occupancy.max_unit_items, 2048);
    EXPECT_UINT_EQ(occupancy.cooperative_blocks, 132 * blocks);
    EXPECT_INT_EQ(occupancy.limit, limit);
    weir_test_note(NULL);
}

DEVICE_TEST(TellsWhatLimitsBlocks, "DEVICES", "1")
{
    own_kernel kernel = rig_load(rig, "iota");
    uint32_t items;
    expect_limit(kernel, 1024, 0, 2, WEIR_OCCUPANCY_ITEMS);
    expect_limit(kernel, 700, 0, 2, WEIR_OCCUPANCY_ITEMS);
    expect_limit(kernel, 32, 0, 32, WEIR_OCCUPANCY_BLOCKS);
    expect_limit(kernel, 1, 0, 32, WEIR_OCCUPANCY_BLOCKS);
    expect_limit(kernel, 128, 100000, 2, WEIR_OCCUPANCY_LOCAL_BYTES);
    EXPECT_OK(weir_kernel_suggest_block(kernel, 0, &items));
    EXPECT_UINT_EQ(items, 1024);
    EXPECT_OK(weir_kernel_suggest_block(kernel, 100000, &items));
    EXPECT_UINT_EQ(items, 1024); // two blocks of any size
    rig_fake()->fail("cuOccupancyMaxActiveBlocksPerMultiprocessor", 5, 0);
    EXPECT_INT_EQ(weir_kernel_suggest_block(kernel, 0, &items), WEIR_ERROR_DEVICE);
    EXPECT_UINT_EQ(items, 0);
    EXPECT_CONTAINS(weir_last_error_text(), "the occupancy of kernel 'iota'");
}

DEVICE_TEST(RegistersLimitBlocksToo, "REGISTERS", "128")
{
    own_kernel kernel = rig_load(rig, "iota");
    uint32_t items;
    expect_limit(kernel, 256, 0, 2, WEIR_OCCUPANCY_REGISTERS);
    expect_limit(kernel, 32, 0, 16, WEIR_OCCUPANCY_REGISTERS);
    EXPECT_OK(weir_kernel_suggest_block(kernel, 0, &items));
    EXPECT_UINT_EQ(items, 512); // a block of 1024 does not fit
    uint32_t blocks = 7;
    EXPECT_OK(weir_kernel_cooperative_blocks(kernel, weir_dim(1024, 1, 1), 0, &blocks));
    EXPECT_UINT_EQ(blocks, 0);
    own_buffer memory = rig_buffer(rig, 64, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(weir_queue_launch_cooperative(rig->queue, kernel, weir_dim(1, 1, 1),
                                                weir_dim(1024, 1, 1), weir_out(memory, 0, 64), 1u,
                                                16u),
                  WEIR_ERROR_UNSUPPORTED);
}

// One block needs no cooperative launch of the driver's.
DEVICE_TEST(DevicesWithoutItRunOneBlock, "COOPERATIVE", "0")
{
    own_kernel kernel = rig_load(rig, "iota");
    uint32_t blocks;
    own_buffer memory = rig_buffer(rig, 64, WEIR_PLACE_DEVICE);
    EXPECT_OK(weir_kernel_cooperative_blocks(kernel, weir_dim(16, 1, 1), 0, &blocks));
    EXPECT_UINT_EQ(blocks, 1);
    EXPECT_OK(weir_queue_launch_cooperative(rig->queue, kernel, weir_dim(1, 1, 1),
                                            weir_dim(16, 1, 1), weir_out(memory, 0, 64), 1u, 16u));
    EXPECT_INT_EQ(weir_queue_launch_cooperative(rig->queue, kernel, weir_dim(2, 1, 1),
                                                weir_dim(8, 1, 1), weir_out(memory, 0, 64), 1u,
                                                16u),
                  WEIR_ERROR_UNSUPPORTED);
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    EXPECT_INT_EQ(rig_fake()->calls("cuLaunchCooperativeKernel"), 0);
}

// 227 KiB are the device's limit.
DEVICE_TEST(MoreLocalMemoryThanTheDeviceHasIsRefused, "LOCAL", "300000")
{
    weir_kernel *kernel;
    own_program program = rig_program(rig);
    EXPECT_FAILURE(weir_kernel_create(program, "iota", &kernel), WEIR_ERROR_UNSUPPORTED,
                   "'iota' declares 300000 bytes of local memory", "232448");
    EXPECT_NULL(kernel);
}

static void open_second(struct rig *rig, weir_device **out_device)
{
    EXPECT_OK(weir_device_open(rig->runtime, WEIR_PARAMS(weir_device, .select = "1"), out_device));
}

// The first device's part is undone.
DEVICE_TEST(AProgramIsMadeForAllDevicesOrNone, "DEVICES", "2")
{
    weir_device *second;
    weir_program *program;
    weir_kernel *kernel;
    open_second(rig, &second);
    const struct weir_bundle bundle = rig_bundle(weir_test_image(), 1);
    const struct weir_program_params params = {.struct_size = sizeof params,
                                               .bundle = &bundle,
                                               .devices = &second,
                                               .device_count = 1};
    rig_fake()->fail("cuModuleLoadDataEx", 2, 209);
    EXPECT_INT_LT(weir_program_create(rig->device, &params, &program), 0);
    EXPECT_NULL(program);
    EXPECT_CONTAINS(weir_last_error_text(), "device 'Fake GPU 1': ");
    rig_fake()->fail("cuModuleLoadDataEx", 1, 209);
    EXPECT_INT_LT(weir_program_create(rig->device, &params, &program), 0);
    EXPECT_CONTAINS(weir_last_error_text(), "device 'Fake GPU 0': ");
    rig_fake()->fail(NULL, 0, 0);

    ASSERT_OK(weir_program_create(rig->device, &params, &program));
    for (long call = 1; call <= 2; call++) {
        rig_fake()->fail("cuModuleGetFunction", call, 0);
        EXPECT_INT_LT(weir_kernel_create(program, "iota", &kernel), 0);
        EXPECT_NULL(kernel);
    }
    EXPECT_CONTAINS(weir_last_error_text(), "device 'Fake GPU 1': ");
    rig_fake()->fail(NULL, 0, 0);
    ASSERT_OK(weir_kernel_create(program, "iota", &kernel));
    EXPECT_TRUE(weir_kernel_on(kernel, second));
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    EXPECT_OK(weir_device_close(&second));
}

// What a device reaches ends with its context; the next one asks again.
DEVICE_TEST(ADeviceThatIsOpenedAgainReachesItsPeer, "DEVICES", "2")
{
    weir_device *second;
    for (long opened = 1; opened <= 2; opened++) {
        open_second(rig, &second);
        EXPECT_TRUE(weir_device_can_peer(rig->device, second));
        EXPECT_INT_EQ(rig_fake()->calls("cuCtxEnablePeerAccess"), 2 * opened);
        EXPECT_OK(weir_device_close(&second));
    }
}

// A registration belongs to the process: an unused one of a device ends where another device wraps memory over it, and the
// first device has none left to end.
DEVICE_TEST(AnUnusedRegistrationEndsForAnotherDevice, "DEVICES", "2")
{
    static _Alignas(4096) unsigned char memory[4096];
    const struct weir_test_cuda *fake = rig_fake();
    weir_device *second;
    weir_buffer *wrapped = rig_wrap(rig, memory, sizeof memory);
    weir_buffer_destroy(&wrapped);
    open_second(rig, &second);
    const long registered = fake->calls("cuMemHostRegister");
    const long ended = fake->calls("cuMemHostUnregister");
    ASSERT_OK(weir_buffer_wrap(second, WEIR_PARAMS(weir_wrap, .pointer = memory + 64, .size = 128),
                               &wrapped));
    EXPECT_INT_EQ(fake->calls("cuMemHostRegister"), registered + 1);
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), ended + 1);
    const long asked = fake->calls("cuStreamQuery");
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    EXPECT_INT_EQ(fake->calls("cuStreamQuery"), asked);
    weir_buffer_destroy(&wrapped);
    EXPECT_OK(weir_device_close(&second));
    EXPECT_INT_EQ(fake->calls("cuMemHostUnregister"), ended + 2);
}

// PTX 9.0 is of CUDA 13.
DEVICE_TEST(DriverTooOldForTheImages, "VERSION", "12040")
{
    static const char text[] = "//\n.version 9.0\n.target sm_75\n";
    const struct weir_image image = {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_75", text,
                                     sizeof text - 1};
    const struct weir_bundle bundle = rig_bundle(&image, 1);
    weir_program *program;
    EXPECT_FAILURE(weir_program_load(rig->device, &bundle, &program), WEIR_ERROR_UNSUPPORTED,
                   "install NVIDIA driver 580 or newer");
}

DEVICE_TEST(OutOfPinnedMemory, "PINNED", "67108864")
{
    own_buffer buffer = NULL;
    struct weir_buffer_params params = {.struct_size = sizeof params,
                                        .size = (size_t)100 << 20,
                                        .placement = WEIR_PLACE_HOST};
    EXPECT_FAILURE(weir_buffer_create(rig->device, &params, &buffer), WEIR_ERROR_OUT_OF_MEMORY,
                   "a pinned HOST buffer of 104857600 bytes was asked for");
    EXPECT_NULL(buffer);
    params.size = (size_t)32 << 20;
    EXPECT_OK(weir_buffer_create(rig->device, &params, &buffer));
}
