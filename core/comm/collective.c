// Checks a collective's operands, numbers it and submits it.
#include <inttypes.h>

#include "core/comm/comm.h"
#include "core/comm/pulse.h"
#include "core/object/buffer.h"
#include "core/queue/operation.h"

// The call that is checked.
struct call {
    weir_comm *comm;
    const weir_queue *queue;
    const struct weir_collective_params *params;
    const char *file;
    int line;
};

#define refuse(call, remedy, ...)                                                \
    weir__fail_at((call)->file, (call)->line, (call)->comm->member.object.label, \
                  WEIR_ERROR_INVALID, (remedy), __VA_ARGS__)

static const char *name_of(const struct call *call)
{
    return weir_collective_name(call->params->kind);
}

struct weir__comm_name weir__comm_name(const struct weir_operation *operation)
{
    struct weir__comm_name name;
    const char *label = operation->u.collective.comm->member.object.label;
    snprintf(name.text, sizeof name.text,
             "%s %" PRIu64 " of '%s', %s:%d: ", weir_collective_name(operation->u.collective.kind),
             operation->u.collective.number, weir__label_or_none(label),
             operation->file ? operation->file : "?", operation->line);
    return name;
}

static bool reads(const struct call *call)
{
    const weir_collective kind = call->params->kind;
    if (kind == WEIR_BROADCAST || kind == WEIR_SCATTER)
        return call->params->root == call->comm->rank;
    return kind != WEIR_RECV && kind != WEIR_BARRIER;
}

static bool writes(const struct call *call)
{
    const weir_collective kind = call->params->kind;
    if (kind == WEIR_REDUCE || kind == WEIR_GATHER)
        return call->params->root == call->comm->rank;
    return kind != WEIR_SEND && kind != WEIR_BARRIER;
}

static weir_status check_peer(const struct call *call, uint32_t peer)
{
    if (peer >= call->comm->count)
        return refuse(call, "ranks are numbered from 0 to the count less one",
                      "%s: there is no rank %" PRIu32 ", the communicator has %" PRIu32,
                      name_of(call), peer, call->comm->count);
    if (peer == call->comm->rank && !weir_is_rooted(call->params->kind))
        return refuse(call, "use weir_queue_copy()", "%s: rank %" PRIu32 " cannot send to itself",
                      name_of(call), peer);
    return WEIR_OK;
}

static weir_status check_element(const struct call *call, weir_datatype element)
{
    if (weir_datatype_size(element))
        return WEIR_OK;
    return refuse(call, "pass one of weir_datatype", "%s: there is no datatype %d", name_of(call),
                  (int)element);
}

static weir_status check_kind(const struct call *call)
{
    const struct weir_collective_params *params = call->params;
    if (params->kind < WEIR_ALL_REDUCE || params->kind > WEIR_BARRIER)
        return refuse(call, "pass one of weir_collective", "there is no collective %d",
                      (int)params->kind);
    if (weir_is_reduction(params->kind) &&
        (params->reduction < WEIR_SUM || params->reduction > WEIR_AVERAGE))
        return refuse(call, "pass one of weir_reduction", "%s: there is no reduction %d",
                      name_of(call), (int)params->reduction);
    if (weir_is_rooted(params->kind) || params->kind == WEIR_SEND || params->kind == WEIR_RECV)
        return check_peer(call, params->root);
    return WEIR_OK;
}

WEIR_COLD static weir_status refuse_range(const struct call *call, const char *role,
                                          const weir_buffer *buffer, size_t offset, size_t size,
                                          weir_datatype element)
{
    if (!buffer)
        return refuse(call, "create it first; destroying it sets the pointer to NULL",
                      "%s: %s is no buffer (NULL)", name_of(call), role);
    if (buffer->member.device != call->comm->member.device)
        return refuse(call, "use a buffer of the communicator's device",
                      "%s: %s belongs to device '%s', the communicator to '%s'", name_of(call),
                      role, buffer->member.device->info.name, call->comm->member.device->info.name);
    const struct weir__role named = {name_of(call), role};
    if (!weir__buffer_holds(buffer, offset, size))
        return weir__buffer_check_range(buffer, &named, offset, size, call->file, call->line);
    return refuse(call, "move it to such a multiple",
                  "%s: the offset of %s, %zu, is no multiple of the %zu bytes of an %s",
                  name_of(call), role, offset, weir_datatype_size(element),
                  weir_datatype_name(element));
}

// Sizes of elements are powers of two.
static inline bool is_good(const weir_comm *comm, const weir_buffer *buffer, size_t offset,
                           size_t size, size_t step)
{
    return buffer && buffer->member.device == comm->member.device &&
           weir__buffer_holds(buffer, offset, size) && (offset & (step - 1)) == 0;
}

