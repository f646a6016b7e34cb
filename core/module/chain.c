// Builds a chain. But for creates and destroys, calls start at the outermost link and are
// forwarded by the links themselves; a slot that a plugin leaves unset is filled here with a
// forwarder, so that the call path needs no test for it.
#include "core/module/chain.h"

#include "base/clock.h"
#include "core/module/loader.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// What a plugin gets that leaves a slot unset.
#define FORWARD(slot, parameters, arguments)     \
    static weir_status forward_##slot parameters \
    {                                            \
        return link->next->ops->slot arguments;  \
    }

FORWARD(queue_submit,
        (const struct weir_link *link, weir_queue *queue, const struct weir_operation *operation),
        (link->next, queue, operation))
FORWARD(queue_finish, (const struct weir_link *link, weir_queue *queue), (link->next, queue))
FORWARD(event_query, (const struct weir_link *link, weir_queue *queue, uint64_t sequence),
        (link->next, queue, sequence))
FORWARD(event_wait,
        (const struct weir_link *link, weir_queue *queue, uint64_t sequence, uint64_t timeout_ns),
        (link->next, queue, sequence, timeout_ns))

// And what a backend gets that leaves an optional one unset: a function that is this expression. The front end asks the
// limits first, and tells what is not supported.
#define OPTIONAL(slot, parameters, arguments, unset) \
    FORWARD(slot, parameters, arguments)             \
    static weir_status no_##slot parameters          \
    {                                                \
        return unset;                                \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

OPTIONAL(device_trim, (const struct weir_link *link, weir_device *device), (link->next, device),
         WEIR_OK)
OPTIONAL(queue_flush, (const struct weir_link *link, weir_queue *queue), (link->next, queue),
         WEIR_OK)
OPTIONAL(event_time,
         (const struct weir_link *link, weir_queue *queue, uint64_t sequence,
          uint64_t *out_time_ns),
         (link->next, queue, sequence, out_time_ns),
         (*out_time_ns = 0,
          weir__fail(WEIR_ERROR_UNSUPPORTED, NULL, "the backend '%s' has no timing", link->name)))
OPTIONAL(graph_update,
         (const struct weir_link *link, weir_graph *graph, uint32_t index,
          const struct weir_graph_node *node),
         (link->next, graph, index, node), WEIR_OK)
OPTIONAL(device_native,
         (const struct weir_link *link, weir_device *device, struct weir_native_device *out_native),
         (link->next, device, out_native), WEIR_ERROR_UNSUPPORTED)
OPTIONAL(queue_native,
         (const struct weir_link *link, weir_queue *queue, struct weir_native_queue *out_native),
         (link->next, queue, out_native), WEIR_ERROR_UNSUPPORTED)
OPTIONAL(buffer_native,
         (const struct weir_link *link, weir_buffer *buffer, struct weir_native_buffer *out_native),
         (link->next, buffer, out_native), WEIR_ERROR_UNSUPPORTED)
OPTIONAL(buffer_address, (const struct weir_link *link, weir_buffer *buffer, uint64_t *out_address),
         (link->next, buffer, out_address), WEIR_ERROR_UNSUPPORTED)
OPTIONAL(device_peer,
         (const struct weir_link *link, weir_device *device, weir_device *other, bool *out_peers),
         (link->next, device, other, out_peers), (*out_peers = false, WEIR_OK))
OPTIONAL(device_reach,
         (const struct weir_link *link, weir_device *device, weir_device *other,
          weir_buffer *buffer, bool *out_reaches),
         (link->next, device, other, buffer, out_reaches), (*out_reaches = false, WEIR_OK))
OPTIONAL(queue_times,
         (const struct weir_link *link, weir_queue *queue, struct weir_operation_time *times,
          size_t time_size, size_t capacity, size_t *out_count),
         (link->next, queue, times, time_size, capacity, out_count), (*out_count = 0, WEIR_OK))
OPTIONAL(device_clock,
         (const struct weir_link *link, weir_device *device, uint64_t *out_host_ns,
          uint64_t *out_device_ns),
         (link->next, device, out_host_ns, out_device_ns),
         (*out_host_ns = *out_device_ns = weir_clock_now_ns(), WEIR_OK))
OPTIONAL(kernel_occupancy,
         (const struct weir_link *link, weir_kernel *kernel, struct weir_extent block,
          size_t local_bytes, struct weir_occupancy *occupancy),
         (link->next, kernel, block, local_bytes, occupancy), WEIR_OK)
OPTIONAL(host_note, (const struct weir_link *link, const struct weir_host_note *note),
         (link->next, note), WEIR_OK)
#undef OPTIONAL
#undef FORWARD

static const void *forward_extension(const struct weir_link *link, const char *name)
{
    return link->next->ops->extension(link->next, name);
}

static const void *no_extension(const struct weir_link *link, const char *name)
{
    return NULL;
}

static void forward_region(const struct weir_link *link, const char *name, uint64_t number)
{
    link->next->ops->region(link->next, name, number);
}

static void no_region(const struct weir_link *link, const char *name, uint64_t number)
{
}
#pragma GCC diagnostic pop

// Unset slots of a plugin forward to the next link; creates and destroys stay unset.
static void fill_slots(struct weir_module_ops *ops, bool is_backend)
{
#define FILL(slot) ops->slot = ops->slot ? ops->slot : is_backend ? no_##slot : forward_##slot;
    FILL(device_trim)
    FILL(queue_flush)
    FILL(event_time)
    FILL(graph_update)
    FILL(device_native)
    FILL(queue_native)
    FILL(buffer_native)
    FILL(buffer_address)
    FILL(device_peer)
    FILL(device_reach)
    FILL(queue_times)
    FILL(device_clock)
    FILL(region)
    FILL(kernel_occupancy)
    FILL(host_note)
    FILL(extension)
#undef FILL
    if (is_backend)
        return;
    ops->queue_submit = ops->queue_submit ? ops->queue_submit : forward_queue_submit;
    ops->queue_finish = ops->queue_finish ? ops->queue_finish : forward_queue_finish;
    ops->event_query = ops->event_query ? ops->event_query : forward_event_query;
    ops->event_wait = ops->event_wait ? ops->event_wait : forward_event_wait;
}

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
    fill_slots(own, index + 1 == chain->count);
    chain->links[index] = (struct weir_link){
        .struct_size = sizeof(struct weir_link),
        .ops = own,
        .next = index + 1 < chain->count ? &chain->links[index + 1] : NULL,
        .backend = &chain->links[chain->count - 1],
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

    *chain = (struct weir__chain){.links = weir__allocate(size), .labels = weir_names_create()};
    if (!chain->links || !chain->labels)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a chain of %u links",
                          (unsigned)count);
    chain->count = chain->first_open = count;
    for (uint32_t i = 0; i + 1 < module_count; i++)
        if (modules[i].module.wants & WEIR_MODULE_WANTS_TIMES)
            chain->times = true;
    const struct weir__loaded *backend = &modules[module_count - 1];
    const uint32_t kinds = backend->module.operation_kinds < WEIR_OPERATION_KINDS
                               ? backend->module.operation_kinds
                               : WEIR_OPERATION_KINDS;
    for (uint32_t i = 0; i + 1 < module_count; i++)
        place(chain, i, modules[i].module.name, &modules[i].ops, host, kinds);
    place(chain, count - 2, "core", own, host, kinds);
    place(chain, count - 1, backend->module.name, &backend->ops, host, kinds);
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
    weir_names_destroy(chain->labels);
    weir__release(chain->links);
    *chain = (struct weir__chain){0};
    return status;
}
