// Programs and kernels: of bundles and of source at run time, and every refusal.

#include "kernels/conformance/conformance.h"
#include "tests/conformance/suite.h"

static const struct weir_extent one = {1, 1, 1};

static void expect_null_refused(struct fixture *f, const struct weir_bundle *bundle,
                                const char *words)
{
    weir_program *program;
    EXPECT_INVALID(weir_program_create(f->device, WEIR_PARAMS(weir_program, .bundle = bundle),
                                       &program),
                   words);
    EXPECT_NULL(program);
}

// A count with no array, and entries that lack what modules read.
CONFORM(Program, BundlesWithHoles)
{
    static const struct weir_image no_data[] = {
        {.struct_size = sizeof no_data[0], .format = WEIR_IMAGE_OPENCL_C, .target = "", .size = 3}};
    static const struct weir_image no_target[] = {
        {.struct_size = sizeof no_target[0], .format = WEIR_IMAGE_OPENCL_C, .data = ""}};
    static const struct weir_image no_size[] = {
        {.format = WEIR_IMAGE_OPENCL_C, .target = "", .data = ""}};
    static const struct weir_parameter no_type[] = {
        {.struct_size = sizeof no_type[0], .name = "out", .kind = WEIR_PARAMETER_BUFFER}};
    static const struct weir_parameter odd[] = {
        {.struct_size = sizeof odd[0], .name = "out", .type_name = "image2d_t", .kind = 4}};
    static const struct weir_kernel_signature no_name[] = {{.struct_size = sizeof no_name[0]}};
    static const struct weir_kernel_signature no_parameters[] = {
        {.struct_size = sizeof no_parameters[0], .name = "k", .parameter_count = 2}};
    static const struct weir_kernel_signature half[] = {
        {.struct_size = sizeof half[0], .name = "k", .parameters = no_type, .parameter_count = 1}};
    static const struct weir_kernel_signature newer[] = {
        {.struct_size = sizeof newer[0], .name = "k", .parameters = odd, .parameter_count = 1}};
    struct weir_bundle bundle = {.struct_size = sizeof bundle, .name = "holes", .image_count = 1};

    expect_null_refused(f, &bundle, "bundle: `images` is NULL");
    bundle.images = no_data;
    expect_null_refused(f, &bundle, "image 0: `data` is NULL");
    bundle.images = no_target;
    expect_null_refused(f, &bundle, "image 0: `target` is NULL");
    bundle.images = no_size;
    expect_null_refused(f, &bundle, "an element of `images` has 0 bytes");
    bundle.image_count = 0;
    bundle.kernel_count = 1;
    expect_null_refused(f, &bundle, "bundle: `kernels` is NULL");
    bundle.kernels = no_name;
    expect_null_refused(f, &bundle, "kernel 0: `name` is NULL");
    bundle.kernels = no_parameters;
    expect_null_refused(f, &bundle, "kernel 0: `parameters` is NULL");
    bundle.kernels = half;
    expect_null_refused(f, &bundle, "kernel 0, parameter 0: `type_name` is NULL");
    bundle.kernels = newer;
    expect_null_refused(f, &bundle, "'out' is of kind 4");
}

CONFORM(Program, Refusals)
{
    struct weir_program_params params = {.struct_size = sizeof params,
                                         .label = "p",
                                         .bundle = &conformance_kernels};
    weir_program *program = (weir_program *)(void *)&params;

    EXPECT_INVALID(weir_program_create(NULL, &params, &program), "device");
    EXPECT_NULL(program);
    EXPECT_INVALID(weir_program_create(f->device, NULL, &program), "params");
    EXPECT_INVALID(weir_program_create(f->device, &params, NULL), "out_program");
#define NO_PROGRAM(change, part) \
    EXPECT_INVALID_WITH(params, change, weir_program_create(f->device, &params, &program), part)
    NO_PROGRAM(options = "-cl-fast-relaxed-math", "options");
    NO_PROGRAM(cuda_options = "-DX", "cuda_source");
    NO_PROGRAM(exact = true, "exact and fast are for source");
    NO_PROGRAM(cuda_source = "", "source");
    NO_PROGRAM(source = "", "source");
    NO_PROGRAM(bundle = NULL, "source");
    NO_PROGRAM(struct_size = 0, "struct_size");
    params.bundle = NULL;
    params.source = "";
    NO_PROGRAM(options = "-DX -Iinclude", "-I");
    params.source = "kernel void k(global int *p) { p[0] = 1; }";
    params.exact = true;
    NO_PROGRAM(fast = true, "exact and fast");
    params.exact = false;
    params.source = NULL;
#undef NO_PROGRAM

    const struct weir_bundle empty = {.struct_size = sizeof empty, .name = "empty"};
    params.bundle = &empty;
    EXPECT_REFUSED(weir_program_create(f->device, &params, &program), WEIR_ERROR_UNSUPPORTED,
                   "empty");
    EXPECT_NULL(program);
}

