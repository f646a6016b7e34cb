#include "tests/pipelines/train/runs.h"

#include <pthread.h>
#include <string.h>

#include "tests/support/test.h"

static const struct weir_train_made_params made = {
    .shape = {.height = 8, .width = 8, .channels = 1},
    .classes = 4,
    .count = 1000,
    .seed = 5,
    .noise = 64,
};

void runs_open(struct runs *runs, uint32_t ranks)
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

void runs_close(struct runs *runs)
{
    for (uint32_t i = 0; i < runs->ranks; i++)
        weir_comm_destroy(&runs->comms[i]);
    weir_train_data_destroy(&runs->data);
    EXPECT_OK(weir_device_close(&runs->device));
    EXPECT_OK(weir_close(&runs->runtime));
}

struct weir_train_run_params runs_params(const struct runs *runs, weir_train_program program)
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

void runs_train(const struct runs *runs, const struct weir_train_run_params *params,
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

void runs_train_alone(uint32_t ranks, struct weir_train_run_params params,
                      struct weir_train_figures *out_figures)
{
    struct runs runs;
    struct runs_result results[RUNS_RANKS_MAX] = {0};
    *out_figures = (struct weir_train_figures){0};
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
    *out_figures = results[0].figures;
    runs_close(&runs);
}

void runs_expect_same(const struct weir_train_figures *a, const struct weir_train_figures *b)
{
    EXPECT_INT_EQ(a->parameters_digest, b->parameters_digest);
    ASSERT_INT_EQ(a->steps, b->steps);
    ASSERT_TRUE(a->losses && b->losses);
    EXPECT_INT_EQ(memcmp(a->losses, b->losses, a->steps * sizeof *a->losses), 0);
    EXPECT_INT_EQ(memcmp(a->right, b->right, a->steps * sizeof *a->right), 0);
}
