// Opening a runtime with the sections that the command's pipelines declare.
#ifndef WEIR_CLI_RUNTIME_OPEN_H
#define WEIR_CLI_RUNTIME_OPEN_H

#include <stdbool.h>

#include <weir/weir.h>

#include "pipelines/arr_coc/arr_coc.h"
#include "pipelines/arr_coc/weights.h"

// Of the configuration file `config`, or, if it is NULL, of the one that weir_open() finds.
struct weir_open_params cli_open_params(const char *config);

// Opens a runtime: with the configuration file `config`, or, if it is NULL, with the one that weir_open()
// finds; and with other parameters. Never NULL.
//
// Ownership: the command's. What is told when it is closed, such as a trace that could not be written, is
// printed, and the command has failed then.
// Errors: those of weir_open() end the command.
weir_runtime *cli_open(const char *config);
weir_runtime *cli_open_with(const struct weir_open_params *params);

// The same of a device: `select` and `label` are those of its parameters, or NULL.
weir_device *cli_device(weir_runtime *runtime, const char *select, const char *label);

// Closes what was opened without these when the command ends.
void cli_own_runtime(weir_runtime *runtime);
void cli_own_device(weir_device *device);

// Several devices of one command: --devices.

enum {
    CLI_DEVICES_MAX = 64
};

// What --devices asks for.
struct cli_devices {
    bool all;
    uint32_t count; // of `indices`; 0 and not `all`: the device that the configuration names
    uint32_t indices[CLI_DEVICES_MAX];
};

// Reads "0,1", the indices of `weir devices`, or "all". NULL is the configuration's device.
//
// Errors: not an index, one that is named twice, and too many end the command.
struct cli_devices cli_devices_read(const char *text);

// Opens them in this order, and returns how many there are. Ownership and errors are those of cli_device().
uint32_t cli_devices_open(weir_runtime *runtime, const struct cli_devices *devices,
                          weir_device *out_list[CLI_DEVICES_MAX]);

// This process's number among those of its machine, as launchers tell it. False: none does, and 0 is
// stored.
bool cli_local_rank(uint32_t *out_rank);

// The device of a rank that a launcher has started: where there are several, that of its number on the
// machine. None is named without a launcher, so that the configuration chooses.
void cli_devices_of_rank(weir_runtime *runtime, struct cli_devices *out_devices);

// What a frame of ARR-COC gives, kept in memory of the command's own; and the weights that come with it.

// Points the arrays of `*output`, whose counts are set, into the memory at `at`, one after the other. Returns how
// many bytes they take, a multiple of four; `at` may be NULL, for that alone.
size_t cli_results_place(struct weir_arr_coc_output *output, const struct weir_arr_coc_sizes *sizes,
                         void *at);

// Copies the arrays there, and stores where they are.
void cli_results_copy(const struct weir_arr_coc_output *output,
                      const struct weir_arr_coc_sizes *sizes, void *at,
                      struct weir_arr_coc_output *out_copy);

// A copy in memory of its own.
struct cli_results {
    struct weir_arr_coc_output output; // its arrays lie in `memory`
    void *memory;                      // to be freed with free(); NULL: there is no copy
};

// Makes the copy. False if memory runs out. Threads: any.
bool cli_results_keep(const struct weir_arr_coc_output *output,
                      const struct weir_arr_coc_sizes *sizes, struct cli_results *out_results);

// Whether both have the same patches, tokens and numbers, bit by bit.
bool cli_results_same(const struct weir_arr_coc_output *a, const struct weir_arr_coc_output *b,
                      const struct weir_arr_coc_sizes *sizes);

// The weights of the file, or, where that is NULL, those that come with the command, whose path is stored.
//
// Ownership: the command's. Errors: they end it.
weir_arr_coc_weights *cli_load_weights(const char **path);

#endif
