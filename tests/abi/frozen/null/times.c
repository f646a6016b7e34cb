// Times of operations, for plugins that request them: the host's clock before and after. A real
// backend queries its driver, and returns the times after the operation has finished.
#include "tests/abi/frozen/null/null.h"

#include <time.h>

uint64_t null_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void null_times_end(struct null_times *times, uint64_t sequence, uint64_t start_ns)
{
    const uint64_t end_ns = null_now_ns();

    pthread_mutex_lock(&times->lock);
    times->ring[times->kept++ % NULL_OPERATION_TIMES] = (struct weir_operation_time){
        .sequence = sequence,
        .start_ns = start_ns,
        .end_ns = end_ns,
    };
    pthread_mutex_unlock(&times->lock);
}

weir_status null_queue_times(const struct weir_link *link, weir_queue *queue,
                             struct weir_operation_time *times, size_t time_size, size_t capacity,
                             size_t *out_count)
{
    struct null_times *own = null_queue_of(link, queue)->times;

    *out_count = 0;
    if (!own)
        return WEIR_OK;
    pthread_mutex_lock(&own->lock);
    if (own->kept - own->fetched > NULL_OPERATION_TIMES)
        own->fetched = own->kept - NULL_OPERATION_TIMES;
    for (; own->fetched < own->kept && *out_count < capacity; own->fetched++)
        weir_write((char *)times + (*out_count)++ * time_size, time_size,
                   &own->ring[own->fetched % NULL_OPERATION_TIMES], sizeof *own->ring);
    pthread_mutex_unlock(&own->lock);
    return WEIR_OK;
}
