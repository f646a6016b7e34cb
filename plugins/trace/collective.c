// Collectives. The front end carries them out where the backend does not, and tells afterwards when
// that was, possibly before the submit has returned. So what it tells waits in a ring of the queue
// until the writing thread joins it with the entry.
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "plugins/trace/parts.h"

static bool is_reduction(weir_collective kind)
{
    return kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE || kind == WEIR_REDUCE_SCATTER;
}

static bool has_elements(weir_collective kind)
{
    return kind != WEIR_EXCHANGE && kind != WEIR_BARRIER;
}

// The larger one of what it reads and what it writes.
static uint64_t bytes_of(const struct weir_operation *operation)
{
    struct weir_collective_range range;
    uint64_t read = 0;
    uint64_t written = 0;
    for (uint32_t i = 0; weir_collective_range_at(operation, i, &range); i++)
        *(range.access == WEIR_ACCESS_READ ? &read : &written) += range.size;
    return read > written ? read : written;
}

void trace_note_collective(struct trace_entry *entry, const struct weir_operation *operation,
                           struct trace *trace)
{
    entry->engine = WEIR_ENGINE_COMMUNICATION;
    entry->bytes = bytes_of(operation);
    entry->name =
        trace_names_keep(&trace->names, weir_comm_object(operation->u.collective.comm)->label);
    entry->u.collective.kind = operation->u.collective.kind;
    entry->u.collective.element = operation->u.collective.element;
    entry->u.collective.reduction = operation->u.collective.reduction;
    entry->u.collective.count = operation->u.collective.count;
    entry->u.collective.number = operation->u.collective.number;
    entry->u.collective.rank = operation->u.collective.rank;
    entry->u.collective.rank_count = operation->u.collective.rank_count;
    entry->u.collective.root = operation->u.collective.root;
}

// Times.

bool trace_is_by_device(const struct trace_queue *queue, const struct trace_entry *entry)
{
    return entry->kind != WEIR_OPERATION_COLLECTIVE || queue->trace->clock ||
           queue->device->limits.collectives == 2;
}

// With the queue's lock held. What finds no room is lost, and its operation has no times.
static void keep(struct trace_queue *queue, const struct weir_host_note *note)
{
    if (!queue->carried)
        queue->carried = calloc(queue->mask + 1, sizeof *queue->carried);
    if (!queue->carried || queue->carried_head - queue->carried_tail > queue->mask)
        return;
    queue->carried[queue->carried_head++ & queue->mask] = (struct trace_carried){
        .sequence = note->u.collective.sequence,
        .start_ns = note->u.collective.begin_ns,
        .end_ns = note->u.collective.end_ns,
    };
}

weir_status trace_host_note(const struct weir_link *link, const struct weir_host_note *note)
{
    if (note->kind == WEIR_HOST_NOTE_COLLECTIVE) {
        struct trace_queue *queue = trace_queue_of(link, note->u.collective.queue);
        pthread_mutex_lock(&queue->lock);
        keep(queue, note);
        pthread_mutex_unlock(&queue->lock);
    }
    return link->next->ops->host_note(link->next, note);
}

bool trace_has_carried(const struct trace_queue *queue, const struct trace_entry *entry)
{
    for (uint64_t at = queue->carried_tail; at < queue->carried_head; at++)
        if (queue->carried[at & queue->mask].sequence == entry->sequence)
            return true;
    return false;
}

bool trace_take_carried(struct trace_queue *queue, struct trace_entry *entry)
{
    while (queue->carried_tail < queue->carried_head) {
        const struct trace_carried *it = &queue->carried[queue->carried_tail & queue->mask];
        if (it->sequence > entry->sequence)
            return false;
        queue->carried_tail++;
        if (it->sequence < entry->sequence) // of an operation that was not kept
            continue;
        entry->start_ns = it->start_ns;
        entry->end_ns = it->end_ns;
        return true;
    }
    return false;
}

// Names.

// "all-reduce" as "AllReduce".
static size_t append_kind(char *text, size_t used, const char *kind)
{
    bool upper = true;
    for (; *kind && used + 1 < TRACE_TITLE_SIZE; kind++) {
        if (*kind != '-')
            text[used++] = upper ? weir_text_upper(*kind) : *kind;
        upper = *kind == '-';
    }
    return used;
}

// Tools take a name that begins with "nccl" and has "Kernel" in it for communication.
static void make_name(const struct weir_trace_collective *collective, char *name)
{
    size_t used = (size_t)snprintf(name, TRACE_TITLE_SIZE, "ncclKernel_");
    used = append_kind(name, used, collective->kind);
    if (collective->reduction[0])
        used =
            append_kind(name, used + (size_t)snprintf(name + used, 2, "_"), collective->reduction);
    snprintf(name + used, TRACE_TITLE_SIZE - used, "%s%s", collective->element[0] ? "_" : "",
             collective->element);
}

void trace_describe_collective(const struct trace_entry *entry, struct weir_trace_operation *row,
                               struct weir_trace_collective *collective, char *name)
{
    const weir_collective kind = entry->u.collective.kind;
    *collective = (struct weir_trace_collective){
        .kind = weir_collective_name(kind),
        .element = has_elements(kind) ? weir_datatype_name(entry->u.collective.element) : "",
        .reduction = is_reduction(kind) ? weir_reduction_name(entry->u.collective.reduction) : "",
        .count = entry->u.collective.count,
        .number = entry->u.collective.number,
        .rank = entry->u.collective.rank,
        .rank_count = entry->u.collective.rank_count,
        .root = entry->u.collective.root,
    };
    make_name(collective, name);
    row->label = entry->name;
    row->name = name;
    row->collective = collective;
}
