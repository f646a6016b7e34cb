// The sizes of values that kernels compiled at run time take: scalars, vectors and structures,
// whose names may begin like a vector's.
#include <string.h>
#include <weir/weir.h>

#include "tests/support/test.h"

static const char source[] =
    "typedef struct { float m[16]; } float4x4;\n"
    "struct int2_and_more { int2 two; int more; };\n"
    "__kernel void sum(float4x4 matrix, struct int2_and_more some, float3 three, ulong2 two,\n"
    "                  char16 bytes, uint one, __global float *out)\n"
    "{\n"
    "    float all = 0.0f;\n"
    "    for (int i = 0; i < 16; i++)\n"
    "        all += matrix.m[i];\n"
    "    all += (float)(some.two.x + some.two.y + some.more);\n"
    "    all += three.x + three.y + three.z + (float)(two.x + two.y);\n"
    "    out[0] = all + (float)bytes.sf + (float)one;\n"
    "}\n";

WEIR_TEST(Values, HaveTheSizesOfTheirTypes)
{
    static const uint32_t sizes[] = {64, 16, 16, 16, 16, 4};
    const struct weir_open_params open = {
        .struct_size = sizeof open,
        .config_path = "test.ini",
        .config_text = "[weir]\nbackend = opencl\n[opencl]\ncache = 0\n",
        .module_path = weir_test_runfile("backends/opencl"),
    };
    const struct weir_program_params params = {.struct_size = sizeof params, .source = source};
    const struct weir_buffer_params memory = {.struct_size = sizeof memory, .size = 4};
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    weir_kernel *kernel;
    weir_queue *queue;
    weir_buffer *buffer;
    float matrix[16];
    const int32_t some[4] = {100, 200, 300, 0}; // aligned as its vector is
    const float three[4] = {1000, 2000, 3000, 0};
    const uint64_t two[2] = {10000, 20000};
    int8_t bytes[16] = {0};
    float result = 0;

    ASSERT_INT_EQ(weir_open(&open, &runtime), WEIR_OK);
    ASSERT_INT_EQ(weir_device_open(runtime, NULL, &device), WEIR_OK);
    ASSERT_INT_EQ(weir_program_create(device, &params, &program), WEIR_OK);
    ASSERT_INT_EQ(weir_kernel_create(program, "sum", &kernel), WEIR_OK);
    ASSERT_INT_EQ(weir_queue_create(device, NULL, &queue), WEIR_OK);
    ASSERT_INT_EQ(weir_buffer_create(device, &memory, &buffer), WEIR_OK);
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(kernel);
    ASSERT_UINT_EQ(signature->parameter_count, 7);
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        weir_test_note("parameter %u", (unsigned)i);
        EXPECT_UINT_EQ(weir_signature_parameter(signature, i)->size, sizes[i]);
    }
    weir_test_note(NULL);
    for (int i = 0; i < 16; i++)
        matrix[i] = 1;
    bytes[15] = 4;
    EXPECT_INT_EQ(weir_queue_launch(queue, kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                    weir_value(matrix, sizeof matrix),
                                    weir_value(some, sizeof some), weir_value(three, sizeof three),
                                    weir_value(two, sizeof two), weir_value(bytes, sizeof bytes),
                                    5u, weir_out(buffer, 0, 4)),
                  WEIR_OK);
    EXPECT_INT_EQ(weir_download(queue, &result, buffer, 0, sizeof result), WEIR_OK);
    EXPECT_INT_EQ((int)result, 16 + 600 + 6000 + 30000 + 4 + 5);
    weir_buffer_destroy(&buffer);
    weir_queue_destroy(&queue);
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    EXPECT_INT_EQ(weir_device_close(&device), WEIR_OK);
    EXPECT_INT_EQ(weir_close(&runtime), WEIR_OK);
}
