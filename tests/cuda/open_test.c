// The messages when the CUDA backend is opened on machines that lack something,
// and the devices that it lists on a complete one.

#include "tests/cuda/rig.h"

static void expect_refused(const char *section, const char *part, const char *remedy)
{
    weir_runtime *runtime;
    EXPECT_TRUE(rig_open_runtime(section, &runtime) < 0);
    EXPECT_NULL(runtime);
    EXPECT_ERROR(part, remedy);
}

WEIR_TEST(CudaOpen, NoDriver)
{
    expect_refused("library = /nowhere/libcuda.so.1",
                   "there is no usable NVIDIA driver: /nowhere/libcuda.so.1",
                   "install the NVIDIA driver");
}

WEIR_TEST(CudaOpen, ALibraryThatIsNoDriver)
{
    expect_refused("library = backends/cuda/weir_cuda.so", "lacks cuDriverGetVersion",
                   "install the NVIDIA driver");
}

WEIR_TEST(CudaOpen, DriverTooOld)
{
    expect_refused("library = tests/support/libcuda/libcuda_old.so.1",
                   "the NVIDIA driver is too old: the driver supports CUDA 11.8, and this module "
                   "needs 12.0 or newer",
                   "525");
}

WEIR_TEST(CudaOpen, NoDevice)
{
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_NOT_NULL(fake);
    unsetenv("CUDA_VISIBLE_DEVICES");
    fake->fail("cuInit", 1, 100);
    expect_refused("", "finds no CUDA device", "nvidia-smi");

    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    fake->fail("cuInit", 1, 100);
    expect_refused("", "CUDA_VISIBLE_DEVICES is '7'", "correct or unset CUDA_VISIBLE_DEVICES");

    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    fake->fail(NULL, 0, 0);
    expect_refused("", "CUDA_VISIBLE_DEVICES is set and empty", "unset CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

WEIR_TEST(CudaOpen, ADriverThatDoesNotStart)
{
    const struct weir_test_cuda *fake = rig_fake();
    ASSERT_NOT_NULL(fake);
    fake->fail("cuInit", 1, 34);
    expect_refused("", "does not start", "stub");
    fake->fail("cuInit", 1, 999);
    expect_refused("", "CUDA_ERROR_UNKNOWN, 999", "dmesg");
    fake->fail("cuDeviceGetName", 1, 999);
    expect_refused("", "CUDA device 0 cannot be described", "cuDeviceGetName");
    fake->fail(NULL, 0, 0);
}

WEIR_TEST(CudaOpen, ListsDevices)
{
    own_runtime runtime = NULL;
    struct weir_device_info info;
    ASSERT_OK(rig_open_runtime("", &runtime));
    EXPECT_UINT_EQ(weir_device_count(runtime), 1);
    ASSERT_OK(weir_device_describe(runtime, 0, &info));
    EXPECT_STR_EQ(info.name, "Fake GPU 0");
    EXPECT_STR_EQ(info.platform, "NVIDIA CUDA");
    EXPECT_STR_EQ(info.driver, "CUDA 13.0, driver api 13000");
    EXPECT_UINT_EQ(info.memory_bytes, UINT64_C(1) << 30);
    const struct weir_load_entry *entry = weir_load_report_entry(weir_runtime_report(runtime), 0);
    ASSERT_NOT_NULL(entry);
    EXPECT_STR_EQ(entry->driver, "CUDA 13.0, driver api 13000");
}

WEIR_TEST(CudaOpen, Keys)
{
    weir_runtime *runtime;
    EXPECT_OK(rig_open_runtime("sync = spin", &runtime));
    EXPECT_OK(weir_close(&runtime));
    EXPECT_FAILURE(rig_open_runtime("sync = yield", &runtime), WEIR_ERROR_CONFIG, "spin");
    EXPECT_FAILURE(rig_open_runtime("sink = spin", &runtime), WEIR_ERROR_CONFIG, "sync");
}

RIG_TEST(CudaOpen, Limits)
{
    const struct weir_limits *limits = weir_device_limits(rig->device);
    EXPECT_UINT_EQ(limits->memory_bytes, UINT64_C(1) << 30);
    EXPECT_UINT_EQ(limits->argument_alignment_bytes, 16);
    EXPECT_UINT_EQ(limits->unified_memory, 0);
    EXPECT_UINT_EQ(limits->host_in_kernels, 1);
    EXPECT_UINT_EQ(limits->max_block_items, 1024);
    EXPECT_UINT_EQ(limits->max_block.z, 64);
    EXPECT_UINT_EQ(limits->max_grid.x, INT32_MAX);
    EXPECT_UINT_EQ(limits->max_grid.y, 65535);
    EXPECT_UINT_EQ(limits->max_local_bytes, 232448);
    EXPECT_UINT_EQ(limits->compute_units, 132);
    EXPECT_UINT_EQ(limits->concurrent_kernels, 128);
    EXPECT_UINT_EQ(limits->copy_engines_to_device, 1);
    EXPECT_UINT_EQ(limits->copy_engines_to_host, 1);
    // CUDA says 0 and -5, counting downwards.
    EXPECT_INT_EQ(limits->priority_lowest, 0);
    EXPECT_INT_EQ(limits->priority_highest, 5);
}

// A machine that lacks the driver's OpenCL.
RIG_TEST(CudaOpen, NoCompiler)
{
    static const char twice[] =
        "__kernel void twice(__global const uint *in, __global uint *out, uint n) {}\n";
    own_program program = NULL;
    EXPECT_FAILURE(weir_program_create(rig->device, WEIR_PARAMS(weir_program, .source = twice),
                                       &program),
                   WEIR_ERROR_UNSUPPORTED, "libnvidia-opencl.so.1, which cannot be used",
                   "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
}
