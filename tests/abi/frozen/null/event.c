// Events. A record is identified by its queue and sequence number; a real backend maps that to a
// native event, and reuses those. Records are complete at once here, so only the number of the last
// one is kept.
//
// The number is stored with release order and read with acquire order, so that
// a thread that reads an event as complete also sees the bytes that were written before it.
#include "tests/abi/frozen/null/null.h"

#include <inttypes.h>

static void keep_time(struct null_timing *timing, uint64_t sequence)
{
    const uint64_t now_ns = null_now_ns();

    pthread_mutex_lock(&timing->lock);
    timing->records[timing->count++ % NULL_TIMING_HISTORY] = (struct null_record){
        .sequence = sequence,
        .time_ns = now_ns,
    };
    pthread_mutex_unlock(&timing->lock);
}

void null_event_record(struct null_queue *queue, uint64_t sequence)
{
    if (queue->timing)
        keep_time(queue->timing, sequence);
    atomic_store_explicit(&queue->finished, sequence, memory_order_release);
}

weir_status null_event_query(const struct weir_link *link, weir_queue *queue, uint64_t sequence)
{
    struct null_queue *own = null_queue_of(link, queue);

    return atomic_load_explicit(&own->finished, memory_order_acquire) >= sequence ? WEIR_OK
                                                                                  : WEIR_NOT_READY;
}

// A real backend flushes the queue and blocks in the driver, without spinning.
weir_status null_event_wait(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                            uint64_t timeout_ns)
{
    (void)timeout_ns;
    return null_event_query(link, queue, sequence) == WEIR_OK ? WEIR_OK : WEIR_TIMEOUT;
}

// All queues of a device share one timeline; here it is the host's.
weir_status null_event_time(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                            uint64_t *out_time_ns)
{
    struct null_timing *timing = null_queue_of(link, queue)->timing;
    bool found = false;

    *out_time_ns = 0;
    pthread_mutex_lock(&timing->lock);
    uint64_t kept = timing->count < NULL_TIMING_HISTORY ? timing->count : NULL_TIMING_HISTORY;
    for (uint64_t i = 1; i <= kept && !found; i++) {
        const struct null_record *record =
            &timing->records[(timing->count - i) % NULL_TIMING_HISTORY];
        found = record->sequence == sequence;
        if (found)
            *out_time_ns = record->time_ns;
    }
    pthread_mutex_unlock(&timing->lock);
    if (found)
        return WEIR_OK;
    return weir_host_fail(link->host, WEIR_ERROR_EXPIRED,
                          "ask for times before they are overwritten",
                          "the time of record %" PRIu64 " is gone: a queue keeps its last %d",
                          sequence, NULL_TIMING_HISTORY);
}
