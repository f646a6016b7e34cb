// The reader of kernel signatures: text that it understands, text that it skips,
// and its messages for the rest.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/kit/signature.h>

#include "tests/support/host.h"
#include "tests/support/test.h"

static struct weir_kit_signatures *must_read(const char *source)
{
    struct weir_kit_signatures *all = NULL;
    test_host_reset();
    weir_test_note("%s", source);
    EXPECT_OK(weir_kit_signatures_read(&test_host, source, &all));
    return all;
}

static void expect_parameter(const struct weir_parameter *parameter, const char *name,
                             const char *type, weir_parameter_kind kind, uint32_t writable,
                             uint32_t size)
{
    EXPECT_STR_EQ(parameter->name, name);
    EXPECT_STR_EQ(parameter->type_name, type);
    EXPECT_INT_EQ(parameter->kind, kind);
    EXPECT_UINT_EQ(parameter->writable, writable);
    EXPECT_UINT_EQ(parameter->size, size);
}

WEIR_TEST(KitSignature, EveryKindOfParameter)
{
    struct weir_kit_signatures *all = must_read(
        "struct pair { int a; float b; };\n"
        "__kernel __attribute__((vec_type_hint(float4), reqd_work_group_size(8, 4u, 0x2)))\n"
        "void all_of_them(\n"
        "    __global const float *restrict in, const global uint *flags, __global uchar *out,\n"
        "    __local ushort *scratch, __constant float table[], float factor, const ulong n,\n"
        "    float4 v, float3 w, struct pair p, unsigned int m, struct pair:8 q)\n"
        "{\n}\n");
    ASSERT_NOT_NULL(all);
    ASSERT_UINT_EQ(all->kernel_count, 1);
    const struct weir_kernel_signature *kernel = &all->kernels[0];
    EXPECT_STR_EQ(kernel->name, "all_of_them");
    EXPECT_UINT_EQ(kernel->required_block.x, 8);
    EXPECT_UINT_EQ(kernel->required_block.y, 4);
    EXPECT_UINT_EQ(kernel->required_block.z, 2);
    ASSERT_UINT_EQ(kernel->parameter_count, 12);
    const struct weir_parameter *p = kernel->parameters;
    expect_parameter(&p[0], "in", "const float *", WEIR_PARAMETER_BUFFER, 0, 0);
    expect_parameter(&p[1], "flags", "const uint *", WEIR_PARAMETER_BUFFER, 0, 0);
    expect_parameter(&p[2], "out", "uchar *", WEIR_PARAMETER_BUFFER, 1, 0);
    expect_parameter(&p[3], "scratch", "ushort *", WEIR_PARAMETER_LOCAL, 0, 0);
    expect_parameter(&p[4], "table", "const float *", WEIR_PARAMETER_BUFFER, 0, 0);
    EXPECT_UINT_EQ(p[4].constant, 1);
    EXPECT_UINT_EQ(p[0].constant, 0);
    expect_parameter(&p[5], "factor", "float", WEIR_PARAMETER_VALUE, 0, 4);
    EXPECT_INT_EQ(p[5].scalar, WEIR_SCALAR_F32);
    expect_parameter(&p[6], "n", "ulong", WEIR_PARAMETER_VALUE, 0, 8);
    expect_parameter(&p[7], "v", "float4", WEIR_PARAMETER_VALUE, 0, 16);
    EXPECT_INT_EQ(p[7].scalar, WEIR_SCALAR_OTHER);
    expect_parameter(&p[8], "w", "float3", WEIR_PARAMETER_VALUE, 0, 16);
    expect_parameter(&p[9], "p", "struct pair", WEIR_PARAMETER_VALUE, 0, 0);
    expect_parameter(&p[10], "m", "unsigned int", WEIR_PARAMETER_VALUE, 0, 4);
    EXPECT_INT_EQ(p[10].scalar, WEIR_SCALAR_U32);
    expect_parameter(&p[11], "q", "struct pair", WEIR_PARAMETER_VALUE, 0, 8);
    test_host.release(all);
}

