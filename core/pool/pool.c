// Pools. An allocation takes a kept block if its queue may already use one, and otherwise
// creates one; store.c finds kept blocks, creates missing ones, and takes freed ones back. The allocation and
// the free are operations of their queue, so plugins see them in their places; backends
// do not.
//
// Locks: a queue's submit lock, then the pool's. A block is taken and its operation
// submitted without releasing the submit lock in between, so the condition under which
// the queue may use it still holds. A freed block is kept before its free is submitted:
// until the lock is released, no queue can come after the free.
#include "core/pool/pool.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/sized.h"
#include "core/buffer/buffer.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

// Allocation.

// The data of one allocation.
struct request {
    weir_pool *pool;
    weir_queue *queue;
    size_t size;
    size_t capacity;
    uint32_t class_index;
    const char *file;
    int line;
};

// `cause` is the obstacle, or NULL for the limit.
static weir_status refuse_memory(const struct request *request, const struct weir_error *cause)
{
    const weir_pool *pool = request->pool;
    char limit[32] = "none";
    if (pool->limit != UINT64_MAX)
        snprintf(limit, sizeof limit, "%" PRIu64, pool->limit);
    weir__report_at(request->file, request->line, pool->member.object.label,
                    WEIR_ERROR_OUT_OF_MEMORY,
                    "free before allocating, sync with the queues that freed, or raise "
                    "params.limit_bytes",
                    "weir_pool_allocate: %zu bytes were asked for, a block of %zu; %" PRIu64
                    " bytes of the pool are in use, %" PRIu64
                    " are kept and not idle, and the limit is %s%s%.600s",
                    request->size, request->capacity, weir__pool_count(&pool->in_use_bytes),
                    weir__pool_count(&pool->kept_bytes), limit, cause ? ": " : "",
                    cause ? cause->message : "");
    if (!cause)
        return WEIR_ERROR_OUT_OF_MEMORY;
    struct weir_error error = *weir_last_error();
    error.native_code = cause->native_code;
    snprintf(error.native_call, sizeof error.native_call, "%s", cause->native_call);
    snprintf(error.native_name, sizeof error.native_name, "%s", cause->native_name);
    return weir__error_set(&error);
}

static weir_status make(const struct request *request, struct weir__block **out_block)
{
    weir_pool *pool = request->pool;
    uint64_t excess;
    if (!weir__pool_reserve(pool, request->capacity, &excess)) {
        weir__pool_shrink(pool, excess);
        if (!weir__pool_reserve(pool, request->capacity, &excess))
            return refuse_memory(request, NULL);
    }
    weir_status status =
        weir__pool_make_block(pool, request->class_index, request->capacity, out_block);
    if (status == WEIR_OK)
        return WEIR_OK;
    const struct weir_error cause = weir__error_of(status);
    weir__pool_unreserve(pool, request->capacity);
    if (status == WEIR_ERROR_OUT_OF_MEMORY)
        return refuse_memory(request, &cause);
    weir__error_place(status, pool->member.object.label, request->file, request->line);
    return status;
}

static struct weir__block *take(const struct request *request)
{
    weir_pool *pool = request->pool;
    weir_lock_take(&pool->lock);
    struct weir__block *block = weir__pool_take(pool, request->class_index, request->queue);
    if (block) {
        weir__pool_add(&pool->in_use_bytes, block->capacity);
        weir__pool_add(&pool->allocations, 1);
        weir__pool_add(&pool->reused, 1);
    }
    weir_lock_release(&pool->lock);
    return block;
}

// A block whose operation was refused is kept, as if the operation had freed it.
static void take_back(const struct request *request, struct weir__block *block,
                      struct weir_event freed, bool reused)
{
    weir_pool *pool = request->pool;
    block->buffer->size = 0;
    weir_lock_take(&pool->lock);
    block->file = weir__file_name(request->file);
    block->line = request->line;
    weir__pool_subtract(&pool->in_use_bytes, block->capacity);
    if (reused) {
        weir__pool_subtract(&pool->allocations, 1);
        weir__pool_subtract(&pool->reused, 1);
    }
    weir__pool_keep(pool, block, freed);
    weir_lock_release(&pool->lock);
}

