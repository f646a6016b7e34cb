// Work of the caller's own on a native queue, as it is delivered.
#ifndef WEIR_CORE_QUEUE_NATIVE_CALL_H
#define WEIR_CORE_QUEUE_NATIVE_CALL_H

#include <weir/module/module.h>

// Submits a NATIVE operation to the backend, with a function around the caller's that
// keeps it from waiting, and from calling back into the queue's own lock.
weir_status weir__native_submit(const struct weir_link *backend, weir_queue *queue,
                                const struct weir_operation *operation);

#endif
