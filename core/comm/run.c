// Collectives, and launches of graphs that have them, through the host.
#include <stdio.h>
#include <string.h>

#include "core/comm/comm.h"
#include "core/comm/pulse.h"
#include "core/graph/graph.h"
#include "core/object/buffer.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// A collective through the host: the bytes of device memory come to the host, the transport runs,
// and what it wrote goes back. The copies go to the backend directly, as parts of
// the collective, so plugins see one operation.

#define STAGING_ALIGNMENT ((size_t)64)

// A range of the collective, and where its bytes are on the host.
struct side {
    struct weir_collective_range range;
    bool staged;
    size_t at; // in the staging memory
    char *host;
};

// One collective under way.
struct run {
    weir_queue *queue;
    const struct weir_operation *operation;
    weir_comm *comm;
    struct side *sides;
    struct side fixed[2];
    uint32_t count;
    size_t staging_size;
    struct weir_transport_part *parts; // of an exchange
};

static weir_datatype element_of(const struct weir_operation *operation, uint32_t index)
{
    return operation->u.collective.kind == WEIR_EXCHANGE
               ? operation->u.collective.exchanges[index].element
               : operation->u.collective.element;
}

// Whether the host can use the range where it is. The memory of a wrapped buffer may begin anywhere.
static bool is_on_host(const struct weir_collective_range *range, size_t element_size)
{
    const weir_buffer *buffer = range->buffer;
    return buffer->placement != WEIR_PLACE_DEVICE &&
           (uintptr_t)(buffer->pointer + range->offset) % element_size == 0;
}

// In place, one of the two ranges is part of the other, and so it is in the staging memory.
static bool lies_in(const struct side *small, const struct side *large)
{
    return small->range.buffer == large->range.buffer &&
           small->range.offset >= large->range.offset &&
           small->range.offset - large->range.offset < large->range.size;
}

static size_t take_staging(struct run *run, size_t size)
{
    const size_t at = run->staging_size;
    run->staging_size += (size + STAGING_ALIGNMENT - 1) / STAGING_ALIGNMENT * STAGING_ALIGNMENT;
    return at;
}

static void place_pair(struct run *run)
{
    struct side *large = &run->sides[0];
    struct side *small = &run->sides[1];
    if (small->range.size > large->range.size) {
        large = &run->sides[1];
        small = &run->sides[0];
    }
    large->at = take_staging(run, large->range.size);
    small->at = lies_in(small, large) ? large->at + (small->range.offset - large->range.offset)
                                      : take_staging(run, small->range.size);
}

static void place_sides(struct run *run)
{
    if (run->operation->u.collective.kind != WEIR_EXCHANGE && run->count == 2 &&
        run->sides[0].staged && run->sides[1].staged) {
        place_pair(run);
        return;
    }
    for (uint32_t i = 0; i < run->count; i++)
        if (run->sides[i].staged)
            run->sides[i].at = take_staging(run, run->sides[i].range.size);
}

static weir_status plan(struct run *run)
{
    static char nothing; // the address of no bytes
    char *staging = NULL;
    for (uint32_t i = 0; i < run->count; i++) {
        struct side *side = &run->sides[i];
        (void)weir_collective_range_at(run->operation, i, &side->range);
        side->staged = side->range.size &&
                       !is_on_host(&side->range, weir_datatype_size(element_of(run->operation, i)));
    }
    place_sides(run);
    weir_status status =
        run->staging_size ? weir__comm_staging(run->comm, run->staging_size, &staging) : WEIR_OK;
    for (uint32_t i = 0; i < run->count && status == WEIR_OK; i++) {
        struct side *side = &run->sides[i];
        side->host = side->staged       ? staging + side->at
                     : side->range.size ? side->range.buffer->pointer + side->range.offset
                                        : &nothing;
    }
    return status;
}

