// Queues that the library owns: the default queues of threads, and the legacy
// queue of a device.
#ifndef WEIR_CORE_QUEUE_OWNED_H
#define WEIR_CORE_QUEUE_OWNED_H

#include <weir/migration.h>

// The owner of a queue, which alone may destroy it.
enum weir__queue_owner {
    WEIR__OWNED_BY_USER = 0,
    WEIR__OWNED_BY_THREAD,
    WEIR__OWNED_BY_DEVICE, // the legacy queue
};

// Creates a queue that does not keep its device from closing.
weir_status weir__queue_create_owned(weir_device *device, const char *label,
                                     enum weir__queue_owner owner, weir_queue **out_queue);

// Reports the error of weir_queue_destroy() for a queue that is not the user's.
void weir__queue_refuse_destroy(const weir_queue *queue);

// Destroys all threads' queues of the device.
void weir__thread_queues_close(weir_device *device);

#endif
