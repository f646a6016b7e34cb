// The loader's thread: from the source to the device.
#include "patterns/loader_parts.h"

#include <inttypes.h>

static void publish(weir_loader *loader, struct weir__entry *entry, enum weir__entry_state state)
{
    pthread_mutex_lock(&loader->lock);
    entry->state = state;
    pthread_cond_broadcast(&loader->to_next);
    pthread_mutex_unlock(&loader->lock);
}

static void publish_error(weir_loader *loader, struct weir__entry *entry)
{
    entry->error = *weir_last_error();
    publish(loader, entry, WEIR__ENTRY_ERROR);
}

// Waits until the entry's last batch was delivered. Returns false when the loader is to
// stop.
static bool wait_for_entry(weir_loader *loader, const struct weir__entry *entry)
{
    pthread_mutex_lock(&loader->lock);
    while (!loader->stopping && entry->state != WEIR__ENTRY_NONE)
        pthread_cond_wait(&loader->to_load, &loader->lock);
    bool go_on = !loader->stopping;
    pthread_mutex_unlock(&loader->lock);
    return go_on;
}

// A call of the source, on its way.
struct source_call {
    weir_loader *loader;
    struct weir__entry *entry;
    void *memory;
    weir_status status;
};

static void call_source(void *user)
{
    struct source_call *call = user;
    const struct weir_loader_params *params = &call->loader->params;
    call->status = params->source(params->user, call->loader->loading, call->memory,
                                  params->batch_bytes, &call->entry->size);
}

// The source ended its thread: that is the batch's error, and another thread loads the next one.
static void survive_source(void *user)
{
    const struct source_call *call = user;
    weir_loader *loader = call->loader;
    (void)weir_host_end(call->entry->pinned, 0, loader->params.batch_bytes, WEIR_ACCESS_WRITE);
    weir__pattern_callback_ended(loader->label, "the source");
    publish_error(loader, call->entry);
    loader->loading++;
    pthread_mutex_lock(&loader->lock);
    const bool renewed = !loader->stopping && weir_thread_renew() == 0;
    pthread_mutex_unlock(&loader->lock);
    if (!renewed) // deeper on this thread's stack
        weir__loader_run(loader);
}

static weir_status ask_source(weir_loader *loader, struct weir__entry *entry, void *memory)
{
    size_t capacity = loader->params.batch_bytes;
    struct source_call call = {.loader = loader, .entry = entry, .memory = memory};

    entry->size = 0;
    weir__pattern_forget();
    weir_thread_call(call_source, survive_source, &call);
    if (call.status != WEIR_OK)
        return weir__pattern_callback_failed(loader->label, "the source", call.status);
    if (entry->size > capacity)
        return weir__pattern_fail(loader->label, WEIR_ERROR_INVALID, "use a larger batch_bytes",
                                  "the source reported that batch %" PRIu64 " has %zu bytes; there "
                                  "is room for %zu",
                                  loader->loading, entry->size, capacity);
    return WEIR_OK;
}

static weir_status fill(weir_loader *loader, struct weir__entry *entry)
{
    size_t capacity = loader->params.batch_bytes;
    void *memory;

    // If that copy failed, the consumer of its batch got the error.
    if (entry->copied.sequence > 0)
        (void)weir_event_sync(entry->copied, WEIR_FOREVER);
    weir_status status = weir_host_begin(entry->pinned, 0, capacity, WEIR_ACCESS_WRITE, &memory);
    if (status != WEIR_OK)
        return status;
    status = ask_source(loader, entry, memory);
    weir_status end = weir_host_end(entry->pinned, 0, capacity, WEIR_ACCESS_WRITE);
    return status == WEIR_OK ? end : status;
}

// With the lock. The room that was released first is the most likely to be idle.
static struct weir__room *free_room(weir_loader *loader)
{
    struct weir__room *found = NULL;
    for (uint32_t i = 0; i < loader->params.slot_count; i++) {
        struct weir__room *room = &loader->rooms[i];
        if (room->state == WEIR__ROOM_FREE &&
            (!found || room->released_order < found->released_order))
            found = room;
    }
    return found;
}

// Returns NULL when the loader is to stop.
static struct weir__room *claim_room(weir_loader *loader, struct weir__entry *entry)
{
    struct weir__room *room;

    pthread_mutex_lock(&loader->lock);
    entry->state = WEIR__ENTRY_FILLED;
    // Consumers that find every slot held can be refused now.
    pthread_cond_broadcast(&loader->to_next);
    while (!(room = free_room(loader)) && !loader->stopping)
        pthread_cond_wait(&loader->to_load, &loader->lock);
    if (loader->stopping)
        room = NULL;
    else
        room->state = WEIR__ROOM_CLAIMED;
    pthread_mutex_unlock(&loader->lock);
    if (room && room->released.sequence > 0)
        (void)weir_event_sync(room->released, WEIR_FOREVER);
    return room;
}

static weir_status copy(weir_loader *loader, struct weir__entry *entry,
                        const struct weir__room *room)
{
    weir_status status =
        weir_queue_copy(loader->queue, room->buffer, 0, entry->pinned, 0, entry->size);
    if (status == WEIR_OK)
        status = weir_queue_record(loader->queue, &entry->copied);
    return status == WEIR_OK ? weir_queue_flush(loader->queue) : status;
}

// A queue that failed with an earlier batch refuses this one, whose data is still intact.
static weir_status copy_or_recover(weir_loader *loader, struct weir__entry *entry,
                                   const struct weir__room *room)
{
    weir_status status = copy(loader, entry, room);
    if (status == WEIR_OK)
        return WEIR_OK;
    (void)weir_queue_sync(loader->queue, WEIR_FOREVER);
    status = weir_queue_recover(loader->queue);
    return status == WEIR_OK ? copy(loader, entry, room) : status;
}

static void free_claimed(weir_loader *loader, struct weir__room *room)
{
    pthread_mutex_lock(&loader->lock);
    room->state = WEIR__ROOM_FREE;
    room->released = (struct weir_event){0, 0};
    pthread_mutex_unlock(&loader->lock);
}

// Returns false at the end.
static bool load_next(weir_loader *loader)
{
    struct weir__entry *entry = &loader->entries[loader->loading % loader->params.slot_count];
    if (!wait_for_entry(loader, entry))
        return false;
    if (fill(loader, entry) != WEIR_OK) {
        publish_error(loader, entry);
        return true;
    }
    if (entry->size == 0) {
        publish(loader, entry, WEIR__ENTRY_END);
        return false;
    }
    struct weir__room *room = claim_room(loader, entry);
    if (!room)
        return false;
    entry->room = (uint32_t)(room - loader->rooms);
    if (copy_or_recover(loader, entry, room) == WEIR_OK) {
        publish(loader, entry, WEIR__ENTRY_BATCH);
    } else {
        publish_error(loader, entry);
        free_claimed(loader, room);
    }
    return true;
}

void weir__loader_run(void *argument)
{
    weir_loader *loader = argument;
    while (load_next(loader))
        loader->loading++;
}