// With the queue's submit lock held.
static weir_status hand_out(const struct request *request, struct weir__block *block, bool reused)
{
    weir_queue *queue = request->queue;
    struct weir_operation operation = {
        .struct_size = sizeof operation,
        .kind = WEIR_OPERATION_POOL_ALLOCATE,
        .flags = WEIR_OPERATION_EMPTY,
        .file = weir__file_name(request->file),
        .line = request->line,
        .u.pool = {request->pool, block->buffer, request->size},
    };
    block->buffer->size = request->size;
    block->buffer->member.object.id = weir__object_next_id();
    weir_status status = weir__queue_submit_locked(queue, &operation);
    if (status < 0)
        take_back(request, block, (struct weir_event){queue->member.object.id, operation.sequence},
                  reused);
    return status;
}

// Allocates `*fresh`, or a kept block if that is NULL. `*out_block` stays NULL if no
// block is kept for the queue. `*fresh` is set to NULL when the pool owns it.
static weir_status allocate(const struct request *request, struct weir__block **fresh,
                            struct weir__block **out_block)
{
    weir_queue *queue = request->queue;
    struct weir__block *block = *fresh;
    const bool reused = !block;

    weir__queue_enter(queue);
    weir_status status =
        atomic_load_explicit(&queue->completion.failed, memory_order_acquire)
            ? weir__tell_refused(weir__completion_refuse(queue), "weir_pool_allocate",
                                 request->file, request->line)
            : WEIR_OK;
    if (status == WEIR_OK && !block)
        block = take(request);
    if (status == WEIR_OK && block) {
        *fresh = NULL;
        status = hand_out(request, block, reused);
    }
    weir_lock_release(&queue->submit_lock);
    *out_block = status == WEIR_OK ? block : NULL;
    return status;
}

static weir_status make_and_allocate(const struct request *request, bool blocked,
                                     struct weir__block **out_block)
{
    weir_pool *pool = request->pool;
    struct weir__block *fresh = NULL;
    weir_status status = make(request, &fresh);
    if (status < 0)
        return status;
    status = allocate(request, &fresh, out_block);
    if (fresh) { // the queue has failed meanwhile
        const struct weir_error cause = *weir_last_error();
        weir__pool_unreserve(pool, fresh->capacity);
        weir__pool_give_back(fresh, true);
        return weir__error_set(&cause);
    }
    if (status < 0)
        return status;
    weir_lock_take(&pool->lock);
    weir__pool_add(&pool->allocations, 1);
    weir__pool_add(&pool->blocked, blocked);
    weir_lock_release(&pool->lock);
    return WEIR_OK;
}

static weir_status check_allocate(const struct request *request)
{
    const char *label = request->pool->member.object.label;
    const weir_device *device = request->pool->member.device;
    if (request->queue->member.device != device)
        return weir__fail_at(request->file, request->line, label, WEIR_ERROR_INVALID,
                             "create a pool for each device",
                             "weir_pool_allocate: the pool belongs to another device than queue "
                             "'%s'",
                             weir__label_or_none(request->queue->member.object.label));
    if (request->size == 0)
        return weir__fail_at(request->file, request->line, label, WEIR_ERROR_INVALID,
                             "ask for one byte at least",
                             "weir_pool_allocate: 0 bytes were asked for");
    if (request->size > device->limits.max_buffer_bytes)
        return weir__fail_at(
            request->file, request->line, label, WEIR_ERROR_INVALID,
            "split it into several buffers",
            "weir_pool_allocate: %zu bytes were asked for; the device's limit of a "
            "buffer is %" PRIu64,
            request->size, device->limits.max_buffer_bytes);
    return WEIR_OK;
}

weir_status weir_pool_allocate_at(weir_pool *pool, weir_queue *queue, size_t size,
                                  weir_buffer **out_buffer, const char *file, int line)
{
    WEIR_REQUIRE_AT(file, line, NULL, out_buffer);
    *out_buffer = NULL;
    WEIR_ENTER_AT(file, line, pool, queue);
    WEIR_REQUIRE_AT(file, line, NULL, pool);
    WEIR_REQUIRE_AT(file, line, pool->member.object.label, queue);
    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue, file, line);
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line, "memory cannot be allocated in one",
                                            "allocate it before the capture");
    struct request request = {pool, queue, size, 0, 0, file, line};
    weir_status status = check_allocate(&request);
    if (status < 0)
        return status;
    request.class_index = weir__block_class(size, &request.capacity);
    const uint64_t most = pool->member.device->limits.max_buffer_bytes;
    if (request.capacity > most || request.capacity < size)
        request.capacity = (size_t)most;

    struct weir__block *none = NULL;
    struct weir__block *block = NULL;
    bool blocked = false;
    status = allocate(&request, &none, &block);
    if (status == WEIR_OK && !block && weir__pool_ask(pool, request.class_index, &blocked))
        status = allocate(&request, &none, &block);
    if (status == WEIR_OK && !block)
        status = make_and_allocate(&request, blocked, &block);
    if (block)
        *out_buffer = block->buffer;
    return status;
}

