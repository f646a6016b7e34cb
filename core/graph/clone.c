// Clones: graphs of copies of another one's nodes.
#include <weir/graph.h>

#include <string.h>

#include "core/graph/graph.h"
#include "core/queue/held.h"
#include "core/queue/node_call.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// Counts as used what the copy names.
static bool copy_node(const struct weir__graph_parts *from, uint32_t index,
                      struct weir__graph_parts *to)
{
    const struct weir_graph_node *node = &from->nodes[index];
    const size_t bytes = node->dependency_count * sizeof *node->dependencies;
    uint32_t *dependencies = weir__allocate(bytes);
    struct weir_operation *operation = weir__operation_clone(from->owned[index]);
    if (!dependencies || !operation) {
        weir__release(dependencies);
        weir__release(operation);
        return false;
    }
    if (weir__has_node_call(operation))
        weir__node_call_unwrap(operation);
    if (bytes)
        memcpy(dependencies, node->dependencies, bytes);
    to->nodes[index] = *node;
    to->nodes[index].operation = operation;
    to->nodes[index].dependencies = dependencies;
    to->owned[index] = operation;
    to->node_count++;
    weir__operation_use(operation);
    return true;
}

static bool copy_parts(const struct weir__graph_parts *from, struct weir__graph_parts *to)
{
    to->nodes = weir__allocate(from->node_count * sizeof *to->nodes);
    to->owned = weir__allocate(from->node_count * sizeof(void *));
    to->branch_count = from->branch_count;
    bool made = to->nodes && to->owned;
    for (uint32_t i = 0; i < from->node_count && made; i++)
        made = copy_node(from, i, to);
    return made;
}

// The lock is not held while the driver makes its graph, nor while objects are finalized.
static weir_status clone(weir_graph *graph, const char *label, weir_graph **out_graph)
{
    struct weir__graph_parts parts = {0};
    weir_biased_lock_take(&graph->lock);
    const bool copied = copy_parts(&graph->parts, &parts);
    weir_biased_lock_release(&graph->lock);
    const weir_status status =
        copied ? weir__graph_create(graph->member.device, label, &parts, out_graph)
               : weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory to clone a graph");
    weir__graph_parts_finish(&parts);
    return status;
}

weir_status weir_graph_clone_at(weir_graph *graph, const struct weir_graph_params *params,
                                weir_graph **out_graph, const char *file, int line)
{
    struct weir_graph_params known;
    WEIR_REQUIRE_AT(file, line, NULL, out_graph);
    *out_graph = NULL;
    WEIR_ENTER_AT(file, line, graph);
    WEIR_REQUIRE_AT(file, line, NULL, graph);
    if (params)
        WEIR_READ_PARAMS(weir_graph_params, params, &known);
    const char *label = params && params->label ? params->label : graph->member.object.label;
    const weir_status status = clone(graph, label, out_graph);
    if (status == WEIR_OK)
        weir__member_place(&(*out_graph)->member, file, line);
    return weir__placed(status, file, line);
}
