// Splits operations into the parts of a graph's nodes. copy.c splits copies and fills as for streams, and
// adds their commands by cu_add_part().
#include "backends/cuda/graph.h"

static void finish_part(const struct cu_device *device, const struct cu_part *part)
{
    const struct weir_host *host = device->module->host;
    if (part->kind == CU_PART_LAUNCH)
        host->release(part->u.launch.kernelParams);
    if (part->kind == CU_PART_COLLECTIVE)
        host->release(part->u.collective);
    if (part->kind == CU_PART_CHILD && part->u.child)
        device->module->cu.cuGraphDestroy(part->u.child);
}

void cu_parts_release(const struct cu_device *device, struct cu_part *parts)
{
    while (parts) {
        struct cu_part *next = parts->next;
        finish_part(device, parts);
        device->module->host->release(parts);
        parts = next;
    }
}

weir_status cu_add_part(struct cu_builder *builder, const struct cu_part *part)
{
    const struct weir_host *host = builder->device->module->host;
    struct cu_part *added = host->allocate(sizeof *added);
    if (!added) {
        finish_part(builder->device, part);
        return weir_host_no_memory(host, "a node of a graph");
    }
    *added = *part;
    *builder->end = added;
    builder->end = &added->next;
    return WEIR_OK;
}

// Launches.

// Stores one block: the pointers for the driver, the addresses and offsets to which they point, and the values.
static weir_status keep_arguments(const struct weir_link *link,
                                  const struct weir_operation *operation,
                                  CUDA_KERNEL_NODE_PARAMS *out_launch)
{
    struct weir_operation own = *operation;
    struct cu_packed packed;
    const size_t count = operation->u.launch.argument_count;
    void **pointers = link->host->allocate(count * (sizeof *pointers + sizeof *packed.places) +
                                           weir_operation_bytes(operation));
    if (!pointers)
        return weir_host_no_memory(link->host, "a node of a graph");
    uint64_t *places = (uint64_t *)(void *)(pointers + count);
    weir_operation_own(&own, places + count);
    cu_pack(link, &own, &packed);
    for (size_t i = 0; i < count; i++) {
        pointers[i] = packed.pointers[i];
        if (pointers[i] != &packed.places[i])
            continue;
        places[i] = packed.places[i];
        pointers[i] = &places[i];
    }
    out_launch->kernelParams = pointers;
    out_launch->sharedMemBytes = (unsigned)packed.local_bytes;
    return WEIR_OK;
}

static weir_status build_launch(const struct weir_link *link, struct cu_builder *builder,
                                const struct weir_operation *operation)
{
    const struct weir_extent grid = operation->u.launch.grid;
    const struct weir_extent block = operation->u.launch.block;
    struct cu_part part = {
        .kind = CU_PART_LAUNCH,
        .cooperative = cu_is_cooperative(builder->device, operation),
        .u.launch = {.func = cu_kernel_of(link, operation->u.launch.kernel)->function,
                     .gridDimX = grid.x,
                     .gridDimY = grid.y,
                     .gridDimZ = grid.z,
                     .blockDimX = block.x,
                     .blockDimY = block.y,
                     .blockDimZ = block.z},
    };
    const weir_status status = keep_arguments(link, operation, &part.u.launch);
    return status < 0 ? status : cu_add_part(builder, &part);
}

// With the parts of an exchange after it.
static weir_status build_collective(struct cu_builder *builder,
                                    const struct weir_operation *operation)
{
    const struct weir_host *host = builder->device->module->host;
    struct weir_operation *copy = host->allocate(sizeof *copy + weir_operation_bytes(operation));
    if (!copy)
        return weir_host_no_memory(host, "a node of a graph");
    *copy = *operation;
    weir_operation_own(copy, copy + 1);
    return cu_add_part(builder,
                       &(struct cu_part){.kind = CU_PART_COLLECTIVE, .u.collective = copy});
}

// The program's functions. What a native call submits is captured on a stream of its own, when the graph is
// made, and becomes a graph inside the node: a library's calls (cuBLAS) with all their kernels. It is kept, so
// that the function is not called again where an update builds the driver's graph anew. A host call is a host
// node.