CONFORM(Program, KernelByName)
{
    weir_kernel *kernel = conform_kernel(f, "vector_add");
    ASSERT_NOT_NULL(kernel);
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(kernel);
    const struct weir_kernel_info *info = weir_kernel_get_info(kernel);

    EXPECT_STR_EQ(signature->name, "vector_add");
    ASSERT_UINT_EQ(signature->parameter_count, 4);
    EXPECT_STR_EQ(weir_signature_parameter(signature, 0)->name, "a");
    EXPECT_INT_EQ(weir_signature_parameter(signature, 0)->kind, WEIR_PARAMETER_BUFFER);
    EXPECT_UINT_EQ(weir_signature_parameter(signature, 0)->writable, 0);
    EXPECT_UINT_EQ(weir_signature_parameter(signature, 2)->writable, 1);
    EXPECT_INT_EQ(weir_signature_parameter(signature, 3)->kind, WEIR_PARAMETER_VALUE);
    EXPECT_INT_EQ(weir_signature_parameter(signature, 3)->scalar, WEIR_SCALAR_U32);
    EXPECT_UINT_EQ(weir_signature_parameter(signature, 3)->size, 4);
    EXPECT_UINT_GT(info->max_block_items, 0);
    EXPECT_UINT_LE(info->max_block_items, f->limits->max_block_items);
    EXPECT_UINT_GT(info->preferred_block_items, 0);
    weir_kernel_destroy(&kernel);

    EXPECT_REFUSED(weir_kernel_create(f->program, "vector_ad", &kernel), WEIR_ERROR_NOT_FOUND,
                   "did you mean 'vector_add'");
    EXPECT_NULL(kernel);
    EXPECT_INVALID(weir_kernel_create(NULL, "iota", &kernel), "program");
    EXPECT_INVALID(weir_kernel_create(f->program, NULL, &kernel), "name");
    EXPECT_INVALID(weir_kernel_create(f->program, "iota", NULL), "out_kernel");
}

static const char doubling[] =
    "__kernel void twice(__global const uint *in, __global uint *out, uint n)\n"
    "{\n"
    "    uint i = (uint)get_global_id(0);\n"
    "    if (i < n)\n"
    "        out[i] = 2u * in[i];\n"
    "}\n";

static const char multiplying[] =
    "__kernel void twice(__global const uint *in, __global uint *out, uint n)\n"
    "{\n"
    "    uint i = (uint)get_global_id(0);\n"
    "    if (i < n)\n"
    "        out[i] = FACTOR * in[i];\n"
    "}\n";

// Twice what 16 elements are.
static void expect_twice(struct fixture *f, weir_program *program)
{
    uint32_t values[16];
    own_kernel kernel = NULL;
    own_buffer a = conform_device_buffer(f, 64);
    own_buffer b = conform_device_buffer(f, 64);
    ASSERT_OK(weir_kernel_create(program, "twice", &kernel));
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(kernel);
    ASSERT_UINT_EQ(signature->parameter_count, 3);
    EXPECT_UINT_EQ(weir_signature_parameter(signature, 0)->writable, 0);
    EXPECT_UINT_EQ(weir_signature_parameter(signature, 1)->writable, 1);
    for (uint32_t i = 0; i < 16; i++)
        values[i] = i;
    ASSERT_OK(weir_upload(f->queue, a, 0, values, 64));
    EXPECT_INVALID(weir_queue_launch(f->queue, kernel, one, one, weir_out(a, 0, 64),
                                     weir_out(b, 0, 64), 16u),
                   "weir_out()");
    ASSERT_OK(weir_queue_launch(f->queue, kernel, one, weir_dim(16, 1, 1), weir_in(a, 0, 64),
                                weir_out(b, 0, 64), 16u));
    ASSERT_OK(weir_download(f->queue, values, b, 0, 64));
    for (uint32_t i = 0; i < 16 && conform_kernels_run(f); i++)
        EXPECT_UINT_EQ(values[i], 2 * i);
}

