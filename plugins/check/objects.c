// The plugin's data for the front end's objects.
#include <stdlib.h>
#include <string.h>

#include "plugins/check/parts.h"

weir_status check_queue_create(const struct weir_link *link, weir_device *device,
                               weir_queue *object, const struct weir_queue_setup *setup,
                               void **out_data)
{
    struct check *check = check_of(link);
    struct check_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return weir_host_no_memory(link->host, "the clock of a queue");
    queue->device = device;
    queue->actor.label = weir_queue_object(object)->label;
    queue->actor.id = weir_queue_object(object)->id;
    queue->actor.exposed = setup->native;
    check_lock(check);
    const bool added = check_actor_add(&check->actors, &queue->actor);
    check_threads_more(check);
    check->unseen_uses = check->unseen_uses || setup->native;
    check_unlock(check);
    if (!added) {
        free(queue);
        return weir_host_no_memory(link->host, "the clock of a queue");
    }
    *out_data = queue;
    return WEIR_OK;
}

void check_queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct check *check = check_of(link);
    struct check_queue *queue = check_queue_of(link, object);
    check_lock(check);
    check_calls_give_back(check, queue);
    if (check->needless)
        check_hint_queue_ends(check, queue);
    check_actor_remove(&check->actors, &queue->actor);
    check_unlock(check);
    free(queue);
}

weir_status check_queue_native(const struct weir_link *link, weir_queue *object,
                               struct weir_native_queue *out_native)
{
    struct check *check = check_of(link);
    check_lock(check);
    check_queue_of(link, object)->actor.exposed = true;
    check->unseen_uses = true;
    check_unlock(check);
    return link->next->ops->queue_native(link->next, object, out_native);
}

// Buffers.

// Whether something else than operations and the host's declared accesses may write it.
static bool is_written_elsewhere(const struct weir_buffer_setup *setup)
{
    return setup->user_pointer || setup->native || setup->placement == WEIR_PLACE_MANAGED;
}

// Memory with a handle.

static struct check_shared *find_shared(const struct check *check, uint64_t handle)
{
    struct check_shared *shared = check->shared;
    while (shared && shared->handle != handle)
        shared = shared->next;
    return shared;
}

static struct check_shared *take_shared(struct check *check, uint64_t handle)
{
    struct check_shared *shared = find_shared(check, handle);
    if (!shared && (shared = calloc(1, sizeof *shared))) {
        shared->handle = handle;
        shared->next = check->shared;
        check->shared = shared;
    }
    if (shared)
        shared->users++;
    return shared;
}

static void drop_shared(struct check *check, struct check_shared *shared)
{
    struct check_shared **at = &check->shared;
    if (!shared || --shared->users > 0)
        return;
    while (*at != shared)
        at = &(*at)->next;
    *at = shared->next;
    check_history_clear(&check->uses, &shared->memory.history);
    free(shared);
}

// On CUDA the memory of all devices and of the host has one space of addresses.
static bool has_address(const struct weir_link *link, weir_device *device,
                        const struct weir_buffer_setup *setup)
{
    struct weir_native_device native = {.struct_size = sizeof native};
    return setup->placement == WEIR_PLACE_HOST ||
           (link->next->ops->device_native(link->next, device, &native) == WEIR_OK &&
            weir_native_is(native.api, WEIR_NATIVE_CUDA));
}

// Buffers on the same memory of the user's share its history. If out of memory, they do not.
static void place(const struct weir_link *link, weir_device *device,
                  const struct weir_buffer_setup *setup, struct check_buffer *buffer)
{
    struct check *check = check_of(link);
    const uint64_t address = setup->user_pointer ? (uintptr_t)setup->user_pointer : setup->native;
    buffer->memory = &buffer->own;
    if (!address)
        return;
    if (has_address(link, device, setup)) {
        buffer->memory = &check->wrapped;
        buffer->base = address;
        return;
    }
    check_lock(check);
    buffer->shared = take_shared(check, address);
    check_unlock(check);
    if (buffer->shared)
        buffer->memory = &buffer->shared->memory;
}

