// A graph's launch is verified node by node: each node is run on its own, in the order of the capture,
// and what a node finds in memory is what the nodes before it left. In the place of the launch the
// queue gets a record.
#include "plugins/check/verify.h"

static weir_status submit(const struct weir_link *link, weir_queue *queue,
                          struct weir_operation *operation, uint64_t sequence)
{
    operation->flags |= WEIR_OPERATION_INTERNAL;
    operation->sequence = sequence;
    return link->next->ops->queue_submit(link->next, queue, operation);
}

// The next node is verified with what this one leaves.
static weir_status run(const struct weir_link *link, weir_queue *queue,
                       struct weir_operation *operation, uint64_t sequence)
{
    const weir_status status = submit(link, queue, operation, sequence);
    const weir_status finished = link->next->ops->queue_finish(link->next, queue);
    return status < 0 ? status : finished;
}

static weir_status verify_node(const struct weir_link *link, weir_queue *queue,
                               const struct weir_operation *launch,
                               const struct weir_operation *node)
{
    struct weir_operation_room room;
    struct weir_operation *operation = weir_operation_copy(&room, node);
    operation->sequence = launch->sequence;
    weir_status status = WEIR_OK;
    if (check_has_buffers(operation))
        status = check_verify_launch(link, queue, operation);
    return status < 0 ? status : run(link, queue, operation, launch->sequence - 1);
}

weir_status check_verify_nodes(const struct weir_link *link, weir_queue *queue,
                               const struct weir_operation *launch)
{
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < launch->u.graph.node_count && status >= 0; i++)
        status = verify_node(link, queue, launch,
                             weir_graph_node_at(launch->u.graph.nodes, i)->operation);
    struct weir_operation record = {
        .struct_size = sizeof record,
        .kind = WEIR_OPERATION_RECORD,
        .file = launch->file,
        .line = launch->line,
    };
    return status < 0 ? status : submit(link, queue, &record, launch->sequence);
}
