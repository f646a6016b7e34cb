// Groups as the front end sees them: a call is checked, carried phase by phase, and its failure told; which piece of whose
// memory each rank needs for it; and ranks that wait for each other.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "transports/local/local.h"

// Which rank needs which piece of which other rank's memory. A collective on the whole of a buffer is
// made of chunks, one for each rank: rank i reduces, or receives of the root, chunk i, and all ranks
// copy it from there. So no rank, the root included, sends more than about twice what it holds.

struct chunk {
    size_t offset;
    size_t size;
};

static struct chunk chunk_of(const struct local_run *run, uint32_t index)
{
    const uint32_t n = run->group->count;
    const size_t element = weir_datatype_size(run->by.head.element);
    const uint64_t each = run->by.head.count / n;
    const uint64_t longer = run->by.head.count % n; // the first ones have one element more
    const uint64_t begin = each * index + (index < longer ? index : longer);
    return (struct chunk){(size_t)begin * element, (size_t)(each + (index < longer)) * element};
}

static size_t whole_of(const struct local_run *run)
{
    return (size_t)run->by.head.count * weir_datatype_size(run->by.head.element);
}

uint32_t local_phases(uint32_t kind)
{
    switch (kind) {
    case WEIR_ALL_REDUCE:
    case WEIR_BROADCAST:
        return 2;
    case WEIR_REDUCE:
    case WEIR_ALL_GATHER:
    case WEIR_REDUCE_SCATTER:
    case WEIR_ALL_TO_ALL:
    case WEIR_GATHER:
    case WEIR_SCATTER:
    case WEIR_CALL_SPLIT:
        return 1;
    default:
        return 0;
    }
}

static struct local_piece all_reduce_piece(const struct local_run *run, uint32_t phase,
                                           uint32_t reader, uint32_t owner)
{
    const struct chunk chunk = chunk_of(run, phase == 0 ? reader : owner);
    const bool wanted = phase == 0 || reader != owner;
    return (struct local_piece){
        .of_result = phase == 1,
        .reduced = phase == 0,
        .offset = chunk.offset,
        .size = wanted ? chunk.size : 0,
        .target = chunk.offset,
    };
}

// The root copies its own `src` to its `dst`, unless that is in place.
static struct local_piece broadcast_piece(const struct local_run *run, uint32_t phase,
                                          uint32_t reader, uint32_t owner)
{
    const uint32_t root = run->by.head.root;
    if (reader == root)
        return (struct local_piece){.size = phase == 0 && owner == root ? whole_of(run) : 0};

    const bool wanted = phase == 0 ? owner == root : owner != reader;
    const struct chunk chunk = chunk_of(run, phase == 0 ? reader : owner);
    return (struct local_piece){
        .of_result = owner != root,
        .offset = chunk.offset,
        .size = wanted ? chunk.size : 0,
        .target = chunk.offset,
    };
}

static struct local_piece single_piece(const struct local_run *run, uint32_t reader, uint32_t owner)
{
    const size_t whole = whole_of(run);
    const uint32_t root = run->by.head.root;
    switch (run->by.head.kind) {
    case WEIR_REDUCE:
        return (struct local_piece){.reduced = true, .size = reader == root ? whole : 0};
    case WEIR_REDUCE_SCATTER:
        return (struct local_piece){.reduced = true, .size = whole, .offset = reader * whole};
    case WEIR_ALL_GATHER:
    case WEIR_CALL_SPLIT:
        return (struct local_piece){.size = whole, .target = owner * whole};
    case WEIR_ALL_TO_ALL:
        return (
            struct local_piece){.size = whole, .offset = reader * whole, .target = owner * whole};
    case WEIR_GATHER:
        return (struct local_piece){.size = reader == root ? whole : 0, .target = owner * whole};
    case WEIR_SCATTER:
        return (struct local_piece){.size = owner == root ? whole : 0, .offset = reader * whole};
    default:
        return (struct local_piece){.size = 0};
    }
}

bool local_piece(const struct local_run *run, uint32_t phase, uint32_t reader, uint32_t owner,
                 struct local_piece *out_piece)
{
    if (run->by.head.kind == WEIR_ALL_REDUCE)
        *out_piece = all_reduce_piece(run, phase, reader, owner);
    else if (run->by.head.kind == WEIR_BROADCAST)
        *out_piece = broadcast_piece(run, phase, reader, owner);
    else
        *out_piece = single_piece(run, reader, owner);
    return out_piece->size > 0;
}

void local_append_wait(char *text, const struct local_wait *wait)
{
    static const char more[] = ", and so on";
    size_t used = strlen(text);
    const bool full = used > WEIR_CAUSE_SIZE - WEIR_HEAD_TEXT_SIZE - WEIR_HEAD_TEXT_SIZE / 2;
    if (!full)
        weir_text_append(text, WEIR_CAUSE_SIZE, &used, "%srank %u waits in %.80s for rank %u",
                         used ? ", " : "", wait->rank, wait->call, wait->awaits);
    else if (strcmp(text + used - strlen(more), more) != 0)
        weir_text_append(text, WEIR_CAUSE_SIZE, &used, "%s", more);
}

