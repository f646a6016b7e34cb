// Pools.
//
// A block is an ordinary buffer of the chain, as large as its size class. While kept it is
// in the list of its class, in the order of frees. Of two frees on one queue the newer one is never
// complete before the older one.
//
// An allocation takes a kept block if its queue may already use that, and otherwise
// creates one. The allocation and the free are operations of their queue, so plugins see them in
// their places; backends do not.
//
// Locks: a queue's submit lock, then the pool's. A block is taken and its operation
// submitted without releasing the submit lock in between, so the condition under which
// the queue may use it still holds. A freed block is kept after its free is submitted, and no other
// queue has it until then.
#include <inttypes.h>
#include <stdio.h>
#include <sys/queue.h>

#include <weir/pool.h>

#include "base/lock.h"
#include "base/sized.h"
#include "core/buffer/buffer.h"
#include "core/object/buffer.h"
#include "core/object/device.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

struct weir__block {
    weir_buffer *buffer;
    weir_pool *pool;
    size_t capacity;
    uint32_t class_index;
    LIST_ENTRY(weir__block) all; // of its pool's blocks
    bool kept;
    struct weir_event freed;        // while kept: the point after which it was freed; not a record
    TAILQ_ENTRY(weir__block) place; // while kept: of its class
    bool idle;                      // when it was removed: nothing uses it any more
};

TAILQ_HEAD(blocks, weir__block);

// 256 bytes, then eight classes from each power of two to the next.
#define SMALLEST_BLOCK 256u
#define BLOCK_CLASSES 449u

struct weir_pool {
    struct weir__member member;
    weir_placement placement;
    uint64_t limit;        // UINT64_MAX: none
    struct weir_lock lock; // of all members below; a leaf except for the registry
    bool destroyed;
    LIST_HEAD(, weir__block) blocks; // the last one of a destroyed pool frees it
    struct weir_pool_statistics counts;
    struct blocks kept[BLOCK_CLASSES]; // each the oldest first
};

// The kept blocks of a pool, by size classes.

// Eight steps from each power of two to the next.
#define STEP_BITS 3u
#define SMALLEST_BITS 8u

_Static_assert(((64 - SMALLEST_BITS) << STEP_BITS) + 1 == BLOCK_CLASSES, "each size has its class");

