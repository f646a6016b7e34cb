// What a wait on the host waits for, in words: the queue, the queues that it waits for, and at the end
// of that chain a host call that has not returned, a collective, or work of the device. A wait that times
// out leaves them as the thread's error, of status WEIR_TIMEOUT; in debug mode the log is told too, also
// of a wait without a limit once it has lasted some seconds.
//
// Only debug mode keeps the latest operations of a queue, so only there each is named with its line.
#ifndef WEIR_CORE_QUEUE_AWAITED_H
#define WEIR_CORE_QUEUE_AWAITED_H

#include <weir/module/module.h>

#include "base/cold.h"

// After this time debug mode tells of a wait, once.
#define WEIR__AWAITED_TOLD_NS UINT64_C(3000000000)

// The call that waits for operation `sequence` of the queue, which the caller keeps alive.
struct weir__awaited {
    const char *function;
    weir_queue *queue;
    uint64_t sequence;
    const char *file;
    int line;
};

// The wait's limit has passed. With no lock held, as the next.
WEIR_COLD void weir__awaited_end(const struct weir__awaited *awaited, uint64_t timeout_ns);

// The wait goes on for longer than WEIR__AWAITED_TOLD_NS.
WEIR_COLD void weir__awaited_tell(const struct weir__awaited *awaited);

// The latest operations of a queue, in debug mode; NULL before the first.
struct weir__history;

// Notes an operation that has got its number. With the queue's submit lock held.
WEIR_COLD void weir__awaited_note(weir_queue *queue, const struct weir_operation *operation);

#endif
