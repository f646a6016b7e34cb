// Creation of buffers.
#ifndef WEIR_CORE_BUFFER_BUFFER_H
#define WEIR_CORE_BUFFER_BUFFER_H

#include "core/object/buffer.h"

extern const struct weir__class weir__buffer_class;

// Creates a buffer of a checked size. An `internal` buffer, of the library itself, does not
// keep its device from closing.
weir_status weir__buffer_make(weir_device *device, const char *label,
                              const struct weir_buffer_setup *setup, bool internal,
                              weir_buffer **out_buffer);

// Refuses a size that is 0, or beyond the device's limit.
weir_status weir__buffer_check_size(weir_device *device, const char *label, size_t size);

// Add and drop a reference; the last one destroys the buffer.
void weir__buffer_hold(weir_buffer *buffer);
void weir__buffer_unhold(weir_buffer *buffer);

// Whether the member is a buffer that its user has destroyed but a tensor still holds.
bool weir__buffer_is_only_shared(const struct weir__member *member);

#endif