// Creation and destruction.

// A pool is freed with its last block.
static void finalize(struct weir__member *member)
{
    (void)member;
}

static const struct weir__class pool_class = {.name = "pool", .finalize = finalize};

static uint64_t limit_of(const weir_device *device, const struct weir_pool_params *params)
{
    if (params->limit_bytes)
        return params->limit_bytes;
    if (params->placement == WEIR_PLACE_DEVICE && device->limits.memory_bytes)
        return device->limits.memory_bytes;
    return UINT64_MAX;
}

weir_status weir_pool_create_at(weir_device *device, const struct weir_pool_params *params,
                                weir_pool **out_pool, const char *file, int line)
{
    struct weir_pool_params known;
    static const struct weir_pool_params defaults = {.struct_size = sizeof defaults};
    WEIR_REQUIRE_AT(file, line, NULL, out_pool);
    *out_pool = NULL;
    WEIR_ENTER_AT(file, line, device);
    WEIR_REQUIRE_AT(file, line, NULL, device);
    params = params ? params : &defaults;
    WEIR_READ_PARAMS(file, line, weir_pool_params, params, &known);
    WEIR_REQUIRE_AT(file, line, params->label,
                    params->placement == WEIR_PLACE_DEVICE || params->placement == WEIR_PLACE_HOST);
    weir_pool *pool = weir__member_allocate(device, &pool_class, sizeof *pool, params->label);
    if (!pool)
        return weir__fail_at(file, line, NULL, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                             "no memory for a pool");
    pool->placement = params->placement;
    pool->limit = limit_of(device, params);
    pool->references = 1;
    weir_lock_init(&pool->lock, &weir__locks[WEIR__LOCK_POOL]);
    weir__member_enlist(&pool->member);
    weir__member_place(&pool->member, file, line);
    *out_pool = pool;
    return WEIR_OK;
}

// Allocated blocks belong to the user from here on: they keep the device from closing.
static void disown(weir_pool *pool)
{
    weir_device *device = pool->member.device;
    weir_lock_take(&device->lock);
    for (struct weir__block *block = pool->blocks; block; block = block->next)
        block->buffer->member.internal = false;
    weir_lock_release(&device->lock);
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
    struct weir__block *idle = weir__pool_take_idle(gone, UINT64_MAX);
    struct weir__block *busy = weir__pool_take_all(gone);
    weir_lock_release(&gone->lock);
    weir__pool_give_back(idle, true);
    weir__pool_give_back(busy, false);

    weir_lock_take(&gone->lock);
    disown(gone);
    weir_lock_release(&gone->lock);
    weir__pool_drop(gone);
}

weir_status weir_pool_trim(weir_pool *pool, size_t keep_bytes)
{
    WEIR_ENTER(pool);
    WEIR_REQUIRE(NULL, pool);
    if (weir__in_host_call())
        return weir__told(weir__fail_at(NULL, 0, pool->member.object.label, WEIR_ERROR_INVALID,
                                        "trim on a thread of your own",
                                        "weir_pool_trim may wait, and a host call may not wait"));
    weir_device *device = pool->member.device;
    const uint64_t kept = weir__pool_count(&pool->kept_bytes);
    if (kept <= keep_bytes || !weir__pool_shrink(pool, kept - keep_bytes))
        return WEIR_OK;
    return weir__told(
        weir__placed(device->first->ops->device_trim(device->first, device), NULL, 0));
}

static struct weir_pool_statistics read_statistics(const weir_pool *pool)
{
    return (struct weir_pool_statistics){
        .in_use_bytes = weir__pool_count(&pool->in_use_bytes),
        .kept_bytes = weir__pool_count(&pool->kept_bytes),
        .high_bytes = weir__pool_count(&pool->high_bytes),
        .allocations = weir__pool_count(&pool->allocations),
        .reused = weir__pool_count(&pool->reused),
        .blocked = weir__pool_count(&pool->blocked),
    };
}

void weir_pool_read_statistics_sized(const weir_pool *pool,
                                     struct weir_pool_statistics *out_statistics, size_t size)
{
    const struct weir_pool_statistics statistics =
        WEIR_IS_ALIVE(pool) ? read_statistics(pool) : (struct weir_pool_statistics){0};
    if (out_statistics)
        weir_sized_write(out_statistics, size, &statistics, sizeof statistics);
}
