// What the files of `weir bench images` share: JPEGs that threads decode into the slots of the ARR-COC
// pipeline, beside the decoder alone, into memory of two kinds, and the pipeline alone.
#ifndef WEIR_CLI_BENCH_IMAGES_H
#define WEIR_CLI_BENCH_IMAGES_H

#include <stdatomic.h>
#include <stdio.h>

#include "cli/bench/arr_coc.h"
#include "io/image.h"

enum {
    IMAGES_MOST = 64,
    IMAGES_THREADS_MOST = 128,
    IMAGES_FRAMES_MOST = 1000000,
    IMAGES_QUERY_SEED = 1
};

// The ways of a run.
enum images_way {
    IMAGES_DECODER,  // threads decode, each into memory of its own, which its caches may hold
    IMAGES_PINNED,   // into as many pinned buffers in turn as the pipeline has slots
    IMAGES_PIPELINE, // frames whose images are in their slots already
    IMAGES_BOTH,
    IMAGES_WAYS
};

struct images_bench;

struct images_image {
    struct images_bench *owner;
    const char *path;
    struct weir_io_image_info info;
    struct weir_arr_coc_frame frame;
    struct arr_coc_results results; // of the first frame
};

// A number of threads, with its pipeline.
struct images_row {
    uint32_t threads;
    uint32_t slots;
    weir_arr_coc *arr_coc;
    struct bench_samples rate[IMAGES_WAYS]; // images a second
    struct bench_samples busy[IMAGES_WAYS]; // processors that the process kept busy
    struct bench_samples cost[IMAGES_WAYS]; // ms of processor time an image
    // Both, over the slower one alone: of the pipeline and the decoder; and the decoder into pinned
    // buffers.
    struct bench_samples of_slower, of_slower_pinned;
};

struct images_bench {
    const char *asked_threads, *weights_path;
    uint64_t frames, size, quality, slots;
    struct bench_list threads;
    struct bench *bench;
    FILE *made; // a JPEG; NULL: none
    char made_path[64];
    weir_arr_coc_weights *weights;
    float *query;
    struct images_image images[IMAGES_MOST];
    size_t image_count;
    struct images_row rows[BENCH_LIST_MAX];
    size_t image_bytes; // the largest image, decoded
    weir_buffer *pinned[WEIR_PIPELINE_SLOTS_MAX];
    struct weir_arr_coc_sizes sizes;
    bool decodes;      // frames are decoded as they are loaded
    bool checking;     // results are compared with those of the first frame
    atomic_bool right; // so far
};

// images_made.c

// Writes a JPEG of `side` x `side` pixels, of soft shapes under noise, at `quality`, to a temporary file
// that ends when it is closed.
//
// Errors: NULL after a sentence.
FILE *images_make(struct bench *bench, uint32_t side, int quality);

// images_decode.c

// Decodes `frames` images in turn on so many threads, each into memory of its own; with `slots` not 0 into
// the first so many pinned buffers, each image into the one that was left first. False after a sentence.
bool images_decode(struct images_bench *images, uint32_t threads, uint32_t slots);

// images_report.c

// Fills the tables and the plot.
void images_report(struct images_bench *images);

#endif
