// Shared by the files of the ARR-COC pipeline.
#ifndef WEIR_PIPELINES_ARR_COC_PARTS_H
#define WEIR_PIPELINES_ARR_COC_PARTS_H

#include "patterns/fail.h"
#include "pipelines/arr_coc/arr_coc.h"

// The kernels, in the order of the table of names.
enum arr_coc_kernel {
    ARR_COC_TEXTURE_POSITION,
    ARR_COC_POSITION_MEANS,
    ARR_COC_TEXTURE_IMAGE,
    ARR_COC_PATCH_SCORES,
    ARR_COC_RELEVANCE,
    ARR_COC_ALLOCATE_TOKENS,
    ARR_COC_COMPRESS_TOKENS,
    ARR_COC_KERNEL_COUNT
};

// One result inside the buffer that holds all results of a frame.
struct arr_coc_part {
    size_t offset;
    size_t size;
};

// All results of a frame are in one buffer, so that one copy downloads them.
struct arr_coc_layout {
    struct arr_coc_part counts; // 2 int32: patches, tokens
    struct arr_coc_part balance;
    struct arr_coc_part relevance;
    struct arr_coc_part scores;
    struct arr_coc_part patches;
    struct arr_coc_part tokens;
    size_t total;
    size_t plane;         // floats between two planes of the texture
    size_t texture_size;  // bytes
    uint32_t patch_limit; // the largest number of patches that the budget can
                          // buy
};

struct arr_coc_slot {
    weir_buffer *rgb_host;
    weir_buffer *rgb; // the same buffer where kernels can read host memory
    weir_buffer *texture;
    weir_buffer *results;
    weir_buffer *results_host; // the same buffer where kernels can write host memory
    uint32_t width;            // of the frame in the slot
    uint32_t height;
};

struct weir_arr_coc {
    weir_device *device;
    struct weir_arr_coc_sizes sizes;
    struct arr_coc_layout layout;
    size_t rgb_size; // bytes of the largest image
    bool direct;     // device and host share memory: nothing needs copying
    weir_program *program;
    weir_kernel *kernels[ARR_COC_KERNEL_COUNT];
    weir_buffer *weights;
    weir_buffer *position;
    weir_queue *setup; // until the pipeline is ready
    weir_pipeline *pipeline;
    struct arr_coc_slot *last; // the slot that was delivered last
    void (*deliver)(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result);
    void *user;
};

// The stages, and the work that is done once: see stages.c.
weir_status arr_coc_submit_upload(void *user, void *slot, void *frame, weir_queue *queue);
weir_status arr_coc_submit_texture(void *user, void *slot, void *frame, weir_queue *queue);
weir_status arr_coc_submit_relevance(void *user, void *slot, void *frame, weir_queue *queue);
weir_status arr_coc_submit_allocation(void *user, void *slot, void *frame, weir_queue *queue);
weir_status arr_coc_submit_download(void *user, void *slot, void *frame, weir_queue *queue);

// Writes the position channels of a slot's texture; with `first` also the data
// that all slots share.
weir_status arr_coc_submit_position(const struct weir_arr_coc *arr_coc,
                                    const struct arr_coc_slot *slot, bool first);

// Creation, which stages.c shares for compilation. arr_coc_begin() makes what all slots share, with the weights
// and the data of the position not written yet; weir_arr_coc_destroy() takes it back. A slot's
// texture is not written, and its results are zero where they are not the host's buffer.
extern const char *const arr_coc_kernel_names[ARR_COC_KERNEL_COUNT];
weir_status arr_coc_begin(const struct weir_arr_coc_params *params,
                          struct weir_arr_coc **out_arr_coc);
weir_status arr_coc_create_slot(struct weir_arr_coc *arr_coc, struct arr_coc_slot **out_slot);
void arr_coc_destroy_slot(struct arr_coc_slot *slot);

// Names errors.
#define ARR_COC_LABEL "arr-coc"

#endif
