// The front end's buffer.
#ifndef WEIR_CORE_OBJECT_BUFFER_H
#define WEIR_CORE_OBJECT_BUFFER_H

#include <stdatomic.h>

#include "base/cold.h"
#include "core/object/object.h"

struct weir_buffer {
    struct weir__member member;
    size_t size;
    weir_placement placement;
    char *pointer;             // HOST: its memory
    struct weir__block *block; // where it came out of a pool; its size is 0 once freed
    // The handle of the user's, and each tensor that was exported.
    atomic_uint holders;
    atomic_bool abandoned; // the user's handle is destroyed
    // Called with `gone_user` when the memory is not used any more. NULL: nothing to call.
    void (*gone)(void *user);
    void *gone_user;
};

// Makes a buffer of a checked size. The library's own, `internal`, does not keep its device
// from closing.
weir_status weir__buffer_make(weir_device *device, const char *label,
                              const struct weir_buffer_setup *setup, bool internal,
                              weir_buffer **out_buffer);

// Refuses a size that is 0, or beyond the device's limit.
weir_status weir__buffer_check_size(weir_device *device, const char *label, size_t size);

// One more holder, and one less; the last one destroys the buffer.
void weir__buffer_hold(weir_buffer *buffer);
void weir__buffer_let_go(weir_buffer *buffer);

// Whether the member is a buffer that its user has destroyed and a tensor holds.
bool weir__buffer_is_only_shared(const struct weir__member *member);

// Frees a buffer that no work uses.
void weir__buffer_finalize(weir_buffer *buffer);

// Whether [offset, offset + size) lies in the buffer; written so that nothing wraps.
static inline bool weir__buffer_holds(const weir_buffer *buffer, size_t offset, size_t size)
{
    return offset <= buffer->size && size <= buffer->size - offset;
}

// Refuses a range outside the buffer with both of them in the message. `role`
// names the argument ("dst").
WEIR_COLD weir_status weir__buffer_refuse_range(const weir_buffer *buffer, const char *role,
                                                size_t offset, size_t size, const char *file,
                                                int line);

// Frees the pinned memory that uploads and downloads go through.
void weir__staging_destroy(weir_device *device);

#endif
