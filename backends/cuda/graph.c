// Graphs. The driver's parts of each node are kept (nodes.c), since an update that the driver
// cannot make in place (another number of nodes, another size of element) builds a new executable
// graph from the parts of all nodes. The old one may be running; the driver frees it after that.
//
// The driver keeps launches of one executable graph in order, also on several streams. Only the
// wait of the first launch of a new executable graph for the last launch of the old one is added
// here.
//
// A graph with collectives is captured (nccl_graph.c), for its first launch and after an update that
// needs it: NCCL may wait for other ranks then, and only a launch has its turn.
//
// The staging memory of a copy between HOST buffers belongs to the graph, since its launches never
// overlap.
#include "backends/cuda/graph.h"
#include "backends/cuda/nccl.h"

static const struct cu_symbols *symbols_of(const struct cu_graph *graph)
{
    return &graph->device->module->cu;
}

static const struct weir_host *host_of(const struct cu_graph *graph)
{
    return graph->device->module->host;
}

// Creation and destruction.

static weir_status make_node(const struct weir_link *link, struct cu_graph *graph,
                             struct cu_node *node, const struct weir_graph_node *from)
{
    const uint32_t count = from->dependency_count;
    graph->collectives = graph->collectives || from->operation->kind == WEIR_OPERATION_COLLECTIVE;
    node->file = from->operation->file;
    node->line = from->operation->line;
    node->dependencies = link->host->allocate(count * sizeof *node->dependencies);
    if (!node->dependencies)
        return weir_host_no_memory(link->host, "a node of a graph");
    for (uint32_t i = 0; i < count; i++) {
        node->dependencies[i] = from->dependencies[i];
        graph->nodes[from->dependencies[i]].leaf = false;
    }
    node->leaf = true;
    node->disabled = from->operation->flags & WEIR_OPERATION_EMPTY;
    node->dependency_count = count;
    if (graph->most_dependencies < count)
        graph->most_dependencies = count;
    return cu_take_apart(link, graph->device, node, from->operation, &node->parts);
}

static weir_status make(const struct weir_link *link, struct cu_graph *graph,
                        const struct weir_graph_setup *setup)
{
    graph->nodes = link->host->allocate(setup->node_count * sizeof *graph->nodes);
    if (!graph->nodes)
        return weir_host_no_memory(link->host, "a graph");
    for (uint32_t i = 0; i < setup->node_count; i++) {
        graph->node_count++;
        weir_status status =
            make_node(link, graph, &graph->nodes[i], weir_graph_node_at(setup->nodes, i));
        if (status < 0)
            return status;
    }
    struct cu_native_graph native = {0};
    graph->stale = graph->collectives;
    weir_status status = graph->stale ? WEIR_OK : cu_graph_build(graph, &native);
    if (status == WEIR_OK && !graph->stale)
        cu_graph_adopt(graph, &native);
    return status;
}

// Within the device's context.
static void release(struct cu_graph *graph)
{
    const struct weir_host *host = host_of(graph);
    cu_graph_drop(graph, &graph->native);
    if (graph->followed)
        symbols_of(graph)->cuEventDestroy(graph->followed);
    for (uint32_t i = 0; i < graph->node_count; i++)
        cu_node_finish(graph->device, &graph->nodes[i]);
    host->release(graph->nodes);
    host->release(graph);
}

weir_status cu_graph_create(const struct weir_link *link, weir_device *device_object,
                            weir_graph *object, const struct weir_graph_setup *setup,
                            void **out_data)
{
    struct cu_device *device = cu_device_of(link, device_object);
    struct cu_scope scope;
    weir_status status = cu_enter(device, &scope);
    if (status < 0)
        return status;
    const char *name = cu_keep_name(device, weir_graph_object(object)->label);
    struct cu_graph *graph = name ? link->host->allocate(sizeof *graph) : NULL;
    if (graph) {
        graph->link = link;
        graph->device = device;
        graph->name = name;
        status = make(link, graph, setup);
        if (status < 0)
            release(graph);
    } else {
        status = weir_host_no_memory(link->host, "a graph");
    }
    cu_leave(device, &scope);
    if (status < 0)
        return status;
    *out_data = graph;
    return WEIR_OK;
}

const char *cu_graph_name(const struct cu_graph *graph)
{
    return graph->name;
}

void cu_graph_destroy(const struct weir_link *link, weir_graph *object)
{
    struct cu_graph *graph = cu_graph_of(link, object);
    struct cu_device *device = graph->device;
    struct cu_scope scope;
    cu_enter_to_destroy(device, &scope);
    release(graph);
    cu_leave(device, &scope);
}

// Updates.

