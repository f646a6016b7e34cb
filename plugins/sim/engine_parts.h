// What engine.c and engine_run.c share.
#ifndef WEIR_PLUGINS_SIM_ENGINE_PARTS_H
#define WEIR_PLUGINS_SIM_ENGINE_PARTS_H

#include "plugins/sim/engine.h"

enum sim_state {
    SIM_POSTED, // the engine has not reached its time
    SIM_SUBMITTED,
    SIM_RUNNING,
    SIM_ENDED,   // of a run with late signals, which is not complete
    SIM_RETIRED, // nothing will ask for it
};

struct sim_op;

// `to` waits for the operation in whose list this is. An operation that is posted has a list of those
// that it may need, with what it waits for, {0, 0} for nothing.
struct sim_edge {
    struct sim_edge *next;
    union {
        struct sim_op *to;
        struct sim_point on;
    };
};

// Kernels that were submitted one after the other to different queues, with late signals.
struct sim_run {
    struct sim_run *next_free;
    struct sim_op *ops;
    uint64_t left; // that are not complete
};

struct sim_op {
    struct sim_op *next; // in the list of free ones, of marks that are ready, or of its run
    struct sim_op *next_in_channel;
    struct sim_op *next_pull;
    struct sim_edge *dependents;
    struct sim_edge *reserved; // POSTED
    struct sim_run *run;       // POSTED: one that it may need
    struct sim_point point;
    uint32_t device; // whose engine it needs
    enum sim_kind kind;
    enum sim_state state;
    uint64_t pending;  // operations that it waits for
    size_t places;     // of its engine
    uint64_t yield_ns; // as sim_work; 0: it does not
    // Its place among those that wait for its engine: the least of all three goes first.
    int32_t priority;
    uint64_t rank_ns; // stream queues: when it was ready; POSTED: when it is there
    uint64_t issue;   // 1, 2, 3 … of the whole engine; POSTED: of all that were posted
    uint64_t ready_ns;
    // The engines whose completions reached it at `from_ns`, the last such instant: bits of its
    // device's units, and SIM_FROM_ELSEWHERE.
    uint32_t from;
    uint64_t from_ns;
    bool signalled; // by now, or soon
    bool pulls;
    bool first;   // of a graph's branch
    bool follows; // the operation before it in its queue was another engine's
    bool node;    // of a graph
    uint64_t start_ns;
    uint64_t end_ns; // RUNNING: as things are now
    // Copies. A millionth of a byte is what one byte a millisecond moves in a nanosecond.
    uint64_t left_millionths;
    uint64_t bytes_per_ms;
    uint64_t moves_ns; // from when on that many were left
    uint64_t tag;
};

// A binary heap. Its room is reserved when an operation is submitted.
struct sim_heap {
    struct sim_op **ops;
    size_t count;
    size_t room;
    bool (*before)(const struct sim_op *a, const struct sim_op *b);
};

enum {
    SIM_KERNEL_ENGINE,
    SIM_COPY_ENGINE, // of uploads, or of both directions
    SIM_DOWN_ENGINE,
    SIM_PEER_ENGINE,
    SIM_COMMUNICATION_ENGINE,
    SIM_HOST_ENGINE, // holds any number
    SIM_SIGNALS,     // no engine: `running` are those whose signals are on their way
    SIM_ENGINES,
    SIM_NO_ENGINE = SIM_ENGINES,
    SIM_OTHERS_ENGINE, // of another device
};

#define SIM_FROM_ELSEWHERE (UINT32_C(1) << SIM_ENGINES) // another device

// One engine of a device.
struct sim_unit {
    struct sim_heap waiting; // engine queues: all that did not start; else those that are ready
    struct sim_heap running;
    struct sim_heap *lanes; // in place of `waiting`, for each channel of copies
    uint32_t lane_count;    // 0: none
    uint32_t lane;          // of the last one that started
    size_t capacity;        // places
    size_t used;
    size_t yielding; // of those that run
    size_t members;  // that are not complete, posted ones too; of SIM_SIGNALS, signals
};

struct sim_device {
    const struct sim_model *model;
    struct sim_unit units[SIM_ENGINES];
    uint32_t busy;            // a bit for each unit that has members
    size_t in_flight;         // members of all engines
    struct sim_op **channels; // the last operation of each, if it has not started
    struct sim_op *pull;      // the last one from the device, if it has not started
    uint32_t next_channel;
    uint32_t next_lane;
    struct sim_point legacy; // the last operation of a legacy queue
};

struct sim_queue {
    struct sim_queue_params params;
    uint32_t channel;
    uint32_t lane;
    uint32_t unit; // of its last operation with an engine
    bool ended;
    bool free;
    struct sim_op **ring; // of the operations `first` to `last`, by number
    size_t room;          // a power of two, or 0
    uint64_t first;
    uint64_t last;
};

struct sim_engine {
    void (*done)(void *user, const struct sim_done *done);
    void *user;
    uint64_t now_ns;
    uint64_t issue;
    struct sim_heap posted;
    uint64_t posts; // so many ever
    struct sim_device *devices;
    uint32_t device_count;
    struct sim_queue *queues;
    uint32_t queue_count;
    struct sim_run *run;  // that the next kernel may join
    uint32_t run_queue;   // of its last kernel
    struct sim_op *marks; // that are ready
    struct sim_op **marks_end;
    // Kept for the next ones.
    struct sim_op *free_ops;
    struct sim_edge *free_edges;
    struct sim_run *free_runs;
};

// engine.c

uint32_t sim__unit_of(const struct sim_model *model, enum sim_kind kind);
// Whose engine the operation needs: that of its queue, but for copies from another one.
struct sim_device *sim__device_of(const struct sim_engine *engine, const struct sim_op *op);
// The number of the device whose engine work of the queue needs.
uint32_t sim__device_for(const struct sim_queue *queue, const struct sim_work *work);
// Whether `op` learns of the end of a kernel before the run of that one is complete.
bool sim__sees_at_once(const struct sim_engine *engine, const struct sim_op *op,
                       const struct sim_op *kernel);
// The operation, or NULL if it is retired.
struct sim_op *sim__find(const struct sim_engine *engine, struct sim_point point);
// Reserves the memory of an operation. False if out of memory.
bool sim__reserve(struct sim_engine *engine, struct sim_queue *queue, const struct sim_work *work);
// The operation leaves its queue, with those before it.
void sim__retire(struct sim_engine *engine, struct sim_op *op);

bool sim__ends_first(const struct sim_op *a, const struct sim_op *b);
void sim__heap_push(struct sim_heap *heap, struct sim_op *op);
struct sim_op *sim__heap_top(const struct sim_heap *heap); // NULL: empty
struct sim_op *sim__heap_pop(struct sim_heap *heap);
// The operation at that place may have to go further down.
void sim__heap_delay(struct sim_heap *heap, size_t at);

// Where an operation waits for the unit: a queue of another device may have a channel that this one lacks.
static inline struct sim_heap *sim__waiting_of(struct sim_unit *unit, uint32_t lane)
{
    return unit->lane_count ? &unit->lanes[lane % unit->lane_count] : &unit->waiting;
}

#endif
