// See the header. One thread at a time launches or updates: without a hold it has the
// front end's lock of the graph, and a worker that delivers a launch has the replay's,
// under which updates check for held launches. A launch allocates nothing.
#include "core/queue/replay.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/object/comm.h"
#include "core/queue/held.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"

// An update that waits for held launches.
struct pending {
    struct pending *next;
    uint32_t launches; // the number of these launches
    uint32_t index;
    struct weir_graph_node node;
    struct weir_operation *owned; // the memory that `node.operation` points to
};

// A branch of a graph that forks.
struct lane {
    weir_queue *queue; // NULL: no node is on it
    uint64_t sequence; // of its last operation
    bool begun;        // in this launch
};

struct node {
    struct weir_operation *operation;
    uint32_t branch;
    uint32_t dependency_count;
    uint32_t *dependencies;
    bool is_awaited; // waited for by a node of another branch, or by the end
    bool is_leaf;
    bool is_submitted; // in this launch
    uint64_t recorded; // the record after it in this launch
};

struct replay {
    struct weir_lock lock;
    uint32_t held; // launches
    struct pending *first;
    struct pending *last;
    struct weir_error broken; // an update that failed after its call; status 0: none
    atomic_bool is_launched;  // since its creation or the last update, on a worker
    bool is_native;           // the rest is not used then
    uint32_t node_count;
    uint32_t lane_count; // 0: one branch
    struct node *nodes;
    struct lane *lanes;
    uint64_t ended; // the record after the last launch in lane 0; 0: none
};

static struct replay *replay_of(const struct weir_link *link, const weir_graph *graph)
{
    return weir_graph_data(link, graph);
}

// Creation and destruction.

static bool copy_node(struct node *node, const struct weir_graph_node *from)
{
    const uint32_t count = from->dependency_count;
    node->operation = weir__operation_clone(from->operation);
    node->dependencies = weir__allocate(count * sizeof *node->dependencies);
    if (!node->operation || !node->dependencies)
        return false;
    node->branch = from->branch;
    node->dependency_count = count;
    node->is_leaf = true;
    for (uint32_t i = 0; i < count; i++)
        node->dependencies[i] = from->dependencies[i];
    return true;
}

static bool copy_nodes(struct replay *replay, const struct weir_graph_setup *setup)
{
    replay->nodes = weir__allocate(setup->node_count * sizeof *replay->nodes);
    if (!replay->nodes)
        return false;
    for (uint32_t i = 0; i < setup->node_count; i++) {
        struct node *node = &replay->nodes[i];
        replay->node_count++;
        if (!copy_node(node, weir_graph_node_at(setup->nodes, i)))
            return false;
        for (uint32_t d = 0; d < node->dependency_count; d++) {
            struct node *other = &replay->nodes[node->dependencies[d]];
            other->is_leaf = false;
            if (other->branch != node->branch)
                other->is_awaited = true;
        }
    }
    return true;
}

static bool forks(const struct replay *replay)
{
    for (uint32_t i = 1; i < replay->node_count; i++)
        if (replay->nodes[i].branch != replay->nodes[0].branch)
            return true;
    return false;
}

// A queue that only the backend knows.
static weir_status open_lane(const struct weir_link *next, weir_device *device, const char *label,
                             weir_queue **out_queue)
{
    const struct weir_queue_setup setup = {.struct_size = sizeof setup};
    weir_queue *queue = weir__member_allocate(device, &weir__queue_class, sizeof *queue, label);
    if (!queue)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a branch of a graph");
    weir_status status = next->ops->queue_create(next, device, queue, &setup,
                                                 &queue->member.object.data[next->index]);
    if (status < 0) {
        weir__member_free(&queue->member);
        return status;
    }
    queue->delivery.backend = next; // for the copies of collectives
    *out_queue = queue;
    return WEIR_OK;
}

// Branch 0 always has one: the launching queue waits for it.
static weir_status open_lanes(const struct weir_link *next, weir_device *device, const char *label,
                              struct replay *replay, uint32_t branch_count)
{
    replay->lanes = weir__allocate(branch_count * sizeof *replay->lanes);
    if (!replay->lanes)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the branches of a graph");
    replay->lane_count = branch_count;
    weir_status status = open_lane(next, device, label, &replay->lanes[0].queue);
    for (uint32_t i = 0; i < replay->node_count && status == WEIR_OK; i++) {
        struct node *node = &replay->nodes[i];
        if (!replay->lanes[node->branch].queue)
            status = open_lane(next, device, label, &replay->lanes[node->branch].queue);
        if (node->is_leaf && node->branch != 0)
            node->is_awaited = true;
    }
    return status;
}