// Options mean the same on every device.
CONFORM(Program, SourceAtRunTime)
{
    static const char *const options[] = {NULL, "-D FACTOR=2u -cl-opt-disable",
                                          "-DFACTOR=2u -cl-std=CL1.1 -cl-fast-relaxed-math"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        own_program program = NULL;
        weir_status status = weir_program_create(f->device,
                                                 WEIR_PARAMS(weir_program, .label = "twice",
                                                             .source = i ? multiplying : doubling,
                                                             .options = options[i]),
                                                 &program);
        EXPECT_INT_EQ(program != NULL, status == WEIR_OK);
        CONFORM_COMPILED(status);
        expect_twice(f, program);
    }
}

// CUDA C++ alone needs a device that compiles it; beside OpenCL C any device takes one of the two.
CONFORM(Program, CudaSource)
{
    struct weir_program_params params = {
        .struct_size = sizeof params,
        .label = "twice",
        .cuda_source = "extern \"C\" __global__ void twice(const unsigned *in, unsigned *out,\n"
                       "                                   unsigned n)\n"
                       "{\n"
                       "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                       "    if (i < n)\n"
                       "        out[i] = 2u * in[i];\n"
                       "}\n",
        .cuda_options = "-DUNUSED"};
    own_program program = NULL;
    if (!f->limits->cuda_source) {
        EXPECT_REFUSED(weir_program_create(f->device, &params, &program), WEIR_ERROR_UNSUPPORTED,
                       "limits.cuda_source");
        EXPECT_NULL(program);
        params.source = doubling;
    }
    CONFORM_COMPILED(weir_program_create(f->device, &params, &program));
    expect_twice(f, program);
}

// A function with barriers that is called twice and not declared inline.
static const char two_sums[] = "uint sum_of_block(__local uint *scratch, uint value)\n"
                               "{\n"
                               "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                               "    scratch[get_local_id(0)] = value;\n"
                               "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                               "    uint sum = 0;\n"
                               "    for (uint i = 0; i < get_local_size(0); i++)\n"
                               "        sum += scratch[i];\n"
                               "    return sum;\n"
                               "}\n"
                               "__kernel void barrier_in_helper(__global const uint *in,\n"
                               "                                __global uint *sums,\n"
                               "                                __local uint *scratch)\n"
                               "{\n"
                               "    uint value = in[get_global_id(0)];\n"
                               "    uint sum = sum_of_block(scratch, value);\n"
                               "    uint squares = sum_of_block(scratch, value * value);\n"
                               "    if (get_local_id(0) == 0) {\n"
                               "        sums[2 * get_group_id(0)] = sum;\n"
                               "        sums[2 * get_group_id(0) + 1] = squares;\n"
                               "    }\n"
                               "}\n";

CONFORM(Program, SourceWithBarriersInAFunction)
{
    uint32_t values[64];
    uint32_t sums[4];
    uint32_t expected[4] = {0};
    own_program program = NULL;

    CONFORM_COMPILED(
        weir_program_create(f->device, WEIR_PARAMS(weir_program, .source = two_sums), &program));
    own_kernel kernel = NULL;
    own_buffer in = conform_device_buffer(f, sizeof values);
    own_buffer out = conform_device_buffer(f, sizeof sums);
    ASSERT_OK(weir_kernel_create(program, "barrier_in_helper", &kernel));
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(kernel);
    EXPECT_INT_EQ(weir_signature_parameter(signature, 2)->kind, WEIR_PARAMETER_LOCAL);
    for (uint32_t i = 0; i < 64; i++) {
        values[i] = 3 * i + 1;
        expected[i / 32 * 2] += values[i];
        expected[i / 32 * 2 + 1] += values[i] * values[i];
    }
    ASSERT_OK(weir_upload(f->queue, in, 0, values, sizeof values));
    ASSERT_OK(weir_queue_launch(f->queue, kernel, weir_dim(2, 1, 1), weir_dim(32, 1, 1),
                                weir_in(in, 0, sizeof values), weir_out(out, 0, sizeof sums),
                                weir_local(32 * sizeof *values)));
    ASSERT_OK(weir_download(f->queue, sums, out, 0, sizeof sums));
    if (conform_kernels_run(f))
        EXPECT_MEM_EQ(sums, expected, sizeof sums);
}

