// Training runs: they learn; the overlapped way, and other counts of ranks and passes, have the same bits. Those of a
// resumption are in tests/cli/train_resume_test.sh.
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "pipelines/train/feed.h"
#include "tests/support/own.h"

enum {
    RUNS_RANKS_MAX = 4
};

struct runs {
    weir_runtime *runtime;
    weir_device *device;
    weir_train_data *data;
    uint32_t ranks;
    weir_comm *comms[RUNS_RANKS_MAX];
};

struct runs_result {
    weir_status status;
    struct weir_error error;
    struct weir_train_figures figures;
};

#define own_figures OWN(weir_train_figures_finish) struct weir_train_figures

static const weir_train_data made = {
    .shape = {.height = 8, .width = 8, .channels = 1},
    .classes = 4,
    .count = 1000,
    .seed = 5,
    .noise = 64,
};

// A device with that many ranks, a thread each, and a small set of images of 8 x 8 pixels.
static void runs_open(struct runs *runs, uint32_t ranks)
{
    weir_device *devices[RUNS_RANKS_MAX];
    *runs = (struct runs){.ranks = ranks};
    ASSERT_OK(weir_open(NULL, &runs->runtime));
    ASSERT_OK(weir_device_open(runs->runtime, NULL, &runs->device));
    ASSERT_OK(weir_train_data_make(&made, &runs->data));
    for (uint32_t i = 0; i < ranks; i++)
        devices[i] = runs->device;
    ASSERT_OK(weir_comm_create_all(devices, ranks, WEIR_PARAMS(weir_comm, .label = "train"),
                                   runs->comms));
}

static void runs_close(struct runs *runs)
{
    for (uint32_t i = 0; i < runs->ranks; i++)
        weir_comm_destroy(&runs->comms[i]);
    weir_train_data_destroy(&runs->data);
    EXPECT_OK(weir_device_close(&runs->device));
    EXPECT_OK(weir_close(&runs->runtime));
}

#define own_runs OWN(runs_close) struct runs

// A small run of `program`; a test changes what it is about.
static struct weir_train_run_params runs_params(const struct runs *runs, weir_train_program program)
{
    return (struct weir_train_run_params){
        .program = program,
        .comm = runs ? runs->comms[0] : NULL,
        .data = runs ? runs->data : NULL,
        .steps = 6,
        .batch = 8,
        .passes = 1,
        .seed = 3,
        .hidden = 1,
        .width = 16,
        .channels = 2,
        .method = WEIR_TRAIN_SGD,
        .rate = 0.05F,
        .momentum = 0.9F,
        .bucket_bytes = 512, // several buckets
    };
}

struct job {
    struct weir_train_run_params params;
    struct runs_result *result;
};

static void *train(void *user)
{
    struct job *job = user;
    job->result->status = weir_train_run(&job->params, &job->result->figures);
    if (job->result->status != WEIR_OK)
        job->result->error = *weir_last_error();
    return NULL;
}

// Trains on all ranks. Results are those of each rank, to be finished.
static void runs_train(const struct runs *runs, const struct weir_train_run_params *params,
                       struct runs_result results[RUNS_RANKS_MAX])
{
    struct job jobs[RUNS_RANKS_MAX];
    pthread_t threads[RUNS_RANKS_MAX];
    for (uint32_t i = 0; i < runs->ranks; i++) {
        jobs[i] = (struct job){.params = *params, .result = &results[i]};
        jobs[i].params.comm = runs->comms[i];
        jobs[i].params.data = runs->data;
        results[i] = (struct runs_result){0};
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, train, &jobs[i]), 0);
    }
    for (uint32_t i = 0; i < runs->ranks; i++)
        pthread_join(threads[i], NULL);
}

// The same on runs of its own with that many ranks, which must succeed, and have the same parameters. Returns
// rank 0's figures.
static struct weir_train_figures runs_train_alone(uint32_t ranks,
                                                  struct weir_train_run_params params)
{
    own_runs runs;
    struct runs_result results[RUNS_RANKS_MAX] = {0};
    runs_open(&runs, ranks);
    runs_train(&runs, &params, results);
    for (uint32_t i = 0; i < ranks; i++) {
        EXPECT_INT_EQ(results[i].status, WEIR_OK);
        if (results[i].status != WEIR_OK)
            EXPECT_STR_EQ(results[i].error.message, "");
        EXPECT_INT_EQ(results[i].figures.parameters_digest, results[0].figures.parameters_digest);
        if (i > 0)
            weir_train_figures_finish(&results[i].figures);
    }
    return results[0].figures;
}

