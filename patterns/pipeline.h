// A pipeline: frames pass through a graph of stages. Each stage has its own queue, each
// frame in flight has a slot with its own buffers, and the pipeline inserts the events
// between stages, so that stage 1 of one frame overlaps stage 2 of the frame before it and
// no wait can be forgotten.
//
//     static const struct weir_pipeline_stage stages[] = {
//         {.name = "upload", .submit = upload},
//         {.name = "blur", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = blur},
//         {.name = "download", .depends_on = WEIR_PIPELINE_AFTER(1), .submit = download},
//     };
//     const struct weir_pipeline_params params = {
//         .struct_size = sizeof params, .device = device, .label = "blur",
//         .stages = stages, .stage_count = 3, .stage_size = sizeof stages[0], .slot_count = 3,
//         .slot_create = make_buffers, .slot_destroy = free_buffers,
//         .prepare = fill_pinned_memory, .deliver = take_result,
//     };
//     weir_pipeline_create(&params, &pipeline);
//     while (next_frame(&frame))
//         weir_pipeline_submit(pipeline, frame);
//     weir_pipeline_drain(pipeline, WEIR_FOREVER);
//     weir_pipeline_destroy(&pipeline);
//
// The life of a frame. weir_pipeline_submit() accepts it or not. An accepted frame belongs
// to the pipeline until `deliver` is called for it, which happens exactly once, in the order
// in which frames were accepted, whether they succeeded or not. When it is the next frame
// and a slot is free, the frame starts: `prepare`, then each stage's `submit`. After all its
// work has finished it is delivered, and after `deliver` has returned its slot is reused.
//
// What a stage may access. The buffers of its slot, after the stages that it depends on,
// directly or indirectly; and memory that only its own queue uses, because its frames run in
// order there. A stage never meets an earlier frame in its slot: that frame was delivered
// before the slot was reused.
//
// Failure. A frame fails with the first failure that is noticed: of `prepare`, of a stage's
// `submit`, or of its work. Its stages that were not submitted yet are skipped. When a queue
// failed (a host call, a fault), frames whose work was submitted after the failed operation,
// or whose submission the queue refused, fail with the same cause; the pipeline then
// recovers its queues and later frames run. If the device is lost, every later frame fails
// at once with that cause. A failed frame's slot holds undefined data, which the device may
// still be writing.
//
// Graphs. With `graphs` a frame is one launch of a graph that was captured from its stages
// when its slot first met such a frame. Submitting a frame then costs about one call,
// however many operations it has. The restrictions:
//   - frames of one stage are no longer in order, since each slot has its own queue: a stage
//     may access its slot's buffers, and memory that is never written;
//   - `submit` is called for a capture, not for a frame, and must not submit host calls or
//     wait; if it does, the frame fails with a message that names the call;
//   - spans and stage statistics are absent, and a failure of the work has no stage: its
//     `stage` is "graph";
//   - a slot's queue has the highest priority among the stages.
#ifndef WEIR_PATTERNS_PIPELINE_H
#define WEIR_PATTERNS_PIPELINE_H

#include <weir/weir.h>

typedef struct weir_pipeline weir_pipeline;
typedef struct weir_pipeline_group weir_pipeline_group;

#define WEIR_PIPELINE_STAGES_MAX 64
#define WEIR_PIPELINE_SLOTS_MAX 256
#define WEIR_PIPELINE_BACKLOG_MAX 65536

// Callbacks run on the pipeline's two threads, with all signals blocked: `prepare` and
// `submit` on one, `deliver` on the other; with prepare_threads `prepare` on these. `user` is
// that of the params, `slot` the pointer that slot_create stored, `frame` the pointer that was
// submitted. Callbacks must not drain or destroy the pipeline, and may submit to it only if its
// policy is not WEIR_PIPELINE_BLOCK; all three are refused with an error.

// Prepares a frame on the host: fills pinned memory of the slot. May block and may wait. A
// return other than WEIR_OK fails the frame.
typedef weir_status (*weir_pipeline_prepare_function)(void *user, void *slot, void *frame);

// Submits one stage's work of a frame to the stage's queue, and does not wait for it. A
// return other than WEIR_OK fails the frame, with the thread's last error as its detail if
// the callback, or a call in it, left one. A stage of one operation can return its status.
typedef weir_status (*weir_pipeline_submit_function)(void *user, void *slot, void *frame,
                                                     weir_queue *queue);

// Returns a number that identifies what the stages would submit for a frame: frames of one
// slot with the same number must repeat each other, operation by operation, on the same
// operands. For example the size of a picture, or 0 if all frames are alike. Called after
// `prepare`.
typedef uint64_t (*weir_pipeline_repeat_function)(void *user, void *slot, void *frame);

