// Buffers that come back to their pool, or leave it: a free is an operation of its queue, and later uses of
// the pointer are refused.
#include <weir/pool.h>

#include <inttypes.h>

#include "core/pool/pool.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/file_name.h"
#include "core/support/locks.h"
#include "core/support/log.h"
#include "core/support/thread.h"

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
                             weir__label_shown(queue->member.object.label));
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

    weir_biased_lock_take(&pool->lock);
    *out_freed = !block->kept;
    if (!*out_freed) {
        weir_biased_lock_release(&pool->lock);
        return refuse_double(block, "weir_pool_free", file, line);
    }
    block->file = operation.file;
    block->line = line;
    weir__pool_subtract(&pool->in_use_bytes, block->capacity);
    if (pool->destroyed)
        *out_orphan = block;
    else
        weir__pool_keep(pool, block, freed);
    weir_biased_lock_release(&pool->lock);
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
        return weir__queue_refuse_callback(queue);
    weir_status status = check_free(queue, *buffer, file, line);
    if (status < 0)
        return status;

    struct weir__block *orphan = NULL;
    bool freed;
    weir__queue_enter(queue);
    status = free_locked(queue, (*buffer)->block, file, line, &freed, &orphan);
    weir_biased_lock_release(&queue->submit_lock);
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
    weir_biased_lock_take(&block->pool->lock);
    weir_status status = refuse_double(block, call, file, line);
    weir_biased_lock_release(&block->pool->lock);
    return status;
}

static bool forget(weir_buffer *buffer)
{
    struct weir__block *block = buffer->block;
    weir_pool *pool = block->pool;

    weir_biased_lock_take(&pool->lock);
    bool kept = block->kept;
    if (!kept)
        weir__pool_subtract(&pool->in_use_bytes, block->capacity);
    weir_biased_lock_release(&pool->lock);
    if (kept) {
        refuse_double(block, "weir_buffer_destroy", NULL, 0);
        weir__log(WEIR_LOG_ERROR, "core", weir_last_error_text());
        return false;
    }
    weir__pool_dissolve(block);
    return true;
}

const struct weir__lender weir__pool_lender = {.forget = forget, .refuse_freed = refuse_freed};
