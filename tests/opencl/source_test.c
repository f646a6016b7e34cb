// OpenCL C of the caller's: what launches are checked against, and what is refused.
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
};

static bool start(struct rig *rig)
{
    static const char text[] = "[weir]\nbackend = opencl\n[opencl]\ncache = 0\n";
    *rig = (struct rig){NULL};
    if (weir_open(&(struct weir_open_params){.struct_size = sizeof(struct weir_open_params),
                                             .config_path = "test.ini",
                                             .config_text = text,
                                             .module_path = weir_test_runfile("backends/opencl")},
                  &rig->runtime) == WEIR_OK &&
        weir_device_open(rig->runtime, NULL, &rig->device) == WEIR_OK &&
        weir_queue_create(rig->device, NULL, &rig->queue) == WEIR_OK)
        return true;
    weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return false;
}

static void finish(struct rig *rig)
{
    weir_queue_destroy(&rig->queue);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

static weir_status create(struct rig *rig, const char *source, const char *options,
                          weir_program **out_program)
{
    return weir_program_create(rig->device,
                               &(struct weir_program_params){.struct_size =
                                                                 sizeof(struct weir_program_params),
                                                             .source = source,
                                                             .options = options},
                               out_program);
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

WEIR_TEST(OpenclSource, ParametersOfEveryKind)
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
    struct rig rig;
    weir_program *program;
    weir_kernel *kernel;
    if (!start(&rig))
        return;
    ASSERT_OK(create(&rig, source, NULL, &program));
    ASSERT_OK(weir_kernel_create(program, "several", &kernel));
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
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    finish(&rig);
}

WEIR_TEST(OpenclSource, WhatALaunchCannotPass)
{
    static const char *const sources[][2] = {
        {"__kernel void k(read_only image2d_t picture, __global float *out) { out[0] = 0; }",
         "source:1: kernel 'k': parameter 'picture' is of type image2d_t"},
        {"__kernel void k(sampler_t how, __global float *out) { out[0] = 0; }",
         "source:1: kernel 'k': parameter 'how' is of type sampler_t"},
        {"// void k(picture)\n/* void k( */ __constant char t[] = \"void k(\\\"\";\n"
         "__kernel void\nk(__global float *out,\n  read_only image2d_t picture)\n{\n out[0] = "
         "0;\n}\n",
         "source:5: kernel 'k': parameter 'picture' is of type image2d_t"},
        // Where the line is not certain there is none.
        {"#if 1\n__kernel void k(sampler_t how) {}\n#else\n__kernel void k(sampler_t how) "
         "{}\n#endif\n",
         "kernel 'k': parameter 'how' is of type sampler_t"},
        {"#line 7\n__kernel void k(sampler_t how) {}\n",
         "kernel 'k': parameter 'how' is of type sampler_t"},
        {"#define NAME(x) x ## ow\n__kernel void k(sampler_t NAME(h)) {}\n",
         "kernel 'k': parameter 'how' is of type sampler_t"},
    };
    struct rig rig;
    if (!start(&rig))
        return;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        weir_program *program;
        EXPECT_INT_EQ(create(&rig, sources[i][0], NULL, &program), WEIR_ERROR_UNSUPPORTED);
        EXPECT_CONTAINS(weir_last_error()->message, sources[i][1]);
        EXPECT_INT_EQ(strstr(weir_last_error()->message, "source:") != NULL,
                      strstr(sources[i][1], "source:") != NULL);
        EXPECT_NULL(program);
    }
    finish(&rig);
}

// Lines are those of the caller's text, whatever comes before it.
WEIR_TEST(OpenclSource, LinesOfErrors)
{
    struct rig rig;
    weir_program *program;
    if (!start(&rig))
        return;
    EXPECT_INT_EQ(create(&rig,
                         "// one\n__kernel void k(__global uint *out)\n{\n"
                         "    out[0] = absent;\n}\n",
                         NULL, &program),
                  WEIR_ERROR_BUILD);
    EXPECT_CONTAINS(weir_last_error()->message, "source:4:14:");
    EXPECT_CONTAINS(weir_last_error()->message, "absent");
    finish(&rig);
}

