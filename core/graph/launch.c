// Launches of graphs. A launch is an operation like any other, except for the order of
// launches of one graph: on one queue they are in order anyway, and on another queue a wait
// for the earlier launch is submitted first.
#include <weir/graph.h>

#include "core/graph/graph.h"
#include "core/object/comm.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/queue/refused.h"
#include "core/queue/registry.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/thread.h"

// What the program frees on the failed queue must still come after the launch before.
WEIR_COLD static weir_status refuse_launch(weir_queue *queue, struct weir_event before)
{
    weir__refused_note(queue, before, false);
    return weir__completion_refuse(queue);
}

// With the submit lock held. A launch that is known to have ended no longer passes on a
// failure.
static weir_status wait_for_launch(weir_queue *queue, weir_queue *producer,
                                   struct weir_event launch, const char *file, int line)
{
    if (!producer || producer == queue ||
        atomic_load_explicit(&producer->completion.completed, memory_order_acquire) >=
            launch.sequence)
        return WEIR_OK;
    if (weir__completion_status(producer, launch.sequence) < 0) {
        const struct weir_error cause = *weir_last_error();
        weir__completion_fail(queue, queue->sequence + 1, &cause);
        return refuse_launch(queue, launch);
    }
    return weir__queue_wait_locked(queue, launch, producer,
                                   WEIR_OPERATION_RELAUNCH | WEIR_OPERATION_INTERNAL, file, line);
}

// Without releasing the lock in between: no other operation may come between the two, since a
// driver that orders launches itself orders only the launch.
static weir_status submit_launch(weir_queue *queue, struct weir_operation *operation,
                                 struct weir_event before)
{
    weir_queue *producer = before.queue ? weir__registry_pin(before.queue) : NULL;
    weir_status status;
    weir__queue_enter(queue);
    if (!weir__is_capturing(queue) || !weir__queue_note(queue, operation, &status)) {
        status = atomic_load_explicit(&queue->completion.failed, memory_order_acquire)
                     ? refuse_launch(queue, before)
                     : wait_for_launch(queue, producer, before, operation->file, operation->line);
        if (status == WEIR_OK)
            status = weir__queue_submit_locked(queue, operation);
    }
    weir_biased_lock_release(&queue->submit_lock);
    if (producer)
        weir__registry_unpin_later(producer);
    return status;
}

// Under the graph's lock.
static weir_status launch(weir_queue *queue, weir_graph *graph, const char *file, int line)
{
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_GRAPH, 0, file, line);
    operation.u.graph.graph = graph;
    operation.u.graph.nodes = graph->parts.nodes;
    operation.u.graph.node_count = graph->parts.node_count;
    const bool elsewhere = graph->launched.queue != queue->member.object.id;
    weir_status status = weir__graph_comms_begin(&graph->comms, &operation);
    if (status < 0)
        return status;
    status = submit_launch(queue, &operation, elsewhere ? graph->launched : (struct weir_event){0});
    weir__graph_comms_end(&graph->comms, &operation);
    if (status < 0 && operation.sequence && graph->comms.count) {
        graph->comms.comms[0].comm->ops->skip_launch(&operation);
        weir__completion_refuse(queue); // the thread's error is the queue's first cause again
    }
    // Also after a failure: part of it may be running.
    if (operation.sequence != 0)
        graph->launched = (struct weir_event){queue->member.object.id, operation.sequence};
    return status;
}

weir_status weir_queue_graph_at(weir_queue *queue, weir_graph *graph, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue, graph);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, graph);
    if (weir__debug_check_memory(__func__, file, line) < 0)
        return weir_last_error()->status;
    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue);
    if (graph->member.device != queue->member.device)
        return weir__fail_at(file, line, graph->member.object.label, WEIR_ERROR_INVALID,
                             "capture a graph for each device",
                             "weir_queue_graph: the graph belongs to another device than queue "
                             "'%s'",
                             weir__label_shown(queue->member.object.label));
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line,
                                            "a graph's launch cannot be part of a graph",
                                            "submit what it does to the queue instead");
    weir_biased_lock_take(&graph->lock);
    weir_status status = launch(queue, graph, file, line);
    weir_biased_lock_release(&graph->lock);
    return status;
}
