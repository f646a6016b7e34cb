// What a model refuses, and all that a program calls with each allocation failing once. No kernel runs, so the null
// backend serves.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/pipelines/train/rig.h"
#include "tests/support/memory.h"

// A model with all of its parts, and what a step needs.
struct all {
    struct rig rig;
    struct weir_train_model_params params;
    weir_train_model *model;
    weir_buffer *inputs, *labels, *result, *gradients;
};

static bool open_all(struct all *all)
{
    if (!rig_open(&all->rig))
        return false;
    all->params = rig_params(&all->rig, RIG_CONVNET, 200);
    all->params.element = WEIR_TRAIN_BF16;
    all->params.method = WEIR_TRAIN_ADAM;
    all->inputs = rig_buffer(&all->rig, (size_t)200 * 84 * 4);
    all->labels = rig_buffer(&all->rig, (size_t)200 * 4);
    all->result = rig_buffer(&all->rig, (size_t)200 * 3 * 4);
    all->gradients = rig_buffer(&all->rig, 1 << 16);
    return !weir_test_has_failed();
}

static void close_all(struct all *all)
{
    weir_buffer_destroy(&all->inputs);
    weir_buffer_destroy(&all->labels);
    weir_buffer_destroy(&all->result);
    weir_buffer_destroy(&all->gradients);
    rig_close(&all->rig);
}

static weir_status ready(void *unused, size_t index, weir_queue *queue)
{
    (void)unused, (void)index, (void)queue;
    return WEIR_OK;
}

static weir_status step(struct all *all)
{
    weir_queue *queue = all->rig.queue;
    const struct weir_train_batch batch = {{all->inputs, 0}, {all->labels, 0}};
    const struct weir_train_view result = {all->result, 0};
    const struct weir_train_rates rates = {0.1f, 1, 1};
    weir_status status;
    if ((status = weir_train_model_forward(all->model, queue, &batch, result, false)) ||
        (status = weir_train_model_backward(all->model, queue, true, ready, NULL)) ||
        (status = weir_train_model_encode(all->model, queue, batch.inputs, result)))
        return status;
    return weir_train_model_update(all->model, queue, &rates);
}

static weir_status bind(struct all *all)
{
    struct weir_train_view views[RIG_PARAMETERS_MAX];
    for (size_t i = 0; i < weir_train_model_parameter_count(all->model); i++)
        views[i] = (struct weir_train_view){all->gradients,
                                            weir_train_model_parameter(all->model, i)->offset};
    return weir_train_model_bind(all->model, views);
}

// All that a program calls, until something fails.
static weir_status run_all(struct all *all)
{
    weir_status status = weir_train_model_create(&all->params, &all->model);
    EXPECT_TRUE((all->model == NULL) == (status != WEIR_OK));
    if (status != WEIR_OK)
        return status;
    if ((status = bind(all)) == WEIR_OK &&
        (status = weir_train_model_initialise(all->model, all->rig.queue, 1)) == WEIR_OK)
        status = step(all);
    weir_train_model_destroy(&all->model);
    return status;
}

WEIR_TEST(TrainRules, EveryAllocationThatFailsIsTold)
{
    struct all all = {0};
    bool failed = true;
    ASSERT_TRUE(open_all(&all));
    for (long number = 0; failed; number++) {
        weir_test_fail_allocation(number);
        const weir_status status = run_all(&all);
        failed = weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
        weir_test_note("allocation %ld", number);
        if (status != WEIR_OK)
            EXPECT_INT_EQ(status, WEIR_ERROR_OUT_OF_MEMORY);
        EXPECT_TRUE(failed || status == WEIR_OK);
        if (weir_queue_recover(all.rig.queue) != WEIR_OK)
            break;
    }
    weir_test_note(NULL);
    EXPECT_FALSE(failed);
    close_all(&all);
}

// What is refused.

static void expect_refused(const struct weir_train_model_params *params, const char *part)
{
    weir_train_model *model;
    EXPECT_INT_EQ(weir_train_model_create(params, &model), WEIR_ERROR_INVALID);
    EXPECT_NULL(model);
    EXPECT_CONTAINS(weir_last_error_text(), part);
}

#define EXPECT_REFUSED(field, value, part)         \
    do {                                           \
        struct weir_train_model_params bad = good; \
        bad.field = (value);                       \
        expect_refused(&bad, part);                \
    } while (0)

RIG_TEST(TrainRules, ParamsOutOfRange)
{
    const struct weir_train_model_params good = rig_params(rig, RIG_CONVNET, 4);
    EXPECT_REFUSED(input.width, 0, "the input is 7 x 0 x 2: it is empty");
    EXPECT_REFUSED(input, ((struct weir_train_shape){65536, 65536, 1}),
                   "the input is 65536 x 65536 x 1: more than 2147483647 numbers");
    EXPECT_REFUSED(batch, 0, "the batch is 0; it must be 1 ... 25565281 with 84 numbers");
    EXPECT_REFUSED(batch, 25565282, "the batch is 25565282");
    EXPECT_REFUSED(batch, 1000000, "layer 0 has 12000000 places in a batch; 4194240 is the limit");
}

// A network of a dense layer that may be changed.
static void expect_layer_refused(const struct rig *rig, const struct weir_train_layer *layer,
                                 struct weir_train_shape input, uint32_t batch, const char *part)
{
    expect_refused(&(struct weir_train_model_params){.label = "net",
                                                     .device = rig->device,
                                                     .input = input,
                                                     .layers = layer,
                                                     .layer_count = 1,
                                                     .batch = batch},
                   part);
}

RIG_TEST(TrainRules, LayersOutOfRange)
{
    const struct weir_train_layer wide = {.kind = WEIR_TRAIN_DENSE, .outputs = 65536};
    const struct weir_train_shape numbers = {1, 1, 32768};
    expect_layer_refused(rig, &wide, numbers, 1,
                         "the weights of layer 0 are more than 2147483647 numbers");
    const struct weir_train_shape one = {1, 1, 1};
    expect_layer_refused(rig, &wide, one, 32768, "the inputs or outputs of layer 0 are more than");
}
