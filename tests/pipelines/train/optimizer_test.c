// Updates against float64, step by step.
#include <math.h>
#include <stdlib.h>

#include "pipelines/train/optimizer.h"
#include "tests/pipelines/train/rig.h"

enum {
    STEPS = 6
};

// One parameter's history in float64.
struct exact {
    double value, first, second;
};

static void step_exactly(const struct weir_train_optimizer_params *params, struct exact *exact,
                         double gradient, const struct weir_train_rates *rates)
{
    const double g = (double)rates->scale * gradient;
    if (params->method == WEIR_TRAIN_SGD) {
        exact->first = (double)params->momentum * exact->first + g;
        exact->value -= (double)rates->rate * exact->first;
        return;
    }
    const double beta1 = 0.9;
    const double beta2 = 0.999;
    const double step = (double)rates->step;
    exact->first = beta1 * exact->first + (1 - beta1) * g;
    exact->second = beta2 * exact->second + (1 - beta2) * g * g;
    exact->value -= (double)rates->rate * (exact->first / (1 - pow(beta1, step))) /
                    (sqrt(exact->second / (1 - pow(beta2, step))) + 1e-8);
}

static void check(const struct rig_scene *scene, const float *values, const struct exact *exact)
{
    for (size_t i = 0; i < weir_train_model_parameter_count(scene->model); i++) {
        const struct weir_train_parameter *p = weir_train_model_parameter(scene->model, i);
        for (size_t k = 0; k < p->count; k++) {
            const size_t at = p->offset / sizeof(float) + k;
            EXPECT_NEAR((double)values[at], exact[at].value, 2e-5);
        }
    }
}

static void run(struct rig *rig, enum rig_network network,
                struct weir_train_optimizer_params params)
{
    own_scene scene = {0};
    own_optimizer optimizer = NULL;
    float result[2];
    const struct weir_train_model_params model = rig_params(rig, network, 8);
    ASSERT_TRUE(rig_scene_open(&scene, rig, &model, 5));
    params.model = scene.model;
    ASSERT_OK(weir_train_optimizer_create(&params, &optimizer));
    ASSERT_OK(weir_train_optimizer_reset(optimizer, rig->queue));

    float *values = rig_scene_parameters(&scene);
    OWN_MEMORY struct exact *exact = rig_alloc(scene.parameters, sizeof *exact);
    for (size_t i = 0; i < scene.parameters; i++)
        exact[i].value = (double)values[i];
    const size_t count = weir_train_model_parameter_count(scene.model);
    for (uint64_t step = 1; step <= STEPS; step++) {
        const struct weir_train_rates rates = {0.02f, 0.125f, step};
        ASSERT_TRUE(rig_scene_run(&scene, result));
        OWN_MEMORY float *gradients = rig_scene_gradients(&scene);
        for (size_t i = 0; i < scene.parameters; i++)
            step_exactly(&params, &exact[i], (double)gradients[i], &rates);
        // In two calls, the later parameters first.
        ASSERT_OK(weir_train_optimizer_update(optimizer, rig->queue, 3, count - 3, &rates));
        ASSERT_OK(weir_train_optimizer_update(optimizer, rig->queue, 0, 3, &rates));
        free(values);
        values = rig_scene_parameters(&scene);
        check(&scene, values, exact);
    }
    free(values);
}

RIG_TEST(TrainOptimizer, SgdWithMomentum)
{
    const struct weir_train_optimizer_params params = {.struct_size = sizeof params,
                                                       .method = WEIR_TRAIN_SGD,
                                                       .momentum = 0.9f};
    run(rig, RIG_MLP, params);
    run(rig, RIG_CONVNET, params);
}

RIG_TEST(TrainOptimizer, Adam)
{
    const struct weir_train_optimizer_params params = {.struct_size = sizeof params,
                                                       .method = WEIR_TRAIN_ADAM};
    run(rig, RIG_MLP, params);
    run(rig, RIG_CONVNET, params);
}