static void drop_pending(struct pending *pending)
{
    weir__release(pending->owned);
    weir__release(pending);
}

static void finish(const struct weir_link *next, struct replay *replay)
{
    for (uint32_t i = 0; i < replay->lane_count; i++) {
        weir_queue *queue = replay->lanes[i].queue;
        if (!queue)
            continue;
        next->ops->queue_destroy(next, queue);
        weir__member_free(&queue->member);
    }
    for (uint32_t i = 0; i < replay->node_count; i++) {
        weir__release(replay->nodes[i].operation);
        weir__release(replay->nodes[i].dependencies);
    }
    for (struct pending *pending = replay->first; pending;) {
        struct pending *following = pending->next;
        drop_pending(pending);
        pending = following;
    }
    weir__release(replay->lanes);
    weir__release(replay->nodes);
    weir_lock_finish(&replay->lock);
    weir__release(replay);
}

bool weir__replay_is_native(const struct weir_link *backend, const struct weir_graph_setup *setup)
{
    bool native = backend->ops->graph_create != NULL;
    for (uint32_t i = 0; i < setup->node_count && native; i++) {
        const struct weir_operation *operation = weir_graph_node_at(setup->nodes, i)->operation;
        if (operation->kind == WEIR_OPERATION_COLLECTIVE)
            native = operation->u.collective.comm->ops->captures(operation);
    }
    return native;
}

weir_status weir__replay_create(const struct weir_link *link, weir_device *device,
                                weir_graph *graph, const struct weir_graph_setup *setup,
                                void **out_data)
{
    struct replay *replay = weir__allocate(sizeof *replay);
    if (!replay)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a graph");
    weir_lock_init(&replay->lock, &weir__locks[WEIR__LOCK_REPLAY]);
    replay->is_native = weir__replay_is_native(link->next, setup);
    weir_status status = WEIR_OK;
    if (!replay->is_native && !copy_nodes(replay, setup))
        status = weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the nodes of a graph");
    // A backend with graphs is not told of earlier launches, which only branches wait for then.
    else if (!replay->is_native && (forks(replay) || link->next->ops->graph_create))
        status = open_lanes(link->next, device, weir_graph_object(graph)->label, replay,
                            setup->branch_count);
    if (status < 0) {
        finish(link->next, replay);
        return status;
    }
    *out_data = replay;
    return WEIR_OK;
}

void weir__replay_destroy(const struct weir_link *link, weir_graph *graph)
{
    finish(link->next, replay_of(link, graph));
}

// Updates.

// On success with a backend without graphs, the replay takes ownership of `owned`.
static weir_status apply(const struct weir_link *link, weir_graph *graph, struct replay *replay,
                         uint32_t index, const struct weir_graph_node *node,
                         struct weir_operation **owned)
{
    atomic_store(&replay->is_launched, false);
    if (replay->is_native)
        return link->next->ops->graph_update(link->next, graph, index, node);
    weir__release(replay->nodes[index].operation);
    replay->nodes[index].operation = *owned;
    *owned = NULL;
    return WEIR_OK;
}

static weir_status postpone(struct replay *replay, uint32_t index,
                            const struct weir_graph_node *node, struct weir_operation **owned)
{
    struct pending *pending = weir__allocate(sizeof *pending);
    if (!pending)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for an update of a graph");
    *pending = (struct pending){
        .launches = replay->held,
        .index = index,
        .owned = *owned,
    };
    // A plugin may have made the node with its own headers.
    weir_sized_write_back(&pending->node, sizeof pending->node, node, node->struct_size);
    pending->node.operation = *owned;
    pending->node.dependencies = NULL; // they never change
    pending->node.dependency_count = 0;
    *owned = NULL;
    if (replay->last)
        replay->last->next = pending;
    else
        replay->first = pending;
    replay->last = pending;
    return WEIR_OK;
}

