// See the header. `head` and `tail` count without end and wrap together; a place
// in the ring is a count modulo the capacity. The reader is done with a wait when
// it moves `head`, and the writer overwrites its place only after that.
#include "core/queue/wait_ring.h"

#include "core/support/memory.h"

// A full ring costs a query to the driver, so it is large: 12 KiB.
#define CAPACITY_AT_FIRST 512u

static struct weir__wait *at(const struct weir__wait_ring *waits, unsigned count)
{
    return &waits->ring[count & (waits->capacity - 1)];
}

bool weir__wait_ring_covers(const struct weir__wait_ring *waits, struct weir_event event)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_acquire);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_relaxed);

    // Sequence numbers of one queue ascend, so the latest one decides.
    while (tail-- != head)
        if (at(waits, tail)->event.queue == event.queue)
            return at(waits, tail)->event.sequence >= event.sequence;
    return false;
}

bool weir__wait_ring_push(struct weir__wait_ring *waits, struct weir__wait wait)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_acquire);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_relaxed);

    if (tail - head == waits->capacity)
        return false;
    *at(waits, tail) = wait;
    atomic_store_explicit(&waits->tail, tail + 1, memory_order_release);
    return true;
}

bool weir__wait_ring_get(const struct weir__wait_ring *waits, uint32_t index, uint64_t own,
                         struct weir__wait *out_wait)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_acquire);

    if (index >= tail - head || at(waits, head + index)->own > own)
        return false;
    *out_wait = *at(waits, head + index);
    return true;
}

void weir__wait_ring_drop(struct weir__wait_ring *waits, uint64_t own)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_acquire);

    while (head != tail && at(waits, head)->own <= own)
        head++;
    atomic_store_explicit(&waits->head, head, memory_order_release);
}

void weir__wait_ring_filter(struct weir__wait_ring *waits,
                            bool (*keep)(void *user, const struct weir__wait *wait), void *user)
{
    unsigned head = atomic_load(&waits->head);
    unsigned tail = atomic_load(&waits->tail);
    unsigned kept = head;

    for (unsigned i = head; i != tail; i++)
        if (keep(user, at(waits, i)))
            *at(waits, kept++) = *at(waits, i);
    atomic_store(&waits->tail, kept);
}

bool weir__wait_ring_grow(struct weir__wait_ring *waits)
{
    unsigned head = atomic_load(&waits->head);
    unsigned count = atomic_load(&waits->tail) - head;

    if (waits->capacity && count <= waits->capacity / 2)
        return true;
    uint32_t capacity = waits->capacity ? 2 * waits->capacity : CAPACITY_AT_FIRST;
    struct weir__wait *ring = weir__allocate(capacity * sizeof *ring);
    if (!ring)
        return false;
    for (unsigned i = 0; i < count; i++)
        ring[i] = *at(waits, head + i);
    weir__release(waits->ring);
    waits->ring = ring;
    waits->capacity = capacity;
    atomic_store(&waits->head, 0);
    atomic_store(&waits->tail, count);
    return true;
}

void weir__wait_ring_finish(struct weir__wait_ring *waits)
{
    weir__release(waits->ring);
}
