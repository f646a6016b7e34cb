// Creation of buffers, and transfers between them and the host.
#ifndef WEIR_CORE_BUFFER_BUFFER_H
#define WEIR_CORE_BUFFER_BUFFER_H

#include "core/object/buffer.h"
#include "core/object/device.h"

extern const struct weir__class weir__buffer_class;

// Creates a buffer. An `internal` buffer, of the library itself, does not
// keep its device from closing.
weir_status weir__buffer_make(weir_device *device, const char *label,
                              const struct weir_buffer_setup *setup, bool internal,
                              weir_buffer **out_buffer);

// Refuses a size that is 0, or beyond the device's limit.
weir_status weir__buffer_check_size(weir_device *device, const char *label, size_t size);

// Drops a reference; the last one destroys the buffer.
void weir__buffer_unhold(weir_buffer *buffer);

// The pinned memory of uploads and downloads, in blocks, and the threads that copy to and from it.
// A transfer has its blocks to itself, since its queue may be held and transfers of other queues must
// not wait for that. Blocks that are not in use are kept, up to a limit.

// A device has no more blocks of a size than WEIR__STAGING_BLOCKS_MAX(), except those that transfers
// cannot do without.
enum weir__staging_size {
    WEIR__STAGING_SMALL, // CUDA's driver pins as much with its first pinned memory; more takes it
                         // 0.3 ms a MiB
    WEIR__STAGING_LARGE,
    WEIR__STAGING_SIZES
};
#define WEIR__STAGING_BYTES(size) ((size_t)((size) == WEIR__STAGING_LARGE ? 4 : 1) << 20)
#define WEIR__STAGING_BLOCKS_MAX(size) (((size_t)64 << 20) / WEIR__STAGING_BYTES(size))

// Stores up to `wanted` blocks, and at least `least` of them. More than that are only created while the
// device has fewer than WEIR__STAGING_BLOCKS_MAX(). Returns their number, or 0 with the thread's error.
size_t weir__staging_take(weir_device *device, enum weir__staging_size size, size_t least,
                          size_t wanted, weir_buffer **out_blocks);
void weir__staging_return(weir_device *device, size_t count, weir_buffer **blocks);

// Destroys the blocks that are not in use, and ends the threads. What a later transfer needs is made
// again.
void weir__staging_trim(weir_device *device);

#endif
