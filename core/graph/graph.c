// Graphs: their life and updates. capture.c makes them, launch.c launches them, and
// core/queue/replay.c replays them for a backend without graphs.
#include <weir/graph.h>

#include <limits.h>

#include "core/graph/graph.h"
#include "core/object/buffer.h"
#include "core/object/comm.h"
#include "core/object/device.h"
#include "core/object/program.h"
#include "core/queue/held.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/queue/replay.h"
#include "core/queue/retire.h"
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
    weir_status status =
        weir__graph_comms_find(&graph->comms, parts)
            ? WEIR_OK
            : weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a graph's collectives");
    graph->is_native = weir__replay_is_native(weir__chain_backend(device->chain), &setup);
    if (status == WEIR_OK)
        status = weir__chain_graph_create(device->chain, device, graph, &setup, graph->is_native,
                                          graph->member.object.data);
    if (status < 0) {
        weir__error_place(label, NULL, 0);
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
void weir_graph_destroy(weir_graph **graph)
{
    if (!graph || !*graph || atomic_load(&weir__forked))
        return;
    weir_graph *gone = *graph;
    *graph = NULL;
    unuse_buffers(&gone->parts);
    weir__member_retire(&gone->member);
}

uint32_t weir_graph_node_count(const weir_graph *graph)
{
    return graph ? graph->parts.node_count : 0;
}

// Updates.

static weir_status refuse_node(const weir_graph *graph, uint32_t node)
{
    return weir__fail_at(NULL, 0, graph->member.object.label, WEIR_ERROR_INVALID,
                         "weir_capture_node() tells a node's number",
                         "node %u was named; the graph has %u", (unsigned)node,
                         (unsigned)graph->parts.node_count);
}

static weir_status check_kind(const weir_graph *graph, uint32_t node,
                              enum weir_operation_kind wanted)
{
    if (node >= graph->parts.node_count)
        return refuse_node(graph, node);
    const struct weir_operation *operation = graph->parts.owned[node];
    if (operation->kind == wanted)
        return WEIR_OK;
    return weir__fail_at(NULL, 0, graph->member.object.label, WEIR_ERROR_INVALID,
                         "weir_capture_node() tells a node's number",
                         "node %u is a %s (%s:%d); it cannot become a %s", (unsigned)node,
                         weir__operation_name(operation->kind), operation->file, operation->line,
                         weir__operation_name(wanted));
}

static struct weir__caller caller_of(const weir_graph *graph)
{
    return (struct weir__caller){.device = graph->member.device,
                                 .label = graph->member.object.label};
}

// Under the graph's lock. On success the graph owns `fresh`.
static weir_status replace(weir_graph *graph, uint32_t index, struct weir_operation *fresh)
{
    struct weir_operation *old = graph->parts.owned[index];
    struct weir_graph_node node = graph->parts.nodes[index];
    fresh->sequence = old->sequence;
    fresh->file = old->file;
    fresh->line = old->line;
    node.operation = fresh;
    weir_status status = graph->first->ops->graph_update(graph->first, graph, index, &node);
    if (status < 0)
        return status;
    weir__operation_use(fresh);
    weir__operation_unuse(old);
    graph->parts.nodes[index] = node;
    graph->parts.owned[index] = fresh;
    weir__release(old);
    return WEIR_OK;
}

static weir_status update(weir_graph *graph, uint32_t index, const struct weir_operation *operation)
{
    if (operation->flags & WEIR_OPERATION_EMPTY)
        return weir__fail_at(NULL, 0, graph->member.object.label, WEIR_ERROR_INVALID,
                             "capture another graph without it", "node %u cannot become empty",
                             (unsigned)index);
    struct weir_operation *fresh = weir__operation_clone(operation);
    if (!fresh)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a node of a graph");
    weir_status status = replace(graph, index, fresh);
    if (status < 0) {
        weir__error_place(graph->member.object.label, NULL, 0);
        weir__release(fresh);
    }
    return status;
}

// Ends an update that began by taking the graph's lock.
static weir_status end_update(weir_graph *graph, weir_status status)
{
    weir_biased_lock_release(&graph->lock);
    if (status == WEIR_OK)
        weir__device_reap(graph->member.device); // objects that it used before may be
                                                 // unused now
    return status;
}

static weir_status set_launch(weir_graph *graph, uint32_t node, struct weir_extent grid,
                              struct weir_extent block, const struct weir_argument *arguments,
                              size_t argument_count)
{
    struct weir_operation operation;
    struct weir_argument widened[WEIR__WIDEN_LIMIT];
    struct weir__caller caller = caller_of(graph);
    weir_status status = check_kind(graph, node, WEIR_OPERATION_LAUNCH);
    if (status < 0)
        return status;
    const struct weir_operation *before = graph->parts.owned[node];
    weir_kernel *kernel = before->u.launch.kernel;
    caller.cooperative = before->flags & WEIR_OPERATION_COOPERATIVE;
    status =
        weir__operation_launch(&caller, kernel, grid, block, arguments, argument_count, &operation);
    if (status == WEIR__WIDEN) {
        weir__kernel_widen(kernel, arguments, widened);
        status = weir__operation_launch(&caller, kernel, grid, block, widened, argument_count,
                                        &operation);
    }
    return status < 0 ? status : update(graph, node, &operation);
}

weir_status(weir_graph_set_launch)(weir_graph *graph, uint32_t node, struct weir_extent grid,
                                   struct weir_extent block, const struct weir_argument *arguments,
                                   size_t argument_count)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, graph);
    WEIR_REQUIRE(graph->member.object.label, arguments || argument_count == 0);
    weir_biased_lock_take(&graph->lock);
    return end_update(graph, set_launch(graph, node, grid, block, arguments, argument_count));
}

