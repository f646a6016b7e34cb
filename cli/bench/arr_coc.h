// What the files of `weir bench arr-coc` share: a frame's results, kept and checked; and bare copies
// of its bytes.
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

// Queues and buffers for bare copies to a device and back. `device` is the caller's.
struct arr_coc_copies {
    weir_device *device;
    weir_queue *up, *down;
    weir_buffer *up_host, *up_device, *down_host, *down_device;
    size_t down_bytes;
};

// Makes all but `device`, for copies of at most `up_bytes` up and of `down_bytes` down.
bool arr_coc_copies_make(struct bench *bench, struct arr_coc_copies *copies, size_t up_bytes,
                         size_t down_bytes);
void arr_coc_copies_destroy(struct arr_coc_copies *copies);

// Copies `up_bytes` up and the results down `times` times on each of `count` devices at once, and
// waits for all.
bool arr_coc_copies_run(struct bench *bench, const struct arr_coc_copies *copies, uint32_t count,
                        size_t up_bytes, uint64_t times);

#endif
