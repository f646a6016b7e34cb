// A pool's blocks: allocated from the device's memory up to the pool's limit, and returned to
// it.
#include "core/buffer/buffer.h"
#include "core/pool/pool.h"

#include "core/queue/queue.h"
#include "core/queue/retire.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// The pool's list of all its blocks.

static void link_block(weir_pool *pool, struct weir__block *block, struct weir__lane *lane)
{
    block->next = pool->blocks;
    if (block->next)
        block->next->previous = block;
    pool->blocks = block;
    lane->next = pool->spare_lanes;
    pool->spare_lanes = lane;
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
    struct weir__lane *lane = pool->spare_lanes;
    pool->spare_lanes = lane->next;
    weir__release(lane);
}

void weir__pool_drop(weir_pool *pool)
{
    weir_biased_lock_take(&pool->lock);
    const bool last = --pool->references == 0;
    weir_biased_lock_release(&pool->lock);
    if (!last)
        return;
    weir_biased_lock_finish(&pool->lock);
    weir__member_free(&pool->member);
}

weir_buffer *weir__pool_dissolve(struct weir__block *block)
{
    weir_pool *pool = block->pool;
    weir_buffer *buffer = block->buffer;

    weir_biased_lock_take(&pool->lock);
    unlink_block(pool, block);
    weir_biased_lock_release(&pool->lock);
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
    weir_biased_lock_take(&pool->lock);
    struct weir__block *idle = weir__pool_take_idle(pool, bytes);
    weir_biased_lock_release(&pool->lock);
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
    weir_biased_lock_take(&pool->lock);
    const uint64_t total = total_bytes(pool);
    const uint64_t room = total < pool->limit ? pool->limit - total : 0;
    *out_excess = capacity > room ? capacity - room : 0;
    if (*out_excess == 0) {
        weir__pool_add(&pool->in_use_bytes, capacity);
        note_high(pool);
    }
    weir_biased_lock_release(&pool->lock);
    return *out_excess == 0;
}

void weir__pool_unreserve(weir_pool *pool, size_t capacity)
{
    weir_biased_lock_take(&pool->lock);
    weir__pool_subtract(&pool->in_use_bytes, capacity);
    weir_biased_lock_release(&pool->lock);
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
    struct weir__lane *lane = weir__allocate(sizeof *lane);
    weir_status status = block && lane
                             ? make_buffer(pool, capacity, &block->buffer)
                             : weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a block");
    if (status < 0) {
        weir__release(block);
        weir__release(lane);
        return status;
    }
    block->pool = pool;
    block->capacity = capacity;
    block->class_index = class_index;
    block->buffer->block = block;
    block->buffer->lender = &weir__pool_lender;
    weir_biased_lock_take(&pool->lock);
    link_block(pool, block, lane);
    weir_biased_lock_release(&pool->lock);
    *out_block = block;
    return WEIR_OK;
}
