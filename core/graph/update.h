// Shared by the updates of graphs. All under the graph's lock.
#ifndef WEIR_CORE_GRAPH_UPDATE_H
#define WEIR_CORE_GRAPH_UPDATE_H

#include "core/graph/graph.h"
#include "core/queue/operation.h"

struct weir__caller weir__graph_caller(const weir_graph *graph);

// Refuses a node of another kind, or none of the graph's.
weir_status weir__graph_check_kind(const weir_graph *graph, uint32_t node,
                                   enum weir_operation_kind wanted);

// Later launches use a copy of the operation, which is of the node's kind. A disabled node stays so. Refuses
// a buffer of another placement than the node has, and an empty operation.
weir_status weir__graph_update(weir_graph *graph, uint32_t index,
                               const struct weir_operation *operation);

// Ends an update that began by taking the graph's lock.
weir_status weir__graph_end_update(weir_graph *graph, weir_status status);

#endif
