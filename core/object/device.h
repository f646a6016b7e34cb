// The front end's device.
#ifndef WEIR_CORE_OBJECT_DEVICE_H
#define WEIR_CORE_OBJECT_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include <weir/weir.h>

#include "base/sized.h"
#include "base/thread.h"
#include "base/workers.h"
#include "core/module/chain.h"
#include "core/object/object.h"
#include "core/support/thread.h"

struct weir__watch;

#define WEIR__STAGING_SPARES_MAX 64

// The pinned memory of uploads and downloads, and the threads that copy to and from it
// (core/buffer/buffer.h).
struct weir__staging {
    struct weir_lock lock; // of `blocks`
    struct weir__staging_blocks {
        weir_buffer *spares[WEIR__STAGING_SPARES_MAX]; // not in use by a transfer
        size_t spare_count;
        size_t count; // of all blocks
    } blocks[2];      // by enum weir__staging_size
    unsigned thread_limit;
    size_t large_bytes; // of a transfer from which on it takes large blocks; fewer in tests
    struct weir_workers copiers;
};

// The descriptors of events that are not complete, and the thread that makes them readable, which the first one
// starts (core/event/event.c).
struct weir__notifier {
    struct weir_thread thread;
    struct weir_lock lock;
    pthread_cond_t changed;
    struct weir__watch *list; // that the thread has not seen yet
    bool started;
    bool stop;
};

// A device's part in the order of its legacy queue (core/queue/owned.c).
struct weir__legacy {
    // The number of operations begun on the legacy queue. Each queue has the number of
    // the last one that it comes after, and compares it with this one at every operation.
    atomic_uint_fast64_t turn;
    struct weir_lock lock; // taken before any submit lock, never inside one
    weir_queue *queue;     // NULL: not created yet
};

// Shared by the devices of one runtime. Queues wait only for queues of their own runtime.
struct weir__shared {
    struct weir_lock walk_lock; // one completion at a time is booked: core/queue/completion.c
    struct weir_lock devices_lock;
    LIST_HEAD(, weir_device) devices; // that are open: core/device/device.c
};

struct weir_device {
    struct weir_object object;
    weir_runtime *runtime;
    struct weir__shared *shared; // the runtime's
    const struct weir__chain *chain;
    const struct weir_link *first; // of the chain
    size_t index;                  // of the backend's devices
    LIST_ENTRY(weir_device) place; // among the runtime's open ones
    const char *file;              // where the program opened it; NULL: not known
    int line;
    WEIR_SIZED_CELL(struct weir_limits, limits, WEIR_SIZED_ROOM);
    WEIR_SIZED_CELL(struct weir_device_info, info, WEIR_SIZED_ROOM);

    struct weir_lock lock; // of the lists; a leaf but for registry pins
    TAILQ_HEAD(, weir__member) live;
    TAILQ_HEAD(, weir__member) retired; // the oldest first
    atomic_size_t retired_count;
    atomic_bool has_peers;            // other devices' queues may use its buffers
    atomic_uint_fast64_t calls_ended; // host calls' functions, which may have submitted work

    struct weir__staging staging;
    struct weir__notifier notifier;
    struct weir__legacy legacy;
    bool default_timing; // of the legacy queue and of threads' queues
    bool has_thread_key; // under the device's lock, as this one until the device closes:
    pthread_key_t thread_key;
};

// Copies between devices, and launches that use memory of another one. A queue may use a
// buffer of another device, so the destruction of that buffer has to check more queues than
// those of its own device: from the first such operation on those of all devices of the runtime. A program with one
// device pays one load for the check.

// Whether queues of `device` may use buffers of `other` in copies; an error is no.
bool weir__peer_can(weir_device *device, weir_device *other);

// Stores whether queues of `device`, which is another one, may use buffers of `other` in
// copies. If so, that is noted. An error is that of the driver.
weir_status weir__peer_allow(weir_device *device, weir_device *other, bool *out_allowed);

#endif
