// Replays graphs for a backend that has none of them: see the header.
#include "core/queue/delivery.h"

#include <stdatomic.h>
#include <string.h>

#include <weir/module/module.h>

#include "base/lock.h"
#include "base/thread.h"
#include "core/object/comm.h"
#include "core/queue/node_call.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

// The submission of a launch's nodes to a backend that has no graph of them: see delivery.h.

// An update, which may wait for held launches.
struct weir__replay_pending {
    struct weir__replay_pending *next;
    uint32_t launches; // the number of these launches
    uint32_t index;
    struct weir_graph_node node;
    struct weir_operation *owned;    // the memory that `node.operation` points to
    struct weir__node_target target; // of a call
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
    const uint32_t *dependencies; // the graph's
    bool is_awaited;              // waited for by a node of another branch, or by the end
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
    struct weir__runs runs;
    bool is_native; // the rest is not used then
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
};

static weir_status record(const struct weir_link *next, weir_queue *queue, uint64_t sequence,
                          uint32_t flags)
{
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_RECORD, WEIR_OPERATION_INTERNAL | flags,
                          __FILE__, __LINE__);
    operation.sequence = sequence;
    return next->ops->queue_submit(next, queue, &operation);
}

static weir_status wait_on(const struct weir_link *next, weir_queue *queue, uint64_t own,
                           weir_queue *producer, uint64_t sequence, uint32_t flags)
{
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_WAIT, WEIR_OPERATION_INTERNAL | flags,
                          __FILE__, __LINE__);
    operation.sequence = own;
    operation.u.wait.event = (struct weir_event){producer->member.object.id, sequence};
    operation.u.wait.producer = producer;
    return next->ops->queue_submit(next, queue, &operation);
}

static weir_status explain(uint32_t index, const struct weir_operation *operation,
                           weir_status status)
{
    return weir__node_explain(index, weir_operation_kind_name(operation->kind), operation->file,
                              operation->line, status);
}

static weir_status record_lane(const struct weir_link *next, struct weir__replay_lane *lane)
{
    return record(next, lane->queue, ++lane->sequence, 0);
}

// After a failure parts may be running, and a wait for the launching queue must include
// them. As a last resort this function waits for them on the host.
static void abandon(const struct weir_link *next, struct weir__replay *replay, weir_queue *queue,
                    uint64_t sequence, weir_status status)
{
    const struct weir_error cause = weir__error_of(status);
    for (uint32_t i = 0; i < replay->lane_count; i++) {
        struct weir__replay_lane *lane = &replay->lanes[i];
        if (lane->queue &&
            (record_lane(next, lane) < 0 ||
             wait_on(next, queue, sequence, lane->queue, lane->sequence, WEIR_OPERATION_PART) < 0))
            next->ops->queue_finish(next, lane->queue);
    }
    weir__error_set(&cause);
}

// What earlier nodes do is done before the host reads their results.
static weir_status run_collective(const struct weir__replay_launch *launch, weir_queue *lane,
                                  const struct weir_operation *part)
{
    weir_comm *comm = part->u.collective.comm;
    weir_status status =
        comm->ops->takes(part) ? WEIR_OK : launch->next->ops->queue_finish(launch->next, lane);
    return status < 0 ? status : comm->ops->run_node(launch->queue, launch->operation, lane, part);
}

// The submit lock that is held is the launching queue's. The node's function is the library's own: node_call.h.
static weir_status run_native(const struct weir__replay_launch *launch, weir_queue *queue,
                              const struct weir_operation *part)
{
    atomic_store_explicit(&launch->queue->in_native, true, memory_order_relaxed);
    const weir_status status = launch->next->ops->queue_submit(launch->next, queue, part);
    atomic_store_explicit(&launch->queue->in_native, false, memory_order_relaxed);
    return status;
}

