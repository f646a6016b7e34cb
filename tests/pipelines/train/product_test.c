// The products that kernels compute.
#include "kernels/train/train_bf16.h"
#include "kernels/train/train_f32.h"
#include "tests/pipelines/train/product_cases.h"

static void run(const struct rig *rig, const struct weir_bundle *bundle, bool bf16)
{
    struct train_engine engine = {.bf16 = bf16};
    weir_program *program;
    const struct weir_program_params params = {.struct_size = sizeof params, .bundle = bundle};
    ASSERT_OK(weir_program_create(rig->device, &params, &program));
    ASSERT_OK(weir_kernel_create(program, "product", &engine.product));
    ASSERT_OK(weir_kernel_create(program, "sum_parts", &engine.sum_parts));
    check_products(rig, &engine);
    weir_kernel_destroy(&engine.product);
    weir_kernel_destroy(&engine.sum_parts);
    weir_program_destroy(&program);
}

WEIR_TEST(TrainProduct, OfKernelsIsExact)
{
    struct rig rig;
    ASSERT_TRUE(rig_open(&rig));
    run(&rig, &train_f32_kernels, false);
    run(&rig, &train_bf16_kernels, true);
    rig_close(&rig);
}

WEIR_TEST(TrainProduct, IsDividedWhereTheResultIsSmall)
{
    struct train_product product = {.m = 64, .n = 64, .k = 2047};
    EXPECT_UINT_EQ(train_product_divide(&product), 0);
    EXPECT_UINT_EQ(product.parts, 1);
    EXPECT_UINT_GE(product.span, 2047);
    product.k = 5000;
    EXPECT_UINT_EQ(train_product_divide(&product), 4 * 64 * 64 * sizeof(float));
    EXPECT_UINT_EQ(product.parts, 4);
    EXPECT_UINT_EQ(product.span, 1264); // 1250, and on to a multiple of 16
    product.m = product.n = 512;
    EXPECT_UINT_EQ(train_product_divide(&product), 0);
}
