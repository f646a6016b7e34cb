// A loader: a prefetching iterator over batches that the user's source makes. While the
// consumer computes on one batch, the next ones are read into pinned memory and copied to the
// device.
//
//     const struct weir_loader_params params = {
//         .struct_size = sizeof params, .device = device, .label = "images",
//         .batch_bytes = 32 * image_bytes, .source = read_images, .user = &files,
//     };
//     weir_loader_create(&params, &loader);
//     while (weir_loader_next(loader, queue, &batch) == WEIR_OK && batch.buffer) {
//         weir_queue_launch(queue, train, grid, block, weir_in(batch.buffer, 0, batch.size));
//         weir_loader_release(loader, &batch, queue);
//     }
//     weir_loader_destroy(&loader);
//
// Order. Batches, errors of the source and the end are delivered in the order in which the
// source returned them, each exactly once. An error takes the place of one batch; the source
// is still called for the next one.
//
// Slots. Each slot has room for one batch on the device and for one in pinned memory. A batch
// keeps its slot until it was released and the work before the release has finished; only
// then is another batch copied there. That batch may already be read into pinned memory
// meanwhile. Batches may be held, and released, in any order.
#ifndef WEIR_PATTERNS_LOADER_H
#define WEIR_PATTERNS_LOADER_H

#include <weir/weir.h>

typedef struct weir_loader weir_loader;

#define WEIR_LOADER_SLOTS_MAX 256

// Writes batch `index` (0, 1, 2 …; failed batches count too) to `memory` and stores its size
// in `*out_size`, up to `capacity`; 0 means the end. `memory` still holds the bytes of an old
// batch. Called on the loader's one thread, with all signals blocked; it may block. A return
// other than WEIR_OK is an error, with the thread's last error as its detail if the source
// left one. Not called again after the end.
typedef weir_status (*weir_loader_source)(void *user, uint64_t index, void *memory, size_t capacity,
                                          size_t *out_size);

struct weir_loader_params {
    size_t struct_size;
    weir_device *device;
    const char *label;  // copied; names the queue and errors
    size_t batch_bytes; // the largest batch, > 0
    // Batches that are held by consumers or loaded ahead, 2 … WEIR_LOADER_SLOTS_MAX; 0: 3,
    // one in use, one ready and one being copied.
    uint32_t slot_count;
    weir_loader_source source;
    void *user;
    int32_t priority; // of the queue that copies; 0: normal
};

// Creates the loader, whose thread starts reading at once. Nothing is allocated later.
//
// Errors: WEIR_ERROR_INVALID, naming what is wrong; WEIR_ERROR_SYSTEM if the thread cannot be
// created; those of weir_buffer_create() and weir_queue_create().
WEIR_CALL weir_status weir_loader_create_at(const struct weir_loader_params *params,
                                            weir_loader **out_loader, const char *file, int line);
#define weir_loader_create(...) weir_loader_create_at(__VA_ARGS__, __FILE__, __LINE__)

// Ends the thread and frees the slots. Legal in the middle of the iteration and while batches
// are held; new work must not use these batches any more. Waits for a running call of the source,
// and for the work after which batches were released. No other call on the loader may be running.
//
// Errors: WEIR_ERROR_INVALID from the source; nothing is done then.
WEIR_CALL weir_status weir_loader_destroy(weir_loader **loader);

// A batch: bytes 0 to `size` of `buffer`. Closed.
struct weir_batch {
    weir_buffer *buffer; // DEVICE, owned by the loader; NULL: the end, no batch
    size_t size;
    uint64_t index;
    struct weir_event ready; // complete when the bytes are in `buffer`
    uint32_t slot;           // the loader's
};

// Waits on the host until the next batch is being copied, makes `queue` wait on the device
// for the end of the copy, and stores the batch in `*out_batch`. At the end of the iteration
// every call returns WEIR_OK with a zeroed batch. `queue` may be NULL; then the queues that
// use the batch must wait for `ready`.
//
// Threads: safe; each batch goes to one of the calling threads.
// Errors: with a zeroed batch. The error of the source, or of a failed copy, in the place of
// its batch; the next call returns the next batch. The failure of `queue`; the batch is then
// returned by the next call. WEIR_ERROR_INVALID if every slot is held, so that only a release
// could help, and if called from the source.
WEIR_CALL weir_status weir_loader_next(weir_loader *loader, weir_queue *queue,
                                       struct weir_batch *out_batch);

// Releases a batch after everything submitted to `queue` so far (NULL: no work uses the batch
// any more), and zeroes it. Never waits.
//
// Threads: safe.
// Errors: the failure of `queue`; the batch stays held: recover the queue and release the
// batch again, or release it with NULL. WEIR_ERROR_INVALID for a batch that is not held, or
// of another loader.
WEIR_CALL weir_status weir_loader_release(weir_loader *loader, struct weir_batch *batch,
                                          weir_queue *queue);

// The same, after an event: for a batch that several queues use, one of which waits for the
// others. If the event fails, its queue reports that; the slot becomes free all the same.
WEIR_CALL weir_status weir_loader_release_after(weir_loader *loader, struct weir_batch *batch,
                                                struct weir_event event);

struct weir_loader_statistics {
    uint64_t delivered; // batches
    uint64_t bytes;     // of these batches
    uint64_t failed;    // errors in place of batches
    // Calls of weir_loader_next() that had to wait for the source, and their time. If only
    // the first call waited, the source keeps up.
    uint64_t waits;
    uint64_t wait_ns;
    uint32_t held_max; // batches held at once
};

// Zeros for NULL.
//
// Threads: safe.
WEIR_API void weir_loader_get_statistics_sized(weir_loader *loader,
                                               struct weir_loader_statistics *out_statistics,
                                               size_t size);
#define weir_loader_get_statistics(loader, out_statistics) \
    weir_loader_get_statistics_sized(loader, out_statistics, sizeof(struct weir_loader_statistics))

#endif
