// A pool's blocks: kept ones are found, missing ones are created, and freed ones come back.
#include <inttypes.h>

#include <weir/pool.h>

#include "core/buffer/buffer.h"
#include "core/pool/pool.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

// A pool's blocks: allocated from the device's memory up to the pool's limit, and returned to
// it.

// The pool's list of all its blocks.

static void link_block(weir_pool *pool, struct weir__block *block)
{
    block->next = pool->blocks;
    if (block->next)
        block->next->previous = block;
    pool->blocks = block;
    pool->references++;
}

static void unlink_block(weir_pool *pool, struct weir__block *block)
{
    if (block->previous)
        block->previous->next = block->next;
    else
        pool->blocks = block->next;
    if (block->next)
        block->next->previous = block->previous;
}

void weir__pool_drop(weir_pool *pool)
{
    weir_lock_take(&pool->lock);
    const bool last = --pool->references == 0;
    weir_lock_release(&pool->lock);
    if (!last)
        return;
    weir_lock_finish(&pool->lock);
    weir__member_free(&pool->member);
}

// Removes the block from the pool's list and makes its memory an ordinary buffer. A
// destroyed pool is freed with its last block.
static weir_buffer *weir__pool_dissolve(struct weir__block *block)
{
    weir_pool *pool = block->pool;
    weir_buffer *buffer = block->buffer;

    weir_lock_take(&pool->lock);
    unlink_block(pool, block);
    weir_lock_release(&pool->lock);
    buffer->block = NULL;
    buffer->lender = NULL;
    weir__release(block);
    weir__pool_drop(pool);
    return buffer;
}

void weir__pool_give_back(struct weir__block *blocks, bool idle)
{
    while (blocks) {
        struct weir__block *newer = blocks->newer;
        weir_buffer *buffer = weir__pool_dissolve(blocks);
        if (idle) {
            weir__member_delist(&buffer->member);
            buffer->member.class->finalize(&buffer->member);
        } else {
            weir__member_retire(&buffer->member);
        }
        blocks = newer;
    }
}

// Updates the known progress of the device's queues.
static void ask_all_queues(weir_device *device)
{
    const struct weir_error saved = *weir_last_error();
    struct weir_event end;
    for (weir_queue *queue = NULL; (queue = weir__device_next_queue(device, queue));)
        if (weir__queue_record_end(queue, &end) && end.sequence)
            weir__event_is_complete(end);
    weir__error_set(&saved);
}

bool weir__pool_shrink(weir_pool *pool, uint64_t bytes)
{
    ask_all_queues(pool->member.device);
    weir_lock_take(&pool->lock);
    struct weir__block *idle = weir__pool_take_idle(pool, bytes);
    weir_lock_release(&pool->lock);
    bool any = idle != NULL;
    weir__pool_give_back(idle, true);
    return any;
}

// The limit.

static uint64_t total_bytes(const weir_pool *pool)
{
    return weir__pool_count(&pool->in_use_bytes) + weir__pool_count(&pool->kept_bytes);
}

static void note_high(weir_pool *pool)
{
    if (total_bytes(pool) > weir__pool_count(&pool->high_bytes))
        atomic_store_explicit(&pool->high_bytes, total_bytes(pool), memory_order_relaxed);
}

bool weir__pool_reserve(weir_pool *pool, size_t capacity, uint64_t *out_excess)
{
    weir_lock_take(&pool->lock);
    const uint64_t total = total_bytes(pool);
    const uint64_t room = total < pool->limit ? pool->limit - total : 0;
    *out_excess = capacity > room ? capacity - room : 0;
    if (*out_excess == 0) {
        weir__pool_add(&pool->in_use_bytes, capacity);
        note_high(pool);
    }
    weir_lock_release(&pool->lock);
    return *out_excess == 0;
}