// The class of blocks that serves `size` bytes, and how large these are: at most an
// eighth more than `size`, or SMALLEST_BLOCK.
static uint32_t class_of(size_t size, size_t *out_capacity)
{
    *out_capacity = SMALLEST_BLOCK;
    if (size <= SMALLEST_BLOCK)
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

static struct weir__block *remove_kept(weir_pool *pool, struct weir__block *block)
{
    TAILQ_REMOVE(&pool->kept[block->class_index], block, place);
    block->kept = false;
    pool->counts.kept_bytes -= block->capacity;
    return block;
}

// Whether the queue, whose submit lock the caller holds, or the host if that is NULL, comes after the point. The work of a
// destroyed queue has finished. What a failed queue freed may be in use until its recovery: see weir__refused_note().
static bool comes_after(const weir_queue *queue, struct weir_event freed)
{
    weir_queue *producer = weir__registry_pin(freed.queue);
    if (!producer)
        return true;
    const bool is_after = (queue && (weir__wait_ring_covers(&queue->completion.waits, freed) ||
                                     (queue->legacy_end.queue == freed.queue &&
                                      queue->legacy_end.sequence >= freed.sequence))) ||
                          weir__queue_is_past(producer, freed.sequence);
    const bool withheld = weir__completion_failed_from(producer) <= freed.sequence;
    weir__registry_unpin(producer);
    return is_after && !withheld;
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

// Takes a block of `class_index` for the queue, whose submit lock the caller holds; NULL
// if there is none that it may use yet. With the pool's lock held.
static struct weir__block *find_kept(weir_pool *pool, uint32_t class_index, weir_queue *queue)
{
    struct blocks *kept = &pool->kept[class_index];
    struct weir_event open[QUEUES_ASKED]; // of the latest queues whose blocks may be in use
    size_t count = 0;

    // Its own frees need no check; the newest is the most likely to be in a cache.
    struct weir__block *block = TAILQ_LAST(kept, blocks);
    for (; block; block = TAILQ_PREV(block, blocks, place))
        if (block->freed.queue == queue->member.object.id)
            return remove_kept(pool, block);
    for (block = TAILQ_FIRST(kept); block; block = TAILQ_NEXT(block, place)) {
        if (is_listed(open, count < QUEUES_ASKED ? count : QUEUES_ASKED, block->freed.queue))
            continue;
        if (comes_after(queue, block->freed))
            return remove_kept(pool, block);
        open[count++ % QUEUES_ASKED] = block->freed;
    }
    return NULL;
}

// Removes kept blocks, large ones first, until `bytes` are removed or there are no more; with `idle` those
// whose free is known to be complete. With the pool's lock held, as the next.
static void remove_blocks(weir_pool *pool, uint64_t bytes, bool idle, struct blocks *out_blocks)
{
    TAILQ_INIT(out_blocks);
    for (uint32_t i = BLOCK_CLASSES; i > 0; i--)
        for (struct weir__block *block = TAILQ_FIRST(&pool->kept[i - 1]), *newer;
             block && bytes > 0; block = newer) {
            newer = TAILQ_NEXT(block, place);
            block->idle = comes_after(NULL, block->freed);
            if (idle && !block->idle)
                continue;
            remove_kept(pool, block);
            TAILQ_INSERT_HEAD(out_blocks, block, place);
            bytes -= block->capacity < bytes ? block->capacity : bytes;
        }
}

// Keeps a block that was freed after `freed`. The blocks of one queue must come in order.
static void keep(weir_pool *pool, struct weir__block *block, struct weir_event freed)
{
    block->kept = true;
    block->freed = freed;
    TAILQ_INSERT_TAIL(&pool->kept[block->class_index], block, place);
    pool->counts.kept_bytes += block->capacity;
}

static struct weir_pool_statistics counts_of(weir_pool *pool)
{
    weir_lock_take(&pool->lock);
    const struct weir_pool_statistics counts = pool->counts;
    weir_lock_release(&pool->lock);
    return counts;
}

// Blocks that go back to the device.

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
    LIST_REMOVE(block, all);
    const bool is_last = pool->destroyed && LIST_EMPTY(&pool->blocks);
    weir_lock_release(&pool->lock);
    buffer->block = NULL;
    buffer->leave_pool = NULL;
    weir__release(block);
    if (is_last)
        free_pool(pool);
    return buffer;
}

// Returns a block to the device: at once if nothing uses it any more. Without a lock held, as the next two.
static void give_back(struct weir__block *block)
{
    const bool idle = block->idle;
    weir_buffer *buffer = dissolve(block);
    if (idle) {
        weir__member_delist(&buffer->member);
        buffer->member.class->finalize(&buffer->member);
    } else {
        weir__member_retire(&buffer->member);
    }
}

// False: there are none.
static bool give_back_all(struct blocks *blocks)
{
    const bool any = !TAILQ_EMPTY(blocks);
    for (struct weir__block *block = TAILQ_FIRST(blocks), *next; block; block = next) {
        next = TAILQ_NEXT(block, place);
        give_back(block);
    }
    return any;
}

// Returns idle blocks to the device, up to `bytes` bytes. False: none.
static bool shrink(weir_pool *pool, uint64_t bytes)
{
    const struct weir_error saved = *weir_last_error();
    struct weir_event end;
    struct blocks idle;
    // Updates what is known of the progress of the device's queues.
    for (weir_queue *queue = NULL; (queue = weir__queue_next(pool->member.device, queue));)
        if (weir__queue_record_end(queue, &end) && end.sequence)
            weir__event_is_complete(end);
    weir__error_set(&saved);
    weir_lock_take(&pool->lock);
    remove_blocks(pool, bytes, true, &idle);
    weir_lock_release(&pool->lock);
    return give_back_all(&idle);
}

// Queries. Each checks only a few queues: an allocation that finds nothing creates a
// block, which is available the next time.

// Asks for a record of the queue's end until it is complete, and only then for a new one: on a queue that always has
// work the newest record is never complete.
static bool ask_queue(struct weir_event freed)
{
    weir_queue *queue = weir__registry_pin(freed.queue);
    if (!queue)
        return true;
    struct weir_event record = {freed.queue, atomic_load(&queue->asked)};
    bool is_over = weir__event_is_complete(record);
    if (is_over && record.sequence < freed.sequence) {
        is_over = weir__queue_record_end(queue, &record);
        if (is_over && record.sequence > 0) { // 0: all of it is complete
            atomic_store(&queue->asked, record.sequence);
            is_over = weir__event_is_complete(record);
        }
    }
    weir__registry_unpin(queue);
    return is_over;
}

// Queries the driver whether frees of this class are complete now, for find_kept().
// A queue without a record after its frees gets one. False: no further block can become
// available. `*out_any`: blocks of this class are kept. Without a lock held.
static bool ask(weir_pool *pool, uint32_t class_index, bool *out_any)
{
    struct weir_event frees[QUEUES_ASKED]; // the oldest of each queue
    size_t count = 0;
    weir_lock_take(&pool->lock);
    const struct weir__block *block = TAILQ_FIRST(&pool->kept[class_index]);
    for (; block && count < QUEUES_ASKED; block = TAILQ_NEXT(block, place))
        if (!is_listed(frees, count, block->freed.queue))
            frees[count++] = block->freed;
    weir_lock_release(&pool->lock);
    *out_any = count > 0;
    if (count == 0)
        return false;
    const struct weir_error saved = *weir_last_error();
    bool hope = false;
    for (size_t i = 0; i < count && !hope; i++)
        hope = ask_queue(frees[i]);
    weir__error_set(&saved);
    return hope;
}

// weir_buffer.leave_pool
static bool forget(weir_buffer *buffer)
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

// The limit.

// Adds `capacity` to what is in use unless the limit forbids it, and stores by how much it
// would be exceeded. Without a lock held, as the next.
static bool reserve(weir_pool *pool, size_t capacity, uint64_t *out_excess)
{
    struct weir_pool_statistics *counts = &pool->counts;
    weir_lock_take(&pool->lock);
    const uint64_t total = counts->in_use_bytes + counts->kept_bytes;
    const uint64_t room = total < pool->limit ? pool->limit - total : 0;
    *out_excess = capacity > room ? capacity - room : 0;
    if (*out_excess == 0) {
        counts->in_use_bytes += capacity;
        if (total + capacity > counts->high_bytes)
            counts->high_bytes = total + capacity;
    }
    weir_lock_release(&pool->lock);
    return *out_excess == 0;
}

// New blocks.

static weir_status make_buffer(weir_pool *pool, size_t capacity, weir_buffer **out_buffer)
{
    weir_device *device = pool->member.device;
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = capacity,
                                            .placement = pool->placement};
    weir_status status =
        weir__buffer_make(device, pool->member.object.label, &setup, true, out_buffer);
    if (status != WEIR_ERROR_OUT_OF_MEMORY || !shrink(pool, UINT64_MAX))
        return status;
    return weir__buffer_make(device, pool->member.object.label, &setup, true, out_buffer);
}

