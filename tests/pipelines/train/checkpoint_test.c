// Checkpoints: what is written is read, and a file that is not whole, or of another network, changes
// nothing. No kernel runs, so the null backend serves.
#include <math.h>

#include "base/random.h"
#include "pipelines/train/checkpoint.h"
#include "tests/pipelines/train/rig.h"
#include "tests/support/memory.h"

// A model whose numbers depend on a seed.
struct state {
    struct test_device *rig;
    weir_train_model *model;
    size_t bytes; // of its parameters and state
};

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", weir_test_temp_dir(), name);
    return path;
}

// Numbers of tensors only; what lies between them is not part of a checkpoint.
static void set_numbers(const struct state *state, uint64_t seed)
{
    OWN_MEMORY float *values = rig_alloc(state->bytes, 1);
    for (size_t i = 0; i < weir_train_model_facts(state->model)->tensor_count; i++) {
        const struct weir_train_parameter *p = &weir_train_model_facts(state->model)->tensors[i];
        for (size_t k = 0; k < p->count; k++)
            values[p->offset / sizeof(float) + k] =
                (float)(int32_t)(weir_random(seed, 0, p->offset + k) >> 40) * 0x1p-20f;
    }
    EXPECT_OK(weir_upload(state->rig->queue, weir_train_model_facts(state->model)->parameters, 0,
                          values, state->bytes));
}

static bool open_with(struct state *state, struct test_device *rig,
                      const struct weir_train_model_params *params, uint64_t seed)
{
    *state = (struct state){.rig = rig};
    if (!IS_OK(weir_train_model_create(params, &state->model)))
        return false;
    state->bytes = weir_buffer_size(weir_train_model_facts(state->model)->parameters);
    set_numbers(state, seed);
    return true;
}

static bool open_state(struct state *state, struct test_device *rig, enum rig_network network,
                       weir_train_method method, uint64_t seed)
{
    struct weir_train_model_params params = rig_params(rig, network, 4);
    params.method = method;
    return open_with(state, rig, &params, seed);
}

static void close_state(struct state *state)
{
    weir_train_model_destroy(&state->model);
}

#define own_state OWN(close_state) struct state

static unsigned char *bytes_of(const struct state *state)
{
    unsigned char *bytes = rig_alloc(state->bytes, 1);
    EXPECT_OK(weir_download(state->rig->queue, bytes,
                            weir_train_model_facts(state->model)->parameters, 0, state->bytes));
    return bytes;
}

static void expect_same(const struct state *one, const struct state *other)
{
    OWN_MEMORY unsigned char *left = bytes_of(one);
    OWN_MEMORY unsigned char *right = bytes_of(other);
    EXPECT_MEM_EQ(left, right, one->bytes);
}

#define STEP UINT64_C(0x1234567890abcdef)

static const struct weir_train_progress done = {STEP, UINT64_MAX};
static const float curve[] = {1.5f, -2.25f, 0.125f};
static const struct weir_io_tensor extra = {.name = "program.curve",
                                            .dtype = WEIR_IO_F32,
                                            .rank = 1,
                                            .shape = {3},
                                            .data = curve};

static weir_status write_state(const struct state *state, const char *path)
{
    return weir_train_checkpoint_write(path, state->model, state->rig->queue, &done, &extra, 1);
}

static weir_status read_state(const struct state *state, const char *path)
{
    struct weir_train_progress progress;
    const weir_status status =
        weir_train_checkpoint_read(path, state->model, state->rig->queue, &progress, NULL);
    EXPECT_UINT_EQ(progress.step, status == WEIR_OK ? done.step : 0);
    return status;
}

DEVICE_TEST(TrainCheckpoint, IsReadAsItWasWritten, rig)
{
    for (int method = WEIR_TRAIN_FIXED; method <= WEIR_TRAIN_ADAM; method++) {
        own_state one = {0}, other = {0};
        struct weir_train_progress progress;
        weir_io_safetensors *file;
        const char *path = path_of("model.safetensors");
        const float *values;
        struct weir_io_error error;
        const uint64_t three = 3;
        ASSERT_TRUE(open_state(&one, rig, RIG_CONVNET, (weir_train_method)method, 1));
        ASSERT_TRUE(open_state(&other, rig, RIG_CONVNET, (weir_train_method)method, 2));
        ASSERT_OK(write_state(&one, path));
        ASSERT_OK(weir_train_checkpoint_read(path, other.model, rig->queue, &progress, &file));
        expect_same(&one, &other);
        EXPECT_UINT_EQ(progress.step, done.step);
        EXPECT_UINT_EQ(progress.seed, done.seed);
        ASSERT_TRUE(weir_io_safetensors_find(file, "program.curve", 1, &three, &values, &error));
        EXPECT_MEM_EQ(values, curve, sizeof curve);
        EXPECT_UINT_EQ(file->count, 10 * (method + 1u) + 3);
        weir_io_safetensors_destroy(&file);
    }
}

