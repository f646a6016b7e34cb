// Updates of a graph's nodes. Each takes the graph's lock, describes the node's new operation as a submit does, and
// puts it in the place of the node's. A node that calls a function of the program's calls the library, before an
// update and after it; its call (core/queue/node_call.h) knows what the launches call, and keeps the function of the
// earlier ones.
#include <weir/graph.h>
#include <weir/interop.h>

#include "core/graph/graph.h"
#include "core/object/buffer.h"
#include "core/object/program.h"
#include "core/queue/delivery.h"
#include "core/queue/node_call.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

static weir_status refuse_node(const weir_graph *graph, uint32_t node)
{
    return weir__invalid(graph->member.object.label, "weir_capture_node() tells a node's number",
                         "node %u was named; the graph has %u", (unsigned)node,
                         (unsigned)graph->parts.node_count);
}

// Later launches use a copy of the operation with these flags. Under the graph's lock.
static weir_status replace(weir_graph *graph, uint32_t index,
                           const struct weir_operation *operation, uint32_t flags)
{
    struct weir_operation *fresh = weir__operation_clone(operation);
    if (!fresh)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a node of a graph");
    struct weir_operation *old = weir__graph_operation(&graph->parts, index);
    struct weir_graph_node node = graph->parts.nodes[index];
    fresh->flags = flags;
    fresh->sequence = old->sequence;
    fresh->file = old->file;
    fresh->line = old->line;
    node.operation = fresh;
    const struct weir_link *first = graph->member.device->first;
    const weir_status status = first->ops->graph_update(first, graph, index, &node);
    if (status < 0) {
        weir__error_place(status, graph->member.object.label, NULL, 0);
        weir__release(fresh);
        return status;
    }
    weir__operation_count(fresh, 1);
    weir__operation_count(old, -1);
    graph->parts.nodes[index] = node;
    weir__release(old);
    return WEIR_OK;
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
    if (!before || before->placement == buffer->placement)
        return WEIR_OK;
    return weir__invalid(graph->member.object.label, "capture another graph for it",
                         "node %u: %s '%s' is a %s buffer, and the node's was a %s buffer",
                         (unsigned)node, role, weir__label_or_none(buffer->member.object.label),
                         name_of(buffer->placement), name_of(before->placement));
}

// Later launches use a copy of the operation, which is of the node's kind. A disabled node stays so. Refuses
// a buffer of another placement than the node has, and an empty operation.
static weir_status update(weir_graph *graph, uint32_t index, const struct weir_operation *operation)
{
    const struct weir_box *now = weir_operation_box(operation);
    const struct weir_operation *node = graph->parts.nodes[index].operation;
    weir_status status = WEIR_OK;
    if (now)
        status = check_placement(graph, index, "dst", node->u.box.dst.buffer, now->dst.buffer);
    if (now && status == WEIR_OK)
        status = check_placement(graph, index, "src", node->u.box.src.buffer, now->src.buffer);
    if (status < 0)
        return status;
    if (operation->flags & WEIR_OPERATION_EMPTY)
        return weir__invalid(graph->member.object.label, "capture another graph without it",
                             "node %u cannot become empty", (unsigned)index);
    return replace(graph, index, operation,
                   operation->flags | (node->flags & WEIR_OPERATION_EMPTY));
}

// Takes the graph's lock, and stores the caller of the new operation's checks. Refuses a node of another kind, or none
// of the graph's.
static weir_status begin(weir_graph *graph, uint32_t node, enum weir_operation_kind kind,
                         struct weir__caller *out_caller)
{
    *out_caller =
        (struct weir__caller){.device = graph->member.device, .label = graph->member.object.label};
    weir_lock_take(&graph->lock);
    if (node >= graph->parts.node_count)
        return refuse_node(graph, node);
    const struct weir_operation *operation = graph->parts.nodes[node].operation;
    if (operation->kind == kind)
        return WEIR_OK;
    return weir__invalid(graph->member.object.label, "weir_capture_node() tells a node's number",
                         "node %u is a %s (%s:%d); it cannot become a %s", (unsigned)node,
                         weir_operation_kind_name(operation->kind), operation->file,
                         operation->line, weir_operation_kind_name(kind));
}

