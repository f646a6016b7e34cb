// See the header. `head` and `tail` count without end and wrap together; a place
// in the ring is a count modulo the capacity. The reader is done with a wait when
// it moves `head`, and the writer overwrites its place only after that.
#include "core/queue/wait_ring.h"

#include "core/support/memory.h"

// A full ring costs a query to the driver, so it is large: 20 KiB.
#define CAPACITY_AT_FIRST 512u

bool weir__wait_ring_get(const struct weir__wait_ring *waits, uint32_t index, uint64_t own,
                         struct weir__wait *out_wait)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_acquire);

    if (index >= tail - head || weir__wait_ring_at(waits, head + index)->own > own)
        return false;
    *out_wait = *weir__wait_ring_at(waits, head + index);
    return true;
}

uint32_t weir__wait_ring_find(const struct weir__wait_ring *waits, uint64_t own)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_acquire);
    uint32_t first = 0;
    uint32_t end = tail - head;

    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (weir__wait_ring_at(waits, head + middle)->own <= own)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

void weir__wait_ring_drop(struct weir__wait_ring *waits, uint64_t own)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_acquire);

    while (head != tail && weir__wait_ring_at(waits, head)->own <= own)
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
        if (keep(user, weir__wait_ring_at(waits, i)))
            *weir__wait_ring_at(waits, kept++) = *weir__wait_ring_at(waits, i);
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
        ring[i] = *weir__wait_ring_at(waits, head + i);
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
