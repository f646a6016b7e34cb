// The kept blocks of a pool: size classes, and in each a lane per queue. See the
// header.
//
// Lanes are allocated with blocks, one for each: there are never more lanes in use
// than blocks, so keeping a block cannot fail and allocates nothing.
#include "core/pool/pool.h"

#include "core/queue/queue.h"
#include "core/queue/registry.h"
#include "core/support/error.h"

// Eight steps from each power of two to the next.
#define STEP_BITS 3u
#define SMALLEST_BITS 8u

uint32_t weir__block_class(size_t size, size_t *out_capacity)
{
    *out_capacity = WEIR__SMALLEST_BLOCK;
    if (size <= WEIR__SMALLEST_BLOCK)
        return 0;
    // The class's steps are those of the power of two below.
    uint32_t power = SMALLEST_BITS;
    while ((size - 1) >> power > 1)
        power++;
    const size_t step = (size_t)1 << (power - STEP_BITS);
    const size_t base = (size_t)1 << power;
    const size_t steps = (size - base + step - 1) / step;
    *out_capacity = base + steps * step;
    return ((power - SMALLEST_BITS) << STEP_BITS) + (uint32_t)steps;
}

// Taking. `at` is the pointer that points to the lane.

static void drop_if_empty(weir_pool *pool, struct weir__lane **at)
{
    struct weir__lane *lane = *at;
    if (lane->oldest)
        return;
    *at = lane->next;
    lane->next = pool->spare_lanes;
    pool->spare_lanes = lane;
}

static struct weir__block *take_newest(weir_pool *pool, struct weir__lane **at)
{
    struct weir__lane *lane = *at;
    struct weir__block *block = lane->newest;
    lane->newest = block->older;
    if (lane->newest)
        lane->newest->newer = NULL;
    else
        lane->oldest = NULL;
    drop_if_empty(pool, at);
    return block;
}

static struct weir__block *take_oldest(weir_pool *pool, struct weir__lane **at)
{
    struct weir__lane *lane = *at;
    struct weir__block *block = lane->oldest;
    lane->oldest = block->newer;
    if (lane->oldest)
        lane->oldest->older = NULL;
    else
        lane->newest = NULL;
    drop_if_empty(pool, at);
    return block;
}

static struct weir__block *out(weir_pool *pool, struct weir__block *block)
{
    block->kept = false;
    block->newer = NULL;
    block->older = NULL;
    weir__pool_subtract(&pool->kept_bytes, block->capacity);
    return block;
}

// What a failed queue freed may be in use until its recovery: see core/queue/refused.h.
static bool is_withheld(weir_queue *queue, struct weir_event freed)
{
    return weir__completion_failed_from(queue) <= freed.sequence;
}

static bool is_withheld_by_its_queue(struct weir_event freed)
{
    weir_queue *queue = weir__registry_pin(freed.queue);
    const bool withheld = queue && is_withheld(queue, freed);
    if (queue)
        weir__registry_unpin_later(queue);
    return withheld;
}

static bool is_complete(struct weir_event freed)
{
    weir_queue *queue = weir__registry_pin(freed.queue);
    if (!queue) // destroyed, so its work has finished
        return true;
    bool complete = weir__queue_is_past(queue, freed.sequence) && !is_withheld(queue, freed);
    weir__registry_unpin_later(queue);
    return complete;
}

// Whether the queue, whose submit lock the caller holds, comes after the point.
static bool comes_after(const weir_queue *queue, struct weir_event freed)
{
    const struct weir_event *legacy = &queue->legacy.end;
    if (weir__wait_ring_covers(&queue->completion.waits, freed) ||
        (legacy->queue == freed.queue && legacy->sequence >= freed.sequence))
        return !is_withheld_by_its_queue(freed);
    return is_complete(freed);
}

struct weir__block *weir__pool_take(weir_pool *pool, uint32_t class_index, weir_queue *queue)
{
    struct weir__lane **lanes = &pool->lanes[class_index];
    const uint64_t id = queue->member.object.id;

    // Its own frees need no check; the newest is the most likely to be in a cache.
    for (struct weir__lane **at = lanes; *at; at = &(*at)->next)
        if ((*at)->queue == id)
            return out(pool, take_newest(pool, at));
    for (struct weir__lane **at = lanes; *at; at = &(*at)->next) {
        const struct weir_event freed = (*at)->oldest->freed;
        if (comes_after(queue, freed))
            return out(pool, take_oldest(pool, at));
    }
    return NULL;
}

