// Graphs: their creation, updates and launches. The driver's parts of each node are kept (nodes.c), since
// an update that the driver cannot make in place (another number of nodes, another size of element) builds
// a new executable graph from the parts of all nodes. The old one may be running; the driver frees it
// after that.
//
// The driver keeps launches of one executable graph in order, also on several streams. Only the
// wait of the first launch of a new executable graph for the last launch of the old one is added
// here.
//
// A graph with collectives is captured, for its first launch and after an update that
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

// NCCL has no nodes, but its calls can be captured; and what orders a communicator's kernels in a
// graph before and after others is added once for each capture. So one capture makes the whole graph: a
// stream is captured, the other nodes are added to the graph that comes of it, and for each collective the
// stream continues after the nodes that it depends on.

// Has NCCL add its nodes after the dependencies; `*out_node` comes after all of them, and so after all that
// the stream comes after then. A communicator of one rank may add none: the node is never one of the
// dependencies, since the driver refuses a node that is told twice.
static weir_status capture_collective(const struct weir_link *link,
                                      const struct cu_capture *capture,
                                      const struct weir_operation *operation,
                                      CUgraphNode *dependencies, size_t count,
                                      CUgraphNode *out_node)
{
    const struct cu_comm *comm = cu_comm_of(link, operation->u.collective.comm);
    const struct cu_queue queue = {.device = capture->device, .stream = capture->stream};
    struct cu_trial trial = {.device = capture->device};
    const char *call = NULL;
    const CUgraphNode *nodes = NULL;
    const CUgraphNode before = count > 0 ? dependencies[0] : NULL;
    CUgraph graph;
    TRY(cu_capture_continue(capture, dependencies, count));
    const ncclResult_t code = cu_nccl_call(link, comm, &queue, operation, &call);
    if (code != ncclSuccess)
        return cu_nccl_error(comm, call, code);
    cu_capture_look(capture, &trial, &graph, &nodes, &count);
    if (trial.code == CUDA_SUCCESS && count == 1 && nodes[0] != before)
        *out_node = nodes[0];
    else
        CU_TRY(&trial, cuGraphAddEmptyNode, out_node, capture->graph, nodes, count);
    return cu_captured(capture, &trial);
}

// The driver's graphs, from the parts of all nodes.

// The driver refuses graphs in graphs that allocate memory.
static weir_status tried(const struct cu_graph *graph, const struct cu_node *node,
                         const struct cu_trial *trial, bool is_call)
{
    const bool allocates = is_call && trial->code == CUDA_ERROR_NOT_SUPPORTED;
    return cu_tried(trial, "node %u of the graph, %scaptured at %s:%d%s",
                    (unsigned)(node - graph->nodes), allocates ? "a native call " : "",
                    node->file ? node->file : "", node->line,
                    allocates ? ", allocates memory, as libraries without a workspace do: give it "
                                "one beforehand (cublasSetWorkspace)"
                              : "");
}

static void add_child(struct cu_trial *trial, CUgraph graph, struct cu_part *part,
                      const CUgraphNode *dependencies, size_t count)
{
    size_t nodes = 0;
    if (part->u.child)
        CU_TRY(trial, cuGraphGetNodes, part->u.child, NULL, &nodes);
    if (nodes == 0)
        CU_TRY(trial, cuGraphAddEmptyNode, &part->fresh, graph, dependencies, count);
    else
        CU_TRY(trial, cuGraphAddChildGraphNode, &part->fresh, graph, dependencies, count,
               part->u.child);
}

// On a thread of the driver's.
static void call_host(void *user)
{
    const struct cu_call *call = user;
    (void)call->function(call->user); // the library notes what it returns
}