// The stages that one stage waits for: WEIR_PIPELINE_AFTER(i), or several of
// them joined by |.
#define WEIR_PIPELINE_AFTER(stage) (UINT64_C(1) << (stage))

struct weir_pipeline_stage {
    const char *name;    // unique in its pipeline, up to 31 bytes
    int32_t priority;    // of its queue; 0: normal
    uint64_t depends_on; // stages that precede it in the list; 0: none
    weir_pipeline_submit_function submit;

    // Of its queue; NULL: that of the params. Another device is one of the same runtime; copies to
    // it are the stage's (device_link.h).
    weir_device *device;
};

// What weir_pipeline_submit() does with a frame when the pipeline is full.
typedef enum weir_pipeline_full {
    WEIR_PIPELINE_BLOCK = 0,       // waits for room
    WEIR_PIPELINE_WOULD_BLOCK = 1, // does not accept it: WEIR_NOT_READY
    WEIR_PIPELINE_DROP_OLDEST = 2, // drops the oldest frame that has not started
    WEIR_PIPELINE_DROP_NEWEST = 3, // drops this one
} weir_pipeline_full;

// Begin and end on the timeline of the stage's device. Closed.
struct weir_pipeline_span {
    uint64_t begin_ns;
    uint64_t end_ns;
};

// The outcome of a frame. Valid during the call of `deliver`.
struct weir_pipeline_result {
    uint64_t sequence;  // 0, 1, 2 … without gaps
    weir_status status; // WEIR_OK, WEIR_DROPPED, WEIR_CANCELLED, or the failure
    // The first failure; NULL unless `status` is an error.
    const struct weir_error *error;
    const char *stage;   // the stage where it was noticed; "prepare"; "" if in none
    uint64_t latency_ns; // from acceptance to this call
    // One span per stage, if the frame succeeded, the pipeline was created with `timing` and
    // the device has the times; else NULL.
    const struct weir_pipeline_span *spans;
    uint32_t stage_count;
};

struct weir_pipeline_params {
    size_t struct_size;
    weir_device *device;
    const char *label;                        // copied; names queues ("LABEL/STAGE") and errors
    const struct weir_pipeline_stage *stages; // copied
    uint32_t stage_count;                     // 1 … WEIR_PIPELINE_STAGES_MAX
    uint32_t stage_size;                      // sizeof(struct weir_pipeline_stage)

    // Frames in flight, 1 … WEIR_PIPELINE_SLOTS_MAX; 0: the number of stages plus one, so
    // that no stage waits for a delivery, and two for each of prepare_threads.
    uint32_t slot_count;
    // Makes the data of slot `index` on the thread that creates the pipeline; no later call
    // allocates. NULL: slots have no data. If it returns an error, the slots made before are
    // destroyed, last first.
    weir_status (*slot_create)(void *user, weir_device *device, uint32_t index, void **out_slot);
    // Runs on the thread that destroys the pipeline; no work uses the slot any more.
    void (*slot_destroy)(void *user, void *slot);

    weir_pipeline_full full;
    // Frames that may wait for a slot, up to WEIR_PIPELINE_BACKLOG_MAX; 0: as many as
    // slots. The pipeline is full when slots + backlog frames that have been neither
    // dropped nor cancelled await delivery.
    uint32_t backlog;
    // With a policy that drops: dropped frames that may wait for their delivery, up to
    // WEIR_PIPELINE_BACKLOG_MAX; 0: 1024. When as many wait, weir_pipeline_submit() returns
    // WEIR_NOT_READY.
    uint32_t dropped_backlog;

    weir_pipeline_prepare_function prepare; // NULL: nothing to prepare
    // Returns a frame to the user. `slot` is NULL for a frame that never started. NULL: no
    // results are wanted, only statistics.
    void (*deliver)(void *user, void *frame, void *slot, const struct weir_pipeline_result *result);
    void *user;

    // Times every stage of every frame with two timed records. If the device keeps no times
    // (limits.timing_history is 0), spans and stage statistics are absent.
    bool timing;

    // Runs each frame as a graph. A frame that does not repeat the previous frame of its
    // slot is captured again, which allocates.
    bool graphs;
    weir_pipeline_repeat_function repeat; // needed for `graphs`

    // The group of pipelines that it joins (below); NULL: none.
    weir_pipeline_group *group;
    // Threads that call `prepare`, up to WEIR_PIPELINE_SLOTS_MAX: of several frames at once and in
    // any order, each in its own slot. Frames are submitted in order all the same, so those that are
    // ready wait in their slots for one that takes longer. So there should be two slots more for
    // each thread; a slot_count of 0 has them. While all of them are in `prepare`, a frame may be
    // delivered up to 1 ms after its end, so that no processor is kept from them. 0: the thread
    // that submits.
    uint32_t prepare_threads;
};