WEIR_COLD static weir_status refuse_size(const struct call *call, size_t count,
                                         weir_datatype element, uint32_t parts)
{
    char of_ranks[48] = "";
    if (parts > 1)
        snprintf(of_ranks, sizeof of_ranks, " of each of %" PRIu32 " ranks", parts);
    return refuse(call, "split the collective", "%s: %zu %s%s are more than %zu bytes",
                  name_of(call), count, weir_datatype_name(element), of_ranks, SIZE_MAX);
}

// The size in bytes of `parts` times `count` elements.
static inline weir_status size_of(const struct call *call, size_t count, weir_datatype element,
                                  uint32_t parts, size_t *out_size)
{
    const size_t step = weir_datatype_size(element) * parts;
    if ((count | step) >> 32 && count > SIZE_MAX / step) // most need no division
        return refuse_size(call, count, element, parts);
    *out_size = count * step;
    return WEIR_OK;
}

static bool meet(const struct weir_note_range *a, const struct weir_note_range *b)
{
    if (a->buffer != b->buffer || !a->size || !b->size)
        return false;
    return a->offset < b->offset ? b->offset - a->offset < a->size
                                 : a->offset - b->offset < b->size;
}

// In place: one range, or the smaller is part `rank` of the larger.
static bool is_in_place(const weir_comm *comm, const struct weir_note_range *src,
                        const struct weir_note_range *dst)
{
    if (src->size == dst->size)
        return src->offset == dst->offset;
    const struct weir_note_range *small = src->size < dst->size ? src : dst;
    const struct weir_note_range *large = small == src ? dst : src;
    return small->offset >= large->offset &&
           (small->offset - large->offset) / small->size == comm->rank &&
           (small->offset - large->offset) % small->size == 0;
}

static weir_status check_overlap(const struct call *call, const struct weir_note_range *src,
                                 const struct weir_note_range *dst)
{
    if (!meet(src, dst) || is_in_place(call->comm, src, dst))
        return WEIR_OK;
    return refuse(call,
                  "pass one range for both, or, where the sizes differ, part `rank` of the "
                  "larger one, or separate ranges",
                  "%s: src, %zu bytes at %zu, and dst, %zu bytes at %zu, of one buffer overlap",
                  name_of(call), src->size, src->offset, dst->size, dst->offset);
}

static weir_status check_ranges(const struct call *call, struct weir_operation *operation)
{
    const struct weir_collective_params *params = call->params;
    const size_t step = weir_datatype_size(params->element);
    const bool is_read = reads(call);
    const bool is_written = writes(call);
    struct weir_note_range ranges[2];
    uint32_t count = 0;
    size_t largest;
    weir_status status = check_element(call, params->element);
    if (status == WEIR_OK) // every range is at most so large
        status = size_of(call, params->count, params->element, call->comm->count, &largest);
    if (status < 0)
        return status;
    if (is_read && !params->src)
        return refuse_range(call, "src", NULL, 0, 0, params->element);
    if (is_written && !params->dst)
        return refuse_range(call, "dst", NULL, 0, 0, params->element);
    operation->u.collective.src = is_read ? params->src : NULL;
    operation->u.collective.dst = is_written ? params->dst : NULL;
    for (; count < 2 && weir_operation_range_at(operation, count, &ranges[count]); count++) {
        const struct weir_note_range *range = &ranges[count];
        if (!is_good(call->comm, range->buffer, range->offset, range->size, step))
            return refuse_range(call, range->access == WEIR_ACCESS_READ ? "src" : "dst",
                                range->buffer, range->offset, range->size, params->element);
    }
    return count == 2 ? check_overlap(call, &ranges[0], &ranges[1]) : WEIR_OK;
}

static weir_status check_exchange(const struct call *call, uint32_t index)
{
    const struct weir_exchange *part = &call->params->exchanges[index];
    char role[32];
    size_t size = 0;
    snprintf(role, sizeof role, "part %" PRIu32, index);
    weir_status status = check_element(call, part->element);
    if (status == WEIR_OK)
        status = check_peer(call, part->peer);
    if (status == WEIR_OK)
        status = size_of(call, part->count, part->element, 1, &size);
    if (status == WEIR_OK &&
        !is_good(call->comm, part->buffer, part->offset, size, weir_datatype_size(part->element)))
        status = refuse_range(call, role, part->buffer, part->offset, size, part->element);
    return status;
}

// What a part receives must not meet any other part.
static weir_status check_received(const struct call *call, const struct weir_operation *operation,
                                  uint32_t index)
{
    struct weir_note_range one = {0};
    struct weir_note_range other = {0};
    (void)weir_operation_range_at(operation, index, &one);
    for (uint32_t i = 0; i < index; i++) {
        (void)weir_operation_range_at(operation, i, &other);
        if ((one.access == WEIR_ACCESS_WRITE || other.access == WEIR_ACCESS_WRITE) &&
            meet(&one, &other))
            return refuse(call, "use separate ranges",
                          "exchange: parts %" PRIu32 " and %" PRIu32
                          " overlap, and one of them is received",
                          i, index);
    }
    return WEIR_OK;
}

