// Updates of nodes that copy or fill rows and slices.
#include <weir/graph.h>

#include "core/graph/update.h"
#include "core/support/debug.h"
#include "core/support/error.h"

static weir_status set_copy_2d(weir_graph *graph, uint32_t node, const struct weir_plane *dst,
                               const struct weir_plane *src, size_t width, size_t height)
{
    struct weir_operation operation;
    const struct weir__caller caller = weir__graph_caller(graph);
    weir_status status = weir__graph_check_kind(graph, node, WEIR_OPERATION_COPY_2D);
    if (status == WEIR_OK)
        status = weir__operation_copy_2d(&caller, dst, src, width, height, &operation);
    return status < 0 ? status : weir__graph_update(graph, node, &operation);
}

weir_status weir_graph_set_copy_2d_at(weir_graph *graph, uint32_t node, struct weir_plane dst,
                                      struct weir_plane src, size_t width, size_t height,
                                      const char *file, int line)
{
    WEIR_ENTER_AT(file, line, graph, dst.buffer, src.buffer);
    WEIR_REQUIRE_AT(file, line, NULL, graph);
    weir_biased_lock_take(&graph->lock);
    const weir_status status = set_copy_2d(graph, node, &dst, &src, width, height);
    return weir__placed(weir__graph_end_update(graph, status), file, line);
}

static weir_status set_copy_3d(weir_graph *graph, uint32_t node, const struct weir_volume *dst,
                               const struct weir_volume *src, size_t width, size_t height,
                               size_t depth)
{
    struct weir_operation operation;
    const struct weir__caller caller = weir__graph_caller(graph);
    weir_status status = weir__graph_check_kind(graph, node, WEIR_OPERATION_COPY_3D);
    if (status == WEIR_OK)
        status = weir__operation_copy_3d(&caller, dst, src, width, height, depth, &operation);
    return status < 0 ? status : weir__graph_update(graph, node, &operation);
}

weir_status weir_graph_set_copy_3d_at(weir_graph *graph, uint32_t node, struct weir_volume dst,
                                      struct weir_volume src, size_t width, size_t height,
                                      size_t depth, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, graph, dst.buffer, src.buffer);
    WEIR_REQUIRE_AT(file, line, NULL, graph);
    weir_biased_lock_take(&graph->lock);
    const weir_status status = set_copy_3d(graph, node, &dst, &src, width, height, depth);
    return weir__placed(weir__graph_end_update(graph, status), file, line);
}

static weir_status set_fill_2d(weir_graph *graph, uint32_t node, const struct weir_plane *dst,
                               size_t width, size_t height, const void *pattern,
                               size_t pattern_size)
{
    struct weir_operation operation;
    const struct weir__caller caller = weir__graph_caller(graph);
    weir_status status = weir__graph_check_kind(graph, node, WEIR_OPERATION_FILL_2D);
    if (status == WEIR_OK)
        status =
            weir__operation_fill_2d(&caller, dst, width, height, pattern, pattern_size, &operation);
    return status < 0 ? status : weir__graph_update(graph, node, &operation);
}

weir_status weir_graph_set_fill_2d_at(weir_graph *graph, uint32_t node, struct weir_plane dst,
                                      size_t width, size_t height, const void *pattern,
                                      size_t pattern_size, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, graph, dst.buffer);
    WEIR_REQUIRE_AT(file, line, NULL, graph);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, pattern);
    weir_biased_lock_take(&graph->lock);
    const weir_status status = set_fill_2d(graph, node, &dst, width, height, pattern, pattern_size);
    return weir__placed(weir__graph_end_update(graph, status), file, line);
}