static void add_native(struct cu_trial *trial, CUgraph graph, struct cu_part *part,
                       const CUgraphNode *dependencies, size_t count)
{
    const CUlaunchAttributeValue cooperative = {.cooperative = 1};
    switch (part->kind) {
    case CU_PART_COPY:
        CU_TRY(trial, cuGraphAddMemcpyNode, &part->fresh, graph, dependencies, count, &part->u.copy,
               trial->device->context);
        break;
    case CU_PART_SET:
        CU_TRY(trial, cuGraphAddMemsetNode, &part->fresh, graph, dependencies, count, &part->u.set,
               trial->device->context);
        break;
    case CU_PART_CHILD:
        add_child(trial, graph, part, dependencies, count);
        break;
    case CU_PART_CALL:
        CU_TRY(trial, cuGraphAddHostNode, &part->fresh, graph, dependencies, count,
               &(CUDA_HOST_NODE_PARAMS){call_host, (void *)(uintptr_t)part->u.call});
        break;
    default:
        CU_TRY(trial, cuGraphAddKernelNode, &part->fresh, graph, dependencies, count,
               &part->u.launch);
        if (part->cooperative)
            CU_TRY(trial, cuGraphKernelNodeSetAttribute, part->fresh,
                   CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative);
    }
}

// A node's last part, in the graph that is being built.
static CUgraphNode end_of(const struct cu_node *node)
{
    const struct cu_part *part = node->parts;
    while (part->next)
        part = part->next;
    return part->fresh;
}

// `dependencies` has room for the dependencies of any node.
static weir_status add_node(const struct cu_graph *graph, const struct cu_capture *capture,
                            struct cu_node *node, CUgraphNode *dependencies)
{
    size_t count = node->dependency_count;
    for (size_t i = 0; i < count; i++)
        dependencies[i] = end_of(&graph->nodes[node->dependencies[i]]);
    for (struct cu_part *part = node->parts; part; part = part->next) {
        struct cu_trial trial = {.device = graph->device};
        if (part->kind == CU_PART_COLLECTIVE)
            return capture_collective(graph->link, capture, part->u.collective, dependencies, count,
                                      &part->fresh);
        add_native(&trial, capture->graph, part, dependencies, count);
        if (trial.code != CUDA_SUCCESS)
            return tried(graph, node, &trial, part->kind == CU_PART_CHILD);
        dependencies[0] = part->fresh;
        count = 1;
    }
    return WEIR_OK;
}

static weir_status add_nodes(const struct cu_graph *graph, const struct cu_capture *capture)
{
    const struct weir_host *host = host_of(graph);
    CUgraphNode *dependencies = host->allocate((graph->node_count + 1) * sizeof(CUgraphNode));
    if (!dependencies)
        return weir_host_no_memory(host, "a graph");
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < graph->node_count && status == WEIR_OK; i++)
        status = add_node(graph, capture, &graph->nodes[i], dependencies);
    if (status == WEIR_OK && capture->stream) { // it ends after all of them
        for (uint32_t i = 0; i < graph->node_count; i++)
            dependencies[i] = end_of(&graph->nodes[i]);
        status = cu_capture_continue(capture, dependencies, graph->node_count);
    }
    host->release(dependencies);
    return status;
}

static void drop(const struct cu_graph *graph, struct cu_native_graph *native)
{
    if (native->executable)
        symbols_of(graph)->cuGraphExecDestroy(native->executable);
    if (native->graph)
        symbols_of(graph)->cuGraphDestroy(native->graph);
    *native = (struct cu_native_graph){0};
}

static weir_status instantiate(struct cu_graph *graph, struct cu_native_graph *native)
{
    struct cu_trial trial = {.device = graph->device};
    CU_TRY(&trial, cuGraphInstantiateWithFlags, &native->executable, native->graph, 0);
    if (trial.code != CUDA_SUCCESS)
        native->executable = NULL;
    else
        host_of(graph)->count_driver_object();
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct cu_node *node = &graph->nodes[i];
        for (const struct cu_part *part = node->parts; part && node->disabled; part = part->next)
            CU_TRY(&trial, cuGraphNodeSetEnabled, native->executable, part->fresh, 0);
    }
    // Else the first launch would do this work.
    CU_TRY(&trial, cuGraphUpload, native->executable, graph->device->memory_stream);
    return cu_tried(&trial, "make a graph of %u nodes", (unsigned)graph->node_count);
}

