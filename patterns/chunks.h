// Chunks: one large job, cut into pieces whose upload, kernel and download overlap
// those of other pieces. The job is a list of elements. Each element is `in_bytes` of
// pinned memory that are uploaded to a DEVICE buffer, where a kernel computes
// `out_bytes` from them, which are downloaded into pinned memory.
//
//     const struct weir_chunks_params params = {
//         .struct_size = sizeof params, .device = device, .label = "scale",
//         .element_count = n, .in_bytes = sizeof(float), .out_bytes = sizeof(float),
//         .src = {pinned_in, 0}, .in = {device_in, 0},
//         .out = {device_out, 0}, .dst = {pinned_out, 0},
//         .kernel = launch_scale, .user = &job,
//     };
//     weir_chunks_create(&params, &chunks);
//     weir_chunks_run(chunks, NULL, 0, &done);
//     weir_event_sync(done, WEIR_FOREVER);
//
// Chunks. Together they cover every element exactly once, in order. If the library
// chooses their number on a device with copy engines (BY_ENGINE), each is a twentieth
// larger than the one before, up to a limit that follows from the size of the job, and
// at the end they shrink; the other way round if more is uploaded than downloaded
// (docs/chunks.md). Else their sizes differ by at most one unit. The last is cut off
// where the elements end. A unit is the least number of elements that is a multiple of
// `granularity` and makes every chunk start, in `in` and in `out`, at a multiple of
// limits.argument_alignment_bytes.
// A job without elements has no chunks, and its runs only keep their place in the
// order.
//
// Runs. A run submits everything and waits for nothing on the host. The next run may be
// submitted at once: its chunks overlap those of the previous run, and none overwrites
// what that run still needs. The host's own use of `src` and `dst` is not ordered: see
// weir_chunks_run().
//
// Failure. The event of a run reports the first cause of any failure in it. Runs after
// a failure fail with it, or are refused with its cause, until weir_chunks_recover().
// After a failed run the outputs are undefined.
#ifndef WEIR_PATTERNS_CHUNKS_H
#define WEIR_PATTERNS_CHUNKS_H

#include <weir/weir.h>

typedef struct weir_chunks weir_chunks;

#define WEIR_CHUNKS_MAX 4096      // chunks of a job
#define WEIR_CHUNKS_QUEUES_MAX 64 // queues of a job

// In which order the operations are submitted: H_i uploads, K_i computes and D_i
// downloads chunk i.
typedef enum weir_chunks_order {
    // INTERLEAVED, which is slow on no device; DEPTH_FIRST with one queue, and
    // where LAYOUT_AUTO chooses queues for a device without copy engines, so that a
    // chunk's bytes stay in the cache.
    WEIR_CHUNKS_ORDER_AUTO = 0,
    WEIR_CHUNKS_DEPTH_FIRST = 1,   // H_0 K_0 D_0  H_1 K_1 D_1  …
    WEIR_CHUNKS_BREADTH_FIRST = 2, // H_0 H_1 …  K_0 K_1 …  D_0 D_1 …
    WEIR_CHUNKS_INTERLEAVED = 3,   // H_0  K_0 H_1 D_0  K_1 H_2 D_1  …
} weir_chunks_order;

// Which queues the operations are submitted to.
typedef enum weir_chunks_layout {
    // BY_CHUNK if `queue_count` is set, or if the device shares the host's memory and
    // has no copy engines, so that two queues are enough; else BY_ENGINE.
    WEIR_CHUNKS_LAYOUT_AUTO = 0,
    // One queue uploads, one computes, one downloads, with events between them.
    WEIR_CHUNKS_BY_ENGINE = 1,
    // All operations of chunk i are in queue i mod `queue_count`.
    WEIR_CHUNKS_BY_CHUNK = 2,
} weir_chunks_layout;

// One chunk: its elements, and where their bytes are in the buffers `in` and `out`. Closed.
struct weir_chunk {
    uint32_t index;
    size_t first; // element
    size_t count; // elements, > 0
    size_t in_offset;
    size_t in_size;
    size_t out_offset;
    size_t out_size;
};

// Submits the kernel of one chunk to `queue`. The kernel may access the chunk's ranges
// of `in` and `out`, and memory that no other chunk uses. The callback submits nothing
// to other queues and does not wait. It is called on the thread that runs the job. A
// return other than WEIR_OK fails the run, with the thread's last error as its detail
// if the callback left one.
typedef weir_status (*weir_chunks_kernel_function)(void *user, weir_queue *queue,
                                                   const struct weir_chunk *chunk);

