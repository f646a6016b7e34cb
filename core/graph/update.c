// Updates of a graph's nodes. Each takes the graph's lock, describes the node's new operation as a submit does, and
// puts it in the place of the node's.

#include "core/graph/graph.h"
#include "core/object/buffer.h"
#include "core/object/program.h"
#include "core/queue/operation.h"
#include "core/support/memory.h"

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

static weir_status refuse_kind(const weir_graph *graph, uint32_t node,
                               const struct weir_operation *before, enum weir_operation_kind kind)
{
    return weir__invalid(graph->member.object.label, "weir_capture_node() tells a node's number",
                         "node %u is a %s (%s:%d); it cannot become a %s", (unsigned)node,
                         weir_operation_kind_name(before->kind), before->file, before->line,
                         weir_operation_kind_name(kind));
}

// Of the node's kind. A launch gets the node's kernel.
static weir_status check_operands(const struct weir__caller *caller, const char *call,
                                  const struct weir_operation *before,
                                  struct weir_operation *operation,
                                  struct weir_argument widened[WEIR__WIDEN_LIMIT])
{
    switch (operation->kind) {
    case WEIR_OPERATION_LAUNCH:
        operation->flags = before->flags & WEIR_OPERATION_COOPERATIVE;
        operation->u.launch.kernel = before->u.launch.kernel;
        return weir__operation_launch(caller, operation, operation->u.launch.grid,
                                      operation->u.launch.block, widened);
    case WEIR_OPERATION_NATIVE:
        return weir__operation_native(caller, operation);
    case WEIR_OPERATION_HOST_CALL:
        return WEIR_OK;
    default:
        return weir__operation_box(caller, call, operation);
    }
}

static weir_status end(weir_graph *graph, weir_status status, const char *file, int line)
{
    weir_lock_release(&graph->lock);
    if (status == WEIR_OK) // objects that it used before may be unused now
        weir__device_reap(graph->member.device);
    return weir__placed(status, file, line);
}

// The node becomes the operation, whose operands the caller has written. `call` is the name of a copy or a fill.
static weir_status set(weir_graph *graph, uint32_t node, const char *call,
                       enum weir_operation_kind kind, struct weir_operation *operation,
                       const char *file, int line)
{
    const struct weir__caller caller = {.device = graph->member.device,
                                        .label = graph->member.object.label,
                                        file,
                                        line};
    struct weir_argument widened[WEIR__WIDEN_LIMIT];
    weir_status status;
    weir__operation_begin(operation, kind, 0, file, line);
    weir_lock_take(&graph->lock);
    const struct weir_operation *before =
        node < graph->parts.node_count ? graph->parts.nodes[node].operation : NULL;
    if (!before)
        status = refuse_node(graph, node);
    else if (before->kind != kind)
        status = refuse_kind(graph, node, before, kind);
    else
        status = check_operands(&caller, call, before, operation, widened);
    if (status == WEIR_OK)
        status = update(graph, node, operation);
    return end(graph, status, file, line);
}

weir_status weir_graph_set_copy_at(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                   size_t dst_offset, weir_buffer *src, size_t src_offset,
                                   size_t size, const char *file, int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, graph, dst, src);
    weir_box_row(&operation.u.box, dst, dst_offset, src, src_offset, size);
    return set(graph, node, "copy", WEIR_OPERATION_COPY, &operation, file, line);
}

weir_status weir_graph_set_copy_2d_at(weir_graph *graph, uint32_t node, struct weir_plane dst,
                                      struct weir_plane src, size_t width, size_t height,
                                      const char *file, int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, graph, dst.buffer, src.buffer);
    weir__box_copy(&operation.u.box, dst, src, width, height);
    return set(graph, node, "copy_2d", WEIR_OPERATION_COPY, &operation, file, line);
}

weir_status weir_graph_set_copy_3d_at(weir_graph *graph, uint32_t node, struct weir_volume dst,
                                      struct weir_volume src, size_t width, size_t height,
                                      size_t depth, const char *file, int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, graph, dst.buffer, src.buffer);
    operation.u.box = (struct weir_box){dst, src, width, height, depth, NULL, 0};
    return set(graph, node, "copy_3d", WEIR_OPERATION_COPY, &operation, file, line);
}

weir_status weir_graph_set_fill_at(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                   size_t dst_offset, size_t size, const void *pattern,
                                   size_t pattern_size, const char *file, int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, graph, dst);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, pattern);
    weir__box_fill(&operation.u.box, (struct weir_plane){dst, dst_offset, size}, size, 1, pattern,
                   pattern_size);
    return set(graph, node, "fill", WEIR_OPERATION_FILL, &operation, file, line);
}

weir_status weir_graph_set_fill_2d_at(weir_graph *graph, uint32_t node, struct weir_plane dst,
                                      size_t width, size_t height, const void *pattern,
                                      size_t pattern_size, const char *file, int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, graph, dst.buffer);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, pattern);
    weir__box_fill(&operation.u.box, dst, width, height, pattern, pattern_size);
    return set(graph, node, "fill_2d", WEIR_OPERATION_FILL, &operation, file, line);
}

weir_status weir_graph_set_launch_at(weir_graph *graph, uint32_t node, struct weir_extent grid,
                                     struct weir_extent block,
                                     const struct weir_argument *arguments, size_t argument_count,
                                     const char *file, int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, graph);
    WEIR_ENTER_ARGUMENTS(file, line, arguments, argument_count);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, arguments || argument_count == 0);
    operation.u.launch.grid = grid;
    operation.u.launch.block = block;
    operation.u.launch.arguments = arguments;
    operation.u.launch.argument_count = argument_count;
    return set(graph, node, NULL, WEIR_OPERATION_LAUNCH, &operation, file, line);
}

weir_status weir_graph_set_host_call_at(weir_graph *graph, uint32_t node,
                                        weir_host_function function, void *user, const char *file,
                                        int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, graph);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, function);
    operation.u.host_call.function = function;
    operation.u.host_call.user = user;
    return set(graph, node, NULL, WEIR_OPERATION_HOST_CALL, &operation, file, line);
}

weir_status weir_graph_set_native_at(weir_graph *graph, uint32_t node,
                                     weir_native_function function, void *user,
                                     const struct weir_argument *arguments, size_t argument_count,
                                     const char *file, int line)
{
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, graph);
    WEIR_ENTER_ARGUMENTS(file, line, arguments, argument_count);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, function);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, arguments || argument_count == 0);
    operation.u.native.function = function;
    operation.u.native.user = user;
    operation.u.native.arguments = arguments;
    operation.u.native.argument_count = argument_count;
    return set(graph, node, NULL, WEIR_OPERATION_NATIVE, &operation, file, line);
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
