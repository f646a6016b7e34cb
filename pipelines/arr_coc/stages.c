// The work that each stage submits. Grids and arguments are those that
// kernels/arr_coc/README.md lists.
#include "pipelines/arr_coc/parts.h"

// Every stage submits like this: the first refused operation ends it.
#define TRY(call)                  \
    do {                           \
        weir_status try_ = (call); \
        if (try_ < 0)              \
            return try_;           \
    } while (0)

static uint32_t ceil_div(uint32_t value, uint32_t by)
{
    return (value + by - 1) / by;
}

static struct weir_argument in_part(weir_buffer *results, const struct arr_coc_part *part)
{
    return weir_in(results, part->offset, part->size);
}

static struct weir_argument out_part(weir_buffer *results, const struct arr_coc_part *part)
{
    return weir_out(results, part->offset, part->size);
}

static struct weir_argument in_texture(const weir_arr_coc *a, const struct arr_coc_slot *slot)
{
    return weir_in(slot->texture, 0, a->layout.texture_size);
}

weir_status arr_coc_submit_position(weir_arr_coc *a, const struct arr_coc_slot *slot, bool first)
{
    const uint32_t side = a->sizes.side;
    const uint32_t grid = a->sizes.grid;
    const uint32_t plane = (uint32_t)a->layout.plane;
    const uint32_t patches = grid * grid;

    TRY(weir_queue_launch(a->setup, a->kernels[ARR_COC_TEXTURE_POSITION],
                          weir_dim(ceil_div(side, 64), side, 1), weir_dim(64, 1, 1),
                          weir_inout(slot->texture, 0, a->layout.texture_size), side, plane));
    if (!first)
        return WEIR_OK;
    return weir_queue_launch(a->setup, a->kernels[ARR_COC_POSITION_MEANS], weir_dim(patches, 1, 1),
                             weir_dim(64, 1, 1), in_texture(a, slot),
                             weir_out(a->position, 0, weir_buffer_size(a->position)), side, grid,
                             plane);
}

static size_t rgb_size(const struct arr_coc_slot *slot)
{
    return (size_t)3 * slot->width * slot->height;
}

weir_status arr_coc_submit_upload(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const struct arr_coc_slot *slot = slot_pointer;
    (void)user;
    (void)frame;
    return weir_queue_copy(queue, slot->rgb, 0, slot->rgb_host, 0, rgb_size(slot));
}

weir_status arr_coc_submit_texture(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    weir_arr_coc *a = user;
    struct arr_coc_slot *slot = slot_pointer;
    const uint32_t side = a->sizes.side;
    (void)frame;

    return weir_queue_launch(queue, a->kernels[ARR_COC_TEXTURE_IMAGE],
                             weir_dim(ceil_div(side, 32), ceil_div(side, 32), 1),
                             weir_dim(32, 8, 1), weir_in(slot->rgb, 0, rgb_size(slot)),
                             weir_inout(slot->texture, 0, a->layout.texture_size), slot->height,
                             slot->width, side, (uint32_t)a->layout.plane);
}

weir_status arr_coc_submit_relevance(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    weir_arr_coc *a = user;
    struct arr_coc_slot *slot = slot_pointer;
    const struct arr_coc_layout *layout = &a->layout;
    const uint32_t grid = a->sizes.grid;
    const uint32_t patches = grid * grid;
    const size_t weights_size = weir_buffer_size(a->weights);
    (void)frame;

    TRY(weir_queue_launch(queue, a->kernels[ARR_COC_PATCH_SCORES], weir_dim(patches, 1, 1),
                          weir_dim(32, 4, 1), in_texture(a, slot),
                          weir_in(a->weights, 0, weights_size),
                          weir_in(a->position, 0, weir_buffer_size(a->position)),
                          out_part(slot->results, &layout->scores), a->sizes.side, grid,
                          (uint32_t)layout->plane));
    return weir_queue_launch(queue, a->kernels[ARR_COC_RELEVANCE], weir_dim(1, 1, 1),
                             weir_dim(256, 1, 1), weir_in(a->weights, 0, weights_size),
                             weir_inout(slot->results, layout->scores.offset, layout->scores.size),
                             out_part(slot->results, &layout->balance),
                             out_part(slot->results, &layout->relevance), patches);
}

weir_status arr_coc_submit_allocation(void *user, void *slot_pointer, void *frame,
                                      weir_queue *queue)
{
    weir_arr_coc *a = user;
    struct arr_coc_slot *slot = slot_pointer;
    const struct arr_coc_layout *layout = &a->layout;
    const uint32_t grid = a->sizes.grid;
    const uint32_t patches = grid * grid;
    (void)frame;

    TRY(weir_queue_launch(queue, a->kernels[ARR_COC_ALLOCATE_TOKENS],
                          weir_dim(ceil_div(patches, 64), 1, 1), weir_dim(256, 1, 1),
                          in_part(slot->results, &layout->relevance),
                          out_part(slot->results, &layout->patches),
                          out_part(slot->results, &layout->counts), patches, a->sizes.budget));
    return weir_queue_launch(queue, a->kernels[ARR_COC_COMPRESS_TOKENS],
                             weir_dim(layout->patch_limit, WEIR_ARR_COC_CHANNELS, 1),
                             weir_dim(256, 1, 1), in_texture(a, slot),
                             in_part(slot->results, &layout->patches),
                             in_part(slot->results, &layout->counts),
                             out_part(slot->results, &layout->tokens), a->sizes.side, grid,
                             (uint32_t)layout->plane);
}

weir_status arr_coc_submit_download(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const weir_arr_coc *a = user;
    const struct arr_coc_slot *slot = slot_pointer;
    (void)frame;
    return weir_queue_copy(queue, slot->results_host, 0, slot->results, 0, a->layout.total);
}