// Creates the pipeline with its queues, slots and threads.
//
// Errors: WEIR_ERROR_INVALID, naming the stage and what is wrong with it: a
// dependency on itself, on a later stage (so cycles cannot be written), or on one
// that does not exist; a missing name or callback; a count out of range; a device of
// another runtime; `graphs` without `repeat`, or with stages on several devices.
// slot_create's own error; WEIR_ERROR_OUT_OF_MEMORY; WEIR_ERROR_SYSTEM.
WEIR_CALL weir_status weir_pipeline_create_at(const struct weir_pipeline_params *params,
                                              weir_pipeline **out_pipeline, const char *file,
                                              int line);
#define weir_pipeline_create(...) weir_pipeline_create_at(__VA_ARGS__, __FILE__, __LINE__)

// Cancels the frames that have not started, waits until all are delivered, ends the threads,
// and frees slots and queues. A submit that is blocked meanwhile returns WEIR_CANCELLED; no other
// call on the pipeline may be running.
//
// Errors: WEIR_ERROR_INVALID from a callback of the pipeline; nothing is done then.
WEIR_CALL weir_status weir_pipeline_destroy(weir_pipeline **pipeline);

// Submits a frame. WEIR_OK: the frame was accepted, and `deliver` will be called for it,
// also if it was dropped at once. Any other status: it was not accepted and stays the
// caller's. Allocates nothing.
//
// Threads: safe; between threads the order is that of acceptance.
// Errors: WEIR_NOT_READY as the policy says; WEIR_CANCELLED if the call was blocked when the
// pipeline was cancelled; WEIR_ERROR_INVALID from a callback under WEIR_PIPELINE_BLOCK,
// where the wait would never end. Under that policy a host call of a stage must not submit
// either, which is not detected.
WEIR_CALL weir_status weir_pipeline_submit(weir_pipeline *pipeline, void *frame);

// Waits until every frame accepted before the call is delivered.
//
// Errors: WEIR_TIMEOUT (not an error); the frames stay in the pipeline; WEIR_ERROR_INVALID
// from a callback of the pipeline.
WEIR_CALL weir_status weir_pipeline_drain(weir_pipeline *pipeline, uint64_t timeout_ns);

// Ends every frame that has not started as WEIR_CANCELLED, and every blocked submit, of its
// group too, with that status; frames that have started finish. Returns at once; frames that are submitted
// afterwards run as usual. May be called from anywhere.
WEIR_CALL weir_status weir_pipeline_cancel(weir_pipeline *pipeline);

// Figures of one stage, over the timed frames. Closed.
struct weir_pipeline_stage_statistics {
    const char *name; // the pipeline's
    uint64_t busy_ns; // its work was running
    // Between the end of its work on one frame and its start on the next: waiting for its
    // dependencies, for a free slot, or for the host. The stage that limits the pipeline has
    // almost none.
    uint64_t wait_ns;
};

struct weir_pipeline_statistics {
    // accepted = succeeded + failed + dropped + cancelled + frames still in the pipeline.
    uint64_t accepted;
    uint64_t succeeded;
    uint64_t failed;
    uint64_t dropped;
    uint64_t cancelled;
    uint64_t refused;       // submits that returned WEIR_NOT_READY
    uint64_t recoveries;    // times that failed queues were recovered
    uint32_t in_flight_max; // slots that were in use at once

    uint64_t wall_ns; // from the first acceptance to the last delivery, so far

    // From acceptance to delivery, of frames that succeeded. The percentiles are by
    // nearest rank from a histogram: within 1 % of the exact value. The rest is exact.
    uint64_t latency_min_ns;
    uint64_t latency_mean_ns;
    uint64_t latency_p50_ns;
    uint64_t latency_p99_ns;
    uint64_t latency_max_ns;

    // From device times; zeros without timing. Frames that did not succeed, and those
    // whose times had expired, are left out.
    uint64_t timed_frames;
    uint64_t busy_ns; // the stages' busy times added up
    // Time in which at least one stage was busy: their union; of several devices, that of each,
    // added up.
    uint64_t covered_ns;
    uint64_t overlap_ns; // busy - covered: time saved over one stage at a time
    uint32_t stage_count;
    struct weir_pipeline_stage_statistics stages[WEIR_PIPELINE_STAGES_MAX];
};

// Stores the figures so far. A frame counts from just before its `deliver`.
//
// Threads: safe, also in callbacks.
WEIR_API void weir_pipeline_get_statistics_sized(weir_pipeline *pipeline,
                                                 struct weir_pipeline_statistics *out_statistics,
                                                 size_t size);
