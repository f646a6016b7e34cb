// The products that kernels compute.
#include <stdlib.h>
#include <string.h>

#include "kernels/train/train_bf16.h"
#include "kernels/train/train_f32.h"
#include "pipelines/train/optimizer.h"
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
    product.m = product.n = 1024;
    EXPECT_UINT_EQ(train_product_divide(&product), 0);
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
    EXPECT_UINT_EQ(train_columns_divide(2047, 3), 0);
    EXPECT_UINT_EQ(train_columns_divide(2048, 3), 2 * 3 * sizeof(float));
    EXPECT_UINT_EQ(train_columns_divide(200000, 2), 128 * 2 * sizeof(float));
    weir_kernel_destroy(&engine.column_sums);
    weir_kernel_destroy(&engine.sum_parts);
}

// With a grid N ranks get the bits of one: each has a part of the batch, their gradients are added,
// and all of them make the same update. Here the ranks are models of one device, and the host adds.

enum {
    RANKS = 4,
    SHARE = 6, // samples of a rank
    STEPS = 5
};

struct member {
    struct rig_scene scene;
    weir_train_optimizer *optimizer;
};

static bool open_member(struct member *member, struct rig *rig,
                        const struct weir_train_model_params *params)
{
    if (!rig_scene_open(&member->scene, rig, params, 3))
        return false;
    EXPECT_OK(
        weir_train_optimizer_create(WEIR_PARAMS(weir_train_optimizer, .model = member->scene.model,
                                                .method = WEIR_TRAIN_ADAM),
                                    &member->optimizer));
    EXPECT_OK(weir_train_optimizer_reset(member->optimizer, rig->queue));
    return !weir_test_has_failed();
}

static void close_member(struct member *member)
{
    weir_train_optimizer_destroy(&member->optimizer);
    rig_scene_close(&member->scene);
}

// Gives the rank its part of the whole batch.
static void set_share(struct member *rank, const struct rig_scene *whole, size_t index)
{
    weir_queue *queue = whole->rig->queue;
    const size_t first = index * SHARE;
    EXPECT_OK(weir_upload(queue, rank->scene.on_device, 0, whole->values + first * whole->inputs,
                          SHARE * whole->inputs * sizeof(float)));
    EXPECT_OK(weir_upload(queue, rank->scene.labels_on_device, 0, whole->labels + first,
                          SHARE * sizeof(uint32_t)));
}

static void set_gradients(struct rig_scene *scene, const float *sum)
{
    for (size_t i = 0; i < weir_train_model_parameter_count(scene->model); i++) {
        const struct weir_train_parameter *p = weir_train_model_parameter(scene->model, i);
        const struct weir_train_view view = weir_train_model_gradient(scene->model, i);
        EXPECT_OK(weir_upload(scene->rig->queue, view.buffer, view.offset,
                              sum + p->offset / sizeof(float), p->count * sizeof(float)));
    }
}

static void update(struct member *member, uint64_t step)
{
    const struct weir_train_rates rates = {0.01f, 1.0f / (RANKS * SHARE), step};
    EXPECT_OK(weir_train_optimizer_update(member->optimizer, member->scene.rig->queue, 0,
                                          weir_train_model_parameter_count(member->scene.model),
                                          &rates));
}

// One step of all ranks; the sum of their losses.
static double step_ranks(struct member *ranks, uint64_t step)
{
    const size_t count = ranks->scene.parameters;
    OWN_MEMORY float *sum = rig_alloc(count, sizeof *sum);
    double loss = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        float result[2];
        EXPECT_TRUE(rig_scene_run(&ranks[rank].scene, result));
        OWN_MEMORY float *part = rig_scene_gradients(&ranks[rank].scene);
        for (size_t i = 0; i < count; i++)
            sum[i] += part[i];
        loss += (double)result[0];
    }
    for (int rank = 0; rank < RANKS; rank++) {
        set_gradients(&ranks[rank].scene, sum);
        update(&ranks[rank], step);
    }
    return loss;
}

static void expect_same(struct rig_scene *one, struct rig_scene *other)
{
    OWN_MEMORY float *left = rig_scene_parameters(one);
    OWN_MEMORY float *right = rig_scene_parameters(other);
    EXPECT_MEM_EQ(left, right, one->parameters * sizeof *left);
}

static void train(struct rig *rig, struct weir_train_model_params params)
{
    struct member whole = {0};
    struct member ranks[RANKS] = {0};
    float result[2];
    double first = 0;
    ASSERT_TRUE(open_member(&whole, rig, &params));
    params.batch = SHARE;
    for (size_t rank = 0; rank < RANKS; rank++) {
        ASSERT_TRUE(open_member(&ranks[rank], rig, &params));
        set_share(&ranks[rank], &whole.scene, rank);
    }
    for (uint64_t step = 1; step <= STEPS; step++) {
        ASSERT_TRUE(rig_scene_run(&whole.scene, result));
        first = step == 1 ? (double)result[0] : first;
        update(&whole, step);
        EXPECT_DOUBLE_EQ(step_ranks(ranks, step), (double)result[0]);
        expect_same(&ranks[RANKS - 1].scene, &whole.scene);
    }
    EXPECT_DOUBLE_LT((double)result[0], first); // it learns
    for (int rank = 0; rank < RANKS; rank++)
        close_member(&ranks[rank]);
    close_member(&whole);
}

RIG_TEST(TrainRanks, OnAGridFourGetTheBitsOfOne)
{
    for (int network = 0; network < RIG_NETWORKS; network++)
        for (int element = WEIR_TRAIN_F32; element <= WEIR_TRAIN_BF16; element++) {
            struct weir_train_model_params params =
                rig_params(rig, (enum rig_network)network, RANKS * SHARE);
            params.element = (weir_train_element)element;
            params.grid = 0x1p-6f;
            weir_test_note("%s, element %d", rig_network_names[network], element);
            train(rig, params);
        }
}
