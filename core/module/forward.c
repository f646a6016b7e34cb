// See the header. One forwarder and one fallback for each optional slot.
#include "core/module/forward.h"

#include "base/clock.h"
#include "core/support/error.h"

static weir_status forward_device_trim(const struct weir_link *link, weir_device *device)
{
    return link->next->ops->device_trim(link->next, device);
}

static weir_status forward_queue_submit(const struct weir_link *link, weir_queue *queue,
                                        const struct weir_operation *operation)
{
    return link->next->ops->queue_submit(link->next, queue, operation);
}

static weir_status forward_queue_flush(const struct weir_link *link, weir_queue *queue)
{
    return link->next->ops->queue_flush(link->next, queue);
}

static weir_status forward_queue_finish(const struct weir_link *link, weir_queue *queue)
{
    return link->next->ops->queue_finish(link->next, queue);
}

static weir_status forward_event_query(const struct weir_link *link, weir_queue *queue,
                                       uint64_t sequence)
{
    return link->next->ops->event_query(link->next, queue, sequence);
}

static weir_status forward_event_wait(const struct weir_link *link, weir_queue *queue,
                                      uint64_t sequence, uint64_t timeout_ns)
{
    return link->next->ops->event_wait(link->next, queue, sequence, timeout_ns);
}

static weir_status forward_event_time(const struct weir_link *link, weir_queue *queue,
                                      uint64_t sequence, uint64_t *out_time_ns)
{
    return link->next->ops->event_time(link->next, queue, sequence, out_time_ns);
}

static weir_status forward_graph_update(const struct weir_link *link, weir_graph *graph,
                                        uint32_t index, const struct weir_graph_node *node)
{
    return link->next->ops->graph_update(link->next, graph, index, node);
}

static weir_status forward_device_native(const struct weir_link *link, weir_device *device,
                                         struct weir_native_device *out_native)
{
    return link->next->ops->device_native(link->next, device, out_native);
}

static weir_status forward_queue_native(const struct weir_link *link, weir_queue *queue,
                                        struct weir_native_queue *out_native)
{
    return link->next->ops->queue_native(link->next, queue, out_native);
}

static weir_status forward_buffer_address(const struct weir_link *link, weir_buffer *buffer,
                                          uint64_t *out_address)
{
    return link->next->ops->buffer_address(link->next, buffer, out_address);
}

static weir_status forward_buffer_native(const struct weir_link *link, weir_buffer *buffer,
                                         struct weir_native_buffer *out_native)
{
    return link->next->ops->buffer_native(link->next, buffer, out_native);
}

static weir_status forward_device_peer(const struct weir_link *link, weir_device *device,
                                       weir_device *other, bool *out_peers)
{
    return link->next->ops->device_peer(link->next, device, other, out_peers);
}

static weir_status forward_device_reach(const struct weir_link *link, weir_device *device,
                                        weir_device *other, weir_buffer *buffer, bool *out_reaches)
{
    return link->next->ops->device_reach(link->next, device, other, buffer, out_reaches);
}

static weir_status forward_queue_times(const struct weir_link *link, weir_queue *queue,
                                       struct weir_operation_time *times, size_t time_size,
                                       size_t capacity, size_t *out_count)
{
    return link->next->ops->queue_times(link->next, queue, times, time_size, capacity, out_count);
}

static weir_status forward_device_clock(const struct weir_link *link, weir_device *device,
                                        uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    return link->next->ops->device_clock(link->next, device, out_host_ns, out_device_ns);
}

static weir_status forward_kernel_occupancy(const struct weir_link *link, weir_kernel *kernel,
                                            struct weir_extent block, size_t local_bytes,
                                            struct weir_occupancy *occupancy)
{
    return link->next->ops->kernel_occupancy(link->next, kernel, block, local_bytes, occupancy);
}

static weir_status forward_host_note(const struct weir_link *link,
                                     const struct weir_host_note *note)
{
    return link->next->ops->host_note(link->next, note);
}

static const void *forward_extension(const struct weir_link *link, const char *name)
{
    return link->next->ops->extension(link->next, name);
}

static void forward_region(const struct weir_link *link, const char *name, uint64_t number)
{
    link->next->ops->region(link->next, name, number);
}

// Fallbacks for a backend's unset optional slots.

static weir_status nothing_for_device(const struct weir_link *link, weir_device *device)
{
    (void)link;
    (void)device;
    return WEIR_OK;
}

static weir_status nothing_for_queue(const struct weir_link *link, weir_queue *queue)
{
    (void)link;
    (void)queue;
    return WEIR_OK;
}

static weir_status no_event_time(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                                 uint64_t *out_time_ns)
{
    (void)queue;
    (void)sequence;
    *out_time_ns = 0;
    return weir__fail(WEIR_ERROR_UNSUPPORTED, NULL, "the backend '%s' has no timing", link->name);
}

static weir_status no_graph_update(const struct weir_link *link, weir_graph *graph, uint32_t index,
                                   const struct weir_graph_node *node)
{
    (void)link;
    (void)graph;
    (void)index;
    (void)node;
    return WEIR_OK;
}

