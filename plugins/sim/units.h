// The engines of a device, the operations that wait for them or run on them, and when they start and end there.
#ifndef WEIR_PLUGINS_SIM_UNITS_H
#define WEIR_PLUGINS_SIM_UNITS_H

#include "plugins/sim/engine.h"

enum sim_state {
    SIM_POSTED, // the engine has not reached its time
    SIM_SUBMITTED,
    SIM_RUNNING,
    SIM_ENDED, // of a run with late signals, which is not complete
};

enum {
    SIM_KERNEL_UNIT,
    SIM_COPY_UNIT, // of uploads, or of both directions
    SIM_DOWN_UNIT,
    SIM_PEER_UNIT,
    SIM_COLLECTIVE_UNIT,
    SIM_HOST_UNIT,    // holds any number, also of what has no engine
    SIM_SIGNALS_UNIT, // no engine: `running` are those whose signals are on their way
    SIM_UNITS,
    SIM_NO_UNIT = SIM_UNITS,
    SIM_OTHERS_UNIT, // of another device
};

#define SIM_FROM_ELSEWHERE (UINT32_C(1) << SIM_UNITS) // another device

// `to` waits for the operation in whose list this is, which is `on`.
struct sim_edge {
    struct sim_edge *next;
    struct sim_op *to;
    struct sim_point on;
};

struct sim_op {
    struct sim_op *next; // in the list of what is posted, waits for a unit or runs on it
    struct sim_op *previous;
    struct sim_edge *at_start; // what waits until it has started
    struct sim_edge *at_end;
    // Kernels that were submitted one after the other to different queues, with late signals.
    struct sim_op *run; // the first one
    struct sim_op *next_in_run;
    uint64_t run_left; // of the first one: those that are not complete
    struct sim_point point;
    uint32_t device; // whose engine it needs
    uint32_t home;   // its queue's device
    uint32_t lane;   // of its queue
    enum sim_kind kind;
    enum sim_state state;
    uint64_t pending;  // operations that it waits for
    size_t places;     // of its engine
    uint64_t yield_ns; // as sim_work
    // Its place among those that wait for its engine: the least of all three goes first.
    int32_t priority;
    uint64_t rank_ns; // stream queues: when it was ready; SIM_POSTED: when it is there
    uint64_t issue;   // 1, 2, 3 … of the whole engine; SIM_POSTED: of all that were posted
    uint64_t ready_ns;
    // The engines whose completions reached it at `from_ns`, the last such instant: bits of its device's units, and
    // SIM_FROM_ELSEWHERE.
    uint32_t from;
    uint64_t from_ns;
    bool signalled; // by now, or soon
    bool pulls;
    bool first;   // of a graph's branch
    bool follows; // the operation before it in its queue was another engine's
    bool node;    // of a graph
    uint64_t start_ns;
    uint64_t end_ns; // SIM_RUNNING: as things are now
    // Copies. A millionth of a byte is what one byte a millisecond moves in a nanosecond.
    uint64_t left_millionths;
    uint64_t bytes_per_ms;
    uint64_t moves_ns; // from when on that many were left
    uint64_t tag;
    size_t on_count;   // edges whose `on` it was posted with
    size_t edge_count; // that are in others' lists
    struct sim_edge edges[];
};

struct sim_list {
    struct sim_op *head;
    struct sim_op *tail;
};

typedef bool sim_order(const struct sim_op *a, const struct sim_op *b);

// One engine of a device.
struct sim_unit {
    // Engine queues: all that did not start; else those that are ready. One for each channel of copies.
    struct sim_list *lanes;
    uint32_t lane_count;
    uint32_t lane;   // of the last one that started
    sim_order *turn; // of a lane
    struct sim_list running;
    size_t capacity; // places
    size_t used;
};

struct sim_device {
    const struct sim_model *model;
    struct sim_unit units[SIM_UNITS];
    struct sim_list *lanes; // of all units
    struct sim_list posted;
    struct sim_point *channels; // the last operation of each
    struct sim_point pull;      // the last one from the device
    uint32_t next_channel;
    uint32_t next_lane;
};

// Orders of lists: which operation goes before the other.
bool sim__arrives_first(const struct sim_op *a, const struct sim_op *b);
bool sim__ends_first(const struct sim_op *a, const struct sim_op *b);

void sim__list_add(struct sim_list *list, struct sim_op *op, sim_order *before);
void sim__list_remove(struct sim_list *list, struct sim_op *op);

// False if out of memory, with nothing to free.
bool sim__device_init(struct sim_device *device, const struct sim_model *model);
void sim__device_finish(struct sim_device *device);

uint32_t sim__unit_of(const struct sim_model *model, enum sim_kind kind);
// Pauses and marks have none.
bool sim__has_engine(enum sim_kind kind);

// How long after it may start it does, because of a signal or of a kernel before it.
uint64_t sim__lead_ns(const struct sim_model *model, const struct sim_op *op);

// `op` waits for its engine from now on.
void sim__wait_for_unit(struct sim_device *device, struct sim_op *op);
// What starts next on the devices' engines, or ends next there, or gets its signal; NULL: nothing.
struct sim_op *sim__next(const struct sim_device *devices, uint32_t count, bool ends);
void sim__start(struct sim_device *device, struct sim_op *op, uint64_t now_ns);
void sim__end(struct sim_device *device, struct sim_op *op);

#endif
