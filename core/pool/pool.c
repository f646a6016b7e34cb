// Pools: creation and destruction, the return of blocks to the device, and frees.
#include "core/pool/pool.h"

#include "base/sized.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

// Blocks.

static void free_pool(weir_pool *pool)
{
    weir_lock_finish(&pool->lock);
    weir__member_free(&pool->member);
}

// Removes the block from the pool's list and makes its memory an ordinary buffer. A
// destroyed pool is freed with its last block.
static weir_buffer *dissolve(struct weir__block *block)
{
    weir_pool *pool = block->pool;
    weir_buffer *buffer = block->buffer;

    weir_lock_take(&pool->lock);
    *(block->previous ? &block->previous->next : &pool->blocks) = block->next;
    if (block->next)
        block->next->previous = block->previous;
    const bool is_last = pool->destroyed && !pool->blocks;
    weir_lock_release(&pool->lock);
    buffer->block = NULL;
    buffer->leave_pool = NULL;
    weir__release(block);
    if (is_last)
        free_pool(pool);
    return buffer;
}

void weir__pool_give_back(struct weir__block *blocks, bool idle)
{
    while (blocks) {
        struct weir__block *newer = blocks->newer;
        weir_buffer *buffer = dissolve(blocks);
        if (idle) {
            weir__member_delist(&buffer->member);
            buffer->member.class->finalize(&buffer->member);
        } else {
            weir__member_retire(&buffer->member);
        }
        blocks = newer;
    }
}

bool weir__pool_shrink(weir_pool *pool, uint64_t bytes)
{
    const struct weir_error saved = *weir_last_error();
    struct weir_event end;
    // Updates what is known of the progress of the device's queues.
    for (weir_queue *queue = NULL; (queue = weir__device_next_queue(pool->member.device, queue));)
        if (weir__queue_record_end(queue, &end) && end.sequence)
            weir__event_is_complete(end);
    weir__error_set(&saved);
    weir_lock_take(&pool->lock);
    struct weir__block *idle = weir__pool_remove(pool, bytes, true);
    weir_lock_release(&pool->lock);
    bool any = idle != NULL;
    weir__pool_give_back(idle, true);
    return any;
}

// Buffers that come back to their pool, or leave it: a free is an operation of its queue, and later uses of
// the pointer are refused.

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
    block->kept = true; // a second free is refused; the list has the block below
    weir_lock_release(&pool->lock);
    if (!*out_freed)
        return weir__buffer_refuse_freed(buffer, "weir_pool_free", file, line);
    const weir_status status = weir__queue_submit_locked(queue, &operation);
    weir_lock_take(&pool->lock);
    buffer->size = 0; // no range fits into it, so later uses are refused
    weir__member_place(&buffer->member, file, line);
    pool->counts.in_use_bytes -= block->capacity;
    if (pool->destroyed)
        *out_orphan = block;
    else
        weir__pool_keep(pool, block, freed);
    weir_lock_release(&pool->lock);
    return status;
}

// Also on a failed queue: a free must not be refused because of another failure.
weir_status weir_pool_free_at(weir_queue *queue, weir_buffer **buffer, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, buffer);
    WEIR_LOOK_AT(file, line, *buffer);
    WEIR_REFUSE_CALLBACK(queue, file, line);
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

bool weir__pool_forget(weir_buffer *buffer)
{
    struct weir__block *block = buffer->block;
    weir_pool *pool = block->pool;

    weir_lock_take(&pool->lock);
    bool kept = block->kept;
    if (!kept)
        pool->counts.in_use_bytes -= block->capacity;
    weir_lock_release(&pool->lock);
    if (kept) {
        weir__buffer_refuse_freed(buffer, "weir_buffer_destroy", NULL, 0);
        weir__log(WEIR_LOG_ERROR, "core", weir_last_error_text());
        return false;
    }
    dissolve(block);
    return true;
}

// Creation and destruction.

