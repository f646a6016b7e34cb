// Core's data about the calling thread and process, and the order of its locks.
#ifndef WEIR_CORE_SUPPORT_THREAD_H
#define WEIR_CORE_SUPPORT_THREAD_H

#include <pthread.h>

#include "base/lock.h"
#include "core/support/debug.h"
#include "core/support/error.h"

// Whether this thread is running a user's host call or native call, in which nothing may
// wait.
bool weir__in_host_call(void);

// Whether it is running a user's native call.
bool weir__in_native_call(void);

// What the thread runs from now on; calls nest. Returns what it has run, for the end of the call.
enum weir__call {
    WEIR__NO_CALL,
    WEIR__HOST_CALL,
    WEIR__NATIVE_CALL,
};
enum weir__call weir__enter_call(enum weir__call call);

// Refuses a call that waits, made at file:line about the object of that label, in a host call or a native call.
#define WEIR_REFUSE_HOST_CALL_AT(file, line, label, remedy) \
    WEIR_REFUSE_HOST_CALL_OF(__func__, file, line, label, remedy)
#define WEIR_REFUSE_HOST_CALL_OF(function, file, line, label, remedy)           \
    do {                                                                        \
        if (weir__in_host_call())                                               \
            return weir__refuse_host_call(function, file, line, label, remedy); \
    } while (0)
weir_status weir__refuse_host_call(const char *function, const char *file, int line,
                                   const char *label, const char *remedy);

// All locks of core, in the order in which a thread may take them: the first is taken first.
#define WEIR__LOCKS(LOCK)                                         \
    LOCK(DEFAULT, "the lock of the default runtime")              \
    LOCK(TRANSPORT, "a runtime's lock for loading its transport") \
    LOCK(LOADER, "the loader's lock")                             \
    LOCK(GRAPH, "a graph's lock")                                 \
    LOCK(COMM_SUBMIT, "a communicator's submit lock")             \
    LOCK(LEGACY, "a device's legacy lock")                        \
    LOCK(SUBMIT, "a queue's submit lock")                         \
    LOCK(CAPTURES, "the captures' lock")                          \
    LOCK(POOL, "a pool's lock")                                   \
    LOCK(DELIVERY, "a queue's delivery lock")                     \
    LOCK(REPLAY, "a graph's replay lock")                         \
    LOCK(RUNS, "a graph's lock of its runs")                      \
    LOCK(COMM, "a communicator's lock")                           \
    LOCK(WALK, "a runtime's walk lock")                           \
    LOCK(FAILURES, "the failures of all queues")                  \
    LOCK(NOTIFIER, "a device's lock of its notifier")             \
    LOCK(STAGING, "a device's staging lock")                      \
    LOCK(COPIERS, "the lock of a device's copying threads")       \
    LOCK(DEVICE, "a device's lock")                               \
    LOCK(REGISTRY, "the queue registry's lock")                   \
    LOCK(DEVICES, "a runtime's list of devices")                  \
    LOCK(DEBUG, "the debug mode's lock")                          \
    LOCK(LABELS, "the lock of labels that are kept")              \
    LOCK(LOG, "the log's lock")

enum weir__lock {
#define WEIR__LOCK(name, text) WEIR__LOCK_##name,
    WEIR__LOCKS(WEIR__LOCK)
#undef WEIR__LOCK
};

// Indexed by enum weir__lock.
extern const struct weir_lock_kind weir__locks[];

#endif