// Expects the same bits in parameters and curves.
static void runs_expect_same(const struct weir_train_figures *a, const struct weir_train_figures *b)
{
    EXPECT_INT_EQ(a->parameters_digest, b->parameters_digest);
    ASSERT_INT_EQ(a->steps, b->steps);
    ASSERT_TRUE(a->losses && b->losses);
    EXPECT_INT_EQ(memcmp(a->losses, b->losses, a->steps * sizeof *a->losses), 0);
    EXPECT_INT_EQ(memcmp(a->right, b->right, a->steps * sizeof *a->right), 0);
}

static const weir_train_program programs[] = {WEIR_TRAIN_DDP, WEIR_TRAIN_ACCUMULATE,
                                              WEIR_TRAIN_AUGMENT, WEIR_TRAIN_ENCDEC};

enum {
    PROGRAMS = sizeof programs / sizeof *programs
};

static struct weir_train_run_params params_of(weir_train_program program)
{
    struct weir_train_run_params params = runs_params(NULL, program);
    if (program == WEIR_TRAIN_ACCUMULATE)
        params.passes = 3;
    if (program == WEIR_TRAIN_ENCDEC)
        params.network = WEIR_TRAIN_CONVNET;
    return params;
}

static void expect_serial_is_same(struct weir_train_run_params params, uint32_t ranks)
{
    own_figures overlapped = runs_train_alone(ranks, params);
    params.serial = true;
    own_figures serial = runs_train_alone(ranks, params);
    runs_expect_same(&overlapped, &serial);
    EXPECT_TRUE(overlapped.loader.delivered > 0);
    EXPECT_INT_EQ(serial.loader.delivered, 0);
    EXPECT_TRUE(overlapped.plan.bucket_count > 1);
}

WEIR_TEST(Train, SerialAndOverlappedHaveTheSameBits)
{
    expect_serial_is_same(params_of(programs[0]), 1);
    for (int i = 0; i < PROGRAMS; i++)
        expect_serial_is_same(params_of(programs[i]), 2);
    // More features than an image has numbers.
    struct weir_train_run_params wide = params_of(WEIR_TRAIN_ENCDEC);
    wide.width = 80;
    expect_serial_is_same(wide, 1);
}

static void expect_host_is_same(struct weir_train_run_params params)
{
    own_figures device = runs_train_alone(1, params);
    params.augment_on_host = true;
    own_figures host = runs_train_alone(1, params);
    runs_expect_same(&device, &host);
}

WEIR_TEST(Train, AugmentsOnTheHostWithTheSameBits)
{
    // Nothing is augmented, and there are fewer features than an image has bytes.
    struct weir_train_run_params narrow = params_of(WEIR_TRAIN_ENCDEC);
    narrow.width = 4;
    expect_host_is_same(params_of(WEIR_TRAIN_AUGMENT));
    expect_host_is_same(narrow);
}

// The means over the last 20 steps of 150; `right` at least.
static void expect_learns(struct weir_train_run_params params, double right)
{
    double loss_sum = 0, right_sum = 0;
    params.steps = 150;
    params.batch = 16;
    own_figures figures = runs_train_alone(1, params);
    ASSERT_TRUE(figures.losses != NULL);
    for (uint64_t step = 130; step < 150; step++) {
        loss_sum += (double)figures.losses[step];
        right_sum += (double)figures.right[step];
    }
    EXPECT_DOUBLE_LT(loss_sum / 20, 0.5 * (double)figures.losses[0]);
    EXPECT_DOUBLE_GT(right_sum / 20, right);
    EXPECT_TRUE(figures.wall_ns > 0);
}

WEIR_TEST(Train, Learns)
{
    expect_learns(params_of(WEIR_TRAIN_DDP), 0.95);
    expect_learns(params_of(WEIR_TRAIN_ACCUMULATE), 0.95);
    expect_learns(params_of(WEIR_TRAIN_ENCDEC), 0.6);
    // Each image in twelve forms.
    expect_learns(params_of(WEIR_TRAIN_AUGMENT), 0.6);
}

