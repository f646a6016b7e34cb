// Graphs. A launch puts copies of the nodes' operations into its stream, in the order
// that best reveals a missing dependency: of the nodes that may run, always the one that
// was added last. Launches of one executable graph wait for each other, on whatever
// streams. Updates are refused if the real driver may refuse them.
#include <stdlib.h>
#include <string.h>

#include "fake.h"

struct CUgraphNode_st {
    CUgraph graph;
    size_t index;
    struct fake_operation operation;
    bool *after; // for each earlier node, whether this one comes after it
};

struct CUgraph_st {
    CUgraphNode *nodes;
    size_t count;
};

struct CUgraphExec_st {
    CUgraph origin;
    struct fake_operation *operations; // by the nodes' indexes
    size_t *order;
    size_t count;
    struct fake_fence *last; // of the last launch; NULL: none
    bool *disabled;
};

static CUgraph graph_create(void)
{
    CUgraph graph = calloc(1, sizeof *graph);
    if (!graph)
        abort();
    fake_live++;
    return graph;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    ADMIT(true);
    REFUSE(flags != 0, CUDA_ERROR_INVALID_VALUE);
    *graph = graph_create();
    END;
}

static void graph_destroy(CUgraph graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct fake_operation *operation = &graph->nodes[i]->operation;
        if (operation->drop)
            operation->drop(operation->user);
        if (operation->child)
            graph_destroy(operation->child);
        free(graph->nodes[i]->after);
        free(graph->nodes[i]);
    }
    free(graph->nodes);
    free(graph);
    fake_live--;
}

SIMPLE(cuGraphDestroy, (CUgraph graph), true, graph_destroy(graph))

// Whether each node is one of these, or comes before one of them.
static bool graph_ends_in(CUgraph graph, const CUgraphNode *nodes, size_t count)
{
    bool *before = calloc(graph->count + 1, sizeof *before);
    bool all = true;
    if (!before)
        abort();
    for (size_t i = 0; i < count; i++)
        before[nodes[i]->index] = true;
    for (size_t i = graph->count; i-- > 0;) {
        for (size_t n = 0; n < i && before[i]; n++)
            before[n] = before[n] || graph->nodes[i]->after[n];
        all = all && before[i];
    }
    free(before);
    return all;
}

// Nodes.

static CUresult graph_add(CUgraphNode *out_node, CUgraph graph, const CUgraphNode *dependencies,
                          size_t count, const struct fake_operation *operation)
{
    CUresult code = CUDA_SUCCESS;
    CUgraphNode node = calloc(1, sizeof *node);
    CUgraphNode *nodes = realloc(graph->nodes, (graph->count + 1) * sizeof(CUgraphNode));
    bool *after = calloc(graph->count + 1, sizeof *after);
    if (!node || !nodes || !after)
        abort();
    graph->nodes = nodes;
    for (size_t i = 0; i < count; i++) {
        CUgraphNode other = dependencies[i];
        if (other->graph != graph || after[other->index])
            code = CUDA_ERROR_INVALID_VALUE; // of another graph, or twice
        else
            after[other->index] = true;
    }
    if (code != CUDA_SUCCESS) {
        free(node);
        free(after);
        return code;
    }
    *node = (struct CUgraphNode_st){graph, graph->count, *operation, after};
    graph->nodes[graph->count++] = node;
    *out_node = node;
    return CUDA_SUCCESS;
}

static bool read_copy(const CUDA_MEMCPY3D *box, struct fake_operation *out_copy)
{
    return fake_box_read(box, out_copy) &&
           fake_memory_holds(out_copy->dst, fake_dst_bytes(out_copy),
                             box->dstMemoryType == CU_MEMORYTYPE_HOST ? FAKE_HOST : FAKE_DEVICE) &&
           fake_memory_holds(out_copy->src, fake_src_bytes(out_copy),
                             box->srcMemoryType == CU_MEMORYTYPE_HOST ? FAKE_HOST : FAKE_DEVICE);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                             size_t count)
{
    const struct fake_operation nothing = {.kind = FAKE_NOTHING};
    ADMIT(true);
    code = graph_add(node, graph, dependencies, count, &nothing);
    END;
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS *params)
{
    const struct fake_operation call = {.kind = FAKE_CALL,
                                        .call = params->fn,
                                        .user = params->userData};
    ADMIT(true);
    code = graph_add(node, graph, dependencies, count, &call);
    END;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    ADMIT(true);
    REFUSE(nodes, CUDA_ERROR_INVALID_VALUE); // the backend asks for the count only
    *count = graph->count;
    END;
}