// Copies the staged ranges of one direction, and waits for it.
static weir_status copy_staged(const struct run *run, weir_access access)
{
    const struct weir_link *backend = run->queue->delivery.backend;
    const struct weir_operation *whole = run->operation;
    const uint32_t flags = WEIR_OPERATION_INTERNAL | (whole->flags & WEIR_OPERATION_PART);
    weir_status status = WEIR_OK;
    bool copied = false;
    for (uint32_t i = 0; i < run->count && status == WEIR_OK; i++) {
        const struct side *side = &run->sides[i];
        const bool up = access == WEIR_ACCESS_WRITE;
        if (!side->staged || side->range.access != access)
            continue;
        struct weir_operation copy;
        weir__operation_begin(&copy, WEIR_OPERATION_COPY, flags, whole->file, whole->line);
        copy.sequence = whole->sequence;
        copy.u.copy.dst = up ? side->range.buffer : run->comm->staging;
        copy.u.copy.src = up ? run->comm->staging : side->range.buffer;
        copy.u.copy.dst_offset = up ? side->range.offset : side->at;
        copy.u.copy.src_offset = up ? side->at : side->range.offset;
        copy.u.copy.size = side->range.size;
        status = backend->ops->queue_submit(backend, run->queue, &copy);
        copied = true;
    }
    return status == WEIR_OK && copied ? backend->ops->queue_finish(backend, run->queue) : status;
}

static void describe_parts(const struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        const struct weir_exchange *part = &run->operation->u.collective.exchanges[i];
        run->parts[i] = (struct weir_transport_part){
            .struct_size = sizeof *run->parts,
            .peer = part->peer,
            .receive = part->receive,
            .element = part->element,
            .count = part->count,
            .memory = run->sides[i].host,
        };
    }
}

static weir_status call_transport(const struct run *run)
{
    const struct weir_operation *operation = run->operation;
    const bool exchange = operation->u.collective.kind == WEIR_EXCHANGE;
    struct weir_transport_call call = {
        .struct_size = sizeof call,
        .kind = operation->u.collective.kind,
        .element = operation->u.collective.element,
        .reduction = operation->u.collective.reduction,
        .root = operation->u.collective.root,
        .count = operation->u.collective.count,
        .number = operation->u.collective.number,
        .timeout_ns = run->comm->timeout_ns,
        .file = operation->file,
        .line = operation->line,
    };
    if (run->parts) {
        describe_parts(run);
        call.parts = run->parts;
        call.part_count = run->count;
    }
    for (uint32_t i = 0; i < run->count && !exchange; i++) {
        if (run->sides[i].range.access == WEIR_ACCESS_READ)
            call.src = run->sides[i].host;
        else
            call.dst = run->sides[i].host;
    }
    return run->comm->transport->run(run->comm->group, &call);
}

void weir__comm_excuse(const struct weir_operation *operation, const struct weir_error *cause)
{
    weir_comm *comm = operation->u.collective.comm;
    char reason[1024];
    snprintf(reason, sizeof reason, "%s, %s:%d: rank %u cannot take part: %s",
             weir__comm_name(operation).text, operation->file ? operation->file : "?",
             operation->line, (unsigned)comm->rank, cause->message);
    weir__comm_abort(comm, cause, reason);
}

static weir_status carry_out(struct run *run)
{
    weir_status status = plan(run);
    if (status == WEIR_OK)
        status = copy_staged(run, WEIR_ACCESS_READ);
    if (status < 0) {
        const struct weir_error cause = weir__error_of(status);
        weir__comm_excuse(run->operation, &cause);
        return status;
    }
    status = call_transport(run);
    if (status < 0) {
        struct weir_error cause = weir__error_of(status);
        weir__comm_find_remedy(run->comm, &cause);
        (void)weir__comm_fail(run->comm, &cause);
        return status;
    }
    return copy_staged(run, WEIR_ACCESS_WRITE);
}

// The room for ranges beyond two is allocated, with the transport's parts.
static weir_status run_sides(struct run *run)
{
    struct weir_collective_range range;
    run->sides = run->fixed;
    while (weir_collective_range_at(run->operation, run->count, &range))
        run->count++;
    if (run->operation->u.collective.kind != WEIR_EXCHANGE || run->count == 0)
        return carry_out(run);
    run->sides = weir__allocate(run->count * (sizeof *run->sides + sizeof *run->parts));
    if (!run->sides) {
        weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for %u parts", run->count);
        weir__comm_excuse(run->operation, weir_last_error());
        return WEIR_ERROR_OUT_OF_MEMORY;
    }
    run->parts = (struct weir_transport_part *)(void *)(run->sides + run->count);
    weir_status status = carry_out(run);
    weir__release(run->sides);
    return status;
}

weir_status weir__comm_carry(weir_queue *queue, const struct weir_operation *operation)
{
    struct run run = {.queue = queue, .operation = operation, .comm = operation->u.collective.comm};
    return run_sides(&run);
}

// Launches of graphs with collectives. A backend that has the graph gets the launch in one piece, as the
// calls of all its collectives: in the first turn of each communicator, and all of its turns end with
// it. Where delivery replays the nodes, each collective is a call of its own.

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
