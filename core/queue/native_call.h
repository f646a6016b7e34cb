// Delivery of the caller's own work on a native queue.
#ifndef WEIR_CORE_QUEUE_NATIVE_CALL_H
#define WEIR_CORE_QUEUE_NATIVE_CALL_H

#include <weir/module/module.h>

// Submits a NATIVE operation to the backend, with a wrapper around the caller's
// function that keeps it from waiting, and from calling back while the queue's lock
// is held.
weir_status weir__native_submit(const struct weir_link *backend, weir_queue *queue,
                                const struct weir_operation *operation);

#endif