weir_status weir__replay_update(const struct weir_link *link, weir_graph *graph, uint32_t index,
                                const struct weir_graph_node *node)
{
    struct replay *replay = replay_of(link, graph);
    struct weir_operation *owned = weir__operation_clone(node->operation);
    if (!owned)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for an update of a graph");
    weir_lock_take(&replay->lock);
    weir_status status = replay->held ? postpone(replay, index, node, &owned)
                                      : apply(link, graph, replay, index, node, &owned);
    weir_lock_release(&replay->lock);
    weir__release(owned);
    return status;
}

void weir__replay_hold(const struct weir_link *link, const struct weir_operation *operation)
{
    struct replay *replay = replay_of(link, operation->u.graph.graph);
    weir_lock_take(&replay->lock);
    replay->held++;
    weir_lock_release(&replay->lock);
}

void weir__replay_unhold(const struct weir_link *link, const struct weir_operation *operation)
{
    weir_graph *graph = operation->u.graph.graph;
    struct replay *replay = replay_of(link, graph);
    weir_lock_take(&replay->lock);
    replay->held--;
    for (struct pending *at = replay->first; at; at = at->next)
        at->launches--;
    while (replay->first && replay->first->launches == 0) {
        struct pending *pending = replay->first;
        replay->first = pending->next;
        if (!replay->first)
            replay->last = NULL;
        weir_status status =
            apply(link, graph, replay, pending->index, &pending->node, &pending->owned);
        if (status < 0) {
            replay->broken = *weir_last_error();
            replay->broken.status = status;
        }
        drop_pending(pending);
    }
    weir_lock_release(&replay->lock);
}

// Replay.

static weir_status submit(const struct weir_link *next, weir_queue *queue,
                          const struct weir_operation *operation, uint64_t sequence, uint32_t flags)
{
    struct weir_operation part = *operation;
    part.sequence = sequence;
    part.flags |= flags;
    return next->ops->queue_submit(next, queue, &part);
}

static weir_status record(const struct weir_link *next, weir_queue *queue, uint64_t sequence,
                          uint32_t flags)
{
    const struct weir_operation operation = {
        .struct_size = sizeof operation,
        .kind = WEIR_OPERATION_RECORD,
        .flags = WEIR_OPERATION_INTERNAL,
        .file = __FILE__,
        .line = __LINE__,
    };
    return submit(next, queue, &operation, sequence, flags);
}

static weir_status wait_on(const struct weir_link *next, weir_queue *queue, uint64_t own,
                           weir_queue *producer, uint64_t sequence, uint32_t flags)
{
    const struct weir_operation operation = {
        .struct_size = sizeof operation,
        .kind = WEIR_OPERATION_WAIT,
        .flags = WEIR_OPERATION_INTERNAL,
        .file = __FILE__,
        .line = __LINE__,
        .u.wait = {{producer->member.object.id, sequence}, producer},
    };
    return submit(next, queue, &operation, own, flags);
}

// Adds the node and its line to the error.
static weir_status explain(uint32_t index, const struct weir_operation *operation,
                           weir_status status)
{
    const struct weir_error cause = weir__error_of(status);
    struct weir_error detail = cause;
    snprintf(detail.message, sizeof detail.message, "node %u, a %s captured at %s:%d: %.400s",
             (unsigned)index, weir__operation_name(operation->kind),
             operation->file ? operation->file : "", operation->line, cause.message);
    return weir__error_set(&detail);
}

// A launch on its way: the queue that it was submitted to, and the launch itself.
struct launch {
    const struct weir_link *next;
    struct replay *replay;
    weir_queue *queue;
    const struct weir_operation *operation;
};

// What earlier nodes do is done before the host reads their results.
static weir_status run_collective(const struct launch *launch, weir_queue *lane,
                                  const struct weir_operation *node, uint64_t sequence,
                                  uint32_t flags)
{
    struct weir_operation part = *node;
    weir_comm *comm = node->u.collective.comm;
    part.sequence = sequence;
    part.flags |= flags;
    weir_status status =
        comm->ops->takes(node) ? WEIR_OK : launch->next->ops->queue_finish(launch->next, lane);
    return status < 0 ? status : comm->ops->run_node(launch->queue, launch->operation, lane, &part);
}

