// Shared by the files of the pipeline: its structure, and which thread may access
// which part.
//
// Three parties work on a pipeline. Callers append frames to a ring of records. The
// starter takes the oldest waiting frame when a slot is free, and submits its
// stages. The deliverer takes frames from the other end of the ring, waits for their
// work and delivers them. The ring is in order of acceptance; frames that end
// without having started keep their place in it.
//
//     head <= next_start <= tail, once both ends have caught up:
//     head … next_start: started or ended    next_start … tail: waiting or ended
//
// The starter, or prepare_threads ahead of it, prepares the oldest waiting frame, and the starter submits
// the frames that are prepared, in order.
//
// The line's lock guards everything below it. A slot belongs to the starter from its
// frame's start until the record says STARTED, then to the deliverer.
#ifndef WEIR_PATTERNS_PIPELINE_PARTS_H
#define WEIR_PATTERNS_PIPELINE_PARTS_H

#include <pthread.h>

#include "base/sized.h"
#include "base/thread.h"
#include "patterns/pipeline.h"
#include "patterns/shared.h"
#include "patterns/statistics.h"

#define WEIR__NAME_SIZE 32 // of stages
#define WEIR__SLOT_LANE UINT32_MAX

enum weir__frame_state {
    WEIR__FRAME_WAITING,
    WEIR__FRAME_PREPARING, // in a slot
    WEIR__FRAME_PREPARED, // or its preparation has failed; being submitted, if it is the starter's turn
    WEIR__FRAME_STARTED, // in a slot; can be waited for
    WEIR__FRAME_ENDED,   // never started; `status` says why
};

struct weir__record {
    void *frame;
    uint64_t accepted_ns;
    enum weir__frame_state state;
    weir_status status;
    uint32_t slot;
    uint64_t number; // in its line
};

struct weir__stage {
    char name[WEIR__NAME_SIZE];
    uint64_t depends_on;
    bool last; // no stage depends on it
    int32_t priority;
    weir_pipeline_submit_function submit;
    weir_device *device;
    uint32_t timeline; // of the device's stages: an index of `covered`
    weir_queue *queue; // with graphs, nothing runs on it: captures fork to it
    uint32_t lane;     // the stage whose queue it is submitted to: another one with graphs only
};

struct weir__slot {
    void *data;
    weir_status status; // of its frame: the first failure
    const char *stage;  // where it was noticed
    WEIR_SIZED_CELL(struct weir_error, error, WEIR_SIZED_ROOM_LARGE);
    bool queue_failed;   // a queue failed, not only the frame
    bool refused;        // `status` is the status with which a queue refused work
    uint64_t generation; // `generation` of the pipeline when it was submitted
    // One per stage. A zeroed event was not recorded.
    struct weir_event begins[WEIR_PIPELINE_STAGES_MAX];
    struct weir_event ends[WEIR_PIPELINE_STAGES_MAX];
    struct weir_pipeline_span spans[WEIR_PIPELINE_STAGES_MAX];
    // With graphs.
    weir_queue *queue;      // launches its frames
    weir_graph *graph;      // NULL: none captured yet
    uint64_t number;        // the `repeat` number of the graph's frames
    struct weir_event done; // zeroed: not launched
};

// What the pipelines of a group share, or a pipeline without one has for itself.
struct weir__pipeline_line {
    struct weir__pattern_lock lock;
    pthread_cond_t
        moved;     // callers wait: for room, for a drain; deliverers: for their frame's number
    uint64_t head; // number of the next frame that is delivered
    uint64_t tail; // number of the next that is accepted
};

struct weir_pipeline {
    // Set at creation.
    // Counts are the real ones, `timing` is supported by the devices; `stages` is NULL.
    struct weir_pipeline_params params;
    char label[WEIR__PATTERN_LABEL_SIZE];
    struct weir__stage stages[WEIR_PIPELINE_STAGES_MAX];
    struct weir__slot *slots;
    uint32_t slots_made; // those that slot_create has filled
    struct weir__record *records;
    uint32_t record_count;
    // prepare_threads of preparers, the starter, the deliverer
    struct weir_thread threads[WEIR_PIPELINE_SLOTS_MAX + 2];
    uint32_t thread_count; // those that run

    struct weir__pipeline_line own;   // without a group
    struct weir__pipeline_line *line; // its lock guards what follows
    pthread_cond_t to_start;          // the starter waits
    pthread_cond_t to_prepare;        // the preparers wait
    pthread_cond_t to_deliver;        // the deliverer waits

    uint64_t head;        // sequence of the next to be delivered
    uint64_t next_start;  // no frame before it waits
    uint64_t next_submit; // no frame before it is to be submitted
    uint64_t tail;        // sequence of the next to be accepted
    uint64_t waiting;     // frames
    uint64_t started;     // frames that were given a slot
    uint64_t released;    // frames that gave it back
    uint32_t preparing;   // preparers at work
    uint64_t cancels;
    uint32_t blocked; // callers inside a blocked submit to it or to its group
    bool stopping;

    // Every recovery starts a new generation; failures of older generations have
    // been handled.
    bool must_recover;
    uint64_t generation;
    bool lost;
    WEIR_SIZED_CELL(struct weir_error, lost_error, WEIR_SIZED_ROOM_LARGE);

    struct weir_pipeline_statistics figures;              // counts; the rest is computed on request
    uint64_t first_ns;                                    // of the first acceptance
    uint64_t last_ns;                                     // of the last delivery
    uint64_t last_end_ns[WEIR_PIPELINE_STAGES_MAX];       // of each stage's work
    struct weir__union covered[WEIR_PIPELINE_STAGES_MAX]; // of each device
    struct weir__interval *pieces;                        // of all of them
    struct weir__histogram latency;
};

struct weir_pipeline_group {
    char label[WEIR__PATTERN_LABEL_SIZE];
    struct weir__pipeline_line line;
    weir_pipeline *members[WEIR_PIPELINE_GROUP_MAX];
    uint32_t count;
    uint32_t last; // the member that got the last frame
};

// Adds a delivered frame to the figures. Called with the lock.
void weir__pipeline_count(weir_pipeline *pipeline, const struct weir_pipeline_result *result);

// The threads; `argument` is the pipeline. They end when `stopping` is set.
void weir__pipeline_starter(void *argument);
void weir__pipeline_deliverer(void *argument);
void weir__pipeline_preparer(void *argument);

// Wakes what waits for frames and slots. Called with the lock.
void weir__pipeline_wake_start(weir_pipeline *pipeline);

// Waits for all work of all queues, and clears their failures. Returns the first
// error of a queue that cannot be recovered.
weir_status weir__pipeline_recover_queues(weir_pipeline *pipeline);

// Refuses `call` on a thread of the pipeline's, which it would wait for.
weir_status weir__pipeline_check_caller(const weir_pipeline *pipeline, const char *call,
                                        const char *remedy);

// Called with the lock held: the record of a frame in the ring; the oldest waiting
// frame, which must exist; ending a frame that has not started.
struct weir__record *weir__pipeline_record(weir_pipeline *pipeline, uint64_t sequence);
struct weir__record *weir__pipeline_oldest(weir_pipeline *pipeline);
void weir__pipeline_end(weir_pipeline *pipeline, struct weir__record *record, weir_status status);

#endif
