// The submission of a launch's nodes to a backend that has no graph of them: see the header.
#include "core/queue/delivery.h"

#include "core/object/comm.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"

// An update, which may wait for held launches.
struct weir__replay_pending {
    STAILQ_ENTRY(weir__replay_pending) place;
    uint64_t after; // so many held launches that have ended
    uint32_t index;
    uint32_t branch;
    struct weir_operation *operation;
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

// What a host call calls.
struct target {
    weir_host_function function;
    void *user;
};

// A native call or a host call of a graph of the backend's.
struct call {
    struct weir__replay *replay;
    uint32_t index;                  // of its node
    uint32_t number;                 // among the host calls
    struct weir_operation operation; // a native call's, and for messages
};

// A launch of a graph of the backend's with host calls, which has not ended.
struct run {
    STAILQ_ENTRY(run) place;
    weir_queue *queue; // pinned; NULL: it is being finalized
    uint64_t sequence;
    const char *file;
    int line;
    uint32_t left; // host calls that have not been called
    bool failed;
    struct target targets[]; // of the graph's host calls
};

STAILQ_HEAD(runs, run);

struct weir__replay {
    struct weir_lock lock;
    uint64_t held;   // launches so far,
    uint64_t unheld; // and those of them that have ended
    STAILQ_HEAD(, weir__replay_pending) pending;
    struct weir_error broken; // an update that failed after its call; status 0: none
    atomic_bool is_launched;  // since its creation or the last update, on a worker
    uint32_t host_call_count;
    bool is_native; // a graph of the backend's: it uses the next ones, else those after them