static struct weir__block *take_idle_of(weir_pool *pool, struct weir__lane **lanes,
                                        struct weir__block *taken, uint64_t *bytes)
{
    for (struct weir__lane **at = lanes; *at && *bytes > 0;) {
        struct weir__lane *lane = *at;
        while (*bytes > 0 && *at == lane && is_complete(lane->oldest->freed)) {
            struct weir__block *block = out(pool, take_oldest(pool, at));
            block->newer = taken;
            taken = block;
            *bytes -= block->capacity < *bytes ? block->capacity : *bytes;
        }
        if (*at == lane)
            at = &lane->next;
    }
    return taken;
}

struct weir__block *weir__pool_take_idle(weir_pool *pool, uint64_t bytes)
{
    struct weir__block *taken = NULL;
    for (uint32_t i = WEIR__BLOCK_CLASSES; i > 0 && bytes > 0; i--)
        taken = take_idle_of(pool, &pool->lanes[i - 1], taken, &bytes);
    return taken;
}

struct weir__block *weir__pool_take_all(weir_pool *pool)
{
    struct weir__block *taken = NULL;
    for (uint32_t i = 0; i < WEIR__BLOCK_CLASSES; i++)
        while (pool->lanes[i]) {
            struct weir__block *block = out(pool, take_oldest(pool, &pool->lanes[i]));
            block->newer = taken;
            taken = block;
        }
    return taken;
}

// Keeping.

static struct weir__lane *lane_of(weir_pool *pool, uint32_t class_index, uint64_t queue)
{
    for (struct weir__lane *lane = pool->lanes[class_index]; lane; lane = lane->next)
        if (lane->queue == queue)
            return lane;
    struct weir__lane *lane = pool->spare_lanes;
    pool->spare_lanes = lane->next;
    *lane = (struct weir__lane){.queue = queue, .next = pool->lanes[class_index]};
    pool->lanes[class_index] = lane;
    return lane;
}

void weir__pool_keep(weir_pool *pool, struct weir__block *block, struct weir_event freed)
{
    struct weir__lane *lane = lane_of(pool, block->class_index, freed.queue);
    block->kept = true;
    block->freed = freed;
    block->newer = NULL;
    block->older = lane->newest;
    if (lane->newest)
        lane->newest->newer = block;
    else
        lane->oldest = block;
    lane->newest = block;
    weir__pool_add(&pool->kept_bytes, block->capacity);
}

// Queries. Each checks only a few lanes: an allocation that finds nothing creates a
// block, which is available the next time.

enum {
    LANES_ASKED = 8
};

static size_t list_lanes(weir_pool *pool, uint32_t class_index, struct weir_event *frees,
                         struct weir_event *records)
{
    size_t count = 0;
    weir_biased_lock_take(&pool->lock);
    for (struct weir__lane *lane = pool->lanes[class_index]; lane && count < LANES_ASKED;
         lane = lane->next) {
        frees[count] = lane->oldest->freed;
        records[count++] = lane->record;
    }
    weir_biased_lock_release(&pool->lock);
    return count;
}

static void note_record(weir_pool *pool, uint32_t class_index, struct weir_event record)
{
    weir_biased_lock_take(&pool->lock);
    for (struct weir__lane *lane = pool->lanes[class_index]; lane; lane = lane->next)
        if (lane->queue == record.queue)
            lane->record = record;
    weir_biased_lock_release(&pool->lock);
}

// A record is queried until it is complete, and only then replaced: on a queue that
// always has work the newest record is never complete.
static bool ask_lane(weir_pool *pool, uint32_t class_index, struct weir_event freed,
                     struct weir_event record)
{
    if (record.sequence < freed.sequence) {
        weir_queue *queue = weir__registry_pin(freed.queue);
        if (!queue)
            return true;
        bool recorded = weir__queue_record_end(queue, &record);
        weir__registry_unpin_later(queue);
        if (!recorded || record.sequence == 0) // 0: all of it is complete
            return recorded;
        note_record(pool, class_index, record);
    }
    return weir__event_is_complete(record);
}

bool weir__pool_ask(weir_pool *pool, uint32_t class_index, bool *out_any)
{
    struct weir_event frees[LANES_ASKED];
    struct weir_event records[LANES_ASKED];
    const size_t count = list_lanes(pool, class_index, frees, records);
    *out_any = count > 0;
    if (count == 0)
        return false;
    const struct weir_error saved = *weir_last_error();
    bool hope = false;
    for (size_t i = 0; i < count && !hope; i++)
        hope = ask_lane(pool, class_index, frees[i], records[i]);
    weir__error_set(&saved);
    return hope;
}