static weir_status run_node(const struct weir__replay_launch *launch, weir_queue *queue,
                            const struct weir_operation *node, uint64_t sequence, uint32_t flags)
{
    struct weir_operation part = *node;
    weir_status status;
    part.sequence = sequence;
    part.flags |= flags;
    if (part.flags & WEIR_OPERATION_EMPTY)
        return WEIR_OK;
    switch (part.kind) {
    case WEIR_OPERATION_COLLECTIVE:
        return run_collective(launch, queue, &part);
    case WEIR_OPERATION_NATIVE:
        return run_native(launch, queue, &part);
    case WEIR_OPERATION_HOST_CALL:
        status = launch->next->ops->queue_finish(launch->next, queue);
        return status < 0 ? status
                          : weir__call_host(part.u.host_call.function, part.u.host_call.user, NULL);
    case WEIR_OPERATION_NOTE:
        return WEIR_OK;
    default:
        return launch->next->ops->queue_submit(launch->next, queue, &part);
    }
}

// One branch, on the queue that launches.
static weir_status replay_row(const struct weir__replay_launch *launch)
{
    const struct weir__replay *replay = launch->replay;
    const uint64_t sequence = launch->operation->sequence;
    const uint32_t flags = WEIR_OPERATION_PART;
    for (uint32_t i = 0; i < replay->node_count; i++) {
        const struct weir_operation *operation = replay->nodes[i].operation;
        weir_status status = run_node(launch, launch->queue, operation, sequence, flags);
        if (status < 0)
            return explain(i, operation, status);
    }
    return record(launch->next, launch->queue, sequence, 0);
}

// After earlier work of the launching queue, and after the previous launch. Only nodes
// without dependencies need these waits.
static weir_status begin_lane(const struct weir_link *next, struct weir__replay *replay,
                              struct weir__replay_lane *lane, weir_queue *queue, uint64_t sequence)
{
    struct weir__replay_lane *home = &replay->lanes[0];
    if (lane->begun)
        return WEIR_OK;
    lane->begun = true;
    weir_status status = wait_on(next, lane->queue, ++lane->sequence, queue, sequence, 0);
    if (status == WEIR_OK && lane != home && replay->ended != 0)
        status = wait_on(next, lane->queue, ++lane->sequence, home->queue, replay->ended, 0);
    return status;
}

static weir_status replay_node(const struct weir__replay_launch *launch,
                               struct weir__replay_node *node)
{
    const struct weir_link *next = launch->next;
    struct weir__replay *replay = launch->replay;
    struct weir__replay_lane *lane = &replay->lanes[node->branch];
    weir_status status = WEIR_OK;
    if (node->dependency_count == 0)
        status = begin_lane(next, replay, lane, launch->queue, launch->operation->sequence);
    for (uint32_t i = 0; i < node->dependency_count && status == WEIR_OK; i++) {
        const struct weir__replay_node *other = &replay->nodes[node->dependencies[i]];
        if (other->branch != node->branch)
            status = wait_on(next, lane->queue, ++lane->sequence,
                             replay->lanes[other->branch].queue, other->recorded, 0);
    }
    if (status == WEIR_OK)
        status = run_node(launch, lane->queue, node->operation, ++lane->sequence, 0);
    if (status == WEIR_OK && node->is_awaited) {
        status = record_lane(next, lane);
        node->recorded = lane->sequence;
    }
    node->is_submitted = true;
    return status < 0 ? explain((uint32_t)(node - replay->nodes), node->operation, status) : status;
}

static bool waits_on_host(const struct weir_operation *operation)
{
    return operation->kind == WEIR_OPERATION_COLLECTIVE ||
           operation->kind == WEIR_OPERATION_HOST_CALL;
}

static bool can_submit(const struct weir__replay *replay, const struct weir__replay_node *node)
{
    bool can = !node->is_submitted && !waits_on_host(node->operation);
    for (uint32_t i = 0; i < node->dependency_count && can; i++)
        can = replay->nodes[node->dependencies[i]].is_submitted;
    return can;
}

