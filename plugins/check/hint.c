// Waits that nothing needs, told at the end, each line once. What the host knew at the time does not
// count, since it may be late another time, unless it waited for all of a queue.
//
// Each entry of a queue's clock has a cause: the wait that raised it last, and the queue that it
// waited for. A wait is needed if two uses that must be in order are so through an entry that it
// caused. If the entry is of a third queue, the waits of the queue in between are needed too; which
// of them is not kept, so all that it has made count. Where it cannot be known what a wait is for,
// it counts as needed: a hint is told only if it is certain.
#include <stdlib.h>
#include <string.h>

#include "plugins/check/parts.h"

// A line that waits.
struct check_wait {
    struct check_wait *next;
    const char *file;
    int line;
    bool described;
    bool ordered; // once, its queue did not come after the event already
    bool needed;  // once
    bool apart;   // `hint` is about two uses of different bytes
    struct check_conflict hint;
    char first_queue[CHECK_LABEL_SIZE];
    char second_queue[CHECK_LABEL_SIZE];
    char buffer[CHECK_LABEL_SIZE];
};

// A line at which a queue has waited for another.
struct check_edge {
    struct check_edge *next;
    struct check_wait *wait; // NULL: a wait of the library
    struct check_queue *producer;
};

// With `threads = one` all actors of the link are queues.
static struct check_queue *queue_at(const struct check *check, uint32_t index)
{
    return (struct check_queue *)(void *)check->actors.all[index];
}

// What is needed.

static void need_wait(struct check_wait *wait)
{
    if (wait)
        wait->needed = true;
}

static void need_edges(struct check *check, struct check_queue *queue)
{
    if (queue->visit == check->visit)
        return;
    queue->visit = check->visit;
    for (const struct check_edge *edge = queue->edges; edge; edge = edge->next) {
        need_wait(edge->wait);
        need_edges(check, edge->producer);
    }
}

void check_hint_need_all(struct check *check, struct check_queue *queue)
{
    check->visit++;
    need_edges(check, queue);
}

static void need_entry(struct check *check, struct check_queue *queue, uint32_t index)
{
    if (index >= queue->cause_count)
        return;
    const struct check_cause *cause = &queue->causes[index];
    need_wait(cause->wait);
    if (cause->through)
        check_hint_need_all(check, cause->producer);
}

void check_hint_pair(struct check *check, const struct check_user *user,
                     const struct check_use *use)
{
    struct check_queue *queue = (struct check_queue *)(void *)user->actor;
    if (use->actor == queue->actor.index)
        return;
    if (check_sync_is_known(check, use->actor, use->count))
        check_sync_need(check, use->actor, use->count);
    else
        need_entry(check, queue, use->actor);
}

void check_hint_forget_use(struct check *check, uint32_t index, uint64_t count)
{
    for (uint32_t i = 0; i < check->actors.count; i++) {
        struct check_queue *queue = queue_at(check, i);
        if (queue && i != index && queue->actor.counts[index] >= count)
            need_entry(check, queue, index);
    }
}

void check_hint_host_learns(struct check *check, const struct check_actor *producer, uint64_t count)
{
    const uint64_t *counts = check_actor_clock_at(producer, count);
    bool more = false;
    for (uint32_t i = 0; i < check->actors.count; i++)
        more = more || (i != producer->index && check->actors.floor[i] < counts[i]);
    if (more)
        check_hint_need_all(check, queue_at(check, producer->index));
}

static void need_all_waits(struct check *check, struct check_queue *queue)
{
    check_hint_need_all(check, queue);
    check_sync_need_all(check);
}

void check_hint_operation(struct check *check, struct check_queue *queue,
                          const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_HOST_CALL:
        queue->called = queue->worked;
        need_all_waits(check, queue);
        break;
    case WEIR_OPERATION_POOL_ALLOCATE:
    case WEIR_OPERATION_COLLECTIVE: // other ranks see what came before
        need_all_waits(check, queue);
        break;
    case WEIR_OPERATION_NATIVE:
        check->unseen_uses = true;
        break;
    case WEIR_OPERATION_GRAPH:
        for (uint32_t i = 0; i < operation->u.graph.node_count; i++)
            check_hint_operation(check, queue,
                                 weir_graph_node_at(operation->u.graph.nodes, i)->operation);
        break;
    default:
        break;
    }
}

// Waits.

static struct check_wait *find(const struct check *check, const struct weir_operation *operation)
{
    struct check_wait *wait = check->waits;
    while (wait && (wait->line != operation->line || wait->file != operation->file))
        wait = wait->next;
    return wait;
}

static struct check_wait *wait_at(struct check *check, const struct weir_operation *operation)
{
    struct check_wait *wait = find(check, operation);
    if (wait || !(wait = calloc(1, sizeof *wait)))
        return wait;
    wait->file = operation->file;
    wait->line = operation->line;
    wait->next = check->waits;
    check->waits = wait;
    return wait;
}

static void describe(struct check_wait *wait, const struct check_queue *queue,
                     const struct check_queue *producer, const struct weir_operation *operation)
{
    const uint64_t sequence = operation->u.wait.event.sequence;
    const bool is_last = producer->actor.recorded == producer->actor.base + sequence;
    strncpy(wait->first_queue, producer->actor.label, CHECK_LABEL_SIZE - 1);
    strncpy(wait->second_queue, queue->actor.label, CHECK_LABEL_SIZE - 1);
    wait->hint = (struct check_conflict){
        .kind = wait->ordered ? WEIR_CHECK_NEEDLESS_WAIT : WEIR_CHECK_IMPLIED_WAIT,
        .first = {.operation = WEIR_OPERATION_RECORD,
                  .queue = wait->first_queue,
                  .queue_id = producer->actor.id,
                  .sequence = sequence,
                  .file = is_last ? producer->record_file : NULL,
                  .line = is_last ? producer->record_line : 0,
                  .region_number = WEIR_NO_NUMBER},
        .second = {.operation = WEIR_OPERATION_WAIT,
                   .queue = wait->second_queue,
                   .queue_id = queue->actor.id,
                   .sequence = operation->sequence,
                   .file = operation->file,
                   .line = operation->line,
                   .region_number = WEIR_NO_NUMBER},
    };
}

