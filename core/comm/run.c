// A collective through the host: the bytes of device memory come to the host, the transport runs,
// and what it wrote goes back. The copies go to the backend directly, as parts of
// the collective, so plugins see one operation.
#include <stdio.h>
#include <string.h>

#include "core/comm/comm.h"
#include "core/object/buffer.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/error.h"
#include "core/support/memory.h"

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