// Creates a block with the reserved memory. Without a lock held.
static weir_status make_block(weir_pool *pool, uint32_t class_index, size_t capacity,
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
    block->buffer->leave_pool = forget;
    weir_lock_take(&pool->lock);
    LIST_INSERT_HEAD(&pool->blocks, block, all);
    weir_lock_release(&pool->lock);
    *out_block = block;
    return WEIR_OK;
}

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
    const struct weir_pool_statistics counts = counts_of(request->pool);
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
                    request->size, request->capacity, counts.in_use_bytes, counts.kept_bytes, limit,
                    cause ? ": " : "", cause ? cause->message : "");
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
    if (!reserve(pool, request->capacity, &excess)) {
        shrink(pool, excess);
        if (!reserve(pool, request->capacity, &excess))
            return refuse_memory(request, NULL);
    }
    weir_status status = make_block(pool, request->class_index, request->capacity, out_block);
    if (status == WEIR_OK)
        return WEIR_OK;
    const struct weir_error cause = weir__error_of(status);
    weir_lock_take(&pool->lock);
    pool->counts.in_use_bytes -= request->capacity;
    weir_lock_release(&pool->lock);
    if (status == WEIR_ERROR_OUT_OF_MEMORY)
        return refuse_memory(request, &cause);
    weir__error_place(status, pool->member.object.label, request->file, request->line);
    return status;
}

