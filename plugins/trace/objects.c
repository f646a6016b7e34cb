// The plugin's data for the front end's objects. A queue's ring outlives the queue until all of it
// is written; labels live as long as the link.
#include "plugins/trace/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

// Most programs have few labels, and one that creates new ones all the time must not run out of memory because of
// this table.
#define BYTES_LIMIT ((size_t)8 << 20)

const char *trace_names_keep(struct trace_names *names, const char *text)
{
    if (!text || !*text)
        return "";
    pthread_mutex_lock(&names->lock);
    const char *kept = weir_names_keep_within(names->texts, text, BYTES_LIMIT);
    pthread_mutex_unlock(&names->lock);
    return kept ? kept : "(too many labels)";
}

// For how long the last times of a destroyed queue are queried. If another thread of the driver
// delivers them, they arrive somewhat after the end.
#define LAST_TIMES_NS 20000000
// How often the clock of a device that has no reading yet is queried before its last queue is gone.
#define CLOCK_TRIES 100

static weir_status no_memory(const struct weir_link *link, const char *what)
{
    return weir_host_fail(link->host, WEIR_ERROR_OUT_OF_MEMORY,
                          "use a smaller `buffer` in [trace], or fewer queues",
                          "no memory is left to trace %s", what);
}

weir_status trace_device_create(const struct weir_link *link, weir_device *object,
                                const struct weir_device_setup *setup, void **out_data)
{
    const struct trace *trace = trace_of(link);
    struct trace_device *device = calloc(1, sizeof *device);
    if (!device)
        return no_memory(link, "a device");
    device->info.struct_size = sizeof device->info;
    trace->backend->ops->device_describe(trace->backend, setup->index, &device->info);
    snprintf(device->label, sizeof device->label, "%s", setup->label ? setup->label : "");
    device->object = object;
    pthread_mutex_init(&device->lock, NULL);
    *out_data = device;
    return WEIR_OK;
}

static void free_device(struct trace_device *device)
{
    pthread_mutex_destroy(&device->lock);
    free(device);
}

// A device on the list stays there until the trace is closed.
void trace_device_destroy(const struct weir_link *link, weir_device *object)
{
    struct trace_device *device = trace_device_of(link, object);
    if (!device->enlisted)
        free_device(device);
}

// Called once when the device is complete; before that its limits are unknown.
void trace_device_limits(const struct weir_link *link, weir_device *object,
                         struct weir_limits *limits)
{
    struct trace *trace = trace_of(link);
    struct trace_device *device = trace_device_of(link, object);
    device->limits.struct_size = sizeof device->limits;
    WEIR_WRITE(&device->limits, limits);
    device->enlisted = true;
    pthread_mutex_lock(&trace->lists);
    device->index = trace->device_count++;
    device->next = trace->devices;
    trace->devices = device;
    pthread_mutex_unlock(&trace->lists);
}

