// Graphs: their clones, their life, their launches and their collectives. capture.c makes them, update.c changes
// their nodes, and core/queue/replay.c replays them for a backend without graphs.
#include "core/graph/graph.h"

#include "core/object/buffer.h"
#include "core/object/comm.h"
#include "core/object/program.h"
#include "core/queue/operation.h"
#include "core/support/memory.h"

// The collectives of graphs. A launch takes as many numbers and turns of each communicator as the graph
// has collectives of it, of all communicators at once: so two launches come in one order everywhere.

// SEND, RECV and EXCHANGE have the number of the one before them.
static void add(struct weir__graph_comms *comms, struct weir_operation *operation)
{
    const weir_collective kind = operation->u.collective.kind;
    uint32_t index = 0;
    while (index < comms->count && comms->comms[index].comm != operation->u.collective.comm)
        index++;
    if (index == comms->count)
        comms->comms[comms->count++] =
            (struct weir_graph_comm){.comm = operation->u.collective.comm};
    struct weir_graph_comm *own = &comms->comms[index];
    own->numbered += kind != WEIR_SEND && kind != WEIR_RECV && kind != WEIR_EXCHANGE;
    operation->u.collective.turn = own->count++;
    operation->u.collective.number = (uint64_t)own->numbered - 1;
    comms->collectives[comms->collective_count++] = operation;
}

static int by_id(const void *a, const void *b)
{
    const struct weir_graph_comm *x = a;
    const struct weir_graph_comm *y = b;
    const uint64_t first = x->comm->member.object.id;
    const uint64_t second = y->comm->member.object.id;
    return (first > second) - (first < second);
}

// Finds the collectives among the nodes, and counts them for each communicator: `number` and `turn` of
// their operations are what a launch adds to. False: out of memory.
static bool find_comms(struct weir__graph_comms *comms, const struct weir__graph_parts *parts)
{
    for (uint32_t i = 0; i < parts->node_count; i++) {
        if (parts->nodes[i].operation->kind != WEIR_OPERATION_COLLECTIVE)
            continue;
        const uint32_t most = parts->node_count - i;
        if (comms->count == 0) {
            comms->collectives = weir__allocate(most * sizeof *comms->collectives);
            comms->comms = weir__allocate(most * sizeof *comms->comms);
        }
        if (!comms->collectives || !comms->comms)
            return false;
        add(comms, weir__graph_operation(parts, i));
    }
    if (comms->count > 1)
        qsort(comms->comms, comms->count, sizeof *comms->comms, by_id);
    return true;
}

static void finish_comms(struct weir__graph_comms *comms)
{
    weir__release((void *)(uintptr_t)comms->collectives);
    weir__release(comms->comms);
}

static void release_locks(const struct weir__graph_comms *comms)
{
    for (uint32_t i = comms->count; i-- > 0;)
        if (i == 0)
            weir_lock_release(&comms->comms[i].comm->submit_lock);
        else
            pthread_mutex_unlock(&comms->comms[i].comm->submit_lock.mutex);
}

// Takes the submit locks of all communicators, and describes the launch; the thread's error if one of
// them has failed.
static weir_status begin_comms(struct weir__graph_comms *comms, struct weir_operation *launch)
{
    weir_status status = WEIR_OK;
    if (comms->count == 0)
        return WEIR_OK;
    // In the order of ids. The check of the order of locks knows of the first.
    for (uint32_t i = 0; i < comms->count; i++)
        if (i == 0)
            weir_lock_take(&comms->comms[i].comm->submit_lock);
        else
            pthread_mutex_lock(&comms->comms[i].comm->submit_lock.mutex);
    for (uint32_t i = 0; i < comms->count && status == WEIR_OK; i++) {
        weir_comm *comm = comms->comms[i].comm;
        status = comm->ops->status(comm); // it may be destroyed, and be kept by the graph
        comms->comms[i].number = comm->number + 1;
        comms->comms[i].turn = comm->next_turn;
    }
    if (status < 0)
        release_locks(comms);
    launch->flags |= WEIR_OPERATION_COLLECTIVES;
    launch->u.graph_comms.comms = comms->comms;
    launch->u.graph_comms.count = comms->count;
    return status;
}

// Releases them. If the launch has its place in its queue, its numbers are used up.
static void end_comms(struct weir__graph_comms *comms, const struct weir_operation *launch)
{
    if (comms->count == 0)
        return;
    for (uint32_t i = 0; i < comms->count && launch->sequence; i++) {
        comms->comms[i].comm->number += comms->comms[i].numbered;
        comms->comms[i].comm->next_turn += comms->comms[i].count;
    }
    release_locks(comms);
}

// Clones: graphs of copies of another one's nodes.

