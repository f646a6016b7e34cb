// What a frame of ARR-COC gives, kept in memory of the command's own; and the weights that come with it.
#ifndef WEIR_CLI_RUNTIME_RESULTS_H
#define WEIR_CLI_RUNTIME_RESULTS_H

#include "pipelines/arr_coc/arr_coc.h"

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
