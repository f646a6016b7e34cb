// See the header. A slot's references are taken by compare-and-swap from a
// non-zero count only, then the id is compared: between the two the slot cannot
// be reused, because reuse needs the count to be zero.
#include "core/queue/queue.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/support/locks.h"
#include "core/support/memory.h"

#define CHUNK_SLOTS 256u
#define CHUNK_COUNT 256u

struct slot {
    atomic_uint_fast64_t id; // 0: free
    atomic_uint_fast32_t references;
    weir_queue *queue; // NULL once it is being finalized; changes under the lock
    atomic_uint_fast64_t generation;
    uint32_t next_free;
};

static _Atomic(struct slot *) chunks[CHUNK_COUNT];
static struct weir_lock lock =
    WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_REGISTRY]); // of the two below
static uint32_t used_count;
static uint32_t first_free = UINT32_MAX;

static struct slot *slot_at(uint32_t index)
{
    struct slot *chunk = atomic_load_explicit(&chunks[index / CHUNK_SLOTS], memory_order_acquire);
    return chunk ? &chunk[index % CHUNK_SLOTS] : NULL;
}

// Called with the lock held. UINT32_MAX: none left.
static uint32_t take_slot(void)
{
    if (first_free != UINT32_MAX) {
        uint32_t index = first_free;
        first_free = slot_at(index)->next_free;
        return index;
    }
    if (used_count == CHUNK_SLOTS * CHUNK_COUNT)
        return UINT32_MAX;
    if (!slot_at(used_count)) {
        struct slot *chunk = weir__allocate(CHUNK_SLOTS * sizeof *chunk);
        if (!chunk)
            return UINT32_MAX;
        atomic_store_explicit(&chunks[used_count / CHUNK_SLOTS], chunk, memory_order_release);
    }
    return used_count++;
}

static uint32_t index_of(const weir_queue *queue)
{
    return queue->member.object.id & 0xffff;
}

static void free_slot_of(const weir_queue *queue)
{
    const uint32_t index = index_of(queue);
    struct slot *slot = slot_at(index);
    weir_lock_take(&lock);
    slot->queue = NULL;
    slot->next_free = first_free;
    first_free = index;
    weir_lock_release(&lock);
}

bool weir__registry_reserve(weir_queue *queue)
{
    weir_lock_take(&lock);
    uint32_t index = take_slot();
    struct slot *slot = index == UINT32_MAX ? NULL : slot_at(index);
    if (slot)
        slot->queue = queue;
    weir_lock_release(&lock);
    if (!slot)
        return false;
    queue->member.object.id = (atomic_fetch_add(&slot->generation, 1) + 1) << 16 | index;
    return true;
}

// From here on a stale id of the slot may take a reference, and release it
// through the queue's own id: so that must be set before.
void weir__registry_publish(weir_queue *queue)
{
    struct slot *slot = slot_at(index_of(queue));
    atomic_store(&slot->id, queue->member.object.id);
    atomic_store(&slot->references, 1);
}

void weir__registry_cancel(weir_queue *queue)
{
    free_slot_of(queue);
}

weir_queue *weir__registry_pin(uint64_t id)
{
    struct slot *slot = slot_at(id & 0xffff);
    if (!slot)
        return NULL;

    uint_fast32_t count = atomic_load_explicit(&slot->references, memory_order_relaxed);
    do {
        if (count == 0)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&slot->references, &count, count + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    if (atomic_load_explicit(&slot->id, memory_order_relaxed) == id)
        return slot->queue;
    weir__registry_unpin_later(slot->queue);
    return NULL;
}

weir_queue *weir__registry_next(uint32_t *index)
{
    weir_queue *queue = NULL;
    while (!queue && *index < CHUNK_SLOTS * CHUNK_COUNT) {
        struct slot *slot = slot_at((*index)++);
        if (!slot)
            return NULL;
        queue = weir__registry_pin(atomic_load(&slot->id));
    }
    return queue;
}

bool weir__registry_issued(uint64_t id)
{
    struct slot *slot = slot_at(id & 0xffff);
    return slot && id >> 16 > 0 && id >> 16 <= atomic_load(&slot->generation);
}

static bool drop(weir_queue *queue)
{
    struct slot *slot = slot_at(index_of(queue));
    return atomic_fetch_sub_explicit(&slot->references, 1, memory_order_acq_rel) == 1;
}

static void finalize_later(weir_queue *queue)
{
    weir_queue *_Atomic *ended = &queue->member.device->ended;
    queue->next_ended = atomic_load_explicit(ended, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(ended, &queue->next_ended, queue,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

static void finalize(weir_queue *queue)
{
    atomic_store(&slot_at(index_of(queue))->id, 0);
    free_slot_of(queue);
    weir__queue_finalize(queue);
}

void weir__registry_unpin(weir_queue *queue)
{
    weir_lock_order_expect_none("a reference on a queue is dropped");
    if (drop(queue))
        finalize(queue);
}

void weir__registry_unpin_later(weir_queue *queue)
{
    if (drop(queue))
        finalize_later(queue);
}

void weir__registry_finalize_ended(weir_device *device)
{
    if (!atomic_load_explicit(&device->ended, memory_order_relaxed))
        return;
    weir_lock_order_expect_none("queues are finalized");
    weir_queue *queue = atomic_exchange_explicit(&device->ended, NULL, memory_order_acquire);
    while (queue) {
        weir_queue *next = queue->next_ended;
        finalize(queue);
        queue = next;
    }
}