static bool is_line(const struct cu_part *part)
{
    return part->kind != CU_PART_COPY || (part->u.copy.Height == 1 && part->u.copy.Depth == 1);
}

static CUresult set_native(const struct cu_graph *graph, CUgraphNode native,
                           const struct cu_part *part, const char **out_call)
{
    const struct cu_symbols *cu = symbols_of(graph);
    CUgraphExec executable = graph->native.executable;
    switch (part->kind) {
    case CU_PART_COPY:
        *out_call = "cuGraphExecMemcpyNodeSetParams";
        return cu->cuGraphExecMemcpyNodeSetParams(executable, native, &part->u.copy,
                                                  graph->device->context);
    case CU_PART_SET:
        *out_call = "cuGraphExecMemsetNodeSetParams";
        return cu->cuGraphExecMemsetNodeSetParams(executable, native, &part->u.set,
                                                  graph->device->context);
    case CU_PART_CHILD:
        *out_call = "cuGraphExecChildGraphNodeSetParams";
        return cu->cuGraphExecChildGraphNodeSetParams(executable, native, part->u.child);
    default:
        *out_call = "cuGraphExecKernelNodeSetParams";
        return cu->cuGraphExecKernelNodeSetParams(executable, native, &part->u.launch);
    }
}

// Returns a queue of the stream, preferably one that has not been left. Under the lock.
static const struct cu_queue *find_queue(const struct cu_device *device, CUstream stream)
{
    const struct cu_queue *found = NULL;
    for (const struct cu_queue *queue = device->queues; queue; queue = queue->next) {
        if (queue->stream == stream && (!found || found->left))
            found = queue;
    }
    return found;
}

// Marks the end of a stream that was left, and so must not be used, in a new stream that waits for
// its last record. The driver frees the new stream after that wait.
static CUresult record_after(const struct cu_symbols *cu, CUevent end, CUevent followed,
                             const char **out_call)
{
    CUstream stream;
    *out_call = "cuStreamCreateWithPriority";
    CUresult code = cu->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
    if (code != CUDA_SUCCESS)
        return code;
    *out_call = "cuStreamWaitEvent";
    code = cu->cuStreamWaitEvent(stream, end, 0);
    if (code == CUDA_SUCCESS) {
        *out_call = "cuEventRecord";
        code = cu->cuEventRecord(followed, stream);
    }
    cu->cuStreamDestroy(stream);
    return code;
}

// Marks the end of the last launch, for the first launch of a new executable graph. A destroyed
// stream has finished, and so has one that was left without a record. Recording under the lock may
// block until the stream has room, which does not depend on this lock.
static weir_status mark_last_launch(struct cu_graph *graph)
{
    struct cu_device *device = graph->device;
    const struct cu_symbols *cu = symbols_of(graph);
    CUresult code = CUDA_SUCCESS;
    if (!graph->stream)
        return WEIR_OK;
    if (!graph->followed)
        code = cu->cuEventCreate(&graph->followed, CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) {
        graph->followed = NULL;
        return cu_native_error(device, "cuEventCreate", code, "update a graph");
    }
    pthread_mutex_lock(&device->lock);
    const struct cu_queue *queue = find_queue(device, graph->stream);
    const bool follow = queue && (!queue->left || queue->end);
    const char *call = "cuEventRecord";
    if (follow && queue->left)
        code = record_after(cu, queue->end, graph->followed, &call);
    else if (follow)
        code = cu->cuEventRecord(graph->followed, graph->stream);
    pthread_mutex_unlock(&device->lock);
    if (code != CUDA_SUCCESS)
        return cu_native_error(device, call, code, "update a graph");
    // If the queue is gone, the mark of an earlier update still counts.
    graph->must_follow = graph->must_follow || follow;
    return WEIR_OK;
}

// The node's parts are already replaced by the new ones.
static weir_status rebuild(struct cu_graph *graph)
{
    struct cu_native_graph fresh = {0};
    weir_status status = cu_graph_build(graph, &fresh);
    if (status == WEIR_OK)
        status = mark_last_launch(graph);
    if (status < 0) {
        cu_graph_drop(graph, &fresh);
        return status;
    }
    cu_graph_drop(graph, &graph->native);
    cu_graph_adopt(graph, &fresh);
    return WEIR_OK;
}

// Of operands that are not those of such a change, such as a child graph of other nodes.
static bool needs_rebuild(CUresult code)
{
    return code == CUDA_ERROR_INVALID_VALUE || code == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ||
           code == CUDA_ERROR_NOT_SUPPORTED;
}

