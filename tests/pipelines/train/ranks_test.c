// With a grid N ranks get the bits of one: each has a part of the batch, their gradients are added,
// and all of them make the same update. Here the ranks are models of one device, and the host adds.
#include <stdlib.h>
#include <string.h>

#include "pipelines/train/optimizer.h"
#include "tests/pipelines/train/rig.h"

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
    const struct weir_train_optimizer_params optimizer = {.struct_size = sizeof optimizer,
                                                          .model = member->scene.model,
                                                          .method = WEIR_TRAIN_ADAM};
    EXPECT_OK(weir_train_optimizer_create(&optimizer, &member->optimizer));
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
    float *sum = rig_alloc(count, sizeof *sum);
    double loss = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        float result[2];
        EXPECT_TRUE(rig_scene_run(&ranks[rank].scene, result));
        float *part = rig_scene_gradients(&ranks[rank].scene);
        for (size_t i = 0; i < count; i++)
            sum[i] += part[i];
        loss += (double)result[0];
        free(part);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        set_gradients(&ranks[rank].scene, sum);
        update(&ranks[rank], step);
    }
    free(sum);
    return loss;
}

static void expect_same(struct rig_scene *one, struct rig_scene *other)
{
    float *left = rig_scene_parameters(one);
    float *right = rig_scene_parameters(other);
    EXPECT_MEM_EQ(left, right, one->parameters * sizeof *left);
    free(left);
    free(right);
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

WEIR_TEST(TrainRanks, OnAGridFourGetTheBitsOfOne)
{
    struct rig rig;
    ASSERT_TRUE(rig_open(&rig));
    for (int network = 0; network < RIG_NETWORKS; network++)
        for (int element = WEIR_TRAIN_F32; element <= WEIR_TRAIN_BF16; element++) {
            struct weir_train_model_params params =
                rig_params(&rig, (enum rig_network)network, RANKS * SHARE);
            params.element = (weir_train_element)element;
            params.grid = 0x1p-6f;
            weir_test_note("%s, element %d", rig_network_names[network], element);
            train(&rig, params);
        }
    rig_close(&rig);
}