static struct weir__block *take(const struct request *request)
{
    weir_pool *pool = request->pool;
    weir_lock_take(&pool->lock);
    struct weir__block *block = find_kept(pool, request->class_index, request->queue);
    if (block) {
        pool->counts.in_use_bytes += block->capacity;
        pool->counts.allocations++;
        pool->counts.reused++;
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
    pool->counts.in_use_bytes -= block->capacity;
    if (reused) {
        pool->counts.allocations -= 1;
        pool->counts.reused -= 1;
    }
    keep(pool, block, freed);
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

// Allocates `fresh`, or a kept block if that is NULL. `*out_block` is NULL if no block is kept for the queue.
static weir_status allocate(const struct request *request, struct weir__block *fresh,
                            struct weir__block **out_block)
{
    weir_queue *queue = request->queue;
    struct weir__block *block = fresh;

    weir__queue_enter(queue);
    weir_status status =
        atomic_load_explicit(&queue->completion.failed, memory_order_acquire)
            ? weir__tell_refused(weir__completion_refuse(queue), "weir_pool_allocate",
                                 request->file, request->line)
            : WEIR_OK;
    if (status == WEIR_OK && !block)
        block = take(request);
    if (status == WEIR_OK && block)
        status = hand_out(request, block, !fresh);
    else if (block) // no work has used it
        take_back(request, block, (struct weir_event){0}, false);
    weir_lock_release(&queue->submit_lock);
    *out_block = status == WEIR_OK ? block : NULL;
    return status;
}

static weir_status make_and_allocate(const struct request *request, bool blocked,
                                     struct weir__block **out_block)
{
    weir_pool *pool = request->pool;
    struct weir__block *fresh = NULL;
    TRY(make(request, &fresh));
    TRY(allocate(request, fresh, out_block));
    weir_lock_take(&pool->lock);
    pool->counts.allocations++;
    pool->counts.blocked += blocked;
    weir_lock_release(&pool->lock);
    return WEIR_OK;
}

static weir_status check_allocate(const struct request *request)
{
    const char *label = request->pool->member.object.label;
    weir_device *device = request->pool->member.device;
    if (request->queue->member.device != device)
        return weir__refuse(request, label, "create a pool for each device",
                            "weir_pool_allocate: the pool belongs to another device than queue "
                            "'%s'",
                            weir__label_or_none(request->queue->member.object.label));
    return weir__placed(weir__buffer_check_size(device, label, request->size), request->file,
                        request->line);
}

weir_status weir_pool_allocate_at(weir_pool *pool, weir_queue *queue, size_t size,
                                  weir_buffer **out_buffer, const char *file, int line)
{
    WEIR_ENTER_FOR(file, line, out_buffer, pool, queue);
    WEIR_REQUIRE_AT(file, line, pool->member.object.label, queue);
    WEIR_REFUSE_CALLBACK(queue, file, line);
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, file, line, "memory cannot be allocated in one",
                                            "allocate it before the capture");
    struct request request = {pool, queue, size, 0, 0, file, line};
    TRY(check_allocate(&request));
    request.class_index = class_of(size, &request.capacity);
    const uint64_t most = pool->member.device->limits.max_buffer_bytes;
    if (request.capacity > most || request.capacity < size)
        request.capacity = (size_t)most;

    struct weir__block *block = NULL;
    bool blocked = false;
    weir_status status = allocate(&request, NULL, &block);
    if (status == WEIR_OK && !block && ask(pool, request.class_index, &blocked))
        status = allocate(&request, NULL, &block);
    if (status == WEIR_OK && !block)
        status = make_and_allocate(&request, blocked, &block);
    if (block) {
        weir__member_place(&block->buffer->member, file, line);
        *out_buffer = block->buffer;
    }
    return status;
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
        keep(pool, block, freed);
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
    TRY(check_free(queue, *buffer, file, line));

    struct weir__block *orphan = NULL;
    bool freed;
    weir__queue_enter(queue);
    weir_status status = free_locked(queue, (*buffer)->block, file, line, &freed, &orphan);
    weir_lock_release(&queue->submit_lock);
    if (freed)
        *buffer = NULL;
    if (orphan)
        give_back(orphan);
    return status;
}

// Creation and destruction.

// A pool is freed with its last block, and never retired.
static const struct weir__class pool_class = {.name = "pool"};

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
    for (uint32_t i = 0; i < BLOCK_CLASSES; i++)
        TAILQ_INIT(&pool->kept[i]);
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
    for (struct weir__block *block = LIST_FIRST(&gone->blocks); block;
         block = LIST_NEXT(block, all))
        block->buffer->member.internal = false;
    weir_lock_release(&gone->member.device->lock);
    const bool is_last = LIST_EMPTY(&gone->blocks);
    struct blocks kept;
    remove_blocks(gone, UINT64_MAX, false, &kept);
    weir_lock_release(&gone->lock);
    give_back_all(&kept);
    if (is_last)
        free_pool(gone);
}

weir_status weir_pool_trim(weir_pool *pool, size_t keep_bytes)
{
    WEIR_ENTER(pool);
    WEIR_REFUSE_HOST_CALL_AT(NULL, 0, pool->member.object.label, "trim on a thread of your own");
    weir_device *device = pool->member.device;
    const uint64_t kept = counts_of(pool).kept_bytes;
    if (kept <= keep_bytes || !shrink(pool, kept - keep_bytes))
        return WEIR_OK;
    return weir__told(
        weir__placed(device->first->ops->device_trim(device->first, device), NULL, 0));
}

void weir_pool_read_statistics_sized(const weir_pool *pool,
                                     struct weir_pool_statistics *out_statistics, size_t size)
{
    const struct weir_pool_statistics statistics =
        WEIR_IS_ALIVE(pool) && !weir__is_forked() // which may have the lock
            ? counts_of((weir_pool *)(uintptr_t)pool)
            : (struct weir_pool_statistics){0};
    if (out_statistics)
        weir_sized_write(out_statistics, size, &statistics, sizeof statistics);
}