WEIR_TEST(KitSignature, CudaKernels)
{
    struct weir_kit_signatures *all = must_read(
        "typedef size_t weir_local;\n"
        "template <typename T, int N> __device__ T sum(const T *kernel, T (&x)[N]);\n"
        "extern \"C\" __global__ void __launch_bounds__(128, 2) first(\n"
        "    const float *__restrict__ in, float *const out, weir_local tile, unsigned n,\n"
        "    unsigned long long m, float3 v, std::array<int, 3> a, double d, half *h, long "
        "table[])\n"
        "{ float *kernel = 0; }\n"
        "extern \"C\" {\n__launch_bounds__(32) __global__ void second(void) {}\n}\n");
    ASSERT_NOT_NULL(all);
    ASSERT_UINT_EQ(all->kernel_count, 2);
    EXPECT_STR_EQ(all->kernels[0].name, "first");
    EXPECT_UINT_EQ(all->kernels[0].required_block.x, 0);
    ASSERT_UINT_EQ(all->kernels[0].parameter_count, 10);
    const struct weir_parameter *p = all->kernels[0].parameters;
    expect_parameter(&p[0], "in", "const float *", WEIR_PARAMETER_BUFFER, 0, 0);
    expect_parameter(&p[1], "out", "float *", WEIR_PARAMETER_BUFFER, 1, 0);
    expect_parameter(&p[2], "tile", "weir_local", WEIR_PARAMETER_LOCAL, 0, 0);
    expect_parameter(&p[3], "n", "unsigned", WEIR_PARAMETER_VALUE, 0, 4);
    expect_parameter(&p[4], "m", "unsigned long long", WEIR_PARAMETER_VALUE, 0, 8);
    EXPECT_INT_EQ(p[4].scalar, WEIR_SCALAR_U64);
    expect_parameter(&p[5], "v", "float3", WEIR_PARAMETER_VALUE, 0, 12);
    expect_parameter(&p[6], "a", "std::array<int,3>", WEIR_PARAMETER_VALUE, 0, 0);
    expect_parameter(&p[7], "d", "double", WEIR_PARAMETER_VALUE, 0, 8);
    expect_parameter(&p[8], "h", "half *", WEIR_PARAMETER_BUFFER, 1, 0);
    expect_parameter(&p[9], "table", "long *", WEIR_PARAMETER_BUFFER, 1, 0);
    EXPECT_STR_EQ(all->kernels[1].name, "second");
    EXPECT_UINT_EQ(all->kernels[1].parameter_count, 0);
    test_host.release(all);
}

