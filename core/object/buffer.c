// Getters of buffers.
#include "core/object/buffer.h"

#include <weir/buffer.h>

#include "core/support/debug.h"
#include "core/support/error.h"

size_t weir_buffer_size(const weir_buffer *buffer)
{
    return WEIR_IS_ALIVE(buffer) ? buffer->size : 0;
}

weir_placement weir_buffer_placement(const weir_buffer *buffer)
{
    return WEIR_IS_ALIVE(buffer) ? buffer->placement : WEIR_PLACE_DEVICE;
}

weir_status weir__buffer_refuse_range(const weir_buffer *buffer, const char *role, size_t offset,
                                      size_t size, const char *file, int line)
{
    if (buffer->lender && buffer->size == 0)
        return buffer->lender->refuse_freed(buffer, role, file, line);
    if (atomic_load(&buffer->abandoned))
        return weir__fail_at(file, line, buffer->member.object.label, WEIR_ERROR_INVALID,
                             "destroy a buffer after the last call that uses it",
                             "%s: buffer '%s' has been destroyed; only the work that was submitted "
                             "before still uses its memory",
                             role, weir__label_shown(buffer->member.object.label));
    return weir__fail_at(file, line, buffer->member.object.label, WEIR_ERROR_INVALID, NULL,
                         "%s: %zu bytes at offset %zu do not lie in a buffer of %zu bytes", role,
                         size, offset, buffer->size);
}
