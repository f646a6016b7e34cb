// A GPU in virtual time: when would each operation have started and ended on the GPU that a
// model describes? Nothing runs here, and no Weir object is known here.
//
// An operation belongs to a queue. It is ready when the operation before it in its queue and all
// that it waits for are complete; then it starts when its engine is free. What happens at one
// instant: completions first, then operations without length, then starts, those that were ready
// first before others, equal ones in the order in which they were submitted. An operation that is
// submitted at an instant comes after all that happens then without it. Those that are posted at one
// instant come in the order of the calls.
//
//   engine queues  (before Hyper-Q): an operation joins the queue of its engine when it is
//                  submitted. One that is not ready holds up all after it, of whichever queue.
//   stream queues  (Hyper-Q and later): it joins when it is ready.
//   channels       Queues share them in turn, and an operation also waits until the operation
//                  before it in its channel has started.
//   late signals   (Fermi): of kernels that are submitted one after the other to different queues,
//                  with nothing in between, the completion of each reaches the other engines only
//                  when all of them are complete.
//   places        Small kernels run at once, as many as the GPU has places for; a kernel that fills
//                  the GPU takes all of them.
//   preemption     A kernel waits for places of kernels with a worse priority only until one of these
//                  yields, and these end later: by its length, times the part of their places that it
//                  takes from them.
//   copy channels  Queues share those of a copy engine in turn. The engine stays with a channel while
//                  that has copies that are ready, in the order of their submission.
//   signals        An operation after one of another engine, in its queue or because it waits for
//                  it, is ready some time later; with engine queues its engine is taken meanwhile.
//                  One that comes after a pause is not, nor is the first of a graph's branch because
//                  of its queue.
//   pulls          A copy from another device, in a queue of the one that gets it, needs the engine of the
//                  other one, has its figures, and is ready after a signal. Those from a device start in
//                  the order of their submission, so that one that waits holds up all after it.
//   gaps           A kernel that the end of another one of its device makes ready starts some time later,
//                  but in a graph.
//   both ways      While the other direction's engine is busy a copy runs at another bandwidth,
//                  from the nanosecond at which that changes; and one that starts then has another
//                  latency.
//
// All times are whole nanoseconds from an arbitrary beginning, so the same calls give the same
// times on every machine. Memory is used for what is in flight only.
//
// Threads: one at a time for each sim_engine.
#ifndef WEIR_PLUGINS_SIM_ENGINE_H
#define WEIR_PLUGINS_SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What an operation moves is less than that.
#define SIM_BYTES_MOST (UINT64_C(1) << 44)

#define SIM_ARGUMENTS 16 // scalar arguments of a kernel that its cost may depend on

enum sim_queues {
    SIM_ENGINE_QUEUES,
    SIM_STREAM_QUEUES,
};

enum sim_kind {
    SIM_KERNEL,
    SIM_H2D,
    SIM_D2H,
    SIM_D2D,        // within the device, and fills: where kernels run, in one place
    SIM_PEER,       // to or from another device, by the engine of the one that it reads
    SIM_COLLECTIVE, // with other ranks, which are as far as this one; an engine of its own
    SIM_HOST,       // a function of the host; no engine
    SIM_PAUSE,      // the beginning or the joins of a graph; no engine
    SIM_MARK,       // a record or a wait: no length, no engine
    SIM_KINDS,
};

// What a kind of copy costs: latency + bytes / bandwidth.
struct sim_link {
    uint64_t bytes_per_s;      // at least 1000; of SIM_COLLECTIVE 0 if it has no cost
    uint64_t both_bytes_per_s; // H2D and D2H, while the other direction is busy; 0: the same
    uint64_t latency_ns;
    uint64_t
        both_latency_ns; // H2D and D2H that start while the other direction is busy; 0: the same
};

// How fast the host copies to or from pinned memory in weir_upload() and weir_download().
struct sim_staging_rate {
    uint64_t bytes_per_s;     // of one thread; 0: in no time
    uint64_t all_bytes_per_s; // of all that copy one transfer; 0: as often as there are threads
};

// A GPU. Lives as long as the engines that use it.
struct sim_model {
    const char *name;
    enum sim_queues queues;
    bool late_signals;
    uint32_t channels;      // 0: each queue has its own
    uint32_t copy_engines;  // 1: one for both directions; 2: one for each; 3: and one for peers
    uint32_t copy_channels; // of the first two, with stream queues; 0: none
    uint32_t kernels;       // places for kernels; at least 1
    uint32_t multiprocessors;
    uint32_t threads; // work-items that a multiprocessor holds; 0: not known, none yields
    int32_t
        greatest_priority; // CUDA's: at most 0, a smaller number goes first. Stream queues only,
                           // and for kernels that wait for room
    struct sim_link copies[SIM_KINDS]; // [SIM_H2D] to [SIM_COLLECTIVE]
    uint64_t signal_ns;       // from the end of an operation until one of another engine starts
    uint64_t kernel_gap_ns;   // from the end of a kernel until one that waited for it starts
    uint64_t host_call_ns;    // a SIM_HOST
    uint64_t pull_latency_ns; // a SIM_PEER that pulls; 0: as others
    uint64_t submit_ns[SIM_KINDS]; // how long the host is busy with a submit
    uint64_t submit_graph_ns;      // the same with a graph; 0: as a kernel
    uint64_t submit_branch_ns;     // and for each branch of it but the first
    uint64_t graph_ns;             // before the first of several nodes, and after several branches
    uint64_t wait_ns;              // how long the host is busy with a wait, beside the waiting
    uint64_t wake_ns;              // from the end of a wait until another thread goes on, or copies
    struct sim_staging_rate staging;
    bool processor;               // what it models is no GPU
    const struct sim_cost *costs; // of kernels, by name, ascending (strcmp)
    size_t cost_count;
};