static uint32_t run(struct rig *rig, const char *source, const char *options)
{
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *out;
    uint32_t value = 0;
    if (create(rig, source, options, &program) != WEIR_OK) {
        weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
        return 0;
    }
    EXPECT_OK(weir_kernel_create(program, "k", &kernel));
    EXPECT_OK(weir_buffer_create(
        rig->device,
        &(struct weir_buffer_params){.struct_size = sizeof(struct weir_buffer_params), .size = 4},
        &out));
    EXPECT_OK(weir_queue_launch(rig->queue, kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(out, 0, 4)));
    EXPECT_OK(weir_download(rig->queue, &value, out, 0, 4));
    weir_buffer_destroy(&out);
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    return value;
}

WEIR_TEST(OpenclSource, Options)
{
    static const char version[] =
        "__kernel void k(__global uint *out) { out[0] = __OPENCL_C_VERSION__; }";
    static const char number[] = "__kernel void k(__global uint *out) { out[0] = NUMBER; }";
    static const char fast[] = "__kernel void k(__global uint *out)\n"
                               "{\n#ifdef __FAST_RELAXED_MATH__\n    out[0] = 1;\n"
                               "#else\n    out[0] = 2;\n#endif\n}\n";
    struct rig rig;
    if (!start(&rig))
        return;
    EXPECT_UINT_EQ(run(&rig, version, NULL), 120);
    EXPECT_UINT_EQ(run(&rig, version, "-cl-std=CL1.1"), 110);
    EXPECT_UINT_EQ(run(&rig, number, "-DNUMBER=7"), 7);
    EXPECT_UINT_EQ(run(&rig, number, "-D NUMBER=8 -cl-opt-disable"), 8);
    EXPECT_UINT_EQ(run(&rig, fast, NULL), 2);
    EXPECT_UINT_EQ(run(&rig, fast, "-cl-fast-relaxed-math"), 1);
    finish(&rig);
}

// Whether the driver says what local memory a kernel declares.
static bool tells_local_memory(struct rig *rig, const char *source)
{
    weir_program *program = NULL;
    weir_kernel *kernel = NULL;
    bool told = false;
    EXPECT_OK(create(rig, source, "-DSIZE=16", &program));
    if (program)
        EXPECT_OK(weir_kernel_create(program, "large", &kernel));
    if (program && kernel)
        told = weir_kernel_get_info(kernel)->local_bytes > 0;
    weir_kernel_destroy(&kernel);
    weir_program_destroy(&program);
    return told;
}

// More than the device has cannot be launched, and creating the kernel says so.
WEIR_TEST(OpenclSource, LocalMemoryOfTheKernel)
{
    static const char source[] =
        "__kernel void large(__global uint *out)\n"
        "{\n"
        "    __local uint scratch[SIZE];\n"
        "    scratch[get_local_id(0)] = (uint)get_local_id(0);\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    out[get_global_id(0)] = scratch[get_local_size(0) - 1 - get_local_id(0)];\n"
        "}\n";
    struct rig rig;
    weir_program *program;
    weir_kernel *kernel;
    char options[64];
    ASSERT_TRUE(start(&rig));
    if (!tells_local_memory(&rig, source)) {
        finish(&rig);
        WEIR_SKIP("the driver says 0 of kernels' local memory, as PoCL 6 does");
    }
    const uint64_t limit = weir_device_limits(rig.device)->max_local_bytes;
    snprintf(options, sizeof options, "-DSIZE=%zu", (size_t)limit / 4 + 1);
    ASSERT_OK(create(&rig, source, options, &program));
    EXPECT_INT_EQ(weir_kernel_create(program, "large", &kernel), WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(weir_last_error_text(), "bytes of local memory; a block of");
    weir_program_destroy(&program);
    finish(&rig);
}
