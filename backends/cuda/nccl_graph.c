// Collectives in graphs. NCCL has no nodes, but its calls can be captured; and what orders a communicator's
// kernels in a graph before and after others is added once for each capture. So one capture makes
// the whole graph: a stream is captured, the other nodes are added to the graph that comes of it, and
// for each collective the stream continues after the nodes that it depends on.
#include "backends/cuda/graph.h"
#include "backends/cuda/nccl.h"

// The driver's memory of an all-to-all in place cannot be in a graph that may be launched again while
// it runs.
bool cu_comm_captures(const struct weir_link *link, weir_comm *comm,
                      const struct weir_operation *operation)
{
    (void)link;
    (void)comm;
    return operation->u.collective.kind != WEIR_ALL_TO_ALL ||
           operation->u.collective.dst != operation->u.collective.src ||
           operation->u.collective.dst_offset != operation->u.collective.src_offset;
}

static const struct cu_symbols *symbols_of(const struct cu_capture *capture)
{
    return &capture->device->module->cu;
}

static weir_status fail(const struct cu_capture *capture, const char *call, CUresult code)
{
    return cu_native_error(capture->device, call, code, "capture collectives");
}

static CUresult look(const struct cu_capture *capture, CUgraph *graph, const CUgraphNode **nodes,
                     size_t *count)
{
    CUstreamCaptureStatus status;
    cuuint64_t id;
    return symbols_of(capture)->cuStreamGetCaptureInfo(capture->stream, &status, &id, graph, nodes,
                                                       count);
}

weir_status cu_capture_begin(struct cu_capture *capture)
{
    const struct cu_symbols *cu = symbols_of(capture);
    const CUgraphNode *nodes;
    size_t count;
    CUresult code = cu->cuStreamCreateWithPriority(&capture->stream, CU_STREAM_NON_BLOCKING, 0);
    if (code != CUDA_SUCCESS) {
        capture->stream = NULL;
        return fail(capture, "cuStreamCreateWithPriority", code);
    }
    code = cu->cuStreamBeginCapture(capture->stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (code != CUDA_SUCCESS) {
        cu->cuStreamDestroy(capture->stream);
        return fail(capture, "cuStreamBeginCapture", code);
    }
    code = look(capture, &capture->graph, &nodes, &count);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    cu_capture_cancel(capture);
    return fail(capture, "cuStreamGetCaptureInfo", code);
}

// The stream continues after these nodes.
static weir_status follow(const struct cu_capture *capture, CUgraphNode *nodes, size_t count)
{
    const CUresult code =
        symbols_of(capture)->cuStreamUpdateCaptureDependencies(capture->stream, nodes, count,
                                                               CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    return code == CUDA_SUCCESS ? WEIR_OK
                                : fail(capture, "cuStreamUpdateCaptureDependencies", code);
}

// A node after all that the stream comes after now.
static weir_status find_last(const struct cu_capture *capture, CUgraphNode *out_node)
{
    const CUgraphNode *nodes = NULL;
    size_t count = 0;
    CUgraph graph;
    CUresult code = look(capture, &graph, &nodes, &count);
    if (code != CUDA_SUCCESS)
        return fail(capture, "cuStreamGetCaptureInfo", code);
    if (count == 1) {
        *out_node = nodes[0];
        return WEIR_OK;
    }
    code = symbols_of(capture)->cuGraphAddEmptyNode(out_node, capture->graph, nodes, count);
    return code == CUDA_SUCCESS ? WEIR_OK : fail(capture, "cuGraphAddEmptyNode", code);
}

weir_status cu_capture_collective(const struct cu_capture *capture,
                                  const struct weir_operation *operation, CUgraphNode *dependencies,
                                  size_t count, CUgraphNode *out_node)
{
    const struct cu_comm *comm = cu_comm_of(capture->link, operation->u.collective.comm);
    const struct cu_queue queue = {.device = capture->device, .stream = capture->stream};
    const char *call = NULL;
    weir_status status = follow(capture, dependencies, count);
    if (status < 0)
        return status;
    const ncclResult_t code = cu_nccl_call(capture->link, comm, &queue, operation, &call);
    return code == ncclSuccess ? find_last(capture, out_node) : cu_nccl_error(comm, call, code);
}

weir_status cu_capture_end(struct cu_capture *capture, CUgraphNode *leaves, size_t count)
{
    const struct cu_symbols *cu = symbols_of(capture);
    weir_status status = follow(capture, leaves, count);
    if (status < 0) {
        cu_capture_cancel(capture);
        return status;
    }
    const CUresult code = cu->cuStreamEndCapture(capture->stream, &capture->graph);
    cu->cuStreamDestroy(capture->stream);
    return code == CUDA_SUCCESS ? WEIR_OK : fail(capture, "cuStreamEndCapture", code);
}

void cu_capture_cancel(struct cu_capture *capture)
{
    const struct cu_symbols *cu = symbols_of(capture);
    CUgraph graph = NULL;
    (void)cu->cuStreamEndCapture(capture->stream, &graph);
    if (graph)
        cu->cuGraphDestroy(graph);
    cu->cuStreamDestroy(capture->stream);
}

// Launches.

static void end_first(const struct weir_link *link, struct cu_queue *queue,
                      const struct weir_operation *launch, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_graph_comm *own = &launch->u.graph_comms.comms[i];
        cu_comm_end(cu_comm_of(link, own->comm), queue, own->turn + own->count - 1);
    }
}

weir_status cu_comms_begin_launch(const struct weir_link *link, struct cu_queue *queue,
                                  const struct weir_operation *launch)
{
    for (uint32_t i = 0; i < launch->u.graph_comms.count; i++) {
        const struct weir_graph_comm *own = &launch->u.graph_comms.comms[i];
        if (cu_comm_begin(cu_comm_of(link, own->comm), queue, own->turn))
            continue;
        end_first(link, queue, launch, i);
        return weir_host_fail(link->host, WEIR_ERROR_COMM, "create another communicator",
                              "the communicator was aborted");
    }
    return WEIR_OK;
}

void cu_comms_end_launch(const struct weir_link *link, struct cu_queue *queue,
                         const struct weir_operation *launch)
{
    end_first(link, queue, launch, launch->u.graph_comms.count);
}