weir_status weir_graph_set_launch_at(weir_graph *graph, uint32_t node, struct weir_extent grid,
                                     struct weir_extent block,
                                     const struct weir_argument *arguments, size_t argument_count,
                                     const char *file, int line)
{
    return weir__placed((weir_graph_set_launch)(graph, node, grid, block, arguments,
                                                argument_count),
                        file, line);
}

static const char *name_of(weir_placement placement)
{
    if (placement == WEIR_PLACE_MANAGED)
        return "MANAGED";
    return placement == WEIR_PLACE_HOST ? "HOST" : "DEVICE";
}

static weir_status check_placement(const weir_graph *graph, uint32_t node, const char *role,
                                   const weir_buffer *before, const weir_buffer *buffer)
{
    if (before->placement == buffer->placement)
        return WEIR_OK;
    return weir__fail_at(NULL, 0, graph->member.object.label, WEIR_ERROR_INVALID,
                         "capture another graph for it",
                         "node %u: %s '%s' is a %s buffer, and the node's was a %s buffer",
                         (unsigned)node, role, weir__label_shown(buffer->member.object.label),
                         name_of(buffer->placement), name_of(before->placement));
}

static weir_status set_copy(weir_graph *graph, uint32_t node, weir_buffer *dst, size_t dst_offset,
                            weir_buffer *src, size_t src_offset, size_t size)
{
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(graph);
    weir_status status = check_kind(graph, node, WEIR_OPERATION_COPY);
    if (status == WEIR_OK)
        status = weir__operation_copy(&caller, dst, dst_offset, src, src_offset, size, &operation);
    if (status < 0)
        return status;
    const struct weir_operation *before = graph->parts.owned[node];
    status = check_placement(graph, node, "dst", before->u.copy.dst, dst);
    if (status == WEIR_OK)
        status = check_placement(graph, node, "src", before->u.copy.src, src);
    return status < 0 ? status : update(graph, node, &operation);
}

weir_status(weir_graph_set_copy)(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                 size_t dst_offset, weir_buffer *src, size_t src_offset,
                                 size_t size)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, graph);
    weir_biased_lock_take(&graph->lock);
    return end_update(graph, set_copy(graph, node, dst, dst_offset, src, src_offset, size));
}

weir_status weir_graph_set_copy_at(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                   size_t dst_offset, weir_buffer *src, size_t src_offset,
                                   size_t size, const char *file, int line)
{
    return weir__placed((weir_graph_set_copy)(graph, node, dst, dst_offset, src, src_offset, size),
                        file, line);
}

static weir_status set_fill(weir_graph *graph, uint32_t node, weir_buffer *dst, size_t dst_offset,
                            size_t size, const void *pattern, size_t pattern_size)
{
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(graph);
    weir_status status = check_kind(graph, node, WEIR_OPERATION_FILL);
    if (status < 0)
        return status;
    const weir_buffer *before = graph->parts.owned[node]->u.fill.dst;
    status =
        weir__operation_fill(&caller, dst, dst_offset, size, pattern, pattern_size, &operation);
    if (status == WEIR_OK)
        status = check_placement(graph, node, "dst", before, dst);
    return status < 0 ? status : update(graph, node, &operation);
}

weir_status(weir_graph_set_fill)(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                 size_t dst_offset, size_t size, const void *pattern,
                                 size_t pattern_size)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, graph);
    WEIR_REQUIRE(graph->member.object.label, pattern);
    weir_biased_lock_take(&graph->lock);
    return end_update(graph, set_fill(graph, node, dst, dst_offset, size, pattern, pattern_size));
}

weir_status weir_graph_set_fill_at(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                   size_t dst_offset, size_t size, const void *pattern,
                                   size_t pattern_size, const char *file, int line)
{
    return weir__placed((weir_graph_set_fill)(graph, node, dst, dst_offset, size, pattern,
                                              pattern_size),
                        file, line);
}
