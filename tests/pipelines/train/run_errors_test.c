// What a training run refuses, and that a failure of one rank ends all.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/pipelines/train/runs.h"
#include "tests/support/test.h"

static void expect_refused(const struct runs *runs, const struct weir_train_run_params *params,
                           weir_status status, const char *what)
{
    struct runs_result results[RUNS_RANKS_MAX] = {0};
    runs_train(runs, params, results);
    EXPECT_INT_EQ(results[0].status, status);
    EXPECT_CONTAINS(results[0].error.message, what);
    EXPECT_TRUE(results[0].figures.losses == NULL);
}

// One rank; each refusal aborts its communicator, so each has one of its own.
static void expect_invalid(struct weir_train_run_params params, const char *what)
{
    struct runs runs;
    runs_open(&runs, 1);
    expect_refused(&runs, &params, WEIR_ERROR_INVALID, what);
    runs_close(&runs);
}

#define EXPECT_INVALID(field, value, what)                                       \
    do {                                                                         \
        struct weir_train_run_params params = runs_params(NULL, WEIR_TRAIN_DDP); \
        params.field = (value);                                                  \
        expect_invalid(params, what);                                            \
    } while (0)

WEIR_TEST(TrainErrors, RefusesWhatIsWrong)
{
    EXPECT_INVALID(steps, 0, "0 steps; 1 to 10000000 are possible");
    EXPECT_INVALID(steps, WEIR_TRAIN_STEPS_MAX + 1, "10000001 steps");
    EXPECT_INVALID(batch, 0, "a batch of 0 samples; 1 to 65536 are possible");
    EXPECT_INVALID(passes, 1025, "a step of 1025 passes; 1 to 1024 are possible");
    EXPECT_INVALID(rate, 0, "a learning rate of 0; it is above 0");
    EXPECT_INVALID(rate, NAN, "a learning rate of nan");
    EXPECT_INVALID(hidden, 128, "128 hidden layers; at most 127 are possible");
    EXPECT_INVALID(program, (weir_train_program)9, "there is no program 9");
    EXPECT_INVALID(resume, true, "there is no checkpoint to resume from");
    EXPECT_INVALID(struct_size, 4, "struct weir_train_run_params");
}

WEIR_TEST(TrainErrors, RefusesWhatCannotBeAugmented)
{
    struct weir_train_run_params params = runs_params(NULL, WEIR_TRAIN_AUGMENT);
    params.exact = true;
    expect_invalid(params, "augmented images are no integers");
    params.exact = false;
    params.crop_width = 9;
    expect_invalid(params, "9 x 7 pixels cannot be cut out of images of 8 x 8");
}

WEIR_TEST(TrainErrors, NeedsRanksAndData)
{
    struct weir_train_run_params params = runs_params(NULL, WEIR_TRAIN_DDP);
    struct weir_train_figures figures;
    EXPECT_FAILURE(weir_train_run(&params, &figures), WEIR_ERROR_INVALID, "comm is NULL");
    weir_train_figures_finish(&figures);
}

WEIR_TEST(TrainErrors, StopsWhenTheLossIsNoNumber)
{
    struct runs runs;
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
    runs_close(&runs);
}

WEIR_TEST(TrainErrors, TellsWhatItHasSeenItself)
{
    struct runs runs;
    runs_open(&runs, 1);
    struct weir_train_run_params params = runs_params(&runs, WEIR_TRAIN_DDP);
    params.rate = 1e30F;
    params.steps = 200;
    expect_refused(&runs, &params, WEIR_ERROR_INVALID, "the loss of step ");
    runs_close(&runs);
}

// Rank 0 alone sees the file; rank 1 is told.
static void expect_both_told(const struct weir_train_run_params *params, const char *what)
{
    struct runs runs;
    struct runs_result results[RUNS_RANKS_MAX] = {0};
    runs_open(&runs, 2);
    runs_train(&runs, params, results);
    EXPECT_TRUE(results[0].status < 0);
    EXPECT_CONTAINS(results[0].error.message, what);
    EXPECT_INT_EQ(results[1].status, WEIR_ERROR_COMM);
    EXPECT_CONTAINS(results[1].error.message, what);
    runs_close(&runs);
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
    struct weir_train_figures figures;
    params.checkpoint = path;
    runs_train_alone(1, params, &figures);
    weir_train_figures_finish(&figures);
}

// Sets the number of steps in a checkpoint of 12 steps, which has the seed 3 after it, to 0.
static void forget_steps(const char *path)
{
    static const uint64_t progress[] = {12, 3};
    static const uint64_t none = 0;
    char message[512];
    void *data = NULL;
    size_t size = 0;
    size_t at = 0;
    ASSERT_TRUE(weir_file_read(path, 1 << 20, &data, &size, message, sizeof message));
    while (at + sizeof progress <= size &&
           memcmp((char *)data + at, progress, sizeof progress) != 0)
        at++;
    ASSERT_TRUE(at + sizeof progress <= size);
    memcpy((char *)data + at, &none, sizeof none);
    ASSERT_TRUE(weir_file_write(path, data, size, message, sizeof message));
    free(data);
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
    // Step 0 with the figures of 12 steps.
    params.width = runs_params(NULL, WEIR_TRAIN_DDP).width;
    forget_steps(path);
    expect_both_told(&params, "checksum");
    FILE *file = fopen(path, "w");
    ASSERT_TRUE(file != NULL);
    fputs("no tensors", file);
    fclose(file);
    // A long path is told by its end.
    expect_both_told(&params, "other.safetensors: is not a safetensors file");
    unlink(path);
}
