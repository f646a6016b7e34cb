// Waits that nothing needs, told at the end, each line once. What the host knew at the time does not
// count, since it may be late another time, unless it waited for all of a queue.
//
// Each entry of a queue's clock has a cause: the wait that raised it last, and the queue that it
// waited for. A wait is needed if two uses that must be in order are so through an entry that it
// caused. If the entry is of a third queue, the waits of the queue in between are needed too; which
// of them is not kept, so all that it has made count. Where it cannot be known what a wait is for,
// it counts as needed: a hint is told only if it is certain.
#include "plugins/check/parts.h"

// Waits of the host that nothing needs. For each queue it is known up to where the host has waited
// for it, in each run at this place, and which sync was the last that made more of its work known. A
// use of bytes that comes after one of these operations only because the host knows it needs that
// sync, and so does all else that may: a query, an error, the end of a buffer or a queue, an
// allocation from a pool, a host call before it or after it, since what its function uses is the
// program's, a graph that is changed. What a later sync makes known as well
// is that one's, unless another thread did it, which may be elsewhere another time.

// A line at which a queue waits, or the host: a sync. What is told of it if nothing needs it is an IMPLIED_WAIT, until
// its queue did not come after the event already, once.
struct check_wait {
    struct check_wait *next;
    const char *file;
    int line;
    bool needed; // once
    struct weir_check_finding hint;
};

// What is known of a queue. A sync that is NULL is the library's.
struct check_known {
    uint64_t count;              // up to here
    struct check_wait *count_by; // the last one that made the count known
    struct check_wait *uses_by;  // the same for all its uses of bytes
    uint64_t settled; // up to here the uses need no sync but those that are needed already
};

static bool make_known(struct check *check)
{
    const uint32_t count = check->actors.count;
    struct check_known *known = check_grown(check->known, check->known_count, count, sizeof *known);
    if (!known) {
        check->unseen_uses = true;
        return false;
    }
    check->known = known;
    check->known_count = count;
    return true;
}

// What is needed.

static void need(struct check_wait *sync)
{
    if (sync)
        sync->needed = true;
}

// Whether the host has waited for what the actor with that index did up to `count`.
static bool is_known(const struct check *check, uint32_t index, uint64_t count)
{
    return index < check->known_count && check->known[index].count >= count;
}

bool check_sync_need(const struct check *check, uint32_t index, uint64_t count)
{
    const bool known = is_known(check, index, count);
    if (known && check->known[index].settled < count)
        need(check->known[index].uses_by);
    return known;
}

static void need_known(const struct check_known *known)
{
    need(known->uses_by);
    need(known->count_by);
}

// All that the host has waited for may be needed.
static void need_syncs(const struct check *check)
{
    for (uint32_t i = 0; i < check->known_count; i++)
        need_known(&check->known[i]);
}

// Syncs.

// The line's in the list, made now if need be; NULL if out of memory.
static struct check_wait *wait_at(struct check_wait **list, const char *file, int line)
{
    struct check_wait *wait = *list;
    while (wait && (wait->line != line || wait->file != file))
        wait = wait->next;
    if (wait || !(wait = calloc(1, sizeof *wait)))
        return wait;
    wait->file = file;
    wait->line = line;
    wait->next = *list;
    *list = wait;
    return wait;
}

// The record that an event names, with its line if `named`.
static struct weir_check_use record_of(const struct check_queue *queue, uint64_t sequence,
                                       bool named)
{
    return (struct weir_check_use){.operation = check_operation_name(WEIR_OPERATION_RECORD),
                                   .queue = queue->actor.label,
                                   .queue_id = queue->actor.id,
                                   .sequence = sequence,
                                   .file = named ? queue->record_file : NULL,
                                   .line = named ? queue->record_line : 0};
}

// A second thread that waits may do so before or after the first.
static void see_thread(struct check *check)
{
    const pthread_t self = pthread_self();
    if (check->has_synced && !pthread_equal(check->sync_thread, self))
        check->unseen_syncs = true;
    check->has_synced = true;
    check->sync_thread = self;
}

// With `threads = one` all actors of the link are queues.
static struct check_queue *queue_at(const struct check *check, uint32_t index)
{
    return (struct check_queue *)(void *)check->actors.all[index];
}