// The lock is not held while the driver makes its graph, nor while objects are finalized.
static weir_status clone(weir_graph *graph, const char *label, weir_graph **out_graph)
{
    struct weir__graph_parts parts = {0};
    weir_lock_take(&graph->lock);
    parts.branch_count = graph->parts.branch_count;
    bool copied = true;
    for (uint32_t i = 0; i < graph->parts.node_count && copied; i++)
        copied = weir__graph_parts_add(&parts, &graph->parts.nodes[i]);
    weir_lock_release(&graph->lock);
    const weir_status status =
        copied ? weir__graph_create(graph->member.device, label, &parts, out_graph)
               : weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory to clone a graph");
    weir__graph_parts_finish(&parts);
    return status;
}

weir_status weir_graph_clone_at(weir_graph *graph, const struct weir_graph_params *params,
                                weir_graph **out_graph, const char *file, int line)
{
    struct weir_graph_params known;
    WEIR_ENTER_FOR(file, line, out_graph, graph);
    if (params)
        WEIR_READ_PARAMS(file, line, weir_graph_params, params, &known);
    const char *label = params && params->label ? params->label : graph->member.object.label;
    const weir_status status = clone(graph, label, out_graph);
    WEIR_RETURN_CREATED(file, line, out_graph, status);
}

// Use of buffers and kernels.

static void count_buffers(const struct weir_operation *operation, int change)
{
    struct weir_note_range range;
    for (uint32_t i = 0; weir_operation_range_at(operation, i, &range); i++)
        if (range.buffer)
            atomic_fetch_add(&range.buffer->member.uses, (unsigned)change);
}

// The kernel or the communicator.
static void count_kernel(const struct weir_operation *operation, int change)
{
    if (operation->kind == WEIR_OPERATION_LAUNCH)
        atomic_fetch_add(&operation->u.launch.kernel->member.uses, (unsigned)change);
    if (operation->kind == WEIR_OPERATION_COLLECTIVE)
        atomic_fetch_add(&operation->u.collective.comm->member.uses, (unsigned)change);
}

void weir__operation_count(const struct weir_operation *operation, int change)
{
    count_buffers(operation, change);
    count_kernel(operation, change);
}

bool weir__graph_parts_add(struct weir__graph_parts *parts, const struct weir_graph_node *node)
{
    const size_t bytes = node->dependency_count * sizeof *node->dependencies;
    struct weir_graph_node *nodes =
        weir__grow(parts->nodes, parts->node_count, &parts->node_capacity, sizeof *nodes);
    uint32_t *dependencies = weir__allocate(bytes);
    struct weir_operation *operation = weir__operation_clone(node->operation);
    parts->nodes = nodes ? nodes : parts->nodes;
    if (!nodes || !dependencies || !operation) {
        weir__release(dependencies);
        weir__release(operation);
        return false;
    }
    if (bytes)
        memcpy(dependencies, node->dependencies, bytes);
    operation->sequence = (uint64_t)parts->node_count + 1;
    weir__operation_count(operation, 1);
    nodes[parts->node_count] = *node;
    nodes[parts->node_count].operation = operation;
    nodes[parts->node_count++].dependencies = dependencies;
    return true;
}

static void unuse_buffers(struct weir__graph_parts *parts)
{
    for (uint32_t i = 0; i < parts->node_count && !parts->without_buffers; i++)
        count_buffers(parts->nodes[i].operation, -1);
    parts->without_buffers = true;
}

void weir__graph_parts_finish(struct weir__graph_parts *parts)
{
    unuse_buffers(parts);
    for (uint32_t i = 0; i < parts->node_count; i++) {
        count_kernel(parts->nodes[i].operation, -1);
        weir__release(weir__graph_operation(parts, i));
        weir__release((void *)(uintptr_t)parts->nodes[i].dependencies);
    }
    weir__release(parts->nodes);
    *parts = (struct weir__graph_parts){0};
}

// Creation and destruction.

static void finalize(struct weir__member *member)
{
    weir_graph *graph = (weir_graph *)(void *)member;
    const struct weir__chain *chain = graph->member.device->chain;
    WEIR__DESTROY_ALONG(chain, chain->count - 1, graph, graph);
    finish_comms(&graph->comms);
    weir__graph_parts_finish(&graph->parts);
    weir_lock_finish(&graph->lock);
    weir__member_free(&graph->member);
}

static const struct weir__class graph_class = {.name = "graph",
                                               .keeps_label = true,
                                               .finalize = finalize};