// What a kernel's time depends on.
enum sim_term {
    SIM_TERM_FIXED,    // 1
    SIM_TERM_BLOCK,    // blocks
    SIM_TERM_ITEM,     // work-items
    SIM_TERM_BYTE,     // of all its buffer arguments' ranges
    SIM_TERM_ARGUMENT, // the value of each argument, counted from 0; 0 if it is no scalar
    SIM_TERM_ITEM_ARGUMENT = SIM_TERM_ARGUMENT + SIM_ARGUMENTS, // work-items times that
    SIM_TERMS = SIM_TERM_ITEM_ARGUMENT + SIM_ARGUMENTS,
};

// How long a kernel takes: the sum of the terms times these.
struct sim_cost {
    const char *kernel;
    double factors[SIM_TERMS]; // nanoseconds; at least 0
};

// An operation, as others wait for it. {0, 0}: none, which is complete. One of a queue that was
// ended stays valid, and is complete.
struct sim_point {
    uint32_t queue;
    uint64_t number; // 1, 2, 3 … in its queue
};

struct sim_work {
    enum sim_kind kind;
    uint64_t bytes;       // copies, and what a collective moves; below SIM_BYTES_MOST
    uint64_t duration_ns; // SIM_KERNEL, SIM_PAUSE
    uint32_t device;      // SIM_PEER: whose memory it reads, if that is not the queue's
    bool pulls;           // SIM_PEER: `device` is
    uint32_t places;      // SIM_KERNEL: of model->kernels; 0: one; more than there are: all
    uint64_t yield_ns;    // SIM_KERNEL: a better one waits so long for its places; 0: to its end
    const struct sim_point *waits;
    size_t wait_count;
    bool first;   // of a graph's branch
    bool node;    // of a graph
    uint64_t tag; // the caller's, for sim_done
};

// An operation that is complete.
struct sim_done {
    struct sim_point point;
    void *owner;  // of its queue; NULL: that was ended
    uint64_t tag; // of its sim_work
    uint64_t start_ns;
    uint64_t end_ns;
};

struct sim_engine;

// `done` is called for each operation when its times are final, in the order of the ends; it must
// not call the engine. NULL if out of memory.
struct sim_engine *sim_engine_create(void (*done)(const struct sim_done *done));
// Operations that are not complete are dropped. Accepts NULL; stores NULL.
void sim_engine_destroy(struct sim_engine **engine);

// Adds a GPU. False if out of memory.
bool sim_engine_add_device(struct sim_engine *engine, const struct sim_model *model,
                           uint32_t *out_device);

struct sim_queue_params {
    uint32_t device;
    int32_t priority;
    void *owner; // the caller's, for sim_done
};

// False if out of memory.
bool sim_engine_add_queue(struct sim_engine *engine, const struct sim_queue_params *params,
                          uint32_t *out_queue);
// The queue gets no more work. Its number may be given to another queue when what it has is
// complete.
void sim_engine_end_queue(struct sim_engine *engine, uint32_t queue);

// Submits at `issue_ns`, or at the time that the engine has reached if that is later, without going on: the operation
// is there when the engine reaches that time, before which others may still be posted. Those of a device are posted in
// the order of their times. False, and nothing is changed, if out of memory.
bool sim_engine_post(struct sim_engine *engine, uint32_t queue, uint64_t issue_ns,
                     const struct sim_work *work, struct sim_point *out_point);
// How many are posted and not there.
size_t sim_engine_posted(const struct sim_engine *engine);

// Goes on to the next completion, or to the next operation that was posted; false if there is none
// until that time.
bool sim_engine_step(struct sim_engine *engine, uint64_t until_ns);
// Goes on until that time.
void sim_engine_advance(struct sim_engine *engine, uint64_t until_ns);

bool sim_engine_complete(const struct sim_engine *engine, struct sim_point point);
// The last operation that was submitted to the queue, or to others of its number before it.
struct sim_point sim_engine_last(const struct sim_engine *engine, uint32_t queue);
// The time that has been reached.
uint64_t sim_engine_now_ns(const struct sim_engine *engine);

// Doubles a ring, of which a pointer is at `ring`, with items of that size: those from number `first` to before `end`.
// Its room is a power of two, at first `least`; an item's place is its number, modulo the room. False if out of memory.
bool sim_ring_grow(void *ring, size_t *room, size_t least, size_t size, uint64_t first,
                   uint64_t end);

// How many places a kernel of that many blocks takes: all from a block for each multiprocessor on,
// else in proportion.
uint32_t sim_kernel_places(const struct sim_model *model, double blocks);
#endif
