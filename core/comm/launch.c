// Launches of graphs with collectives. A backend that has the graph gets the launch in one piece, as the
// calls of all its collectives: in the first turn of each communicator, and all of its turns end with
// it. Where delivery replays the nodes, each collective is a call of its own.
#include "core/comm/comm.h"
#include "core/comm/pulse_parts.h"
#include "core/graph/graph.h"
#include "core/queue/queue.h"
#include "core/support/error.h"

static const struct weir__graph_comms *collectives_of(const struct weir_operation *launch)
{
    return &launch->u.graph.graph->comms;
}

// The node's collective in this launch.
static struct weir_operation in_launch(const struct weir_operation *launch,
                                       const struct weir_operation *node)
{
    struct weir_operation operation = *node;
    uint32_t i = 0;
    while (launch->u.graph_comms.comms[i].comm != node->u.collective.comm)
        i++;
    operation.u.collective.number += launch->u.graph_comms.comms[i].number;
    operation.u.collective.turn += launch->u.graph_comms.comms[i].turn;
    return operation;
}

// The same as a part of the launch, in the queue of that.
static struct weir_operation in_queue(const struct weir_operation *launch,
                                      const struct weir_operation *node)
{
    struct weir_operation operation = in_launch(launch, node);
    operation.sequence = launch->sequence;
    operation.flags |= WEIR_OPERATION_PART;
    return operation;
}

bool weir__comm_captures(const struct weir_operation *node)
{
    weir_comm *comm = node->u.collective.comm;
    return weir__comm_takes(node) && comm->engine->ops->comm_captures &&
           comm->engine->ops->comm_captures(comm->engine, comm, node);
}

bool weir__comm_launch_is_ready(const struct weir_operation *launch)
{
    bool ready = true;
    for (uint32_t i = 0; i < launch->u.graph_comms.count && ready; i++) {
        const struct weir_graph_comm *own = &launch->u.graph_comms.comms[i];
        ready = !own->comm->check && weir__comm_has_turn(own->comm, own->turn);
    }
    return ready;
}

void weir__comm_skip_launch(const struct weir_operation *launch)
{
    const struct weir_error cause = *weir_last_error();
    const struct weir__graph_comms *all = collectives_of(launch);
    for (uint32_t i = 0; i < all->collective_count; i++) {
        const struct weir_operation operation = in_launch(launch, all->collectives[i]);
        weir__comm_excuse(&operation, &cause);
    }
}

// Of the first `count` communicators.
static void end_turns(const struct weir_operation *launch, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_graph_comm *own = &launch->u.graph_comms.comms[i];
        weir__comm_end_turn(own->comm, own->turn + own->count - 1);
    }
}

// All launches that share communicators have their turns in one order, so they do not wait for each other.
static weir_status await_turns(const struct weir_operation *launch)
{
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < launch->u.graph_comms.count && status == WEIR_OK; i++) {
        const struct weir_graph_comm *own = &launch->u.graph_comms.comms[i];
        status = weir__comm_await_turn(own->comm, own->turn);
        if (status < 0)
            end_turns(launch, i);
    }
    return status;
}

static weir_status submit(weir_queue *queue, const struct weir_operation *launch,
                          const struct weir_link *backend)
{
    const struct weir__graph_comms *all = collectives_of(launch);
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < all->collective_count && status == WEIR_OK; i++) {
        const struct weir_operation operation = in_queue(launch, all->collectives[i]);
        status = weir__comm_compare(&operation);
    }
    for (uint32_t i = 0; i < all->collective_count && status == WEIR_OK; i++) {
        const struct weir_operation operation = in_queue(launch, all->collectives[i]);
        if (!weir__pulse_note(operation.u.collective.comm, queue, &operation))
            status = weir_last_error()->status;
    }
    return status == WEIR_OK ? backend->ops->queue_submit(backend, queue, launch) : status;
}

weir_status weir__comm_launch(weir_queue *queue, const struct weir_operation *launch,
                              const struct weir_link *backend)
{
    weir_status status = await_turns(launch);
    const bool turned = status == WEIR_OK;
    if (turned) {
        // The detail of an earlier function in this thread must not be mistaken for this one's.
        weir_error_set(NULL);
        status = submit(queue, launch, backend);
    }
    if (status < 0) {
        const struct weir_error cause = weir__error_of(status);
        weir__error_set(&cause);
        weir__comm_skip_launch(launch);
        status = weir__comm_status(launch->u.graph_comms.comms[0].comm); // the first cause
    }
    if (turned)
        end_turns(launch, launch->u.graph_comms.count);
    return status;
}

weir_status weir__comm_run_node(weir_queue *queue, const struct weir_operation *launch,
                                weir_queue *lane, const struct weir_operation *node)
{
    const struct weir_operation noted = in_queue(launch, node);
    const struct weir_operation operation = in_launch(launch, node);
    weir_comm *comm = operation.u.collective.comm;
    weir_status status = weir__comm_await_turn(comm, operation.u.collective.turn);
    if (status < 0)
        return status;
    weir_error_set(NULL); // as above
    status = weir__comm_run_in_turn(&(struct weir__comm_call){queue, &noted, lane, &operation});
    weir__comm_end_turn(comm, operation.u.collective.turn);
    return status < 0 && weir__comm_status(comm) < 0 ? weir_last_error()->status : status;
}
