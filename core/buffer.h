// The front end's buffer.
#ifndef WEIR_CORE_BUFFER_H
#define WEIR_CORE_BUFFER_H

#include "core/object.h"

struct weir_buffer {
    struct weir__member member;
    size_t size;
    weir_placement placement;
    char *pointer; // HOST: its memory
};

// Frees a buffer that no work uses.
void weir__buffer_finalize(weir_buffer *buffer);

// Whether [offset, offset + size) lies in the buffer; written so that nothing wraps.
static inline bool weir__buffer_holds(const weir_buffer *buffer, size_t offset, size_t size)
{
    return offset <= buffer->size && size <= buffer->size - offset;
}

// Refuses a range outside the buffer with both of them in the message. `role`
// names the argument ("dst").
weir_status weir__buffer_refuse_range(const weir_buffer *buffer, const char *role, size_t offset,
                                      size_t size, const char *file, int line);

// Frees the pinned memory that uploads and downloads go through.
void weir__staging_destroy(weir_device *device);

#endif
