// Updates of nodes that call a function of the program's. Such a node calls the library, before an update and after it;
// its call (core/queue/node_call.h) knows what the launches call, and keeps the function of the earlier ones.
#include <weir/graph.h>
#include <weir/interop.h>

#include "core/graph/update.h"
#include "core/module/chain.h"
#include "core/object/device.h"
#include "core/queue/node_call.h"
#include "core/support/debug.h"
#include "core/support/error.h"

static weir_status update(weir_graph *graph, uint32_t node, const struct weir_operation *operation,
                          const struct weir__node_target *target)
{
    struct weir__node_call *call = weir__node_call_of(operation);
    if (!weir__node_call_change(call, target))
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a node of a graph");
    const weir_status status = weir__graph_update(graph, node, operation);
    if (status < 0)
        weir__node_call_keep(call);
    return status;
}

static weir_status set_host_call(weir_graph *graph, uint32_t node, weir_host_function function,
                                 void *user)
{
    const struct weir__node_target target = {.host = function, .user = user};
    const weir_status status = weir__graph_check_kind(graph, node, WEIR_OPERATION_HOST_CALL);
    return status < 0 ? status : update(graph, node, graph->parts.owned[node], &target);
}

weir_status weir_graph_set_host_call_at(weir_graph *graph, uint32_t node,
                                        weir_host_function function, void *user, const char *file,
                                        int line)
{
    WEIR_ENTER_AT(file, line, graph);
    WEIR_REQUIRE_AT(file, line, NULL, graph);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, function);
    weir_biased_lock_take(&graph->lock);
    const weir_status status = set_host_call(graph, node, function, user);
    return weir__placed(weir__graph_end_update(graph, status), file, line);
}

static weir_status check_native(const weir_graph *graph, uint32_t node)
{
    const weir_status status = weir__graph_check_kind(graph, node, WEIR_OPERATION_NATIVE);
    if (status < 0 || !graph->is_native ||
        weir__chain_backend(graph->member.device->chain)->ops->graph_recapture)
        return status;
    return weir__fail_at(NULL, 0, graph->member.object.label, WEIR_ERROR_UNSUPPORTED,
                         "use the module of this version, or capture another graph",
                         "the backend's module is of a version that updates no native calls");
}

static weir_status set_native(weir_graph *graph, uint32_t node,
                              const struct weir__node_target *target,
                              const struct weir_argument *arguments, size_t argument_count)
{
    struct weir_operation operation;
    const struct weir__caller caller = weir__graph_caller(graph);
    weir_status status = check_native(graph, node);
    if (status < 0)
        return status;
    const struct weir_operation *before = graph->parts.owned[node];
    status = weir__operation_native(&caller, before->u.native.function, before->u.native.user,
                                    arguments, argument_count, &operation);
    return status < 0 ? status : update(graph, node, &operation, target);
}

weir_status weir_graph_set_native_at(weir_graph *graph, uint32_t node,
                                     weir_native_function function, void *user,
                                     const struct weir_argument *arguments, size_t argument_count,
                                     const char *file, int line)
{
    const struct weir__node_target target = {.native = function, .user = user};
    WEIR_ENTER_AT(file, line, graph);
    WEIR_ENTER_ARGUMENTS(file, line, arguments, argument_count);
    WEIR_REQUIRE_AT(file, line, NULL, graph);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, function);
    WEIR_REQUIRE_AT(file, line, graph->member.object.label, arguments || argument_count == 0);
    weir_biased_lock_take(&graph->lock);
    const weir_status status = set_native(graph, node, &target, arguments, argument_count);
    return weir__placed(weir__graph_end_update(graph, status), file, line);
}