void weir__pool_unreserve(weir_pool *pool, size_t capacity)
{
    weir_lock_take(&pool->lock);
    weir__pool_subtract(&pool->in_use_bytes, capacity);
    weir_lock_release(&pool->lock);
}

// Creation.

static weir_status make_buffer(weir_pool *pool, size_t capacity, weir_buffer **out_buffer)
{
    weir_device *device = pool->member.device;
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = capacity,
                                            .placement = pool->placement};
    weir_status status =
        weir__buffer_make(device, pool->member.object.label, &setup, true, out_buffer);
    if (status != WEIR_ERROR_OUT_OF_MEMORY || !weir__pool_shrink(pool, UINT64_MAX))
        return status;
    return weir__buffer_make(device, pool->member.object.label, &setup, true, out_buffer);
}

weir_status weir__pool_make_block(weir_pool *pool, uint32_t class_index, size_t capacity,
                                  struct weir__block **out_block)
{
    struct weir__block *block = weir__allocate(sizeof *block);
    weir_status status = block
                             ? make_buffer(pool, capacity, &block->buffer)
                             : weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a block");
    if (status < 0) {
        weir__release(block);
        return status;
    }
    block->pool = pool;
    block->capacity = capacity;
    block->class_index = class_index;
    block->buffer->block = block;
    block->buffer->lender = &weir__pool_lender;
    weir_lock_take(&pool->lock);
    link_block(pool, block);
    weir_lock_release(&pool->lock);
    *out_block = block;
    return WEIR_OK;
}

// The kept blocks of a pool, by size classes.

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

// Taking.

static struct weir__block *take(weir_pool *pool, struct weir__block *block)
{
    struct weir__kept *kept = &pool->kept[block->class_index];
    *(block->older ? &block->older->newer : &kept->oldest) = block->newer;
    *(block->newer ? &block->newer->older : &kept->newest) = block->older;
    block->kept = false;
    block->newer = NULL;
    block->older = NULL;
    weir__pool_subtract(&pool->kept_bytes, block->capacity);
    return block;
}

// What a failed queue freed may be in use until its recovery: see weir__refused_note().
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
    const struct weir_event *legacy = &queue->legacy_end;
    if (weir__wait_ring_covers(&queue->completion.waits, freed) ||
        (legacy->queue == freed.queue && legacy->sequence >= freed.sequence))
        return !is_withheld_by_its_queue(freed);
    return is_complete(freed);
}

enum {
    QUEUES_ASKED = 8
};

static bool is_listed(const struct weir_event *frees, size_t count, uint64_t queue)
{
    for (size_t i = 0; i < count; i++)
        if (frees[i].queue == queue)
            return true;
    return false;
}

struct weir__block *weir__pool_take(weir_pool *pool, uint32_t class_index, weir_queue *queue)
{
    struct weir__kept *kept = &pool->kept[class_index];
    struct weir_event open[QUEUES_ASKED]; // of the latest queues whose blocks may be in use
    size_t count = 0;

    // Its own frees need no check; the newest is the most likely to be in a cache.
    for (struct weir__block *block = kept->newest; block; block = block->older)
        if (block->freed.queue == queue->member.object.id)
            return take(pool, block);
    for (struct weir__block *block = kept->oldest; block; block = block->newer) {
        if (is_listed(open, count < QUEUES_ASKED ? count : QUEUES_ASKED, block->freed.queue))
            continue;
        if (comes_after(queue, block->freed))
            return take(pool, block);
        open[count++ % QUEUES_ASKED] = block->freed;
    }
    return NULL;
}

struct weir__block *weir__pool_take_idle(weir_pool *pool, uint64_t bytes)
{
    struct weir__block *taken = NULL;
    for (uint32_t i = WEIR__BLOCK_CLASSES; i > 0; i--)
        for (struct weir__block *block = pool->kept[i - 1].oldest, *newer; block && bytes > 0;
             block = newer) {
            newer = block->newer;
            if (!is_complete(block->freed))
                continue;
            take(pool, block)->newer = taken;
            taken = block;
            bytes -= block->capacity < bytes ? block->capacity : bytes;
        }
    return taken;
}

