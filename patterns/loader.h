// A loader: an iterator over batches that a source of the user's makes, which works
// ahead. While the consumer computes on one batch, the next ones are being read into
// pinned memory and copied to the device.
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
// Order. Batches, errors of the source and the end come out in the order in which the
// source gave them, each exactly once. An error takes the place of one batch, and the
// source is asked for the next one all the same.
//
// Slots. Each is room for one batch on the device, and for one in pinned memory. A batch
// has its slot until it is released and the work that it was released behind has
// finished; only then is another one copied there. That one may be read into
// pinned memory meanwhile. Batches may be held, and released, in any order.
#ifndef WEIR_PATTERNS_LOADER_H
#define WEIR_PATTERNS_LOADER_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_loader weir_loader;

#define WEIR_LOADER_SLOTS_MAX 256

// Writes batch `index` (0, 1, 2 …; what failed is counted) to `memory` and stores its
// size in `*out_size`, up to `capacity`; 0: there are no more. `memory` holds old
// batches' bytes. Runs on one thread of the loader's, with all signals blocked, and
// may take its time. Anything but WEIR_OK is an error, with the thread's last error
// as its detail if the source left one. Not called again after the end.
typedef weir_status (*weir_loader_source)(void *user, uint64_t index, void *memory, size_t capacity,
                                          size_t *out_size);

struct weir_loader_params {
    size_t struct_size;
    weir_device *device;
    const char *label;  // copied; names the queue and errors
    size_t batch_bytes; // the largest batch, > 0
    // Batches that are held by consumers or loaded ahead, 2 … WEIR_LOADER_SLOTS_MAX;
    // 0: 3, one in use, one ready and one on its way.
    uint32_t slot_count;
    weir_loader_source source;
    void *user;
    int32_t priority; // of the queue that copies; 0: normal
};

// Creates the loader, whose thread begins at once to read ahead, and stores it in
// `*out_loader`, or stores NULL there and returns an error. Nothing is allocated later.
//
// Ownership: the caller's, until weir_loader_destroy(). Outlived by the device.
// Errors: WEIR_ERROR_INVALID, naming what is wrong; WEIR_ERROR_SYSTEM without a
// thread; those of weir_buffer_create() and weir_queue_create().
WEIR_API weir_status weir_loader_create(const struct weir_loader_params *params,
                                        weir_loader **out_loader);

// Ends the thread, frees the slots and sets `*loader` to NULL, also in the middle of the
// iteration and with batches held; these may not be used in new work any more. Waits
// for a call of the source that is under way, and for work that a batch was released
// behind. NULL and a pointer to NULL are accepted. No other call may be under way.
//
// Errors: WEIR_ERROR_INVALID from the source; nothing is done then.
WEIR_API weir_status weir_loader_destroy(weir_loader **loader);

// A batch: bytes 0 to `size` of `buffer`.
struct weir_batch {
    weir_buffer *buffer; // DEVICE, the loader's; NULL: the end, there is no batch
    size_t size;
    uint64_t index;
    struct weir_event ready; // when the bytes are there
    uint32_t slot;           // the loader's
};

// Waits on the host until the next batch is on its way, makes `queue` wait on the
// device until it is there, and stores it in `*out_batch`. At the end it returns
// WEIR_OK with a zeroed batch, again and again. `queue` may be NULL: who uses the
// batch waits for `ready` then.
//
// Threads: safe; each batch goes to one of them.
// Errors: with a zeroed batch. The source's error, or a failed copy, in its turn; the
// batches behind it follow. The failure of `queue`, and the batch stays the next one.
// WEIR_ERROR_INVALID when every slot is held, where only a release could help, and
// from the source.
WEIR_API weir_status weir_loader_next(weir_loader *loader, weir_queue *queue,
                                      struct weir_batch *out_batch);

// Gives a batch back, behind everything submitted to `queue` so far (NULL: no work
// uses it any more), and zeroes it. Never waits.
//
// Threads: safe.
// Errors: the failure of `queue`, and the batch stays held: recover the queue and
// release it again, or release it with NULL. WEIR_ERROR_INVALID for a batch that is
// not held, or of another loader.
WEIR_API weir_status weir_loader_release(weir_loader *loader, struct weir_batch *batch,
                                         weir_queue *queue);

// The same behind an event, for a batch that several queues use and one joins. If the
// event fails, that is its queue's affair; the slot is free then.
WEIR_API weir_status weir_loader_release_behind(weir_loader *loader, struct weir_batch *batch,
                                                struct weir_event event);

struct weir_loader_statistics {
    uint64_t delivered; // batches
    uint64_t bytes;     // of these
    uint64_t failed;    // errors in place of batches
    // Calls of weir_loader_next() that found nothing on its way, and their time. None
    // but the first: the source keeps up.
    uint64_t waits;
    uint64_t wait_ns;
    uint32_t held_max; // batches held at once
};

// Threads: safe.
WEIR_API void weir_loader_get_statistics(weir_loader *loader,
                                         struct weir_loader_statistics *out_statistics);

#ifdef __cplusplus
}
#endif

#endif