#define weir_pipeline_get_statistics(pipeline, out_statistics)   \
    weir_pipeline_get_statistics_sized(pipeline, out_statistics, \
                                       sizeof(struct weir_pipeline_statistics))

// The section [pipeline] of a configuration, with the keys `slots`, `full` (block,
// would-block, drop-oldest, drop-newest), `backlog`, `timing` and `graphs`, for
// weir_open_params.sections. A program with several pipelines makes sections of
// other names with the same keys.
WEIR_API const struct weir_section *weir_pipeline_section(void);

// Sets slot_count, full, backlog, timing and graphs of `*params` from a section that was
// declared with these keys; NULL means "pipeline". The other members are not changed.
//
// Errors: WEIR_ERROR_NOT_FOUND if the section was not declared to weir_open().
WEIR_CALL weir_status weir_pipeline_params_from_settings(const weir_runtime *runtime,
                                                         const char *section,
                                                         struct weir_pipeline_params *params);

// A group of pipelines, one for each of several devices: frames are dealt out to the pipelines, and
// delivered in the order in which they were accepted, whichever device ran them.
//
//     weir_pipeline_group_create(NULL, &group);
//     for (uint32_t i = 0; i < device_count; i++) {
//         params.device = devices[i];
//         params.group = group;
//         weir_pipeline_create(&params, &pipelines[i]);
//     }
//     while (next_frame(&frame))
//         weir_pipeline_group_submit(group, frame);
//     weir_pipeline_group_drain(group, WEIR_FOREVER);
//     for (uint32_t i = 0; i < device_count; i++)
//         weir_pipeline_destroy(&pipelines[i]);
//     weir_pipeline_group_destroy(&group);
//
// Each pipeline has threads of its own, so devices do not wait for each other's `prepare` and
// `submit`. `deliver` runs on the thread of the pipeline that ran the frame, and never for two frames
// of the group at once.
//
// Dealing. A frame goes to the pipeline with the fewest frames that are not yet delivered; among
// equals, to the one after the last that got one. A frame that is done keeps its slot until all frames
// before it are delivered, so devices of different speed are limited by the slowest: group equal ones.
// A pipeline whose device is lost gets no more frames while another one has its device.

#define WEIR_PIPELINE_GROUP_MAX 64

struct weir_pipeline_group_params {
    size_t struct_size;
    const char *label; // copied; names errors
};

// Creates a group without pipelines; those that are created with it in their params join it until
// they are destroyed. They have the same policy and, for the statistics, the same stages. `params` may
// be NULL.
//
// Ownership: outlives its pipelines.
// Errors: WEIR_ERROR_OUT_OF_MEMORY.
WEIR_CALL weir_status weir_pipeline_group_create_at(const struct weir_pipeline_group_params *params,
                                                    weir_pipeline_group **out_group,
                                                    const char *file, int line);
#define weir_pipeline_group_create(...) \
    weir_pipeline_group_create_at(__VA_ARGS__, __FILE__, __LINE__)

// Errors: WEIR_ERROR_INVALID while it has pipelines; nothing is done then.
WEIR_CALL weir_status weir_pipeline_group_destroy(weir_pipeline_group **group);

// Submits a frame to one of the pipelines. When all are full, their policy applies to the group:
// WEIR_PIPELINE_DROP_OLDEST drops the oldest frame of all that wait. Otherwise as
// weir_pipeline_submit(). Allocates nothing.
//
// Threads: safe; while pipelines join or leave the group it must not be called.
// Errors: as weir_pipeline_submit(); WEIR_ERROR_INVALID for a group without pipelines.
WEIR_CALL weir_status weir_pipeline_group_submit(weir_pipeline_group *group, void *frame);

// weir_pipeline_drain() and weir_pipeline_cancel() for all pipelines.
WEIR_CALL weir_status weir_pipeline_group_drain(weir_pipeline_group *group, uint64_t timeout_ns);
WEIR_CALL weir_status weir_pipeline_group_cancel(weir_pipeline_group *group);

// Stores the figures of all pipelines that are in the group. Counts, and the times of stages, are
// added up, `in_flight_max` too; `covered_ns` and `overlap_ns` are those of each device, added up;
// `wall_ns` is from the first acceptance to the last delivery, and latencies are over all frames. The
// stages' names are the first pipeline's. For one device ask its pipeline.
//
// Threads: safe, also in callbacks.
WEIR_API void weir_pipeline_group_get_statistics_sized(
    weir_pipeline_group *group, struct weir_pipeline_statistics *out_statistics, size_t size);
#define weir_pipeline_group_get_statistics(group, out_statistics)   \
    weir_pipeline_group_get_statistics_sized(group, out_statistics, \
                                             sizeof(struct weir_pipeline_statistics))

#endif
