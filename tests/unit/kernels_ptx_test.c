// Pointers to local memory among a kernel's parameters become offsets; the rest stays as it is.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/launch.h>

#include "kernels/ptx/ptx.h"
#include "tests/support/test.h"

#define HEAD ".version 8.3\n.target sm_75\n.address_size 64\n"

static char message[256];

static char *rewrite(const char *text)
{
    message[0] = '\0';
    return weir_ptx_for_cuda(text, strlen(text), message, sizeof message);
}

#define ADDED(register)                                                                            \
    "{ .reg .b64 %weir; mov.u64 %weir, weir_dynamic_local; add.s64 " register ","                  \
                                                                              " " register ", "    \
                                                                                           "%weir" \
                                                                                           "; }\n"
#define PRINTF                                                           \
    ".func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 a,\n\t" \
    ".param .b64 b\n)\n;\n"

WEIR_TEST(KernelsPtx, IsMadeFitForCuda)
{
    static const struct {
        const char *what, *from, *to; // NULL: it stays
    } rows[] = {
        {"no local parameters",
         HEAD ".visible .entry k(\n\t.param .u64 .ptr .global .align 4 k_0\n)\n"
              "{\n\tld.param.u64 %rd1, [k_0];\n\tret;\n}\n",
         NULL},
        {"local parameters",
         HEAD ".visible .entry k(\n\t.param .u64 .ptr .shared .align 4 k_0,\n"
              "\t.param .u64 .ptr .shared k_1\n)\n"
              "{\n\tld.param.b64 \t%rd1, [k_0];\n\tld.param.u64 %rd2, [k_1];\n}\n",
         HEAD ".extern .shared .align 16 .b8 weir_dynamic_local[];\n"
              ".visible .entry k(\n\t.param .u64 k_0,\n\t.param .u64 k_1\n)\n"
              "{\n\tld.param.b64 \t%rd1, [k_0];\n" ADDED(
                  "%rd1") "\tld.param.u64 %rd2, [k_1];\n" ADDED("%rd2") "}\n"},
        {"the texture mode", ".version 8.3\n.target sm_90, texmode_independent\n.address_size 64\n",
         ".version 8.3\n.target sm_90\n.address_size 64\n"},
        {"constant memory",
         HEAD ".const .align 4 .b8 table[4] = {1, 0, 0, 0};\n"
              ".entry k(\n\t.param .u64 .ptr .const .align 4 k_0\n)\n"
              "{\n\tld.param.u64 %rd1, [k_0];\n\tmov.u64 %rd2, table;\n"
              "\tld.const.u32 %r1, [%rd1];\n\tld.const.u32 %r2, [%rd2];\n"
              "\tcvta.const.u64 %rd3, %rd2;\n\tcvta.to.const.u64 %rd4, %rd3;\n}\n",
         HEAD ".global .align 4 .b8 table[4] = {1, 0, 0, 0};\n"
              ".entry k(\n\t.param .u64 .ptr .global .align 4 k_0\n)\n"
              "{\n\tld.param.u64 %rd1, [k_0];\n\tmov.u64 %rd2, table;\n"
              "\tld.global.u32 %r1, [%rd1];\n\tld.global.u32 %r2, [%rd2];\n"
              "\tcvta.global.u64 %rd3, %rd2;\n\tcvta.to.global.u64 %rd4, %rd3;\n}\n"},
        {"the launch's registers",
         HEAD ".entry k(\n\t.param .u32 k_0\n)\n{\n"
              "\tmov.b32 %r1, %envreg0;\n\tmov.b32 %r2, %envreg3;\n"
              "\tmov.b32 %r3, %envreg6;\n\tmov.b32 %r4, %envreg8;\n"
              "\tmov.b32 %r5, %envreg9;\n}\n",
         HEAD ".entry k(\n\t.param .u32 k_0\n)\n{\n\tmov.b32 %r1, 0;\n\tmov.b32 %r2, 0;\n"
              "\tmov.b32 %r3, %nctaid.x;\n\tmov.b32 %r4, %nctaid.z;\n\tmov.b32 %r5, 3;\n}\n"},
        // CUDA sets these two for the barrier of a grid.
        {"the registers of the grid's barrier",
         HEAD ".entry k(\n)\n{\n\tmov.u32 weir_grid_high, %envreg1;\n"
              "\tmov.u32 weir_grid_low, %envreg2;\n}\n",
         NULL},
        // LLVM declares it as the driver wants it, the driver's compiler does not.
        {"LLVM's printf", HEAD ".extern " PRINTF, NULL},
        {"the driver's printf", HEAD PRINTF, HEAD ".extern " PRINTF},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *out = rewrite(rows[i].from);
        weir_test_note("%s", rows[i].what);
        ASSERT_NOT_NULL(out);
        EXPECT_STR_EQ(rows[i].to ? rows[i].to : rows[i].from, out);
        free(out);
    }
}

