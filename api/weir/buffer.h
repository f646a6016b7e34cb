// Buffers: memory on the device, pinned on the host, or managed by the driver for
// both. Only buffers can be copied asynchronously, so no program can write an
// "async" copy of pageable memory that blocks without saying so. weir_upload() and
// weir_download() take any pointer and are documented to block.
//
// Every use of a buffer is (buffer, offset, size); there is no device pointer
// arithmetic outside kernels. A range is valid if offset <= size of the buffer and
// size <= size of the buffer - offset.
#ifndef WEIR_BUFFER_H
#define WEIR_BUFFER_H

#include <weir/common.h>
#include <weir/status.h>

typedef enum weir_placement {
    WEIR_PLACE_DEVICE = 0, // the device's own memory
    WEIR_PLACE_HOST = 1,   // pinned host memory
    // Memory with one address for the host and the device, whose pages the driver moves to where
    // they are used, or that both share. Only where limits.managed_memory is not 0.
    WEIR_PLACE_MANAGED = 2,
} weir_placement;

struct weir_buffer_params {
    size_t struct_size;
    const char *label; // copied; shown in errors
    size_t size;       // bytes, > 0
    weir_placement placement;
};

// Creates a buffer of `params->size` bytes, contents undefined. May wait for the device if the
// placement is MANAGED.
//
// Errors: WEIR_ERROR_INVALID if a limit is broken; WEIR_ERROR_UNSUPPORTED for MANAGED without
// limits.managed_memory; WEIR_ERROR_OUT_OF_MEMORY.
WEIR_CALL weir_status weir_buffer_create_at(weir_device *device,
                                            const struct weir_buffer_params *params,
                                            weir_buffer **out_buffer, const char *file, int line);
#define weir_buffer_create(...) weir_buffer_create_at(__VA_ARGS__, __FILE__, __LINE__)

struct weir_wrap_params {
    size_t struct_size;
    const char *label;
    void *pointer; // the caller's memory
    size_t size;   // bytes, > 0
};

// Registers host memory that the caller already has as a HOST buffer. It may begin at any
// address, but a kernel takes it only if that is aligned for the parameter's type. The memory
// must outlive the buffer and all work that uses it. A driver may keep the memory
// registered until weir_device_trim() or weir_device_close(), or may wait for the
// device when the buffer is freed (NVIDIA's OpenCL does, after the memory has been
// copied). Buffers of weir_buffer_create() have neither drawback.
//
// Ownership: the memory stays the caller's.
// Errors: as weir_buffer_create().
WEIR_CALL weir_status weir_buffer_wrap_at(weir_device *device,
                                          const struct weir_wrap_params *params,
                                          weir_buffer **out_buffer, const char *file, int line);
#define weir_buffer_wrap(...) weir_buffer_wrap_at(__VA_ARGS__, __FILE__, __LINE__)

// Destroys the buffer. Legal while submitted work uses it: the memory is freed after that work has
// finished. Never waits for the device.
WEIR_API void weir_buffer_destroy_at(weir_buffer **buffer, const char *file, int line);
#define weir_buffer_destroy(buffer) weir_buffer_destroy_at(buffer, __FILE__, __LINE__)

// Size in bytes and placement, as given at creation. For a buffer from a pool the
// size is the one that was requested, not that of its block.
WEIR_API size_t weir_buffer_size(const weir_buffer *buffer);
WEIR_API weir_placement weir_buffer_placement(const weir_buffer *buffer);

// Stores the address of the buffer's first byte in the device's memory, for kernels that follow
// addresses: trees and lists, tables of buffers. A kernel gets it as a ulong, or reads it from a
// buffer, and converts it to a pointer to __global memory. It stays the same until the buffer is
// destroyed, or freed to its pool.
//
// Weir does not see what a kernel reaches through addresses. The program
//   - orders the work that uses the same bytes, with queues and events; where a range is among the
//     launch's arguments too, plugins see at least that one;
//   - keeps the buffers until the work has finished: a destroyed buffer, or one freed to its
//     pool, is kept only for work that had been submitted before;
//   - stays inside the buffer, and at multiples of the type's alignment: a fault can lose the device;
//   - uses the address on the buffer's device only.
//
// Errors: WEIR_ERROR_UNSUPPORTED where limits.device_addresses is 0, and for memory of the caller
// whose address the driver does not tell.
WEIR_CALL weir_status weir_buffer_address(weir_buffer *buffer, uint64_t *out_address);

typedef enum weir_access {
    WEIR_ACCESS_READ = 1,
    WEIR_ACCESS_WRITE = 2,
    WEIR_ACCESS_READ_WRITE = 3,
} weir_access;

// Begins host access to `size` bytes at `offset` of a HOST or MANAGED buffer through the
// pointer stored in `*out_pointer`; weir_host_end() with the same range ends it.
// This is the only way to get at such a buffer's memory. The calls neither wait nor
// order anything: sync with the work that wrote the bytes first, and end the access
// before submitting work that needs them. They cost next to nothing; plugins see
// host accesses through them.
//
// The host may access bytes that no submitted work uses while the device uses other bytes of the
// same buffer, and while it runs kernels on other buffers. Devices that cannot have that for
// MANAGED memory have limits.managed_memory of 0.
//
// Ownership: the memory is the buffer's.
// Threads: safe; the program must keep threads from accessing the same bytes at
// once.
// Errors: WEIR_ERROR_INVALID for a DEVICE buffer or a range outside the buffer.
WEIR_CALL weir_status weir_host_begin_at(weir_buffer *buffer, size_t offset, size_t size,
                                         weir_access access, void **out_pointer, const char *file,
                                         int line);
WEIR_CALL weir_status weir_host_end_at(weir_buffer *buffer, size_t offset, size_t size,
                                       weir_access access, const char *file, int line);
#define weir_host_begin(...) weir_host_begin_at(__VA_ARGS__, __FILE__, __LINE__)
#define weir_host_end(...) weir_host_end_at(__VA_ARGS__, __FILE__, __LINE__)

// Copies between any host memory and a buffer, in the order of `queue`, and blocks
// until the copy is done. The bytes are staged through pinned memory of the
// library, piece by piece.
//
// Errors: as weir_queue_copy() and weir_queue_sync().
WEIR_CALL weir_status weir_upload_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                                     const void *src, size_t size, const char *file, int line);
WEIR_CALL weir_status weir_download_at(weir_queue *queue, void *dst, weir_buffer *src,
                                       size_t src_offset, size_t size, const char *file, int line);
#define weir_upload(...) weir_upload_at(__VA_ARGS__, __FILE__, __LINE__)
#define weir_download(...) weir_download_at(__VA_ARGS__, __FILE__, __LINE__)

#endif