// One branch, on the queue that launches.
static weir_status replay_row(const struct launch *launch)
{
    const struct replay *replay = launch->replay;
    const uint64_t sequence = launch->operation->sequence;
    const uint32_t flags = WEIR_OPERATION_PART;
    for (uint32_t i = 0; i < replay->node_count; i++) {
        const struct weir_operation *operation = replay->nodes[i].operation;
        weir_status status = operation->kind == WEIR_OPERATION_COLLECTIVE
                                 ? run_collective(launch, launch->queue, operation, sequence, flags)
                                 : submit(launch->next, launch->queue, operation, sequence, flags);
        if (status < 0)
            return explain(i, operation, status);
    }
    return record(launch->next, launch->queue, sequence, 0);
}

static weir_status record_lane(const struct weir_link *next, struct lane *lane)
{
    return record(next, lane->queue, ++lane->sequence, 0);
}

// After earlier work of the launching queue, and after the previous launch. Only nodes
// without dependencies need these waits.
static weir_status begin_lane(const struct weir_link *next, struct replay *replay,
                              struct lane *lane, weir_queue *queue, uint64_t sequence)
{
    struct lane *home = &replay->lanes[0];
    if (lane->begun)
        return WEIR_OK;
    lane->begun = true;
    weir_status status = wait_on(next, lane->queue, ++lane->sequence, queue, sequence, 0);
    if (status == WEIR_OK && lane != home && replay->ended != 0)
        status = wait_on(next, lane->queue, ++lane->sequence, home->queue, replay->ended, 0);
    return status;
}

static weir_status submit_node(const struct launch *launch, struct lane *lane,
                               const struct weir_operation *operation)
{
    if (operation->kind == WEIR_OPERATION_COLLECTIVE)
        return run_collective(launch, lane->queue, operation, ++lane->sequence, 0);
    return submit(launch->next, lane->queue, operation, ++lane->sequence, 0);
}

static weir_status replay_node(const struct launch *launch, struct node *node)
{
    const struct weir_link *next = launch->next;
    struct replay *replay = launch->replay;
    struct lane *lane = &replay->lanes[node->branch];
    weir_status status = WEIR_OK;
    if (node->dependency_count == 0)
        status = begin_lane(next, replay, lane, launch->queue, launch->operation->sequence);
    for (uint32_t i = 0; i < node->dependency_count && status == WEIR_OK; i++) {
        const struct node *other = &replay->nodes[node->dependencies[i]];
        if (other->branch != node->branch)
            status = wait_on(next, lane->queue, ++lane->sequence,
                             replay->lanes[other->branch].queue, other->recorded, 0);
    }
    if (status == WEIR_OK)
        status = submit_node(launch, lane, node->operation);
    if (status == WEIR_OK && node->is_awaited) {
        status = record_lane(next, lane);
        node->recorded = lane->sequence;
    }
    node->is_submitted = true;
    return status < 0 ? explain((uint32_t)(node - replay->nodes), node->operation, status) : status;
}

static bool can_submit(const struct replay *replay, const struct node *node)
{
    bool can = !node->is_submitted && node->operation->kind != WEIR_OPERATION_COLLECTIVE;
    for (uint32_t i = 0; i < node->dependency_count && can; i++)
        can = replay->nodes[node->dependencies[i]].is_submitted;
    return can;
}

// Before the host waits in collective `index`: later nodes that need not wait for one, so that the device
// is busy meanwhile.
static weir_status submit_ahead(const struct launch *launch, uint32_t index)
{
    struct replay *replay = launch->replay;
    weir_status status = WEIR_OK;
    for (uint32_t i = index + 1; i < replay->node_count && status == WEIR_OK; i++)
        if (can_submit(replay, &replay->nodes[i]))
            status = replay_node(launch, &replay->nodes[i]);
    for (uint32_t i = 0; i < replay->lane_count && status == WEIR_OK; i++)
        if (replay->lanes[i].queue)
            status = launch->next->ops->queue_flush(launch->next, replay->lanes[i].queue);
    return status;
}