// The node has a copy of the graph.
static CUgraph copy_graph(CUgraph graph)
{
    CUgraph copy = graph_create();
    for (size_t i = 0; i < graph->count; i++) {
        struct fake_operation operation = graph->nodes[i]->operation;
        CUgraphNode node;
        if (operation.clone)
            operation.user = operation.clone(operation.user);
        if (operation.child)
            operation.child = copy_graph(operation.child);
        if (graph_add(&node, copy, NULL, 0, &operation) != CUDA_SUCCESS)
            abort();
        for (size_t n = 0; n < i; n++)
            node->after[n] = graph->nodes[i]->after[n];
    }
    return copy;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t count, CUgraph child)
{
    ADMIT(true);
    const struct fake_operation operation = {.kind = FAKE_CHILD, .child = copy_graph(child)};
    code = graph_add(node, graph, dependencies, count, &operation);
    if (code != CUDA_SUCCESS)
        graph_destroy(operation.child);
    END;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID attribute,
                                       const CUlaunchAttributeValue *value)
{
    ADMIT(true);
    REFUSE(node->operation.kind != FAKE_LAUNCH || attribute != CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
           CUDA_ERROR_INVALID_VALUE);
    node->operation.cooperative = value->cooperative;
    END;
}

// Executable graphs.

static bool may_run(const struct CUgraphNode_st *node, const bool *done)
{
    for (size_t i = 0; i < node->index; i++)
        if (node->after[i] && !done[i])
            return false;
    return !done[node->index];
}

static void choose_order(CUgraphExec executable)
{
    bool *done = calloc(executable->count + 1, sizeof *done);
    if (!done)
        abort();
    for (size_t placed = 0; placed < executable->count; placed++) {
        size_t at = executable->count - 1;
        while (!may_run(executable->origin->nodes[at], done))
            at--;
        executable->order[placed] = at;
        done[at] = true;
    }
    free(done);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out_executable, CUgraph graph,
                                     unsigned long long flags)
{
    ADMIT(true);
    REFUSE(flags != 0, CUDA_ERROR_INVALID_VALUE);
    CUgraphExec executable = calloc(1, sizeof *executable);
    struct fake_operation *operations = calloc(graph->count + 1, sizeof *operations);
    size_t *order = calloc(graph->count + 1, sizeof *order);
    bool *disabled = calloc(graph->count + 1, sizeof *disabled);
    if (!executable || !operations || !order || !disabled)
        abort();
    for (size_t i = 0; i < graph->count; i++)
        operations[i] = graph->nodes[i]->operation;
    *executable = (struct CUgraphExec_st){graph, operations, order, graph->count, NULL, disabled};
    choose_order(executable);
    *out_executable = executable;
    fake_live++;
    END;
}

// Launched work is already in its streams, so it runs to completion.
CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    BEGIN(true);
    fake_fence_release(executable->last);
    free(executable->operations);
    free(executable->order);
    free(executable->disabled);
    free(executable);
    fake_live--;
    END;
}

CUresult cuGraphUpload(CUgraphExec executable, CUstream stream)
{
    ADMIT(true);
    REFUSE(!executable || !fake_stream_known(stream), FAKE_INVALID_HANDLE);
    END;
}

static void launch_node(CUstream stream, struct fake_operation node, uint32_t correlation,
                        bool last)
{
    for (size_t i = 0; node.kind == FAKE_CHILD && i < node.child->count; i++)
        launch_node(stream, node.child->nodes[i]->operation, correlation, false);
    if (node.kind == FAKE_CHILD)
        node = (struct fake_operation){.kind = FAKE_NOTHING};
    node.correlation = correlation;
    node.of_graph = true;
    node.ends_graph = last;
    if (node.clone)
        node.user = node.clone(node.user);
    fake_stream_add(stream, &node);
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    ADMIT(true);
    for (size_t i = 0; i < executable->count; i++)
        REFUSE(executable->operations[i].kind == FAKE_LAUNCH &&
                   !fake_launch_ends(&executable->operations[i]),
               CUDA_ERROR_INVALID_VALUE);
    if (executable->last)
        fake_stream_add(stream,
                        &(struct fake_operation){.kind = FAKE_WAIT, .fence = executable->last});
    const uint32_t correlation = fake_cupti_call();
    for (size_t i = 0; i < executable->count; i++) {
        struct fake_operation node = executable->operations[executable->order[i]];
        if (executable->disabled[executable->order[i]])
            node = (struct fake_operation){.kind = FAKE_NOTHING};
        launch_node(stream, node, correlation, i + 1 == executable->count);
    }
    executable->last = fake_fence_create();
    fake_fence_retain(executable->last);
    fake_stream_add(stream,
                    &(struct fake_operation){.kind = FAKE_SIGNAL, .fence = executable->last});
    END;
}

