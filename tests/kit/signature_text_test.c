// Signatures as text: written texts read back, and other texts are refused.
#include <weir/kit/signature.h>

#include <stdio.h>
#include <string.h>

#include "tests/kit/host.h"
#include "tests/support/test.h"

static const struct weir_parameter parameters[] = {
    {.name = "in", .type_name = "const float *", .kind = WEIR_PARAMETER_BUFFER},
    {.name = "n",
     .type_name = "uint",
     .kind = WEIR_PARAMETER_VALUE,
     .scalar = WEIR_SCALAR_U32,
     .size = 4},
    {.name = "table", .type_name = "const float4 *", .kind = WEIR_PARAMETER_BUFFER, .constant = 1},
    {.name = "out", .type_name = "struct body *", .kind = WEIR_PARAMETER_BUFFER, .writable = 1},
};

static void append_kernel(struct weir_kit_signature_text *text, const char *name, uint32_t count)
{
    const struct weir_kernel_signature kernel = {
        .name = name,
        .parameter_count = count,
        .required_block = {8, 4, 1},
    };
    weir_kit_signature_text_kernel(text, &kernel);
    for (uint32_t i = 0; i < count; i++)
        weir_kit_signature_text_parameter(text, &parameters[i]);
}

WEIR_TEST(KitSignatureText, ReadsBack)
{
    struct kit_host *host = kit_host_reset();
    struct weir_kit_signature_text text = {.host = &kit_test_host};
    append_kernel(&text, "first", 4);
    append_kernel(&text, "second", 0);
    ASSERT_FALSE(text.failed);
    struct weir_kit_signatures *all = weir_kit_signatures_parse(&kit_test_host, text.data);
    ASSERT_NOT_NULL(all);
    ASSERT_UINT_EQ(all->kernel_count, 2);
    EXPECT_STR_EQ(all->kernels[0].name, "first");
    EXPECT_UINT_EQ(all->kernels[0].required_block.x, 8);
    EXPECT_UINT_EQ(all->kernels[0].required_block.y, 4);
    ASSERT_UINT_EQ(all->kernels[0].parameter_count, 4);
    const struct weir_parameter *p = all->kernels[0].parameters;
    EXPECT_UINT_EQ(p[0].constant, 0);
    EXPECT_UINT_EQ(p[0].alignment, 4);
    EXPECT_UINT_EQ(p[2].constant, 1);
    EXPECT_UINT_EQ(p[2].writable, 0);
    EXPECT_UINT_EQ(p[2].alignment, 16);
    EXPECT_UINT_EQ(p[3].constant, 0);
    EXPECT_UINT_EQ(p[3].writable, 1);
    EXPECT_UINT_EQ(p[3].alignment, 0);
    EXPECT_STR_EQ(all->kernels[0].parameters[0].type_name, "const float *");
    EXPECT_STR_EQ(all->kernels[0].parameters[1].name, "n");
    EXPECT_UINT_EQ(all->kernels[0].parameters[1].size, 4);
    EXPECT_INT_EQ(all->kernels[0].parameters[1].scalar, WEIR_SCALAR_U32);
    EXPECT_STR_EQ(all->kernels[1].name, "second");
    EXPECT_UINT_EQ(all->kernels[1].parameter_count, 0);
    kit_test_host.release(all);
    kit_test_host.release(text.data);
    EXPECT_INT_EQ(host->allocations, 0);
}

WEIR_TEST(KitSignatureText, GrowsAndKeepsOrder)
{
    kit_host_reset();
    struct weir_kit_signature_text text = {.host = &kit_test_host};
    char name[32];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "kernel_%d", i);
        append_kernel(&text, name, 1);
    }
    ASSERT_FALSE(text.failed);
    struct weir_kit_signatures *all = weir_kit_signatures_parse(&kit_test_host, text.data);
    ASSERT_NOT_NULL(all);
    ASSERT_UINT_EQ(all->kernel_count, 300);
    EXPECT_STR_EQ(all->kernels[299].name, "kernel_299");
    kit_test_host.release(all);
    kit_test_host.release(text.data);
}

WEIR_TEST(KitSignatureText, NoKernels)
{
    kit_host_reset();
    struct weir_kit_signatures *all = weir_kit_signatures_parse(&kit_test_host, "");
    ASSERT_NOT_NULL(all);
    EXPECT_UINT_EQ(all->kernel_count, 0);
    kit_test_host.release(all);
}

WEIR_TEST(KitSignatureText, OtherTextsAreRefused)
{
    static const char *const texts[] = {
        "x",
        "k\n",
        "k\ta\t1\t0\t0\t0\n",                                  // its parameter is missing
        "k\ta\t0\t0\t0\t0",                                    // cut short
        "k\ta\t0\t0\t0\t0\t0\n",                               // one field too many
        "k\ta\t0\t0\t0\t0\np\t1\t0\t0\t4\tn\tuint\n",          // one parameter too many
        "p\t1\t0\t0\t4\tn\tuint\nk\ta\t1\t0\t0\t0\n",          // in the wrong order
        "k\ta\t4294967295\t0\t0\t0\np\t1\t0\t0\t4\tn\tuint\n", // more than there are
        "k\ta\t1\t0\t0\t0\np\t1\t0\t0\tn\tuint\n",             // one field too few
        "k\ta\t0\t0\t0\t0\nsomething else\n",
    };
    struct kit_host *host = kit_host_reset();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        weir_test_note("%s", texts[i]);
        EXPECT_NULL(weir_kit_signatures_parse(&kit_test_host, texts[i]));
    }
    weir_test_note(NULL);
    EXPECT_INT_EQ(host->allocations, 0);
}

WEIR_TEST(KitSignatureText, WithoutMemory)
{
    struct kit_host *host = kit_host_reset();
    struct weir_kit_signature_text text = {.host = &kit_test_host};
    host->left = 0;
    append_kernel(&text, "first", 2);
    EXPECT_TRUE(text.failed);
    EXPECT_NULL(text.data);
    EXPECT_NULL(weir_kit_signatures_parse(&kit_test_host, ""));
}

WEIR_TEST(KitSignatureText, NamesHaveALimit)
{
    kit_host_reset();
    static char name[1200];
    struct weir_kit_signature_text text = {.host = &kit_test_host};
    memset(name, 'n', sizeof name - 1);
    append_kernel(&text, name, 0);
    EXPECT_TRUE(text.failed);
    kit_test_host.release(text.data);
}
