// Builds a chain. But for creates and destroys, calls start at the outermost link and are
// forwarded by the links themselves; a slot that a plugin leaves unset is filled here with a
// forwarder, so that the call path needs no test for it.
#include "core/module/chain.h"

#include <string.h>

#include <weir/module/module.h>

#include "base/clock.h"
#include "core/module/loader.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// One forwarder and one fallback for each optional slot.

#define FORWARD(slot, parameters, ...)                         \
    static weir_status forward_##slot parameters               \
    {                                                          \
        return link->next->ops->slot(link->next, __VA_ARGS__); \
    }

FORWARD(device_trim, (const struct weir_link *link, weir_device *device), device)
FORWARD(queue_submit,
        (const struct weir_link *link, weir_queue *queue, const struct weir_operation *operation),
        queue, operation)
FORWARD(queue_flush, (const struct weir_link *link, weir_queue *queue), queue)
FORWARD(queue_finish, (const struct weir_link *link, weir_queue *queue), queue)
FORWARD(event_query, (const struct weir_link *link, weir_queue *queue, uint64_t sequence), queue,
        sequence)
FORWARD(event_wait,
        (const struct weir_link *link, weir_queue *queue, uint64_t sequence, uint64_t timeout_ns),
        queue, sequence, timeout_ns)
FORWARD(event_time,
        (const struct weir_link *link, weir_queue *queue, uint64_t sequence, uint64_t *out_time_ns),
        queue, sequence, out_time_ns)
FORWARD(graph_update,
        (const struct weir_link *link, weir_graph *graph, uint32_t index,
         const struct weir_graph_node *node),
        graph, index, node)
FORWARD(device_native,
        (const struct weir_link *link, weir_device *device, struct weir_native_device *out_native),
        device, out_native)
FORWARD(queue_native,
        (const struct weir_link *link, weir_queue *queue, struct weir_native_queue *out_native),
        queue, out_native)
FORWARD(buffer_address, (const struct weir_link *link, weir_buffer *buffer, uint64_t *out_address),
        buffer, out_address)
FORWARD(buffer_native,
        (const struct weir_link *link, weir_buffer *buffer, struct weir_native_buffer *out_native),
        buffer, out_native)
FORWARD(device_peer,
        (const struct weir_link *link, weir_device *device, weir_device *other, bool *out_peers),
        device, other, out_peers)
FORWARD(device_reach,
        (const struct weir_link *link, weir_device *device, weir_device *other, weir_buffer *buffer,
         bool *out_reaches),
        device, other, buffer, out_reaches)
FORWARD(queue_times,
        (const struct weir_link *link, weir_queue *queue, struct weir_operation_time *times,
         size_t time_size, size_t capacity, size_t *out_count),
        queue, times, time_size, capacity, out_count)
FORWARD(device_clock,
        (const struct weir_link *link, weir_device *device, uint64_t *out_host_ns,
         uint64_t *out_device_ns),
        device, out_host_ns, out_device_ns)
FORWARD(kernel_occupancy,
        (const struct weir_link *link, weir_kernel *kernel, struct weir_extent block,
         size_t local_bytes, struct weir_occupancy *occupancy),
        kernel, block, local_bytes, occupancy)
FORWARD(host_note, (const struct weir_link *link, const struct weir_host_note *note), note)
#undef FORWARD

static const void *forward_extension(const struct weir_link *link, const char *name)
{
    return link->next->ops->extension(link->next, name);
}

static void forward_region(const struct weir_link *link, const char *name, uint64_t number)
{
    link->next->ops->region(link->next, name, number);
}

// Fallbacks for a backend's unset optional slots, whose types they have.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

static weir_status nothing_for_device(const struct weir_link *link, weir_device *device)
{
    return WEIR_OK;
}

static weir_status nothing_for_queue(const struct weir_link *link, weir_queue *queue)
{
    return WEIR_OK;
}