// Makes the driver's graph of the nodes' parts, in place of the one that there is.
static weir_status build(struct cu_graph *graph)
{
    struct cu_capture capture = {.device = graph->device};
    struct cu_native_graph fresh = {0};
    struct cu_trial trial = {.device = graph->device};
    weir_status status;
    if (graph->collectives) {
        status = cu_capture_begin(&capture);
        if (status == WEIR_OK)
            status = cu_capture_end(&capture, add_nodes(graph, &capture));
    } else {
        CU_TRY(&trial, cuGraphCreate, &capture.graph, 0);
        if (trial.code != CUDA_SUCCESS)
            capture.graph = NULL;
        status = cu_tried(&trial, "make a graph");
        if (status == WEIR_OK)
            status = add_nodes(graph, &capture);
    }
    fresh.graph = capture.graph;
    if (fresh.graph)
        host_of(graph)->count_driver_object();
    if (status == WEIR_OK)
        status = instantiate(graph, &fresh);
    if (status < 0) {
        drop(graph, &fresh);
        return status;
    }
    drop(graph, &graph->native);
    graph->native = fresh;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (struct cu_part *part = graph->nodes[i].parts; part; part = part->next)
            part->native = part->fresh;
    graph->rebuilt = true;
    return WEIR_OK;
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
    for (uint32_t i = 0; i < count; i++)
        node->dependencies[i] = from->dependencies[i];
    node->disabled = from->operation->flags & WEIR_OPERATION_EMPTY;
    node->dependency_count = count;
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
        TRY(make_node(link, graph, &graph->nodes[i], weir_graph_node_at(setup->nodes, i)));
    }
    graph->stale = graph->collectives;
    return graph->stale ? WEIR_OK : build(graph);
}