struct weir__block *weir__pool_take_all(weir_pool *pool)
{
    struct weir__block *taken = NULL;
    for (uint32_t i = 0; i < WEIR__BLOCK_CLASSES; i++)
        while (pool->kept[i].oldest) {
            struct weir__block *block = take(pool, pool->kept[i].oldest);
            block->newer = taken;
            taken = block;
        }
    return taken;
}

void weir__pool_keep(weir_pool *pool, struct weir__block *block, struct weir_event freed)
{
    struct weir__kept *kept = &pool->kept[block->class_index];
    block->kept = true;
    block->freed = freed;
    block->record = (struct weir_event){0};
    block->older = kept->newest;
    *(kept->newest ? &kept->newest->newer : &kept->oldest) = block;
    kept->newest = block;
    weir__pool_add(&pool->kept_bytes, block->capacity);
}

// Queries. Each checks only a few queues: an allocation that finds nothing creates a
// block, which is available the next time.

// The oldest free of each queue.
static size_t list_frees(weir_pool *pool, uint32_t class_index, struct weir_event *frees,
                         struct weir_event *records)
{
    size_t count = 0;
    weir_lock_take(&pool->lock);
    for (struct weir__block *block = pool->kept[class_index].oldest; block && count < QUEUES_ASKED;
         block = block->newer) {
        if (is_listed(frees, count, block->freed.queue))
            continue;
        frees[count] = block->freed;
        records[count++] = block->record;
    }
    weir_lock_release(&pool->lock);
    return count;
}

static void note_record(weir_pool *pool, uint32_t class_index, struct weir_event record)
{
    weir_lock_take(&pool->lock);
    for (struct weir__block *block = pool->kept[class_index].oldest; block; block = block->newer)
        if (block->freed.queue == record.queue && block->freed.sequence < record.sequence)
            block->record = record;
    weir_lock_release(&pool->lock);
}

// A record is queried until it is complete, and only then replaced: on a queue that
// always has work the newest record is never complete.
static bool ask_queue(weir_pool *pool, uint32_t class_index, struct weir_event freed,
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
    struct weir_event frees[QUEUES_ASKED];
    struct weir_event records[QUEUES_ASKED];
    const size_t count = list_frees(pool, class_index, frees, records);
    *out_any = count > 0;
    if (count == 0)
        return false;
    const struct weir_error saved = *weir_last_error();
    bool hope = false;
    for (size_t i = 0; i < count && !hope; i++)
        hope = ask_queue(pool, class_index, frees[i], records[i]);
    weir__error_set(&saved);
    return hope;
}

// Buffers that come back to their pool, or leave it: a free is an operation of its queue, and later uses of
// the pointer are refused.

static weir_status refuse_double(const struct weir__block *block, const char *call,
                                 const char *file, int line)
{
    return weir__fail_at(file, line, block->pool->member.object.label, WEIR_ERROR_INVALID,
                         "free a buffer once, and keep no second pointer to it",
                         "%s: the buffer was freed to its pool already, by operation %" PRIu64
                         " of its queue, at %s:%d",
                         call, block->freed.sequence, block->file ? block->file : "?", block->line);
}

