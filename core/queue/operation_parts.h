// Checks of operands that the files of operation.h share.
#ifndef WEIR_CORE_QUEUE_OPERATION_PARTS_H
#define WEIR_CORE_QUEUE_OPERATION_PARTS_H

#include "core/object/buffer.h"
#include "core/queue/operation.h"

// The range is of a buffer of the caller's device.
weir_status weir__operation_check_buffer(const struct weir__caller *caller,
                                         const struct weir__role *role, const weir_buffer *buffer,
                                         size_t offset, size_t size);

// One side of a copy, which may be of a peer of the queue's device if `other`, the other side, is not.
weir_status weir__operation_check_side(const struct weir__caller *caller,
                                       const struct weir__role *role, const weir_buffer *buffer,
                                       size_t offset, size_t size, const weir_buffer *other);

// A pattern has 1, 2, 4, 8 or 16 bytes. `what` is the operation.
weir_status weir__operation_check_pattern(const struct weir__caller *caller, const char *what,
                                          size_t pattern_size);

#endif
