// OpenCL C of the caller's: what launches are checked against, what is refused, and what is kept on disk.

#include "tests/opencl/rig.h"

static weir_status create(struct opencl_rig *rig, const char *source, const char *options,
                          weir_program **out_program)
{
    return weir_program_create(rig->device,
                               WEIR_PARAMS(weir_program, .source = source, .options = options),
                               out_program);
}

// The kernel `name` of a source.
static weir_kernel *kernel_of(struct opencl_rig *rig, const char *source, const char *options,
                              const char *name)
{
    return opencl_rig_kernel(rig, WEIR_PARAMS(weir_program, .source = source, .options = options),
                             name);
}

static void expect_parameter(const weir_kernel *kernel, uint32_t index, weir_parameter_kind kind,
                             const char *type, uint32_t size)
{
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(kernel);
    ASSERT_UINT_LT(index, signature->parameter_count);
    const struct weir_parameter *parameter = weir_signature_parameter(signature, index);
    EXPECT_INT_EQ(parameter->kind, kind);
    EXPECT_STR_EQ(parameter->type_name, type);
    EXPECT_UINT_EQ(parameter->size, size);
}

OPENCL_RIG_TEST(OpenclSource, ParametersOfEveryKind)
{
    static const char source[] =
        "struct pair { uint a; ulong b; };\n"
        "typedef struct { float x[5]; } five;\n"
        "typedef struct { uint width; } image_t;\n"
        "typedef struct { uint stages; } pipeline;\n"
        "__kernel __attribute__((reqd_work_group_size(4, 2, 1)))\n"
        "void several(__constant float *table, __global struct pair *pairs, __local uchar *some,\n"
        "         struct pair p, five q, float3 v, double16 w, uint n, image_t i,\n"
        "         __global pipeline *s)\n"
        "{\n"
        "    pairs[n].a = p.a + i.width + s->stages + some[0] + (uint)(table[0] + q.x[0] + v.x + "
        "w.s0);\n"
        "}\n";
    own_kernel kernel = kernel_of(rig, source, NULL, "several");
    ASSERT_NOT_NULL(kernel);
    expect_parameter(kernel, 0, WEIR_PARAMETER_BUFFER, "const float *", 0);
    expect_parameter(kernel, 1, WEIR_PARAMETER_BUFFER, "struct pair *", 0);
    expect_parameter(kernel, 2, WEIR_PARAMETER_LOCAL, "uchar *", 0);
    expect_parameter(kernel, 3, WEIR_PARAMETER_VALUE, "struct pair", 16);
    expect_parameter(kernel, 4, WEIR_PARAMETER_VALUE, "five", 20);
    expect_parameter(kernel, 5, WEIR_PARAMETER_VALUE, "float3", 16);
    expect_parameter(kernel, 6, WEIR_PARAMETER_VALUE, "double16", 128);
    expect_parameter(kernel, 7, WEIR_PARAMETER_VALUE, "uint", 4);
    expect_parameter(kernel, 8, WEIR_PARAMETER_VALUE, "image_t", 4);
    expect_parameter(kernel, 9, WEIR_PARAMETER_BUFFER, "pipeline *", 0);
    EXPECT_UINT_EQ(weir_kernel_get_signature(kernel)->required_block.y, 2);
}

OPENCL_RIG_TEST(OpenclSource, WhatALaunchCannotPass)
{
    static const char *const sources[][2] = {
        {"__kernel void k(image2d_depth_t how, __global float *out) { out[0] = 0; }",
         "source:1: kernel 'k': parameter 'how' is of type image2d_depth_t"},
        {"// void k(picture)\n/* void k( */ __constant char t[] = \"void k(\\\"\";\n"
         "__kernel void\nk(__global float *out,\n  read_only image2d_depth_t picture)\n{\n out[0] "
         "= "
         "0;\n}\n",
         "source:5: kernel 'k': parameter 'picture' is of type image2d_depth_t"},
        // Where the line is not certain there is none.
        {"#if 1\n__kernel void k(image2d_depth_t how) {}\n#else\n__kernel void k(image2d_depth_t "
         "how) "
         "{}\n#endif\n",
         "kernel 'k': parameter 'how' is of type image2d_depth_t"},
        {"#line 7\n__kernel void k(image2d_depth_t how) {}\n",
         "kernel 'k': parameter 'how' is of type image2d_depth_t"},
        {"  #  line 7\n__kernel void k(image2d_depth_t how) {}\n",
         "kernel 'k': parameter 'how' is of type image2d_depth_t"},
        {"#define NAME(x) x ## ow\n__kernel void k(image2d_depth_t NAME(h)) {}\n",
         "kernel 'k': parameter 'how' is of type image2d_depth_t"},
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        weir_program *program;
        EXPECT_FAILURE(create(rig, sources[i][0], NULL, &program), WEIR_ERROR_UNSUPPORTED,
                       sources[i][1]);
        EXPECT_INT_EQ(strstr(weir_last_error()->message, "source:") != NULL,
                      strstr(sources[i][1], "source:") != NULL);
        EXPECT_NULL(program);
    }
}

