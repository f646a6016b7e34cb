// Allocations of pools. One takes a kept block if its queue may already use that, and otherwise
// creates one. The allocation and the free are operations of their queue, so plugins see them in
// their places; backends do not.
//
// Locks: a queue's submit lock, then the pool's. A block is taken and its operation
// submitted without releasing the submit lock in between, so the condition under which
// the queue may use it still holds. A freed block is kept after its free is submitted, and no other
// queue has it until then.
#include "core/pool/pool.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/buffer/buffer.h"
#include "core/queue/queue.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// The kept blocks of a pool, by size classes.

// Eight steps from each power of two to the next.
#define STEP_BITS 3u
#define SMALLEST_BITS 8u

_Static_assert(((64 - SMALLEST_BITS) << STEP_BITS) + 1 == WEIR__BLOCK_CLASSES,
               "each size has its class");

// The class of blocks that serves `size` bytes, and how large these are: at most an
// eighth more than `size`, or WEIR__SMALLEST_BLOCK.
static uint32_t class_of(size_t size, size_t *out_capacity)
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

static struct weir__block *remove_kept(weir_pool *pool, struct weir__block *block)
{
    struct weir__kept *kept = &pool->kept[block->class_index];
    *(block->older ? &block->older->newer : &kept->oldest) = block->newer;
    *(block->newer ? &block->newer->older : &kept->newest) = block->older;
    block->kept = false;
    block->newer = NULL;
    block->older = NULL;
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
    struct weir__kept *kept = &pool->kept[class_index];
    struct weir_event open[QUEUES_ASKED]; // of the latest queues whose blocks may be in use
    size_t count = 0;

    // Its own frees need no check; the newest is the most likely to be in a cache.
    for (struct weir__block *block = kept->newest; block; block = block->older)
        if (block->freed.queue == queue->member.object.id)
            return remove_kept(pool, block);
    for (struct weir__block *block = kept->oldest; block; block = block->newer) {
        if (is_listed(open, count < QUEUES_ASKED ? count : QUEUES_ASKED, block->freed.queue))
            continue;
        if (comes_after(queue, block->freed))
            return remove_kept(pool, block);
        open[count++ % QUEUES_ASKED] = block->freed;
    }
    return NULL;
}

struct weir__block *weir__pool_remove(weir_pool *pool, uint64_t bytes, bool idle)
{
    struct weir__block *taken = NULL;
    for (uint32_t i = WEIR__BLOCK_CLASSES; i > 0; i--)
        for (struct weir__block *block = pool->kept[i - 1].oldest, *newer; block && bytes > 0;
             block = newer) {
            newer = block->newer;
            if (idle && !comes_after(NULL, block->freed))
                continue;
            remove_kept(pool, block)->newer = taken;
            taken = block;
            bytes -= block->capacity < bytes ? block->capacity : bytes;
        }
    return taken;
}

void weir__pool_keep(weir_pool *pool, struct weir__block *block, struct weir_event freed)
{
    struct weir__kept *kept = &pool->kept[block->class_index];
    block->kept = true;
    block->freed = freed;
    block->older = kept->newest;
    *(kept->newest ? &kept->newest->newer : &kept->oldest) = block;
    kept->newest = block;
    pool->counts.kept_bytes += block->capacity;
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
    for (struct weir__block *block = pool->kept[class_index].oldest; block && count < QUEUES_ASKED;
         block = block->newer)
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
    if (status != WEIR_ERROR_OUT_OF_MEMORY || !weir__pool_shrink(pool, UINT64_MAX))
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
    block->buffer->leave_pool = weir__pool_forget;
    weir_lock_take(&pool->lock);
    block->next = pool->blocks;
    if (block->next)
        block->next->previous = block;
    pool->blocks = block;
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
    const struct weir_pool_statistics counts = weir__pool_counts(request->pool);
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
        weir__pool_shrink(pool, excess);
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
    weir_status status = make(request, &fresh);
    if (status == WEIR_OK)
        status = allocate(request, fresh, out_block);
    if (status < 0)
        return status;
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
    if (request->size == 0)
        return weir__refuse(request, label, "ask for one byte at least",
                            "weir_pool_allocate: a buffer of 0 bytes was asked for");
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
    weir_status status = check_allocate(&request);
    if (status < 0)
        return status;
    request.class_index = class_of(size, &request.capacity);
    const uint64_t most = pool->member.device->limits.max_buffer_bytes;
    if (request.capacity > most || request.capacity < size)
        request.capacity = (size_t)most;

    struct weir__block *block = NULL;
    bool blocked = false;
    status = allocate(&request, NULL, &block);
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