// Signatures of source, also where nothing compiles it.
CONFORM(Program, SignaturesOfSource)
{
    static const char source[] =
        "struct pair { float low[2]; float high[2]; };\n"
        "/* __kernel void no(__global int *a) */\n"
        "__kernel void kinds(__global const float4 *in, __global ushort *restrict out,\n"
        "                    __constant float *table, __local uint *scratch, float2 v,\n"
        "                    const struct pair limits, long n)\n"
        "{\n"
        "    scratch[0] = (uint)n;\n"
        "    out[0] = (ushort)(in[0].x + table[0] + v.y + limits.high[0] + scratch[0]);\n"
        "}\n";
    const struct {
        float low[2], high[2];
    } limits = {{1, 2}, {3, 4}};
    own_program program = NULL;
    own_kernel kernel = NULL;
    CONFORM_COMPILED(
        weir_program_create(f->device, WEIR_PARAMS(weir_program, .source = source), &program));
    EXPECT_REFUSED(weir_kernel_create(program, "no", &kernel), WEIR_ERROR_NOT_FOUND, "no");
    ASSERT_OK(weir_kernel_create(program, "kinds", &kernel));
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(kernel);
    ASSERT_UINT_EQ(signature->parameter_count, 7);
    const struct weir_parameter *first = weir_signature_parameter(signature, 0);
    EXPECT_UINT_EQ(first->writable, 0);
    EXPECT_INT_EQ(first->element, WEIR_SCALAR_F32);
    EXPECT_UINT_EQ(first->width, 4);
    EXPECT_UINT_EQ(weir_signature_parameter(signature, 1)->writable, 1);
    EXPECT_UINT_EQ(weir_signature_parameter(signature, 2)->constant, 1);
    EXPECT_INT_EQ(weir_signature_parameter(signature, 3)->kind, WEIR_PARAMETER_LOCAL);
    EXPECT_UINT_EQ(weir_signature_parameter(signature, 4)->width, 2);
    EXPECT_INT_EQ(weir_signature_parameter(signature, 5)->kind, WEIR_PARAMETER_VALUE);
    EXPECT_INT_EQ(weir_signature_parameter(signature, 6)->scalar, WEIR_SCALAR_I64);

    own_buffer in = conform_device_buffer(f, 64);
    own_buffer out = conform_device_buffer(f, 64);
    ASSERT_OK(weir_queue_fill(f->queue, in, 0, 64, "", 1));
    EXPECT_INVALID(weir_queue_launch(f->queue, kernel, one, one, weir_in(in, 0, 64),
                                     weir_out(out, 0, 64), weir_in(in, 0, 64), weir_local(4),
                                     weir_vector(float, 1, 2), weir_value(&limits, sizeof limits),
                                     5.0),
                   "'n'");
    EXPECT_OK(weir_queue_launch(f->queue, kernel, one, one, weir_in(in, 0, 64),
                                weir_out(out, 0, 64), weir_in(in, 0, 64), weir_local(4),
                                weir_vector(float, 1, 2), weir_value(&limits, sizeof limits),
                                INT64_C(5)));
    EXPECT_SYNC(f->queue);
}

// Without a compiler the second is not looked into.
CONFORM(Program, SourceThatDoesNotBuild)
{
    static const char *const sources[] = {
        "__kernel void cut(__global uint *out",
        "__kernel void broken(__global uint *out) { out[0] = not_declared; }\n",
    };
    for (int i = 0; i < (conform_kernels_run(f) ? 2 : 1); i++) {
        weir_program *program;
        const weir_status status =
            weir_program_create(f->device,
                                WEIR_PARAMS(weir_program, .label = "broken", .source = sources[i]),
                                &program);
        EXPECT_NULL(program);
        if (status == WEIR_ERROR_UNSUPPORTED)
            CONFORM_SKIP("this device compiles no source at run time");
        EXPECT_INT_EQ(status, WEIR_ERROR_BUILD);
        EXPECT_CONTAINS(weir_last_error()->message, i ? "not_declared" : "");
        EXPECT_STR_EQ(weir_last_error()->object, "broken");
    }
}