WEIR_TEST(KitSignature, ConstPointersAndNoParametersAndNothing)
{
    struct weir_kit_signatures *all =
        must_read("__kernel void k(__global float *const p, __global float const *q) {}");
    ASSERT_NOT_NULL(all);
    EXPECT_UINT_EQ(all->kernels[0].parameters[0].writable, 1);
    EXPECT_UINT_EQ(all->kernels[0].parameters[1].writable, 0);
    test_host.release(all);
    all = must_read("__kernel void a() {} void kernel b(void) {} __kernel\nvoid\nc ( ) {}");
    ASSERT_NOT_NULL(all);
    ASSERT_UINT_EQ(all->kernel_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        EXPECT_UINT_EQ(all->kernels[i].parameter_count, 0);
    EXPECT_STR_EQ(all->kernels[2].name, "c");
    test_host.release(all);
    all = must_read("");
    ASSERT_NOT_NULL(all);
    EXPECT_UINT_EQ(all->kernel_count, 0);
    test_host.release(all);
}

// Each source has exactly the kernel `yes`, without parameters or with one.
WEIR_TEST(KitSignature, WhatIsSkipped)
{
    static const char *const sources[] = {
        "// __kernel void no() {}\n__kernel void yes() {}",
        "/* __kernel void no() {}\n */ __kernel void yes() {}",
        "#define NO __kernel void no() {}\n__kernel void yes() {}",
        "  #  define NO \\\n __kernel void no() {}\n__kernel void yes() {}",
        "// x \\\n __kernel void no() {}\n__kernel void yes() {}",
        "#if 1 // '\n__kernel void yes(/* , */ uint n) {}\n#endif",
        "__constant char c = '\"'; __kernel void yes() {} __constant char d = '\"';",
        "__constant char s[] = \"\\\"__kernel void no() {}\"; __kernel void yes() {}",
        "__kernel void yes(uint n); __kernel void yes(uint n) {}",
        "#ifdef A\n__kernel void yes(uint n) {}\n#else\n__kernel void yes(uint n) {}\n#endif",
        "__kernel void yes(uint typename) {}",
        "int my__kernel; int __kernel_x; __kernel void yes() {} /* never ends",
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        weir_test_note("%s", sources[i]);
        struct weir_kit_signatures *all = must_read(sources[i]);
        ASSERT_NOT_NULL(all);
        ASSERT_UINT_EQ(all->kernel_count, 1);
        EXPECT_STR_EQ(all->kernels[0].name, "yes");
        test_host.release(all);
    }
}

WEIR_TEST(KitSignature, WhatIsRefused)
{
    test_host_reset();
    static const char *const cases[][2] = {
        {"\n\n__kernel void ;", "source:3: kernel '?': void, a name and ( are expected, at ';'"},
        {"__kernel __attribute__((reqd_work_group_size(N, 1, 1))) void k() {}", "three numbers"},
        {"__kernel __attribute__((reqd_work_group_size(1, 1))) void k() {}", "three numbers"},
        {"__kernel __attribute__((x) void k() {}", "an attribute does not end"},
        {"__kernel void (uint n) {}", "void, a name and ( are expected"},
        {"__kernel void k(float *p) {}", "source:1: kernel 'k': a pointer is __global"},
        {"__kernel void k(__global float p) {}", "a pointer is __global"},
        {"__kernel void k(__global float **p) {}", "a pointer to pointers"},
        {"__kernel void k(uint n,\n *m) {}", "source:2: kernel 'k': a parameter needs a type"},
        {"__kernel void k(uint) {}", "a type and a name"},
        {"__kernel void k(uint n,) {}", "a parameter is missing"},
        {"__global__ void k(float &x) {}", "no references"},
        {" # line 9\n__kernel void k(uint) {}", "kernel 'k': a parameter needs a type"},
        {"__kernel void k(uint n", "its parameters do not end"},
        {"__kernel void", "void, a name and ( are expected"},
        {"__kernel", "void, a name and ( are expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weir_kit_signatures *all;
        weir_test_note("%s", cases[i][0]);
        EXPECT_INT_EQ(weir_kit_signatures_read(&test_host, cases[i][0], &all), WEIR_ERROR_BUILD);
        EXPECT_CONTAINS(test_host_state()->error.message, cases[i][1]);
        if (strstr(cases[i][0], "line 9"))
            EXPECT_NOT_CONTAINS(test_host_state()->error.message, "source:");
        test_host.release(all);
    }
}

// Only code makes kernels wait for each other.
WEIR_TEST(KitSignature, BarrierOfTheGrid)
{
    static const struct {
        const char *before;
        bool waits;
    } cases[] = {
        {"// no weir_grid_barrier()\n", false},
        {"/* weir_grid_barrier() */", false},
        {"__constant char name[] = \"weir_grid_barrier\";", false},
        {"#define A 1 // weir_grid_barrier()\n", false},
        {"#define ALL() weir_grid_barrier() // don't\n", true},
        {"void both(void) { weir_grid_barrier(); }", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[128];
        snprintf(source, sizeof source, "%s__kernel void k(void) {}", cases[i].before);
        struct weir_kit_signatures *all = must_read(source);
        ASSERT_NOT_NULL(all);
        EXPECT_INT_EQ(all->kernels[0].grid_barrier, cases[i].waits);
        test_host.release(all);
    }
}

// Every prefix of this text is either read or refused.
WEIR_TEST(KitSignature, EveryPrefix)
{
    test_host_reset();
    static const char source[] = "/*c*/ __kernel __attribute__((reqd_work_group_size(1, 2, 3)))\n"
                                 "void k(__global const float "
                                 "*restrict p, __local uint *q, \"s\" 'c' // x\n uint n)";
    char *prefix = calloc(1, sizeof source);
    ASSERT_NOT_NULL(prefix);
    for (size_t length = 0; length < sizeof source; length++) {
        struct weir_kit_signatures *all;
        memcpy(prefix, source, length);
        prefix[length] = '\0';
        weir_status status = weir_kit_signatures_read(&test_host, prefix, &all);
        EXPECT_TRUE(status == WEIR_OK || status == WEIR_ERROR_BUILD);
        test_host.release(all);
    }
    free(prefix);
}

WEIR_TEST(KitParameter, TellsWhatTypesAre)
{
    static const struct {
        const char *type;
        weir_parameter_kind kind;
        bool cuda;
        weir_scalar scalar;
        uint32_t size;
        weir_scalar element;
        uint32_t width;
        uint32_t alignment;
    } wanted[] = {
        {"int", WEIR_PARAMETER_VALUE, false, WEIR_SCALAR_I32, 4, WEIR_SCALAR_I32, 1, 0},
        {"half", WEIR_PARAMETER_VALUE, false, WEIR_SCALAR_F16, 2, WEIR_SCALAR_F16, 1, 0},
        {"float3", WEIR_PARAMETER_VALUE, false, WEIR_SCALAR_OTHER, 16, WEIR_SCALAR_F32, 3, 0},
        {"float3", WEIR_PARAMETER_VALUE, true, WEIR_SCALAR_OTHER, 12, WEIR_SCALAR_F32, 3, 0},
        {"uchar16", WEIR_PARAMETER_VALUE, false, WEIR_SCALAR_OTHER, 16, WEIR_SCALAR_U8, 16, 0},
        {"ulonglong2", WEIR_PARAMETER_VALUE, true, WEIR_SCALAR_OTHER, 16, WEIR_SCALAR_U64, 2, 0},
        {"bool", WEIR_PARAMETER_VALUE, true, WEIR_SCALAR_BOOL, 1, WEIR_SCALAR_BOOL, 1, 0},
        {"__half", WEIR_PARAMETER_VALUE, true, WEIR_SCALAR_F16, 2, WEIR_SCALAR_F16, 1, 0},
        {"size_t", WEIR_PARAMETER_VALUE, true, WEIR_SCALAR_U64, 8, WEIR_SCALAR_U64, 1, 0},
        // Not vectors.
        {"float5", WEIR_PARAMETER_VALUE, false, WEIR_SCALAR_OTHER, 0, WEIR_SCALAR_OTHER, 0, 0},
        {"float04", WEIR_PARAMETER_VALUE, false, WEIR_SCALAR_OTHER, 0, WEIR_SCALAR_OTHER, 0, 0},
        {"float4x4", WEIR_PARAMETER_VALUE, false, WEIR_SCALAR_OTHER, 0, WEIR_SCALAR_OTHER, 0, 0},
        {"bool2", WEIR_PARAMETER_VALUE, true, WEIR_SCALAR_OTHER, 0, WEIR_SCALAR_OTHER, 0, 0},
        {"float8", WEIR_PARAMETER_VALUE, true, WEIR_SCALAR_OTHER, 0, WEIR_SCALAR_OTHER, 0, 0},
        {"half4", WEIR_PARAMETER_VALUE, true, WEIR_SCALAR_OTHER, 0, WEIR_SCALAR_OTHER, 0, 0},
        {"4", WEIR_PARAMETER_VALUE, false, WEIR_SCALAR_OTHER, 0, WEIR_SCALAR_OTHER, 0, 0},
        {"", WEIR_PARAMETER_VALUE, false, WEIR_SCALAR_OTHER, 0, WEIR_SCALAR_OTHER, 0, 0},
        // Pointers.
        {"const float *", WEIR_PARAMETER_BUFFER, false, 0, 0, WEIR_SCALAR_F32, 1, 4},
        {"double4 *", WEIR_PARAMETER_BUFFER, false, 0, 0, WEIR_SCALAR_F64, 4, 32},
        {"double4 *", WEIR_PARAMETER_BUFFER, true, 0, 0, WEIR_SCALAR_F64, 4, 16},
        {"float3 *", WEIR_PARAMETER_BUFFER, false, 0, 0, WEIR_SCALAR_F32, 3, 16},
        {"float3 *", WEIR_PARAMETER_BUFFER, true, 0, 0, WEIR_SCALAR_F32, 3, 4},
        {"void *", WEIR_PARAMETER_BUFFER, false, 0, 0, WEIR_SCALAR_OTHER, 0, 1},
        {"struct body *", WEIR_PARAMETER_BUFFER, false, 0, 0, WEIR_SCALAR_OTHER, 0, 0},
        {"ushort *", WEIR_PARAMETER_LOCAL, false, 0, 0, WEIR_SCALAR_U16, 1, 2},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct weir_parameter p = {.type_name = wanted[i].type, .kind = wanted[i].kind};
        weir_test_note("%s", wanted[i].type);
        weir_kit_parameter_describe(&p, wanted[i].cuda);
        EXPECT_INT_EQ(p.scalar, wanted[i].scalar);
        EXPECT_UINT_EQ(p.size, wanted[i].size);
        EXPECT_INT_EQ(p.element, wanted[i].element);
        EXPECT_UINT_EQ(p.width, wanted[i].width);
        EXPECT_UINT_EQ(p.alignment, wanted[i].alignment);
    }
}