// A name of the language C++, one that begins like an attribute's, and none.
OPENCL_RIG_TEST(OpenclSource, NamesThatAreNoneElsewhere)
{
    static const char source[] = "// weir_grid_barrier()\n"
                                 "__kernel void __k(__global int *typename, uint)\n"
                                 "{\n    typename[0] = 1;\n}\n";
    own_kernel kernel = kernel_of(rig, source, NULL, "__k");
    ASSERT_NOT_NULL(kernel);
    expect_parameter(kernel, 0, WEIR_PARAMETER_BUFFER, "int *", 0);
    expect_parameter(kernel, 1, WEIR_PARAMETER_VALUE, "uint", 4);
    EXPECT_OK(weir_queue_launch(rig->queues[0], kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(rig->buffer, 0, 4), 1u));
}

// Lines are those of the caller's text, whatever comes before it.
OPENCL_RIG_TEST(OpenclSource, LinesOfErrors)
{
    weir_program *program;
    EXPECT_FAILURE(create(rig,
                          "// one\n__kernel void k(__global uint *out)\n{\n"
                          "    out[0] = absent;\n}\n",
                          NULL, &program),
                   WEIR_ERROR_BUILD, "source:4:14:", "absent");
}

static uint32_t run(struct opencl_rig *rig, const char *source, const char *options)
{
    own_kernel kernel = kernel_of(rig, source, options, "k");
    uint32_t value = 0;
    EXPECT_OK(weir_queue_launch(rig->queues[0], kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(rig->buffer, 0, 4)));
    EXPECT_OK(weir_download(rig->queues[0], &value, rig->buffer, 0, 4));
    return value;
}

OPENCL_RIG_TEST(OpenclSource, Options)
{
    static const char source[] =
        "__kernel void k(__global uint *out)\n"
        "{\n#ifdef __FAST_RELAXED_MATH__\n    out[0] = 1000 * NUMBER + __OPENCL_C_VERSION__;\n"
        "#else\n    out[0] = 100000 * NUMBER + __OPENCL_C_VERSION__;\n#endif\n}\n";
    static const char version[] =
        "__kernel void k(__global uint *out) { out[0] = __OPENCL_C_VERSION__; }";
    EXPECT_UINT_EQ(run(rig, version, NULL), 120);
    EXPECT_UINT_EQ(run(rig, source, "-D NUMBER=8 -cl-opt-disable"), 800120);
    EXPECT_UINT_EQ(run(rig, source, "-cl-std=CL1.1 -DNUMBER=7 -cl-fast-relaxed-math"), 7110);
}

// Whether the driver says what local memory a kernel declares.
static bool tells_local_memory(struct opencl_rig *rig, const char *source)
{
    own_kernel kernel = kernel_of(rig, source, "-DSIZE=16", "large");
    return kernel && weir_kernel_get_info(kernel)->local_bytes > 0;
}