static weir_status no_buffer_address(const struct weir_link *link, weir_buffer *buffer,
                                     uint64_t *out_address)
{
    (void)buffer;
    *out_address = 0;
    return weir__fail(WEIR_ERROR_UNSUPPORTED, "ask limits.device_addresses first",
                      "the backend '%s' tells no addresses of buffers", link->name);
}

static weir_status no_native(const struct weir_link *link)
{
    return weir__fail(WEIR_ERROR_UNSUPPORTED, "ask limits.native first",
                      "the backend '%s' has no native handles", link->name);
}

static weir_status no_device_native(const struct weir_link *link, weir_device *device,
                                    struct weir_native_device *out_native)
{
    (void)device;
    (void)out_native;
    return no_native(link);
}

static weir_status no_queue_native(const struct weir_link *link, weir_queue *queue,
                                   struct weir_native_queue *out_native)
{
    (void)queue;
    (void)out_native;
    return no_native(link);
}

static weir_status no_buffer_native(const struct weir_link *link, weir_buffer *buffer,
                                    struct weir_native_buffer *out_native)
{
    (void)buffer;
    (void)out_native;
    return no_native(link);
}

static weir_status no_device_reach(const struct weir_link *link, weir_device *device,
                                   weir_device *other, weir_buffer *buffer, bool *out_reaches)
{
    (void)link;
    (void)device;
    (void)other;
    (void)buffer;
    *out_reaches = false;
    return WEIR_OK;
}

static weir_status no_device_peer(const struct weir_link *link, weir_device *device,
                                  weir_device *other, bool *out_peers)
{
    (void)link;
    (void)device;
    (void)other;
    *out_peers = false;
    return WEIR_OK;
}

static weir_status no_queue_times(const struct weir_link *link, weir_queue *queue,
                                  struct weir_operation_time *times, size_t time_size,
                                  size_t capacity, size_t *out_count)
{
    (void)link;
    (void)queue;
    (void)times;
    (void)time_size;
    (void)capacity;
    *out_count = 0;
    return WEIR_OK;
}

static weir_status one_clock(const struct weir_link *link, weir_device *device,
                             uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    (void)link;
    (void)device;
    *out_host_ns = *out_device_ns = weir_clock_now_ns();
    return WEIR_OK;
}

static weir_status no_kernel_occupancy(const struct weir_link *link, weir_kernel *kernel,
                                       struct weir_extent block, size_t local_bytes,
                                       struct weir_occupancy *occupancy)
{
    (void)link;
    (void)kernel;
    (void)block;
    (void)local_bytes;
    (void)occupancy;
    return WEIR_OK;
}

static void no_region(const struct weir_link *link, const char *name, uint64_t number)
{
    (void)link;
    (void)name;
    (void)number;
}

static weir_status nothing_for_note(const struct weir_link *link, const struct weir_host_note *note)
{
    (void)link;
    (void)note;
    return WEIR_OK;
}

static const void *no_extension(const struct weir_link *link, const char *name)
{
    (void)link;
    (void)name;
    return NULL;
}

#define FILL(ops, slot, function)     \
    do {                              \
        if (!(ops)->slot)             \
            (ops)->slot = (function); \
    } while (0)

void weir__fill_slots_of_plugin(struct weir_module_ops *ops)
{
    FILL(ops, device_trim, forward_device_trim);
    FILL(ops, queue_submit, forward_queue_submit);
    FILL(ops, queue_flush, forward_queue_flush);
    FILL(ops, queue_finish, forward_queue_finish);
    FILL(ops, event_query, forward_event_query);
    FILL(ops, event_wait, forward_event_wait);
    FILL(ops, event_time, forward_event_time);
    FILL(ops, graph_update, forward_graph_update);
    FILL(ops, device_native, forward_device_native);
    FILL(ops, queue_native, forward_queue_native);
    FILL(ops, buffer_native, forward_buffer_native);
    FILL(ops, buffer_address, forward_buffer_address);
    FILL(ops, device_peer, forward_device_peer);
    FILL(ops, device_reach, forward_device_reach);
    FILL(ops, queue_times, forward_queue_times);
    FILL(ops, device_clock, forward_device_clock);
    FILL(ops, region, forward_region);
    FILL(ops, kernel_occupancy, forward_kernel_occupancy);
    FILL(ops, host_note, forward_host_note);
    FILL(ops, extension, forward_extension);
}

void weir__fill_slots_of_backend(struct weir_module_ops *ops)
{
    FILL(ops, device_trim, nothing_for_device);
    FILL(ops, queue_flush, nothing_for_queue);
    FILL(ops, event_time, no_event_time);
    FILL(ops, graph_update, no_graph_update);
    FILL(ops, device_native, no_device_native);
    FILL(ops, queue_native, no_queue_native);
    FILL(ops, buffer_native, no_buffer_native);
    FILL(ops, buffer_address, no_buffer_address);
    FILL(ops, device_peer, no_device_peer);
    FILL(ops, device_reach, no_device_reach);
    FILL(ops, queue_times, no_queue_times);
    FILL(ops, device_clock, one_clock);
    FILL(ops, region, no_region);
    FILL(ops, kernel_occupancy, no_kernel_occupancy);
    FILL(ops, host_note, nothing_for_note);
    FILL(ops, extension, no_extension);
}
#undef FILL