// Before the host waits in node `index`: later nodes that need not wait for one such, so that the device
// is busy meanwhile.
static weir_status submit_ahead(const struct weir__replay_launch *launch, uint32_t index)
{
    struct weir__replay *replay = launch->replay;
    weir_status status = WEIR_OK;
    for (uint32_t i = index + 1; i < replay->node_count && status == WEIR_OK; i++)
        if (can_submit(replay, &replay->nodes[i]))
            status = replay_node(launch, &replay->nodes[i]);
    for (uint32_t i = 0; i < replay->lane_count && status == WEIR_OK; i++)
        if (replay->lanes[i].queue)
            status = launch->next->ops->queue_flush(launch->next, replay->lanes[i].queue);
    return status;
}

static weir_status replay_nodes(const struct weir__replay_launch *launch)
{
    struct weir__replay *replay = launch->replay;
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < replay->node_count; i++)
        replay->nodes[i].is_submitted = false;
    for (uint32_t i = 0; i < replay->node_count && status == WEIR_OK; i++) {
        struct weir__replay_node *node = &replay->nodes[i];
        if (waits_on_host(node->operation))
            status = submit_ahead(launch, i);
        if (status == WEIR_OK && !node->is_submitted)
            status = replay_node(launch, node);
    }
    return status;
}

