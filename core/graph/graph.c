// Graphs: their life. capture.c makes them, launch.c launches them, update.c changes their nodes, and
// core/queue/replay.c replays them for a backend without graphs.
#include <weir/graph.h>

#include <limits.h>

#include "core/graph/graph.h"
#include "core/object/buffer.h"
#include "core/object/comm.h"
#include "core/object/device.h"
#include "core/object/program.h"
#include "core/queue/node_call.h"
#include "core/queue/replay.h"
#include "core/queue/retire.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

// Use of buffers and kernels.

static void count_buffer(weir_buffer *buffer, unsigned change)
{
    atomic_fetch_add(&buffer->member.uses, change);
}

static void count_ranges(const struct weir_operation *operation, unsigned change)
{
    struct weir_collective_range range;
    for (uint32_t i = 0; weir_collective_range_at(operation, i, &range); i++)
        count_buffer(range.buffer, change);
}

// A `change` of UINT_MAX subtracts one.
static void count_buffers(const struct weir_operation *operation, unsigned change)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
        count_buffer(operation->u.copy.dst, change);
        count_buffer(operation->u.copy.src, change);
        return;
    case WEIR_OPERATION_COPY_2D:
        count_buffer(operation->u.copy_2d.dst.buffer, change);
        count_buffer(operation->u.copy_2d.src.buffer, change);
        return;
    case WEIR_OPERATION_COPY_3D:
        count_buffer(operation->u.copy_3d.dst.buffer, change);
        count_buffer(operation->u.copy_3d.src.buffer, change);
        return;
    case WEIR_OPERATION_FILL:
        count_buffer(operation->u.fill.dst, change);
        return;
    case WEIR_OPERATION_FILL_2D:
        count_buffer(operation->u.fill_2d.dst.buffer, change);
        return;
    case WEIR_OPERATION_LAUNCH:
        for (size_t i = 0; i < operation->u.launch.argument_count; i++)
            if (operation->u.launch.arguments[i].kind == WEIR_PARAMETER_BUFFER)
                count_buffer(operation->u.launch.arguments[i].buffer, change);
        return;
    case WEIR_OPERATION_NATIVE:
        for (size_t i = 0; i < operation->u.native.argument_count; i++)
            count_buffer(operation->u.native.arguments[i].buffer, change);
        return;
    case WEIR_OPERATION_COLLECTIVE:
        count_ranges(operation, change);
        return;
    default: // no other kind can be part of a graph
        return;
    }
}

// The kernel or the communicator.
static void count_kernel(const struct weir_operation *operation, unsigned change)
{
    if (operation->kind == WEIR_OPERATION_LAUNCH)
        atomic_fetch_add(&operation->u.launch.kernel->member.uses, change);
    if (operation->kind == WEIR_OPERATION_COLLECTIVE)
        atomic_fetch_add(&operation->u.collective.comm->member.uses, change);
}

void weir__operation_use(const struct weir_operation *operation)
{
    count_buffers(operation, 1);
    count_kernel(operation, 1);
}

void weir__operation_unuse(const struct weir_operation *operation)
{
    count_buffers(operation, UINT_MAX);
    count_kernel(operation, UINT_MAX);
}

static void unuse_buffers(struct weir__graph_parts *parts)
{
    for (uint32_t i = 0; i < parts->node_count && !parts->without_buffers; i++)
        count_buffers(parts->owned[i], UINT_MAX);
    parts->without_buffers = true;
}

void weir__graph_parts_finish(struct weir__graph_parts *parts)
{
    unuse_buffers(parts);
    for (uint32_t i = 0; i < parts->node_count; i++) {
        count_kernel(parts->owned[i], UINT_MAX);
        weir__release(parts->owned[i]);
        weir__release((void *)(uintptr_t)parts->nodes[i].dependencies);
    }
    while (parts->calls) {
        struct weir__node_call *next = parts->calls->next;
        weir__node_call_free(parts->calls);
        parts->calls = next;
    }
    weir__release(parts->nodes);
    weir__release(parts->owned);
    *parts = (struct weir__graph_parts){0};
}

// Creation and destruction.

static void finalize(struct weir__member *member)
{
    weir_graph *graph = (weir_graph *)(void *)member;
    weir__chain_graph_destroy(graph->member.device->chain, graph, graph->is_native);
    weir__graph_comms_finish(&graph->comms);
    weir__graph_parts_finish(&graph->parts);
    weir_biased_lock_finish(&graph->lock);
    weir__member_free(&graph->member);
}

static const struct weir__class graph_class = {.name = "graph", .finalize = finalize};

static bool wrap_calls(struct weir__graph_parts *parts, bool in_backend)
{
    for (uint32_t i = 0; i < parts->node_count; i++) {
        if (!weir__has_node_call(parts->owned[i]))
            continue;
        struct weir__node_call *call = weir__node_call_wrap(parts->owned[i], i, in_backend);
        if (!call)
            return false;
        call->next = parts->calls;
        parts->calls = call;
    }
    return true;
}

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
    graph->is_native = weir__replay_is_native(weir__chain_backend(device->chain), device, &setup);
    weir_status status = WEIR_OK;
    if (!weir__graph_comms_find(&graph->comms, parts) || !wrap_calls(parts, graph->is_native))
        status = weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for the nodes of a graph");
    if (status == WEIR_OK)
        status = weir__chain_graph_create(device->chain, device, graph, &setup, graph->is_native,
                                          graph->member.object.data);
    if (status < 0) {
        weir__error_place(status, label, NULL, 0);
        weir__graph_comms_finish(&graph->comms);
        weir__member_free(&graph->member);
        return status;
    }
    graph->first = device->first;
    graph->parts = *parts;
    *parts = (struct weir__graph_parts){0};
    weir_biased_lock_init(&graph->lock, &weir__locks[WEIR__LOCK_GRAPH]);
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

void(weir_graph_destroy)(weir_graph **graph)
{
    weir_graph_destroy_at(graph, NULL, 0);
}

uint32_t weir_graph_node_count(const weir_graph *graph)
{
    return WEIR_IS_ALIVE(graph) ? graph->parts.node_count : 0;
}
