// Queues. Every operation has finished when its submit returns, so a queue never has pending work.
// A real backend creates exactly one native stream or command queue in queue_create, and submits
// each operation to it in queue_submit without waiting.
//
// A record is identified by its queue and sequence number; a real backend maps that to a
// native event, and reuses those. Records are complete at once here, so only the number of the last
// one is kept.
//
// The number is stored with release order and read with acquire order, so that
// a thread that reads an event as complete also sees the bytes that were written before it.
//
// Times of operations, for plugins that request them, are the host's clock before and after. A real backend
// queries its driver, and returns the times after the operation has finished.
#include "backends/null/null.h"

#include <inttypes.h>
#include <time.h>

weir_status null_queue_create(const struct weir_link *link, weir_device *device, weir_queue *queue,
                              const struct weir_queue_setup *setup, void **out_data)
{
    const struct weir_host *host = link->host;
    const bool timed = setup->timing || setup->times;
    struct null_queue *own = host->allocate(sizeof *own);

    if (own && timed)
        own->times = host->allocate(sizeof *own->times);
    if (!own || (timed && !own->times)) {
        host->release(own);
        return weir_host_fail(link->host, WEIR_ERROR_OUT_OF_MEMORY, "free some memory of the host",
                              "no host memory is left for queue '%s'",
                              null_label(weir_queue_object(queue)->label));
    }
    if (timed)
        pthread_mutex_init(&own->times->lock, NULL);
    *out_data = own; // and host->count_driver_object() for a native queue
    return WEIR_OK;
}

// The front end guarantees that no work uses the queue any more.
void null_queue_destroy(const struct weir_link *link, weir_queue *queue)
{
    struct null_queue *own = null_queue_of(link, queue);

    if (own->times)
        pthread_mutex_destroy(&own->times->lock);
    link->host->release(own->times);
    link->host->release(own);
}

// Doubles the filled part, which stays a multiple of the pattern's size.
static void fill_row(unsigned char *dst, size_t size, const void *pattern, size_t pattern_size)
{
    size_t done = pattern_size;

    memcpy(dst, pattern, done);
    while (done < size) {
        size_t step = done < size - done ? done : size - done;
        memcpy(dst + done, dst, step);
        done += step;
    }
}

static void move(const struct weir_link *link, const struct weir_box *box)
{
    unsigned char *dst = null_buffer_of(link, box->dst.buffer)->bytes + box->dst.offset;
    const unsigned char *src =
        box->pattern ? NULL : null_buffer_of(link, box->src.buffer)->bytes + box->src.offset;

    for (size_t slice = 0; slice < box->depth; slice++) {
        for (size_t row = 0; row < box->height; row++) {
            unsigned char *to = dst + slice * box->dst.slice_pitch + row * box->dst.pitch;

            if (box->pattern)
                fill_row(to, box->width, box->pattern, box->pattern_size);
            else
                memcpy(to, src + slice * box->src.slice_pitch + row * box->src.pitch, box->width);
        }
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void record(struct null_queue *queue, uint64_t sequence)
{
    struct null_times *times = queue->times;
    if (times) {
        const uint64_t time_ns = now_ns();

        pthread_mutex_lock(&times->lock);
        times->records[times->count++ % NULL_TIMING_HISTORY] =
            (struct null_record){.sequence = sequence, .time_ns = time_ns};
        pthread_mutex_unlock(&times->lock);
    }
    atomic_store_explicit(&queue->finished, sequence, memory_order_release);
}

static void keep_times(struct null_times *times, uint64_t sequence, uint64_t start_ns)
{
    const uint64_t end_ns = now_ns();

    pthread_mutex_lock(&times->lock);
    times->ring[times->kept++ % NULL_OPERATION_TIMES] = (struct weir_operation_time){
        .sequence = sequence,
        .start_ns = start_ns,
        .end_ns = end_ns,
    };
    pthread_mutex_unlock(&times->lock);
}

// The operation is valid, and an error returned here fails the queue. A wait does nothing: the work
// that it waits for had finished when that was submitted. A real backend flushes `u.wait.producer`
// and then makes the device wait.
static weir_status submit(const struct weir_link *link, weir_queue *queue,
                          const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
    case WEIR_OPERATION_FILL:
        move(link, &operation->u.box);
        return WEIR_OK;
    case WEIR_OPERATION_RECORD:
        record(null_queue_of(link, queue), operation->sequence);
        return WEIR_OK;
    case WEIR_OPERATION_LAUNCH:
    case WEIR_OPERATION_WAIT:
        return WEIR_OK;
    default: // the library keeps the others
        return weir_host_unknown_kind(link, operation);
    }
}

weir_status null_queue_submit(const struct weir_link *link, weir_queue *queue,
                              const struct weir_operation *operation)
{
    struct null_times *times = null_queue_of(link, queue)->times;
    if (!times || operation->kind == WEIR_OPERATION_RECORD ||
        operation->kind == WEIR_OPERATION_WAIT)
        return submit(link, queue, operation);

    const uint64_t start_ns = now_ns();
    weir_status status = submit(link, queue, operation);
    keep_times(times, operation->sequence, start_ns);
    return status;
}

weir_status null_queue_finish(const struct weir_link *link, weir_queue *queue)
{
    return WEIR_OK;
}

// Events.

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
    return null_event_query(link, queue, sequence) == WEIR_OK ? WEIR_OK : WEIR_TIMEOUT;
}

// All queues of a device share one timeline; here it is the host's.
weir_status null_event_time(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                            uint64_t *out_time_ns)
{
    struct null_times *times = null_queue_of(link, queue)->times;
    bool found = false;

    *out_time_ns = 0;
    pthread_mutex_lock(&times->lock);
    uint64_t kept = times->count < NULL_TIMING_HISTORY ? times->count : NULL_TIMING_HISTORY;
    for (uint64_t i = 1; i <= kept && !found; i++) {
        const struct null_record *record =
            &times->records[(times->count - i) % NULL_TIMING_HISTORY];
        found = record->sequence == sequence;
        if (found)
            *out_time_ns = record->time_ns;
    }
    pthread_mutex_unlock(&times->lock);
    if (found)
        return WEIR_OK;
    return weir_host_fail(link->host, WEIR_ERROR_EXPIRED,
                          "ask for times before they are overwritten",
                          "the time of record %" PRIu64 " is gone: a queue keeps its last %d",
                          sequence, NULL_TIMING_HISTORY);
}

// Times of operations.

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
