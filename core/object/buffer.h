// The front end's buffer.
#ifndef WEIR_CORE_OBJECT_BUFFER_H
#define WEIR_CORE_OBJECT_BUFFER_H

#include <stdatomic.h>

#include "core/object/object.h"

struct weir_buffer {
    struct weir__member member;
    size_t size;
    weir_placement placement;
    char *pointer;           // HOST: its memory
    struct weir__view *view; // HOST, in debug mode: core/buffer/buffer.c; or NULL
    struct weir__block
        *block; // of the pool that it is from; NULL: of none. Freed to the pool, it has
                // the size 0 and the place of the free
    // The pool's, called by weir_buffer_destroy(): the buffer leaves the pool. False, with a sentence in the
    // log, if it was freed to the pool already.
    bool (*leave_pool)(weir_buffer *buffer);
    // References: the user's handle, and each exported tensor.
    atomic_uint holders;
    atomic_bool abandoned; // the user's handle is destroyed
    // Called with `gone_user` when the memory is no longer used. NULL: nothing to
    // call.
    void (*gone)(void *user);
    void *gone_user;
};

// Whether [offset, offset + size) is inside the buffer; written so that nothing
// wraps.
static inline bool weir__buffer_holds(const weir_buffer *buffer, size_t offset, size_t size)
{
    return offset <= buffer->size && size <= buffer->size - offset;
}

// An argument of a call, for messages.
struct weir__role {
    const char *call; // "copy", "weir_download"
    const char *name; // "dst"; NULL: the call has one range
};

// The error of a use after the free to the pool.
weir_status weir__buffer_refuse_freed(const weir_buffer *buffer, const char *call, const char *file,
                                      int line);

// Refuses a range outside the buffer, with both of them in the message, and the line that created it.
weir_status weir__buffer_refuse_range(const weir_buffer *buffer, const struct weir__role *role,
                                      size_t offset, size_t size, const char *file, int line);

static inline weir_status weir__buffer_check_range(const weir_buffer *buffer,
                                                   const struct weir__role *role, size_t offset,
                                                   size_t size, const char *file, int line)
{
    return weir__buffer_holds(buffer, offset, size)
               ? WEIR_OK
               : weir__buffer_refuse_range(buffer, role, offset, size, file, line);
}

#endif
