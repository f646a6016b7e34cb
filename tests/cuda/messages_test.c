// The messages for an unsuitable machine, for requests that are too large, and
// for wrong arguments. open_test.c tests those about the driver, backend_test.c
// those about images. The fake reads its environment when it is loaded, so each
// test is a process.
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/rig.h"

static void expect_text(const char *part)
{
    EXPECT_CONTAINS(weir_last_error_text(), part);
}

static void ask_for_device_7(void)
{
    weir_runtime *runtime;
    weir_device *device;
    const struct weir_device_params params = {.struct_size = sizeof params, .select = "7"};
    setenv("WEIR_TEST_CUDA_DEVICES", "2", 1);
    ASSERT_OK(rig_open_runtime("", &runtime));
    EXPECT_INT_EQ(weir_device_open(runtime, &params, &device), WEIR_ERROR_NO_DEVICE);
    EXPECT_NULL(device);
    expect_text("'7'");
    expect_text("0: Fake GPU 0");
    expect_text("1: Fake GPU 1");
    EXPECT_OK(weir_close(&runtime));
}

WEIR_TEST(CudaMessages, DeviceIndexOutOfRange)
{
    rig_in_child(ask_for_device_7);
}

static void have_no_device(void)
{
    weir_runtime *runtime;
    setenv("WEIR_TEST_CUDA_DEVICES", "0", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT_TRUE(rig_open_runtime("", &runtime) < 0);
    expect_text("is there, but it finds no CUDA device");
    expect_text("CUDA_ERROR_NO_DEVICE, 100");
    expect_text("check nvidia-smi");
}

WEIR_TEST(CudaMessages, NoDevice)
{
    rig_in_child(have_no_device);
}

static void hide_devices(void)
{
    weir_runtime *runtime;
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    EXPECT_TRUE(rig_open_runtime("", &runtime) < 0);
    expect_text("CUDA_VISIBLE_DEVICES is set and empty, which hides every CUDA device");
}

WEIR_TEST(CudaMessages, DevicesHidden)
{
    rig_in_child(hide_devices);
}

static weir_status create_program(struct rig *rig, const struct weir_bundle *bundle)
{
    weir_program *program;
    const struct weir_program_params params = {.struct_size = sizeof params, .bundle = bundle};
    const weir_status status = weir_program_create(rig->device, &params, &program);
    weir_program_destroy(&program);
    return status;
}

// PTX 9.0 is of CUDA 13.
static void have_a_driver_of_12_4(void)
{
    static const char text[] = "//\n.version 9.0\n.target sm_75\n";
    const struct weir_image image = {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_75", text,
                                     sizeof text - 1};
    const struct weir_bundle bundle = rig_bundle(&image, 1);
    struct rig rig;
    setenv("WEIR_TEST_CUDA_VERSION", "12040", 1);
    ASSERT_TRUE(rig_start(&rig));
    EXPECT_INT_EQ(create_program(&rig, &bundle), WEIR_ERROR_UNSUPPORTED);
    expect_text("the driver is too old for bundle 'rig': CUDA 13 built it, and the driver supports "
                "CUDA 12.4; install NVIDIA driver 580 or newer");
    rig_finish(&rig);
}

WEIR_TEST(CudaMessages, DriverTooOldForTheImages)
{
    rig_in_child(have_a_driver_of_12_4);
}

// As after a kernel was changed in one of two languages.
// The parameters are compared when the kernel is created.
static weir_status create_iota(struct rig *rig, const struct weir_bundle *bundle)
{
    weir_program *program;
    weir_kernel *kernel;
    EXPECT_OK(
        weir_program_create(rig->device, WEIR_PARAMS(weir_program, .bundle = bundle), &program));
    const weir_status status = weir_kernel_create(program, "iota", &kernel);
    EXPECT_NULL(kernel);
    weir_program_destroy(&program);
    return status;
}

static void load_other_parameters(void)
{
    const struct weir_parameter parameters[] = {
        {.struct_size = sizeof *parameters,
         .name = "out",
         .type_name = "uint *",
         .kind = WEIR_PARAMETER_BUFFER,
         .writable = 1},
        {.struct_size = sizeof *parameters,
         .name = "first",
         .type_name = "ulong",
         .kind = WEIR_PARAMETER_VALUE,
         .scalar = WEIR_SCALAR_U64,
         .size = 8},
        {.struct_size = sizeof *parameters,
         .name = "n",
         .type_name = "uint",
         .kind = WEIR_PARAMETER_VALUE,
         .scalar = WEIR_SCALAR_U32,
         .size = 4},
    };
    struct weir_kernel_signature iota = {.struct_size = sizeof iota,
                                         .name = "iota",
                                         .parameters = parameters,
                                         .parameter_count = 3};
    struct weir_bundle bundle = rig_bundle(weir_test_image(), 1);
    struct rig rig;
    bundle.kernels = &iota;
    bundle.kernel_count = 1;
    ASSERT_TRUE(rig_start(&rig));
    EXPECT_INT_EQ(create_iota(&rig, &bundle), WEIR_ERROR_BUILD);
    expect_text("kernel 'iota': parameter 'first' of type 'ulong' has 4 bytes in the image, not 8");
    expect_text("give the kernel the same parameters wherever it is written");
    iota.parameter_count = 1;
    EXPECT_INT_EQ(create_iota(&rig, &bundle), WEIR_ERROR_BUILD);
    expect_text("kernel 'iota' has more parameters in the image than the 1 of its signature");
    rig_finish(&rig);
}

WEIR_TEST(CudaMessages, OtherParametersInTheImage)
{
    rig_in_child(load_other_parameters);
}

static void pass_wrong_arguments(void)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    weir_program *program = rig_program(&rig);
    weir_kernel *iota = rig_kernel(program, "iota");
    weir_buffer *buffer = rig_buffer(&rig, 4096, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(weir_queue_launch(rig.queue, iota, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                    weir_out(buffer, 0, 64), 3u),
                  WEIR_ERROR_INVALID);
    expect_text("launch: 2 arguments; the kernel has 3 parameters: out, first, n");
    expect_text("pass one for each, in the kernel's order");
    EXPECT_INT_EQ(weir_queue_launch(rig.queue, iota, weir_dim(1, 1, 1), weir_dim(16, 1, 1), 3u,
                                    weir_out(buffer, 0, 64), 3u),
                  WEIR_ERROR_INVALID);
    expect_text("launch: parameter 0, 'out', is a uint *; it got a value");
    expect_text("pass weir_in(), weir_out() or weir_inout()");
    EXPECT_INT_EQ(weir_queue_launch(rig.queue, iota, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                    weir_out(buffer, 0, 64), weir_in(buffer, 64, 64), 3u),
                  WEIR_ERROR_INVALID);
    expect_text("launch: parameter 1, 'first', is a");
    expect_text("pass the value itself, or weir_value()");
    EXPECT_INT_EQ(weir_queue_launch(rig.queue, iota, weir_dim(1, 1, 1), weir_dim(1 << 20, 1, 1),
                                    weir_out(buffer, 0, 64), 3u, 3u),
                  WEIR_ERROR_INVALID);
    expect_text("launch: block.x is 1048576, the device's limit is");
    expect_text("use a smaller block and a larger grid");
    // Nothing was submitted, and nothing has failed.
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    weir_buffer_destroy(&buffer);
    weir_kernel_destroy(&iota);
    weir_program_destroy(&program);
    rig_finish(&rig);
}

WEIR_TEST(CudaMessages, WrongArguments)
{
    rig_in_child(pass_wrong_arguments);
}

static void ask_for_a_kernel(void)
{
    struct rig rig;
    weir_kernel *kernel;
    ASSERT_TRUE(rig_start(&rig));
    weir_program *program = rig_program(&rig);
    EXPECT_INT_EQ(weir_kernel_create(program, "itoa", &kernel), WEIR_ERROR_NOT_FOUND);
    expect_text("the program has no kernel 'itoa'; did you mean 'iota'?");
    weir_program_destroy(&program);
    rig_finish(&rig);
}

WEIR_TEST(CudaMessages, AKernelThatIsNotThere)
{
    rig_in_child(ask_for_a_kernel);
}

static void pin_too_much(void)
{
    struct rig rig;
    weir_buffer *buffer;
    struct weir_buffer_params params = {.struct_size = sizeof params,
                                        .size = (size_t)100 << 20,
                                        .placement = WEIR_PLACE_HOST};
    setenv("WEIR_TEST_CUDA_PINNED", "67108864", 1);
    ASSERT_TRUE(rig_start(&rig));
    EXPECT_INT_EQ(weir_buffer_create(rig.device, &params, &buffer), WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_NULL(buffer);
    expect_text("a pinned HOST buffer of 104857600 bytes was asked for, and ");
    expect_text("bytes of the machine's memory are free");
    expect_text("cuMemHostAlloc returned CUDA_ERROR_OUT_OF_MEMORY, 2");
    params.size = (size_t)32 << 20;
    EXPECT_OK(weir_buffer_create(rig.device, &params, &buffer));
    weir_buffer_destroy(&buffer);
    rig_finish(&rig);
}

WEIR_TEST(CudaMessages, OutOfPinnedMemory)
{
    rig_in_child(pin_too_much);
}

static void ask_for_too_much(void)
{
    struct rig rig;
    weir_buffer *buffer;
    struct weir_buffer_params params = {.struct_size = sizeof params, .size = (size_t)2 << 30};
    ASSERT_TRUE(rig_start(&rig));
    EXPECT_INT_EQ(weir_buffer_create(rig.device, &params, &buffer), WEIR_ERROR_OUT_OF_MEMORY);
    expect_text("a DEVICE buffer of 2147483648 bytes was asked for, and 1073741824 bytes of "
                "1073741824 are free");
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    rig_finish(&rig);
}

WEIR_TEST(CudaMessages, OutOfDeviceMemory)
{
    rig_in_child(ask_for_too_much);
}
