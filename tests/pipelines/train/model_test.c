// The passes of a model: their numbers against float64, and the same bits in each run.
#include <math.h>

#include "pipelines/train/product.h"
#include "tests/pipelines/train/rig.h"
#include "tests/support/memory.h"

#define BATCH 5

static double *to_double(const float *values, size_t count)
{
    double *out = rig_alloc(count, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = (double)values[i];
    return out;
}

// A scene, and its reference.
struct pair {
    struct test_device rig;
    struct weir_train_model_params params;
    struct rig_scene scene;
    double *values;
};

static bool open_pair(struct pair *pair, enum rig_network network)
{
    if (!test_device_open(&pair->rig))
        return false;
    pair->params = rig_params(&pair->rig, network, BATCH);
    if (!rig_scene_open(&pair->scene, &pair->rig, &pair->params, 7))
        return false;
    OWN_MEMORY float *values = rig_scene_parameters(&pair->scene);
    pair->values = to_double(values, pair->scene.parameters);
    return true;
}

static void close_pair(struct pair *pair)
{
    free(pair->values);
    rig_scene_close(&pair->scene);
    test_device_close(&pair->rig);
}

#define own_pair OWN(close_pair) struct pair

// A test with a pair, `pair`.
#define PAIR_TEST(name, network) \
    WEIR_TEST_WITH(TrainModel, name, struct pair, pair, open_pair(pair, network), close_pair(pair))

static double loss_of(const struct pair *pair)
{
    return reference_loss(&pair->params, pair->scene.model, pair->values, pair->scene.values,
                          pair->scene.labels);
}

// The derivative of the loss, from its values on both sides.
static double difference(struct pair *pair, size_t index)
{
    const double step = 1e-5;
    const double middle = pair->values[index];
    pair->values[index] = middle + step;
    const double above = loss_of(pair);
    pair->values[index] = middle - step;
    const double below = loss_of(pair);
    pair->values[index] = middle;
    return (above - below) / (2 * step);
}

static void check_gradients(struct pair *pair, const float *gradients)
{
    for (size_t i = 0; i < weir_train_model_facts(pair->scene.model)->parameter_count; i++) {
        const struct weir_train_parameter *p =
            &weir_train_model_facts(pair->scene.model)->tensors[i];
        double most = 0;
        for (size_t k = 0; k < p->count; k++) {
            const size_t at = p->offset / sizeof(float) + k;
            const double wanted = difference(pair, at);
            weir_test_note("%s %s[%zu]", pair->params.label, p->name, k);
            EXPECT_NEAR((double)gradients[at], wanted, 2e-5 * (1 + fabs(wanted)));
            most = fabs(wanted) > most ? fabs(wanted) : most;
        }
        EXPECT_DOUBLE_GT(most, 1e-3); // else nothing was compared
    }
    weir_test_note(NULL);
}

WEIR_TEST(TrainModel, GradientsAreThoseOfFiniteDifferences)
{
    for (int network = 0; network < RIG_NETWORKS; network++) {
        own_pair pair = {0};
        float result[2];
        ASSERT_TRUE(open_pair(&pair, (enum rig_network)network));
        ASSERT_TRUE(rig_scene_run(&pair.scene, result));
        EXPECT_NEAR((double)result[0], loss_of(&pair), 1e-5);
        OWN_MEMORY float *gradients = rig_scene_gradients(&pair.scene);
        check_gradients(&pair, gradients);
    }
}

WEIR_TEST(TrainModel, EncodesWhatTheLayersGive)
{
    for (int network = 0; network < RIG_NETWORKS; network++) {
        own_pair pair = {0};
        ASSERT_TRUE(open_pair(&pair, (enum rig_network)network));
        const size_t count = BATCH * pair.scene.classes;
        own_buffer output = rig_buffer(&pair.rig, count * sizeof(float));
        float outputs[BATCH * 8];
        double wanted[8];
        ASSERT_OK(weir_train_model_encode(pair.scene.model, pair.rig.queue,
                                          pair.scene.samples.inputs,
                                          (struct weir_train_view){output, 0}));
        ASSERT_OK(weir_download(pair.rig.queue, outputs, output, 0, count * sizeof(float)));
        for (size_t i = 0; i < count; i++) {
            const size_t sample = i / pair.scene.classes;
            reference_outputs(&pair.params, pair.scene.model, pair.values,
                              pair.scene.values + sample * pair.scene.inputs, wanted);
            EXPECT_NEAR((double)outputs[i], wanted[i % pair.scene.classes], 1e-5);
        }
    }
}

// The gradients of a scene of its own.
static float *gradients_of(struct test_device *rig, const struct weir_train_model_params *params,
                           size_t *out_count)
{
    own_scene scene = {0};
    float result[2];
    float *gradients = NULL;
    if (rig_scene_open(&scene, rig, params, 7) && rig_scene_run(&scene, result))
        gradients = rig_scene_gradients(&scene);
    *out_count = scene.parameters;
    return gradients;
}

static double norm(const float *values, const float *minus, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const double value = (double)values[i] - (minus ? (double)minus[i] : 0.0);
        sum += value * value;
    }
    return sqrt(sum);
}

