// Source at run time: OpenCL C through the driver's OpenCL compiler, CUDA C++ through NVRTC, on
// the fakes of all three libraries.

#include "tests/cuda/rig.h"
#include "tests/support/libnvrtc/control.h"
#include "tests/support/libopencl/control.h"

static const struct weir_test_opencl_driver *opencl(void)
{
    return weir_test_symbol("tests/support/libopencl/libnvidia-opencl.so.1",
                            WEIR_TEST_OPENCL_DRIVER_SYMBOL);
}

static long builds(void)
{
    return opencl()->calls->calls("clBuildProgram");
}

static const struct weir_test_nvrtc *nvrtc(void)
{
    return weir_test_symbol("tests/support/libnvrtc/libnvrtc.so.13", WEIR_TEST_NVRTC_SYMBOL);
}

static const char twice_cl[] = "__kernel void twice(__global const uint *in, __global uint *out,\n"
                               "                    uint n)\n"
                               "{\n"
                               "    uint i = get_global_id(0);\n"
                               "    if (i < n) out[i] = 2 * in[i];\n"
                               "}\n";

static const char twice_cu[] =
    "extern \"C\" __global__ void __launch_bounds__(64) twice(const unsigned *in, unsigned *out,\n"
    "                                                       unsigned n)\n"
    "{\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) out[i] = 2 * in[i];\n"
    "}\n";

static const char two_locals_cl[] =
    "kernel void two_locals(global const uint *in, global uint *out, local uint *values,\n"
    "                       local ushort *lanes)\n"
    "{\n"
    "    uint lane = get_local_id(0), size = get_local_size(0);\n"
    "    values[lane] = in[get_global_id(0)];\n"
    "    lanes[lane] = size - 1 - lane;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    out[get_global_id(0)] = values[lanes[lane]];\n"
    "}\n";

static const char two_locals_cu[] =
    "typedef size_t weir_local;\n"
    "extern __shared__ char local[];\n"
    "extern \"C\" __global__ void two_locals(const unsigned *in, unsigned *out,\n"
    "                                        weir_local values, weir_local lanes)\n"
    "{\n"
    "    unsigned *v = (unsigned *)(local + values);\n"
    "}\n";

static struct weir_program_params params_of(const char *source, const char *options)
{
    return (struct weir_program_params){
        .struct_size = sizeof(struct weir_program_params),
        .label = "made",
        .source = source,
        .options = options,
    };
}

static struct weir_program_params params_of_cuda(const char *source, const char *options)
{
    struct weir_program_params params = params_of(NULL, NULL);
    params.cuda_source = source;
    params.cuda_options = options;
    return params;
}

static void expect_built(struct rig *rig, const struct weir_program_params *params)
{
    own_program program = NULL;
    EXPECT_OK(weir_program_create(rig->device, params, &program));
}

static void expect_refused(struct rig *rig, const struct weir_program_params *params,
                           weir_status status, const char *part)
{
    weir_program *program;
    EXPECT_INT_EQ(weir_program_create(rig->device, params, &program), status);
    EXPECT_NULL(program);
    EXPECT_CONTAINS(weir_last_error_text(), part);
}

static void expect_launch(weir_queue *queue, weir_kernel *kernel, weir_buffer *in, weir_buffer *out)
{
    if (weir_kernel_get_signature(kernel)->parameter_count == 3)
        EXPECT_OK(weir_queue_launch(queue, kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                    weir_in(in, 0, 64), weir_out(out, 0, 64), 16u));
    else
        EXPECT_OK(weir_queue_launch(queue, kernel, weir_dim(1, 1, 1), weir_dim(16, 1, 1),
                                    weir_in(in, 0, 64), weir_out(out, 0, 64), weir_local(64),
                                    weir_local(32)));
}

// Kernel `name` makes of 0, 1, ... what `expected` has.
static void expect_run(struct rig *rig, const struct weir_program_params *params, const char *name,
                       const uint32_t expected[16])
{
    own_program program = NULL;
    own_kernel kernel = NULL;
    uint32_t values[16];
    own_buffer in = rig_buffer(rig, 64, WEIR_PLACE_DEVICE);
    own_buffer out = rig_buffer(rig, 64, WEIR_PLACE_DEVICE);
    for (uint32_t i = 0; i < 16; i++)
        values[i] = i;
    EXPECT_OK(weir_upload(rig->queue, in, 0, values, 64));
    ASSERT_OK(weir_program_create(rig->device, params, &program));
    ASSERT_OK(weir_kernel_create(program, name, &kernel));
    expect_launch(rig->queue, kernel, in, out);
    EXPECT_OK(weir_download(rig->queue, values, out, 0, 64));
    EXPECT_MEM_EQ(values, expected, 64);
}

static const uint32_t doubled[16] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
static const uint32_t backwards[16] = {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};

