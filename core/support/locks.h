// All locks of core, in the order in which a thread may take them: the first is taken first.
#ifndef WEIR_CORE_SUPPORT_LOCKS_H
#define WEIR_CORE_SUPPORT_LOCKS_H

#include "base/lock.h"

#define WEIR__LOCKS(LOCK)                                         \
    LOCK(DEFAULT, "the lock of the default runtime")              \
    LOCK(TRANSPORT, "a runtime's lock for loading its transport") \
    LOCK(LOADER, "the loader's lock")                             \
    LOCK(GRAPH, "a graph's lock")                                 \
    LOCK(COMM_SUBMIT, "a communicator's submit lock")             \
    LOCK(LEGACY, "a device's legacy lock")                        \
    LOCK(SUBMIT, "a queue's submit lock")                         \
    LOCK(CAPTURE, "a capture's lock")                             \
    LOCK(POOL, "a pool's lock")                                   \
    LOCK(DELIVERY, "a queue's delivery lock")                     \
    LOCK(REPLAY, "a graph's replay lock")                         \
    LOCK(RUNS, "a graph's lock of its runs")                      \
    LOCK(COMM, "a communicator's lock")                           \
    LOCK(WALK, "a runtime's walk lock")                           \
    LOCK(COMPLETION, "a queue's completion lock")                 \
    LOCK(GONE, "the failures of gone queues")                     \
    LOCK(NOTIFIERS, "a device's lock for making its notifier")    \
    LOCK(NOTIFIER, "a notifier's lock")                           \
    LOCK(STAGING, "a device's staging lock")                      \
    LOCK(COPIERS, "the lock of a device's copying threads")       \
    LOCK(DEVICE, "a device's lock")                               \
    LOCK(REGISTRY, "the queue registry's lock")                   \
    LOCK(DEVICES, "a runtime's list of devices")                  \
    LOCK(DEBUG, "the debug mode's lock")                          \
    LOCK(LOG, "the log's lock")

enum weir__lock {
#define WEIR__LOCK(name, text) WEIR__LOCK_##name,
    WEIR__LOCKS(WEIR__LOCK)
#undef WEIR__LOCK
};

// Indexed by enum weir__lock.
extern const struct weir_lock_kind weir__locks[];

#endif