static weir_status check_free(const weir_queue *queue, const weir_buffer *buffer, const char *file,
                              int line)
{
    if (!buffer)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "a free sets the pointer to NULL",
                             "weir_pool_free: the buffer is NULL; was it freed before?");
    if (!buffer->block)
        return weir__fail_at(file, line, buffer->member.object.label, WEIR_ERROR_INVALID,
                             "weir_buffer_destroy() is for buffers of weir_buffer_create()",
                             "weir_pool_free: the buffer came out of no pool");
    if (buffer->member.device != queue->member.device)
        return weir__fail_at(file, line, buffer->member.object.label, WEIR_ERROR_INVALID,
                             "free it on a queue of its device",
                             "weir_pool_free: the buffer belongs to another device than queue '%s'",
                             weir__label_or_none(queue->member.object.label));
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line, "memory cannot be freed in one",
                                            "free it before or after the graph's launch");
    if (atomic_load(&buffer->member.uses) > 0)
        return weir__fail_at(file, line, buffer->member.object.label, WEIR_ERROR_INVALID,
                             "destroy the graph first, or take the buffer out of the pool with "
                             "weir_buffer_destroy()",
                             "weir_pool_free: a graph uses the buffer");
    return WEIR_OK;
}

// With the submit lock of `queue` held. `*out_freed` is set to whether the pool has the
// block again, `*out_orphan` to the block if its pool was destroyed.
static weir_status free_locked(weir_queue *queue, struct weir__block *block, const char *file,
                               int line, bool *out_freed, struct weir__block **out_orphan)
{
    weir_pool *pool = block->pool;
    weir_buffer *buffer = block->buffer;
    struct weir_operation operation = {
        .struct_size = sizeof operation,
        .kind = WEIR_OPERATION_POOL_FREE,
        .flags = WEIR_OPERATION_EMPTY,
        .file = weir__file_name(file),
        .line = line,
        .u.pool = {pool, buffer, buffer->size},
    };
    const struct weir_event freed = {queue->member.object.id, queue->sequence + 1};

    weir_lock_take(&pool->lock);
    *out_freed = !block->kept;
    if (!*out_freed) {
        weir_lock_release(&pool->lock);
        return refuse_double(block, "weir_pool_free", file, line);
    }
    block->file = operation.file;
    block->line = line;
    weir__pool_subtract(&pool->in_use_bytes, block->capacity);
    if (pool->destroyed)
        *out_orphan = block;
    else
        weir__pool_keep(pool, block, freed);
    weir_lock_release(&pool->lock);
    weir_status status = weir__queue_submit_locked(queue, &operation);
    buffer->size = 0; // no range fits into it, so later uses are refused
    return status;
}

// Also on a failed queue: a free must not be refused because of another failure.
weir_status weir_pool_free_at(weir_queue *queue, weir_buffer **buffer, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, buffer);
    WEIR_ENTER_AT(file, line, *buffer);
    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue, file, line);
    weir_status status = check_free(queue, *buffer, file, line);
    if (status < 0)
        return status;

    struct weir__block *orphan = NULL;
    bool freed;
    weir__queue_enter(queue);
    status = free_locked(queue, (*buffer)->block, file, line, &freed, &orphan);
    weir_lock_release(&queue->submit_lock);
    if (freed)
        *buffer = NULL;
    if (orphan)
        weir__pool_give_back(orphan, false);
    return status;
}

static weir_status refuse_freed(const weir_buffer *buffer, const char *call, const char *file,
                                int line)
{
    struct weir__block *block = buffer->block;
    weir_lock_take(&block->pool->lock);
    weir_status status = refuse_double(block, call, file, line);
    weir_lock_release(&block->pool->lock);
    return status;
}

static bool forget(weir_buffer *buffer)
{
    struct weir__block *block = buffer->block;
    weir_pool *pool = block->pool;

    weir_lock_take(&pool->lock);
    bool kept = block->kept;
    if (!kept)
        weir__pool_subtract(&pool->in_use_bytes, block->capacity);
    weir_lock_release(&pool->lock);
    if (kept) {
        refuse_double(block, "weir_buffer_destroy", NULL, 0);
        weir__log(WEIR_LOG_ERROR, "core", weir_last_error_text());
        return false;
    }
    weir__pool_dissolve(block);
    return true;
}

const struct weir__lender weir__pool_lender = {.forget = forget, .refuse_freed = refuse_freed};