static CUresult set_node(CUgraphExec executable, CUgraphNode node,
                         const struct fake_operation *operation)
{
    struct fake_operation *at = &executable->operations[node->index];
    if (node->graph != executable->origin || at->kind != operation->kind ||
        at->function != operation->function || at->element != operation->element ||
        (at->kind == FAKE_COPY &&
         (at->height != 1 || at->depth != 1 || operation->height != 1 || operation->depth != 1)))
        return CUDA_ERROR_INVALID_VALUE;
    const bool cooperative = at->cooperative; // as the node was when the graph was made
    *at = *operation;
    at->cooperative = cooperative;
    return CUDA_SUCCESS;
}

// Adding a node, and setting its parameters in an executable graph; copies and fills tell a context too.
#define NODES(kind, params_type, read, comma_context, right)                            \
    CUresult cuGraphAdd##kind##Node(CUgraphNode *node, CUgraph graph,                   \
                                    const CUgraphNode *dependencies, size_t count,      \
                                    const params_type *params comma_context)            \
    {                                                                                   \
        struct fake_operation operation;                                                \
        ADMIT(true);                                                                    \
        REFUSE(!(right), FAKE_INVALID_CONTEXT);                                         \
        REFUSE(!read(params, &operation), CUDA_ERROR_INVALID_VALUE);                    \
        code = graph_add(node, graph, dependencies, count, &operation);                 \
        END;                                                                            \
    }                                                                                   \
    CUresult cuGraphExec##kind##NodeSetParams(CUgraphExec executable, CUgraphNode node, \
                                              const params_type *params comma_context)  \
    {                                                                                   \
        struct fake_operation operation;                                                \
        ADMIT(true);                                                                    \
        REFUSE(!(right), FAKE_INVALID_CONTEXT);                                         \
        REFUSE(!read(params, &operation), CUDA_ERROR_INVALID_VALUE);                    \
        code = set_node(executable, node, &operation);                                  \
        END;                                                                            \
    }
#define IN_CONTEXT , CUcontext context
NODES(Memcpy, CUDA_MEMCPY3D, read_copy, IN_CONTEXT, context == fake_current)
NODES(Memset, CUDA_MEMSET_NODE_PARAMS, fake_set_read, IN_CONTEXT, context == fake_current)
NODES(Kernel, CUDA_KERNEL_NODE_PARAMS, fake_launch_read, , true)
#undef IN_CONTEXT
#undef NODES

