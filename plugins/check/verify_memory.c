// Buffers that only the links after the plugin's know. Each has an object with a slot for every
// link, as the front end's buffers have, and is created and destroyed in the order in which the front
// end does it.
#include <stdatomic.h>
#include <stdlib.h>

#include "plugins/check/verify.h"

// The front end counts from 1, and a backend may keep the number of a buffer for longer than the
// buffer.
#define FIRST_ID (UINT64_C(1) << 63)

static atomic_uint_fast64_t last_id = FIRST_ID;

struct own_buffer {
    struct weir_object object;
    void *data[];
};

static weir_buffer *as_buffer(struct own_buffer *own)
{
    return (weir_buffer *)(void *)own;
}

static void destroy_from(const struct weir_link *link, const struct weir_link *end,
                         weir_buffer *buffer)
{
    if (link == end)
        return;
    destroy_from(link->next, end, buffer);
    if (link->ops->buffer_destroy)
        link->ops->buffer_destroy(link, buffer);
}

static struct own_buffer *make_object(const struct weir_link *link)
{
    while (link->next)
        link = link->next;
    struct own_buffer *own = calloc(1, sizeof *own + (link->index + 1) * sizeof *own->data);
    if (!own)
        return NULL;
    own->object.data = own->data;
    own->object.label = "check: verify";
    own->object.id = atomic_fetch_add(&last_id, 1);
    return own;
}

weir_status check_own_create(const struct weir_link *link, weir_device *device, size_t size,
                             weir_placement placement, weir_buffer **out_buffer, void **out_pointer)
{
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = size,
                                            .placement = placement};
    struct own_buffer *own = make_object(link);
    if (!own)
        return weir_host_no_memory(link->host, "the copy of a buffer");
    for (const struct weir_link *at = link->next; at; at = at->next) {
        if (!at->ops->buffer_create)
            continue;
        weir_status status = at->ops->buffer_create(at, device, as_buffer(own), &setup,
                                                    &own->data[at->index], out_pointer);
        if (status >= 0)
            continue;
        destroy_from(link->next, at, as_buffer(own));
        free(own);
        return status;
    }
    *out_buffer = as_buffer(own);
    return WEIR_OK;
}

void check_own_destroy(const struct weir_link *link, weir_buffer **buffer)
{
    if (!*buffer)
        return;
    destroy_from(link->next, NULL, *buffer);
    free(*buffer);
    *buffer = NULL;
}
