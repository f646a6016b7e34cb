// Queues. Every operation has finished when its submit returns, so a queue never has pending work.
// A real backend creates exactly one native stream or command queue in queue_create, and submits
// each operation to it in queue_submit without waiting.
#include "backends/null/null.h"

#include <string.h>

static void release(const struct weir_host *host, struct null_queue *own)
{
    if (!own)
        return;
    host->release(own->timing);
    host->release(own->times);
    host->release(own);
}

weir_status null_queue_create(const struct weir_link *link, weir_device *device, weir_queue *queue,
                              const struct weir_queue_setup *setup, void **out_data)
{
    const struct weir_host *host = link->host;
    struct null_queue *own = host->allocate(sizeof *own);

    (void)device;
    if (own && setup->timing)
        own->timing = host->allocate(sizeof *own->timing);
    if (own && setup->times)
        own->times = host->allocate(sizeof *own->times);
    if (!own || (setup->timing && !own->timing) || (setup->times && !own->times)) {
        release(host, own);
        return weir_host_fail(link->host, WEIR_ERROR_OUT_OF_MEMORY, "free some memory of the host",
                              "no host memory is left for queue '%s'",
                              null_label(weir_queue_object(queue)->label));
    }
    if (own->timing)
        pthread_mutex_init(&own->timing->lock, NULL);
    if (own->times)
        pthread_mutex_init(&own->times->lock, NULL);
    *out_data = own; // and host->count_driver_object() for a native queue
    return WEIR_OK;
}

// The front end guarantees that no work uses the queue any more.
void null_queue_destroy(const struct weir_link *link, weir_queue *queue)
{
    struct null_queue *own = null_queue_of(link, queue);

    if (own->timing)
        pthread_mutex_destroy(&own->timing->lock);
    if (own->times)
        pthread_mutex_destroy(&own->times->lock);
    release(link->host, own);
}

static void copy(const struct weir_link *link, const struct weir_operation *operation)
{
    const unsigned char *src = null_buffer_of(link, operation->u.copy.src)->bytes;
    unsigned char *dst = null_buffer_of(link, operation->u.copy.dst)->bytes;

    memcpy(dst + operation->u.copy.dst_offset, src + operation->u.copy.src_offset,
           operation->u.copy.size);
}

static void copy_2d(const struct weir_link *link, const struct weir_operation *operation)
{
    const struct weir_plane *from = &operation->u.copy_2d.src;
    const struct weir_plane *to = &operation->u.copy_2d.dst;
    const unsigned char *src = null_buffer_of(link, from->buffer)->bytes + from->offset;
    unsigned char *dst = null_buffer_of(link, to->buffer)->bytes + to->offset;

    for (size_t row = 0; row < operation->u.copy_2d.height; row++)
        memcpy(dst + row * to->pitch, src + row * from->pitch, operation->u.copy_2d.width);
}

static void copy_3d(const struct weir_link *link, const struct weir_operation *operation)
{
    struct weir_operation slice = {.kind = WEIR_OPERATION_COPY_2D};
    const struct weir_volume *to = &operation->u.copy_3d.dst;
    const struct weir_volume *from = &operation->u.copy_3d.src;

    slice.u.copy_2d.width = operation->u.copy_3d.width;
    slice.u.copy_2d.height = operation->u.copy_3d.height;
    for (size_t i = 0; i < operation->u.copy_3d.depth; i++) {
        slice.u.copy_2d.dst =
            (struct weir_plane){to->buffer, to->offset + i * to->slice_pitch, to->pitch};
        slice.u.copy_2d.src =
            (struct weir_plane){from->buffer, from->offset + i * from->slice_pitch, from->pitch};
        copy_2d(link, &slice);
    }
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

static void fill(const struct weir_link *link, const struct weir_operation *operation)
{
    unsigned char *dst = null_buffer_of(link, operation->u.fill.dst)->bytes;

    fill_row(dst + operation->u.fill.dst_offset, operation->u.fill.size, operation->u.fill.pattern,
             operation->u.fill.pattern_size);
}

static void fill_2d(const struct weir_link *link, const struct weir_operation *operation)
{
    const struct weir_plane *to = &operation->u.fill_2d.dst;
    unsigned char *dst = null_buffer_of(link, to->buffer)->bytes + to->offset;

    for (size_t row = 0; row < operation->u.fill_2d.height; row++)
        fill_row(dst + row * to->pitch, operation->u.fill_2d.width, operation->u.fill_2d.pattern,
                 operation->u.fill_2d.pattern_size);
}

// The operation is valid, and an error returned here fails the queue. A wait does nothing: the work
// that it waits for had finished when that was submitted. A real backend flushes `u.wait.producer`
// and then makes the device wait.
static weir_status submit(const struct weir_link *link, weir_queue *queue,
                          const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
        copy(link, operation);
        return WEIR_OK;
    case WEIR_OPERATION_COPY_2D:
        copy_2d(link, operation);
        return WEIR_OK;
    case WEIR_OPERATION_COPY_3D:
        copy_3d(link, operation);
        return WEIR_OK;
    case WEIR_OPERATION_FILL:
        fill(link, operation);
        return WEIR_OK;
    case WEIR_OPERATION_FILL_2D:
        fill_2d(link, operation);
        return WEIR_OK;
    case WEIR_OPERATION_RECORD:
        null_event_record(null_queue_of(link, queue), operation->sequence);
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

    const uint64_t start_ns = null_now_ns();
    weir_status status = submit(link, queue, operation);
    null_times_end(times, operation->sequence, start_ns);
    return status;
}

weir_status null_queue_finish(const struct weir_link *link, weir_queue *queue)
{
    (void)link;
    (void)queue;
    return WEIR_OK;
}
