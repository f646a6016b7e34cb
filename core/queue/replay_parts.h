// Shared by the files of the replay: replay.c has its life and updates, replay_run.c the submission
// of a launch's nodes.
#ifndef WEIR_CORE_QUEUE_REPLAY_PARTS_H
#define WEIR_CORE_QUEUE_REPLAY_PARTS_H

#include <stdatomic.h>

#include <weir/module/module.h>

#include "base/lock.h"
#include "core/queue/node_call.h"
#include "core/queue/replay.h"

// An update that waits for held launches.
struct weir__replay_pending {
    struct weir__replay_pending *next;
    uint32_t launches; // the number of these launches
    uint32_t index;
    struct weir_graph_node node;
    struct weir_operation *owned; // the memory that `node.operation` points to
};

// A branch of a graph that forks.
struct weir__replay_lane {
    weir_queue *queue; // NULL: no node is on it
    uint64_t sequence; // of its last operation
    bool begun;        // in this launch
};

struct weir__replay_node {
    struct weir_operation *operation;
    uint32_t branch;
    uint32_t dependency_count;
    uint32_t *dependencies;
    bool is_awaited; // waited for by a node of another branch, or by the end
    bool is_leaf;
    bool is_submitted; // in this launch
    uint64_t recorded; // the record after it in this launch
};

struct weir__replay {
    struct weir_lock lock;
    uint32_t held; // launches
    struct weir__replay_pending *first;
    struct weir__replay_pending *last;
    struct weir_error broken; // an update that failed after its call; status 0: none
    atomic_bool is_launched;  // since its creation or the last update, on a worker
    struct weir__runs runs;   // of a graph of the backend's
    bool is_native;           // the rest is not used then
    bool calls_host;
    uint32_t node_count;
    uint32_t lane_count; // 0: one branch
    struct weir__replay_node *nodes;
    struct weir__replay_lane *lanes;
    uint64_t ended;      // the record after the last launch in lane 0; 0: none
    uint64_t recoveries; // of queues, when the lanes had no failure
};

// A launch on its way: the queue that it was submitted to, and the launch itself.
struct weir__replay_launch {
    const struct weir_link *next;
    struct weir__replay *replay;
    weir_queue *queue;
    const struct weir_operation *operation;
    const struct weir__replay_end *end; // NULL: it is not held, so it has no host calls
};

// replay_run.c

// Submits all nodes of a launch, and what orders them. Allocates nothing.
weir_status weir__replay_run(const struct weir__replay_launch *launch);

#endif