// More than the device has cannot be launched, and creating the kernel says so.
OPENCL_RIG_TEST(OpenclSource, LocalMemoryOfTheKernel)
{
    static const char source[] =
        "__kernel void large(__global uint *out)\n"
        "{\n"
        "    __local uint scratch[SIZE];\n"
        "    scratch[get_local_id(0)] = (uint)get_local_id(0);\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    out[get_global_id(0)] = scratch[get_local_size(0) - 1 - get_local_id(0)];\n"
        "}\n";
    own_program program = NULL;
    weir_kernel *kernel;
    char options[64];
    if (!tells_local_memory(rig, source)) {
        WEIR_SKIP("the driver says 0 of kernels' local memory, as PoCL 6 does");
    }
    const uint64_t limit = weir_device_limits(rig->device)->max_local_bytes;
    snprintf(options, sizeof options, "-DSIZE=%zu", (size_t)limit / 4 + 1);
    ASSERT_INT_EQ(create(rig, source, options, &program), WEIR_OK);
    EXPECT_FAILURE(weir_kernel_create(program, "large", &kernel), WEIR_ERROR_UNSUPPORTED,
                   "bytes of local memory; a block of");
}

// The sizes of values: scalars, vectors and structures, whose names may begin like a vector's.
OPENCL_RIG_TEST(OpenclSource, ValuesHaveTheSizesOfTheirTypes)
{
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
    static const uint32_t sizes[] = {64, 16, 16, 16, 16, 4};
    const int32_t some[4] = {100, 200, 300, 0}; // aligned as its vector is
    const float three[4] = {1000, 2000, 3000, 0};
    const uint64_t two[2] = {10000, 20000};
    const int8_t bytes[16] = {[15] = 4};
    own_kernel kernel = kernel_of(rig, source, NULL, "sum");
    float matrix[16];
    float result = 0;

    ASSERT_NOT_NULL(kernel);
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(kernel);
    ASSERT_UINT_EQ(signature->parameter_count, 7);
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        EXPECT_UINT_EQ(weir_signature_parameter(signature, i)->size, sizes[i]);
    for (int i = 0; i < 16; i++)
        matrix[i] = 1;
    const weir_status launched =
        weir_queue_launch(rig->queues[0], kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                          weir_value(matrix, sizeof matrix), weir_value(some, sizeof some),
                          weir_value(three, sizeof three), weir_value(two, sizeof two),
                          weir_value(bytes, sizeof bytes), 5u, weir_out(rig->buffer, 0, 4));
    EXPECT_OK(launched);
    EXPECT_OK(weir_download(rig->queues[0], &result, rig->buffer, 0, sizeof result));
    EXPECT_INT_EQ((int)result, 16 + 600 + 6000 + 30000 + 4 + 5);
}

// The cache of programs on disk.

// Makes a program, and counts the driver's calls about binaries.
static void count_binaries(unsigned play, long *out_written, long *out_read)
{
    own_opencl_rig rig = {0};
    opencl_rig_begin(&rig, ""); // for its shim
    EXPECT_OK(weir_close(&rig.runtime));
    rig.shim->play(play);
    const long written = rig.shim->calls("clGetProgramInfo");
    const long read = rig.shim->calls("clCreateProgramWithBinary");
    opencl_rig_begin(&rig, "");
    EXPECT_OK(weir_device_open(rig.runtime, NULL, &rig.device));
    EXPECT_OK(
        weir_program_create(rig.device,
                            WEIR_PARAMS(weir_program,
                                        .source = "kernel void two(global int *x) { *x = 2; }"),
                            &rig.program));
    *out_written = rig.shim->calls("clGetProgramInfo") - written;
    *out_read = rig.shim->calls("clCreateProgramWithBinary") - read;
}

// PoCL keeps what it compiles itself. To hand out a binary it would compile every kernel once more.
WEIR_TEST(OpenclCache, IsLeftToPocl)
{
    long written;
    long read;
    setenv("WEIR_OPENCL_CACHE", "1", 1);
    setenv("WEIR_OPENCL_CACHE_DIR", weir_test_temp_dir(), 1);
    count_binaries(0, &written, &read);
    EXPECT_INT_EQ(written, 0);
    EXPECT_INT_EQ(read, 0);
    count_binaries(WEIR_TEST_OPENCL_ANOTHER_NAME, &written, &read);
    EXPECT_INT_EQ(written, 2); // its size, and the binary
    EXPECT_INT_EQ(read, 0);
    count_binaries(WEIR_TEST_OPENCL_ANOTHER_NAME, &written, &read);
    EXPECT_INT_EQ(written, 0);
    EXPECT_INT_EQ(read, 1);
    unsetenv("WEIR_OPENCL_CACHE");
    unsetenv("WEIR_OPENCL_CACHE_DIR");
}