// The host may use it at any time.
static void note_elsewhere(struct check *check)
{
    check_lock(check);
    check->unseen_syncs = true;
    check_unlock(check);
}

weir_status check_buffer_create(const struct weir_link *link, weir_device *device,
                                weir_buffer *object, const struct weir_buffer_setup *setup,
                                void **out_data, void **out_pointer)
{
    (void)out_pointer;
    struct check_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return weir_host_no_memory(link->host, "the history of a buffer");
    buffer->object = object;
    place(link, device, setup, buffer);
    buffer->size = setup->size;
    if (is_written_elsewhere(setup))
        note_elsewhere(check_of(link));
    else
        check_gaps_reset(&buffer->gaps, setup->size);
    *out_data = buffer;
    return WEIR_OK;
}

void check_buffer_clear(struct check *check, struct check_buffer *buffer)
{
    struct check_history *history = &buffer->memory->history;
    const struct check_span all = {buffer->base, buffer->base + buffer->size};
    check_history_find(history, all, &check->found);
    for (size_t i = 0; i < check->found.count; i++) {
        struct check_use *use = check->found.uses[i];
        if (use->shape.begin >= all.end || use->shape.end <= all.begin)
            continue;
        if (check->needless && history == &check->wrapped.history)
            check_hint_forget_use(check, use->actor, use->count);
        if (check->needless)
            check_sync_need(check, use->actor, use->count);
        check_history_remove(&check->uses, history, use);
    }
}

static void drop_open(struct check_buffer *buffer)
{
    while (buffer->open) {
        struct check_open *open = buffer->open;
        buffer->open = open->next;
        free(open);
    }
}

void check_buffer_destroy(const struct weir_link *link, weir_buffer *object)
{
    struct check *check = check_of(link);
    struct check_buffer *buffer = check_buffer_of(link, object);
    check_lock(check);
    if (!buffer->shared)
        check_buffer_clear(check, buffer);
    drop_shared(check, buffer->shared);
    check_unlock(check);
    drop_open(buffer);
    check_gaps_forget(&buffer->gaps);
    free(buffer);
}

// A program that has the address may write there.
static void forget_gaps(const struct weir_link *link, const weir_buffer *object)
{
    struct check *check = check_of(link);
    check_lock(check);
    check_gaps_forget(&check_buffer_of(link, object)->gaps);
    check->unseen_uses = true;
    check_unlock(check);
}

weir_status check_buffer_native(const struct weir_link *link, weir_buffer *object,
                                struct weir_native_buffer *out_native)
{
    forget_gaps(link, object);
    return link->next->ops->buffer_native(link->next, object, out_native);
}

weir_status check_buffer_address(const struct weir_link *link, weir_buffer *object,
                                 uint64_t *out_address)
{
    struct check *check = check_of(link);
    forget_gaps(link, object);
    check_lock(check);
    check->addressed = true;
    check_unlock(check);
    return link->next->ops->buffer_address(link->next, object, out_address);
}

weir_status check_kernel_create(const struct weir_link *link, weir_program *program,
                                weir_kernel *object, const struct weir_kernel_signature *signature,
                                struct weir_kernel_info *info, void **out_data)
{
    struct check *check = check_of(link);
    (void)program;
    (void)object;
    (void)info;
    check_lock(check);
    const char *name = weir_names_keep(check->names, signature->name);
    check_unlock(check);
    if (!name)
        return weir_host_no_memory(link->host, "the name of a kernel");
    *out_data = (void *)(uintptr_t)name; // which is never written to
    return WEIR_OK;
}

void check_note_change(struct check *check)
{
    check_lock(check);
    if (check->needless)
        check_sync_need_all(check);
    check_unlock(check);
}

void check_kernel_destroy(const struct weir_link *link, weir_kernel *object)
{
    (void)object;
    check_note_change(check_of(link));
}