weir_status local_shrink(void *group, const struct weir_transport_shrink *shrink, void **out_group)
{
    struct local_group *whole = group;
    struct local_group *part = NULL;
    *out_group = NULL;
    if (!local_mesh_cause(whole, NULL))
        local_abort(whole, "it goes on with the ranks that are left");
    const weir_status status = local_mesh_shrink(whole, shrink, &part);
    *out_group = part;
    return status;
}

#define REMEDY                                                                              \
    "submit the same collectives in the same order on all ranks, and see what the rank at " \
    "fault has printed; then recover the queue and create another communicator"

static weir_status report(const struct local_run *run, weir_status status)
{
    struct weir_cause cause;
    if (!local_mesh_cause(run->group, &cause))
        return WEIR_OK;
    return weir_host_fail(run->group->host, status, REMEDY, "%s", cause.text);
}

static void fail(void *group, const struct weir_cause *cause)
{
    struct local_group *local = group;
    local_mesh_fail(local, cause);
}

struct local_run local_run_begin(struct local_group *group, struct weir_head head,
                                 uint64_t timeout_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    return (struct local_run){
        .by = {.head = head,
               .group = group,
               .label = group->label,
               .rank = group->rank,
               .count = group->count,
               .timeout_ns = timeout_ns,
               .fail = fail},
        .group = group,
        .deadline_ns = timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns,
    };
}

// Failures of this rank alone: the others would wait for it in vain, so they are told.
static bool acceptable(const struct local_run *run)
{
    const struct weir_head *head = &run->by.head;
    const bool has_element = head->kind != WEIR_EXCHANGE && head->kind != WEIR_BARRIER;
    if (head->kind < WEIR_ALL_REDUCE || head->kind > WEIR_BARRIER)
        return weir_caller_fail(&run->by, "this transport does not know collectives of kind %u",
                                head->kind);
    if (has_element && weir_datatype_size(head->element) == 0)
        return weir_caller_fail(&run->by, "this transport does not know datatype %u",
                                head->element);
    if (weir_is_reduction(run->by.head.kind) &&
        (head->reduction < WEIR_SUM || head->reduction > WEIR_AVERAGE))
        return weir_caller_fail(&run->by, "this transport does not know reduction %u",
                                head->reduction);
    if (head->root >= run->group->count)
        return weir_caller_fail(&run->by, "there is no rank %u, for there are %u ranks", head->root,
                                run->group->count);
    return true;
}

static bool parts_acceptable(const struct local_run *run)
{
    for (uint32_t i = 0; i < run->part_count; i++) {
        const struct weir_transport_part *part = local_part_at(run, i);
        if (weir_datatype_size(part->element) == 0)
            return weir_caller_fail(&run->by, "this transport does not know datatype %u",
                                    part->element);
        if (part->peer >= run->group->count || part->peer == run->group->rank)
            return weir_caller_fail(&run->by,
                                    "rank %u is no peer of rank %u, for there are %u ranks",
                                    part->peer, run->group->rank, run->group->count);
    }
    return true;
}

static bool carry_messages(struct local_run *run, const struct weir_transport_call *call)
{
    const struct weir_transport_part single = weir_part_of(call);
    run->parts = call->kind == WEIR_EXCHANGE ? call->parts : &single;
    run->part_count = call->kind == WEIR_EXCHANGE ? call->part_count : 1;
    const bool carried = parts_acceptable(run) && local_mesh_messages(run);
    return local_mesh_end(run) && carried;
}

// The phases of a collective, and its end.
static bool carry(struct local_run *run)
{
    const uint32_t phases = local_phases(run->by.head.kind);
    bool carried = local_mesh_meet(run);
    for (uint32_t phase = 0; carried && phase < phases; phase++)
        carried = local_mesh_phase(run, phase);
    return local_mesh_end(run) && carried;
}

// What a collective needs beside the caller's memory: the segment of a reduction, or a copy of what
// an all-to-all in place would overwrite before it was read.
static bool carry_with_room(struct local_run *run)
{
    const size_t whole = (size_t)run->by.head.count * weir_datatype_size(run->by.head.element);
    const bool copied = run->by.head.kind == WEIR_ALL_TO_ALL && run->src == run->dst && whole > 0;
    if (!copied && !weir_is_reduction(run->by.head.kind))
        return carry(run);

    const size_t size = copied ? run->group->count * whole : LOCAL_TOTAL_BYTES;
    void *room = run->group->host->allocate(size);
    if (!room)
        return weir_caller_fail(&run->by, "rank %u has no host memory left for %zu bytes",
                                run->group->rank, size);
    if (copied)
        run->src = memcpy(room, run->dst, size);
    else
        run->total = room;
    const bool carried = carry(run);
    run->group->host->release(room);
    return carried;
}