static weir_status check_exchanges(const struct call *call, const struct weir_operation *operation)
{
    const struct weir_collective_params *params = call->params;
    weir_status status = WEIR_OK;
    if (params->exchange_count && !params->exchanges)
        return refuse(call, "set params->exchanges",
                      "exchange: %" PRIu32 " parts, and no array of them (NULL)",
                      params->exchange_count);
    for (uint32_t i = 0; i < params->exchange_count && status == WEIR_OK; i++) {
        status = check_exchange(call, i);
        if (status == WEIR_OK)
            status = check_received(call, operation, i);
    }
    return status;
}

// All but the ranges.
static inline void begin(weir_comm *comm, const struct weir_collective_params *params,
                         const char *file, int line, struct weir_operation *out_operation)
{
    weir__operation_begin(out_operation, WEIR_OPERATION_COLLECTIVE, 0, file, line);
    out_operation->u.collective.comm = comm;
    out_operation->u.collective.dst = NULL;
    out_operation->u.collective.src = NULL;
    out_operation->u.collective.dst_offset = params->dst_offset;
    out_operation->u.collective.src_offset = params->src_offset;
    out_operation->u.collective.count = params->count;
    out_operation->u.collective.exchanges = params->exchanges;
    out_operation->u.collective.exchange_count =
        params->kind == WEIR_EXCHANGE ? params->exchange_count : 0;
    out_operation->u.collective.kind = params->kind;
    out_operation->u.collective.element = params->element;
    out_operation->u.collective.reduction = params->reduction;
    out_operation->u.collective.root = params->root;
    out_operation->u.collective.rank = comm->rank;
    out_operation->u.collective.rank_count = comm->count;
}

static weir_status check(const struct call *call, struct weir_operation *out_operation)
{
    if (call->queue->member.device != call->comm->member.device)
        return refuse(call, "use a queue of the communicator's device",
                      "%s: queue '%s' belongs to another device than the communicator",
                      name_of(call), weir__label_or_none(call->queue->member.object.label));
    TRY(check_kind(call));
    begin(call->comm, call->params, call->file, call->line, out_operation);
    if (call->params->kind == WEIR_EXCHANGE)
        return check_exchanges(call, out_operation);
    return call->params->kind == WEIR_BARRIER ? WEIR_OK : check_ranges(call, out_operation);
}

// With the submit lock held. A refused call has no number. Once the queue has given the operation
// its place, other ranks count on it.
static weir_status submit(weir_queue *queue, weir_comm *comm, struct weir_operation *operation)
{
    const uint64_t number = comm->number + weir_is_numbered(operation->u.collective.kind);
    TRY(weir__comm_status(comm));
    operation->u.collective.number = number;
    operation->u.collective.turn = comm->next_turn;
    weir_status status = weir__queue_submit(queue, operation);
    if (operation->sequence) {
        comm->number = number;
        comm->next_turn++;
    }
    return status;
}

// What a forked child and the debug mode ask of all objects of a call.
WEIR_COLD static weir_status enter(const struct weir_collective_params *params, const char *file,
                                   int line)
{
    static const char function[] = "weir_queue_collective_at";
    WEIR_ENTER_OF(function, file, line, params->dst, params->src);
    for (uint32_t i = 0; weir__debugging() && params->exchanges && i < params->exchange_count; i++)
        WEIR_ENTER_OF(function, file, line, params->exchanges[i].buffer);
    return WEIR_OK;
}

weir_status weir_queue_collective_at(weir_queue *queue, weir_comm *comm,
                                     const struct weir_collective_params *params, const char *file,
                                     int line)
{
    struct weir_collective_params known;
    struct weir_operation operation;
    WEIR_ENTER_AT(file, line, queue, comm);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), comm);
    WEIR_REQUIRE_AT(file, line, comm->member.object.label, params);
    // Of other headers; read from here on only.
    if (params->struct_size != sizeof *params)
        WEIR_READ_PARAMS(file, line, weir_collective_params, params, &known);
    if (weir__is_unusual())
        TRY(enter(params, file, line));
    TRY(check(&(struct call){comm, queue, params, file, line}, &operation));
    weir_lock_take(&comm->submit_lock);
    weir_status status = submit(queue, comm, &operation);
    weir_lock_release(&comm->submit_lock);
    if (status < 0 && operation.sequence) {
        comm->ops->skip(&operation);
        weir__completion_refuse(queue); // the thread's error is the queue's first cause again
    }
    return status;
}