// A node with several parts is not changed in place: if one change were refused, the node would be
// inconsistent.
static weir_status replace(struct cu_graph *graph, struct cu_node *node, struct cu_parts *fresh)
{
    struct cu_parts old = node->parts;
    if (!graph->stale && old.count == 1 && fresh->count == 1 &&
        old.parts->kind == fresh->parts->kind && is_line(old.parts) && is_line(fresh->parts)) {
        const char *call;
        CUresult code = set_native(graph, old.parts->native, fresh->parts, &call);
        if (code != CUDA_SUCCESS && !needs_rebuild(code))
            return cu_graph_refuse(graph, node, call, code);
        if (code == CUDA_SUCCESS) {
            fresh->parts->native = old.parts->native;
            node->parts = *fresh;
            *fresh = old;
            return WEIR_OK;
        }
    }
    node->parts = *fresh;
    graph->stale = graph->collectives;
    weir_status status = graph->stale ? WEIR_OK : rebuild(graph);
    if (status < 0)
        node->parts = old;
    else
        *fresh = old;
    return status;
}

static weir_status set_operands(const struct weir_link *link, struct cu_graph *graph,
                                struct cu_node *node, const struct weir_operation *operation)
{
    struct cu_parts parts;
    weir_status status = cu_take_apart(link, graph->device, node, operation, &parts);
    if (status == WEIR_OK) {
        status = replace(graph, node, &parts);
        cu_parts_finish(graph->device, &parts);
    }
    return status;
}

// All parts of the node, or none. A graph that is stale is captured with the node as it is then.
static weir_status set_disabled(struct cu_graph *graph, struct cu_node *node, bool disabled)
{
    const struct cu_symbols *cu = symbols_of(graph);
    const struct cu_parts *parts = &node->parts;
    CUresult code = CUDA_SUCCESS;
    size_t done = 0;
    for (; done < parts->count && !graph->stale && code == CUDA_SUCCESS; done++)
        code = cu->cuGraphNodeSetEnabled(graph->native.executable, parts->parts[done].native,
                                         !disabled);
    if (code == CUDA_SUCCESS) {
        node->disabled = disabled;
        return WEIR_OK;
    }
    while (--done > 0)
        (void)cu->cuGraphNodeSetEnabled(graph->native.executable, parts->parts[done - 1].native,
                                        disabled);
    return cu_graph_refuse(graph, node, "cuGraphNodeSetEnabled", code);
}

weir_status cu_graph_update(const struct weir_link *link, weir_graph *object, uint32_t index,
                            const struct weir_graph_node *node)
{
    struct cu_graph *graph = cu_graph_of(link, object);
    struct cu_scope scope;
    weir_status status = cu_enter(graph->device, &scope);
    if (status < 0)
        return status;
    const bool disabled = node->operation->flags & WEIR_OPERATION_EMPTY;
    if (disabled != graph->nodes[index].disabled)
        status = set_disabled(graph, &graph->nodes[index], disabled);
    else
        status = set_operands(link, graph, &graph->nodes[index], node->operation);
    cu_leave(graph->device, &scope);
    return status;
}

// Launches.

static CUresult follow(struct cu_graph *graph, const struct cu_queue *queue)
{
    graph->must_follow = false;
    if (queue->stream == graph->stream)
        return CUDA_SUCCESS;
    return symbols_of(graph)->cuStreamWaitEvent(queue->stream, graph->followed, 0);
}

static weir_status launch(struct cu_graph *graph, struct cu_queue *queue)
{
    const char *call = "cuStreamWaitEvent";
    CUresult code = graph->must_follow ? follow(graph, queue) : CUDA_SUCCESS;
    if (code == CUDA_SUCCESS) {
        call = "cuGraphLaunch";
        code = symbols_of(graph)->cuGraphLaunch(graph->native.executable, queue->stream);
        graph->stream = queue->stream;
    }
    cu_watch_command(queue); // for CUPTI a graph is one activity
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(graph->device, call, code, "launch a graph of %u nodes",
                           (unsigned)graph->node_count);
}

static weir_status launch_collectives(struct cu_graph *graph, struct cu_queue *queue,
                                      const struct weir_operation *operation)
{
    weir_status status = cu_comms_begin_launch(graph->link, queue, operation);
    if (status < 0)
        return status;
    if (graph->stale)
        status = rebuild(graph);
    graph->stale = status < 0;
    if (status == WEIR_OK)
        status = launch(graph, queue);
    cu_comms_end_launch(graph->link, queue, operation);
    return status;
}

weir_status cu_submit_graph(const struct weir_link *link, struct cu_queue *queue,
                            const struct weir_operation *operation)
{
    struct cu_graph *graph = cu_graph_of(link, operation->u.graph.graph);
    return graph->collectives ? launch_collectives(graph, queue, operation) : launch(graph, queue);
}
