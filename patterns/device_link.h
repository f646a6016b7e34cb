// A link copies from buffers of one device to buffers of another: directly where they are peers, and
// else through pinned memory of the host, which the link has.
//
//     weir_device_link_create(&(struct weir_device_link_params){
//         .struct_size = sizeof(struct weir_device_link_params),
//         .from = encoder, .to = head, .bytes = sizeof features}, &link);
//     weir_device_link_copy(link, queue_of_head, dst, 0, src, 0, sizeof features);
//
// The copy is one more operation of the queue: after what the queue has waited for, and before what is
// submitted to it next. In a pipeline it is the first operation of a stage on the other device, or a
// stage of its own. Through the host it is two copies and, between them, a host call; up to two such
// copies of a link are under way at once, so that one goes down while the one before it goes up.
#ifndef WEIR_PATTERNS_DEVICE_LINK_H
#define WEIR_PATTERNS_DEVICE_LINK_H

#include <weir/weir.h>

typedef struct weir_device_link weir_device_link;

struct weir_device_link_params {
    size_t struct_size;
    const char *label; // copied; names errors and the link's queue
    weir_device *from;
    weir_device *to; // of the same runtime
    size_t bytes;    // of the largest copy
};

// Creates a link. Where the devices are no peers, it has a queue of `from` and four times `bytes` of
// pinned memory; copies allocate nothing.
//
// Ownership: outlived by both devices.
// Errors: WEIR_ERROR_INVALID for a device that is NULL or of another runtime, and for no bytes;
// WEIR_ERROR_OUT_OF_MEMORY.
WEIR_CALL weir_status weir_device_link_create_at(const struct weir_device_link_params *params,
                                                 weir_device_link **out_link, const char *file,
                                                 int line);
#define weir_device_link_create(...) weir_device_link_create_at(__VA_ARGS__, __FILE__, __LINE__)

// Destroys the link after its copies under way, for which it waits.
WEIR_API void weir_device_link_destroy(weir_device_link **link);

// Whether the devices are peers, and copies direct.
WEIR_API bool weir_device_link_is_direct(const weir_device_link *link);

// Submits a copy to `queue`, which belongs to the device `to`, like `dst`; `src` belongs to `from`.
//
// Threads: one at a time.
// Errors: as weir_queue_copy(); WEIR_ERROR_INVALID for a queue of another device, and for more bytes
// than the link was created for. Through the host it must not be captured.
WEIR_CALL weir_status weir_device_link_copy(weir_device_link *link, weir_queue *queue,
                                            weir_buffer *dst, size_t dst_offset, weir_buffer *src,
                                            size_t src_offset, size_t size);

#endif
