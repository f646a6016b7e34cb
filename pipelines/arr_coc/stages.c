// The launch of each kernel, and the work that each stage submits. Grids and arguments are
// those that kernels/arr_coc/README.md lists.
#include "pipelines/arr_coc/parts.h"

#include <string.h>

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

static size_t rgb_size(const struct arr_coc_slot *slot)
{
    return (size_t)3 * slot->width * slot->height;
}

static weir_status texture_position(const weir_arr_coc *a, const struct arr_coc_slot *slot,
                                    weir_queue *queue)
{
    const uint32_t side = a->sizes.side;
    return weir_queue_launch(queue, a->kernels[ARR_COC_TEXTURE_POSITION],
                             weir_dim(ceil_div(side, 64), side, 1), weir_dim(64, 1, 1),
                             weir_inout(slot->texture, 0, a->layout.texture_size), side,
                             (uint32_t)a->layout.plane);
}

static weir_status position_means(const weir_arr_coc *a, const struct arr_coc_slot *slot,
                                  weir_queue *queue)
{
    const uint32_t grid = a->sizes.grid;
    return weir_queue_launch(queue, a->kernels[ARR_COC_POSITION_MEANS], weir_dim(grid * grid, 1, 1),
                             weir_dim(64, 1, 1), in_texture(a, slot),
                             weir_out(a->position, 0, weir_buffer_size(a->position)), a->sizes.side,
                             grid, (uint32_t)a->layout.plane);
}

static weir_status texture_image(const weir_arr_coc *a, const struct arr_coc_slot *slot,
                                 weir_queue *queue)
{
    const uint32_t side = a->sizes.side;
    return weir_queue_launch(queue, a->kernels[ARR_COC_TEXTURE_IMAGE],
                             weir_dim(ceil_div(side, 32), ceil_div(side, 32), 1),
                             weir_dim(32, 8, 1), weir_in(slot->rgb, 0, rgb_size(slot)),
                             weir_inout(slot->texture, 0, a->layout.texture_size), slot->height,
                             slot->width, side, (uint32_t)a->layout.plane);
}

static weir_status patch_scores(const weir_arr_coc *a, const struct arr_coc_slot *slot,
                                weir_queue *queue)
{
    const uint32_t grid = a->sizes.grid;
    return weir_queue_launch(queue, a->kernels[ARR_COC_PATCH_SCORES], weir_dim(grid * grid, 1, 1),
                             weir_dim(32, 4, 1), in_texture(a, slot),
                             weir_in(a->weights, 0, weir_buffer_size(a->weights)),
                             weir_in(a->position, 0, weir_buffer_size(a->position)),
                             out_part(slot->results, &a->layout.scores), a->sizes.side, grid,
                             (uint32_t)a->layout.plane);
}

static weir_status relevance(const weir_arr_coc *a, const struct arr_coc_slot *slot,
                             weir_queue *queue)
{
    const struct arr_coc_layout *layout = &a->layout;
    return weir_queue_launch(queue, a->kernels[ARR_COC_RELEVANCE], weir_dim(1, 1, 1),
                             weir_dim(256, 1, 1),
                             weir_in(a->weights, 0, weir_buffer_size(a->weights)),
                             weir_inout(slot->results, layout->scores.offset, layout->scores.size),
                             out_part(slot->results, &layout->balance),
                             out_part(slot->results, &layout->relevance),
                             a->sizes.grid * a->sizes.grid);
}

static weir_status allocate_tokens(const weir_arr_coc *a, const struct arr_coc_slot *slot,
                                   weir_queue *queue)
{
    const struct arr_coc_layout *layout = &a->layout;
    const uint32_t patches = a->sizes.grid * a->sizes.grid;
    return weir_queue_launch(queue, a->kernels[ARR_COC_ALLOCATE_TOKENS],
                             weir_dim(ceil_div(patches, 64), 1, 1), weir_dim(256, 1, 1),
                             in_part(slot->results, &layout->relevance),
                             out_part(slot->results, &layout->patches),
                             out_part(slot->results, &layout->counts), patches, a->sizes.budget);
}

static weir_status compress_tokens(const weir_arr_coc *a, const struct arr_coc_slot *slot,
                                   weir_queue *queue)
{
    const struct arr_coc_layout *layout = &a->layout;
    return weir_queue_launch(queue, a->kernels[ARR_COC_COMPRESS_TOKENS],
                             weir_dim(layout->patch_limit, WEIR_ARR_COC_CHANNELS, 1),
                             weir_dim(256, 1, 1), in_texture(a, slot),
                             in_part(slot->results, &layout->patches),
                             in_part(slot->results, &layout->counts),
                             out_part(slot->results, &layout->tokens), a->sizes.side, a->sizes.grid,
                             (uint32_t)layout->plane);
}