static weir_status no_event_time(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                                 uint64_t *out_time_ns)
{
    *out_time_ns = 0;
    return weir__fail(WEIR_ERROR_UNSUPPORTED, NULL, "the backend '%s' has no timing", link->name);
}

static weir_status no_graph_update(const struct weir_link *link, weir_graph *graph, uint32_t index,
                                   const struct weir_graph_node *node)
{
    return WEIR_OK;
}

static weir_status no_buffer_address(const struct weir_link *link, weir_buffer *buffer,
                                     uint64_t *out_address)
{
    *out_address = 0;
    return weir__fail(WEIR_ERROR_UNSUPPORTED, "ask limits.device_addresses first",
                      "the backend '%s' tells no addresses of buffers", link->name);
}

static weir_status no_native(const struct weir_link *link)
{
    return weir__fail(WEIR_ERROR_UNSUPPORTED, "ask limits.native first",
                      "the backend '%s' has no native handles", link->name);
}

#define NO_NATIVE(kind)                                                                      \
    static weir_status no_##kind##_native(const struct weir_link *link, weir_##kind *object, \
                                          struct weir_native_##kind *out_native)             \
    {                                                                                        \
        return no_native(link);                                                              \
    }
NO_NATIVE(device)
NO_NATIVE(queue)
NO_NATIVE(buffer)
#undef NO_NATIVE

static weir_status no_device_reach(const struct weir_link *link, weir_device *device,
                                   weir_device *other, weir_buffer *buffer, bool *out_reaches)
{
    *out_reaches = false;
    return WEIR_OK;
}

static weir_status no_device_peer(const struct weir_link *link, weir_device *device,
                                  weir_device *other, bool *out_peers)
{
    *out_peers = false;
    return WEIR_OK;
}

static weir_status no_queue_times(const struct weir_link *link, weir_queue *queue,
                                  struct weir_operation_time *times, size_t time_size,
                                  size_t capacity, size_t *out_count)
{
    *out_count = 0;
    return WEIR_OK;
}

static weir_status one_clock(const struct weir_link *link, weir_device *device,
                             uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    *out_host_ns = *out_device_ns = weir_clock_now_ns();
    return WEIR_OK;
}

static weir_status no_kernel_occupancy(const struct weir_link *link, weir_kernel *kernel,
                                       struct weir_extent block, size_t local_bytes,
                                       struct weir_occupancy *occupancy)
{
    return WEIR_OK;
}

static void no_region(const struct weir_link *link, const char *name, uint64_t number)
{
}

static weir_status nothing_for_note(const struct weir_link *link, const struct weir_host_note *note)
{
    return WEIR_OK;
}

static const void *no_extension(const struct weir_link *link, const char *name)
{
    return NULL;
}
#pragma GCC diagnostic pop

// All optional slots, and what a backend does that leaves one unset.
#define OPTIONAL(SLOT)                          \
    SLOT(device_trim, nothing_for_device)       \
    SLOT(queue_flush, nothing_for_queue)        \
    SLOT(event_time, no_event_time)             \
    SLOT(graph_update, no_graph_update)         \
    SLOT(device_native, no_device_native)       \
    SLOT(queue_native, no_queue_native)         \
    SLOT(buffer_native, no_buffer_native)       \
    SLOT(buffer_address, no_buffer_address)     \
    SLOT(device_peer, no_device_peer)           \
    SLOT(device_reach, no_device_reach)         \
    SLOT(queue_times, no_queue_times)           \
    SLOT(device_clock, one_clock)               \
    SLOT(region, no_region)                     \
    SLOT(kernel_occupancy, no_kernel_occupancy) \
    SLOT(host_note, nothing_for_note)           \
    SLOT(extension, no_extension)

#define FILL(slot, function) ops->slot = ops->slot ? ops->slot : (function);
#define FORWARDED(slot, fallback) FILL(slot, forward_##slot)

// Unset slots of a plugin forward to the next link; creates and destroys stay unset.
static void fill_slots_of_plugin(struct weir_module_ops *ops)
{
    OPTIONAL(FORWARDED)
    FORWARDED(queue_submit, )
    FORWARDED(queue_finish, )
    FORWARDED(event_query, )
    FORWARDED(event_wait, )
}

