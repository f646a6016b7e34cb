// Buffers: memory on the device, or pinned on the host. Only buffers can be
// copied asynchronously, so a pageable "async" copy that secretly blocks cannot
// be written. weir_upload() and weir_download() take any pointer; they block and
// say so.
//
// Every use of a buffer is (buffer, offset, size); there is no device pointer
// arithmetic. A range is valid if offset <= size of the buffer and
// size <= size of the buffer - offset.
#ifndef WEIR_BUFFER_H
#define WEIR_BUFFER_H

#include <weir/common.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_placement {
    WEIR_PLACE_DEVICE = 0, // the device's own memory
    WEIR_PLACE_HOST = 1,   // pinned host memory
} weir_placement;

struct weir_buffer_params {
    size_t struct_size;
    const char *label; // copied; shown in errors
    size_t size;       // bytes, > 0
    weir_placement placement;
};

// Creates a buffer of `params->size` bytes, contents undefined.
//
// Ownership: the caller's, until weir_buffer_destroy(). Outlived by `device`.
// Threads: safe.
// Errors: WEIR_ERROR_INVALID if a limit is broken; WEIR_ERROR_OUT_OF_MEMORY.
WEIR_API weir_status weir_buffer_create(weir_device *device,
                                        const struct weir_buffer_params *params,
                                        weir_buffer **out_buffer);

struct weir_wrap_params {
    size_t struct_size;
    const char *label;
    void *pointer; // memory of the caller's
    size_t size;   // bytes, > 0
};

// Registers host memory that the caller already has as a HOST buffer. The
// memory must outlive the buffer and all work that uses it. A driver may keep it
// registered until weir_device_trim() or close, or wait for the device when the
// buffer goes (NVIDIA's OpenCL does, once the memory has been copied); buffers of
// weir_buffer_create() have neither drawback.
//
// Ownership: of the buffer the caller's; the memory stays the caller's.
// Errors: as weir_buffer_create().
WEIR_API weir_status weir_buffer_wrap(weir_device *device, const struct weir_wrap_params *params,
                                      weir_buffer **out_buffer);

// Destroys the buffer and sets `*buffer` to NULL. Legal while work that uses
// it is under way: the memory is freed when that work has finished. Never waits
// for the device. NULL and a pointer to NULL are accepted.
WEIR_API void weir_buffer_destroy(weir_buffer **buffer);

// As it was created: bytes, which of a pool's buffer are those that were asked for.
WEIR_API size_t weir_buffer_size(const weir_buffer *buffer);
WEIR_API weir_placement weir_buffer_placement(const weir_buffer *buffer);

typedef enum weir_access {
    WEIR_ACCESS_READ = 1,
    WEIR_ACCESS_WRITE = 2,
    WEIR_ACCESS_READ_WRITE = 3,
} weir_access;

// The host begins to use `size` bytes at `offset` of a HOST buffer through the
// pointer stored in `*out_pointer`; weir_host_end() with the same range ends
// that. This is the only way to a HOST buffer's memory. It neither waits nor
// orders anything: sync with the work that produced the bytes first, and end the
// use before submitting work that needs them. It costs next to nothing, and it
// is what a plugin sees of the host's use.
//
// Ownership: the memory is the buffer's.
// Threads: safe; who uses which bytes is the program's affair.
// Errors: WEIR_ERROR_INVALID for a DEVICE buffer or a range outside the buffer.
WEIR_API weir_status weir_host_begin(weir_buffer *buffer, size_t offset, size_t size,
                                     weir_access access, void **out_pointer);
WEIR_API weir_status weir_host_end(weir_buffer *buffer, size_t offset, size_t size,
                                   weir_access access);

// Copies between any host memory and a buffer, in the order of `queue`, and
// blocks until done: bytes go through pinned memory of the library's in pieces.
//
// Errors: as weir_queue_copy() and weir_queue_sync().
WEIR_API weir_status weir_upload_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                                    const void *src, size_t size, const char *file, int line);
WEIR_API weir_status weir_download_at(weir_queue *queue, void *dst, weir_buffer *src,
                                      size_t src_offset, size_t size, const char *file, int line);
#define weir_upload(queue, dst, dst_offset, src, size) \
    weir_upload_at(queue, dst, dst_offset, src, size, __FILE__, __LINE__)
#define weir_download(queue, dst, src, src_offset, size) \
    weir_download_at(queue, dst, src, src_offset, size, __FILE__, __LINE__)

#ifdef __cplusplus
}
#endif

#endif
