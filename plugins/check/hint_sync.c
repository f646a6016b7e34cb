// Waits of the host that nothing needs. For each queue it is known up to where the host has waited
// for it, in each run at this place, and which sync was the last that made more of its work known. A
// use of bytes that comes after one of these operations only because the host knows it needs that
// sync, and so does all else that may: a query, an error, the end of a buffer or a queue, an
// allocation from a pool, a host call before it or after it, since what its function uses is the
// program's, a graph that is changed. What a later sync makes known as well
// is that one's, unless another thread did it, which may be elsewhere another time.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/check/parts.h"

// A line that waits.
struct check_sync {
    struct check_sync *next;
    const char *file;
    int line;
    bool needed; // once
    struct check_conflict hint;
    char queue[CHECK_LABEL_SIZE];
};

// What is known of a queue. A sync that is NULL is the library's.
struct check_known {
    uint64_t count;              // up to here
    struct check_sync *count_by; // the last one that made the count known
    struct check_sync *uses_by;  // the same for all its uses of bytes
    uint64_t settled; // up to here the uses need no sync but those that are needed already
};

static bool make_known(struct check *check)
{
    const uint32_t count = check->actors.count;
    if (check->known_count >= count)
        return true;
    struct check_known *known = realloc(check->known, count * sizeof *known);
    if (!known) {
        check->unseen_uses = true;
        return false;
    }
    memset(&known[check->known_count], 0, (count - check->known_count) * sizeof *known);
    check->known = known;
    check->known_count = count;
    return true;
}

// What is needed.

static void need(struct check_sync *sync)
{
    if (sync)
        sync->needed = true;
}

bool check_sync_is_known(const struct check *check, uint32_t index, uint64_t count)
{
    return index < check->known_count && check->known[index].count >= count;
}

void check_sync_need(const struct check *check, uint32_t index, uint64_t count)
{
    if (check_sync_is_known(check, index, count) && check->known[index].settled < count)
        need(check->known[index].uses_by);
}

static void need_known(const struct check_known *known)
{
    need(known->uses_by);
    need(known->count_by);
}

void check_sync_need_event(const struct check *check, uint32_t index, uint64_t count)
{
    if (check_sync_is_known(check, index, count))
        need_known(&check->known[index]);
}

void check_sync_need_all(const struct check *check)
{
    for (uint32_t i = 0; i < check->known_count; i++)
        need_known(&check->known[i]);
}

void check_sync_forget_use(struct check *check, const struct check_use *use)
{
    check_sync_need(check, use->actor, use->count);
    check->unseen_syncs =
        check->unseen_syncs || !check_sync_is_known(check, use->actor, use->count);
}

// Syncs.

static void describe(struct check_sync *sync, const struct check_queue *queue, uint64_t count)
{
    const bool is_last = queue->actor.recorded == count;
    const bool is_here = queue->record_line == sync->line && queue->record_file == sync->file;
    strncpy(sync->queue, queue->actor.label, CHECK_LABEL_SIZE - 1);
    sync->hint = (struct check_conflict){
        .kind = WEIR_CHECK_NEEDLESS_SYNC,
        .first = {.operation = WEIR_OPERATION_RECORD,
                  .queue = sync->queue,
                  .queue_id = queue->actor.id,
                  .sequence = count - queue->actor.base,
                  .file = is_last && !is_here ? queue->record_file : NULL,
                  .line = is_last && !is_here ? queue->record_line : 0,
                  .region_number = WEIR_NO_NUMBER},
        .second = {.file = sync->file, .line = sync->line, .region_number = WEIR_NO_NUMBER},
    };
}

static struct check_sync *sync_at(struct check *check, const struct check_queue *queue,
                                  uint64_t count, const struct weir_host_note *note)
{
    struct check_sync *sync = check->syncs;
    while (sync && (sync->line != note->line || sync->file != note->file))
        sync = sync->next;
    if (sync || !(sync = calloc(1, sizeof *sync)))
        return sync;
    sync->file = note->file;
    sync->line = note->line;
    sync->next = check->syncs;
    check->syncs = sync;
    describe(sync, queue, count);
    return sync;
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

static void learn_one(struct check_known *known, const struct check_queue *queue, uint64_t count,
                      struct check_sync *sync)
{
    if (known->count >= count)
        return;
    if (!queue || queue->called > known->count)
        need(sync);
    if (!queue || queue->worked > known->count) {
        if (!known->uses_by || known->uses_by->needed)
            known->settled = known->count;
        known->uses_by = sync;
    }
    known->count_by = sync;
    known->count = count;
}

static void learn(struct check *check, const struct check_queue *producer, uint64_t count,
                  struct check_sync *sync)
{
    const uint64_t *others = check_actor_clock_at(&producer->actor, count);
    for (uint32_t i = 0; i < check->actors.count; i++)
        learn_one(&check->known[i], (const struct check_queue *)(void *)check->actors.all[i],
                  i == producer->actor.index ? count : others[i], sync);
}

void check_sync_learns(struct check *check, const struct check_queue *producer, uint64_t count,
                       const struct weir_host_note *note)
{
    const bool internal = note->flags & WEIR_HOST_NOTE_INTERNAL;
    struct check_sync *sync = internal ? NULL : sync_at(check, producer, count, note);
    see_thread(check);
    check->unseen_syncs = check->unseen_syncs || (!sync && !internal);
    if (make_known(check))
        learn(check, producer, count, sync);
    if (note->u.complete.status < 0)
        need(sync);
}

void check_sync_queue_ends(struct check *check, const struct check_queue *gone)
{
    if (!make_known(check))
        return;
    need_known(&check->known[gone->actor.index]);
    learn(check, gone, gone->actor.last, NULL);
}

void check_syncs_finish(struct check *check)
{
    while (check->syncs) {
        struct check_sync *sync = check->syncs;
        check->syncs = sync->next;
        if (!sync->needed && !check->unseen_uses && !check->unseen_syncs)
            (void)check_findings_add(check->findings, &sync->hint);
        free(sync);
    }
    free(check->known);
}
