// Launches of single kernels for their compilation. The blank data is all zero, with which every
// kernel can begin: a texture of one color, no relevance, no patch.
#include <string.h>

#include "pipelines/arr_coc/parts.h"

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
    return weir__pattern_fail("arr-coc", WEIR_ERROR_NOT_FOUND,
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
    weir_status status = arr_coc_create_slot(a, out_slot);
    if (status < 0)
        return status;
    struct arr_coc_slot *slot = *out_slot;
    slot->width = 1;
    slot->height = 1;
    if ((status = clear(a, a->weights)) < 0 || (status = clear(a, a->position)) < 0 ||
        (status = clear(a, slot->rgb)) < 0 || (status = clear(a, slot->texture)) < 0)
        return status;
    return clear(a, slot->results);
}

static weir_status compile(weir_arr_coc *a, struct arr_coc_slot **slot,
                           const char *(*next)(void *user), void *user)
{
    enum arr_coc_kernel kernel = ARR_COC_TEXTURE_POSITION;
    const char *name;
    weir_status status = create_blank_slot(a, slot);
    while (status == WEIR_OK && (name = next(user))) {
        if ((status = find_kernel(name, &kernel)) < 0 ||
            (status = arr_coc_launch(a, kernel, *slot, a->setup)) < 0)
            return status;
        status = weir_queue_sync(a->setup, WEIR_FOREVER);
    }
    return status;
}

weir_status weir_arr_coc_compile(const struct weir_arr_coc_params *params,
                                 const char *(*next)(void *user), void *user)
{
    struct weir_arr_coc_params known = {.struct_size = sizeof known};
    struct arr_coc_slot *slot = NULL;
    weir_arr_coc *a;

    weir_status status = arr_coc_read_params("weir_arr_coc_compile", params, &known);
    if (status < 0)
        return status;
    if (!known.device)
        return arr_coc_refuse(NULL, "a device is needed");
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
