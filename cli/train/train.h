// What the files of `weir train` share.
#ifndef WEIR_CLI_TRAIN_TRAIN_H
#define WEIR_CLI_TRAIN_TRAIN_H

#include <weir/weir.h>

#include "cli/common/cli.h"
#include "cli/common/progress.h"
#include "pipelines/train/train.h"

// The command line.
struct train_options {
    weir_train_program program;
    const char *config;
    const char *device;
    // Data.
    const char *data; // a folder; NULL: made
    uint64_t side;    // of made images
    uint64_t seed;
    bool exact;
    // The model.
    const char *network;
    uint64_t hidden;
    uint64_t width;
    uint64_t channels;
    const char *element;
    const char *products;
    // Steps.
    uint64_t steps;
    uint64_t batch;
    uint64_t passes;
    const char *optimizer;
    const char *rate;
    const char *momentum;
    const char *buckets;
    const char *wire;
    bool serial;
    uint64_t crop;
    bool on_host;
    // What is kept and told.
    const char *checkpoint; // a folder
    uint64_t every;
    bool resume;
    const char *curve;
    bool json;
    bool quiet;
};

struct train_command {
    struct train_options options;
    struct weir_train_run_params params;
    char checkpoint[4096];
    weir_train_data *data;
    weir_runtime *runtime;
    weir_device *device;
    weir_comm *comm;
    struct cli_progress progress;
    struct weir_train_figures figures;
};

// Reads the command line into `command->options`, as cli_parse() does.
bool train_parse(struct train_command *command, int argc, char **argv, int *out_exit);

// Sets `command->params` but for what is opened.
//
// Errors: false after a sentence.
bool train_take_options(struct train_command *command);

// "ddp".
const char *train_program_name(weir_train_program program);

#endif