weir_status cu_captured(const struct cu_capture *capture, const struct cu_trial *trial)
{
    const struct weir_operation *call = capture->call;
    return call ? cu_tried(trial, "capture the native call of %s:%d", call->file ? call->file : "",
                           call->line)
                : cu_tried(trial, "capture collectives");
}

void cu_capture_look(const struct cu_capture *capture, struct cu_trial *trial, CUgraph *graph,
                     const CUgraphNode **nodes, size_t *count)
{
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CU_TRY(trial, cuStreamGetCaptureInfo, capture->stream, &status, &id, graph, nodes, count);
}

weir_status cu_capture_continue(const struct cu_capture *capture, CUgraphNode *nodes, size_t count)
{
    struct cu_trial trial = {.device = capture->device};
    CU_TRY(&trial, cuStreamUpdateCaptureDependencies, capture->stream, nodes, count,
           CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    return cu_captured(capture, &trial);
}

weir_status cu_capture_end(struct cu_capture *capture, weir_status status)
{
    const struct cu_symbols *cu = &capture->device->module->cu;
    struct cu_trial trial = {.device = capture->device};
    capture->graph = NULL;
    CU_TRY(&trial, cuStreamEndCapture, capture->stream, &capture->graph);
    cu->cuStreamDestroy(capture->stream);
    if (status == WEIR_OK && trial.code == CUDA_SUCCESS)
        return WEIR_OK;
    if (trial.code == CUDA_SUCCESS && capture->graph)
        cu->cuGraphDestroy(capture->graph);
    capture->graph = NULL;
    return status < 0 ? status : cu_captured(capture, &trial);
}

weir_status cu_capture_begin(struct cu_capture *capture)
{
    struct cu_trial trial = {.device = capture->device};
    const CUgraphNode *nodes;
    size_t count;
    CU_TRY(&trial, cuStreamCreateWithPriority, &capture->stream, CU_STREAM_NON_BLOCKING, 0);
    const bool created = trial.code == CUDA_SUCCESS;
    CU_TRY(&trial, cuStreamBeginCapture, capture->stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    cu_capture_look(capture, &trial, &capture->graph, &nodes, &count);
    const weir_status status = cu_captured(capture, &trial);
    return status < 0 && created ? cu_capture_end(capture, status) : status;
}

static weir_status build_child(struct cu_builder *builder, const struct weir_operation *operation)
{
    struct cu_capture capture = {.device = builder->device, .call = operation};
    TRY(cu_capture_begin(&capture));
    const struct cu_queue queue = {.device = builder->device, .stream = capture.stream};
    TRY(cu_capture_end(&capture, cu_call_native(&queue, operation)));
    builder->device->module->host->count_driver_object();
    return cu_add_part(builder, &(struct cu_part){.kind = CU_PART_CHILD, .u.child = capture.graph});
}

weir_status cu_take_apart(const struct weir_link *link, struct cu_device *device,
                          struct cu_node *node, const struct weir_operation *operation,
                          struct cu_part **out_parts)
{
    struct cu_builder builder = {.device = device, .node = node, .end = out_parts};
    const struct cu_target target = {.device = device, .builder = &builder};
    weir_status status;
    *out_parts = NULL;
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
    case WEIR_OPERATION_FILL:
        status = cu_split_copy(link, &target, operation);
        break;
    case WEIR_OPERATION_COLLECTIVE:
        status = build_collective(&builder, operation);
        break;
    case WEIR_OPERATION_NATIVE:
        status = build_child(&builder, operation);
        break;
    case WEIR_OPERATION_HOST_CALL:
        node->call = (struct cu_call){operation->u.host_call.function, operation->u.host_call.user};
        status =
            cu_add_part(&builder, &(struct cu_part){.kind = CU_PART_CALL, .u.call = &node->call});
        break;
    case WEIR_OPERATION_NOTE:
        status = cu_add_part(&builder, &(struct cu_part){.kind = CU_PART_CHILD});
        break;
    default: // there are no other nodes
        status = build_launch(link, &builder, operation);
        break;
    }
    if (status < 0) {
        cu_parts_release(device, *out_parts);
        *out_parts = NULL;
    }
    return status;
}
