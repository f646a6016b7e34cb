// Updates against float64, step by step.
#include <math.h>

#include "tests/pipelines/train/rig.h"

enum {
    STEPS = 6
};

// One parameter's history in float64.
struct exact {
    double value, first, second;
};

#define MOMENTUM 0.9f

static void step_exactly(weir_train_method method, struct exact *exact, double gradient,
                         const struct weir_train_rates *rates)
{
    const double g = (double)rates->scale * gradient;
    if (method == WEIR_TRAIN_SGD) {
        exact->first = (double)MOMENTUM * exact->first + g;
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
    for (size_t i = 0; i < weir_train_model_facts(scene->model)->parameter_count; i++) {
        const struct weir_train_parameter *p = &weir_train_model_facts(scene->model)->tensors[i];
        for (size_t k = 0; k < p->count; k++) {
            const size_t at = p->offset / sizeof(float) + k;
            EXPECT_NEAR((double)values[at], exact[at].value, 2e-5);
        }
    }
}

static void run(struct test_device *rig, enum rig_network network, weir_train_method method)
{
    own_scene scene = {0};
    float result[2];
    struct weir_train_model_params model = rig_params(rig, network, 8);
    model.method = method;
    model.momentum = MOMENTUM;
    ASSERT_TRUE(rig_scene_open(&scene, rig, &model, 5));

    OWN_MEMORY float *values = rig_scene_parameters(&scene);
    OWN_MEMORY struct exact *exact = rig_alloc(scene.parameters, sizeof *exact);
    for (size_t i = 0; i < scene.parameters; i++)
        exact[i].value = (double)values[i];
    for (uint64_t step = 1; step <= STEPS; step++) {
        const struct weir_train_rates rates = {0.02f, 0.125f, step};
        ASSERT_TRUE(rig_scene_run(&scene, result));
        OWN_MEMORY float *gradients = rig_scene_gradients(&scene);
        for (size_t i = 0; i < scene.parameters; i++)
            step_exactly(method, &exact[i], (double)gradients[i], &rates);
        ASSERT_OK(weir_train_model_update(scene.model, rig->queue, &rates));
        free(values);
        values = rig_scene_parameters(&scene);
        check(&scene, values, exact);
    }
}

DEVICE_TEST(TrainUpdate, AsInFloat64, rig)
{
    for (int network = 0; network < RIG_NETWORKS; network++) {
        run(rig, (enum rig_network)network, WEIR_TRAIN_SGD);
        run(rig, (enum rig_network)network, WEIR_TRAIN_ADAM);
    }
}