// Bad files.

static void expect_refused(const struct state *state, const char *path, const char *part)
{
    OWN_MEMORY unsigned char *before = bytes_of(state);
    EXPECT_FAILURE(read_state(state, path), WEIR_ERROR_IO, part);
    EXPECT_CONTAINS(weir_last_error_text(), strrchr(path, '/')); // a long path is cut
    OWN_MEMORY unsigned char *after = bytes_of(state);
    EXPECT_MEM_EQ(before, after, state->bytes);
}

DEVICE_TEST(TrainCheckpoint, OfAnotherNetworkOrOptimizerIsRefused, rig)
{
    own_state sgd = {0}, adam = {0}, other = {0}, fixed = {0};
    const char *path = path_of("other.safetensors");
    ASSERT_TRUE(open_state(&sgd, rig, RIG_MLP, WEIR_TRAIN_SGD, 1));
    ASSERT_TRUE(open_state(&adam, rig, RIG_MLP, WEIR_TRAIN_ADAM, 2));
    ASSERT_TRUE(open_state(&other, rig, RIG_CONVNET, WEIR_TRAIN_SGD, 3));
    ASSERT_TRUE(open_state(&fixed, rig, RIG_MLP, WEIR_TRAIN_FIXED, 4));
    expect_refused(&sgd, path, "other.safetensors");
    ASSERT_OK(write_state(&sgd, path));
    expect_refused(&adam, path, "layer0.weight.mean");
    expect_refused(&other, path, "has the shape [6, 9], but [18, 3] is needed");
    ASSERT_OK(write_state(&adam, path));
    expect_refused(&sgd, path, "layer0.weight.momentum");
    expect_refused(&fixed, path, "has the tensor 'layer0.weight.mean'");
    ASSERT_OK(write_state(&fixed, path));
    expect_refused(&sgd, path, "layer0.weight.momentum");
}

// A network of one layer, so that the tests can write its checkpoint by hand.
static bool open_one(struct state *state, struct test_device *rig)
{
    static const struct weir_train_layer layer = {.kind = WEIR_TRAIN_DENSE, .outputs = 2};
    return open_with(state, rig,
                     &(struct weir_train_model_params){.device = rig->device,
                                                       .input = {1, 1, 3},
                                                       .layers = &layer,
                                                       .layer_count = 1,
                                                       .batch = 1,
                                                       .method = WEIR_TRAIN_SGD},
                     1);
}

static const float six[] = {1, 2, 3, 4, 5, 6};
static const float broken[] = {1, NAN};
static const uint64_t words[] = {STEP, 4, 5};

// Writes tensors, as many as have a name, and expects what becomes of them.
static void expect_file(const struct state *state, const struct weir_io_tensor *tensors,
                        const char *part)
{
    struct weir_io_error error;
    size_t count = 0;
    const char *path = path_of("hand.safetensors");
    while (tensors[count].name)
        count++;
    ASSERT_TRUE(weir_io_safetensors_write(path, tensors, count, &error));
    expect_refused(state, path, part);
}