// bfloat16 has 8 significant bits: what is left of a few roundings of 2^-9 each.
DEVICE_TEST(TrainModel, GradientsOfBfloat16AreNear, rig)
{
    for (int network = 0; network < RIG_NETWORKS; network++) {
        struct weir_train_model_params params = rig_params(rig, (enum rig_network)network, BATCH);
        size_t count;
        OWN_MEMORY float *exact = gradients_of(rig, &params, &count);
        params.element = WEIR_TRAIN_BF16;
        OWN_MEMORY float *rounded = gradients_of(rig, &params, &count);
        ASSERT_TRUE(exact && rounded);
        const double error = norm(rounded, exact, count) / norm(exact, NULL, count);
        EXPECT_DOUBLE_GT(error, 1e-4); // else it was float32
        EXPECT_DOUBLE_LT(error, 2e-2);
    }
}

// Of a layer with one input, one output and a weight of 1: what rounding to bfloat16 gives.
static void encode_one(struct test_device *rig, const float *values, float *out, uint32_t count)
{
    static const struct weir_train_layer layer = {.kind = WEIR_TRAIN_DENSE, .outputs = 1};
    const float one = 1;
    const size_t bytes = count * sizeof *values;
    own_model model = NULL;
    own_buffer in = rig_buffer(rig, bytes);
    own_buffer to = rig_buffer(rig, bytes);
    ASSERT_OK(weir_train_model_create(&(struct weir_train_model_params){.device = rig->device,
                                                                        .input = {1, 1, 1},
                                                                        .layers = &layer,
                                                                        .layer_count = 1,
                                                                        .batch = count,
                                                                        .element = WEIR_TRAIN_BF16,
                                                                        .forward_only = true},
                                      &model));
    ASSERT_OK(weir_train_model_initialise(model, rig->queue, 1));
    ASSERT_OK(
        weir_upload(rig->queue, weir_train_model_facts(model)->parameters, 0, &one, sizeof one));
    ASSERT_OK(weir_train_model_refresh(model, rig->queue));
    ASSERT_OK(weir_upload(rig->queue, in, 0, values, bytes));
    ASSERT_OK(weir_train_model_encode(model, rig->queue, (struct weir_train_view){in, 0},
                                      (struct weir_train_view){to, 0}));
    ASSERT_OK(weir_download(rig->queue, out, to, 0, bytes));
}

