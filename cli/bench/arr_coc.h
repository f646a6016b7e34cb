// A frame's results, kept and checked.
#ifndef WEIR_CLI_BENCH_ARR_COC_H
#define WEIR_CLI_BENCH_ARR_COC_H

#include <pthread.h>

#include "cli/bench/bench.h"
#include "cli/runtime/open.h"
#include "patterns/pipeline_group.h"
#include "pipelines/arr_coc/arr_coc.h"

// A copy of one frame's results.
struct arr_coc_results {
    struct weir_arr_coc_output output; // its arrays lie in `memory`
    void *memory;
};

void arr_coc_results_finish(struct arr_coc_results *results);

// Keeps a frame's results in `first`, if that is empty, after a check that they can be those of an image: all values
// are numbers, and patches, sides and order are exactly those that follow from the relevance. Else compares them with
// `first`, bit by bit. False after a sentence.
bool arr_coc_results_judge(struct bench *bench, struct arr_coc_results *first,
                           const struct weir_arr_coc_output *output,
                           const struct weir_arr_coc_sizes *sizes, const char *name);

// The weights of a file, NULL: those that come with the command, and a query. False after a sentence.
bool arr_coc_load(struct bench *bench, const char *path, weir_arr_coc_weights **out_weights,
                  float **out_query);

// What the files of `weir bench arr-coc` share: the benchmark itself.

enum {
    ARR_COC_IMAGES_MOST = 8,
    ARR_COC_PIPELINES_MOST = 16,
    ARR_COC_SLOTS_MOST = 32,
    ARR_COC_DEVICES_MOST = 8,
    ARR_COC_FILLED_MOST = ARR_COC_SLOTS_MOST * ARR_COC_DEVICES_MOST,
    ARR_COC_STAGES = WEIR_ARR_COC_STAGES_MAX,
    ARR_COC_FRAMES_MOST = 1000000
};

// Queues and buffers for bare copies to a device and back. `device` is the caller's.
struct arr_coc_copies {
    weir_device *device;
    weir_queue *up, *down;
    weir_buffer *up_host, *up_device, *down_host, *down_device;
    size_t down_bytes;
};

struct arr_coc_image {
    char name[64];
    unsigned char *rgb;
    uint32_t width, height;
    struct arr_coc_results results; // of the first pipeline
    struct bench_samples copies[2]; // frames a second, of one device, and of all
    struct bench_samples stage_us[ARR_COC_STAGES];
    struct bench_samples rate[ARR_COC_PIPELINES_MOST];
};

// The image whose bytes are in a slot's pinned memory.
struct arr_coc_filled {
    unsigned char *memory;
    const struct arr_coc_image *image;
};

struct arr_coc_line {
    struct arr_coc_bench *owner;
    weir_pipeline_group *group;
    weir_arr_coc *arr_coc[ARR_COC_DEVICES_MOST];
    uint32_t devices;
    uint32_t slots; // of each device
    bool graphs;
    pthread_mutex_t lock; // of `filled`: each pipeline has a thread that loads
    struct arr_coc_filled filled[ARR_COC_FILLED_MOST];
    const struct arr_coc_image *image; // the one that is run now
    bool checking;
    bool right;
    struct weir_arr_coc_frame frame; // stands for all of them
};

struct arr_coc_bench {
    const char *asked_slots, *asked_graphs, *asked_devices, *weights_path;
    uint64_t frames, size;
    struct bench_list slots, graphs;
    size_t line_count;
    struct cli_devices wanted;
    char first[16]; // index of the first device
    uint32_t device_count;
    struct bench *bench;
    weir_arr_coc_weights *weights;
    float *query;
    struct arr_coc_image images[ARR_COC_IMAGES_MOST];
    size_t image_count;
    struct arr_coc_line lines[ARR_COC_PIPELINES_MOST];
    struct arr_coc_line timed; // one slot, with times of the stages
    struct weir_arr_coc_sizes sizes;
    struct arr_coc_copies copies[ARR_COC_DEVICES_MOST];
    size_t result_bytes;
};

// Those of one device, then those of all.
static inline size_t arr_coc_lines_of_one(const struct arr_coc_bench *a)
{
    return a->slots.count * a->graphs.count;
}

// Of the largest image.
uint64_t arr_coc_most_pixels(const struct arr_coc_bench *a);

// Pipelines with so many slots on each of the first devices. After a failure too, the line is destroyed.
bool arr_coc_line_create(struct arr_coc_bench *a, struct arr_coc_line *line, uint32_t devices,
                         uint32_t slots, bool graphs, bool timing);
void arr_coc_line_destroy(struct arr_coc_line *line);

// Runs `count` frames, and waits for them.
bool arr_coc_line_run(struct arr_coc_line *line, const struct arr_coc_image *image, uint64_t count);
// The same, `rounds` frames in every slot of every device.
bool arr_coc_line_run_slots(struct arr_coc_line *line, const struct arr_coc_image *image,
                            uint64_t rounds);

#endif