static void learn(struct check *check, const struct check_queue *producer, uint64_t count,
                  struct check_wait *sync)
{
    const uint64_t *others = check_actor_clock_at(&producer->actor, count);
    for (uint32_t i = 0; i < check->actors.count; i++) {
        struct check_known *known = &check->known[i];
        const struct check_queue *queue = queue_at(check, i);
        const uint64_t now = i == producer->actor.index ? count : others[i];
        if (known->count >= now)
            continue;
        if (!queue || queue->called > known->count)
            need(sync);
        if (!queue || queue->worked > known->count) {
            if (!known->uses_by || known->uses_by->needed)
                known->settled = known->count;
            known->uses_by = sync;
        }
        known->count_by = sync;
        known->count = now;
    }
}

// The host has waited for `count` of the queue.
static void check_sync_learns(struct check *check, const struct check_queue *producer,
                              uint64_t count, const struct weir_host_note *note)
{
    const bool internal = note->flags & WEIR_HOST_NOTE_INTERNAL;
    struct check_wait *sync = internal ? NULL : wait_at(&check->syncs, note->file, note->line);
    if (sync && !sync->hint.kind) {
        const bool is_here =
            producer->record_line == sync->line && producer->record_file == sync->file;
        const bool named = producer->actor.recorded == count && !is_here;
        sync->hint = (struct weir_check_finding){
            .kind = WEIR_CHECK_NEEDLESS_SYNC,
            .first = record_of(producer, count - producer->actor.base, named),
            .second = {.operation = "sync", .file = sync->file, .line = sync->line},
        };
    }
    see_thread(check);
    check->unseen_syncs = check->unseen_syncs || (!sync && !internal);
    if (make_known(check))
        learn(check, producer, count, sync);
    if (note->u.complete.status < 0)
        need(sync);
}

// A line at which a queue has waited for another.
struct check_edge {
    struct check_edge *next;
    struct check_wait *wait; // NULL: a wait of the library
    struct check_queue *producer;
};

// What is needed.