// Whether the queue has the line with this producer already, or could be given it.
static bool add_edge(struct check_queue *queue, struct check_wait *wait,
                     struct check_queue *producer)
{
    struct check_edge *edge = queue->edges;
    while (edge && (edge->wait != wait || edge->producer != producer))
        edge = edge->next;
    if (edge)
        return true;
    edge = malloc(sizeof *edge);
    if (!edge)
        return false;
    *edge = (struct check_edge){queue->edges, wait, producer};
    queue->edges = edge;
    return true;
}

static bool make_causes(struct check_queue *queue, uint32_t count)
{
    if (queue->cause_count >= count)
        return true;
    struct check_cause *causes = realloc(queue->causes, count * sizeof *causes);
    if (!causes)
        return false;
    memset(&causes[queue->cause_count], 0, (count - queue->cause_count) * sizeof *causes);
    queue->causes = causes;
    queue->cause_count = count;
    return true;
}

// Before the queue learns: what its clock will get from the producer's has this cause.
static void set_causes(struct check *check, struct check_queue *queue, struct check_wait *wait,
                       struct check_queue *producer, uint64_t count)
{
    const uint64_t *others = check_actor_clock_at(&producer->actor, count);
    if (!make_causes(queue, check->actors.count) || !add_edge(queue, wait, producer)) {
        check->unseen_uses = true;
        return;
    }
    for (uint32_t i = 0; i < check->actors.count; i++) {
        const bool itself = i == producer->actor.index;
        if (queue->actor.counts[i] < (itself ? count : others[i]))
            queue->causes[i] = (struct check_cause){wait, producer, !itself};
    }
}

void check_hint_wait(struct check *check, struct check_queue *queue, struct check_queue *producer,
                     const struct weir_operation *operation)
{
    const uint64_t count = producer->actor.base + operation->u.wait.event.sequence;
    const bool implied = queue == producer || queue->actor.counts[producer->actor.index] >= count;
    const bool internal = operation->flags & WEIR_OPERATION_INTERNAL;
    struct check_wait *wait = internal ? NULL : wait_at(check, operation);
    check->unseen_uses = check->unseen_uses || (!wait && !internal);
    if (wait && (!wait->described || (!implied && !wait->ordered))) {
        wait->described = true;
        wait->ordered = !implied;
        describe(wait, queue, producer, operation);
    }
    if (!implied && check->needless)
        set_causes(check, queue, wait, producer, count);
}

// Two uses of one buffer, of different bytes, that a wait orders.
void check_hint_apart(const struct check *check, const struct check_user *user,
                      const struct check_buffer *buffer, const struct check_use *use,
                      const struct check_shape *shape, weir_access access)
{
    const struct check_queue *queue = (const struct check_queue *)(void *)user->actor;
    if (use->actor >= queue->cause_count || queue->causes[use->actor].through ||
        queue->actor.counts[use->actor] < use->count ||
        check_sync_is_known(check, use->actor, use->count))
        return;
    struct check_wait *wait = queue->causes[use->actor].wait;
    if (!wait || wait->needed || wait->apart)
        return;
    wait->apart = true;
    wait->hint = check_conflict_of(user, buffer, use, shape, access);
    wait->hint.kind = WEIR_CHECK_FALSE_SHARING;
    check_keep_texts(&wait->hint, wait->first_queue, wait->second_queue, wait->buffer);
}

// The end of a queue. What others have from it is what the host now knows for sure, which nothing
// needs a wait for.

static void lose_edges(struct check_queue *queue, const struct check_queue *gone)
{
    struct check_edge **at = &queue->edges;
    while (*at) {
        struct check_edge *edge = *at;
        if (edge->producer != gone && gone != queue) {
            at = &edge->next;
            continue;
        }
        *at = edge->next;
        free(edge);
    }
}

static void lose_causes(struct check_queue *queue, const struct check_queue *gone)
{
    for (uint32_t i = 0; i < queue->cause_count; i++)
        if (queue->causes[i].producer == gone)
            queue->causes[i] = (struct check_cause){0};
}

void check_hint_queue_ends(struct check *check, struct check_queue *gone)
{
    check_hint_host_learns(check, &gone->actor, gone->actor.last);
    check_sync_queue_ends(check, gone);
    for (uint32_t i = 0; i < check->actors.count; i++) {
        struct check_queue *queue = queue_at(check, i);
        if (queue) {
            lose_edges(queue, gone);
            lose_causes(queue, gone);
        }
    }
    free(gone->causes);
}

// The end of all.

static bool is_needless(const struct check *check, const struct check_wait *wait)
{
    if (!wait->ordered)
        return true;
    return check->needless && !wait->needed && !check->unseen_uses;
}

void check_hints_finish(struct check *check)
{
    while (check->waits) {
        struct check_wait *wait = check->waits;
        check->waits = wait->next;
        if (is_needless(check, wait))
            (void)check_findings_add(check->findings, &wait->hint);
        free(wait);
    }
}