static weir_status end(weir_graph *graph, weir_status status, const char *file, int line)
{
    weir_lock_release(&graph->lock);
    if (status == WEIR_OK) // objects that it used before may be unused now
        weir__device_reap(graph->member.device);
    return weir__placed(status, file, line);
}

// The same, with the update if all was well so far.
static weir_status end_with(weir_graph *graph, uint32_t node, weir_status status,
                            const struct weir_operation *operation, const char *file, int line)
{
    return end(graph, status < 0 ? status : update(graph, node, operation), file, line);
}

weir_status weir_graph_set_copy_at(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                   size_t dst_offset, weir_buffer *src, size_t src_offset,
                                   size_t size, const char *file, int line)
{
    struct weir_operation operation;
    struct weir__caller caller;
    WEIR_ENTER_AT(file, line, graph, dst, src);
    weir_status status = begin(graph, node, WEIR_OPERATION_COPY, &caller);
    if (status == WEIR_OK)
        status = weir__operation_copy(&caller, dst, dst_offset, src, src_offset, size, &operation);
    return end_with(graph, node, status, &operation, file, line);
}

static weir_status set_box(weir_graph *graph, uint32_t node, const char *call,
                           const struct weir_volume *dst, const struct weir_volume *src,
                           size_t width, size_t height, size_t depth, const char *file, int line)
{
    struct weir_operation operation;
    struct weir__caller caller;
    weir_status status = begin(graph, node, WEIR_OPERATION_COPY, &caller);
    if (status == WEIR_OK)
        status = weir__operation_box(&caller, call, dst, src, width, height, depth, &operation);
    return end_with(graph, node, status, &operation, file, line);
}

weir_status weir_graph_set_copy_2d_at(weir_graph *graph, uint32_t node, struct weir_plane dst,
                                      struct weir_plane src, size_t width, size_t height,
                                      const char *file, int line)
{
    const struct weir_volume to = weir__slice_of(&dst), from = weir__slice_of(&src);
    WEIR_ENTER_AT(file, line, graph, dst.buffer, src.buffer);
    return set_box(graph, node, "copy_2d", &to, &from, width, height, 1, file, line);
}

weir_status weir_graph_set_copy_3d_at(weir_graph *graph, uint32_t node, struct weir_volume dst,
                                      struct weir_volume src, size_t width, size_t height,
                                      size_t depth, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, graph, dst.buffer, src.buffer);
    return set_box(graph, node, "copy_3d", &dst, &src, width, height, depth, file, line);
}

static weir_status set_fill(weir_graph *graph, uint32_t node, const char *call,
                            const struct weir_plane *dst, size_t width, size_t height,
                            const void *pattern, size_t pattern_size, const char *file, int line)
{
    struct weir_operation operation;
    struct weir__caller caller;
    const struct weir_volume to = weir__slice_of(dst);
    weir_status status = begin(graph, node, WEIR_OPERATION_FILL, &caller);
    if (status == WEIR_OK)
        status = weir__operation_fill(&caller, call, &to, width, height, pattern, pattern_size,
                                      &operation);
    return end_with(graph, node, status, &operation, file, line);
}

weir_status weir_graph_set_fill_at(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                   size_t dst_offset, size_t size, const void *pattern,
                                   size_t pattern_size, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, graph, dst);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, pattern);
    return set_fill(graph, node, "fill", &(struct weir_plane){dst, dst_offset, size}, size, 1,
                    pattern, pattern_size, file, line);
}

weir_status weir_graph_set_fill_2d_at(weir_graph *graph, uint32_t node, struct weir_plane dst,
                                      size_t width, size_t height, const void *pattern,
                                      size_t pattern_size, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, graph, dst.buffer);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, pattern);
    return set_fill(graph, node, "fill_2d", &dst, width, height, pattern, pattern_size, file, line);
}

