// The program's functions in graphs. What a native call submits is captured on a stream of its own, when
// the graph is made, and becomes a graph inside the node: a library's calls (cuBLAS) with all their
// kernels. It is kept, so that the function is not called again where an update builds the driver's
// graph anew. A host call is a host node.
#include "backends/cuda/graph.h"

bool cu_graph_takes(const struct weir_link *link, weir_device *device,
                    const struct weir_operation *operation)
{
    (void)link;
    (void)device;
    return operation->kind == WEIR_OPERATION_NATIVE || operation->kind == WEIR_OPERATION_HOST_CALL;
}

static weir_status refuse(struct cu_device *device, const struct weir_operation *operation,
                          const char *call, CUresult code)
{
    return cu_native_error(device, call, code, "capture the native call of %s:%d",
                           operation->file ? operation->file : "", operation->line);
}

// The capture ends in any case.
static weir_status capture(struct cu_device *device, CUstream stream,
                           const struct weir_operation *operation, CUgraph *out_graph)
{
    const struct cu_symbols *cu = &device->module->cu;
    const struct cu_queue queue = {.device = device, .stream = stream};
    CUresult code = cu->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (code != CUDA_SUCCESS)
        return refuse(device, operation, "cuStreamBeginCapture", code);
    const weir_status status = cu_submit_native(&queue, operation);
    code = cu->cuStreamEndCapture(stream, out_graph);
    if (status < 0 || code != CUDA_SUCCESS) {
        if (code == CUDA_SUCCESS)
            cu->cuGraphDestroy(*out_graph);
        *out_graph = NULL;
    }
    return status < 0 || code == CUDA_SUCCESS
               ? status
               : refuse(device, operation, "cuStreamEndCapture", code);
}

weir_status cu_capture_native(struct cu_device *device, const struct weir_operation *operation,
                              CUgraph *out_graph)
{
    const struct cu_symbols *cu = &device->module->cu;
    CUstream stream;
    *out_graph = NULL;
    const CUresult code = cu->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
    if (code != CUDA_SUCCESS)
        return refuse(device, operation, "cuStreamCreateWithPriority", code);
    const weir_status status = capture(device, stream, operation, out_graph);
    cu->cuStreamDestroy(stream);
    if (status == WEIR_OK)
        device->module->host->count_driver_object();
    return status;
}

static CUresult add_child(const struct cu_symbols *cu, CUgraph graph, struct cu_part *part,
                          const CUgraphNode *dependencies, size_t count, const char **out_call)
{
    size_t nodes = 0;
    *out_call = "cuGraphGetNodes";
    CUresult code = cu->cuGraphGetNodes(part->u.child, NULL, &nodes);
    if (code != CUDA_SUCCESS)
        return code;
    if (nodes == 0) {
        *out_call = "cuGraphAddEmptyNode";
        return cu->cuGraphAddEmptyNode(&part->fresh, graph, dependencies, count);
    }
    *out_call = "cuGraphAddChildGraphNode";
    return cu->cuGraphAddChildGraphNode(&part->fresh, graph, dependencies, count, part->u.child);
}

// On a thread of the driver's.
static void call_host(void *user)
{
    const struct cu_part_call *call = user;
    (void)call->function(call->user); // the library notes what it returns
}

CUresult cu_add_call(struct cu_device *device, CUgraph graph, struct cu_part *part,
                     const CUgraphNode *dependencies, size_t count, const char **out_call)
{
    const struct cu_symbols *cu = &device->module->cu;
    if (part->kind == CU_PART_CHILD)
        return add_child(cu, graph, part, dependencies, count, out_call);
    const CUDA_HOST_NODE_PARAMS params = {call_host, part->u.call};
    *out_call = "cuGraphAddHostNode";
    return cu->cuGraphAddHostNode(&part->fresh, graph, dependencies, count, &params);
}
