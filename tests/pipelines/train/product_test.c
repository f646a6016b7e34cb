// The products that kernels compute.
#include <stdlib.h>
#include <string.h>

#include "kernels/train/train_bf16.h"
#include "kernels/train/train_f32.h"
#include "tests/pipelines/train/product_cases.h"
#include "tests/pipelines/train/rig.h"

static void run(const struct rig *rig, const struct weir_bundle *bundle, bool bf16)
{
    struct train_engine engine = {.bf16 = bf16};
    own_program program = NULL;
    ASSERT_OK(
        weir_program_create(rig->device, WEIR_PARAMS(weir_program, .bundle = bundle), &program));
    ASSERT_OK(weir_kernel_create(program, "product", &engine.product));
    ASSERT_OK(weir_kernel_create(program, "sum_parts", &engine.sum_parts));
    check_products(rig, &engine);
    weir_kernel_destroy(&engine.product);
    weir_kernel_destroy(&engine.sum_parts);
}

RIG_TEST(TrainProduct, OfKernelsIsExact)
{
    run(rig, &train_f32_kernels, false);
    run(rig, &train_bf16_kernels, true);
}

// Whole numbers, whose sums are exact.
static void check_columns(const struct rig *rig, const struct train_engine *engine, uint32_t rows,
                          uint32_t columns, bool add)
{
    const size_t count = (size_t)rows * columns;
    const float three = 3;
    OWN_MEMORY float *values = rig_alloc(count, sizeof *values);
    OWN_MEMORY double *wanted = rig_alloc(columns, sizeof *wanted);
    OWN_MEMORY float *sums = rig_alloc(columns, sizeof *sums);
    struct train_engine with_parts = *engine;
    const uint64_t parts = train_columns_divide(rows, columns);
    with_parts.parts = parts ? rig_buffer(rig, parts) : NULL;
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(int)(i * 2654435761u % 15) - 7;
        wanted[i % columns] += (double)values[i];
    }
    struct train_columns c = {.from = {rig_buffer(rig, count * sizeof *values), 0,
                                       count * sizeof *values},
                              .to = {rig_buffer(rig, columns * sizeof *sums), 0,
                                     columns * sizeof *sums},
                              .rows = rows,
                              .columns = columns,
                              .add = add};
    EXPECT_OK(weir_upload(rig->queue, c.from.buffer, 0, values, c.from.size));
    EXPECT_OK(weir_queue_fill(rig->queue, c.to.buffer, 0, c.to.size, &three, sizeof three));
    EXPECT_OK(train_columns_submit(&with_parts, rig->queue, &c));
    EXPECT_OK(weir_download(rig->queue, sums, c.to.buffer, 0, c.to.size));
    for (uint32_t i = 0; i < columns; i++)
        EXPECT_DOUBLE_EQ((double)sums[i], wanted[i] + (add ? 3 : 0));
    weir_buffer_destroy(&c.from.buffer);
    weir_buffer_destroy(&c.to.buffer);
    weir_buffer_destroy(&with_parts.parts);
}

RIG_TEST(TrainProduct, SumsOfColumnsAreExact)
{
    static const uint32_t sizes[][2] = {{1, 1},    {15, 17},   {16, 16},   {2047, 3},
                                        {2048, 3}, {5000, 33}, {200000, 2}};
    struct train_engine engine = {NULL};
    own_program program = NULL;
    ASSERT_OK(weir_program_create(rig->device,
                                  WEIR_PARAMS(weir_program, .bundle = &train_f32_kernels),
                                  &program));
    ASSERT_OK(weir_kernel_create(program, "column_sums", &engine.column_sums));
    ASSERT_OK(weir_kernel_create(program, "sum_parts", &engine.sum_parts));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int add = 0; add < 2; add++) {
            weir_test_note("%u x %u, add %d", sizes[i][0], sizes[i][1], add);
            check_columns(rig, &engine, sizes[i][0], sizes[i][1], add);
        }
    weir_test_note(NULL);
    weir_kernel_destroy(&engine.column_sums);
    weir_kernel_destroy(&engine.sum_parts);
}
