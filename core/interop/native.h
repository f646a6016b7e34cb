// Work of the caller's own on a native queue, as the last hop hands it over.
#ifndef WEIR_CORE_INTEROP_NATIVE_H
#define WEIR_CORE_INTEROP_NATIVE_H

#include <weir/module/module.h>

// Submits a NATIVE operation to the backend, with a function around the caller's that
// keeps it from waiting, and from calling back into the queue's own lock.
weir_status weir__native_submit(const struct weir_link *backend, weir_queue *queue,
                                const struct weir_operation *operation);

// The API that native handles of the device are of; WEIR_ERROR_UNSUPPORTED where it has none.
// `what` begins the message.
weir_status weir__native_api(weir_device *device, const char *what, const char *label,
                             weir_native_api *out_api);

#endif