// Within the device's context.
static void release(struct cu_graph *graph)
{
    const struct weir_host *host = host_of(graph);
    drop(graph, &graph->native);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct cu_node *node = &graph->nodes[i];
        cu_parts_release(graph->device, node->parts);
        host->release(node->dependencies);
        while (node->staging) {
            struct cu_staging *staging = node->staging;
            node->staging = staging->next;
            symbols_of(graph)->cuMemFreeAsync(staging->address, graph->device->memory_stream);
            host->release(staging);
        }
    }
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
    struct cu_graph *graph = link->host->allocate(sizeof *graph);
    if (graph) {
        graph->link = link;
        graph->device = device;
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

static void set_native(struct cu_trial *trial, CUgraphExec executable, const struct cu_part *part)
{
    CUcontext context = trial->device->context;
    CUgraphNode native = part->native;
    switch (part->kind) {
    case CU_PART_COPY:
        CU_TRY(trial, cuGraphExecMemcpyNodeSetParams, executable, native, &part->u.copy, context);
        break;
    case CU_PART_SET:
        CU_TRY(trial, cuGraphExecMemsetNodeSetParams, executable, native, &part->u.set, context);
        break;
    case CU_PART_CHILD:
        CU_TRY(trial, cuGraphExecChildGraphNodeSetParams, executable, native, part->u.child);
        break;
    default:
        CU_TRY(trial, cuGraphExecKernelNodeSetParams, executable, native, &part->u.launch);
    }
}

// Of operands that are not those of such a change, such as a child graph of other nodes.
static bool needs_rebuild(CUresult code)
{
    return code == CUDA_ERROR_INVALID_VALUE || code == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ||
           code == CUDA_ERROR_NOT_SUPPORTED;
}

// `*fresh` becomes the parts that are no more needed. A node with several is not changed in place: if one change were
// refused, the node would be inconsistent.
static weir_status replace(struct cu_graph *graph, struct cu_node *node, struct cu_part **fresh)
{
    struct cu_part *old = node->parts;
    struct cu_part *part = *fresh;
    CUresult code = CUDA_ERROR_NOT_SUPPORTED;
    if (!graph->stale && !old->next && !part->next && old->kind == part->kind && is_line(old) &&
        is_line(part)) {
        struct cu_trial trial = {.device = graph->device};
        part->native = old->native;
        set_native(&trial, graph->native.executable, part);
        if (trial.code != CUDA_SUCCESS && !needs_rebuild(trial.code))
            return tried(graph, node, &trial, false);
        code = trial.code;
    }
    node->parts = part;
    weir_status status = WEIR_OK;
    if (code != CUDA_SUCCESS) {
        graph->stale = graph->collectives;
        status = graph->stale ? WEIR_OK : build(graph);
    }
    if (status < 0)
        node->parts = old;
    else
        *fresh = old;
    return status;
}

// All parts of the node, or none. A graph that is stale is captured with the node as it is then.
static weir_status set_disabled(struct cu_graph *graph, struct cu_node *node, bool disabled)
{
    struct cu_trial trial = {.device = graph->device};
    CUgraphExec executable = graph->native.executable;
    const struct cu_part *part = graph->stale ? NULL : node->parts;
    for (; part; part = part->next) {
        CU_TRY(&trial, cuGraphNodeSetEnabled, executable, part->native, !disabled);
        if (trial.code != CUDA_SUCCESS)
            break;
    }
    if (!part) {
        node->disabled = disabled;
        return WEIR_OK;
    }
    for (const struct cu_part *done = node->parts; done != part; done = done->next)
        (void)symbols_of(graph)->cuGraphNodeSetEnabled(executable, done->native, disabled);
    return tried(graph, node, &trial, false);
}

weir_status cu_graph_update(const struct weir_link *link, weir_graph *object, uint32_t index,
                            const struct weir_graph_node *node)
{
    struct cu_graph *graph = cu_graph_of(link, object);
    struct cu_scope scope;
    weir_status status = cu_enter(graph->device, &scope);
    if (status < 0)
        return status;
    struct cu_node *own = &graph->nodes[index];
    struct cu_part *parts = NULL;
    const bool disabled = node->operation->flags & WEIR_OPERATION_EMPTY;
    if (disabled != own->disabled) {
        status = set_disabled(graph, own, disabled);
    } else {
        status = cu_take_apart(link, graph->device, own, node->operation, &parts);
        if (status == WEIR_OK)
            status = replace(graph, own, &parts);
        cu_parts_release(graph->device, parts);
    }
    cu_leave(graph->device, &scope);
    return status;
}

// Launches.

// The first launch of a new executable graph comes after the queue of the last launch of the old one. A destroyed
// queue has finished, and so has one that was left without a record. What the last queue was given since that launch
// is waited for too. Recording under the lock may block until the stream has room, which does not depend on this lock.
static void follow(const struct cu_graph *graph, const struct cu_queue *queue,
                   struct cu_trial *trial)
{
    struct cu_device *device = graph->device;
    CUevent mark = NULL;
    pthread_mutex_lock(&device->lock);
    const struct cu_queue *last = cu_find_queue(device, graph->last_queue);
    if (last && last->left && last->end)
        CU_TRY(trial, cuStreamWaitEvent, queue->stream, last->end, 0);
    if (last && !last->left) {
        CU_TRY(trial, cuEventCreate, &mark, CU_EVENT_DISABLE_TIMING);
        CU_TRY(trial, cuEventRecord, mark, last->stream);
    }
    pthread_mutex_unlock(&device->lock);
    if (!mark)
        return;
    CU_TRY(trial, cuStreamWaitEvent, queue->stream, mark, 0);
    symbols_of(graph)->cuEventDestroy(mark); // the driver frees it after the wait
}

static weir_status launch(struct cu_graph *graph, struct cu_queue *queue)
{
    struct cu_trial trial = {.device = graph->device};
    if (graph->rebuilt && queue->id != graph->last_queue)
        follow(graph, queue, &trial);
    CU_TRY(&trial, cuGraphLaunch, graph->native.executable, queue->stream);
    cu_watch_command(queue); // for CUPTI a graph is one activity
    if (trial.code != CUDA_SUCCESS)
        return cu_tried(&trial, "launch a graph of %u nodes", (unsigned)graph->node_count);
    graph->rebuilt = false;
    graph->last_queue = queue->id;
    return WEIR_OK;
}

weir_status cu_submit_graph(const struct weir_link *link, struct cu_queue *queue,
                            const struct weir_operation *operation)
{
    struct cu_graph *graph = cu_graph_of(link, operation->u.graph.graph);
    if (!graph->collectives)
        return launch(graph, queue);
    weir_status status = cu_comms_begin_launch(link, queue, operation);
    if (status < 0)
        return status;
    if (graph->stale)
        status = build(graph);
    graph->stale = status < 0;
    if (status == WEIR_OK)
        status = launch(graph, queue);
    cu_comms_end_launch(link, queue, operation, operation->u.graph_comms.count);
    return status;
}

bool cu_graph_takes(const struct weir_link *link, weir_device *device,
                    const struct weir_operation *operation)
{
    return operation->kind == WEIR_OPERATION_NATIVE || operation->kind == WEIR_OPERATION_HOST_CALL;
}
