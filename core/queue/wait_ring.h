// The waits of one queue that are not known to be over, oldest first: a ring with
// one writer, which holds the queue's submit lock, and one reader, which holds the
// walk lock of completion.c. The two need no common lock.
#ifndef WEIR_CORE_QUEUE_WAIT_RING_H
#define WEIR_CORE_QUEUE_WAIT_RING_H

#include <stdatomic.h>

#include <weir/event.h>

// One wait: operation `own` of this queue waits for `event`.
struct weir__wait {
    uint64_t own;
    struct weir_event event;
    // `event` is another operation, such as a graph's launch; a backend only knows records
    bool no_record;
    // It only orders the queue (owned.c): it passes on no failure, and tells no progress.
    bool order;
    // Of a failed queue (failures.h):
    bool over;       // the producer has ended
    uint64_t record; // of the producer, that was made to ask for the event; 0: none
};

struct weir__wait_ring {
    struct weir__wait *ring;
    uint32_t capacity; // 0 or a power of two; changes under both locks
    atomic_uint head;  // counts; the reader moves it
    atomic_uint tail;  // the writer moves it
};

// The place of a count, which is a count modulo the capacity.
static inline struct weir__wait *weir__wait_ring_at(const struct weir__wait_ring *waits,
                                                    unsigned count)
{
    return &waits->ring[count & (waits->capacity - 1)];
}

// For the writer.

// Whether a wait in the list is for this event, or a later one of its queue, and passes on its failure.
static inline bool weir__wait_ring_covers(const struct weir__wait_ring *waits,
                                          struct weir_event event)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_acquire);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_relaxed);

    // Sequences of one queue rise, so its latest decides.
    while (tail-- != head)
        if (weir__wait_ring_at(waits, tail)->event.queue == event.queue &&
            !weir__wait_ring_at(waits, tail)->order)
            return weir__wait_ring_at(waits, tail)->event.sequence >= event.sequence;
    return false;
}

// Appends a wait; false when the ring is full.
static inline bool weir__wait_ring_push(struct weir__wait_ring *waits,
                                        const struct weir__wait *wait)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_acquire);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_relaxed);

    if (tail - head == waits->capacity)
        return false;
    *weir__wait_ring_at(waits, tail) = *wait;
    atomic_store_explicit(&waits->tail, tail + 1, memory_order_release);
    return true;
}

// For the reader.

// Stores the `index`-th wait, if it belongs to an operation up to `own`.
bool weir__wait_ring_get(const struct weir__wait_ring *waits, uint32_t index, uint64_t own,
                         struct weir__wait *out_wait);

// The index of the first wait of an operation after `own`, or the number of waits.
uint32_t weir__wait_ring_find(const struct weir__wait_ring *waits, uint64_t own);

// Removes the waits of operations up to `own`.
void weir__wait_ring_drop(struct weir__wait_ring *waits, uint64_t own);

// With both locks held.

// Keeps only the waits for which `keep` returns true.
void weir__wait_ring_filter(struct weir__wait_ring *waits,
                            bool (*keep)(void *user, const struct weir__wait *wait), void *user);

// Doubles the ring if more than half of it is used; false when there is no memory.
bool weir__wait_ring_grow(struct weir__wait_ring *waits);

void weir__wait_ring_finish(struct weir__wait_ring *waits);

#endif
