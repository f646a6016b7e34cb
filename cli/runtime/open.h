// Opening a runtime with the sections that the command's pipelines declare.
#ifndef WEIR_CLI_RUNTIME_OPEN_H
#define WEIR_CLI_RUNTIME_OPEN_H

#include <stdbool.h>

#include <weir/weir.h>

#include "pipelines/arr_coc/arr_coc.h"

// Of the configuration file `config`, or, if it is NULL, of the one that weir_open() finds.
struct weir_open_params cli_open_params(const char *config);

// Opens a runtime with the configuration file `config`, or, if it is NULL, with the one
// that weir_open() finds. `out_report` may be NULL.
//
// Errors: those of weir_open(); nothing is printed.
weir_status cli_open(const char *config, weir_load_report **out_report, weir_runtime **out_runtime);

// The same without plugins, for work beside the user's, which is not to be in their traces.
weir_status cli_open_plain(const char *config, weir_runtime **out_runtime);

// Opens the first device of the machine that is not `device`, whichever way that one was chosen, and
// stores it in `*out_other`; NULL if there is none.
//
// Errors: those of weir_device_open(); nothing is printed.
weir_status cli_open_other(weir_runtime *runtime, weir_device *device, weir_device **out_other);

// Closes both; either may be NULL. Returns the exit code, which is `code` unless that is CLI_OK and
// something is told now, such as a trace that could not be written: then it is printed, and the code
// is CLI_FAILED.
int cli_close(weir_device **device, weir_runtime **runtime, int code);

// Several devices of one command: --devices.

enum {
    CLI_DEVICES_MAX = 64
};

// PoCL compiles a kernel when it is launched first.
bool cli_is_pocl(const struct weir_device_info *info);

// What --devices asks for.
struct cli_devices {
    bool all;
    uint32_t count; // of `indices`; 0 and not `all`: the device that the configuration names
    uint32_t indices[CLI_DEVICES_MAX];
};

// Reads "0,1", the indices of `weir devices`, or "all". NULL is the configuration's device.
//
// Errors: false after a message: not an index, one that is named twice, too many.
bool cli_devices_parse(const char *text, struct cli_devices *out_devices);

// Opens them in this order, and stores them and how many there are. What is open after an error is
// stored too.
//
// Errors: those of weir_device_open(); nothing is printed.
weir_status cli_devices_open(weir_runtime *runtime, const struct cli_devices *devices,
                             weir_device *out_list[CLI_DEVICES_MAX], uint32_t *out_count);

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

// Whether both have the same patches, tokens and numbers, bit by bit.
bool cli_results_same(const struct weir_arr_coc_output *a, const struct weir_arr_coc_output *b,
                      const struct weir_arr_coc_sizes *sizes);

// Stores the path of the weights that come with the command.
//
// Errors: false after a message.
bool cli_find_weights(char *path, size_t size);

#endif