    struct call *calls;         // of each node
    struct weir_lock runs_lock; // of what follows
    struct target *targets;     // of the host calls, for launches that the backend gets from now on
    struct runs runs;           // in the order of launches
    struct runs spare;

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

// Adds the node and its line to the error.
static weir_status explain(uint32_t index, const struct weir_operation *operation,
                           weir_status status)
{
    const struct weir_error cause = weir__error_of(status);
    struct weir_error detail = cause;
    snprintf(detail.message, sizeof detail.message, "node %u, a %s captured at %s:%d: %.400s",
             (unsigned)index, weir_operation_kind_name(operation->kind),
             operation->file ? operation->file : "", operation->line, cause.message);
    return weir__error_set(&detail);
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
        return weir__comm_of(&part)->ops->run_node(launch->queue, launch->operation, queue, &part);
    case WEIR_OPERATION_NATIVE:
        return weir__submit_native(launch->next, launch->queue, queue, &part);
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

// Functions of the program's in a graph of the backend's.
//
// The backend gets functions of this file in their place, which keep the program's from waiting and from calling back,
// and tell which node failed. It calls those of host calls on a thread of the driver's, which learns nothing of what
// they return. So the launches that have not ended are kept: as launches of a graph come one after the other, the first
// of them is the one that calls. Each has what the graph called when the backend got it, so that an update leaves it
// as it was.

// With the lock held.
static void end_run(struct weir__replay *replay, struct run *run)
{
    STAILQ_REMOVE(&replay->runs, run, run, place);
    STAILQ_INSERT_HEAD(&replay->spare, run, place);
    weir__registry_unpin(run->queue);
}

// Before a launch goes to the backend, with the queue in use. Allocates only if more launches are under way than ever.
// NULL: out of memory.
static struct run *add_run(const struct weir__replay_launch *launch)
{
    struct weir__replay *replay = launch->replay;
    const uint32_t count = replay->host_call_count;
    weir_lock_take(&replay->runs_lock);
    struct run *run = STAILQ_FIRST(&replay->spare);
    if (run)
        STAILQ_REMOVE_HEAD(&replay->spare, place);
    else
        run = weir__allocate(sizeof *run + count * sizeof run->targets[0]);
    if (run) {
        *run = (struct run){
            .queue = weir__registry_pin(launch->queue->member.object.id),
            .sequence = launch->operation->sequence,
            .file = launch->operation->file,
            .line = launch->operation->line,
            .left = count,
        };
        memcpy(run->targets, replay->targets, count * sizeof run->targets[0]);
        STAILQ_INSERT_TAIL(&replay->runs, run, place);
    }
    weir_lock_release(&replay->runs_lock);
    return run;
}

// On a thread of the driver's: it may wait for nothing, and no queue is finalized.
static weir_status run_host(void *user)
{
    const struct call *call = user;
    struct weir__replay *replay = call->replay;
    weir_lock_take(&replay->runs_lock);
    struct run *run = STAILQ_FIRST(&replay->runs); // only the last of its calls ends it
    const struct target target = run->targets[call->number];
    const bool failed = run->failed;
    weir_lock_release(&replay->runs_lock);
    weir_queue *queue = run->queue;
    weir_status status = WEIR_OK;
    if (!failed && (!queue || weir__completion_status(queue, run->sequence) == WEIR_OK))
        status = weir__call_host(target.function, target.user, NULL);
    if (queue)
        atomic_fetch_add(&queue->member.device->calls_ended, 1);
    if (status < 0 && queue) {
        struct weir_operation launch; // for messages
        weir__operation_begin(&launch, WEIR_OPERATION_GRAPH, 0, run->file, run->line);
        launch.sequence = run->sequence;
        weir__queue_fail(queue, &launch, explain(call->index, &call->operation, status));
    }
    weir_lock_take(&replay->runs_lock);
    run->failed = run->failed || status < 0;
    if (--run->left == 0)
        end_run(replay, run);
    weir_lock_release(&replay->runs_lock);
    return WEIR_OK;
}

static weir_status run_native(const struct weir_native_queue *native, void *user)
{
    const struct call *call = user;
    const weir_status status =
        weir__call_native(call->operation.u.native.function, call->operation.u.native.user, native);
    return status < 0 ? explain(call->index, &call->operation, status) : status;
}

// Puts a function of this file in the place of the operation's, which node `index` is or becomes.
static void wrap(struct weir__replay *replay, struct call *call, uint32_t index,
                 struct weir_operation *operation)
{
    *call = (struct call){.replay = replay, .index = index, .operation = *operation};
    if (operation->kind == WEIR_OPERATION_NATIVE) {
        operation->u.native.function = run_native;
        operation->u.native.user = call;
    } else if (operation->kind == WEIR_OPERATION_HOST_CALL) {
        call->number = replay->host_call_count++;
        replay->targets[call->number] =
            (struct target){operation->u.host_call.function, operation->u.host_call.user};
        operation->u.host_call.function = run_host;
        operation->u.host_call.user = call;
    }
}

static weir_status create_native(const struct weir_link *next, weir_device *device,
                                 weir_graph *graph, struct weir__replay *replay,
                                 const struct weir_graph_setup *setup)
{
    const size_t count = setup->node_count;
    struct weir_graph_node *nodes = weir__allocate(count * sizeof *nodes);
    struct weir_operation *operations = weir__allocate(count * sizeof *operations);
    struct weir_graph_setup inner = *setup;
    weir_status status = WEIR_ERROR_OUT_OF_MEMORY;
    replay->calls = weir__allocate(count * sizeof *replay->calls);
    replay->targets = weir__allocate(count * sizeof *replay->targets);
    if (nodes && operations && replay->calls && replay->targets) {
        for (uint32_t i = 0; i < count; i++) {
            nodes[i] = *weir_graph_node_at(setup->nodes, i);
            operations[i] = *nodes[i].operation;
            nodes[i].operation = &operations[i];
            wrap(replay, &replay->calls[i], i, &operations[i]);
        }
        inner.nodes = nodes;
        status = next->ops->graph_create(next, device, graph, &inner,
                                         &weir_graph_object(graph)->data[next->index]);
    } else {
        weir__report(status, NULL, "no memory for the nodes of a graph");
    }
    weir__release(nodes);
    weir__release(operations);
    return status;
}

// Creation and destruction.

// Stores whether they are of several branches. False: out of memory.
static bool copy_nodes(struct weir__replay *replay, const struct weir_graph_setup *setup,
                       bool *out_forks)
{
    replay->nodes = weir__allocate(setup->node_count * sizeof *replay->nodes);
    if (!replay->nodes)
        return false;
    for (uint32_t i = 0; i < setup->node_count; i++) {
        struct weir__replay_node *node = &replay->nodes[i];
        const struct weir_graph_node *from = weir_graph_node_at(setup->nodes, i);
        replay->node_count++;
        replay->host_call_count += from->operation->kind == WEIR_OPERATION_HOST_CALL;
        *out_forks = *out_forks || from->branch != weir_graph_node_at(setup->nodes, 0)->branch;
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
    weir__release(pending->operation);
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
    for (struct weir__replay_pending *at = STAILQ_FIRST(&replay->pending), *later; at; at = later) {
        later = STAILQ_NEXT(at, place);
        drop_pending(at);
    }
    while (!STAILQ_EMPTY(&replay->runs)) // they will never run: their device is lost
        end_run(replay, STAILQ_FIRST(&replay->runs));
    for (struct run *run = STAILQ_FIRST(&replay->spare), *later; run; run = later) {
        later = STAILQ_NEXT(run, place);
        weir__release(run);
    }
    weir__release(replay->calls);
    weir__release(replay->targets);
    weir__release(replay->lanes);
    weir__release(replay->nodes);
    weir_lock_finish(&replay->runs_lock);
    weir_lock_finish(&replay->lock);
    weir__release(replay);
}

// Whether the backend has graphs, and this one can be such: it can hold all nodes.
static bool can_be_native(const struct weir_link *backend, weir_device *device,
                          const struct weir_graph_setup *setup)
{
    bool native = backend->ops->graph_create != NULL;
    for (uint32_t i = 0; i < setup->node_count && native; i++) {
        const struct weir_operation *operation = weir_graph_node_at(setup->nodes, i)->operation;
        if (operation->kind == WEIR_OPERATION_COLLECTIVE)
            native = operation->u.collective.comm->ops->captures(operation);
        if (operation->kind == WEIR_OPERATION_NATIVE || operation->kind == WEIR_OPERATION_HOST_CALL)
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
    weir_lock_init(&replay->runs_lock, &weir__locks[WEIR__LOCK_RUNS]);
    STAILQ_INIT(&replay->runs);
    STAILQ_INIT(&replay->spare);
    STAILQ_INIT(&replay->pending);
    replay->is_native = can_be_native(link->next, device, setup);
    replay->recoveries = weir__completion_recoveries();
    weir_status status = WEIR_OK;
    bool forks = false;
    if (replay->is_native)
        status = create_native(link->next, device, graph, replay, setup);
    else if (!copy_nodes(replay, setup, &forks))
        status = weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the nodes of a graph");
    // A backend with graphs is not told of earlier launches, which only branches wait for then.
    else if (forks || link->next->ops->graph_create)
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
    struct weir__replay *replay = replay_of(link, graph);
    if (replay->is_native)
        link->next->ops->graph_destroy(link->next, graph);
    finish(link->next, replay);
}

// Updates.

static weir_status apply_native(const struct weir_link *next, weir_graph *graph,
                                struct weir__replay *replay,
                                const struct weir__replay_pending *update)
{
    struct weir_operation wrapped = *update->operation;
    const struct weir_graph_node node = {.struct_size = sizeof node,
                                         .operation = &wrapped,
                                         .branch = update->branch};
    struct call call;
    // The backend calls a function of this file before the update and after it.
    if (wrapped.kind == WEIR_OPERATION_HOST_CALL) {
        weir_lock_take(&replay->runs_lock);
        replay->targets[replay->calls[update->index].number] =
            (struct target){wrapped.u.host_call.function, wrapped.u.host_call.user};
        weir_lock_release(&replay->runs_lock);
        return WEIR_OK;
    }
    wrap(replay, &call, update->index, &wrapped);
    atomic_store(&replay->is_launched, false);
    return next->ops->graph_update(next, graph, update->index, &node);
}

// Updates that no held launch comes before. Returns the latest error.
static weir_status apply_pending(const struct weir_link *link, weir_graph *graph,
                                 struct weir__replay *replay)
{
    struct weir__replay_pending *update;
    weir_status status = WEIR_OK;
    while ((update = STAILQ_FIRST(&replay->pending)) && update->after <= replay->unheld) {
        weir_status applied = WEIR_OK;
        STAILQ_REMOVE_HEAD(&replay->pending, place);
        if (replay->is_native) {
            applied = apply_native(link->next, graph, replay, update);
        } else {
            struct weir_operation *before = replay->nodes[update->index].operation;
            replay->nodes[update->index].operation = update->operation;
            update->operation = before;
        }
        status = applied < 0 ? applied : status;
        drop_pending(update);
    }
    return status;
}

weir_status weir__replay_update(const struct weir_link *link, weir_graph *graph, uint32_t index,
                                const struct weir_graph_node *node)
{
    struct weir__replay *replay = replay_of(link, graph);
    struct weir__replay_pending *update = weir__allocate(sizeof *update);
    struct weir_operation *operation = weir__operation_clone(node->operation);
    if (!update || !operation) {
        weir__release(update);
        weir__release(operation);
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for an update of a graph");
    }
    weir_lock_take(&replay->lock);
    *update = (struct weir__replay_pending){.after = replay->held,
                                            .index = index,
                                            .branch = node->branch,
                                            .operation = operation};
    STAILQ_INSERT_TAIL(&replay->pending, update, place);
    const weir_status status = apply_pending(link, graph, replay);
    weir_lock_release(&replay->lock);
    return status;
}

void weir__replay_hold(const struct weir_link *link, const struct weir_operation *operation,
                       bool begins)
{
    weir_graph *graph = operation->u.graph.graph;
    struct weir__replay *replay = replay_of(link, graph);
    weir_lock_take(&replay->lock);
    replay->held += begins;
    replay->unheld += !begins;
    const weir_status status = apply_pending(link, graph, replay);
    if (status < 0)
        replay->broken = weir__error_of(status);
    weir_lock_release(&replay->lock);
}

// Launches.

static weir_status launch_native(const struct weir__replay_launch *launch)
{
    const struct weir_operation *operation = launch->operation;
    struct weir__replay *replay = launch->replay;
    struct run *run = replay->host_call_count > 0 ? add_run(launch) : NULL;
    weir_status status;
    if (replay->host_call_count > 0 && !run)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the launch of a graph");
    if (operation->flags & WEIR_OPERATION_COLLECTIVES) {
        status = weir__comm_of(operation)->ops->run(launch->queue, operation);
        if (status == WEIR_OK)
            atomic_store(&replay->is_launched, true);
    } else {
        status = launch->next->ops->queue_submit(launch->next, launch->queue, operation);
    }
    if (status < 0 && run) {
        weir_lock_take(&replay->runs_lock);
        end_run(replay, run);
        weir_lock_release(&replay->runs_lock);
    }
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
    if (!replay->is_native && replay->host_call_count > 0)
        return true;
    return operation->flags & WEIR_OPERATION_COLLECTIVES &&
           !(replay->is_native && atomic_load(&replay->is_launched) &&
             weir__comm_of(operation)->ops->is_ready(operation));
}

// While a launch waits for other ranks, or runs host calls, updates go on: they see that it is held.
weir_status weir__replay_launch(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    struct weir__replay *replay = replay_of(link, operation->u.graph.graph);
    const struct weir__replay_launch launch = {link->next, replay, queue, operation};
    const bool alone = operation->flags & WEIR_OPERATION_COLLECTIVES || replay->host_call_count > 0;
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