static weir_status replay_nodes(const struct launch *launch)
{
    struct replay *replay = launch->replay;
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < replay->node_count; i++)
        replay->nodes[i].is_submitted = false;
    for (uint32_t i = 0; i < replay->node_count && status == WEIR_OK; i++) {
        struct node *node = &replay->nodes[i];
        if (node->operation->kind == WEIR_OPERATION_COLLECTIVE)
            status = submit_ahead(launch, i);
        if (status == WEIR_OK && !node->is_submitted)
            status = replay_node(launch, node);
    }
    return status;
}

// Branch 0 waits for the ends of the others, and the launching queue waits for branch 0.
static weir_status join_lanes(const struct weir_link *next, struct replay *replay,
                              weir_queue *queue, uint64_t sequence)
{
    struct lane *home = &replay->lanes[0];
    weir_status status = begin_lane(next, replay, home, queue, sequence);
    for (uint32_t i = 0; i < replay->node_count && status == WEIR_OK; i++) {
        const struct node *node = &replay->nodes[i];
        if (node->is_leaf && node->branch != 0)
            status = wait_on(next, home->queue, ++home->sequence, replay->lanes[node->branch].queue,
                             node->recorded, 0);
    }
    if (status == WEIR_OK)
        status = record_lane(next, home);
    if (status == WEIR_OK) {
        replay->ended = home->sequence;
        status = wait_on(next, queue, sequence, home->queue, home->sequence, 0);
    }
    return status;
}

// After a failure parts may be running, and a wait for the launching queue must include
// them. As a last resort this function waits for them on the host.
static void abandon(const struct weir_link *next, struct replay *replay, weir_queue *queue,
                    uint64_t sequence)
{
    const struct weir_error cause = *weir_last_error();
    for (uint32_t i = 0; i < replay->lane_count; i++) {
        struct lane *lane = &replay->lanes[i];
        if (lane->queue &&
            (record_lane(next, lane) < 0 ||
             wait_on(next, queue, sequence, lane->queue, lane->sequence, WEIR_OPERATION_PART) < 0))
            next->ops->queue_finish(next, lane->queue);
    }
    weir__error_set(&cause);
}

static weir_status replay_lanes(const struct launch *launch)
{
    struct replay *replay = launch->replay;
    const uint64_t sequence = launch->operation->sequence;
    for (uint32_t i = 0; i < replay->lane_count; i++)
        replay->lanes[i].begun = false;
    weir_status status = record(launch->next, launch->queue, sequence, WEIR_OPERATION_PART);
    if (status == WEIR_OK)
        status = replay_nodes(launch);
    if (status == WEIR_OK)
        status = join_lanes(launch->next, replay, launch->queue, sequence);
    if (status < 0)
        abandon(launch->next, replay, launch->queue, sequence);
    return status;
}

static weir_status launch_native(const struct launch *launch)
{
    const struct weir_operation *operation = launch->operation;
    if (!(operation->flags & WEIR_OPERATION_COLLECTIVES))
        return launch->next->ops->queue_submit(launch->next, launch->queue, operation);
    weir_status status =
        operation->u.graph_comms.comms[0].comm->ops->launch(launch->queue, operation, launch->next);
    if (status == WEIR_OK)
        atomic_store(&launch->replay->is_launched, true);
    return status;
}

bool weir__replay_is_in_backend(const struct weir_link *link,
                                const struct weir_operation *operation)
{
    return replay_of(link, operation->u.graph.graph)->is_native;
}

bool weir__replay_is_ready(const struct weir_link *link, const struct weir_operation *operation)
{
    const struct replay *replay = replay_of(link, operation->u.graph.graph);
    return replay->is_native && atomic_load(&replay->is_launched) &&
           operation->u.graph_comms.comms[0].comm->ops->launch_is_ready(operation);
}

// While a launch with collectives waits for other ranks, updates go on: they see that it is held.
weir_status weir__replay_launch(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    struct replay *replay = replay_of(link, operation->u.graph.graph);
    const struct launch launch = {link->next, replay, queue, operation};
    const bool alone = operation->flags & WEIR_OPERATION_COLLECTIVES;
    if (replay->broken.status < 0)
        return weir__error_set(&replay->broken);
    if (replay->is_native)
        return launch_native(&launch);
    if (!alone)
        weir_lock_take(&replay->lock);
    weir_status status = replay->lane_count > 0 ? replay_lanes(&launch) : replay_row(&launch);
    if (!alone)
        weir_lock_release(&replay->lock);
    return status;
}
