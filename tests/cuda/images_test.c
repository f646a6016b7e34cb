// Which image of a program the CUDA backend takes, and what does not fit the device.
#include <stdio.h>
#include <string.h>

#include "tests/cuda/rig.h"

static weir_status try_images(struct rig *rig, const struct weir_image *images, uint32_t count)
{
    const struct weir_bundle bundle = rig_bundle(images, count);
    weir_program *program;
    weir_status status =
        weir_program_create(rig->device, WEIR_PARAMS(weir_program, .bundle = &bundle), &program);
    weir_program_destroy(&program);
    return status;
}

WEIR_TEST(CudaImages, AreChosenByArchitecture)
{
    const struct weir_image good = *weir_test_image();
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    // Only one of each is a valid image, so a wrong choice is refused.
    const struct weir_image cubins[] = {
        {sizeof(struct weir_image), WEIR_IMAGE_OPENCL_C, "", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_80", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_90", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_90", good.data, good.size},
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_100", "nothing", 7},
    };
    EXPECT_OK(try_images(&rig, cubins, 5));
    const struct weir_image texts[] = {
        {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_80", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_75", "nothing", 7},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_86", good.data, good.size},
        {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_120", "nothing", 7},
    };
    EXPECT_OK(try_images(&rig, texts, 4));
    rig_finish(&rig);
}

// A target with a letter, such as sm_90a, is for devices of just that number, and as good as one
// without there.
WEIR_TEST(CudaImages, OfOneArchitectureAlone)
{
    const struct weir_image good = *weir_test_image();
    const struct weir_image own = {sizeof own, WEIR_IMAGE_CUBIN, "sm_90a", good.data, good.size};
    const struct weir_image own_text = {sizeof own, WEIR_IMAGE_PTX, "sm_90a", good.data, good.size};
    const struct weir_image others[] = {
        {sizeof own, WEIR_IMAGE_PTX, "sm_89a", good.data, good.size},
        {sizeof own, WEIR_IMAGE_PTX, "sm_100a", good.data, good.size},
        {sizeof own, WEIR_IMAGE_CUBIN, "sm_100a", good.data, good.size},
        {sizeof own, WEIR_IMAGE_CUBIN, "gfx90a", good.data, good.size},
    };
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig)); // of sm_90
    EXPECT_OK(try_images(&rig, &own, 1));
    EXPECT_OK(try_images(&rig, &own_text, 1));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        weir_test_note("%s", others[i].target);
        EXPECT_FAILURE(try_images(&rig, &others[i], 1), WEIR_ERROR_UNSUPPORTED,
                       "no image for 'Fake GPU 0', which is sm_90");
        EXPECT_CONTAINS(weir_last_error_text(), others[i].target);
    }
    weir_test_note(NULL);
    rig_finish(&rig);
}

static char logged[1024];

static void keep_message(void *user, weir_log_level level, const char *source, const char *message)
{
    (void)user;
    (void)source;
    if (level == WEIR_LOG_INFO)
        snprintf(logged, sizeof logged, "%s", message);
}

// Where CUDA C++ stands beside the OpenCL C, which of the two runs is told, and that neither does.
WEIR_TEST(CudaImages, OfATwin)
{
    const struct weir_image images[] = {
        {sizeof *images, WEIR_IMAGE_OPENCL_C, "", "nothing", 7},
        {sizeof *images, WEIR_IMAGE_TWIN, "", "a/k.cu", 6},
        {sizeof *images, WEIR_IMAGE_CUBIN, "sm_90", weir_test_image()->data,
         weir_test_image()->size},
    };
    const struct weir_image others[] = {
        images[1],
        {sizeof *images, WEIR_IMAGE_CUBIN, "sm_80", "nothing", 7},
    };
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig)); // of sm_90
    weir_log_set(keep_message, NULL, WEIR_LOG_INFO);
    EXPECT_OK(try_images(&rig, images, 3));
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    EXPECT_STR_EQ(logged,
                  "bundle 'rig': the cubin sm_90, made from a/k.cu and not from its OpenCL C");
    EXPECT_FAILURE(try_images(&rig, images, 2), WEIR_ERROR_UNSUPPORTED,
                   "bundle 'rig' has no CUDA images: a/k.cu was not compiled");
    EXPECT_CONTAINS(weir_last_error_text(), "build it on a machine with nvcc, or without its CUDA "
                                            "C++");
    EXPECT_FAILURE(try_images(&rig, others, 2), WEIR_ERROR_UNSUPPORTED,
                   "it has cubin sm_80, made from a/k.cu");
    rig_finish(&rig);
}