RIG_TEST(CudaSource, OpenclRuns)
{
    struct weir_program_params params = params_of(twice_cl, "-DN=1 -cl-fast-relaxed-math");
    expect_run(rig, &params, "twice", doubled);
    EXPECT_STR_EQ(opencl()->options(),
                  "-cl-kernel-arg-info -cl-std=CL1.2 -DN=1 -cl-fast-relaxed-math");
    EXPECT_CONTAINS(opencl()->text(), "#line 1 \"source\"\n__kernel void twice");
    EXPECT_TRUE(!strstr(opencl()->text(), "FP_CONTRACT"));
    params = params_of(twice_cl, NULL);
    params.exact = true;
    expect_run(rig, &params, "twice", doubled);
    EXPECT_CONTAINS(opencl()->text(), "#pragma OPENCL FP_CONTRACT OFF\n#line 1 \"source\"\n");
    params.exact = false;
    params.fast = true;
    expect_run(rig, &params, "twice", doubled);
    EXPECT_CONTAINS(opencl()->options(), "-cl-fast-relaxed-math");
    params = params_of(two_locals_cl, "-cl-std=CL3.0");
    expect_run(rig, &params, "two_locals", backwards);
    EXPECT_STR_EQ(opencl()->options(), "-cl-kernel-arg-info -cl-std=CL3.0");
    EXPECT_INT_EQ(opencl()->live(), 0);
}

static char logged[1024];

static void keep_log(void *user, weir_log_level level, const char *source, const char *message)
{
    if (level == WEIR_LOG_ERROR)
        snprintf(logged, sizeof logged, "%s: %s", source, message);
}

RIG_TEST(CudaSource, OpenclThatDoesNotBuild)
{
    static const char source[] = "\n\n__kernel void broken(__global uint *out) { not_declared; }\n";
    weir_log_set(keep_log, NULL, WEIR_LOG_ERROR);
    struct weir_program_params params = params_of(source, "-DX");
    expect_refused(rig, &params, WEIR_ERROR_BUILD, "source:3:");
    EXPECT_ERROR("not_declared", "'-cl-std=CL1.2 -DX'");
    EXPECT_CONTAINS(logged, "source:3:");
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    params = params_of(twice_cl, "-DX -I include");
    expect_refused(rig, &params, WEIR_ERROR_INVALID, "the options have -I");
    EXPECT_INT_EQ(opencl()->live(), 0);
}

// The compiler's flaw: signatures and kernels without parameters do not go together.
RIG_TEST(CudaSource, OpenclKernelsWithoutParameters)
{
    char both[512];
    struct weir_program_params params = params_of("__kernel void nothing(void) {}", NULL);
    expect_built(rig, &params);
    EXPECT_STR_EQ(opencl()->options(), "-cl-std=CL1.2");
    snprintf(both, sizeof both, "__kernel void nothing(void) {}\n%s", twice_cl);
    params = params_of(both, NULL);
    expect_refused(rig, &params, WEIR_ERROR_UNSUPPORTED, "give every kernel a parameter");
    EXPECT_INT_EQ(opencl()->live(), 0);
}

RIG_TEST(CudaSource, OpenclOfAnotherDevice)
{
    const struct weir_program_params params = params_of(twice_cl, NULL);
    opencl()->set(80, "580.0", 0);
    expect_refused(rig, &params, WEIR_ERROR_UNSUPPORTED,
                   "the driver's OpenCL has no device of compute capability 9.0 like 'Fake GPU 0'");
    opencl()->set(90, "580.0", 0);
    expect_built(rig, &params);
}

RIG_TEST(CudaSource, OpenclWithAnImageOfDepth)
{
    const struct weir_program_params params = params_of(
        "// twice\n__kernel void twice(__global uint *out,\n    image2d_depth_t in)\n{\n}\n", NULL);
    expect_refused(rig, &params, WEIR_ERROR_UNSUPPORTED,
                   "source:3: kernel 'twice': parameter 'in' is of type image2d_depth_t");
}

RIG_TEST(CudaSource, OpenclWithPtxThatIsNotUnderstood)
{
    const struct weir_program_params params = params_of(two_locals_cl, NULL);
    opencl()->set(90, "580.0", 1);
    expect_refused(rig, &params, WEIR_ERROR_BUILD, "compiler (580.0) is not understood: ");
    opencl()->set(90, "580.0", 0);
    expect_built(rig, &params);
    EXPECT_INT_EQ(opencl()->live(), 0);
}

static bool start_cached(struct rig *rig)
{
    static char section[512];
    if (!section[0])
        snprintf(section, sizeof section, "cache = 1\ncache_dir = %s", weir_test_temp_dir());
    return rig_start_with(rig, section);
}

#define CACHED_TEST(suite, name) \
    WEIR_TEST_WITH(suite, name, struct rig, rig, start_cached(rig), rig_finish(rig))

