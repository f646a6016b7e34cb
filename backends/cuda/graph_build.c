// The driver's graphs, from the parts of all nodes: see graph.c.
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

weir_status cu_graph_refuse(const struct cu_graph *graph, const struct cu_node *node,
                            const char *call, CUresult code)
{
    return cu_native_error(graph->device, call, code, "node %u of the graph, captured at %s:%d",
                           (unsigned)(node - graph->nodes), node->file ? node->file : "",
                           node->line);
}

static CUresult add_launch(const struct cu_graph *graph, CUgraph native, struct cu_part *part,
                           const CUgraphNode *dependencies, size_t count, const char **out_call)
{
    const struct cu_symbols *cu = symbols_of(graph);
    const CUlaunchAttributeValue value = {.cooperative = 1};
    *out_call = "cuGraphAddKernelNode";
    CUresult code =
        cu->cuGraphAddKernelNode(&part->fresh, native, dependencies, count, &part->u.launch);
    if (code != CUDA_SUCCESS || !part->cooperative)
        return code;
    *out_call = "cuGraphKernelNodeSetAttribute";
    return cu->cuGraphKernelNodeSetAttribute(part->fresh, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
}

static CUresult add_native(const struct cu_graph *graph, CUgraph native, struct cu_part *part,
                           const CUgraphNode *dependencies, size_t count, const char **out_call)
{
    const struct cu_symbols *cu = symbols_of(graph);
    switch (part->kind) {
    case CU_PART_COPY:
        *out_call = "cuGraphAddMemcpyNode";
        return cu->cuGraphAddMemcpyNode(&part->fresh, native, dependencies, count, &part->u.copy,
                                        graph->device->context);
    case CU_PART_SET:
        *out_call = "cuGraphAddMemsetNode";
        return cu->cuGraphAddMemsetNode(&part->fresh, native, dependencies, count, &part->u.set,
                                        graph->device->context);
    case CU_PART_CHILD:
    case CU_PART_CALL:
        return cu_add_call(graph->device, native, part, dependencies, count, out_call);
    default:
        return add_launch(graph, native, part, dependencies, count, out_call);
    }
}

// The driver refuses graphs in graphs that allocate memory.
static weir_status refuse_child(const struct cu_graph *graph, const struct cu_node *node,
                                const char *call, CUresult code)
{
    return cu_native_error(
        graph->device, call, code,
        "node %u of the graph, a native call captured at %s:%d, allocates memory, "
        "as libraries without a workspace do: give it one beforehand "
        "(cublasSetWorkspace)",
        (unsigned)(node - graph->nodes), node->file ? node->file : "", node->line);
}

// `dependencies` has room for the dependencies of any node.
static weir_status add_node(const struct cu_graph *graph, const struct cu_capture *capture,
                            struct cu_node *node, CUgraphNode *dependencies)
{
    size_t count = node->dependency_count;
    for (size_t i = 0; i < count; i++) {
        const struct cu_parts *other = &graph->nodes[node->dependencies[i]].parts;
        dependencies[i] = other->parts[other->count - 1].fresh;
    }
    for (size_t i = 0; i < node->parts.count; i++) {
        struct cu_part *part = &node->parts.parts[i];
        const char *call;
        if (part->kind == CU_PART_COLLECTIVE)
            return cu_capture_collective(capture, part->u.collective, dependencies, count,
                                         &part->fresh);
        CUresult code = add_native(graph, capture->graph, part, dependencies, count, &call);
        if (code == CUDA_ERROR_NOT_SUPPORTED && part->kind == CU_PART_CHILD)
            return refuse_child(graph, node, call, code);
        if (code != CUDA_SUCCESS)
            return cu_graph_refuse(graph, node, call, code);
        dependencies[0] = part->fresh;
        count = 1;
    }
    return WEIR_OK;
}

static weir_status add_nodes(const struct cu_graph *graph, const struct cu_capture *capture)
{
    const struct weir_host *host = host_of(graph);
    CUgraphNode *dependencies =
        host->allocate((graph->most_dependencies + 1) * sizeof(CUgraphNode));
    if (!dependencies)
        return weir_host_no_memory(host, "a graph");
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < graph->node_count && status == WEIR_OK; i++)
        status = add_node(graph, capture, &graph->nodes[i], dependencies);
    host->release(dependencies);
    return status;
}