DEVICE_TEST(TrainModel, RoundsToTheNearestBfloat16, rig)
{
    static const struct {
        float value, wanted;
    } table[] = {
        {1, 1},
        {1 + 0x1p-8f, 1}, // the middle: to the even one
        {1 + 0x1p-8f + 0x1p-23f, 1 + 0x1p-7f},
        {1 + 0x1.8p-7f, 1 + 0x1p-6f}, // the middle: to the even one above
        {-1 - 0x1p-8f - 0x1p-20f, -1 - 0x1p-7f},
        {0x1.fffffep127f, INFINITY}, // beyond the largest
        {-0.0f, 0.0f},               // plus the bias, which is 0
        {INFINITY, INFINITY},
        {NAN, NAN},
    };
    enum {
        COUNT = sizeof table / sizeof *table
    };
    float values[COUNT];
    float out[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = table[i].value;
    encode_one(rig, values, out, COUNT);
    for (int i = 0; i < COUNT; i++) {
        weir_test_note("%a", (double)values[i]);
        if (isnan(table[i].wanted))
            EXPECT_TRUE(isnan(out[i]));
        else
            EXPECT_DOUBLE_EQ((double)out[i], (double)table[i].wanted);
    }
}

PAIR_TEST(CountsWhatIsRight, RIG_MLP)
{
    float result[2];
    double outputs[8];
    int right = 0;
    for (uint32_t i = 0; i < BATCH; i++) {
        uint32_t best = 0;
        reference_outputs(&pair->params, pair->scene.model, pair->values,
                          pair->scene.values + i * pair->scene.inputs, outputs);
        for (uint32_t k = 1; k < pair->scene.classes; k++)
            best = outputs[k] > outputs[best] ? k : best;
        pair->scene.labels[i] = i % 2 ? best : (best + 1) % (uint32_t)pair->scene.classes;
        right += i % 2 ? 1 : 0;
    }
    ASSERT_OK(weir_upload(pair->rig.queue, pair->scene.labels_on_device, 0, pair->scene.labels,
                          sizeof(uint32_t) * BATCH));
    ASSERT_TRUE(rig_scene_run(&pair->scene, result));
    EXPECT_DOUBLE_EQ((double)result[1], right);
}

PAIR_TEST(ALabelBeyondTheClassesCountsForNothing, RIG_MLP)
{
    float result[2];
    for (uint32_t i = 0; i < BATCH; i++)
        pair->scene.labels[i] = i == 2 ? 1 : (uint32_t)pair->scene.classes + i;
    ASSERT_OK(weir_upload(pair->rig.queue, pair->scene.labels_on_device, 0, pair->scene.labels,
                          sizeof(uint32_t) * BATCH));
    ASSERT_TRUE(rig_scene_run(&pair->scene, result));
    EXPECT_NEAR((double)result[0], loss_of(pair), 1e-5);
    OWN_MEMORY float *gradients = rig_scene_gradients(&pair->scene);
    check_gradients(pair, gradients);
}

// Gradients.

static void take_steps(struct rig_scene *scene, uint64_t first, uint64_t count)
{
    weir_queue *queue = scene->rig->queue;
    const struct weir_train_view result = {scene->result, 0};
    for (uint64_t step = first; step < first + count; step++) {
        const struct weir_train_rates rates = {0.01f, 1.0f / BATCH, step};
        EXPECT_OK(weir_train_model_forward(scene->model, queue, &scene->samples, result, false));
        EXPECT_OK(weir_train_model_backward(scene->model, queue, false, NULL, NULL));
        EXPECT_OK(weir_train_model_update(scene->model, queue, &rates));
        EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    }
}

// What the first steps take is the queue's own: room for its operations.
DEVICE_TEST(TrainModel, StepsAllocateNothing, rig)
{
    own_scene scene = {0};
    struct weir_train_model_params params = rig_params(rig, RIG_CONVNET, BATCH);
    params.method = WEIR_TRAIN_ADAM;
    ASSERT_TRUE(rig_scene_open(&scene, rig, &params, 7));
    take_steps(&scene, 1, 10);
    const unsigned long before = weir_test_allocations();
    take_steps(&scene, 11, 20);
    EXPECT_UINT_EQ(weir_test_allocations() - before, 0);
}

DEVICE_TEST(TrainModel, CountsItsWork, rig)
{
    own_scene scene = {0};
    const struct weir_train_model_params params = rig_params(rig, RIG_MLP, BATCH);
    ASSERT_TRUE(rig_scene_open(&scene, rig, &params, 1));
    const double first = 2.0 * BATCH * 6 * 9;
    const double rest = 2.0 * BATCH * (9 * 5 + 5 * 7 + 7 * 4);
    EXPECT_DOUBLE_EQ(weir_train_model_flop(scene.model, false), first + rest);
    EXPECT_DOUBLE_EQ(weir_train_model_flop(scene.model, true), 2 * first + 3 * rest);
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

DEVICE_TEST(TrainModel, ParamsOutOfRange, rig)
{
    const struct weir_train_model_params good = rig_params(rig, RIG_CONVNET, 4);
    EXPECT_REFUSED(input, ((struct weir_train_shape){65536, 65536, 1}),
                   "the input is 65536 x 65536 x 1: more than 2147483647 numbers");
    EXPECT_REFUSED(batch, 25565282,
                   "the batch is 25565282; it must be 1 ... 25565281 with 84 numbers");
    EXPECT_REFUSED(batch, 1000000, "layer 0 has 12000000 places in a batch; 4194240 is the limit");
}

// A network of a dense layer that may be changed.
static void expect_layer_refused(const struct test_device *rig,
                                 const struct weir_train_layer *layer,
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

DEVICE_TEST(TrainModel, LayersOutOfRange, rig)
{
    const struct weir_train_layer wide = {.kind = WEIR_TRAIN_DENSE, .outputs = 65536};
    const struct weir_train_shape numbers = {1, 1, 32768};
    expect_layer_refused(rig, &wide, numbers, 1,
                         "the weights of layer 0 are more than 2147483647 numbers");
    const struct weir_train_shape one = {1, 1, 1};
    expect_layer_refused(rig, &wide, one, 32768, "the inputs or outputs of layer 0 are more than");
}

// cuBLAS on a device that is none of CUDA's.

DEVICE_TEST(TrainModel, CublasIsForCudaOnly, rig)
{
    struct weir_native_device native;
    struct train_blas *blas;
    ASSERT_OK(weir_device_get_native(rig->device, &native));
    if (weir_native_is(native.api, WEIR_NATIVE_CUDA))
        WEIR_SKIP("this device is CUDA's");
    EXPECT_FAILURE(train_blas_open(rig->device, NULL, &blas), WEIR_ERROR_UNSUPPORTED,
                   "the device is one of 'opencl', not of CUDA",
                   "let the library's kernels compute the products");
    EXPECT_NULL(blas);
}