// Bytes that this rank shows or sends, at most.
static uint64_t bytes_of(const struct local_run *run, const struct weir_transport_call *call)
{
    uint64_t bytes = run->by.head.count * weir_datatype_size(run->by.head.element);
    for (uint32_t i = 0; i < call->part_count && run->by.head.kind == WEIR_EXCHANGE; i++) {
        const struct weir_transport_part *part = weir_transport_part_at(call, i);
        const uint64_t size = part->count * weir_datatype_size(part->element);
        bytes = size > bytes ? size : bytes;
    }
    return bytes;
}

// Strangers on the way could read, and change, what goes to another machine.
static weir_status refuse_data(const struct local_run *run)
{
    weir_caller_fail(
        &run->by, "rank %u is asked to send host memory to another machine, and 'local' does not",
        run->group->rank);
    struct weir_cause cause = {.text = ""};
    (void)local_mesh_cause(run->group, &cause);
    return weir_host_fail(run->group->host, WEIR_ERROR_UNSUPPORTED, LOCAL_MPI_REMEDY, "%s",
                          cause.text);
}

weir_status local_run_call(void *group, const struct weir_transport_call *call)
{
    struct local_run run = local_run_begin(group, weir_head_of(call), call->timeout_ns);
    run.src = call->src;
    run.dst = call->dst;
    const weir_status status = report(&run, WEIR_ERROR_COMM);
    if (status)
        return status;
    if (!acceptable(&run))
        return report(&run, WEIR_ERROR_INVALID);
    if (run.group->spans_machines && bytes_of(&run, call) > LOCAL_CONTROL_BYTES)
        return refuse_data(&run);
    const bool carried =
        weir_is_numbered(run.by.head.kind) ? carry_with_room(&run) : carry_messages(&run, call);
    return carried ? WEIR_OK : report(&run, WEIR_ERROR_COMM);
}

// The records decide which ranks are in the part, and their order there: by key, then by rank.
static struct local_part part_of(const struct local_run *run, const struct local_record *records,
                                 uint32_t *members)
{
    const uint32_t own = run->group->rank;
    struct local_part part = {.color = records[own].color, .members = members, .records = records};
    for (uint32_t rank = 0; rank < run->group->count; rank++) {
        if (records[rank].color != part.color)
            continue;
        uint32_t at = part.count++;
        for (; at > 0 && records[members[at - 1]].key > records[rank].key; at--)
            members[at] = members[at - 1];
        members[at] = rank;
    }
    while (part.rank < part.count && members[part.rank] != own)
        part.rank++;
    return part;
}

static weir_status split_with_room(struct local_run *run, const struct weir_transport_split *split,
                                   struct local_record *records, uint32_t *members, void **out_part)
{
    struct local_record own = {.color = split->color, .key = split->key};
    struct local_group *group = NULL;
    run->src = &own;
    run->dst = records;
    if (!local_mesh_offer(run, &own) || !carry(run))
        return report(run, WEIR_ERROR_COMM);

    struct local_part part = part_of(run, records, members);
    part.label = split->label;
    if (split->color == WEIR_NO_COLOR)
        part.count = 0;
    const weir_status status = local_mesh_split(run, &part, &group);
    *out_part = group;
    return status;
}

weir_status local_split(void *group, const struct weir_transport_split *split, void **out_part)
{
    struct local_run run =
        local_run_begin(group,
                        weir_head_of_line(WEIR_CALL_SPLIT, split->number, split->file, split->line),
                        split->timeout_ns);
    run.by.head.element = WEIR_U8;
    run.by.head.count = sizeof(struct local_record);
    const struct weir_host *host = run.group->host;
    *out_part = NULL;
    weir_status status = report(&run, WEIR_ERROR_COMM);
    if (status)
        return status;

    struct local_record *records = host->allocate(run.group->count * sizeof *records);
    uint32_t *members = host->allocate(run.group->count * sizeof *members);
    if (records && members) {
        status = split_with_room(&run, split, records, members, out_part);
    } else {
        weir_caller_fail(&run.by, "rank %u has no host memory left", run.group->rank);
        status = report(&run, WEIR_ERROR_OUT_OF_MEMORY);
    }
    host->release(members);
    host->release(records);
    return status;
}

void local_place(const void *group, uint32_t *out_rank, uint32_t *out_count)
{
    const struct local_group *local = group;
    *out_rank = local->rank;
    *out_count = local->count;
}

bool local_carries_data(const void *group)
{
    const struct local_group *local = group;
    return !local->spans_machines;
}

void local_abort(void *group, const char *reason)
{
    struct local_group *local = group;
    struct weir_cause cause = {.fault = WEIR_FAULT_ABORTED, .rank = local->rank};
    snprintf(cause.text, sizeof cause.text, "rank %u has aborted '%s': %s", local->rank,
             local->label, reason);
    local_mesh_fail(local, &cause);
}

bool local_first_cause(void *group, struct weir_transport_cause *out_cause)
{
    struct local_group *local = group;
    struct weir_cause cause;
    if (!local_mesh_cause(local, &cause))
        return false;
    out_cause->fault = (enum weir_transport_fault)cause.fault;
    out_cause->rank = cause.rank;
    out_cause->number = cause.number;
    return true;
}