// A step of 16 samples, divided into passes and ranks.
static struct weir_train_figures run_divided(struct weir_train_run_params params, uint32_t ranks,
                                             uint32_t passes)
{
    params.passes = passes;
    params.batch = 16 / passes / ranks;
    const struct weir_train_figures figures = runs_train_alone(ranks, params);
    EXPECT_INT_EQ(figures.samples, 16);
    return figures;
}

static void expect_division_is_same(struct weir_train_run_params params)
{
    static const uint32_t divisions[][2] = {{2, 1}, {4, 1}, {1, 4}, {2, 2}};
    params.exact = true;
    own_figures whole = run_divided(params, 1, 1);
    for (size_t i = 0; i < sizeof divisions / sizeof *divisions; i++) {
        own_figures part = run_divided(params, divisions[i][0], divisions[i][1]);
        EXPECT_INT_EQ(part.parameters_digest, whole.parameters_digest);
        for (uint64_t step = 0; part.losses && whole.losses && step < part.steps; step++)
            EXPECT_TRUE(fabs((double)(part.losses[step] - whole.losses[step])) < 1e-5);
    }
}

WEIR_TEST(Train, RanksHaveTheBitsOfOne)
{
    struct weir_train_run_params params = params_of(WEIR_TRAIN_DDP);
    expect_division_is_same(params);
    params.network = WEIR_TRAIN_CONVNET;
    params.element = WEIR_TRAIN_BF16;
    params.method = WEIR_TRAIN_ADAM;
    params.rate = 0.001F;
    expect_division_is_same(params);
    expect_division_is_same(params_of(WEIR_TRAIN_ENCDEC));
}

// Without integers sums over samples round, so that only the order of the same parts is the same.
WEIR_TEST(Train, PassesHaveTheBitsOfRanks)
{
    struct weir_train_run_params params = params_of(WEIR_TRAIN_AUGMENT);
    own_figures passes = run_divided(params, 1, 4);
    own_figures ranks = run_divided(params, 4, 1);
    own_figures whole = run_divided(params, 1, 1);
    EXPECT_INT_EQ(passes.parameters_digest, ranks.parameters_digest);
    for (uint64_t step = 0; whole.losses && ranks.losses && step < whole.steps; step++)
        EXPECT_TRUE(fabs((double)(ranks.losses[step] - whole.losses[step])) < 1e-3);
}

WEIR_TEST(Train, KeepsGradientsAsBfloat16OnTheirWay)
{
    struct weir_train_run_params params = params_of(WEIR_TRAIN_DDP);
    own_figures plain = runs_train_alone(2, params);
    params.wire = WEIR_BF16;
    own_figures rounded = runs_train_alone(2, params);
    EXPECT_TRUE(plain.parameters_digest != rounded.parameters_digest);
    EXPECT_TRUE(rounded.buckets.reduced_bytes < plain.buckets.reduced_bytes * 2 / 3);
}

static void note_progress(void *user, uint64_t step, float loss)
{
    uint64_t *steps = user;
    EXPECT_TRUE(step > steps[0] && isfinite(loss));
    steps[0] = step;
    steps[1]++;
}

WEIR_TEST(Train, TellsHowFarItIs)
{
    uint64_t steps[2] = {0};
    struct weir_train_run_params params = params_of(WEIR_TRAIN_DDP);
    params.steps = 200;
    params.progress = note_progress;
    params.user = steps;
    own_figures figures = runs_train_alone(2, params);
    EXPECT_INT_EQ(figures.steps, 200);
    EXPECT_INT_EQ(steps[0], 200);
    EXPECT_INT_EQ(steps[1], 4); // after 128 and 192 steps, and at the end for each window that was left
}

static weir_status pass_late(void *passed)
{
    weir_clock_sleep_ns(200000000); // for an end of the feed that does not wait
    atomic_store((atomic_bool *)passed, true);
    return WEIR_OK;
}

