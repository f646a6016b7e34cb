// Shared by the files of `buckets`: the plan, what the ranks agree on, the steps, the times.
#ifndef WEIR_PATTERNS_BUCKETS_PARTS_H
#define WEIR_PATTERNS_BUCKETS_PARTS_H

#include "patterns/buckets.h"
#include "patterns/shared.h"

#define WEIR__BUCKETS_STEPS 4  // whose times are kept until they are read
#define WEIR__BUCKETS_POINTS 5 // sizes whose reduction is timed

struct weir__buckets_parameter {
    char *name;
    size_t count; // elements
    size_t offset;
    size_t size; // bytes
    uint32_t bucket;
    bool optional;
    bool marked;  // in this pass
    bool written; // in this step
};

// The times of a bucket's reduction in one step.
struct weir__buckets_times {
    struct weir_event begin;
    struct weir_event end;
};

struct weir__buckets_bucket {
    struct weir_bucket range;
    uint32_t pending;     // parameters that are not marked
    uint32_t event_count; // of `events`, from range.first on
    weir_queue *source;   // that marked last
    struct weir_event done;
    bool submitted; // in this step
    struct weir__buckets_times times[WEIR__BUCKETS_STEPS];
};

struct weir_buckets {
    struct weir_buckets_params params; // `label` is the copy, `parameters` are not kept
    struct weir_buckets_plan plan;
    char label[WEIR__PATTERN_LABEL_SIZE];
    struct weir__place place;
    size_t element_size;
    size_t wire_size; // of an element as it travels
    bool narrows;     // F32 gradients that travel as bf16
    struct weir__buckets_parameter *parameters;
    struct weir__buckets_bucket *buckets; // room for one a parameter
    struct weir_event *events;            // after which the gradients are complete; one a parameter

    weir_buffer *gradients;
    weir_buffer *wire; // with `narrows`: an element's place is the same as in `gradients`
    weir_queue *comm_queue;
    weir_queue *narrow_queue;
    weir_queue *widen_queue;
    weir_queue *clock; // with times: when the queue of finish() has come there
    weir_program *program;
    weir_kernel *narrow;
    weir_kernel *widen;

    bool in_pass;
    bool reduces;  // this pass
    uint32_t pass; // of this step
    uint32_t next; // the bucket that is submitted next
    uint64_t step;
    struct weir_event reached[WEIR__BUCKETS_STEPS]; // on `clock`; zeroed: nothing to be read
    struct weir_buckets_statistics figures;
};

// What so many bytes of gradients are as they travel.
static inline size_t weir__buckets_on_wire(const weir_buckets *buckets, size_t bytes)
{
    return bytes / buckets->element_size * buckets->wire_size;
}

// The first parameter after the bucket that begins with `first`, as the sizes of `plan` have it.
uint32_t weir__buckets_end(const weir_buckets *buckets, const struct weir_buckets_plan *plan,
                           uint32_t first);

// Aborts the communicator, which may be NULL, with the thread's error as the cause: the other ranks
// would wait for this one.
void weir__buckets_tell(weir_comm *comm, const char *label);

// Compares the plans of all ranks, with the buckets of `count` ranks in this process, and makes the buckets, for
// WEIR_BUCKETS_AUTO of the sizes that the slowest rank's measurement gives. Other ranks learn of a failure.
weir_status weir__buckets_agree(weir_buckets *const *buckets, uint32_t count);

// Makes the buckets of the plan's sizes.
void weir__buckets_cut(weir_buckets *buckets);

// What an all-reduce takes, of any size: latency_ns, and so many nanoseconds for each byte as at the
// points about it. Sizes ascend, and nanoseconds per byte do not.
struct weir__buckets_curve {
    double latency_ns;
    uint32_t count;
    size_t bytes[WEIR__BUCKETS_POINTS];
    double ns_per_byte[WEIR__BUCKETS_POINTS];
};

// Sets the sizes of the plan to those of the shortest step, beside so much computation (0: unknown).
// The same figures give the same sizes.
void weir__buckets_choose(weir_buckets *buckets, const struct weir__buckets_curve *curve,
                          double backward_ns);

#endif
