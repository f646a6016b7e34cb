// Host calls that run after a failure too: weir_queue_host_call_always(). One is a HOST_CALL with the
// flag ALWAYS, so plugins treat it as any other, and delivery runs it in any case.
#ifndef WEIR_CORE_QUEUE_ALWAYS_H
#define WEIR_CORE_QUEUE_ALWAYS_H

#include <weir/module/module.h>

static inline bool weir__is_always(const struct weir_operation *operation)
{
    return operation->flags & WEIR_OPERATION_ALWAYS;
}

// Waits on the host for the records that the queue's operations before `sequence` wait for. A wait that was
// refused orders nothing, and a failed queue may have run on without it. Keeps the thread's error.
void weir__always_await(weir_queue *queue, uint64_t sequence);

// What the functions that run on this thread from now on are told.
void weir__always_tell(weir_status status);

#endif
