// Buffers. Every placement is host memory here, aligned so that every valid offset of a launch
// argument is aligned too. A real backend allocates DEVICE memory from a pool that never makes the
// device wait, and HOST memory as pinned, mapped memory.
#include "backends/null/null.h"

weir_status null_buffer_create(const struct weir_link *link, weir_device *device,
                               weir_buffer *buffer, const struct weir_buffer_setup *setup,
                               void **out_data, void **out_pointer)
{
    // The bytes follow the structure in one block, after the padding for alignment.
    size_t extra = setup->user_pointer ? 0 : NULL_ALIGNMENT + setup->size;
    struct null_buffer *own = link->host->allocate(sizeof *own + extra);

    if (!own)
        return weir_host_fail(link->host, WEIR_ERROR_OUT_OF_MEMORY, "use smaller buffers, or fewer",
                              "no host memory is left for buffer '%s' of %zu bytes",
                              null_label(weir_buffer_object(buffer)->label), setup->size);

    const uintptr_t last = (uintptr_t)(own + 1) + NULL_ALIGNMENT - 1;
    own->bytes =
        setup->user_pointer ? setup->user_pointer : (unsigned char *)(last - last % NULL_ALIGNMENT);
    *out_data = own;
    *out_pointer = setup->placement == WEIR_PLACE_DEVICE ? NULL : own->bytes;
    return WEIR_OK;
}

void null_buffer_destroy(const struct weir_link *link, weir_buffer *buffer)
{
    link->host->release(null_buffer_of(link, buffer));
}

weir_status null_buffer_address(const struct weir_link *link, weir_buffer *buffer,
                                uint64_t *out_address)
{
    *out_address = (uint64_t)(uintptr_t)null_buffer_of(link, buffer)->bytes;
    return WEIR_OK;
}