CACHED_TEST(CudaSource, OpenclFromTheCache)
{
    struct weir_program_params params = params_of(two_locals_cl, NULL);
    expect_built(rig, &params);
    const long before = builds();
    expect_run(rig, &params, "two_locals", backwards);
    EXPECT_INT_EQ(builds(), before);
    params.options = "-DOTHER";
    expect_built(rig, &params);
    EXPECT_INT_EQ(builds(), before + 1);
    params.options = NULL;
    opencl()->set(90, "581.0", 0);
    expect_built(rig, &params);
    EXPECT_INT_EQ(builds(), before + 2);
    opencl()->set(90, "580.0", 0);
    expect_built(rig, &params);
    EXPECT_INT_EQ(builds(), before + 2);
}

// Calls that may fail without a program's creation failing: what is released, a log, a build that
// is repeated, and what only a structure's size is asked with.
static bool may_pass_unseen(const char *name)
{
    static const char *const parts[] = {"clRelease",       "clGetProgramBuildInfo",
                                        "clGetDeviceInfo", "Log",
                                        "Destroy",         "ErrorString"};
    bool unseen = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        unseen = unseen || strstr(name, parts[i]);
    return unseen;
}

static void fail_next(bool is_cuda, const char *name, long n)
{
    if (is_cuda)
        nvrtc()->fail(name, n);
    else
        opencl()->calls->fail(name, n, 0);
}

static bool fail_call(struct rig *rig, bool is_cuda, const char *name, long n)
{
    static const char source[] = "struct values { uint a; float b; ulong c; };\n"
                                 "__kernel void store_values(__global ulong *out, uchar a,\n"
                                 "    ushort b, uint c, ulong d, char e, short f, int g, long h,\n"
                                 "    float i, struct values j) {}\n";
    const struct weir_program_params params =
        is_cuda ? params_of_cuda(twice_cu, NULL) : params_of(source, NULL);
    weir_program *program;
    weir_test_note("call %ld of %s fails", n, name);
    fail_next(is_cuda, name, n);
    const weir_status status = weir_program_create(rig->device, &params, &program);
    const bool struck = (is_cuda ? nvrtc()->struck() : opencl()->calls->struck()) > 0;
    if (status < 0)
        EXPECT_TRUE(strlen(weir_last_error()->message) > 0);
    else if (struck)
        EXPECT_TRUE(may_pass_unseen(name));
    weir_program_destroy(&program);
    fail_next(is_cuda, NULL, 0);
    EXPECT_INT_EQ(is_cuda ? nvrtc()->live() : opencl()->live(), 0);
    return struck;
}

static void fail_every_call(bool is_cuda)
{
    for (size_t i = 0; is_cuda ? nvrtc()->name(i) : opencl()->name(i); i++) {
        const char *name = is_cuda ? nvrtc()->name(i) : opencl()->name(i);
        struct rig rig;
        long n = 1;
        if (!rig_start(&rig)) // loads NVRTC again
            return;
        nvrtc()->set_newest(i % 2 ? 86 : 90); // PTX and cubins
        while (fail_call(&rig, is_cuda, name, n))
            n += n < 4 ? 1 : n;
        rig_finish(&rig);
        EXPECT_INT_GT(is_cuda ? nvrtc()->calls(name) : opencl()->calls->calls(name), 0);
    }
    nvrtc()->set_newest(90);
}

WEIR_TEST(CudaSource, EveryCallOnce)
{
    fail_every_call(false);
    fail_every_call(true);
}

RIG_TEST(CudaSource, CudaRuns)
{
    EXPECT_UINT_EQ(weir_device_limits(rig->device)->cuda_source, 1);
    struct weir_program_params params = params_of_cuda(twice_cu, "--use_fast_math -DX=1");
    expect_run(rig, &params, "twice", doubled);
    EXPECT_STR_EQ(nvrtc()->options(), "--gpu-architecture=sm_90 --use_fast_math -DX=1 ");
    params = params_of_cuda(two_locals_cu, NULL);
    expect_run(rig, &params, "two_locals", backwards);
}

// This backend takes CUDA C++ and leaves the OpenCL C to others.
RIG_TEST(CudaSource, CudaBesideOpencl)
{
    struct weir_program_params params = params_of_cuda(twice_cu, "-DCUDA");
    params.source = "__kernel void broken(__global uint *out) { not_declared; }\n";
    params.options = "-DOPENCL";
    const long before = builds();
    expect_built(rig, &params);
    EXPECT_INT_EQ(builds(), before);
    EXPECT_CONTAINS(nvrtc()->options(), "-DCUDA ");
    params.cuda_source = NULL;
    expect_refused(rig, &params, WEIR_ERROR_INVALID, "cuda_options");
}

