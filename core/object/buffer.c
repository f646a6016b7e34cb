// Getters of buffers.
#include "core/object/buffer.h"

#include <stdio.h>
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

weir_status weir__buffer_refuse_range(const weir_buffer *buffer, const struct weir__role *role,
                                      size_t offset, size_t size, const char *file, int line)
{
    const char *label = buffer->member.object.label;
    char call[192], place[WEIR__PLACE_SIZE];
    snprintf(call, sizeof call, "%s%s%s", role->call, role->name ? ": " : "",
             role->name ? role->name : "");
    if (buffer->lender && buffer->size == 0)
        return buffer->lender->refuse_freed(buffer, call, file, line);
    if (atomic_load(&buffer->abandoned))
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "destroy a buffer after the last call that uses it",
                             "%s: buffer '%s' has been destroyed; only the work that was submitted "
                             "before still uses its memory",
                             call, weir__label_shown(label));
    weir__member_created(&buffer->member, place);
    return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                         "offset and size count bytes; give less, or create a larger buffer",
                         "%s: %zu bytes at offset %zu do not lie in a buffer of %zu bytes%s", call,
                         size, offset, buffer->size, place);
}
