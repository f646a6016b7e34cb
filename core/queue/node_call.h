// The program's functions that nodes of a graph call: native calls and host calls. A graph puts a
// function of this file in the place of each, which keeps the program's from waiting and from calling
// back, and tells which node failed.
//
// A graph of the backend's calls a host call's function on a thread of the driver's, which learns
// nothing of what it returns. So the replay keeps the launches that have not ended, in their order: as
// launches of a graph come one after the other, the first of them is the one that calls. Each has what the nodes
// called when the backend got it, so that an update leaves it as it was.
#ifndef WEIR_CORE_QUEUE_NODE_CALL_H
#define WEIR_CORE_QUEUE_NODE_CALL_H

#include <weir/module/module.h>

#include "base/lock.h"

// What a node calls: `native` or `host`.
struct weir__node_target {
    weir_native_function native;
    weir_host_function host;
    void *user;
};

// A launch of a graph of the backend's with host calls.
struct weir__run {
    weir_queue *queue; // pinned; NULL: it is being finalized
    uint64_t sequence;
    const char *file;
    int line;
    uint32_t left; // host calls that have not been called
    bool failed;
    struct weir__node_target targets[]; // of the graph's calls
};

struct weir__runs {
    struct weir_lock lock;
    bool in_backend;     // the graph is the backend's
    uint32_t calls;      // nodes of the graph that call
    uint32_t host_calls; // of these; in a graph of the backend's 0 means that no launch is kept
    struct weir__node_target
        *targets; // of launches that the backend gets from now on, and of native calls
    void *ring;   // of struct weir__run, each with its targets
    uint32_t first;
    uint32_t count;
    uint32_t capacity; // a power of two
};

static inline size_t weir__run_bytes(const struct weir__runs *runs)
{
    return sizeof(struct weir__run) + runs->calls * sizeof(struct weir__node_target);
}

static inline struct weir__run *weir__run_at(const struct weir__runs *runs, uint32_t index)
{
    const uint32_t place = (runs->first + index) & (runs->capacity - 1);
    return (void *)((char *)runs->ring + place * weir__run_bytes(runs));
}

struct weir__node_call {
    struct weir__node_call *next;    // of the graph's
    struct weir__node_target latest; // of the latest update; under the graph's lock
    struct weir__runs *runs;         // of the graph; NULL until that is made
    uint32_t number;                 // among the calls there
    uint32_t index;
    const char *file;
    int line;
};

static inline bool weir__has_node_call(const struct weir_operation *operation)
{
    return operation->kind == WEIR_OPERATION_NATIVE || operation->kind == WEIR_OPERATION_HOST_CALL;
}

// Puts a function of this file in the place of the operation's, which is node `index`. NULL: out of
// memory. Freed by weir__release().
struct weir__node_call *weir__node_call_wrap(struct weir_operation *operation, uint32_t index);
// Puts the program's function back, that of the latest update.
void weir__node_call_unwrap(struct weir_operation *operation);

// Puts an update in force: a host call's for launches that come to the backend from now on, a native call's at
// once. Returns what was called until now.
struct weir__node_target weir__node_call_set(struct weir__node_call *call,
                                             struct weir__node_target target);
// That of a node of a graph.
struct weir__node_call *weir__node_call_of(const struct weir_operation *operation);

// Adds the node and its line to the error.
weir_status weir__node_explain(uint32_t index, const char *what, const char *file, int line,
                               weir_status status);

// Call a function of the program's, which may not wait, and return its status, as an error or as WEIR_OK. Its own
// detail, if it set one, is more precise than its status. A host call gets `cause` as the thread's error; NULL: none,
// since the detail of an earlier function in this thread must not be mistaken for this one's. A native call that ends
// well leaves the thread's error as it was.
weir_status weir__call_host(weir_host_function function, void *user,
                            const struct weir_error *cause);
weir_status weir__call_native(weir_native_function function, void *user,
                              const struct weir_native_queue *native);

#endif