void cu_graph_drop(const struct cu_graph *graph, struct cu_native_graph *native)
{
    if (native->executable)
        symbols_of(graph)->cuGraphExecDestroy(native->executable);
    if (native->graph)
        symbols_of(graph)->cuGraphDestroy(native->graph);
    *native = (struct cu_native_graph){0};
}

// In an executable graph whose nodes are the parts' `fresh` ones.
static CUresult disable(const struct cu_graph *graph, const struct cu_native_graph *native)
{
    CUresult code = CUDA_SUCCESS;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct cu_node *node = &graph->nodes[i];
        for (size_t n = 0; n < node->parts.count && node->disabled && code == CUDA_SUCCESS; n++)
            code = symbols_of(graph)->cuGraphNodeSetEnabled(native->executable,
                                                            node->parts.parts[n].fresh, 0);
    }
    return code;
}

// Else the first launch would do this work.
static weir_status instantiate(struct cu_graph *graph, struct cu_native_graph *native)
{
    const struct cu_symbols *cu = symbols_of(graph);
    const char *call = "cuGraphInstantiateWithFlags";
    CUresult code = cu->cuGraphInstantiateWithFlags(&native->executable, native->graph, 0);
    if (code != CUDA_SUCCESS)
        native->executable = NULL;
    else
        host_of(graph)->count_driver_object();
    if (code == CUDA_SUCCESS) {
        call = "cuGraphNodeSetEnabled";
        code = disable(graph, native);
    }
    if (code == CUDA_SUCCESS) {
        call = "cuGraphUpload";
        code = cu->cuGraphUpload(native->executable, graph->device->memory_stream);
    }
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(graph->device, call, code, "make a graph of %u nodes",
                           (unsigned)graph->node_count);
}

// The last parts of nodes that no other one depends on, in `leaves`, which has room for all. Returns
// how many.
static size_t find_leaves(const struct cu_graph *graph, CUgraphNode *leaves)
{
    size_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct cu_parts *parts = &graph->nodes[i].parts;
        if (graph->nodes[i].leaf)
            leaves[count++] = parts->parts[parts->count - 1].fresh;
    }
    return count;
}

static weir_status capture(const struct cu_graph *graph, struct cu_native_graph *native)
{
    const struct weir_host *host = host_of(graph);
    struct cu_capture capture = {.link = graph->link, .device = graph->device};
    CUgraphNode *leaves = host->allocate(graph->node_count * sizeof(CUgraphNode));
    if (!leaves)
        return weir_host_no_memory(host, "a graph");
    weir_status status = cu_capture_begin(&capture);
    if (status == WEIR_OK) {
        status = add_nodes(graph, &capture);
        if (status == WEIR_OK)
            status = cu_capture_end(&capture, leaves, find_leaves(graph, leaves));
        else
            cu_capture_cancel(&capture);
    }
    if (status == WEIR_OK)
        native->graph = capture.graph;
    host->release(leaves);
    return status;
}

static weir_status compose(const struct cu_graph *graph, struct cu_native_graph *native)
{
    CUresult code = symbols_of(graph)->cuGraphCreate(&native->graph, 0);
    if (code != CUDA_SUCCESS) {
        native->graph = NULL;
        return cu_native_error(graph->device, "cuGraphCreate", code, "make a graph");
    }
    return add_nodes(graph, &(struct cu_capture){.graph = native->graph});
}

weir_status cu_graph_build(struct cu_graph *graph, struct cu_native_graph *native)
{
    weir_status status = graph->collectives ? capture(graph, native) : compose(graph, native);
    if (native->graph)
        host_of(graph)->count_driver_object();
    if (status == WEIR_OK)
        status = instantiate(graph, native);
    if (status < 0)
        cu_graph_drop(graph, native);
    return status;
}

void cu_graph_adopt(struct cu_graph *graph, const struct cu_native_graph *native)
{
    graph->native = *native;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct cu_parts *parts = &graph->nodes[i].parts;
        for (size_t n = 0; n < parts->count; n++)
            parts->parts[n].native = parts->parts[n].fresh;
    }
}
