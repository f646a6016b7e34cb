// Training runs on the ranks of one process, a thread each.
#ifndef WEIR_TESTS_PIPELINES_TRAIN_RUNS_H
#define WEIR_TESTS_PIPELINES_TRAIN_RUNS_H

#include "pipelines/train/train.h"

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

// Opens a device with that many ranks, and a small set of images of 8 x 8 pixels.
void runs_open(struct runs *runs, uint32_t ranks);
void runs_close(struct runs *runs);

// A small run of `program`; a test changes what it is about.
struct weir_train_run_params runs_params(const struct runs *runs, weir_train_program program);

struct runs_result {
    weir_status status;
    struct weir_error error;
    struct weir_train_figures figures;
};

#define own_figures OWN(weir_train_figures_finish) struct weir_train_figures

// Trains on all ranks. Results are those of each rank, to be finished.
void runs_train(const struct runs *runs, const struct weir_train_run_params *params,
                struct runs_result results[RUNS_RANKS_MAX]);

// The same on runs of its own with that many ranks, which must succeed, with rank 0's figures, and the
// same parameters on all.
void runs_train_alone(uint32_t ranks, struct weir_train_run_params params,
                      struct weir_train_figures *out_figures);

// Expects the same bits in parameters and curves.
void runs_expect_same(const struct weir_train_figures *a, const struct weir_train_figures *b);

#endif