// What a feed prepares ahead reads the run's models and host memory, so its end comes after that: here of the third
// batch, which waits on the device for the first one's slot.
WEIR_TEST(TrainFeed, EndsAfterWhatItPrepares)
{
    static const struct weir_train_augment_params augment = {
        .width = 8, .height = 8, .channels = 1, .out_width = 7, .out_height = 7, .deviation = {1}};
    own_runs runs;
    struct weir_train_batch batch;
    atomic_bool passed = false;
    train_feed *feed;

    runs_open(&runs, 1);
    own_queue queue = test_queue(runs.device, "feed");
    struct weir_train_run_params params = runs_params(&runs, WEIR_TRAIN_AUGMENT);
    params.steps = 3; // so that no thread of the loader waits for the third one
    const struct train_feed_params feed_params = {
        .run = &params,
        .queue = queue,
        .augment = &augment,
    };
    ASSERT_OK(train_feed_create(&feed_params, 7 * 7, &feed));
    ASSERT_OK(train_feed_next(feed, &batch));
    ASSERT_OK(weir_queue_host_call(queue, pass_late, &passed));
    ASSERT_OK(train_feed_release(feed));
    ASSERT_OK(train_feed_next(feed, &batch));
    train_feed_destroy(&feed);
    EXPECT_TRUE(atomic_load(&passed));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
}

// What a training run refuses, and that a failure of one rank ends all.

WEIR_TEST(TrainErrors, StopsWhenTheLossIsNoNumber)
{
    own_runs runs;
    struct runs_result results[RUNS_RANKS_MAX] = {0};
    runs_open(&runs, 2);
    struct weir_train_run_params params = runs_params(&runs, WEIR_TRAIN_DDP);
    params.rate = 1e30F;
    params.steps = 200;
    runs_train(&runs, &params, results);
    // The first that sees it aborts; the other one sees it too, or is told.
    for (int i = 0; i < 2; i++) {
        EXPECT_TRUE(results[i].status == WEIR_ERROR_INVALID ||
                    results[i].status == WEIR_ERROR_COMM);
        EXPECT_CONTAINS(results[i].error.message, "the loss of step ");
    }
    EXPECT_TRUE(strstr(results[0].error.remedy, "lower learning rate") ||
                strstr(results[1].error.remedy, "lower learning rate"));
}

// Rank 0 alone sees the file; rank 1 is told.
static void expect_both_told(const struct weir_train_run_params *params, const char *what)
{
    own_runs runs;
    struct runs_result results[RUNS_RANKS_MAX] = {0};
    runs_open(&runs, 2);
    runs_train(&runs, params, results);
    EXPECT_TRUE(results[0].status < 0);
    EXPECT_CONTAINS(results[0].error.message, what);
    EXPECT_INT_EQ(results[1].status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(results[1].error.message, what);
}

WEIR_TEST(TrainErrors, TellsOtherRanksOfACheckpointThatCannotBeWritten)
{
    struct weir_train_run_params params = runs_params(NULL, WEIR_TRAIN_DDP);
    params.checkpoint = "/no-such-folder/checkpoint.safetensors";
    params.checkpoint_every = 5;
    expect_both_told(&params, "/no-such-folder");
}

static void train_into(const char *path)
{
    struct weir_train_run_params params = runs_params(NULL, WEIR_TRAIN_DDP);
    params.checkpoint = path;
    params.steps = 12;
    own_figures figures = runs_train_alone(1, params);
    EXPECT_INT_EQ(figures.steps, 12);
}

WEIR_TEST(TrainErrors, RefusesACheckpointOfAnotherRun)
{
    char path[4096];
    struct weir_train_run_params params = runs_params(NULL, WEIR_TRAIN_DDP);
    snprintf(path, sizeof path, "%s/other.safetensors", getenv("TEST_TMPDIR"));
    train_into(path);
    params.checkpoint = path;
    params.resume = true;
    params.seed = 4;
    expect_both_told(&params, "is of a run with the seed 3, this one has 4");
    params.seed = 3;
    params.steps = 11;
    expect_both_told(&params, "has done 12 steps, and this run is to have 11");
    params.steps = 20;
    params.width = 17;
    expect_both_told(&params, "layer0.weight");
    FILE *file = fopen(path, "w");
    ASSERT_TRUE(file != NULL);
    fputs("no tensors", file);
    fclose(file);
    // A long path is told by its end.
    expect_both_told(&params, "other.safetensors: is not a safetensors file");
    unlink(path);
}
