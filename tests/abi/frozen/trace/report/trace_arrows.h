// Arrows for waits between queues, while a trace is written: the operation that a wait refers to is
// known when the producer's rows have passed the record.
#ifndef WEIR_REPORT_TRACE_ARROWS_H
#define WEIR_REPORT_TRACE_ARROWS_H

#include "tests/abi/frozen/trace/report/trace.h"

struct weir__arrow {
    uint64_t id;
    uint64_t from_queue;
    uint64_t from_ns;
    uint64_t to_queue;
    uint64_t to_ns;
};

typedef void (*weir__arrow_function)(void *user, const struct weir__arrow *arrow);

// Zeroed before use.
struct weir__arrows {
    struct weir__arrow_queue *queues;
    size_t queue_count;
    uint64_t drawn;
};

// Notes an operation and its waits, and draws the arrows that are known now. Of each queue
// the last 1,024 operations are remembered; a wait for an older one gets no arrow. False if out of
// memory.
bool weir__arrows_add(struct weir__arrows *arrows, const struct weir_trace_operation *operation,
                      weir__arrow_function draw, void *user);

// Draws the remaining arrows and frees.
void weir__arrows_finish(struct weir__arrows *arrows, weir__arrow_function draw, void *user);

#endif