WEIR_TEST(CudaImages, ThatDoNotFitAreNamed)
{
    const struct weir_image foreign[] = {{sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_80", "x",
                                          1},
                                         {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_100", "x",
                                          1}};
    const struct weir_image none = {sizeof(struct weir_image), WEIR_IMAGE_OPENCL_C, "", "x", 1};
    const struct weir_image broken = {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_90",
                                      "nothing", 7};
    const struct weir_image lacking = {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_90",
                                       "fake: vector_add scale", 22};
    const struct weir_image tomorrow = {sizeof(struct weir_image), WEIR_IMAGE_PTX, "sm_90",
                                        "// x\n.version 10.1\n", 19};
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    EXPECT_FAILURE(try_images(&rig, foreign, 2), WEIR_ERROR_UNSUPPORTED,
                   "no image for 'Fake GPU 0', which is sm_90; it has "
                   "cubin sm_80, PTX sm_100");
    EXPECT_FAILURE(try_images(&rig, &none, 1), WEIR_ERROR_UNSUPPORTED,
                   "bundle 'rig' has no CUDA images");
    EXPECT_FAILURE(try_images(&rig, &broken, 1), WEIR_ERROR_UNSUPPORTED,
                   "does not take the cubin sm_90 of 'rig'");
    EXPECT_FAILURE(try_images(&rig, &lacking, 1), WEIR_ERROR_NOT_FOUND,
                   "kernel 'saxpy' is missing from the cubin sm_90 of bundle 'rig'");
    EXPECT_FAILURE(try_images(&rig, &tomorrow, 1), WEIR_ERROR_UNSUPPORTED,
                   "CUDA 14 built it, and the driver supports CUDA 13.0");
    rig_finish(&rig);
}

// Each array begins at a multiple of 16 bytes, which makes this too large.
WEIR_TEST(CudaImages, LocalMemoryInAllIsChecked)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    weir_program *program = rig_program(&rig);
    weir_kernel *kernel = rig_kernel(program, "two_locals");
    weir_buffer *buffer = rig_buffer(&rig, 4096, WEIR_PLACE_DEVICE);
    EXPECT_FAILURE(weir_queue_launch(rig.queue, kernel, weir_dim(1, 1, 1), weir_dim(32, 1, 1),
                                     weir_in(buffer, 0, 128), weir_out(buffer, 2048, 128),
                                     weir_local(200001), weir_local(32447)),
                   WEIR_ERROR_INVALID,
                   "asks for 32447 bytes of local memory; of the device's "
                   "232448 this launch has 32432 left");
    weir_buffer_destroy(&buffer);
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    rig_finish(&rig);
}

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

// As after a kernel was changed in one of two languages.
WEIR_TEST(CudaImages, WithOtherParameters)
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
    EXPECT_FAILURE(create_iota(&rig, &bundle), WEIR_ERROR_BUILD,
                   "parameter 'first' of type 'ulong' has 4 bytes in the image, not 8");
    iota.parameter_count = 1;
    EXPECT_FAILURE(create_iota(&rig, &bundle), WEIR_ERROR_BUILD,
                   "has more parameters in the image than the 1");
    rig_finish(&rig);
}