// Branch 0 waits for the ends of the others, and the launching queue waits for branch 0.
static weir_status join_lanes(const struct weir_link *next, struct weir__replay *replay,
                              weir_queue *queue, uint64_t sequence)
{
    struct weir__replay_lane *home = &replay->lanes[0];
    weir_status status = begin_lane(next, replay, home, queue, sequence);
    for (uint32_t i = 0; i < replay->node_count && status == WEIR_OK; i++) {
        const struct weir__replay_node *node = &replay->nodes[i];
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

// A queue that launches is recovered without its lanes, which no program knows. So the first launch after
// any recovery has the backend end a failure that they may have, which would fail all later launches. It
// does not wait for that: while the launch before it runs, a later one will.
static void recover_lanes(const struct weir_link *next, struct weir__replay *replay)
{
    const uint64_t recoveries = weir__completion_recoveries();
    weir_queue *home = replay->lanes[0].queue;
    if (replay->recoveries == recoveries)
        return;
    const struct weir_error saved = *weir_last_error();
    if (replay->ended == 0 || next->ops->event_query(next, home, replay->ended) != WEIR_NOT_READY) {
        replay->recoveries = recoveries;
        for (uint32_t i = 0; i < replay->lane_count; i++)
            if (replay->lanes[i].queue)
                (void)next->ops->queue_finish(next, replay->lanes[i].queue);
    }
    weir__error_set(&saved);
}

static weir_status replay_lanes(const struct weir__replay_launch *launch)
{
    struct weir__replay *replay = launch->replay;
    const uint64_t sequence = launch->operation->sequence;
    for (uint32_t i = 0; i < replay->lane_count; i++)
        replay->lanes[i].begun = false;
    recover_lanes(launch->next, replay);
    weir_status status = record(launch->next, launch->queue, sequence, WEIR_OPERATION_PART);
    if (status == WEIR_OK)
        status = replay_nodes(launch);
    if (status == WEIR_OK)
        status = join_lanes(launch->next, replay, launch->queue, sequence);
    if (status < 0)
        abandon(launch->next, replay, launch->queue, sequence, status);
    return status;
}

// One thread at a time launches or updates: without a hold it has the
// front end's lock of the graph, and a worker that delivers a launch has the replay's,
// under which updates check for held launches.

WEIR_DATA_OF(replay_of, struct weir__replay, weir_graph)

// Launches that have not ended: node_call.h.

// Of a graph that is being made. False: out of memory; finishing is legal.
static bool init_runs(struct weir__runs *runs, const struct weir_graph_setup *setup,
                      bool in_backend)
{
    weir_lock_init(&runs->lock, &weir__locks[WEIR__LOCK_RUNS]);
    runs->in_backend = in_backend;
    runs->targets = weir__allocate(setup->node_count * sizeof *runs->targets);
    for (uint32_t i = 0; i < setup->node_count && runs->targets; i++) {
        const struct weir_operation *operation = weir_graph_node_at(setup->nodes, i)->operation;
        if (!weir__has_node_call(operation))
            continue;
        struct weir__node_call *call = weir__node_call_of(operation);
        call->runs = runs;
        call->number = runs->calls++;
        runs->targets[call->number] = call->latest;
        runs->host_calls += operation->kind == WEIR_OPERATION_HOST_CALL;
    }
    return runs->targets;
}

// Of launches that will never run: their device is lost.
static void finish_runs(struct weir__runs *runs)
{
    for (uint32_t i = 0; i < runs->count; i++)
        weir__registry_unpin(weir__run_at(runs, i)->queue);
    weir_lock_finish(&runs->lock);
    weir__release(runs->targets);
    weir__release(runs->ring);
}

// With the lock held.
static bool make_room(struct weir__runs *runs)
{
    struct weir__runs larger = *runs;
    if (runs->count < runs->capacity)
        return true;
    larger.first = 0;
    larger.capacity = runs->capacity ? 2 * runs->capacity : 8;
    larger.ring = weir__allocate(larger.capacity * weir__run_bytes(runs));
    if (!larger.ring)
        return false;
    for (uint32_t i = 0; i < runs->count; i++)
        memcpy(weir__run_at(&larger, i), weir__run_at(runs, i), weir__run_bytes(runs));
    weir__release(runs->ring);
    runs->ring = larger.ring;
    runs->first = 0;
    runs->capacity = larger.capacity;
    return true;
}

// Before a launch goes to the backend, with the queue in use. Allocates only if more launches are under way than ever.
// False: out of memory.
static bool add_run(struct weir__runs *runs, const weir_queue *queue,
                    const struct weir_operation *launch)
{
    weir_lock_take(&runs->lock);
    const bool room = make_room(runs);
    if (room) {
        struct weir__run *run = weir__run_at(runs, runs->count++);
        *run = (struct weir__run){
            .queue = weir__registry_pin(queue->member.object.id),
            .sequence = launch->sequence,
            .file = launch->file,
            .line = launch->line,
            .left = runs->host_calls,
        };
        memcpy(run->targets, runs->targets, runs->calls * sizeof *runs->targets);
    }
    weir_lock_release(&runs->lock);
    return room;
}

// The backend has refused the last one.
static void drop_run(struct weir__runs *runs)
{
    weir_lock_take(&runs->lock);
    weir_queue *queue = weir__run_at(runs, --runs->count)->queue;
    weir_lock_release(&runs->lock);
    weir__registry_unpin(queue);
}

// Creation and destruction.

static bool copy_nodes(struct weir__replay *replay, const struct weir_graph_setup *setup)
{
    replay->nodes = weir__allocate(setup->node_count * sizeof *replay->nodes);
    if (!replay->nodes)
        return false;
    for (uint32_t i = 0; i < setup->node_count; i++) {
        struct weir__replay_node *node = &replay->nodes[i];
        const struct weir_graph_node *from = weir_graph_node_at(setup->nodes, i);
        replay->node_count++;
        *node = (struct weir__replay_node){.operation = weir__operation_clone(from->operation),
                                           .branch = from->branch,
                                           .dependency_count = from->dependency_count,
                                           .dependencies = from->dependencies,
                                           .is_leaf = true};
        if (!node->operation)
            return false;
        for (uint32_t d = 0; d < node->dependency_count; d++) {
            struct weir__replay_node *other = &replay->nodes[node->dependencies[d]];
            other->is_leaf = false;
            if (other->branch != node->branch)
                other->is_awaited = true;
        }
    }
    return true;
}

static bool forks(const struct weir__replay *replay)
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
                              struct weir__replay *replay, uint32_t branch_count)
{
    replay->lanes = weir__allocate(branch_count * sizeof *replay->lanes);
    if (!replay->lanes)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the branches of a graph");
    replay->lane_count = branch_count;
    weir_status status = open_lane(next, device, label, &replay->lanes[0].queue);
    for (uint32_t i = 0; i < replay->node_count && status == WEIR_OK; i++) {
        struct weir__replay_node *node = &replay->nodes[i];
        if (!replay->lanes[node->branch].queue)
            status = open_lane(next, device, label, &replay->lanes[node->branch].queue);
        if (node->is_leaf && node->branch != 0)
            node->is_awaited = true;
    }
    return status;
}

static void drop_pending(struct weir__replay_pending *pending)
{
    weir__release(pending->owned);
    weir__release(pending);
}

static void finish(const struct weir_link *next, struct weir__replay *replay)
{
    for (uint32_t i = 0; i < replay->lane_count; i++) {
        weir_queue *queue = replay->lanes[i].queue;
        if (!queue)
            continue;
        next->ops->queue_destroy(next, queue);
        weir__member_free(&queue->member);
    }
    for (uint32_t i = 0; i < replay->node_count; i++)
        weir__release(replay->nodes[i].operation);
    for (struct weir__replay_pending *pending = replay->first; pending;) {
        struct weir__replay_pending *following = pending->next;
        drop_pending(pending);
        pending = following;
    }
    weir__release(replay->lanes);
    weir__release(replay->nodes);
    finish_runs(&replay->runs);
    weir_lock_finish(&replay->lock);
    weir__release(replay);
}

bool weir__replay_is_native(const struct weir_link *backend, weir_device *device,
                            const struct weir_graph_setup *setup)
{
    bool native = backend->ops->graph_create != NULL;
    for (uint32_t i = 0; i < setup->node_count && native; i++) {
        const struct weir_operation *operation = weir_graph_node_at(setup->nodes, i)->operation;
        if (operation->kind == WEIR_OPERATION_COLLECTIVE)
            native = operation->u.collective.comm->ops->captures(operation);
        if (weir__has_node_call(operation))
            native = native && backend->ops->graph_takes &&
                     backend->ops->graph_takes(backend, device, operation);
    }
    return native;
}

weir_status weir__replay_create(const struct weir_link *link, weir_device *device,
                                weir_graph *graph, const struct weir_graph_setup *setup,
                                void **out_data)
{
    struct weir__replay *replay = weir__allocate(sizeof *replay);
    if (!replay)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a graph");
    weir_lock_init(&replay->lock, &weir__locks[WEIR__LOCK_REPLAY]);
    replay->is_native = weir__replay_is_native(link->next, device, setup);
    replay->recoveries = weir__completion_recoveries();
    weir_status status = WEIR_OK;
    if (!init_runs(&replay->runs, setup, replay->is_native) ||
        (!replay->is_native && !copy_nodes(replay, setup)))
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

// A call that the backend refuses does what it did.
static weir_status apply(const struct weir_link *link, weir_graph *graph,
                         struct weir__replay *replay, struct weir__replay_pending *update)
{
    const struct weir_operation *operation = update->node.operation;
    struct weir__node_call *call =
        weir__has_node_call(operation) ? weir__node_call_of(operation) : NULL;
    struct weir__node_target before;
    weir_status status = WEIR_OK;
    if (call)
        before = weir__node_call_set(call, update->target);
    // A graph of the backend's calls a function of the library's for a host call, before the update and after it.
    if (replay->is_native && operation->kind != WEIR_OPERATION_HOST_CALL) {
        atomic_store(&replay->is_launched, false);
        status = link->next->ops->graph_update(link->next, graph, update->index, &update->node);
    } else if (!replay->is_native) {
        weir__release(replay->nodes[update->index].operation);
        replay->nodes[update->index].operation = update->owned;
        update->owned = NULL;
    }
    if (call && status < 0)
        (void)weir__node_call_set(call, before);
    return status;
}

// NULL: out of memory.
static struct weir__replay_pending *make_pending(uint32_t index, const struct weir_graph_node *node)
{
    struct weir__replay_pending *update = weir__allocate(sizeof *update);
    if (!update)
        return NULL;
    update->index = index;
    update->owned = weir__operation_clone(node->operation);
    if (!update->owned) {
        drop_pending(update);
        return NULL;
    }
    if (weir__has_node_call(update->owned))
        update->target = weir__node_call_of(update->owned)->latest;
    // A plugin may have made the node with its own headers.
    weir_sized_write_back(&update->node, sizeof update->node, node, node->struct_size);
    update->node.operation = update->owned;
    update->node.dependencies = NULL; // they never change
    update->node.dependency_count = 0;
    return update;
}

weir_status weir__replay_update(const struct weir_link *link, weir_graph *graph, uint32_t index,
                                const struct weir_graph_node *node)
{
    struct weir__replay *replay = replay_of(link, graph);
    struct weir__replay_pending *update = make_pending(index, node);
    weir_status status = WEIR_OK;
    if (!update)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for an update of a graph");
    weir_lock_take(&replay->lock);
    const bool held = replay->held > 0;
    if (held) {
        update->launches = replay->held;
        *(replay->last ? &replay->last->next : &replay->first) = update;
        replay->last = update;
    } else {
        status = apply(link, graph, replay, update);
    }
    weir_lock_release(&replay->lock);
    if (!held)
        drop_pending(update);
    return status;
}

void weir__replay_hold(const struct weir_link *link, const struct weir_operation *operation)
{
    struct weir__replay *replay = replay_of(link, operation->u.graph.graph);
    weir_lock_take(&replay->lock);
    replay->held++;
    weir_lock_release(&replay->lock);
}

void weir__replay_unhold(const struct weir_link *link, const struct weir_operation *operation)
{
    weir_graph *graph = operation->u.graph.graph;
    struct weir__replay *replay = replay_of(link, graph);
    weir_lock_take(&replay->lock);
    replay->held--;
    for (struct weir__replay_pending *at = replay->first; at; at = at->next)
        at->launches--;
    while (replay->first && replay->first->launches == 0) {
        struct weir__replay_pending *pending = replay->first;
        replay->first = pending->next;
        if (!replay->first)
            replay->last = NULL;
        weir_status status = apply(link, graph, replay, pending);
        if (status < 0)
            replay->broken = weir__error_of(status);
        drop_pending(pending);
    }
    weir_lock_release(&replay->lock);
}

// Launches.

static weir_status launch_native(const struct weir__replay_launch *launch)
{
    const struct weir_operation *operation = launch->operation;
    struct weir__runs *runs = &launch->replay->runs;
    weir_status status;
    if (runs->host_calls > 0 && !add_run(runs, launch->queue, operation))
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the launch of a graph");
    if (operation->flags & WEIR_OPERATION_COLLECTIVES) {
        status = operation->u.graph_comms.comms[0].comm->ops->launch(launch->queue, operation,
                                                                     launch->next);
        if (status == WEIR_OK)
            atomic_store(&launch->replay->is_launched, true);
    } else {
        status = launch->next->ops->queue_submit(launch->next, launch->queue, operation);
    }
    if (status < 0 && runs->host_calls > 0)
        drop_run(runs);
    return status;
}

bool weir__replay_is_in_backend(const struct weir_link *link,
                                const struct weir_operation *operation)
{
    return replay_of(link, operation->u.graph.graph)->is_native;
}

bool weir__replay_waits(const struct weir_link *link, const struct weir_operation *operation)
{
    const struct weir__replay *replay = replay_of(link, operation->u.graph.graph);
    if (!replay->is_native && replay->runs.host_calls > 0)
        return true;
    return operation->flags & WEIR_OPERATION_COLLECTIVES &&
           !(replay->is_native && atomic_load(&replay->is_launched) &&
             operation->u.graph_comms.comms[0].comm->ops->launch_is_ready(operation));
}

// While a launch waits for other ranks, or runs host calls, updates go on: they see that it is held.
weir_status weir__replay_launch(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    struct weir__replay *replay = replay_of(link, operation->u.graph.graph);
    const struct weir__replay_launch launch = {link->next, replay, queue, operation};
    const bool alone = operation->flags & WEIR_OPERATION_COLLECTIVES || replay->runs.host_calls > 0;
    if (replay->broken.status < 0)
        return weir__error_set(&replay->broken);
    if (replay->is_native)
        return launch_native(&launch);
    if (!alone)
        weir_lock_take(&replay->lock);
    // All nodes, and what orders them. Allocates nothing.
    weir_status status = replay->lane_count > 0 ? replay_lanes(&launch) : replay_row(&launch);
    if (!alone)
        weir_lock_release(&replay->lock);
    return status;
}