weir_status weir__graph_create(weir_device *device, const char *label,
                               struct weir__graph_parts *parts, weir_graph **out_graph)
{
    weir__device_reap(device);
    weir_graph *graph = weir__member_allocate(device, &graph_class, sizeof *graph, label);
    if (!graph)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a graph object");
    const struct weir_graph_setup setup = {
        .struct_size = sizeof setup,
        .nodes = parts->nodes,
        .node_count = parts->node_count,
        .branch_count = parts->branch_count,
    };
    weir_status status;
    if (!find_comms(&graph->comms, parts))
        status = weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the nodes of a graph");
    else // delivery, the last link, creates the backend's if that can hold the graph
        WEIR__CREATE_ALONG(status, device->chain, device->chain->count - 1,
                           graph->member.object.data, graph, graph,
                           link->ops->graph_create(link, device, graph, &setup, slot));
    if (status < 0) {
        weir__error_place(status, label, NULL, 0);
        finish_comms(&graph->comms);
        weir__member_free(&graph->member);
        return status;
    }
    graph->parts = *parts;
    *parts = (struct weir__graph_parts){0};
    weir_lock_init(&graph->lock, &weir__locks[WEIR__LOCK_GRAPH]);
    weir__member_enlist(&graph->member);
    *out_graph = graph;
    return WEIR_OK;
}

// It is not launched any more, so its buffers are only used by running work, like
// other memory. Kernels and communicators are kept: the driver's graph may refer to them.
void weir_graph_destroy_at(weir_graph **graph, const char *file, int line)
{
    if (!graph || !*graph || !WEIR_MAY_END(*graph, file, line))
        return;
    weir_graph *gone = *graph;
    *graph = NULL;
    weir__debug_end(gone, file, line);
    unuse_buffers(&gone->parts);
    weir__member_retire(&gone->member);
}

uint32_t weir_graph_node_count(const weir_graph *graph)
{
    return WEIR_IS_ALIVE(graph) ? graph->parts.node_count : 0;
}

// Launches of graphs. A launch is an operation like any other, except for the order of
// launches of one graph: on one queue they are in order anyway, and on another queue a wait
// for the earlier launch is submitted first.

// Waits for the launch `before` on another queue, unless that is known to have ended: then it no longer passes on a
// failure. The lock is not released in between: no other operation may come between the two, since a driver that orders
// launches itself orders only the launch.
static weir_status submit_launch(weir_queue *queue, struct weir_operation *operation,
                                 struct weir_event before)
{
    weir_queue *producer = before.queue ? weir__registry_pin(before.queue) : NULL;
    weir_status status = WEIR_OK;
    weir__queue_enter(queue);
    if (!weir__is_capturing(queue) || !queue->capture_ops->note(queue, operation, &status)) {
        const bool waits =
            producer && producer != queue && !weir__queue_is_past(producer, before.sequence);
        if (waits)
            status = weir__queue_wait_locked(queue, before, producer,
                                             WEIR_OPERATION_RELAUNCH | WEIR_OPERATION_INTERNAL,
                                             operation->file, operation->line);
        else if (atomic_load(&queue->completion.failed))
            status = weir__tell_refused(weir__completion_refuse(queue), "weir_queue_graph",
                                        operation->file, operation->line);
        if (status == WEIR_OK)
            status = weir__queue_submit_locked(queue, operation);
    }
    weir_lock_release(&queue->submit_lock);
    weir__registry_unpin(producer);
    return status;
}

// Under the graph's lock.
static weir_status launch(weir_queue *queue, weir_graph *graph, const char *file, int line)
{
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_GRAPH, 0, file, line);
    operation.u.graph.graph = graph;
    operation.u.graph.nodes = graph->parts.nodes;
    operation.u.graph.node_count = graph->parts.node_count;
    operation.u.graph.branch_count = graph->parts.branch_count;
    const bool elsewhere = graph->launched.queue != queue->member.object.id;
    TRY(begin_comms(&graph->comms, &operation));
    weir_status status =
        submit_launch(queue, &operation, elsewhere ? graph->launched : (struct weir_event){0});
    end_comms(&graph->comms, &operation);
    if (status < 0 && operation.sequence && graph->comms.count) {
        graph->comms.comms[0].comm->ops->skip(&operation);
        weir__completion_refuse(queue); // the thread's error is the queue's first cause again
    }
    // Also after a failure: part of it may be running.
    if (operation.sequence != 0)
        graph->launched = (struct weir_event){queue->member.object.id, operation.sequence};
    return status;
}

weir_status weir_queue_graph_at(weir_queue *queue, weir_graph *graph, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue, graph);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, graph);
    if (weir__debug_check_memory(__func__, file, line) < 0)
        return weir_last_error()->status;
    WEIR_REFUSE_CALLBACK(queue, file, line);
    if (graph->member.device != queue->member.device)
        return weir__fail_at(file, line, graph->member.object.label, WEIR_ERROR_INVALID,
                             "capture a graph for each device",
                             "weir_queue_graph: the graph belongs to another device than queue "
                             "'%s'",
                             weir__label_or_none(queue->member.object.label));
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line,
                                            "a graph's launch cannot be part of a graph",
                                            "submit what it does to the queue instead");
    weir_lock_take(&graph->lock);
    weir_status status = launch(queue, graph, file, line);
    weir_lock_release(&graph->lock);
    return status;
}