// The driver compares the nodes in the order in which they were added.
static bool is_alike(const struct CUgraph_st *graph, const struct CUgraph_st *other)
{
    bool alike = graph->count == other->count;
    for (size_t i = 0; i < graph->count && alike; i++) {
        alike = graph->nodes[i]->operation.kind == other->nodes[i]->operation.kind;
        for (size_t n = 0; n < i && alike; n++)
            alike = graph->nodes[i]->after[n] == other->nodes[i]->after[n];
    }
    return alike;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph child)
{
    ADMIT(true);
    REFUSE(node->graph != executable->origin || node->operation.kind != FAKE_CHILD,
           CUDA_ERROR_INVALID_VALUE);
    REFUSE(!is_alike(node->operation.child, child), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    graph_destroy(node->operation.child); // no other executable graph is made of it
    node->operation.child = copy_graph(child);
    executable->operations[node->index].child = node->operation.child;
    END;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode node, unsigned enabled)
{
    ADMIT(true);
    const enum fake_operation_kind kind = node->operation.kind;
    REFUSE(node->graph != executable->origin || enabled > 1 ||
               (kind != FAKE_COPY && kind != FAKE_SET && kind != FAKE_LAUNCH),
           CUDA_ERROR_INVALID_VALUE);
    executable->disabled[node->index] = !enabled;
    END;
}

// Captures of streams. What a captured stream is given becomes a node that comes after the stream's
// dependencies, and is then the only one of these, or one of two.

enum {
    FAKE_UNJOINED = 904
};

struct capture {
    struct capture *next;
    CUstream stream;
    CUgraph graph;
    CUgraphNode *dependencies;
    size_t count;
    bool spoiled;
};

static struct capture *captures;
bool fake_captures_fork;

static struct capture *find(CUstream stream)
{
    struct capture *capture = captures;
    while (capture && capture->stream != stream)
        capture = capture->next;
    return capture;
}

static void follow(struct capture *capture, const CUgraphNode *nodes, size_t count)
{
    CUgraphNode *copy = calloc(count + 1, sizeof(CUgraphNode));
    if (!copy)
        abort();
    if (count)
        memcpy(copy, nodes, count * sizeof(CUgraphNode));
    free(capture->dependencies);
    capture->dependencies = copy;
    capture->count = count;
}

static void drop(struct capture *capture)
{
    struct capture **at = &captures;
    while (*at != capture)
        at = &(*at)->next;
    *at = capture->next;
    free(capture->dependencies);
    free(capture);
}

bool fake_capture_take(CUstream stream, const struct fake_operation *operation)
{
    const struct fake_operation nothing = {.kind = FAKE_NOTHING};
    struct capture *capture = find(stream);
    CUgraphNode nodes[2];
    const size_t count = fake_captures_fork ? 2 : 1;
    if (!capture)
        return false;
    for (size_t i = 0; i < count; i++)
        if (graph_add(&nodes[i], capture->graph, capture->dependencies, capture->count,
                      i == 0 ? operation : &nothing) != CUDA_SUCCESS)
            abort();
    follow(capture, nodes, count);
    return true;
}

bool fake_capture_spoil(CUstream stream)
{
    struct capture *capture = find(stream);
    if (capture)
        capture->spoiled = true;
    return capture != NULL;
}

// Another library's capture.

static bool others_capture;
static long spoiled;
static _Thread_local CUstreamCaptureMode mode_of_thread; // GLOBAL

static bool is_unsafe(const char *name)
{
    static const char *const names[] = {"cuEventQuery",      "cuEventSynchronize",
                                        "cuStreamQuery",     "cuStreamSynchronize",
                                        "cuMemHostAlloc",    "cuMemFreeHost",
                                        "cuMemAllocManaged", "cuMemFree",
                                        "cuMemAlloc"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool fake_spoils_others(const char *name)
{
    const bool spoils =
        others_capture && mode_of_thread != CU_STREAM_CAPTURE_MODE_RELAXED && is_unsafe(name);
    spoiled += spoils;
    return spoils;
}

long fake_capture_others(int begin)
{
    pthread_mutex_lock(&fake_lock);
    const long count = spoiled;
    others_capture = begin;
    spoiled = 0;
    pthread_mutex_unlock(&fake_lock);
    return count;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    ADMIT(false);
    const CUstreamCaptureMode before = mode_of_thread;
    mode_of_thread = *mode;
    *mode = before;
    END;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    ADMIT(true);
    REFUSE(!fake_stream_known(stream) || find(stream) || mode != CU_STREAM_CAPTURE_MODE_RELAXED,
           CUDA_ERROR_INVALID_VALUE);
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        abort();
    *capture = (struct capture){captures, stream, graph_create(), NULL, 0, false};
    captures = capture;
    END;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    BEGIN(true);
    struct capture *capture = find(stream);
    *graph = NULL;
    if (code == CUDA_SUCCESS && !capture)
        code = CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS &&
        !graph_ends_in(capture->graph, capture->dependencies, capture->count))
        code = FAKE_UNJOINED;
    if (code == CUDA_SUCCESS && capture->spoiled)
        code = FAKE_CAPTURE_INVALIDATED;
    if (code == CUDA_SUCCESS)
        *graph = capture->graph;
    else if (capture)
        graph_destroy(capture->graph);
    if (capture)
        drop(capture);
    END;
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
    ADMIT(true);
    const struct capture *capture = find(stream);
    REFUSE(!capture, CUDA_ERROR_INVALID_VALUE);
    *status = 1;
    *id = 1;
    *graph = capture->graph;
    *dependencies = capture->dependencies;
    *count = capture->count;
    END;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *dependencies, size_t count,
                                           unsigned flags)
{
    ADMIT(true);
    struct capture *capture = find(stream);
    REFUSE(!capture || flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES, CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < i; n++)
            REFUSE(dependencies[i] == dependencies[n], CUDA_ERROR_INVALID_VALUE);
    follow(capture, dependencies, count);
    END;
}