// A name may be the beginning of another, and each kernel has its own.
WEIR_TEST(KernelsPtx, TellsNamesApart)
{
    char *out = rewrite(HEAD ".entry k(\n\t.param .u64 .ptr .shared k_1,\n\t.param .u32 k_10\n)\n"
                             "{\n\tld.param.u64 %rd1, [k_1];\n\tld.param.u32 %r1, [k_10];\n}\n"
                             ".entry other(\n\t.param .u64 k_1\n)\n"
                             "{\n\tld.param.u64 %rd1, [k_1];\n}\n");
    ASSERT_TRUE(out);
    const char *first = strstr(out, "add.s64");
    ASSERT_TRUE(first);
    EXPECT_TRUE(!strstr(first + 1, "add.s64"));
    free(out);
}

WEIR_TEST(KernelsPtx, ReadsNoFurtherThanTheText)
{
    static const char text[] = {'.', 'v', 'e', 'r', 's', 'i', 'o', 'n'};
    char *out = weir_ptx_for_cuda(text, sizeof text, message, sizeof message);
    ASSERT_TRUE(out);
    EXPECT_STR_EQ(".version", out);
    free(out);
}

WEIR_TEST(KernelsPtx, RefusesWhatItDoesNotUnderstand)
{
    static const char local[] = HEAD ".entry k(\n\t.param .u64 .ptr .shared k_0\n)\n{\n";
    static const struct {
        const char *head;
        const char *body;
        const char *says;
    } cases[] = {
        {local, "\t@%p1 ld.param.u64 %rd1, [k_0];\n}\n", "is not loaded as expected"},
        {local, "\tld.param.u32 %r1, [k_0];\n}\n", "is not loaded as expected"},
        {local, "\tld.param.u32 %r1, [k_0+4];\n}\n", "is not loaded as expected"},
        {local, "\tld.param.v2.u64 {%rd1, %rd2}, [k_0];\n}\n", "is not loaded as expected"},
        {local, "\tmov.b64 %rd1, k_0;\n}\n", "is not used as expected"},
        {local, "\tmov.b32 %r1, %envreg10;\n}\n", "has no known meaning"},
        {HEAD ".entry k(\n\t.param .u32 .ptr .shared k_0\n)\n{\n", "}\n",
         "is not declared as expected"},
        {HEAD ".entry k(\n\t.param .u64 .ptr .shared .align 4\n)\n{\n", "}\n",
         "is not declared as expected"},
        {".target sm_75\n.entry k(\n\t.param .u64 .ptr .shared k_0\n)\n{\n", "}\n",
         "no line '.address_size'"},
        {"", "", "the PTX is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s", cases[i].head, cases[i].body);
        EXPECT_TRUE(!rewrite(text));
        EXPECT_CONTAINS(message, cases[i].says);
    }
}

// weir_half() against the definition: the nearest half, found by a search of all of them.

// The value of a half that is a number.
static double value_of(uint32_t bits)
{
    const int exponent = (int)(bits >> 10 & 31);
    const double mantissa = bits & 1023;
    return exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
}

static uint32_t half_of(float value)
{
    const struct weir_argument argument = weir_half(value);
    EXPECT_INT_EQ(argument.scalar, WEIR_SCALAR_F16);
    EXPECT_UINT_EQ(argument.size, 2);
    return (uint32_t)argument.bits;
}

// Each half, both of its neighbours' midpoints, and the floats next to those.
WEIR_TEST(Half, IsTheNearest)
{
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        const uint32_t next = bits + 1;
        const double here = value_of(bits);
        const double there = next < 0x7c00 ? value_of(next) : 65536;
        const float middle = (float)((here + there) / 2);
        if (half_of((float)here) != bits || half_of(nextafterf(middle, 0)) != bits ||
            half_of(middle) != (bits & 1 ? next : bits) ||
            half_of(nextafterf(middle, INFINITY)) != next ||
            half_of(-(float)here) != (bits | 0x8000)) {
            weir_test_fail(__FILE__, __LINE__, "near half %x", (unsigned)bits);
            return;
        }
    }
}

WEIR_TEST(Half, OfWhatIsNoNumber)
{
    const float tiny = 1e-30f;
    const float huge = 1e30f;
    EXPECT_UINT_EQ(half_of(INFINITY), 0x7c00);
    EXPECT_UINT_EQ(half_of(-INFINITY), 0xfc00);
    EXPECT_UINT_EQ(half_of(huge), 0x7c00);
    EXPECT_UINT_EQ(half_of(tiny), 0);
    EXPECT_UINT_EQ(half_of(-tiny), 0x8000);
    EXPECT_UINT_EQ(half_of(NAN) & 0x7e00, 0x7e00);
    EXPECT_UINT_EQ(weir_half_bits(0x1234).bits, 0x1234);
}

#ifdef WEIR__FLOAT16
WEIR_TEST(Half, OfTheCompiler)
{
    const weir__float16 value = (weir__float16)-1.5f;
    const struct weir_argument argument = WEIR__ARGUMENT(value);
    EXPECT_INT_EQ(argument.scalar, WEIR_SCALAR_F16);
    EXPECT_UINT_EQ(argument.size, 2);
    EXPECT_UINT_EQ(argument.bits, 0xbe00);
}
#endif