static void fill_slots_of_backend(struct weir_module_ops *ops)
{
    OPTIONAL(FILL)
}
#undef FORWARDED
#undef FILL
#undef OPTIONAL

static void place(struct weir__chain *chain, uint32_t index, const char *name,
                  const struct weir_module_ops *ops, const struct weir_host *host,
                  uint32_t operation_kinds)
{
    // The completed tables follow the links, in one block.
    struct weir_module_ops *own =
        (struct weir_module_ops *)(void *)(chain->links + chain->count) + index;
    *own = *ops;
    if (ops->host_note)
        chain->host_notes = true;
    if (ops->region)
        chain->regions = true;
    if (index + 1 < chain->count)
        fill_slots_of_plugin(own);
    else
        fill_slots_of_backend(own);
    chain->links[index] = (struct weir_link){
        .struct_size = sizeof(struct weir_link),
        .ops = own,
        .next = index + 1 < chain->count ? &chain->links[index + 1] : NULL,
        .host = host,
        .name = name,
        .index = index,
        .slot_count = WEIR_MODULE_SLOT_COUNT,
        .operation_kinds = operation_kinds,
    };
}

static weir_status build(struct weir__chain *chain, const struct weir__loaded *modules,
                         uint32_t module_count, const struct weir_module_ops *own,
                         const struct weir_host *host)
{
    uint32_t count = module_count + 1;
    size_t size = count * (sizeof(struct weir_link) + sizeof *own);

    *chain = (struct weir__chain){.links = weir__allocate(size)};
    if (!chain->links)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a chain of %u links",
                          (unsigned)count);
    chain->count = chain->first_open = count;
    for (uint32_t i = 0; i + 1 < module_count; i++)
        if (modules[i].module->wants & WEIR_MODULE_WANTS_TIMES)
            chain->times = true;
    const struct weir__loaded *backend = &modules[module_count - 1];
    const uint32_t kinds = backend->module->operation_kinds < WEIR_OPERATION_KINDS
                               ? backend->module->operation_kinds
                               : WEIR_OPERATION_KINDS;
    for (uint32_t i = 0; i + 1 < module_count; i++)
        place(chain, i, modules[i].module->name, modules[i].ops, host, kinds);
    place(chain, count - 2, "core", own, host, kinds);
    place(chain, count - 1, backend->module->name, backend->ops, host, kinds);
    return WEIR_OK;
}

weir_status weir__chain_open(struct weir__chain *chain, const struct weir__loaded *modules,
                             uint32_t module_count, const struct weir_module_ops *own,
                             const struct weir_host *host,
                             const struct weir_setting *const *const *settings,
                             uint32_t *out_failed)
{
    *out_failed = module_count - 1;
    weir_status status = build(chain, modules, module_count, own, host);
    if (status < 0)
        return status;
    for (uint32_t i = chain->count; i-- > 0; chain->first_open = i) {
        struct weir_link *link = &chain->links[i];
        const bool is_own = i + 2 == chain->count;
        *out_failed = i + 1 == chain->count ? i - 1 : i;
        if (link->ops->open)
            status = link->ops->open(link, is_own ? NULL : settings[*out_failed], &link->state);
        if (status < 0)
            return status;
    }
    return WEIR_OK;
}

weir_status weir__chain_finish(struct weir__chain *chain)
{
    struct weir_error detail = *weir_last_error();
    weir_status status = WEIR_OK;
    for (uint32_t i = chain->first_open; i < chain->count; i++) {
        if (!chain->links[i].ops->close)
            continue;
        weir_error_set(NULL);
        chain->links[i].ops->close(&chain->links[i]);
        if (status == WEIR_OK && weir_last_error()->status < 0) {
            detail = *weir_last_error();
            status = detail.status;
        }
    }
    weir__error_set(&detail);
    weir__release(chain->links);
    *chain = (struct weir__chain){0};
    return status;
}