static void free_queue(struct trace_queue *queue)
{
    free(queue->ring);
    free(queue->times);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

static struct trace_queue *make_queue(struct trace *trace, const weir_queue *object)
{
    // Aligned, so that the two sides of the ring are in separate cache lines.
    struct trace_queue *queue = aligned_alloc(_Alignof(struct trace_queue), sizeof *queue);
    if (!queue)
        return NULL;
    memset(queue, 0, sizeof *queue);
    pthread_mutex_init(&queue->lock, NULL);
    queue->trace = trace;
    queue->mask = trace->ring_size - 1;
    queue->id = weir_queue_object(object)->id;
    snprintf(queue->label, sizeof queue->label, "%s", weir_queue_object(object)->label);
    queue->ring = calloc(trace->ring_size, sizeof *queue->ring);
    queue->times_mask = 2 * trace->ring_size - 1;
    queue->times = calloc(2 * trace->ring_size, sizeof *queue->times);
    if (queue->ring && queue->times)
        return queue;
    free_queue(queue);
    return NULL;
}

weir_status trace_queue_create(const struct weir_link *link, weir_device *device_object,
                               weir_queue *object, const struct weir_queue_setup *setup,
                               void **out_data)
{
    struct trace *trace = trace_of(link);
    struct trace_device *device = trace_device_of(link, device_object);
    struct trace_queue *queue = make_queue(trace, object);
    if (!queue)
        return no_memory(link, "a queue");
    queue->device = device;
    queue->priority = setup->priority;
    *out_data = queue;
    return WEIR_OK;
}

static bool has_all_times(const struct trace_queue *queue)
{
    return queue->last_fetched >= atomic_load_explicit(&queue->last_timed, memory_order_relaxed);
}

void trace_queue_retire(const struct weir_link *link, weir_queue *object)
{
    struct trace_queue *queue = trace_queue_of(link, object);
    struct trace_device *device = queue->device;
    const uint64_t begin_ns = weir_clock_now_ns();
    if (!queue->enlisted)
        return;
    if (queue->trace->clock)
        trace_drain_now(queue->trace);
    pthread_mutex_lock(&device->lock);
    trace_pair_clocks(link, device, device->queue_count == 1);
    for (int i = 0; i < CLOCK_TRIES && device->pairs == 0; i++)
        trace_pair_clocks(link, device, true);
    device->queue_count--;
    pthread_mutex_unlock(&device->lock);

    pthread_mutex_lock(&queue->lock);
    trace_fetch(queue);
    while (!has_all_times(queue) && weir_clock_now_ns() - begin_ns < LAST_TIMES_NS) {
        weir_clock_sleep_ns(500000);
        trace_fetch(queue);
    }
    queue->object = NULL;
    pthread_mutex_unlock(&queue->lock);
}

// A queue without operations is not on the list.
void trace_queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct trace_queue *queue = trace_queue_of(link, object);
    if (!queue->enlisted)
        free_queue(queue);
    else
        atomic_store(&queue->destroyed, true);
}

void trace_queue_free(struct trace_queue *queue)
{
    struct trace *trace = queue->trace;
    pthread_mutex_lock(&trace->lists);
    struct trace_queue **at = &trace->queues;
    while (*at != queue)
        at = &(*at)->next;
    *at = queue->next;
    pthread_mutex_unlock(&trace->lists);
    free_queue(queue);
}

static enum weir_trace_memory memory_of(weir_placement placement)
{
    switch (placement) {
    case WEIR_PLACE_HOST:
        return WEIR_TRACE_PINNED_MEMORY;
    case WEIR_PLACE_MANAGED:
        return WEIR_TRACE_MANAGED_MEMORY;
    default:
        return WEIR_TRACE_DEVICE_MEMORY;
    }
}

weir_status trace_buffer_create(const struct weir_link *link, weir_device *device,
                                weir_buffer *object, const struct weir_buffer_setup *setup,
                                void **out_data, void **out_pointer)
{
    struct trace_buffer *buffer = link->host->allocate(sizeof *buffer);
    (void)device;
    (void)out_pointer;
    if (!buffer)
        return no_memory(link, "a buffer");
    buffer->label = trace_names_keep(&trace_of(link)->names, weir_buffer_object(object)->label);
    buffer->memory = memory_of(setup->placement);
    *out_data = buffer;
    return WEIR_OK;
}

void trace_buffer_destroy(const struct weir_link *link, weir_buffer *object)
{
    link->host->release(weir_buffer_data(link, object));
}

weir_status trace_kernel_create(const struct weir_link *link, weir_program *program,
                                weir_kernel *object, const struct weir_kernel_signature *signature,
                                struct weir_kernel_info *info, void **out_data)
{
    (void)program;
    (void)object;
    (void)info;
    // The table owns the text, which is never written to.
    *out_data = (void *)(uintptr_t)trace_names_keep(&trace_of(link)->names, signature->name);
    return WEIR_OK;
}

void trace_kernel_destroy(const struct weir_link *link, weir_kernel *object)
{
    (void)link;
    (void)object;
}

void trace_objects_finish(struct trace *trace)
{
    for (struct trace_queue *queue = trace->queues; queue;) {
        struct trace_queue *next = queue->next;
        free_queue(queue);
        queue = next;
    }
    for (struct trace_device *device = trace->devices; device;) {
        struct trace_device *next = device->next;
        free_device(device);
        device = next;
    }
}