static void need_edges(struct check *check, struct check_queue *queue)
{
    if (queue->visit == check->visit)
        return;
    queue->visit = check->visit;
    for (const struct check_edge *edge = queue->edges; edge; edge = edge->next) {
        need(edge->wait);
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
    need(cause->wait);
    if (cause->through)
        check_hint_need_all(check, cause->producer);
}

void check_hint_forget_use(struct check *check, uint32_t index, uint64_t count)
{
    for (uint32_t i = 0; i < check->actors.count; i++) {
        struct check_queue *queue = queue_at(check, i);
        if (queue && i != index && queue->actor.counts[index] >= count)
            need_entry(check, queue, index);
    }
}

void check_hint_host_learns(struct check *check, struct check_queue *queue, uint64_t count,
                            const struct weir_host_note *note)
{
    const uint64_t *counts = check_actor_clock_at(&queue->actor, count);
    bool more = false;
    for (uint32_t i = 0; i < check->actors.count; i++)
        more = more || (i != queue->actor.index && check->actors.floor[i] < counts[i]);
    if (more)
        check_hint_need_all(check, queue);
    if (!note)
        return;
    if (note->flags & WEIR_HOST_NOTE_WAITED)
        check_sync_learns(check, queue, count, note);
    else if (!(note->flags & WEIR_HOST_NOTE_INTERNAL) && is_known(check, queue->actor.index, count))
        need_known(&check->known[queue->actor.index]); // the program asks for what has passed
}

static void need_all_waits(struct check *check, struct check_queue *queue)
{
    check_hint_need_all(check, queue);
    need_syncs(check);
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

// Before the queue learns: what its clock will get from the producer's has this cause.
static void set_causes(struct check *check, struct check_queue *queue, struct check_wait *wait,
                       struct check_queue *producer, uint64_t count)
{
    const uint64_t *others = check_actor_clock_at(&producer->actor, count);
    const uint32_t actors = check->actors.count;
    struct check_cause *causes =
        check_grown(queue->causes, queue->cause_count, actors, sizeof *causes);
    if (causes) {
        queue->causes = causes;
        queue->cause_count = actors;
    }
    if (!causes || !add_edge(queue, wait, producer)) {
        check->unseen_uses = true;
        return;
    }
    for (uint32_t i = 0; i < actors; i++) {
        const bool itself = i == producer->actor.index;
        if (queue->actor.counts[i] < (itself ? count : others[i]))
            causes[i] = (struct check_cause){wait, producer, !itself};
    }
}

void check_hint_wait(struct check *check, struct check_queue *queue, struct check_queue *producer,
                     const struct weir_operation *operation)
{
    const uint64_t count = producer->actor.base + operation->u.wait.event.sequence;
    const bool implied = queue == producer || queue->actor.counts[producer->actor.index] >= count;
    const bool internal = operation->flags & WEIR_OPERATION_INTERNAL;
    struct check_wait *wait =
        internal ? NULL : wait_at(&check->waits, operation->file, operation->line);
    check->unseen_uses = check->unseen_uses || (!wait && !internal);
    const weir_check_kind kind = implied ? WEIR_CHECK_IMPLIED_WAIT : WEIR_CHECK_NEEDLESS_WAIT;
    if (wait && wait->hint.kind < kind)
        wait->hint = (struct weir_check_finding){
            .kind = kind,
            .first = record_of(producer, operation->u.wait.event.sequence,
                               producer->actor.recorded == count),
            .second = {.operation = check_operation_name(WEIR_OPERATION_WAIT),
                       .queue = queue->actor.label,
                       .queue_id = queue->actor.id,
                       .sequence = operation->sequence,
                       .file = operation->file,
                       .line = operation->line},
        };
    if (!implied && check->needless)
        set_causes(check, queue, wait, producer, count);
}

// Two uses of one buffer, of different bytes, of which one writes, and that a wait orders.
static void check_hint_apart(struct check *check, const struct check_user *user,
                             const struct check_buffer *buffer, const struct check_use *use,
                             const struct check_shape *shape, weir_access access)
{
    const struct check_queue *queue = (const struct check_queue *)(void *)user->actor;
    if (use->actor >= queue->cause_count || queue->causes[use->actor].through ||
        queue->actor.counts[use->actor] < use->count || is_known(check, use->actor, use->count))
        return;
    struct check_wait *wait = queue->causes[use->actor].wait;
    if (!wait || wait->needed || wait->hint.kind == WEIR_CHECK_FALSE_SHARING)
        return;
    wait->hint = check_conflict_of(user, buffer, use, shape, access).finding;
    wait->hint.kind = WEIR_CHECK_FALSE_SHARING;
}

void check_hint_use(struct check *check, const struct check_user *user,
                    const struct check_buffer *buffer, const struct check_shape *shape,
                    weir_access access, const struct check_use *use, bool goes)
{
    struct check_queue *queue = (struct check_queue *)(void *)user->actor;
    const bool wrote = check_writes(access) || check_writes((weir_access)use->access);
    // The user must come after the use, or takes its place.
    if (goes || (wrote && check_shapes_meet(&use->shape, shape))) {
        const bool itself = queue && use->actor == queue->actor.index;
        if (!itself && !check_sync_need(check, use->actor, use->count) && queue)
            need_entry(check, queue, use->actor);
    } else if (queue && wrote && buffer->memory == &buffer->own) {
        check_hint_apart(check, user, buffer, use, shape, access);
    }
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

void check_hint_queue_ends(struct check *check, struct check_queue *gone)
{
    check_hint_host_learns(check, gone, gone->actor.last, NULL);
    if (make_known(check)) {
        need_known(&check->known[gone->actor.index]);
        learn(check, gone, gone->actor.last, NULL);
    }
    for (uint32_t i = 0; i < check->actors.count; i++) {
        struct check_queue *queue = queue_at(check, i);
        if (!queue)
            continue;
        lose_edges(queue, gone);
        for (uint32_t k = 0; k < queue->cause_count; k++)
            if (queue->causes[k].producer == gone)
                queue->causes[k] = (struct check_cause){0};
    }
    free(gone->causes);
}

// The end of all.

// Where something is unseen, only what was implied each time is certain.
static void finish_waits(struct check *check, struct check_wait *waits, bool unseen)
{
    while (waits) {
        struct check_wait *next = waits->next;
        const struct check_conflict hint = {.finding = waits->hint};
        if (hint.finding.kind == WEIR_CHECK_IMPLIED_WAIT ||
            (check->needless && !waits->needed && !unseen))
            check_tell(check, &hint);
        free(waits);
        waits = next;
    }
}

void check_note_change(struct check *check)
{
    check_lock(check);
    if (check->needless)
        need_syncs(check);
    check_unlock(check);
}

void check_hints_finish(struct check *check)
{
    check_lock(check);
    finish_waits(check, check->waits, check->unseen_uses);
    finish_waits(check, check->syncs, check->unseen_uses || check->unseen_syncs);
    (void)check_unlock(check);
    free(check->known);
}