RIG_TEST(CudaSource, CudaOfAnArchitecture)
{
    struct weir_program_params params = params_of_cuda(twice_cu, "--gpu-architecture=sm_90a -DX");
    expect_built(rig, &params);
    EXPECT_STR_EQ(nvrtc()->options(), "--gpu-architecture=sm_90a -DX ");
    long cubins = nvrtc()->calls("nvrtcGetCUBIN");
    params.cuda_options = "-arch=compute_90";
    expect_built(rig, &params);
    EXPECT_INT_EQ(nvrtc()->calls("nvrtcGetCUBIN"), cubins);

    params.cuda_options = NULL;
    nvrtc()->set_newest(86);
    expect_built(rig, &params);
    EXPECT_STR_EQ(nvrtc()->options(), "--gpu-architecture=compute_86 ");
    nvrtc()->set_newest(100);
    expect_built(rig, &params);
    EXPECT_STR_EQ(nvrtc()->options(), "--gpu-architecture=compute_75 ");
    nvrtc()->set_newest(90);
    EXPECT_INT_EQ(nvrtc()->calls("nvrtcGetCUBIN"), cubins);
}

RIG_TEST(CudaSource, CudaThatIsRefused)
{
    static const struct {
        const char *source;
        weir_status status;
        const char *part;
    } cases[] = {
        {"extern \"C\" __global__ void twice(int *out) { not_declared; }", WEIR_ERROR_BUILD,
         "identifier \"not_declared\" is undefined"},
        {"__global__ void mangled(int *out) {}", WEIR_ERROR_BUILD,
         "no kernel of the source is in the image by its name, such as 'mangled'"},
        {"typedef unsigned *words;\n"
         "extern \"C\" __global__ void twice(words in, words out, short n) {}",
         WEIR_ERROR_BUILD, "parameter 'n' of type 'short' has 4 bytes in the image, not 2"},
        {"extern \"C\" __global__ void twice(int *in, int *out, int n, int more) {}",
         WEIR_ERROR_BUILD, "kernel 'twice' has fewer parameters in the image than the 4"},
        {"extern \"C\" __global__ void twice(int *in, int *out) {}", WEIR_ERROR_BUILD,
         "kernel 'twice' has more parameters in the image than the 2"},
        {"extern \"C\" __global__ void twice(int &in) {}", WEIR_ERROR_BUILD, "no references"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct weir_program_params params = params_of_cuda(cases[i].source, NULL);
        weir_test_note("%s", cases[i].source);
        expect_refused(rig, &params, cases[i].status, cases[i].part);
    }
    weir_test_note(NULL);
    EXPECT_INT_EQ(nvrtc()->live(), 0);
}

RIG_TEST(CudaSource, CudaWithTooManyOptions)
{
    char options[512] = "";
    for (size_t i = 0; i < 64; i++)
        memcpy(options + strlen(options), "-DX ", 5);
    const struct weir_program_params params = params_of_cuda(twice_cu, options);
    expect_refused(rig, &params, WEIR_ERROR_INVALID, "at most 63 options");
}

CACHED_TEST(CudaSource, CudaFromTheCache)
{
    struct weir_program_params params = params_of_cuda(twice_cu, NULL);
    expect_built(rig, &params);
    long before = nvrtc()->calls("nvrtcCompileProgram");
    expect_built(rig, &params);
    EXPECT_INT_EQ(nvrtc()->calls("nvrtcCompileProgram"), before);
    // What is included may have changed.
    params.cuda_options = "-I include";
    expect_built(rig, &params);
    expect_built(rig, &params);
    EXPECT_INT_EQ(nvrtc()->calls("nvrtcCompileProgram"), before + 2);
}

// The barrier's definition precedes the text that calls it, and no other; lines are counted from there.
RIG_TEST(CudaSource, GridBarrier)
{
    static const char waits[] = "__kernel void exchange(__global uint *x, __global uint *wrong,\n"
                                "                       uint rounds)\n"
                                "{\n    weir_grid_barrier();\n}\n";
    own_program program = NULL;
    own_kernel kernel = NULL;
    const struct weir_program_params plain = params_of(twice_cl, NULL);
    expect_built(rig, &plain);
    EXPECT_NOT_CONTAINS(opencl()->text(), "weir_grid_barrier");
    const struct weir_program_params params = params_of(waits, NULL);
    ASSERT_OK(weir_program_create(rig->device, &params, &program));
    const char *definition = strstr(opencl()->text(), "void weir_grid_barrier(void)");
    const char *first_line = strstr(opencl()->text(), "#line 1 \"source\"");
    EXPECT_TRUE(definition && first_line && definition < first_line);
    ASSERT_OK(weir_kernel_create(program, "exchange", &kernel));
    EXPECT_UINT_EQ(weir_kernel_get_signature(kernel)->grid_barrier, 1);
}
