// The ARR-COC pipeline: chooses where in an image to spend tokens, given a query. Three
// stages on three queues, several frames in flight:
//
//     texture -> relevance -> allocation
//
// The arithmetic is that of docs/arr-coc.md. Everything that a frame needs is created
// with the pipeline; frames allocate nothing.
#ifndef WEIR_PIPELINES_ARR_COC_H
#define WEIR_PIPELINES_ARR_COC_H

#include <weir/weir.h>

#include "patterns/pipeline.h"
#include "pipelines/arr_coc/weights.h"

typedef struct weir_arr_coc weir_arr_coc;

#define WEIR_ARR_COC_CHANNELS 13

// Stages: upload, texture, relevance, allocation and download; if device and host share
// one memory there is nothing to copy, and the first and the last are absent.
#define WEIR_ARR_COC_STAGES_MAX 5

// Sizes, in the ranges of the section's keys. Closed.
struct weir_arr_coc_sizes {
    uint32_t side;   // S, working size in pixels: 32 … 4096, a multiple of `grid`
    uint32_t grid;   // G, patches per side: 1 … 256
    uint32_t budget; // B, tokens of an image: 64 … 1048576
};

// One image. Must be valid until it is delivered. Closed.
struct weir_arr_coc_frame {
    // Fills `rgb` (RGB8, rows without padding, `capacity` bytes) and stores the image's
    // size; called once, on a thread of the pipeline, with prepare_threads for several frames at
    // once. A return other than WEIR_OK fails
    // the frame, with the thread's error as detail.
    weir_status (*load)(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height);
    void *user;
};

// The results of one image, in pinned memory, valid during the call of `deliver`.
// Closed.
struct weir_arr_coc_output {
    uint32_t width;
    uint32_t height;
    uint32_t patch_count;
    uint32_t token_count;
    const float *tokens;    // [token_count, 13]: patches in the order taken, cells row-major
    const int32_t *patches; // [patch_count, 3]: index, side, first token
    const float *relevance; // [G, G]
    const float *scores;    // [3, G, G]: propositional, perspectival, participatory
    const float *balance;   // [3]: their weights
};

struct weir_arr_coc_params {
    struct weir_arr_coc_sizes sizes;
    const weir_arr_coc_weights *weights; // needed until the call returns
    const float *query;                  // [D] of the weights, finite
    // The largest image in pixels, which sizes the slots; > 0. No side may exceed
    // 2^31 / S.
    uint64_t max_pixels;
    // Called for every accepted frame, in order. `output` is NULL unless the frame
    // succeeded.
    void (*deliver)(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result);
    void *user;
    // Of these the device, the slots, the policy, the backlog, timing, graphs, the group, and the threads that call
    // `load`; the rest is set here.
    struct weir_pipeline_params pipeline;
};

// Creates the pipeline, uploads weights and query and computes the data that is the same
// for all images. Waits for that work.
//
// Errors: WEIR_ERROR_INVALID for a side and a grid that do not fit; WEIR_ERROR_OUT_OF_MEMORY;
// WEIR_ERROR_BUILD.
weir_status weir_arr_coc_create(const struct weir_arr_coc_params *params,
                                weir_arr_coc **out_arr_coc);

// Cancels the frames that have not started, waits for the rest and frees everything. Does nothing
// in a callback of the pipeline.
void weir_arr_coc_destroy(weir_arr_coc **arr_coc);

// The pipeline underneath, for submitting frames (struct weir_arr_coc_frame *),
// draining, cancelling and statistics.
//
// Ownership: that of `arr_coc`.
weir_pipeline *weir_arr_coc_pipeline(const weir_arr_coc *arr_coc);

// Bytes of a frame's results, which are downloaded in one copy if the device has its own
// memory.
size_t weir_arr_coc_result_bytes(const weir_arr_coc *arr_coc);

// Copies the texture of the frame that was delivered last, [13, S, S], to `out_texture`.
// For tests and for inspection; only while no frame is in flight.
//
// Errors: WEIR_ERROR_INVALID if there is no such frame or it failed.
weir_status weir_arr_coc_download_texture(weir_arr_coc *arr_coc, float *out_texture);

// The section [arr_coc] of a configuration: `side`, `grid`, `budget`, `max_pixels`.
const struct weir_section *weir_arr_coc_section(void);

// Sets sizes, max_pixels, and from [pipeline] slots, policy, backlog, timing and graphs.
//
// Errors: WEIR_ERROR_NOT_FOUND if weir_open() was not given both sections.
weir_status weir_arr_coc_params_from_settings(const weir_runtime *runtime,
                                              struct weir_arr_coc_params *params);

// Fills `query` with normally distributed numbers that depend on `seed` only, for use
// without a real query.
void weir_arr_coc_seeded_query(uint64_t seed, float *query, size_t query_size);

#endif