weir_status weir_graph_set_launch_at(weir_graph *graph, uint32_t node, struct weir_extent grid,
                                     struct weir_extent block,
                                     const struct weir_argument *arguments, size_t argument_count,
                                     const char *file, int line)
{
    struct weir_operation operation;
    struct weir_argument widened[WEIR__WIDEN_LIMIT];
    struct weir__caller caller;
    WEIR_ENTER_AT(file, line, graph);
    WEIR_ENTER_ARGUMENTS(file, line, arguments, argument_count);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, arguments || argument_count == 0);
    weir_status status = begin(graph, node, WEIR_OPERATION_LAUNCH, &caller);
    if (status == WEIR_OK) {
        const struct weir_operation *before = graph->parts.nodes[node].operation;
        caller.cooperative = before->flags & WEIR_OPERATION_COOPERATIVE;
        status = weir__operation_launch(&caller, before->u.launch.kernel, grid, block, arguments,
                                        argument_count, widened, &operation);
    }
    return end_with(graph, node, status, &operation, file, line);
}

// Functions of the program's.

static weir_status update_call(weir_graph *graph, uint32_t node,
                               const struct weir_operation *operation,
                               const struct weir__node_target *target)
{
    struct weir__node_call *call = weir__node_call_of(operation);
    const struct weir__node_target before = call->latest;
    call->latest = *target;
    const weir_status status = update(graph, node, operation);
    if (status < 0)
        call->latest = before;
    return status;
}

weir_status weir_graph_set_host_call_at(weir_graph *graph, uint32_t node,
                                        weir_host_function function, void *user, const char *file,
                                        int line)
{
    const struct weir__node_target target = {.host = function, .user = user};
    struct weir__caller unused;
    WEIR_ENTER_AT(file, line, graph);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, function);
    weir_status status = begin(graph, node, WEIR_OPERATION_HOST_CALL, &unused);
    if (status == WEIR_OK)
        status = update_call(graph, node, graph->parts.nodes[node].operation, &target);
    return end(graph, status, file, line);
}

weir_status weir_graph_set_native_at(weir_graph *graph, uint32_t node,
                                     weir_native_function function, void *user,
                                     const struct weir_argument *arguments, size_t argument_count,
                                     const char *file, int line)
{
    const struct weir__node_target target = {.native = function, .user = user};
    struct weir__caller caller;
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, graph);
    WEIR_ENTER_ARGUMENTS(file, line, arguments, argument_count);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, function);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, arguments || argument_count == 0);
    weir_status status = begin(graph, node, WEIR_OPERATION_NATIVE, &caller);
    if (status == WEIR_OK) {
        const struct weir_operation *before = graph->parts.nodes[node].operation;
        status = weir__operation_native(&caller, before->u.native.function, before->u.native.user,
                                        arguments, argument_count, &operation);
    }
    if (status == WEIR_OK)
        status = update_call(graph, node, &operation, &target);
    return end(graph, status, file, line);
}

// Disabled nodes.

weir_status weir_graph_set_enabled_at(weir_graph *graph, uint32_t node, bool enabled,
                                      const char *file, int line)
{
    WEIR_ENTER_AT(file, line, graph);
    weir_lock_take(&graph->lock);
    const struct weir_operation *before =
        node < graph->parts.node_count ? graph->parts.nodes[node].operation : NULL;
    weir_status status = WEIR_OK;
    if (!before)
        status = refuse_node(graph, node);
    else if (!weir__is_device_work(before->kind))
        status =
            weir__invalid(graph->member.object.label, "capture another graph without it",
                          "node %u is a %s (%s:%d); copies, fills and launches can be disabled",
                          (unsigned)node, weir_operation_kind_name(before->kind), before->file,
                          before->line);
    else if (enabled == (bool)(before->flags & WEIR_OPERATION_EMPTY))
        status = replace(graph, node, before, before->flags ^ WEIR_OPERATION_EMPTY);
    return end(graph, status, file, line);
}
