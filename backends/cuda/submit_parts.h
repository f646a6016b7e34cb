// What all submits to a queue have around them.
#ifndef WEIR_BACKENDS_CUDA_SUBMIT_PARTS_H
#define WEIR_BACKENDS_CUDA_SUBMIT_PARTS_H

#include "backends/cuda/cu.h"

// Submits within the device's context. `note` writes the operation into the queue's history.
static WEIR_INLINE weir_status cu_submit_by(
    const struct weir_link *link, weir_queue *object, const struct weir_operation *operation,
    void (*note)(const struct weir_link *link, struct cu_queue *queue,
                 const struct weir_operation *operation),
    weir_status (*submit)(const struct weir_link *link, struct cu_queue *queue,
                          const struct weir_operation *operation))
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    weir_status status = cu_enter(queue->device, &scope);
    if (status < 0)
        return status;
    note(link, queue, operation);
    if (WEIR_RARELY(queue->watch))
        cu_watch_begin(queue, operation);
    status = submit(link, queue, operation);
    if (WEIR_RARELY(queue->watch))
        cu_watch_end(queue, status == WEIR_OK);
    if (WEIR_RARELY(queue->device->module->attribute_faults) && status == WEIR_OK)
        cu_history_mark(queue, operation);
    cu_leave(queue->device, &scope);
    return status;
}

#endif