// Where the job's bytes begin. Closed.
struct weir_chunks_place {
    weir_buffer *buffer;
    size_t offset;
};

struct weir_chunks_params {
    size_t struct_size;
    weir_device *device;
    const char *label; // copied; names queues ("LABEL/upload") and errors

    size_t element_count;
    size_t in_bytes;  // of one element; 0: nothing is uploaded
    size_t out_bytes; // of one element; 0: nothing is downloaded
    // Chunks begin at multiples of so many elements: a row of an image, or the
    // elements of a block. 0: 1.
    size_t granularity;

    // `src` and `dst` are HOST buffers, `in` and `out` DEVICE buffers. The offsets of
    // `in` and `out` are multiples of limits.argument_alignment_bytes. `in` and `out`,
    // and likewise `src` and `dst`, are either the same place, with in_bytes equal
    // to out_bytes, or do not overlap.
    struct weir_chunks_place src;
    struct weir_chunks_place in;
    struct weir_chunks_place out;
    struct weir_chunks_place dst;

    weir_chunks_kernel_function kernel;
    void *user;

    weir_chunks_order order;
    weir_chunks_layout layout;
    // BY_CHUNK: up to WEIR_CHUNKS_QUEUES_MAX. 0: 8, the default number of channels of a
    // CUDA context, or 2 if LAYOUT_AUTO finds that two are enough. Never more than
    // chunks. BY_ENGINE: 0.
    uint32_t queue_count;
    // Up to WEIR_CHUNKS_MAX; 0: chosen by the size of the job (docs/chunks.md). There
    // are never more chunks than units.
    uint32_t chunk_count;
    int32_t priority; // of the queues; 0: normal
};

// Checks and plans the job, and creates its queues. Runs allocate nothing, except that the
// queues' lists of waits grow until they are large enough for the job.
//
// Ownership: outlived by the four buffers while it is run.
// Threads: not safe; the caller must serialise calls on one object.
// Errors: WEIR_ERROR_INVALID, naming what is wrong; WEIR_ERROR_OUT_OF_MEMORY; those of
// weir_queue_create().
WEIR_CALL weir_status weir_chunks_create_at(const struct weir_chunks_params *params,
                                            weir_chunks **out_chunks, const char *file, int line);
#define weir_chunks_create(...) weir_chunks_create_at(__VA_ARGS__, __FILE__, __LINE__)

// Destroys the job and its queues. Never waits: submitted work runs to completion.
WEIR_API void weir_chunks_destroy(weir_chunks **chunks);

// Submits the whole job after the `count` events in `after` (work that fills `src` or
// still reads `dst`; NULL and 0 for none), and stores in `*out_done` the event at which
// the whole job is done, or a zeroed event on error. Does not wait on the host.
//
// The host must write `src` before the call, and must not write `src` or read `dst`
// until the event is complete. A later run reads `src` and overwrites `dst` as soon as
// the device reaches it.
//
// Errors: the kernel callback's; the first failure of a queue. After these, part of the
// run may have been submitted, and every later run is refused with the same cause until
// weir_chunks_recover(). WEIR_ERROR_INVALID for a zeroed event; then nothing was
// submitted.
WEIR_CALL weir_status weir_chunks_run(weir_chunks *chunks, const struct weir_event *after,
                                      size_t count, struct weir_event *out_done);

// Waits on the host for everything submitted so far and clears failures, so that the
// job can be run again. May be called at any time.
//
// Errors: WEIR_ERROR_DEVICE_LOST if the device was lost with the failure.
WEIR_CALL weir_status weir_chunks_recover(weir_chunks *chunks);

// The plan of a job, with every AUTO and every 0 replaced by the value that was chosen.
struct weir_chunks_plan {
    weir_chunks_order order;
    weir_chunks_layout layout;
    uint32_t queue_count;
    uint32_t chunk_count; // 0 if there are no elements
    size_t unit;          // elements
    size_t first_count;   // elements of the first chunk
    size_t most_count;    // elements of the largest one
};

// Stores the plan by which chunks are made.
WEIR_API void weir_chunks_get_plan_sized(const weir_chunks *chunks,
                                         struct weir_chunks_plan *out_plan, size_t size);
#define weir_chunks_get_plan(chunks, out_plan) \
    weir_chunks_get_plan_sized(chunks, out_plan, sizeof(struct weir_chunks_plan))

// Stores chunk `index` of the plan.
//
// Errors: WEIR_ERROR_INVALID for an index past the last chunk.
WEIR_CALL weir_status weir_chunks_get_chunk(const weir_chunks *chunks, uint32_t index,
                                            struct weir_chunk *out_chunk);

#endif