// The passes read the copy that the update has made: the loss is that of a model whose copy is made
// afresh from the same parameters.
RIG_TEST(TrainOptimizer, MakesTheCopyOfBfloat16)
{
    for (int method = WEIR_TRAIN_SGD; method <= WEIR_TRAIN_ADAM; method++) {
        own_scene scene = {0};
        own_optimizer optimizer = NULL;
        float before[2];
        float after[2];
        float fresh[2];
        struct weir_train_model_params model = rig_params(rig, RIG_CONVNET, 4);
        model.element = WEIR_TRAIN_BF16;
        ASSERT_TRUE(rig_scene_open(&scene, rig, &model, 5));
        ASSERT_OK(
            weir_train_optimizer_create(WEIR_PARAMS(weir_train_optimizer, .model = scene.model,
                                                    .method = (weir_train_method)method),
                                        &optimizer));
        ASSERT_OK(weir_train_optimizer_reset(optimizer, rig->queue));
        ASSERT_TRUE(rig_scene_run(&scene, before));
        const struct weir_train_rates rates = {0.01f, 0.25f, 1};
        ASSERT_OK(weir_train_optimizer_update(optimizer, rig->queue, 0,
                                              weir_train_model_parameter_count(scene.model),
                                              &rates));
        ASSERT_TRUE(rig_scene_run(&scene, after));
        ASSERT_OK(weir_train_model_refresh(scene.model, rig->queue));
        ASSERT_TRUE(rig_scene_run(&scene, fresh));
        EXPECT_DOUBLE_NE((double)after[0], (double)before[0]);
        EXPECT_DOUBLE_EQ((double)after[0], (double)fresh[0]);
    }
}

static void expect_refused(const struct weir_train_optimizer_params *params, const char *part)
{
    weir_train_optimizer *optimizer;
    EXPECT_INT_EQ(weir_train_optimizer_create(params, &optimizer), WEIR_ERROR_INVALID);
    EXPECT_NULL(optimizer);
    EXPECT_CONTAINS(weir_last_error_text(), part);
}

#define EXPECT_REFUSED(field, value, part)             \
    do {                                               \
        struct weir_train_optimizer_params bad = good; \
        bad.field = (value);                           \
        expect_refused(&bad, part);                    \
    } while (0)

RIG_TEST(TrainOptimizer, RefusesWhatIsOutOfRange)
{
    weir_train_model *model;
    const struct weir_train_model_params shape = rig_params(rig, RIG_MLP, 4);
    ASSERT_OK(weir_train_model_create(&shape, &model));
    const struct weir_train_optimizer_params good = {.struct_size = sizeof good,
                                                     .model = model,
                                                     .method = WEIR_TRAIN_ADAM};
    expect_refused(NULL, "params is NULL");
    EXPECT_REFUSED(model, NULL, "a model is needed");
    EXPECT_REFUSED(method, (weir_train_method)7, "there is no method 7");
    EXPECT_REFUSED(momentum, 1, "momentum is 1; it must be 0 ... below 1");
    EXPECT_REFUSED(beta1, -0.5f, "beta1 is -0.5");
    EXPECT_REFUSED(beta2, NAN, "beta2 is");
    EXPECT_REFUSED(epsilon, INFINITY, "epsilon is inf; it must be above 0");
    weir_train_model_destroy(&model);

    struct weir_train_model_params forward = shape;
    forward.forward_only = true;
    ASSERT_OK(weir_train_model_create(&forward, &model));
    EXPECT_REFUSED(model, model, "the model 'MLP' is forward_only: it has no gradients");
    weir_train_model_destroy(&model);
}

RIG_TEST(TrainOptimizer, RefusesParametersThatAreNot)
{
    own_model model = NULL;
    weir_train_optimizer *optimizer;
    const char *name;
    weir_buffer *buffer;
    const struct weir_train_model_params shape = rig_params(rig, RIG_MLP, 4);
    ASSERT_OK(weir_train_model_create(&shape, &model));
    ASSERT_OK(weir_train_optimizer_create(WEIR_PARAMS(weir_train_optimizer, .model = model,
                                                      .method = WEIR_TRAIN_SGD),
                                          &optimizer));
    const struct weir_train_rates rates = {0.1f, 1, 1};
    const struct weir_train_rates none = {0.1f, 1, 0};
    EXPECT_FAILURE(weir_train_optimizer_update(optimizer, rig->queue, 7, 2, &rates),
                   WEIR_ERROR_INVALID, "the model has 8");
    EXPECT_INT_EQ(weir_train_optimizer_update(optimizer, rig->queue, 9, 0, &rates),
                  WEIR_ERROR_INVALID);
    EXPECT_FAILURE(weir_train_optimizer_update(optimizer, rig->queue, 0, 8, &none),
                   WEIR_ERROR_INVALID, "step is 0");
    EXPECT_TRUE(weir_train_optimizer_state(optimizer, 0, &name, &buffer));
    EXPECT_STR_EQ(name, "momentum");
    EXPECT_FALSE(weir_train_optimizer_state(optimizer, 1, &name, &buffer));
    EXPECT_FALSE(weir_train_optimizer_state(optimizer, 2, &name, &buffer));
    EXPECT_NULL(name);
    weir_train_optimizer_destroy(&optimizer);
    weir_train_optimizer_destroy(&optimizer);
    weir_train_optimizer_destroy(NULL);
}