DEVICE_TEST(TrainCheckpoint, WithATensorThatIsWrongIsRefused, rig)
{
    own_state state = {0};
    const struct weir_io_tensor good[] = {
        {"progress", WEIR_IO_U64, 1, {2}, words, 0, 0},
        {"layer0.weight", WEIR_IO_F32, 2, {3, 2}, six, 0, 0},
        {"layer0.bias", WEIR_IO_F32, 1, {2}, six, 0, 0},
        {"layer0.weight.momentum", WEIR_IO_F32, 2, {3, 2}, six, 0, 0},
        {"layer0.bias.momentum", WEIR_IO_F32, 1, {2}, six, 0, 0},
        {NULL},
        {NULL},
    };
    struct weir_io_tensor bad[7];
    ASSERT_TRUE(open_one(&state, rig));
    expect_file(&state, good, "has no checksum");
    memcpy(bad, good, sizeof bad), bad[0].shape[0] = 3;
    expect_file(&state, bad, "is no checkpoint: it has no tensor 'progress' of 2 U64 numbers");
    memcpy(bad, good, sizeof bad), bad[0].dtype = WEIR_IO_F32;
    expect_file(&state, bad, "is no checkpoint");
    expect_file(&state, good + 1, "is no checkpoint");
    memcpy(bad, good, sizeof bad), bad[2].data = broken;
    expect_file(&state, bad, "layer0.bias");
    memcpy(bad, good, sizeof bad), bad[4].data = broken;
    expect_file(&state, bad, "layer0.bias.momentum");
    memcpy(bad, good, sizeof bad), bad[5] = good[2], bad[5].name = "layer1.bias";
    expect_file(&state, bad, "has the tensor 'layer1.bias', which this network has not");
    memcpy(bad, good, sizeof bad), bad[5] = good[2], bad[5].name = "layer0.bias.mean";
    expect_file(&state, bad, "has the tensor 'layer0.bias.mean'");
}

static void flip(FILE *file, long byte, unsigned bit)
{
    ASSERT_INT_EQ(fseek(file, byte, SEEK_SET), 0);
    const int value = fgetc(file);
    ASSERT_INT_EQ(fseek(file, byte, SEEK_SET), 0);
    EXPECT_INT_EQ(fputc(value ^ (1 << bit), file), value ^ (1 << bit));
    EXPECT_INT_EQ(fflush(file), 0);
}

// Of the length, the header, the numbers and the checksum.
DEVICE_TEST(TrainCheckpoint, WithAFlippedBitIsRefused, rig)
{
    own_state state = {0};
    const char *path = path_of("flipped.safetensors");
    ASSERT_TRUE(open_one(&state, rig));
    ASSERT_OK(write_state(&state, path));
    FILE *file = fopen(path, "r+b");
    ASSERT_TRUE(file && fseek(file, 0, SEEK_END) == 0);
    const long size = ftell(file);
    for (long i = 0; i < 8 * size && !weir_test_has_failed(); i++) {
        weir_test_note("bit %ld of byte %ld of %ld", i % 8, i / 8, size);
        flip(file, i / 8, (unsigned)(i % 8));
        EXPECT_FAILURE(read_state(&state, path), WEIR_ERROR_IO, strrchr(path, '/'));
        flip(file, i / 8, (unsigned)(i % 8));
    }
    weir_test_note(NULL);
    EXPECT_OK(read_state(&state, path));
    fclose(file);
}

// Writing.

static weir_status fail(void *unused)
{
    return WEIR_ERROR_INVALID;
}

// The file of before stays.
DEVICE_TEST(TrainCheckpoint, OfAFailedQueueIsNotWritten, rig)
{
    own_state state = {0}, other = {0};
    const char *path = path_of("failed.safetensors");
    ASSERT_TRUE(open_one(&state, rig));
    ASSERT_OK(write_state(&state, path));
    ASSERT_TRUE(open_one(&other, rig));
    set_numbers(&other, 9);
    ASSERT_OK(weir_queue_host_call(rig->queue, fail, NULL));
    EXPECT_INT_LT(write_state(&other, path), 0);
    EXPECT_INT_LT(read_state(&other, path), 0);
    ASSERT_OK(weir_queue_recover(rig->queue));
    ASSERT_OK(read_state(&other, path));
    expect_same(&state, &other);
}

DEVICE_TEST(TrainCheckpoint, WithoutMemorySaysSo, rig)
{
    own_state state = {0};
    const char *path = path_of("memory.safetensors");
    ASSERT_TRUE(open_one(&state, rig));
    ASSERT_OK(write_state(&state, path));
    for (int reads = 0; reads < 2; reads++) {
        weir_status status = WEIR_ERROR_INVALID;
        bool failed = true;
        for (long index = 0; failed; index++) {
            weir_test_fail_allocation(index);
            status = reads ? read_state(&state, path) : write_state(&state, path);
            failed = weir_test_allocation_failed();
            weir_test_fail_allocation(-1);
            weir_test_note("allocation %ld of %s", index, reads ? "reading" : "writing");
            if (failed && status != WEIR_OK)
                EXPECT_TRUE(status == WEIR_ERROR_OUT_OF_MEMORY || status == WEIR_ERROR_IO);
        }
        EXPECT_INT_EQ(status, WEIR_OK);
    }
    weir_test_note(NULL);
}