static weir_status arr_coc_launch(const weir_arr_coc *a, enum arr_coc_kernel kernel,
                                  const struct arr_coc_slot *slot, weir_queue *queue)
{
    static weir_status (*const launches[ARR_COC_KERNEL_COUNT])(const weir_arr_coc *,
                                                               const struct arr_coc_slot *,
                                                               weir_queue *) = {
        [ARR_COC_TEXTURE_POSITION] = texture_position,
        [ARR_COC_POSITION_MEANS] = position_means,
        [ARR_COC_TEXTURE_IMAGE] = texture_image,
        [ARR_COC_PATCH_SCORES] = patch_scores,
        [ARR_COC_RELEVANCE] = relevance,
        [ARR_COC_ALLOCATE_TOKENS] = allocate_tokens,
        [ARR_COC_COMPRESS_TOKENS] = compress_tokens,
    };
    return launches[kernel](a, slot, queue);
}

weir_status arr_coc_submit_position(const weir_arr_coc *a, const struct arr_coc_slot *slot,
                                    bool first)
{
    TRY(texture_position(a, slot, a->setup));
    return first ? position_means(a, slot, a->setup) : WEIR_OK;
}

weir_status arr_coc_submit_upload(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const struct arr_coc_slot *slot = slot_pointer;
    (void)user;
    (void)frame;
    return weir_queue_copy(queue, slot->rgb, 0, slot->rgb_host, 0, rgb_size(slot));
}

weir_status arr_coc_submit_texture(void *user, void *slot, void *frame, weir_queue *queue)
{
    (void)frame;
    return texture_image(user, slot, queue);
}

weir_status arr_coc_submit_relevance(void *user, void *slot, void *frame, weir_queue *queue)
{
    (void)frame;
    TRY(patch_scores(user, slot, queue));
    return relevance(user, slot, queue);
}

weir_status arr_coc_submit_allocation(void *user, void *slot, void *frame, weir_queue *queue)
{
    (void)frame;
    TRY(allocate_tokens(user, slot, queue));
    return compress_tokens(user, slot, queue);
}

weir_status arr_coc_submit_download(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const weir_arr_coc *a = user;
    const struct arr_coc_slot *slot = slot_pointer;
    (void)frame;
    return weir_queue_copy(queue, slot->results_host, 0, slot->results, 0, a->layout.total);
}

// Launches of single kernels for their compilation. The blank data is all zero, with which every
// kernel can begin: a texture of one color, no relevance, no patch.

_Static_assert(WEIR_ARR_COC_KERNELS == (int)ARR_COC_KERNEL_COUNT, "the header's number");

const char *weir_arr_coc_kernel_name(size_t index)
{
    return index < ARR_COC_KERNEL_COUNT ? arr_coc_kernel_names[index] : NULL;
}

static weir_status find_kernel(const char *name, enum arr_coc_kernel *out_kernel)
{
    for (int i = 0; i < ARR_COC_KERNEL_COUNT; i++)
        if (strcmp(name, arr_coc_kernel_names[i]) == 0) {
            *out_kernel = (enum arr_coc_kernel)i;
            return WEIR_OK;
        }
    return weir__pattern_fail(ARR_COC_LABEL, WEIR_ERROR_NOT_FOUND,
                              "use one of weir_arr_coc_kernel_name()", "ARR-COC has no kernel '%s'",
                              name);
}

static weir_status clear(const weir_arr_coc *a, weir_buffer *buffer)
{
    static const unsigned char zero = 0;
    return weir_queue_fill(a->setup, buffer, 0, weir_buffer_size(buffer), &zero, 1);
}

static weir_status create_blank_slot(weir_arr_coc *a, struct arr_coc_slot **out_slot)
{
    TRY(arr_coc_create_slot(a, out_slot));
    struct arr_coc_slot *slot = *out_slot;
    slot->width = 1;
    slot->height = 1;
    TRY(clear(a, a->weights));
    TRY(clear(a, a->position));
    TRY(clear(a, slot->rgb));
    TRY(clear(a, slot->texture));
    return clear(a, slot->results);
}

static weir_status compile(weir_arr_coc *a, struct arr_coc_slot **slot,
                           const char *(*next)(void *user), void *user)
{
    enum arr_coc_kernel kernel = ARR_COC_TEXTURE_POSITION;
    const char *name;
    TRY(create_blank_slot(a, slot));
    while ((name = next(user))) {
        TRY(find_kernel(name, &kernel));
        TRY(arr_coc_launch(a, kernel, *slot, a->setup));
        TRY(weir_queue_sync(a->setup, WEIR_FOREVER));
    }
    return WEIR_OK;
}

weir_status weir_arr_coc_compile(const struct weir_arr_coc_params *params,
                                 const char *(*next)(void *user), void *user)
{
    struct weir_arr_coc_params known = {.struct_size = sizeof known};
    struct arr_coc_slot *slot = NULL;
    weir_arr_coc *a;

    weir_status status = weir__pattern_params("weir_arr_coc_compile", "weir_arr_coc_params", params,
                                              &known, sizeof known);
    if (status < 0)
        return status;
    if (!known.device)
        return weir__pattern_refuse(ARR_COC_LABEL, NULL, "a device is needed");
    known.max_pixels = 1;
    if ((status = arr_coc_begin(&known, &a)) < 0)
        return status;
    status = compile(a, &slot, next, user);
    const struct weir_error error = *weir_last_error();
    if (slot)
        arr_coc_destroy_slot(slot);
    weir_arr_coc_destroy(&a);
    return status < 0 ? weir_error_set(&error) : status;
}
