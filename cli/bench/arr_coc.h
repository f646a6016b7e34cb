// A frame's results, kept and checked.
#ifndef WEIR_CLI_BENCH_ARR_COC_H
#define WEIR_CLI_BENCH_ARR_COC_H

#include "cli/bench/bench.h"
#include "pipelines/arr_coc/arr_coc.h"

// A copy of one frame's results.
struct arr_coc_results {
    struct weir_arr_coc_output output; // its arrays lie in `memory`
    void *memory;
    size_t size;
};

// Whether the counts of patches and tokens are within their limits. The counts come from
// the device, and the arrays are as long as the limits.
bool arr_coc_results_fit(const struct weir_arr_coc_output *output,
                         const struct weir_arr_coc_sizes *sizes);

// Copies a frame's results, which fit. False if out of memory.
bool arr_coc_results_take(struct arr_coc_results *results, const struct weir_arr_coc_output *output,
                          uint32_t grid);
void arr_coc_results_finish(struct arr_coc_results *results);

bool arr_coc_results_same(const struct arr_coc_results *a, const struct arr_coc_results *b);

// Whether they can be the results of an image: all values are numbers; patches, sides and
// order are exactly those that follow from the relevance; and every token holds the
// position of its cell in the image. Otherwise `message` says what is wrong.
bool arr_coc_results_check(const struct arr_coc_results *results,
                           const struct weir_arr_coc_sizes *sizes, char *message,
                           size_t message_size);

#endif