// A pool is freed with its last block.
static void finalize(struct weir__member *member)
{
}

static const struct weir__class pool_class = {.name = "pool", .finalize = finalize};

weir_status weir_pool_create_at(weir_device *device, const struct weir_pool_params *params,
                                weir_pool **out_pool, const char *file, int line)
{
    struct weir_pool_params known;
    static const struct weir_pool_params defaults = {.struct_size = sizeof defaults};
    WEIR_ENTER_FOR(file, line, out_pool, device);
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(file, line, weir_pool_params, params, &known);
    WEIR_REQUIRE_AT(file, line, params->label,
                    params->placement == WEIR_PLACE_DEVICE || params->placement == WEIR_PLACE_HOST);
    weir_pool *pool = weir__member_allocate(device, &pool_class, sizeof *pool, params->label);
    if (!pool)
        return weir__fail_at(file, line, NULL, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                             "no memory for a pool");
    pool->placement = params->placement;
    pool->limit = UINT64_MAX;
    if (params->limit_bytes)
        pool->limit = params->limit_bytes;
    else if (params->placement == WEIR_PLACE_DEVICE && device->limits.memory_bytes)
        pool->limit = device->limits.memory_bytes;
    weir_lock_init(&pool->lock, &weir__locks[WEIR__LOCK_POOL]);
    weir__member_enlist(&pool->member);
    weir__member_place(&pool->member, file, line);
    *out_pool = pool;
    return WEIR_OK;
}

void weir_pool_destroy_at(weir_pool **pool, const char *file, int line)
{
    if (!pool || !*pool || !WEIR_MAY_END(*pool, file, line))
        return;
    weir_pool *gone = *pool;
    *pool = NULL;
    weir__debug_end(gone, file, line);
    weir__member_delist(&gone->member);

    weir_lock_take(&gone->lock);
    gone->destroyed = true;
    // Allocated blocks belong to the user from here on: they keep the device from closing.
    weir_lock_take(&gone->member.device->lock);
    for (struct weir__block *block = gone->blocks; block; block = block->next)
        block->buffer->member.internal = false;
    weir_lock_release(&gone->member.device->lock);
    const bool is_last = !gone->blocks;
    struct weir__block *idle = weir__pool_remove(gone, UINT64_MAX, true);
    struct weir__block *busy = weir__pool_remove(gone, UINT64_MAX, false);
    weir_lock_release(&gone->lock);
    weir__pool_give_back(idle, true);
    weir__pool_give_back(busy, false);
    if (is_last)
        free_pool(gone);
}

weir_status weir_pool_trim(weir_pool *pool, size_t keep_bytes)
{
    WEIR_ENTER(pool);
    WEIR_REFUSE_HOST_CALL_AT(NULL, 0, pool->member.object.label, "trim on a thread of your own");
    weir_device *device = pool->member.device;
    const uint64_t kept = weir__pool_counts(pool).kept_bytes;
    if (kept <= keep_bytes || !weir__pool_shrink(pool, kept - keep_bytes))
        return WEIR_OK;
    return weir__told(
        weir__placed(device->first->ops->device_trim(device->first, device), NULL, 0));
}

struct weir_pool_statistics weir__pool_counts(weir_pool *pool)
{
    weir_lock_take(&pool->lock);
    const struct weir_pool_statistics counts = pool->counts;
    weir_lock_release(&pool->lock);
    return counts;
}

void weir_pool_read_statistics_sized(const weir_pool *pool,
                                     struct weir_pool_statistics *out_statistics, size_t size)
{
    const struct weir_pool_statistics statistics =
        WEIR_IS_ALIVE(pool) && !weir__is_forked() // which may have the lock
            ? weir__pool_counts((weir_pool *)(uintptr_t)pool)
            : (struct weir_pool_statistics){0};
    if (out_statistics)
        weir_sized_write(out_statistics, size, &statistics, sizeof statistics);
}
