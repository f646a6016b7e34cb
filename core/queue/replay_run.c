// The submission of a launch's nodes to a backend that has no graph of them: see replay.h.
#include "base/thread.h"
#include "core/object/comm.h"
#include "core/queue/native_call.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/queue/replay_parts.h"
#include "core/support/error.h"

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
    return weir__node_explain(index, weir__operation_name(operation->kind), operation->file,
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

// The submit lock that is held is the launching queue's.
static weir_status run_native(const struct weir__replay_launch *launch, weir_queue *queue,
                              const struct weir_operation *part)
{
    atomic_store_explicit(&launch->queue->in_native, true, memory_order_relaxed);
    const weir_status status = weir__native_submit(launch->next, queue, part);
    atomic_store_explicit(&launch->queue->in_native, false, memory_order_relaxed);
    return status;
}

// A host call's function, on its way.
struct node_call {
    const struct weir__replay_launch *launch;
    const struct weir_operation *node;
    weir_status status;
};

static void call_node(void *user)
{
    struct node_call *call = user;
    call->status = weir__node_call_run(call->node);
}

// The function ended its thread: the launch fails at its node, and the rest of it is not submitted.
static void survive_node(void *user)
{
    const struct node_call *call = user;
    const struct weir__replay_launch *launch = call->launch;
    const uint32_t index = weir__node_call_of(call->node)->index;
    const weir_status status = explain(index, call->node, weir__function_ended());
    abandon(launch->next, launch->replay, launch->queue, launch->operation->sequence, status);
    launch->end->ended(launch->end->user);
}

static weir_status run_host_call(const struct weir__replay_launch *launch, weir_queue *queue,
                                 const struct weir_operation *part)
{
    const weir_status status = launch->next->ops->queue_finish(launch->next, queue);
    if (status < 0)
        return status;
    struct node_call call = {.launch = launch, .node = part};
    weir_thread_call(call_node, survive_node, &call);
    return call.status;
}

static weir_status run_node(const struct weir__replay_launch *launch, weir_queue *queue,
                            const struct weir_operation *node, uint64_t sequence, uint32_t flags)
{
    struct weir_operation part = *node;
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
        return run_host_call(launch, queue, &part);
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

weir_status weir__replay_run(const struct weir__replay_launch *launch)
{
    return launch->replay->lane_count > 0 ? replay_lanes(launch) : replay_row(launch);
}
